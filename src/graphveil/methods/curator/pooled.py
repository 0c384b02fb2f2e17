"""GAP and ProGAP pooled with what features alone say, by validation labels.

    opinions    z_0  a wider encoder of features alone;  z_1..z_k  the classifiers that the recipe trains, its last last
    pool        z = sum_i w_i log softmax(z_i),  w by validation labels, from equal weights, see `models.labels.pool`
    prediction  z where held-out validation labels are surely likelier under it, and no fewer of them right, else z_k

Where noise is large the last network is misled by sums that say little, and features say more than fits in the few
columns that are summed: ProGAP at epsilon 1 was 6 points below features alone on Cora.
Nothing private is read: units of edges protect relationships, so that features and labels, those of validation nodes
too, are open to the curator, and opinions are post-processing of noisy sums that were paid for.  Where nodes are
protected a label would be read unpaid, and there is no pool.  Validation labels train no opinion: they stop trainings,
and here choose at most hops + 2 weights, which are judged on labels that did not choose them.
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
    Published,
    build_seeded,
    logits_of,
    rows_for,
    train_openly,
)
from graphveil.models.labels.label_prior import Channel
from graphveil.models.labels.pool import FEWEST_JUDGES, better_pool, held_out
from graphveil.runtime.late import Tensor, nn, torch

#: Columns of the encoder that nothing is summed of: width costs noise in a sum, and none here.
WIDE = 64
#: Of a file that was written before these settings existed.
UNPOOLED: Mapping[str, Any] = {"dropout": 0.0, "pooling": "none", "rows": "published"}
#: A log-probability below this says no more: one opinion alone never rules a class out.
_LEAST = -15.0


@dataclass(frozen=True)
class Pool:
    """The pool of a method's networks: the encoder of features alone, trained, and the weights of it and of each
    opinion.
    """

    encoder: nn.Module
    weights: tuple[float, ...]


def settled(options: Mapping[str, Any], unit: str | None) -> dict[str, Any]:
    """Return settings with `pooling` and `rows`, by default "stages" and "labelled", where nodes are protected "none"
    and "published", beside which the former are refused. Rows are as published too where weights compare them, and
    where people of another graph are to be predicted, of whom no label is known.
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


def pools(settings: CuratorSettings) -> bool:
    """Return whether the networks of a method may be pooled."""
    return isinstance(settings, PooledSettings) and settings.pooling == "stages"


def layers_beside(settings: CuratorSettings, first: int) -> list[int]:
    """Return the layers of what is trained beside a recipe's networks, counted in their hidden width: its first one, of
    so many layers, again without each of three parts of the people, and the encoder in the pool.
    """
    says = isinstance(settings, PooledSettings) and settings.rows == "labelled"
    return [*([2 * first] if says else []), *([max(1, 2 * WIDE // settings.hidden)] if pools(settings) else [])]


def wide_encoder(settings: CuratorSettings, schema: GraphSchema) -> models.Encoder:
    """Return the encoder in the pool, untrained, with the dropout that its features call for."""
    return encoder_for(_wide(settings), schema, batch_norm=True)


def trained_encoder(people: NodeData, settings: CuratorSettings) -> models.Encoder:
    """Return the encoder in the pool, trained on features and labels alone."""
    encoder = build_seeded(lambda: wide_encoder(settings, people.schema), settings.seed).to(settings.device)
    rows, judges = (rows_for(encoder, [people.features], people, nodes) for nodes in (people.train, people.val))
    train_openly(encoder, rows, judges, _wide(settings))
    return encoder


def pool_for(
    recipe: Recipe, networks: Sequence[nn.Module], published: Published, settings: CuratorSettings
) -> Pool | None:
    """Return the pool of trained networks; None where there is none, or it is not surely better than the last network.

    Args:
        recipe, networks: which has opinions, and its own, trained.
        published, settings: what they read, and whether networks are pooled at all.
    """
    people = published.people
    if not pools(settings) or len(people.val) < FEWEST_JUDGES:
        return None
    encoder = trained_encoder(people, settings)
    opinions = _opinions(recipe, networks, people.features, published.parts, encoder)[:, people.val]
    labels = people.labels[people.val]
    heard = Channel(people.classes).logs.double()[:, labels].T
    first = torch.full((len(opinions),), 1 / len(opinions), dtype=torch.float64)
    last = opinions[-1]
    better = better_pool(opinions, heard, first, held_out(last[None], heard, first.new_ones(1)))
    if better is None or _right(better.scores, labels) < _right(last, labels):
        return None
    return Pool(encoder, tuple(better.weights.tolist()))


def scores_of(
    recipe: Recipe,
    networks: Sequence[nn.Module],
    features: FeatureBlock,
    parts: Sequence[FeatureBlock],
    pool: Pool | None,
) -> Tensor:
    """Return logits [n, c]: the pool's, or the last network's where there is none.

    Args:
        recipe, networks, pool: as of `pool_for`.
        features, parts: [n, d], and what the last network reads of every node.
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
    every = [logits_of(encoder, [features]), *recipe.opinions(networks, features, parts)]
    # In double precision: the search for weights ends at the optimum, and not where rounding stops it.
    return torch.stack([torch.log_softmax(logits.double(), dim=1).clamp_min(_LEAST) for logits in every])


def _right(scores: Tensor, labels: Tensor) -> int:
    return int((scores.argmax(dim=1) == labels).sum())


def _wide(settings: CuratorSettings) -> CuratorSettings:
    return replace(settings, hidden=max(WIDE, settings.hidden), dropout=None)
