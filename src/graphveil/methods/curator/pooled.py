"""GAP and ProGAP pooled with an encoder of features alone, by validation labels.

    opinions    z_0  a wider encoder of features alone;  z_1..z_k  the classifiers that the recipe trains, in order
    pool        z = sum_i w_i log softmax(z_i),  w by validation labels, from equal weights, see `models.labels.pool`
    prediction  z if held-out validation labels are surely likelier under it, and no fewer of them right; else z_k

With much noise the sums mislead the last network, and features hold more than fits in the few columns that are summed:
ProGAP at epsilon 1 was 6 points below features alone on Cora.
Nothing private is read: units of edges protect relationships, so that features and labels, those of validation nodes
too, are open to the curator, and opinions are post-processing of noisy sums that were paid for.  Where nodes are
protected, labels would be read unpaid, so there is no pool.  Validation labels train no opinion: they stop trainings,
and choose at most hops + 2 weights, which are judged on labels that did not choose them.
Ours; sources of the pool: see `models.labels.pool`.  Shapes: opinions [k + 1, n, c].
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from graphveil import models
from graphveil.errors import InputError
from graphveil.graphs import GraphSchema
from graphveil.methods.curator.settings import CuratorSettings, PooledSettings
from graphveil.methods.curator.stages.encoder import encoder_for
from graphveil.methods.curator.stages.stages import Recipe
from graphveil.methods.curator.stages.training import (
    FeatureBlock,
    NodeData,
    Publication,
    build_seeded,
    logits_of,
    rows_for,
    train_openly,
)
from graphveil.models.labels.label_prior import Channel
from graphveil.models.labels.pool import FEWEST_JUDGES, better_pool, held_out
from graphveil.runtime.late import Tensor, nn, torch

#: Columns of the encoder in the pool: they are not summed, so width costs no noise.
WIDE = 64
#: Settings of files that are older than these settings.
UNPOOLED: Mapping[str, Any] = {"dropout": 0.0, "pooling": "none", "rows": "published"}
#: The least log-probability: one opinion alone never rules a class out.
_LEAST = -15.0


@dataclass(frozen=True)
class Pool:
    """The pool of a method's networks: the trained encoder of features alone, and the weights of all opinions."""

    encoder: nn.Module
    weights: tuple[float, ...]


def with_pooling_defaults(options: Mapping[str, Any], unit: str | None) -> dict[str, Any]:
    """Return options with `pooling` and `rows` filled in: "stages" and "labelled", or "none" and "published" where
    nodes are protected, for which the former are refused. Rows are "published" also where weights compare them, and
    with queries, since labels of another graph are unknown.
    """
    nodes = unit == "node"
    if nodes and options.get("pooling") == "stages":
        raise InputError(
            "pooling stages with unit node: validation labels are protected, and nothing was paid for them",
            allowed="pooling=none",
        )
    if nodes and options.get("rows") == "labelled":
        raise InputError("rows labelled with unit node: labels are protected", allowed="rows=published")
    plain = nodes or options.get("queries", 0) or options.get("weights", "uniform") != "uniform"
    return {
        **options,
        "pooling": options.get("pooling") or ("none" if nodes else "stages"),
        "rows": options.get("rows") or ("published" if plain else "labelled"),
    }


def may_pool(settings: CuratorSettings) -> bool:
    """Return whether a method may pool its networks."""
    return isinstance(settings, PooledSettings) and settings.pooling == "stages"


def extra_layers(settings: CuratorSettings, first: int) -> list[int]:
    """Return the hidden layers of the trainings beside a recipe's networks, in units of their width: its first network
    again for each fold of `unseen_shares`, and the encoder in the pool.

    Args:
        first: the layers of the recipe's first network.
    """
    labelled = isinstance(settings, PooledSettings) and settings.rows == "labelled"
    return [*([2 * first] if labelled else []), *([max(1, 2 * WIDE // settings.hidden)] if may_pool(settings) else [])]


def wide_encoder(settings: CuratorSettings, schema: GraphSchema) -> models.Encoder:
    """Return the encoder in the pool, untrained."""
    return encoder_for(_wide_settings(settings), schema, batch_norm=True)


def trained_encoder(people: NodeData, settings: CuratorSettings) -> models.Encoder:
    """Return the encoder in the pool, trained on features and labels alone."""
    encoder = build_seeded(lambda: wide_encoder(settings, people.schema), settings.seed).to(settings.device)
    rows, judges = (rows_for(encoder, [people.features], people, nodes) for nodes in (people.train, people.val))
    train_openly(encoder, rows, judges, _wide_settings(settings))
    return encoder


def pool_for(
    recipe: Recipe, networks: Sequence[nn.Module], published: Publication, settings: CuratorSettings
) -> Pool | None:
    """Return the pool of trained networks; None if networks are not pooled, or it is not surely better than the last
    one.

    Args:
        recipe, networks: the recipe and its trained networks.
        published, settings: their inputs, and whether networks may be pooled.
    """
    people = published.people
    if not may_pool(settings) or len(people.val) < FEWEST_JUDGES:
        return None
    encoder = trained_encoder(people, settings)
    opinions = _opinions(recipe, networks, people.features, published.parts, encoder)[:, people.val]
    labels = people.labels[people.val]
    log_likelihood = Channel(people.classes).logs.double()[:, labels].T
    equal = torch.full((len(opinions),), 1 / len(opinions), dtype=torch.float64)
    last = opinions[-1]
    better = better_pool(opinions, log_likelihood, equal, held_out(last[None], log_likelihood, equal.new_ones(1)))
    if better is None or _hits(better.scores, labels) < _hits(last, labels):
        return None
    return Pool(encoder, tuple(better.weights.tolist()))


def scores_of(
    recipe: Recipe,
    networks: Sequence[nn.Module],
    features: FeatureBlock,
    parts: Sequence[FeatureBlock],
    pool: Pool | None,
) -> Tensor:
    """Return logits [n, c] of the pool, or of the last network without one.

    Args:
        recipe, networks, pool: as in `pool_for`.
        features, parts: [n, d], and the input parts of the last network.
    """
    if pool is None:
        return logits_of(networks[-1], parts)
    opinions = _opinions(recipe, networks, features, parts, pool.encoder)
    logits: Tensor = torch.tensordot(opinions.new_tensor(pool.weights), opinions, dims=1).float()
    return logits


def _opinions(
    recipe: Recipe,
    networks: Sequence[nn.Module],
    features: FeatureBlock,
    parts: Sequence[FeatureBlock],
    encoder: nn.Module,
) -> Tensor:
    logits = [logits_of(encoder, [features]), *recipe.opinions(networks, features, parts)]
    # In double precision, so that the search for weights reaches the optimum.
    return torch.stack([torch.log_softmax(each.double(), dim=1).clamp_min(_LEAST) for each in logits])


def _hits(scores: Tensor, labels: Tensor) -> int:
    return int((scores.argmax(dim=1) == labels).sum())


def _wide_settings(settings: CuratorSettings) -> CuratorSettings:
    return replace(settings, hidden=max(WIDE, settings.hidden), dropout=None)
