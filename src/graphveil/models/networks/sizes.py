"""How many numbers the networks of a curator's methods train, from widths alone: a price needs no network and no torch.

A linear layer of d to k columns has (d + 1) k numbers, its bias included. Batch normalisation is not counted: networks
that are charged for train without it.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise


def encoder_size(dimension: int, hidden: int, classes: int) -> int:
    """Return the numbers of an `Encoder` of these widths."""
    return sum(_layer(inputs, outputs) for inputs, outputs in pairwise((dimension, hidden, hidden, classes)))


def hop_classifier_size(widths: Sequence[int], hidden: int, classes: int) -> int:
    """Return the numbers of a `HopClassifier` over parts of these widths."""
    return sum(_layer(width, hidden) for width in widths) + _layer(hidden * len(widths), classes)


def stage_size(widths: Sequence[int], hidden: int, classes: int) -> int:
    """Return the numbers of a `Stage` over features, then sums, of these widths."""
    deeper = (len(widths) - 1) * _layer(hidden, hidden)
    return hop_classifier_size(widths, hidden, classes) + deeper


def pair_attention_size(columns: int, classes: int) -> int:
    """Return the numbers of a `PairAttention`: target, sender without a bias, score and head."""
    return _layer(columns, columns) + columns**2 + _layer(columns, 1) + _layer(columns, classes)


def vote_head_size(classes: int) -> int:
    """Return the numbers of a `VoteHead`."""
    return _layer(2 * classes, classes)


def _layer(inputs: int, outputs: int) -> int:
    return (inputs + 1) * outputs
