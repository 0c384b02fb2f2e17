"""Readings of noisy neighbour lists: several opinions, pooled by released validation labels.

    regression  features alone                                  logistic, strength by validation labels
    network     features alone                                  a perceptron, epoch by validation labels
    fields      every report weighed by its exact likelihood    `models.blocks.labelled_blocks`: with and without
                                                                degrees and the likeness of public features
    sums        unbiased counts of each class in each list      `methods.links.opinions`
    counts      such counts one and two steps away, alone       `methods.links.opinions`

    beliefs    regression | fields          sums    regression, network | sums          all    all of them

Opinions left of the bar need no list; their network joins the regression only if held-out validation labels become
likelier.  Both sides are pooled (`models.labels.pool`); unless held-out validation labels are likelier under both than
under the left one, by two standard errors or more, lists are left out.
Shapes: scores [n, c], in logarithms.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from types import MappingProxyType
from typing import Any

from graphveil.aggregation import Inputs
from graphveil.graphs import require_taught
from graphveil.methods.base.network.features import features_of, labels_of, unit_rows
from graphveil.methods.base.network.network import Labels, as_matrix
from graphveil.methods.links.collection import LinkReports, named_pairs
from graphveil.methods.links.opinions import (
    COUNT_STRENGTHS,
    inputs_of,
    list_columns,
    regress,
    train_with_columns,
    two_steps,
    with_labels,
)
from graphveil.models.blocks.block_model import NamedPairs
from graphveil.models.blocks.labelled_blocks import LabelledPeople, block_fields, likeness
from graphveil.models.blocks.list_sums import unbiased_labels
from graphveil.models.labels.pool import better_pool, held_out, pool_weights
from graphveil.runtime.late import Tensor, torch
from graphveil.runtime.late import sparse as sp
from graphveil.runtime.progress import Progress, ProgressCallback

LINKS_USED, LINKS_UNUSED = "all reports", "all reports but the lists, which say too little"
#: Reading -> the parts that need no list, and those that do.
PARTS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "beliefs": (("regression",), ("fields",)),
    "sums": (("regression", "network"), ("sums",)),
    "all": (("regression", "network"), ("fields", "sums", "counts")),
}
#: Of each field: whether people differ in degree, and whether likeness matters.
FIELDS = ((False, False), (True, False), (False, True), (True, True))
#: The prior weight of a part, before any label judges it.
FIRST = {"regression": 0.5, "network": 0.1, "fields": 0.1, "sums": 0.5, "counts": 0.1}


@dataclass(frozen=True)
class Opinion:
    """Log-scores [n, c]: `judged` without validation labels, `final` with them; `first`: its prior weight."""

    judged: Tensor
    final: Tensor
    first: float


@dataclass(frozen=True)
class Reading:
    """Log-scores [n, c] of all people, which reports are in them, and the opinions of each part."""

    scores: Tensor
    variant: str
    parts: Mapping[str, tuple[Opinion, ...]]


def read_lists(
    released: LinkReports,
    reading: str,
    *,
    rounds: int,
    seed: int,
    blocks: str = "full",
    device: str = "cpu",
    progress: ProgressCallback | None = None,
    earlier: Mapping[str, tuple[Opinion, ...]] = MappingProxyType({}),
    leave_lists: bool = False,
    alike: bool = True,
) -> Reading:
    """Return a reading of the reports; without validation nodes a third of the training nodes judges.

    Args:
        seed: fixes weights of networks, and random numbers in place of features that are not collected.
        blocks: of the fields, see `models.blocks.labelled_blocks`.
        earlier: opinions of parts from another reading of the same reports and settings.
        leave_lists: leave lists out in any case, for a control.
        alike: whether likeness of features may be used.
    """
    labels = judged_labels(labels_of(released.people), device)
    require_taught(labels.train)
    log_channel = labels.channel.logs.to(device)
    without, lists = PARTS[reading][0], () if leave_lists else PARTS[reading][1]
    steps = _Steps(without, lists, rounds, progress)
    server = _Server(released, labels, log_channel, rounds, blocks, seed, device, steps, earlier, alike)
    parts = {part: earlier.get(part) or tuple(server.opinions(part)) for part in (*without, *lists)}
    without_lists = [opinion for part in without for opinion in parts[part]]
    opinions = without_lists + [opinion for part in lists for opinion in parts[part]]
    server.steps.finish()
    likelihood = log_channel[:, labels.values[labels.val]].T
    pooled_without, held_out_without = worth_pooling(without_lists, labels, likelihood)
    judged, first = _stacked(opinions, labels)
    better = better_pool(judged, likelihood, first, held_out_without) if lists else None
    if better is not None:
        pooled = _weighted(opinions, better.weights)
    elif len(pooled_without) == 1:
        pooled = pooled_without[0].final
    else:
        judged, first = _stacked(pooled_without, labels)
        pooled = _weighted(pooled_without, pool_weights(judged, likelihood, first))
    return Reading(with_labels(pooled, labels, log_channel), LINKS_UNUSED if better is None else LINKS_USED, parts)


def judged_labels(labels: Labels, device: str) -> Labels:
    """Return the labels on a device; without validation labels a third of the training labels judges."""
    values, train, val = (part.to(device) for part in (labels.values, labels.train, labels.val))
    if not bool(val.any()):
        nodes, val = train.nonzero().squeeze(1), torch.zeros_like(train)
        # Seeded by the number of nodes, which is public: the same reports must give the same draw.
        order = torch.randperm(len(nodes), generator=torch.Generator().manual_seed(len(nodes)))
        val[nodes[order[: len(nodes) // 3].to(device)]] = True
        train = train & ~val
    return replace(labels, values=values, train=train, val=val)


def _stacked(opinions: list[Opinion], labels: Labels) -> tuple[Tensor, Tensor]:
    judged = torch.stack([opinion.judged[labels.val] for opinion in opinions])
    return judged, judged.new_tensor([opinion.first for opinion in opinions])


def _held_out(opinions: list[Opinion], labels: Labels, likelihood: Tensor) -> Tensor:
    judged, first = _stacked(opinions, labels)
    return held_out(judged, likelihood, first)


def worth_pooling(opinions: list[Opinion], labels: Labels, likelihood: Tensor) -> tuple[list[Opinion], Tensor]:
    """Return all opinions, or the first one alone unless the others make held-out labels likelier; and the held-out
    log-likelihood.

    A network on a hundred noisy columns may overfit the training labels, and get some weight all the same.

    Args:
        opinions: opinions that need no list.
        labels: as released; those that validate judge.
        likelihood: [m, c] log-probability of each validation label given each class.
    """
    total = sum(opinion.first for opinion in opinions)
    shared = [replace(opinion, first=opinion.first / total) for opinion in opinions]
    first = [replace(opinions[0], first=1.0)]
    alone = _held_out(first, labels, likelihood)
    if len(opinions) == 1:
        return first, alone
    pooled = _held_out(shared, labels, likelihood)
    return (shared, pooled) if pooled.sum() > alone.sum() else (first, alone)


def _weighted(opinions: list[Opinion], weights: Tensor) -> Tensor:
    weighted: Tensor = torch.tensordot(weights, torch.stack([opinion.final for opinion in opinions]), dims=1)
    return weighted


class _Steps:
    def __init__(
        self, alone: tuple[str, ...], lists: tuple[str, ...], rounds: int, progress: ProgressCallback | None
    ) -> None:
        networks = sum(part in ("network", "sums") for part in (*alone, *lists))
        self.total = networks + (len(FIELDS) * rounds if "fields" in lists else 0)
        self.done, self.progress = 0, progress

    def count(self) -> None:
        self.done += 1
        if self.progress is not None and self.done < self.total:
            self.progress(Progress(self.done, self.total))

    def finish(self) -> None:
        """Report that all is done, fields that were left out included."""
        if self.progress is not None:
            self.progress(Progress(self.total, self.total))


@dataclass(frozen=True)
class _Server:
    """The data of the server: the reports, the labels with those that judge, and log T [c, c]."""

    released: LinkReports
    labels: Labels
    log_channel: Tensor
    rounds: int
    blocks: str
    seed: int
    device: str
    steps: _Steps
    earlier: Mapping[str, tuple[Opinion, ...]]
    alike: bool

    def opinions(self, part: str) -> Iterator[Opinion]:
        if part == "regression":
            yield Opinion(*self._regressions, FIRST[part])
        elif part == "fields":
            yield from self._fields()
        elif part == "counts":
            z = two_steps(self._pairs, self._shares)
            yield Opinion(*regress(z, self.labels, self.log_channel, COUNT_STRENGTHS), FIRST[part])
        else:
            z = list_columns(self._pairs, self._shares) if part == "sums" else self._shares[:, :0]
            trained = train_with_columns(self._inputs, z, self.labels, seed=self.seed)
            self.steps.count()
            yield Opinion(trained.judged, trained.final, FIRST[part])

    @property
    def _labelled(self) -> Tensor:
        return self.labels.train | self.labels.val

    @property
    def _shares(self) -> Tensor:
        labels = self.labels
        return unbiased_labels(labels.values, self._labelled, labels.channel)

    @cached_property
    def _inputs(self) -> Inputs:
        return inputs_of(self.released.people, self.device)

    @cached_property
    def _pairs(self) -> NamedPairs:
        return named_pairs(self.released).to(self.device)

    @cached_property
    def _regressions(self) -> tuple[Tensor, Tensor]:
        if earlier := self.earlier.get("regression"):
            return earlier[0].judged, earlier[0].final
        features = unit_rows(features_of(self.released.people, self.seed)[0], self.device)
        return regress(features, self.labels, self.log_channel)

    def _fields(self) -> Iterator[Opinion]:
        """Yield the fields: they leave out a node's own label, so that `judged` and `final` are the same."""
        labels, pairs, reports, alike = self.labels, self._pairs, self.released.people, None
        public = math.isinf(reports.privacy.epsilon_y)
        public_labels = torch.where(self._labelled & public, labels.values, -1)
        evidence = with_labels(self._regressions[1], labels, self.log_channel)
        people = LabelledPeople(self._shares, public_labels)
        # Only of public features: noisy ones are alike by chance.
        if self.alike and reports.privacy.epsilon_x == math.inf:
            features: Any = as_matrix(features_of(reports, self.seed)[0])
            rows = features.tocsr() if sp.issparse(features) else sp.csr_matrix(features.numpy())
            alike = likeness(rows, pairs, seed=self.seed)
        for degrees, matters in FIELDS:
            if matters and alike is None:
                continue
            field = block_fields(
                pairs,
                evidence,
                people,
                degrees=degrees,
                alike=alike if matters else None,
                rounds=self.rounds,
                blocks=self.blocks,
                after_round=self.steps.count,
            )
            yield Opinion(field, field, FIRST["fields"])
