"""Organisations that hold different things about the same people train together: protocol, transport, estimator."""

from graphveil.federation.agreement import Agreement, read_agreement
from graphveil.federation.estimator import VFGNN
from graphveil.federation.messages import KINDS, Transcript
from graphveil.federation.setting import MODES, Member, Setting

__all__ = ["KINDS", "MODES", "VFGNN", "Agreement", "Member", "Setting", "Transcript", "read_agreement"]
