"""Backbones: GraphSAGE, GCN, GAT and the edge-free MLP; the networks of a trusted curator."""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphveil.runtime.late import late_names, lazy_names

if TYPE_CHECKING:
    from graphveil.models.blocks.block_model import NamedPairs as NamedPairs
    from graphveil.models.names import BACKBONES as BACKBONES
    from graphveil.models.networks.attention import Incoming as Incoming
    from graphveil.models.networks.attention import PairAttention as PairAttention
    from graphveil.models.networks.backbone import Backbone as Backbone
    from graphveil.models.networks.backbone import build_backbone as build_backbone
    from graphveil.models.networks.backbone import first_width as first_width
    from graphveil.models.networks.backbone import learned_structure as learned_structure
    from graphveil.models.networks.backbone import structure_for as structure_for
    from graphveil.models.networks.own import Links as Links
    from graphveil.models.networks.own import OwnBackbone as OwnBackbone
    from graphveil.models.networks.own import as_rows as as_rows
    from graphveil.models.networks.own import reading_rows as reading_rows
    from graphveil.models.networks.own import require_module as require_module
    from graphveil.models.networks.own import require_scores as require_scores
    from graphveil.models.networks.own import require_weights as require_weights
    from graphveil.models.networks.perceptrons import Encoder as Encoder
    from graphveil.models.networks.perceptrons import HopClassifier as HopClassifier
    from graphveil.models.networks.perceptrons import Stage as Stage
    from graphveil.models.networks.perceptrons import VoteHead as VoteHead
    from graphveil.models.networks.two_layers import Fusion as Fusion
    from graphveil.models.networks.two_layers import beside as beside
    from graphveil.models.networks.two_layers import standardised as standardised

_HOMES = late_names(__name__, __file__)

__all__ = sorted(_HOMES)
__getattr__, __dir__ = lazy_names(__name__, _HOMES)
