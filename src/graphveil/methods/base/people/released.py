"""What a server holds in the local model: a public topology and one randomized report per person.

Raw features and labels are read in one place, :func:`randomize_people`; everything after it is post-processing of what
it returns and may be rerun, tuned and inspected freely.
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
from graphveil.methods.base.people.account import Paid, digest_of
from graphveil.methods.base.people.local_privacy import LocalPrivacy
from graphveil.models import structure_for
from graphveil.models.labels.label_prior import Channel
from graphveil.privacy import Randomness
from graphveil.runtime.late import Tensor, torch

#: What serves a graph with private edges, by who may see them.
INSTEAD: Final = (
    "train class-sums, or node-sums for whole people, where a curator may see the links; links where nobody may; "
    "graphveil release heterorr, then train on the release, to publish the graph; gcn as it is, NOT PROTECTED, for "
    "those alone who may see it; declare edges public only if they are: every link would be shown as it is"
)


@dataclass(frozen=True)
class Topology:
    """What is known of who is linked to whom: edges [2, E], number of nodes n, weights [E] where edges differ.

    Matrices are made of one adjacency, put in order once; :meth:`apart` keeps what a fit makes out of what it leaves.
    """

    edge_index: Tensor
    num_nodes: int
    weights: Tensor | None = None

    @property
    def fingerprint(self) -> str:
        """A hash of nodes, edges and weights that tells one topology from another."""
        # Also the number: isolated nodes leave no trace in the edges.
        digest = hashlib.sha256(str(self.num_nodes).encode())
        digest.update(self.edge_index.cpu().contiguous().numpy().data)
        if self.weights is not None:
            digest.update(self.weights.cpu().contiguous().numpy().data)
        return digest.hexdigest()

    def apart(self) -> Topology:
        """Return the same topology, whose matrices are let go with it."""
        return replace(self)

    @cached_property
    def adjacency(self) -> Adjacency:
        """A [n, n], with the weights of the edges where they have some."""
        return Adjacency.of(self.edge_index, self.num_nodes, weights=self.weights)

    @cached_property
    def both_ways(self) -> Adjacency:
        """A [n, n] with each edge in both directions and of weight 1."""
        if self.weights is None and self.adjacency.symmetric:
            return self.adjacency
        return Adjacency.of(torch.cat([self.edge_index, self.edge_index.flip(0)], dim=1), self.num_nodes)

    def propagation(self) -> Any:
        """Return P = D^{-1/2} A D^{-1/2} [n, n]."""
        return self.adjacency.normalised()

    def structure(self, model: str, device: str = "cpu") -> Any:
        """Return what a backbone reads of the edges, see `models.structure_for`."""
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
        schema, privacy: the public facts, budgets and mechanisms that they were made under.
        void: why the guarantee does not hold, or None.
        origin: of a graph that was published already: what its publisher says of it. Everything here is then made of
            what anybody may know, whatever else was done to it.
        ids: [n], by which its people are known when they are met again; None: only position tells.
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
    paid: Paid | None = None

    @property
    def digest(self) -> str:
        """A hash of the reports, less what is public, that tells one collection from another."""
        sent = {"labels": self.labels, "train": self.train, "val": self.val}
        return digest_of(sent | (self.features.to_tensors() if hasattr(self.features, "to_tensors") else {}))

    def published_as(self, topology: Topology) -> str:
        """Return what tells the release that this was made of from others, whatever noise was added to it since."""
        created = "" if self.origin is None else self.origin.created
        features = {"features": self.features} if isinstance(self.features, torch.Tensor) else {}
        return f"{created} {topology.fingerprint} {digest_of(features)}"

    @property
    def labelled(self) -> Tensor:
        """Mask [n] of the nodes that sent a label."""
        return self.train | self.val

    @property
    def channel(self) -> Channel:
        """What true labels went through."""
        classes = len(self.schema.classes)
        own = self.privacy.channel(classes)
        if self.origin is None:
            return own
        # Two channels one after the other: what is reported here was already random when it was published.
        true = own.keep * self.origin.keep + (classes - 1) * own.flip * self.origin.flip
        return Channel(classes, true, (1 - true) / (classes - 1))


@dataclass(frozen=True)
class Answers:
    """Reports of some: who sent one (mask [n]), and the reports of those people in their order.

    Nothing stands in for the reports of all others: a row of zeros could be read as somebody's.
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
        several: whether several labels a node will do.
    """
    require_public_edges(graph.schema)
    return require_labels(graph, public=several)


def require_public_edges(schema: GraphSchema) -> None:
    """Refuse a graph that declares its edges private, naming the methods that serve it."""
    # The owner's declaration decides, not the method's name: here the server is handed every edge as it is.
    if "edges" in schema.private:
        raise InputError(
            f"{schema.name} declares its edges private, but this method gives the server the whole graph",
            where="local features and labels",
            allowed="graphs whose edges are public",
            remedy=INSTEAD,
        )


def require_same_features(other: GraphSchema, trained: GraphSchema) -> None:
    """Refuse a new graph whose features are not those of training, before any is read."""
    if (other.dimension, other.low, other.high) != (trained.dimension, trained.low, trained.high):
        raise InputError(
            f"features are {other.dimension} numbers in [{other.low:g}, {other.high:g}]",
            where=other.name,
            allowed=f"{trained.dimension} numbers in [{trained.low:g}, {trained.high:g}], as in training",
        )


def require_same_direction(other: GraphSchema, trained: GraphSchema) -> None:
    """Refuse a new graph whose edges have a direction where those of training had none, or the other way round."""
    # A price is that of one entry, or of both: in a graph of the other kind a relationship is as many again, or half.
    if other.directed != trained.directed:
        kinds = {True: "directed", False: "undirected"}
        raise InputError(
            f"edges are {kinds[other.directed]}",
            where=other.name,
            allowed=f"{kinds[trained.directed]}, as in training: what an edge costs depends on it",
        )


def require_labels(graph: Graph, *, public: bool) -> GraphSchema:
    """Return the schema of a graph whose labels can be used: several a node where they are public alone."""
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
    released: Any = None
    if not isinstance(features, NotCollected):
        released = randomize_by_blocks(features, graph.x, randomness=randomness, engine=engine)
    senders = split.train | split.val
    sent = randomize_by_blocks(labels, graph.y[senders], randomness=randomness, engine=engine).labels
    # -1 for all who are not asked: what was never sent cannot be read by accident.
    everyone = torch.full_like(graph.y, -1 if graph.y.dim() == 1 else 0)
    everyone[senders] = sent
    # Where nothing is randomized there is nothing that known noise could undo.
    void = randomness.void if privacy.spends(schema) else None
    origin = getattr(graph, "release", None)
    masks = split.train.clone(), split.val.clone()
    return LocalReports(released, everyone, *masks, schema, privacy, void, origin, node_names(graph))


def ask_question(
    graph: Graph, who: Tensor, question: Question, *, randomness: Randomness, engine: Engine = LOCAL
) -> Answers:
    """Return what the devices of some people answer to a question about their features.

    Args:
        who: mask [n] of those who are asked; nobody else's device answers.
        question: what is asked, at what epsilon.
    """
    # Everybody's value is checked before the first draw; what is not asked for stays on the device.
    truth = torch.from_numpy(question.truth(graph.x))
    sent = randomize_by_blocks(question.mechanism, truth[who], randomness=randomness, engine=engine)
    return Answers(who.clone(), sent)


def require_matching(released: LocalReports, topology: Topology, privacy: LocalPrivacy) -> None:
    """Refuse reports that were made for another topology or under other budgets, and what is neither."""
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
    """Refuse what another family's `randomize` returned, or nobody's."""
    if not isinstance(released, kind):
        allowed = f"{kind.__name__}, as this method's randomize returns"
        raise InputError(f"reports are a {type(released).__name__}", where="fit_reports", allowed=allowed)


def require_budgets(actual: object, expected: object) -> None:
    """Refuse reports that were made under other budgets: they would be charged at one epsilon and read at another."""
    if actual != expected:
        raise InputError(
            f"the reports were made with {actual}",
            where="fit_reports",
            allowed=f"reports made with {expected}",
            remedy="build the method with the budgets of the collection",
        )
