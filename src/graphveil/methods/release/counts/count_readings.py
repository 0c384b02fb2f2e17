"""Readings of a release: several opinions, pooled by validation labels.

of counts of neighbours
    sums      the experts of class sums on noisy and public counts together
    both      the same, and beside them sums over public edges alone
    field     the exact likelihood of every row                                     `models.labels.count_fields`
    public    the public part without any count                                     `methods.release.public_part`
of made edges and noisy features
    network   trained on the whole release; with noisy features also without hops, and on the public edges
    sums      with public features and labels, the experts of class sums, on sums over synthetic and public edges: a
              network takes the mean over all neighbours, of which most may be synthetic; from a sum the expectation
              of chance is subtracted
    public    as above; if features or labels are noisy: labels over public edges alone, by their pool
              (`methods.local.label_pool`), and a network on public features

All opinions are pooled (`models.labels.pool`), and so are those of the public part alone; unless held-out validation
labels are likelier under all opinions by two standard errors or more, the public part is used alone.  Post-processing
of a release.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from graphveil import models
from graphveil.graphs import Graph, Split
from graphveil.graphs.value.release import NeighbourCounts
from graphveil.mechanisms import PairDomain
from graphveil.methods.base.network.features import features_of, labels_of
from graphveil.methods.base.network.network import Labels, train_network
from graphveil.methods.base.people.released import LocalReports, Topology, topology_of
from graphveil.methods.base.settings import NetworkSettings
from graphveil.methods.curator.class_sums import LEAST
from graphveil.methods.local.label_pool import pooled_opinions, read_labels
from graphveil.methods.release.public_part import PublicPart, neighbour_sums, public_part_of
from graphveil.models.labels.count_fields import CountedNeighbours, count_fields
from graphveil.models.labels.label_prior import Channel
from graphveil.models.labels.pool import better_pool, held_out, pool_weights
from graphveil.runtime.late import Tensor, torch

COUNTS_USED, COUNTS_UNUSED = "public part and counts", "public part alone: the counts say too little"
#: Prior weights of the opinions, before any label judges them: of counts, of the public part.
FIRST_COUNTS, FIRST_PUBLIC = (0.4, 0.4, 0.1), (0.1, 0.1, 0.1)


@dataclass(frozen=True)
class CountReading:
    """Log-scores [n, c] of all nodes, and whether the counts are in them."""

    scores: Tensor
    variant: str


def read_counts(public: PublicPart, counts: NeighbourCounts, rate: float) -> CountReading:
    """Return the reading of the public part and the counts.

    Args:
        public, counts, rate: of the release, as published, and of their noise, Pr[z] ~ e^(-rate |z|).
    """
    people, public_opinions = public.people, public.opinions
    member = torch.nn.functional.one_hot(counts.groups, people.classes).float()
    table = CountedNeighbours(counts.counts.float(), neighbour_sums(public.pairs, member), rate)
    z = models.beside([table.private + table.public], table.variance**0.5)
    field = torch.log_softmax(count_fields(table, people.labels, people.train), dim=1)
    opinions = [public.experts(z), public.experts(torch.cat([z, public.sums], dim=1)), field, *public_opinions]
    judge = _judge_of(public)
    better = judge.better(opinions, public_opinions, (*FIRST_COUNTS, *FIRST_PUBLIC))
    return (
        CountReading(judge.pooled(public_opinions), COUNTS_UNUSED)
        if better is None
        else CountReading(better, COUNTS_USED)
    )


def read_public(public: PublicPart) -> Tensor:
    """Return the log-scores [n, c] of the public part alone."""
    return _judge_of(public).pooled(public.opinions)


@dataclass(frozen=True)
class NetworkReading:
    """The reading of a release on which a network was trained.

    Attributes:
        scores, public: [n, c] of all nodes, and of the public part alone. used: whether private data, behind noise, is
            in the scores.
    """

    scores: Tensor
    public: Tensor
    used: bool

    @property
    def sentence(self) -> str:
        """The parts that were used, for people."""
        if self.used:
            return "used: public part and what was made of private data, weighed by held-out validation labels"
        return (
            "used: public part alone: held-out validation labels do not find it better with made edges or noisy "
            "features; pooling=none takes those all the same"
        )


def read_network(
    released: Graph, domain: PairDomain | None, reports: LocalReports, logits: Tensor, settings: NetworkSettings
) -> NetworkReading | None:
    """Return the reading of a network and the public part; None where no label can judge, or nothing was private.

    Args:
        released: public edges, synthetic edges, features and labels as they were published.
        domain: the protected pairs and public edges; None: edges are public.
        reports, logits, settings: the data of the network, its output [n, c], and its settings.
    """
    labels, noisy = labels_of(reports), "features" in released.release.settings
    if labels.values.dim() == 2 or not (noisy or domain is not None):
        return None
    judges = (labels.val & (labels.values >= 0)).nonzero()[:, 0]
    if not len(judges):
        return None
    release = _Release(released, domain, reports, labels, noisy, settings)
    public_opinions = release.public()
    opinions = [torch.log_softmax(logits, dim=1), *release.networks(), *release.sums(), *public_opinions]
    judge = _Judge(judges, labels.channel.logs[:, labels.values[judges]].T)
    better, public = judge.better(opinions, public_opinions), judge.pooled(public_opinions)
    return NetworkReading(public if better is None else better, public, better is not None)


@dataclass(frozen=True)
class _Release:
    """A release and the data of networks on it; see `read_network`."""

    graph: Graph
    domain: PairDomain | None
    reports: LocalReports
    labels: Labels
    noisy: bool
    settings: NetworkSettings

    @property
    def public_edges(self) -> Topology:
        if self.domain is None:
            return topology_of(self.graph)
        return Topology(self.graph.edge_index[:, self.graph.public_edges], int(self.graph.num_nodes))

    def networks(self) -> list[Tensor]:
        """Return the scores of further networks on noisy features: without hops, and on the public edges alone."""
        if not self.noisy:
            return []
        hops = sorted({0, self.settings.steps_x})
        scores = [self._network(topology_of(self.graph), steps) for steps in hops if steps != self.settings.steps_x]
        return scores + [self._network(self.public_edges, steps) for steps in hops if self.domain is not None]

    @cached_property
    def part(self) -> PublicPart | None:
        """Public edges, features and labels; None where features or labels went through noise."""
        labels = self.labels
        if self.domain is None or self.noisy or labels.channel.keep < 1:
            return None
        labelled = labels.values >= 0
        split = Split(labels.train & labelled, labels.val & labelled, ~labels.train & ~labels.val)
        return public_part_of(self.graph, split, self.domain, seed=self.settings.seed)

    def sums(self) -> list[Tensor]:
        """Return the scores of experts on sums over synthetic and public edges."""
        if self.part is None or self.domain is None:
            return []
        edges = self.graph.edge_index[:, ~self.graph.public_edges]
        return [self.part.experts(self.part.made_sums(edges[:, edges[0] < edges[1]], self.domain))]

    def public(self) -> list[Tensor]:
        """Return the scores that need no private edge and no private feature."""
        if self.part is not None:
            return self.part.opinions
        labels = self.labels
        values, settings = torch.where(labels.train | labels.val, labels.values, -1), self.settings
        read = read_labels(self.public_edges, values, labels.channel, seed=settings.seed, device=settings.device)
        out_of_fold, whole = (opinion.cpu() for opinion in pooled_opinions(read, labels.val))
        # A validation label judges no opinion that has seen it.
        opinions = [torch.where(labels.val[:, None], out_of_fold, whole)]
        return opinions if self.noisy else [*opinions, self._network(self.public_edges, settings.steps_x)]

    def _network(self, topology: Topology, hops: int) -> Tensor:
        features, offset = features_of(self.reports, self.settings.seed)
        settings = replace(self.settings, steps_x=hops)
        return torch.log_softmax(train_network(features, offset, self.labels, topology, settings).logits, dim=1)


class _Judge:
    """Pools opinions, log-probabilities [n, c] each, by validation labels: nodes `val`, int64 [m], and `log_likelihood`
    [m, c], log Pr[label | class].
    """

    def __init__(self, val: Tensor, log_likelihood: Tensor) -> None:
        self.val, self.log_likelihood = val, log_likelihood

    def better(
        self, opinions: list[Tensor], rivals: list[Tensor], prior_weights: Sequence[float] | None = None
    ) -> Tensor | None:
        """Return the pool [n, c] of opinions if it is surely better than that of the rivals, else None.

        Args:
            prior_weights: of the opinions, before any label judges; None: equal weights.
        """
        stacked, weights = _stacked(opinions, prior_weights)
        stacked_rivals, equal = _stacked(rivals)
        rival = held_out(stacked_rivals[:, self.val], self.log_likelihood, equal)
        pool = better_pool(stacked[:, self.val], self.log_likelihood, weights, rival)
        return None if pool is None else torch.tensordot(pool.weights, stacked, dims=1)

    def pooled(self, opinions: list[Tensor]) -> Tensor:
        """Return the pool [n, c], from equal weights."""
        stacked, equal = _stacked(opinions)
        weights = pool_weights(stacked[:, self.val], self.log_likelihood, equal)
        pooled: Tensor = torch.tensordot(weights, stacked, dims=1)
        return pooled


def _stacked(opinions: list[Tensor], prior_weights: Sequence[float] | None = None) -> tuple[Tensor, Tensor]:
    # Clamped: one opinion alone never rules a class out.
    stacked = torch.stack([scores.clamp_min(LEAST) for scores in opinions])
    return stacked, torch.tensor(prior_weights or (1 / len(opinions),) * len(opinions))


def _judge_of(public: PublicPart) -> _Judge:
    people = public.people
    return _Judge(people.val, Channel(people.classes).logs[:, people.labels[people.val]].T)
