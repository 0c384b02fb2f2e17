"""Adversaries against any fitted method, each with the limit that the method's own epsilon puts on it.

The names below load on first use: a stored result is read without any adversary.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphveil.runtime.late import lazy_names

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

_HOMES = {
    "AttackResult": "result",
    "Limit": "limits",
    "attribute": "attribute_inference",
    "averaging": "repeated_reports",
    "judge": "result",
    "limit_of": "limits",
    "link_stealing": "stolen_links",
    "linkteller": "influence",
    "lira": "membership_inference",
    "membership": "membership_inference",
    "published_edges": "release_edges",
    "reconstruction": "feature_reconstruction",
}

__all__ = list(_HOMES)


__getattr__, __dir__ = lazy_names(__name__, _HOMES)
