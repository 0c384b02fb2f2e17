"""Backbones: GraphSAGE, GCN, GAT and the edge-free MLP."""

from graphveil.models.backbone import (
    BACKBONES,
    Backbone,
    build_backbone,
    first_width,
    learned_structure,
    structure_for,
)

__all__ = ["BACKBONES", "Backbone", "build_backbone", "first_width", "learned_structure", "structure_for"]
