"""Facts about networks that need no torch: names, defaults and how many numbers a curator's networks train.

A linear layer of d to k columns has (d + 1) k numbers, its bias included. Batch normalisation is not counted: networks
that are charged for train without it.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Literal, get_args

BackboneName = Literal["sage", "gcn", "gat", "mlp"]
BACKBONES: tuple[str, ...] = get_args(BackboneName)
#: Heads of the first layer of "gat".
HEADS = 4
#: How many densities of links there are between classes, see `models.blocks.labelled_blocks`.
BLOCKS = ("full", "planted")
#: Rounds of belief propagation over named pairs.
BELIEF_ROUNDS = 25


def encoder_size(dimension: int, hidden: int, classes: int) -> int:
    return sum(_layer(inputs, outputs) for inputs, outputs in pairwise((dimension, hidden, hidden, classes)))


def hop_classifier_size(widths: Sequence[int], hidden: int, classes: int) -> int:
    return sum(_layer(width, hidden) for width in widths) + _layer(hidden * len(widths), classes)


def stage_size(widths: Sequence[int], hidden: int, classes: int) -> int:
    deeper = (len(widths) - 1) * _layer(hidden, hidden)
    return hop_classifier_size(widths, hidden, classes) + deeper


def pair_attention_size(columns: int, classes: int) -> int:
    """Return the numbers of a `PairAttention`: target, sender without a bias, score and head."""
    return _layer(columns, columns) + columns**2 + _layer(columns, 1) + _layer(columns, classes)


def vote_head_size(classes: int) -> int:
    return _layer(2 * classes, classes)


def _layer(inputs: int, outputs: int) -> int:
    return (inputs + 1) * outputs
