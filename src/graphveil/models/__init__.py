"""Backbones: GraphSAGE, GCN, GAT and the edge-free MLP; the networks of a trusted curator."""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphveil.exports import lazy_names

if TYPE_CHECKING:
    from graphveil.models.attention import Incoming as Incoming
    from graphveil.models.attention import PairAttention as PairAttention
    from graphveil.models.backbone import Backbone as Backbone
    from graphveil.models.backbone import build_backbone as build_backbone
    from graphveil.models.backbone import first_width as first_width
    from graphveil.models.backbone import learned_structure as learned_structure
    from graphveil.models.backbone import structure_for as structure_for
    from graphveil.models.block_model import BlockBeliefs as BlockBeliefs
    from graphveil.models.block_model import NamedPairs as NamedPairs
    from graphveil.models.block_model import block_beliefs as block_beliefs
    from graphveil.models.fusion import Fusion as Fusion
    from graphveil.models.fusion import beside as beside
    from graphveil.models.fusion import standardised as standardised
    from graphveil.models.names import BACKBONES as BACKBONES
    from graphveil.models.own import Links as Links
    from graphveil.models.own import OwnBackbone as OwnBackbone
    from graphveil.models.own import as_rows as as_rows
    from graphveil.models.own import require_scores as require_scores
    from graphveil.models.own import require_weights as require_weights
    from graphveil.models.perceptrons import Encoder as Encoder
    from graphveil.models.perceptrons import HopClassifier as HopClassifier
    from graphveil.models.perceptrons import Stage as Stage
    from graphveil.models.vote_head import VoteHead as VoteHead

_HOMES = {
    "BACKBONES": "names",
    "Backbone": "backbone",
    "BlockBeliefs": "block_model",
    "Encoder": "perceptrons",
    "Fusion": "fusion",
    "HopClassifier": "perceptrons",
    "Incoming": "attention",
    "Links": "own",
    "NamedPairs": "block_model",
    "OwnBackbone": "own",
    "PairAttention": "attention",
    "Stage": "perceptrons",
    "VoteHead": "vote_head",
    "as_rows": "own",
    "beside": "fusion",
    "block_beliefs": "block_model",
    "build_backbone": "backbone",
    "first_width": "backbone",
    "learned_structure": "backbone",
    "require_scores": "own",
    "require_weights": "own",
    "standardised": "fusion",
    "structure_for": "backbone",
}

__all__ = list(_HOMES)
__getattr__, __dir__ = lazy_names(__name__, _HOMES)
