"""The classes that public edges, features and labels predict: the baseline of a release of private edges.

    sums      a network and smaller experts on features and sums of neighbours' classes      `curator.class_sums`
    network   a graph network on the public edges
    features  the same experts on features alone

Nothing private is read.  Shapes: scores [n, c], in logarithms.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

from graphveil import models
from graphveil.graphs import Graph, Split
from graphveil.graphs.value.checks import require_one_label
from graphveil.mechanisms import PairDomain
from graphveil.methods.base.network.network import Labels, train_network
from graphveil.methods.base.people.released import Topology
from graphveil.methods.base.settings import NetworkSettings
from graphveil.methods.curator.class_sums import mask_of, train_experts
from graphveil.methods.curator.evidence import FeatureEvidence, corners, feature_evidence, messages
from graphveil.methods.curator.settings import SumsSettings
from graphveil.methods.curator.stages.training import NodeData, read_people
from graphveil.models.labels.label_prior import Channel
from graphveil.runtime.late import Tensor, torch


@dataclass(frozen=True)
class PublicPart:
    """Features, public labels and public edges.

    Attributes:
        people: features, the labels of training and validation nodes, and their numbers.
        pairs, seed: int64 [2, m], u < v, the public edges; fixes weights of networks.
    """

    people: NodeData
    pairs: Tensor
    seed: int = 0

    @cached_property
    def evidence(self) -> FeatureEvidence:
        return feature_evidence(self.people, corners(self.people.classes))

    @cached_property
    def sums(self) -> Tensor:
        """The sums of public neighbours' classes, as columns beside features [n, 2 c]."""
        return models.beside([neighbour_sums(self.pairs, messages(self.people, self.evidence))], 1.0)

    def experts(self, z: Tensor) -> Tensor:
        """Return the scores of experts on features and `z` [n, k]; k = 0: on features alone."""
        scores = train_experts(self.people, self.evidence, z, SumsSettings(seed=self.seed)).logits
        return torch.log_softmax(scores, dim=1)

    def made_sums(self, released: Tensor, domain: PairDomain) -> Tensor:
        """Return the sums of synthetic neighbours' classes minus the expectation of as many uniform pairs, plus those
        of public neighbours, as columns beside features [n, 2 c].

        Args:
            released: int64 [2, m], u < v, the pairs that were published as edges.
            domain: the protected pairs.
        """
        class_messages = messages(self.people, self.evidence)
        members = mask_of(torch.from_numpy(domain.ids), self.people.nodes)[:, None]
        inside, density = members * class_messages, released.shape[1] / max(1, domain.size)
        # From the number of published edges and not by mechanism: that also fits trees and largest pairs.
        expected = density * members * (inside.sum(dim=0) - inside - neighbour_sums(self.pairs, inside))
        deviation = math.sqrt(density * (1 - density) * len(domain.ids) / self.people.classes)
        sums = neighbour_sums(released, class_messages) - expected + neighbour_sums(self.pairs, class_messages)
        return models.beside([sums], deviation)

    def groups(self, *, of_judges: bool = True) -> Tensor:
        """Return the group of every node, int64 [n]: the public label, else the class that the public part predicts.
        Validation labels are left out if they judge what depends on the groups (`of_judges=False`).
        """
        labels = self.people.labels.clone()
        if not of_judges:
            labels[self.people.val] = -1
        if bool((labels >= 0).all()):
            return labels
        return torch.where(labels >= 0, labels, self.experts(self.sums).argmax(dim=1))

    @cached_property
    def opinions(self) -> list[Tensor]:
        return [self.experts(self.sums), self.network(), self.experts(self.sums[:, :0])]

    def network(self, extra_pairs: Tensor | None = None) -> Tensor:
        """Return the scores of a graph network on the public edges and `extra_pairs`, int64 [2, S], u < v."""
        pairs = self.pairs if extra_pairs is None else torch.cat([self.pairs, extra_pairs], dim=1)
        people = self.people
        train, val = (mask_of(nodes, people.nodes) for nodes in (people.train, people.val))
        labels = Labels(people.labels, train, val, Channel(people.classes))
        topology = Topology(torch.cat([pairs, pairs.flip(0)], dim=1), people.nodes)
        settings = NetworkSettings(model="gcn", steps_x=0, steps_y=0, seed=self.seed)
        return torch.log_softmax(train_network(people.features, 0.0, labels, topology, settings).logits, dim=1)


def neighbour_sums(pairs: Tensor, rows: Tensor) -> Tensor:
    """Return the sum of everybody's neighbours' rows [n, k].

    Args:
        pairs, rows: int64 [2, m], u < v, undirected edges; [n, k].
    """
    sums = torch.zeros_like(rows)
    for target, source in (pairs, pairs.flip(0)):
        sums.index_add_(0, target, rows[source])
    return sums


def public_part_of(graph: Graph, split: Split | None, domain: PairDomain, *, seed: int = 0) -> PublicPart:
    """Return the public part of a graph whose features and labels are public; of its edges, those of the domain. Raises
    InputError for several labels a node, no labels, or one that is not a declared class.

    Args:
        graph, domain, seed: features and labels; the protected pairs, and the public edges; fixes weights of networks.
        split: who trains and validates; if nobody validates, a quarter of the training nodes does. None: all nodes with
            a label.
    """
    require_one_label(graph)
    if split is None or not bool(split.val.any()):
        labels = graph.y
        # Validation labels are needed to judge counts, which could otherwise make the public part worse.
        split = split_of_labelled(labels if split is None else torch.where(split.train, labels, -1))
    people = read_people(graph, split)
    return PublicPart(people, torch.zeros(2, 0, dtype=torch.int64) if domain.public is None else domain.public, seed)


def split_of_labelled(labels: Tensor) -> Split:
    """Return the split in which all nodes with a label train, but for a quarter that validates; `labels` are public, -1
    where there is none.
    """
    labelled, nodes = (labels >= 0).nonzero()[:, 0], len(labels)
    # Seeded by the number of labels, which is public: every reading of a release must give the same groups.
    shuffled = labelled[torch.randperm(len(labelled), generator=torch.Generator().manual_seed(len(labelled)))]
    val, train = shuffled[: len(shuffled) // 4], shuffled[len(shuffled) // 4 :]
    return Split(mask_of(train, nodes), mask_of(val, nodes), torch.zeros(nodes, dtype=torch.bool))
