"""Kinds of message weights and protected units, with their bounds; importing them needs no torch."""

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
# sigmoid(1), rounded up to float32, the type of weights.
_LARGEST_SIMILARITY: Final = 0.7310585975646973


def largest_weight(kind: str) -> float:
    """The declared w_max of a kind, rounded up. Raises InputError for no such kind."""
    if kind not in WEIGHT_KINDS:
        raise InputError(f"weights {kind!r} are not known", allowed=", ".join(WEIGHT_KINDS))
    # A bound for the kind: the largest weight in private data would be a statistic of these data.
    return _LARGEST_SIMILARITY if kind == "similarity" else 1.0


def require_bits(bits: int) -> None:
    """Raise InputError for a grid that is too coarse or too fine."""
    require_whole(1, FINEST, bits=bits)
