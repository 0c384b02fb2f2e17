"""Adversaries against any fitted method, each with the limit that the method's own epsilon puts on it.

The names below load on first use: a stored result is read without any adversary.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphveil.runtime.late import late_names, lazy_names

if TYPE_CHECKING:
    from graphveil.attacks.attribute_inference import attribute as attribute
    from graphveil.attacks.feature_reconstruction import reconstruction as reconstruction
    from graphveil.attacks.influence import linkteller as linkteller
    from graphveil.attacks.limits import Limit as Limit
    from graphveil.attacks.limits import limit_of as limit_of
    from graphveil.attacks.membership_inference import lira as lira
    from graphveil.attacks.membership_inference import membership as membership
    from graphveil.attacks.release_edges import published_edges as published_edges
    from graphveil.attacks.repeated_reports import averaging as averaging
    from graphveil.attacks.result import AttackResult as AttackResult
    from graphveil.attacks.result import judge as judge
    from graphveil.attacks.stolen_links import link_stealing as link_stealing

_HOMES = late_names(__name__, __file__)

__all__ = sorted(_HOMES)
__getattr__, __dir__ = lazy_names(__name__, _HOMES)
