"""Adversaries against any fitted method, each with the limit that the method's own epsilon puts on it."""

from graphveil.attacks.limits import Limit, limit_of
from graphveil.attacks.linkteller import linkteller
from graphveil.attacks.result import AttackResult, judge

__all__ = ["AttackResult", "Limit", "judge", "limit_of", "linkteller"]
