"""What is made of noisy neighbour lists: several readings, pooled by released validation labels.

    regression  features alone                                  logistic, strength by validation labels
    network     features alone                                  a perceptron, epoch by validation labels
    fields      every report weighed by its exact likelihood    `models.blocks.labelled_blocks`: with and without
                                                                degrees and the likeness of public features
    sums        unbiased counts of each class in each list      `methods.links.opinions`
    counts      such counts one and two steps away, alone       `methods.links.opinions`

    beliefs    regression | fields          sums    regression, network | sums          all    all of them

Left of the bar is what no list is needed for; its network joins the regression only where held-out validation labels
are likelier for it.  Both sides are pooled (`models.labels.pool`); where held-out validation labels are not likelier
under both than under the left one, by two standard errors or more, lists are left out.
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
    beside,
    inputs_of,
    regress,
    train_beside,
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
#: The weight that a part is thought to deserve before any label judges it.
FIRST = {"regression": 0.5, "network": 0.1, "fields": 0.1, "sums": 0.5, "counts": 0.1}


@dataclass(frozen=True)
class Opinion:
    """Log-scores [n, c] as validation labels may judge them, and in the end; `first`: the weight it is first given."""

    judged: Tensor
    final: Tensor
    first: float


@dataclass(frozen=True)
class Reading:
    """Log-scores [n, c] of everyone, which parts of the reports they rest on, and the opinions of each part."""

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
    """Return what a reading makes of the reports; without validation nodes a third of the training nodes judges.

    Args:
        seed: fixes weights of networks and what stands for features that are not collected.
        blocks: of the fields, see `models.blocks.labelled_blocks`.
        earlier: opinions of parts that another reading of the same reports and settings has made already.
        leave_lists: leave lists out whatever they say, for a control.
        alike: whether pairs may be told apart by how alike their features are.
    """
    labels = judged_labels(labels_of(released.people), device)
    require_taught(labels.train)
    heard = labels.channel.logs.to(device)
    without, lists = PARTS[reading][0], () if leave_lists else PARTS[reading][1]
    steps = _Steps(without, lists, rounds, progress)
    server = _Server(released, labels, heard, rounds, blocks, seed, device, steps, earlier, alike)
    parts = {part: earlier.get(part) or tuple(server.opinions(part)) for part in (*without, *lists)}
    free = [opinion for part in without for opinion in parts[part]]
    both = free + [opinion for part in lists for opinion in parts[part]]
    server.steps.finish()
    likelihood = heard[:, labels.values[labels.val]].T
    alone, without_lists = worth_pooling(free, labels, likelihood)
    judged, first = _stacked(both, labels)
    better = better_pool(judged, likelihood, first, without_lists) if lists else None
    if better is not None:
        pooled = _weighted(both, better.weights)
    elif len(alone) == 1:
        pooled = alone[0].final
    else:
        judged, first = _stacked(alone, labels)
        pooled = _weighted(alone, pool_weights(judged, likelihood, first))
    return Reading(with_labels(pooled, labels, heard), LINKS_UNUSED if better is None else LINKS_USED, parts)


def judged_labels(labels: Labels, device: str) -> Labels:
    """Return the labels on a device, with some of those that train set aside where nobody else judges."""
    values, train, val = (part.to(device) for part in (labels.values, labels.train, labels.val))
    if not bool(val.any()):
        nodes, val = train.nonzero().squeeze(1), torch.zeros_like(train)
        # By the number of nodes, which is public: the draw must be the same each time the same reports are read.
        drawn = torch.randperm(len(nodes), generator=torch.Generator().manual_seed(len(nodes)))
        val[nodes[drawn[: len(nodes) // 3].to(device)]] = True
        train = train & ~val
    return replace(labels, values=values, train=train, val=val)


def _stacked(opinions: list[Opinion], labels: Labels) -> tuple[Tensor, Tensor]:
    judged = torch.stack([opinion.judged[labels.val] for opinion in opinions])
    return judged, judged.new_tensor([opinion.first for opinion in opinions])


def _held_out(opinions: list[Opinion], labels: Labels, likelihood: Tensor) -> Tensor:
    judged, first = _stacked(opinions, labels)
    return held_out(judged, likelihood, first)


def worth_pooling(free: list[Opinion], labels: Labels, likelihood: Tensor) -> tuple[list[Opinion], Tensor]:
    """Return all of them, or the first one alone where the others do not make held-out labels likelier; and how likely.

    A network on a hundred noisy columns may fit the training labels by heart, and get some weight all the same.

    Args:
        free: opinions that need no list.
        labels: as released; those that validate judge.
        likelihood: [m, c] log-probability of each validation label given each class.
    """
    total = sum(opinion.first for opinion in free)
    shared = [replace(opinion, first=opinion.first / total) for opinion in free]
    first = [replace(free[0], first=1.0)]
    alone = _held_out(first, labels, likelihood)
    if len(free) == 1:
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
        """Tell that all is done, fields that were left out included."""
        if self.progress is not None:
            self.progress(Progress(self.total, self.total))


@dataclass(frozen=True)
class _Server:
    """What the server holds: the reports, the labels with those that judge, and log T [c, c]."""

    released: LinkReports
    labels: Labels
    heard: Tensor
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
            yield Opinion(*regress(z, self.labels, self.heard, COUNT_STRENGTHS), FIRST[part])
        else:
            z = beside(self._pairs, self._shares) if part == "sums" else self._shares[:, :0]
            trained = train_beside(self._inputs, z, self.labels, seed=self.seed)
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
        return regress(features, self.labels, self.heard)

    def _fields(self) -> Iterator[Opinion]:
        """Return the fields: they leave out what a node says of itself, so that one serves to judge and in the end."""
        labels, pairs, reports, alike = self.labels, self._pairs, self.released.people, None
        public = math.isinf(reports.privacy.epsilon_y)
        public_labels = torch.where(self._labelled & public, labels.values, -1)
        evidence = with_labels(self._regressions[1], labels, self.heard)
        people = LabelledPeople(self._shares, public_labels)
        # Where features are public: noisy ones are alike by chance.
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
