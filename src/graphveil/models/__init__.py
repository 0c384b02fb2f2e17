"""Backbones: GraphSAGE, GCN, GAT and the edge-free MLP."""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphveil.exports import lazy_names

if TYPE_CHECKING:
    from graphveil.models.backbone import Backbone as Backbone
    from graphveil.models.backbone import build_backbone as build_backbone
    from graphveil.models.backbone import first_width as first_width
    from graphveil.models.backbone import learned_structure as learned_structure
    from graphveil.models.backbone import structure_for as structure_for
    from graphveil.models.block_model import BlockBeliefs as BlockBeliefs
    from graphveil.models.block_model import NamedPairs as NamedPairs
    from graphveil.models.block_model import block_beliefs as block_beliefs
    from graphveil.models.names import BACKBONES as BACKBONES

_HOMES = {
    "BACKBONES": "names",
    "Backbone": "backbone",
    "BlockBeliefs": "block_model",
    "NamedPairs": "block_model",
    "block_beliefs": "block_model",
    "build_backbone": "backbone",
    "first_width": "backbone",
    "learned_structure": "backbone",
    "structure_for": "backbone",
}

__all__ = list(_HOMES)
__getattr__, __dir__ = lazy_names(__name__, _HOMES)
