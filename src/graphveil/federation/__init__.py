"""Organisations that hold different things about the same people train together: protocol, transport, estimator.

Names load their modules when they are first used: neither torch nor gRPC is imported with this package.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphveil.runtime.late import late_names, lazy_names

if TYPE_CHECKING:
    from graphveil.federation.core.agreement import Agreement as Agreement
    from graphveil.federation.core.agreement import read_agreement as read_agreement
    from graphveil.federation.core.messages import KINDS as KINDS
    from graphveil.federation.core.messages import Transcript as Transcript
    from graphveil.federation.core.setting import MODES as MODES
    from graphveil.federation.core.setting import Member as Member
    from graphveil.federation.core.setting import Setting as Setting
    from graphveil.federation.estimator import VFGNN as VFGNN

_HOMES = late_names(__name__, __file__)

__all__ = sorted(_HOMES)
__getattr__, __dir__ = lazy_names(__name__, _HOMES)
