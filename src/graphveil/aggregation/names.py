"""Weights of messages and protected units by name, with their bounds; no torch is needed to read them."""

from __future__ import annotations

from typing import Final, Literal, get_args

from graphveil.errors import InputError
from graphveil.runtime.checks import require_whole

WeightKind = Literal["uniform", "similarity", "kernel", "learned", "attention"]
WEIGHT_KINDS: tuple[str, ...] = get_args(WeightKind)
Unit = Literal["directed-edge", "edge", "k-edges", "node"]
UNITS: tuple[str, ...] = get_args(Unit)
#: The finest grid: rows of at most 2^FINEST steps keep float32 sums of 16 entries exact.
FINEST: Final = 20
# sigmoid(1), rounded up to float32, in which weights are kept.
_SIMILAR: Final = 0.7310585975646973


def largest_weight(kind: str) -> float:
    """The declared w_max of a kind, rounded up. Raises InputError for no such kind."""
    if kind not in WEIGHT_KINDS:
        raise InputError(f"weights {kind!r} are not known", allowed=", ".join(WEIGHT_KINDS))
    # A bound of the kind: the largest weight found in private data would be a statistic of it.
    return _SIMILAR if kind == "similarity" else 1.0


def require_bits(bits: int) -> None:
    """Raise InputError for a grid that is too coarse or too fine."""
    require_whole(1, FINEST, bits=bits)
