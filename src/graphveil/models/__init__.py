"""Backbones: GraphSAGE, GCN, GAT and the edge-free MLP."""

from graphveil.models.backbone import (
    BACKBONES,
    Backbone,
    build_backbone,
    first_width,
    learned_structure,
    structure_for,
)
from graphveil.models.block_beliefs import BlockBeliefs, NamedPairs, block_beliefs

__all__ = [
    "BACKBONES",
    "Backbone",
    "BlockBeliefs",
    "NamedPairs",
    "block_beliefs",
    "build_backbone",
    "first_width",
    "learned_structure",
    "structure_for",
]
