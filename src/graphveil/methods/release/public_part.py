"""What public edges, features and labels say of everybody's class: what a release of private edges is held against.

    sums      a network and smaller experts on features and sums of neighbours' classes      `curator.class_sums`
    network   a graph network on the public edges
    features  the same experts on features alone

Nothing private is read here.  Shapes: scores [n, c], in logarithms.
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
        people: features, the labels of those who train or validate, and who they are.
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
        """What sums of public neighbours' classes say, as columns beside features [n, 2 c]."""
        return models.beside([neighbour_sums(self.pairs, messages(self.people, self.evidence))], 1.0)

    def experts(self, z: Tensor) -> Tensor:
        """Return the scores of experts on features and `z` [n, k], beside them; no columns leave it out."""
        scores = train_experts(self.people, self.evidence, z, SumsSettings(seed=self.seed)).logits
        return torch.log_softmax(scores, dim=1)

    def made_sums(self, released: Tensor, domain: PairDomain) -> Tensor:
        """Return what made edges say, as columns beside features [n, 2 c]: sums of neighbours' classes, less what as
        many evenly drawn pairs would bring; public neighbours are counted as they are.

        Args:
            released: int64 [2, m], u < v, the pairs that were published as edges.
            domain: the protected pairs.
        """
        sent = messages(self.people, self.evidence)
        members = mask_of(torch.from_numpy(domain.ids), self.people.nodes)[:, None]
        inside, density = members * sent, released.shape[1] / max(1, domain.size)
        # By the number of published edges and not by the mechanism: of trees and largest pairs it is right as well.
        evenly = density * members * (inside.sum(dim=0) - inside - neighbour_sums(self.pairs, inside))
        deviation = math.sqrt(density * (1 - density) * len(domain.ids) / self.people.classes)
        sums = neighbour_sums(released, sent) - evenly + neighbour_sums(self.pairs, sent)
        return models.beside([sums], deviation)

    def groups(self, *, of_judges: bool = True) -> Tensor:
        """Return everybody's group, int64 [n]: the public label, else the class that the public part expects. Labels of
        those who validate are left out where they judge what is made of the groups.
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

    def network(self, further: Tensor | None = None) -> Tensor:
        """Return the scores of a graph network on the public edges and `further` edges beside them, int64 [2, S], u <
        v.
        """
        pairs = self.pairs if further is None else torch.cat([self.pairs, further], dim=1)
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
    for here, there in (pairs, pairs.flip(0)):
        sums.index_add_(0, here, rows[there])
    return sums


def public_part_of(graph: Graph, split: Split | None, domain: PairDomain, *, seed: int = 0) -> PublicPart:
    """Return the public part of a graph whose features and labels are public; of its edges, those of the domain. Raises
    InputError for several labels a node, no labels, or one that is not a declared class.

    Args:
        graph, domain, seed: features and labels; the protected pairs, and the public edges; fixes weights of networks.
        split: who trains and validates; a quarter of those who train validates where nobody does. None: everybody with
            a label.
    """
    require_one_label(graph)
    if split is None or not bool(split.val.any()):
        labels = graph.y
        # Somebody has to judge how much counts are worth; without it they could take away from the public part.
        split = everybody(labels if split is None else torch.where(split.train, labels, -1))
    people = read_people(graph, split)
    return PublicPart(people, torch.zeros(2, 0, dtype=torch.int64) if domain.public is None else domain.public, seed)


def everybody(labels: Tensor) -> Split:
    """Return the split in which all who have a label train, but for a quarter that validates; `labels` are public, -1
    where there is none.
    """
    labelled, nodes = (labels >= 0).nonzero()[:, 0], len(labels)
    # By the number of labels, which is public: the same release must come to the same groups each time it is read.
    drawn = labelled[torch.randperm(len(labelled), generator=torch.Generator().manual_seed(len(labelled)))]
    val, train = drawn[: len(drawn) // 4], drawn[len(drawn) // 4 :]
    return Split(mask_of(train, nodes), mask_of(val, nodes), torch.zeros(nodes, dtype=torch.bool))
