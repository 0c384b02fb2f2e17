"""Adversaries against any fitted method, each with the limit that the method's own epsilon puts on it."""

from graphveil.attacks.attribute import attribute
from graphveil.attacks.averaging import averaging
from graphveil.attacks.limits import Limit, limit_of
from graphveil.attacks.link_stealing import link_stealing
from graphveil.attacks.linkteller import linkteller
from graphveil.attacks.membership import lira, membership
from graphveil.attacks.published_edges import published_edges
from graphveil.attacks.reconstruction import reconstruction
from graphveil.attacks.result import AttackResult, judge

__all__ = [
    "AttackResult",
    "Limit",
    "attribute",
    "averaging",
    "judge",
    "limit_of",
    "link_stealing",
    "linkteller",
    "lira",
    "membership",
    "published_edges",
    "reconstruction",
]
