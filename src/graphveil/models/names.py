"""The backbones by name, and what beliefs default to; no torch is needed to read them."""

from __future__ import annotations

from typing import Literal, get_args

BackboneName = Literal["sage", "gcn", "gat", "mlp"]
BACKBONES: tuple[str, ...] = get_args(BackboneName)
#: Heads of the first layer of "gat".
HEADS = 4
#: How many densities of links there are between classes, see `models.blocks.block_densities`.
BLOCKS = ("full", "planted")
#: Rounds of belief propagation over named pairs.
BELIEF_ROUNDS = 25
