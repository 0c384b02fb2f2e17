"""What a server holds in the local model: a public topology and one randomized report per person.

Raw features and labels are read in one place, :func:`randomize_people`; everything after it is post-processing of its
result and may be rerun, tuned and inspected freely.
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final

from graphveil.aggregation.propagation import Adjacency
from graphveil.engine import LOCAL, Engine
from graphveil.errors import InputError
from graphveil.graphs import Graph, GraphSchema, Release, Split, node_names
from graphveil.graphs.value.checks import require_one_label
from graphveil.mechanisms import NotCollected
from graphveil.mechanisms.by_blocks import randomize_by_blocks
from graphveil.mechanisms.question import Question
from graphveil.methods.base.people.account import TaskPayment, tensors_digest
from graphveil.methods.base.people.local_privacy import LocalPrivacy
from graphveil.models import structure_for
from graphveil.models.labels.label_prior import Channel
from graphveil.privacy import Randomness
from graphveil.runtime.late import Tensor, torch

#: The methods for a graph with private edges, by who may see these.
PRIVATE_EDGES_REMEDY: Final = (
    "train class-sums, or node-sums for whole people, where a curator may see the links; links where nobody may; "
    "graphveil release heterorr, then train on the release, to publish the graph; gcn as it is, NOT PROTECTED, for "
    "those alone who may see it; declare edges public only if they are: every link would be shown as it is"
)


@dataclass(frozen=True)
class Topology:
    """The public edges [2, E] of n nodes, with weights [E] where edges differ.

    Its matrices come from one sorted adjacency and stay in memory with it; a fit works on :meth:`uncached`.
    """

    edge_index: Tensor
    num_nodes: int
    weights: Tensor | None = None

    @property
    def fingerprint(self) -> str:
        """A hash of nodes, edges and weights."""
        # With the number of nodes: isolated ones leave no trace in the edges.
        digest = hashlib.sha256(str(self.num_nodes).encode())
        digest.update(self.edge_index.cpu().contiguous().numpy().data)
        if self.weights is not None:
            digest.update(self.weights.cpu().contiguous().numpy().data)
        return digest.hexdigest()

    def uncached(self) -> Topology:
        """Return an equal topology with matrices of its own, which are freed with it."""
        return replace(self)

    @cached_property
    def adjacency(self) -> Adjacency:
        """A [n, n], with the weights of the edges if they have any."""
        return Adjacency.of(self.edge_index, self.num_nodes, weights=self.weights)

    @cached_property
    def both_ways(self) -> Adjacency:
        """A [n, n] with each edge in both directions, with weight 1."""
        if self.weights is None and self.adjacency.symmetric:
            return self.adjacency
        return Adjacency.of(torch.cat([self.edge_index, self.edge_index.flip(0)], dim=1), self.num_nodes)

    def propagation(self) -> Any:
        """Return P = D^{-1/2} A D^{-1/2} [n, n]."""
        return self.adjacency.normalised()

    def structure(self, model: str, device: str = "cpu") -> Any:
        """Return the edges in the form that a backbone takes, see `models.structure_for`."""
        if model == "sage":
            return self.adjacency.normalised("mean").to(device)
        return structure_for(model, self.edge_index, self.num_nodes, device, weights=self.weights)


@dataclass(frozen=True)
class LocalReports:
    """The reports of one collection.

    Attributes:
        features: a feature mechanism's reports; the features themselves where they are public; `Answers` where a
            question was asked, or where not everybody sent a report; None where none are collected.
        labels: [n] int64, randomized (or public) labels of the train and validation nodes, -1 for all others; or public
            ones [n, c] float, 0 for all others.
        train, val: masks [n]: whose label trains and whose label selects.
        schema, privacy: the public facts, budgets and mechanisms of the collection.
        void: why the guarantee does not hold, or None.
        origin: what the publisher of a released graph states about it; everything here is then post-processing of what
            anybody may know.
        ids: [n], by which people are recognised later; None: only position identifies them.
        paid: what devices have paid for these reports; None: each was asked once, by whoever trains on them.
    """

    features: Any
    labels: Tensor
    train: Tensor
    val: Tensor
    schema: GraphSchema
    privacy: LocalPrivacy
    void: str | None = None
    origin: Release | None = None
    ids: Any = None
    paid: TaskPayment | None = None

    @property
    def digest(self) -> str:
        """A hash of the reports, without what is public, that identifies the collection."""
        sent = {"labels": self.labels, "train": self.train, "val": self.val}
        return tensors_digest(sent | (self.features.to_tensors() if hasattr(self.features, "to_tensors") else {}))

    def release_key(self, topology: Topology) -> str:
        """Return what identifies the release behind these reports, whatever noise was added to it since."""
        created = "" if self.origin is None else self.origin.created
        features = {"features": self.features} if isinstance(self.features, torch.Tensor) else {}
        return f"{created} {topology.fingerprint} {tensors_digest(features)}"

    @property
    def labelled(self) -> Tensor:
        """Mask [n] of the nodes that sent a label."""
        return self.train | self.val

    @property
    def channel(self) -> Channel:
        """The noise between true labels and these."""
        classes = len(self.schema.classes)
        own = self.privacy.channel(classes)
        if self.origin is None:
            return own
        # Two channels one after the other: the labels were already randomized when they were published.
        true = own.keep * self.origin.keep + (classes - 1) * own.flip * self.origin.flip
        return Channel(classes, true, (1 - true) / (classes - 1))


@dataclass(frozen=True)
class Answers:
    """Reports of some people: who sent one (mask [n]), and their reports in the order of the rows.

    Rows without a report are left out: a row of zeros could be taken for a report.
    """

    who: Tensor
    reports: Any

    def to_tensors(self) -> dict[str, Tensor]:
        return {"who": self.who, **self.reports.to_tensors()}


@dataclass(frozen=True)
class LocalCollection:
    """What a server trains on: the reports of one collection, and the public topology."""

    reports: LocalReports
    topology: Topology


def topology_of(graph: Graph) -> Topology:
    return Topology(graph.edge_index, int(graph.num_nodes))


def require_servable(graph: Graph, *, several: bool = False) -> GraphSchema:
    """Return the schema of a graph that a local collection can serve.

    Args:
        several: whether several labels a node are allowed.
    """
    require_public_edges(graph.schema)
    return require_labels(graph, public=several)


def require_public_edges(schema: GraphSchema) -> None:
    """Refuse a graph that declares its edges private, naming the methods that serve it."""
    # The owner's declaration decides: here the server gets every edge as it is.
    if "edges" in schema.private:
        raise InputError(
            f"{schema.name} declares its edges private, but this method gives the server the whole graph",
            where="local features and labels",
            allowed="graphs whose edges are public",
            remedy=PRIVATE_EDGES_REMEDY,
        )


def require_same_features(other: GraphSchema, trained: GraphSchema) -> None:
    """Refuse a new graph whose declared features are not those of training, before any are read."""
    if (other.dimension, other.low, other.high) != (trained.dimension, trained.low, trained.high):
        raise InputError(
            f"features are {other.dimension} numbers in [{other.low:g}, {other.high:g}]",
            where=other.name,
            allowed=f"{trained.dimension} numbers in [{trained.low:g}, {trained.high:g}], as in training",
        )


def require_same_direction(other: GraphSchema, trained: GraphSchema) -> None:
    """Refuse a new graph whose edges have a direction where those of training had none, or the other way round."""
    # An undirected relationship costs two entries, a directed edge one.
    if other.directed != trained.directed:
        kinds = {True: "directed", False: "undirected"}
        raise InputError(
            f"edges are {kinds[other.directed]}",
            where=other.name,
            allowed=f"{kinds[trained.directed]}, as in training: what an edge costs depends on it",
        )


def require_labels(graph: Graph, *, public: bool) -> GraphSchema:
    """Return the schema of a graph whose labels can be used: several a node only where they are public."""
    schema: GraphSchema = graph.schema
    return schema if public and graph.y is not None and graph.y.dim() == 2 else require_one_label(graph)


def randomize_people(
    graph: Graph, split: Split, privacy: LocalPrivacy, *, randomness: Randomness, engine: Engine = LOCAL
) -> LocalReports:
    """Return every person's features and label report: the one place where raw features and labels are read.

    Args:
        split: train and validation nodes send a label, test nodes none.
        privacy: budgets and mechanisms; public parts are sent as they are.
    """
    schema = require_labels(graph, public=math.isinf(privacy.epsilon_y))
    features, labels = privacy.features(schema), privacy.labels(len(schema.classes))
    feature_reports: Any = None
    if not isinstance(features, NotCollected):
        feature_reports = randomize_by_blocks(features, graph.x, randomness=randomness, engine=engine)
    senders = split.train | split.val
    sent = randomize_by_blocks(labels, graph.y[senders], randomness=randomness, engine=engine).labels
    # -1 for people who are not asked: a label that was never sent cannot be read by accident.
    label_reports = torch.full_like(graph.y, -1 if graph.y.dim() == 1 else 0)
    label_reports[senders] = sent
    return LocalReports(
        features=feature_reports,
        labels=label_reports,
        train=split.train.clone(),
        val=split.val.clone(),
        schema=schema,
        privacy=privacy,
        # Where nothing is randomized there is nothing that known noise could undo.
        void=randomness.void if privacy.spends(schema) else None,
        origin=getattr(graph, "release", None),
        ids=node_names(graph),
    )


def ask_question(
    graph: Graph, who: Tensor, question: Question, *, randomness: Randomness, engine: Engine = LOCAL
) -> Answers:
    """Return the answers of some people's devices to a question about their features.

    Args:
        who: mask [n] of the people who are asked; no other device answers.
        question: what is asked, at what epsilon.
    """
    # On everybody's features, which checks them all before the first draw.
    truth = torch.from_numpy(question.truth(graph.x))
    sent = randomize_by_blocks(question.mechanism, truth[who], randomness=randomness, engine=engine)
    return Answers(who.clone(), sent)


def require_matching(released: LocalReports, topology: Topology, privacy: LocalPrivacy) -> None:
    """Refuse reports of another number of nodes or under other budgets, and arguments of another type."""
    require_reports(released, LocalReports)
    if not isinstance(topology, Topology):
        remedy = "make one: Topology(graph.edge_index, graph.num_nodes)"
        raise InputError(f"topology is a {type(topology).__name__}", where="fit_reports", remedy=remedy)
    edges = topology.edge_index
    if not isinstance(edges, torch.Tensor) or edges.dtype != torch.int64 or edges.ndim != 2 or len(edges) != 2:
        form = f"{edges.dtype} {list(edges.shape)}" if isinstance(edges, torch.Tensor) else type(edges).__name__
        allowed = "a torch tensor of int64 [2, E]"
        raise InputError(f"edge_index of the topology is {form}", where="fit_reports", allowed=allowed)
    if len(released.labels) != topology.num_nodes:
        raise InputError(f"{len(released.labels)} reports for {topology.num_nodes} nodes", where="fit_reports")
    require_budgets(released.privacy, privacy)


def require_reports(released: object, kind: type) -> None:
    """Refuse anything but what this family's `randomize` returns."""
    if not isinstance(released, kind):
        allowed = f"{kind.__name__}, as this method's randomize returns"
        raise InputError(f"reports are a {type(released).__name__}", where="fit_reports", allowed=allowed)


def require_budgets(actual: object, expected: object) -> None:
    """Refuse reports under other budgets: they would be charged at one epsilon and estimated at another."""
    if actual != expected:
        raise InputError(
            f"the reports were made with {actual}",
            where="fit_reports",
            allowed=f"reports made with {expected}",
            remedy="build the method with the budgets of the collection",
        )
