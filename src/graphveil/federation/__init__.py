"""Organisations that hold different things about the same people train together: protocol, transport, estimator."""

from graphveil.federation.core.agreement import Agreement, read_agreement
from graphveil.federation.core.messages import KINDS, Transcript
from graphveil.federation.core.setting import MODES, Member, Setting
from graphveil.federation.estimator import VFGNN

__all__ = ["KINDS", "MODES", "VFGNN", "Agreement", "Member", "Setting", "Transcript", "read_agreement"]
