"""What methods on noisy sums share: an encoder trained on features and labels alone, and refusals of graphs.

X = unit rows of the encoder's last layer, [n, hidden]: of length 1 at most, for which sums of them are priced
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from graphveil import models
from graphveil.aggregation import unit_rows
from graphveil.errors import InputError
from graphveil.graphs import GraphSchema
from graphveil.methods.curator.evidence import class_shares, corners
from graphveil.methods.curator.privacy import CuratorPrivacy
from graphveil.methods.curator.settings import CuratorSettings, PooledSettings
from graphveil.methods.curator.stages.training import FeatureBlock, apply_by_blocks, device_of, logits_of
from graphveil.runtime.late import Tensor, nn, torch


def encoder_for(settings: CuratorSettings, schema: GraphSchema, *, batch_norm: bool) -> models.Encoder:
    """Return an encoder of features, untrained."""
    dropout = settings.dropout_of(schema, batch_norm=batch_norm)
    return models.Encoder(
        schema.dimension, settings.hidden, len(schema.classes), batch_norm=batch_norm, dropout=dropout
    )


def stage_for(
    settings: CuratorSettings, schema: GraphSchema, widths: Sequence[int], *, batch_norm: bool
) -> models.Stage:
    """Return a classifier of the features and of noisy sums, untrained.

    Args:
        widths: the columns of the features, then of each sum.
    """
    dropout = settings.dropout_of(schema, batch_norm=batch_norm)
    return models.Stage(list(widths), settings.hidden, len(schema.classes), batch_norm=batch_norm, dropout=dropout)


def encoder_and_classifier(
    settings: CuratorSettings, schema: GraphSchema, widths: Sequence[int], *, batch_norm: bool
) -> list[nn.Module]:
    """Return an encoder of features, and a classifier whose input parts have these widths."""
    hidden, classes = settings.hidden, len(schema.classes)
    return [
        encoder_for(settings, schema, batch_norm=batch_norm),
        models.HopClassifier(list(widths), hidden, classes, batch_norm=batch_norm),
    ]


def encoder_rows(encoder: nn.Module, features: FeatureBlock) -> Tensor:
    """Return X [n, hidden] of a trained encoder, without gradients."""
    return unit_rows(apply_by_blocks(cast(models.Encoder, encoder).embed, [features], device_of(encoder)))


def message_rows(
    settings: PooledSettings, network: nn.Module, parts: Sequence[FeatureBlock], rows: Tensor, labels: Tensor
) -> Tensor:
    """Return the rows that nodes send into a sum: those that were learned, or unit rows [n, k + c] that add, with equal
    weight, the corner of a public label, else the mean corner that the network expects. A node's own row is not in its
    sum.

    Args:
        settings, network, parts: the network learned the rows from these input parts.
        rows, labels: [n, k]; int64 [n], -1 where none is public.
    """
    if settings.rows == "published":
        return rows
    logits = logits_of(network, parts)
    class_corners = class_shares(labels, torch.softmax(logits, dim=1)) @ corners(logits.shape[1])
    return unit_rows(torch.cat([unit_rows(rows), class_corners.to(rows)], dim=1))


def expected_corners(shares: Tensor | None) -> Tensor:
    """Return the mean corner [n, c] of class probabilities [n, c]: the input of a node itself beside noisy sums."""
    probabilities = cast(torch.Tensor, shares)
    return probabilities @ corners(probabilities.shape[1])


def require_one_edge(kind: str, privacy: CuratorPrivacy) -> None:
    """Refuse another unit than one undirected edge, a tuning, and queries."""
    if privacy.unit not in (None, "edge"):
        raise InputError(f"unit {privacy.unit!r} does not apply to {kind}", allowed="edge")
    if privacy.tuning is not None or privacy.queries:
        raise InputError(f"{kind} is priced for one training", allowed="no tuning, and queries=0")


def require_undirected(kind: str, schema: GraphSchema) -> None:
    """Refuse directed graphs."""
    if schema.directed:
        raise InputError(f"{kind} is for undirected graphs", where=schema.name, allowed="edges in both directions")
