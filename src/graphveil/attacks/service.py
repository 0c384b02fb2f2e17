"""The answers of a fitted method that is queried with other features: all that the influence attacks use.

A method decides itself how it answers: from its cache (features handed in change nothing), not at all, or at a price
for every new group of people. A plain network is taken as it is deployed in a vertical setting: the adversary hands in
the features, the owner of the edges applies the network to them (Wu et al., IEEE S&P 2022, section 3).
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Protocol, cast

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from graphveil.aggregation import SparseMatrix
from graphveil.errors import GraphveilError, InputError
from graphveil.graphs import Graph, Split, random_split
from graphveil.graphs.value.features import features_from_rows, to_rows
from graphveil.methods.base.network.network import as_matrix
from graphveil.methods.base.people.released import Topology, require_same_features, topology_of
from graphveil.methods.curator.stages.recipe import StagedEstimator
from graphveil.methods.curator.stages.training import EdgeReading
from graphveil.methods.local.label_propagation import propagate_labels
from graphveil.methods.local.lpgnn import LPGNN
from graphveil.models import Backbone, build_backbone
from graphveil.models.labels.label_prior import Channel
from graphveil.privacy import SeededRandomness

_LAYERS = {"gcn": 2, "sage": 2, "gat": 2, "mlp": 0}


class Answering(Protocol):
    """Anything fitted that answers with class probabilities [n, c]; without a graph those of its own people."""

    def predict_proba(self, graph: Graph | None = None) -> Tensor: ...


@dataclass(frozen=True)
class Service:
    """Answers to features whose rows are scaled.

    Attributes:
        answer: factors [n] on the rows of the features -> probabilities [n, c], float64 where the method can.
        hops: how far a node's features reach; None: not known.
        adjacency: along which edges they reach [n, n]; for whoever simulates the attack, not for the adversary.
        note: what an adversary really gets. changes: whether an answer depends on the features handed in at all.
        network: what answers, where it is a plain network.
    """

    answer: Callable[[np.ndarray], np.ndarray]
    nodes: int
    hops: int | None
    adjacency: sp.csr_matrix | None
    note: str
    changes: bool
    network: Deployed | None = None


def service_of(method: Answering, graph: Graph) -> Service:
    """Return the answers of the method to an adversary who changes the features of `graph`.

    Args:
        method: fitted; it decides itself whether it answers for features of others.

    Raises:
        InputError: a method that was not fitted, or a loaded plain network that was trained on another graph.
    """
    if getattr(method, "answers_features", False):  # what is not ours, or is asked at a price, says nothing of it
        network = deployed(cast(LPGNN, method), graph)  # no other method says yes
        reach = reach_of(network.topology)
        note = "the plain network answers for any features, over the edges it has"
        nodes = network.topology.num_nodes
        return Service(network.probabilities, nodes, network.hops, reach, note, True, network)
    n = int(graph.num_nodes)
    if _rows_are_own(method) and getattr(method, "reads_edges", True):
        rows = shown_answers(method, graph, edges=False)
        note = "an answer is for its own node alone: the adversary asks the released weights, which hold no edges"
        return Service(lambda _: rows, n, 0, None, note, False)

    def answer(factors: np.ndarray) -> np.ndarray:
        return method.predict_proba(with_features(graph, factors)).detach().double().numpy()

    try:
        before = answer(np.ones(n))
        # Any factor but 1 would do: what counts is whether the answers move.
        changes = not np.array_equal(before, answer(np.full(n, 0.5)))
    except GraphveilError as refusal:
        # A refusal is an answer too: the adversary keeps what everybody may see.
        constant = known_answers(method, graph)
        note = f"the method refuses to be asked with other features: {refusal}"
        return Service(lambda _: constant, n, 0, None, note, False)
    if changes:
        return Service(answer, n, None, None, "the method answers every query", True)
    note = "the method answers from what it computed while fitting: features handed in change nothing"
    return Service(lambda _: before, n, 0, None, note, False)


def reach_of(topology: Topology) -> sp.csr_matrix:
    """Return along which edges features travel [n, n]; entry (receiver, sender)."""
    source, target = topology.edge_index.numpy()
    shape = (topology.num_nodes, topology.num_nodes)
    return sp.csr_matrix((np.ones(len(source), dtype=np.int32), (target, source)), shape=shape)


@dataclass(frozen=True)
class Deployed:
    """A plain network in float64, with its first product X W done: rows of X scaled by f scale rows of X W by f."""

    model: Any
    name: str
    product: Tensor
    shift: Tensor
    scale: float
    propagation: SparseMatrix | None
    steps: int
    structure: Any
    topology: Topology
    several: bool

    @property
    def hops(self) -> int:
        return self.steps + _LAYERS[self.name]

    def linear(self, factors: np.ndarray) -> Tensor:
        """Return X' W [n, h] as `aggregation.Inputs` does, with row i of X times factors[i]."""
        out = torch.from_numpy(factors)[:, None] * self.product
        for _ in range(self.steps):
            out = cast(SparseMatrix, self.propagation) @ out
        return (out - self.shift) * self.scale

    def probabilities(self, factors: np.ndarray) -> np.ndarray:
        network = cast(Backbone, self.model)
        with torch.no_grad():
            inputs: Any = _Ready(self.linear(factors))
            logits = network.rest(network.first(inputs, self.structure), self.structure)
            chances = torch.sigmoid(logits) if self.several else torch.softmax(logits, dim=1)
        return chances.numpy()


@dataclass(frozen=True)
class _Ready:
    """Stands in for `aggregation.Inputs` where the product with the only weight is known."""

    value: Tensor

    def linear(self, _: Tensor) -> Tensor:
        return self.value


def deployed(method: LPGNN, graph: Graph) -> Deployed:
    """Return a plain network as its owner would run it on features of others.

    Args:
        method: a plain network, fitted.
        graph: gives features and edges where the method keeps none (a loaded model).

    Raises:
        InputError: the network was trained on other edges.
    """
    fitted = method.result
    topology = method.topology or topology_of(graph)
    # Over other edges the influence would show those, and none of the secrets that the network was trained on.
    if topology.fingerprint != fitted.fingerprint:
        raise InputError("the network was trained on other edges", where="attack", remedy="name its graph: --data DATA")
    settings, network = method.settings, fitted.network
    width = network.weights["weight1"].shape[0]
    classes = len(fitted.schema.classes)
    model = build_backbone(settings.model, width, settings.hidden, classes, 0.0, generator=torch.Generator())
    model.load_state_dict(network.weights)
    # Influence is a difference of two answers: float32 would drown it in rounding.
    model.double().eval()
    weight = network.weights["weight1"].double()
    x = as_matrix(method.released.features if method.released is not None else graph.x)
    products = (
        torch.from_numpy(np.asarray(x @ weight.numpy())) if sp.issparse(x) else torch.as_tensor(x).double() @ weight
    )
    # The mean is subtracted after propagation, so it passes through the weight on its own.
    shift = torch.zeros(1, weight.shape[1], dtype=torch.float64)
    if network.mean is not None:
        shift = network.mean.double() @ weight
    return Deployed(
        model,
        settings.model,
        products,
        shift,
        network.scale,
        in_double(topology.propagation()) if settings.steps_x else None,
        settings.steps_x,
        in_double(topology.structure(settings.model)),
        topology,
        fitted.several,
    )


def in_double(structure: object) -> Any:
    """Return a sparse matrix with float64 entries; anything else as it is."""
    if not isinstance(structure, SparseMatrix):
        return structure
    forward = replace(structure.forward, values=structure.forward.values.double())
    return SparseMatrix(forward, forward, structure.shape)


def known_answers(method: Answering, graph: Graph) -> np.ndarray:
    """Return the probabilities [n, c] that the method gives of its own people, float64: what everybody may see.

    Args:
        graph: the people the method was fitted on.
    """
    # Asked again with a graph, a method with a guarantee would spend budget: an attack must not.
    chances = method.predict_proba() if hasattr(method, "guarantee") else method.predict_proba(graph)
    return chances.detach().double().numpy()


def answer_rows(method: Answering, graph: Graph) -> np.ndarray:
    """Return the probabilities of the method's own people and their logs [n, 2c], for attacks that learn from them.

    Args:
        graph: the people the method was fitted on.
    """
    try:
        return _with_logs(known_answers(method, graph))
    except InputError as refusal:
        if not _rows_are_own(method):
            raise
        raise InputError(
            "each answer of this model is for its own node alone, so nobody else has one to attack",
            where="attack",
            allowed="attacks on the released weights: membership, lira, link-stealing, linkteller",
        ) from refusal


def _with_logs(chances: np.ndarray) -> np.ndarray:
    # Logarithms beside the probabilities: a linear reader sees next to nothing of an answer that is nearly sure.
    return np.concatenate([chances, np.log(np.maximum(chances, 1e-12))], axis=1)


def shown_answers(method: Answering, graph: Graph, *, edges: bool) -> np.ndarray:
    """Return the probabilities [n, c] that others than the node itself can obtain, float64: those that the method
    gives, or where each is for its own node alone, what the released weights say of a graph that the adversary holds.

    Args:
        graph: the people the method was fitted on.
        edges: whether the adversary knows their edges; one that looks for edges does not.
    """
    if not _rows_are_own(method):
        return known_answers(method, graph)
    view = graph
    if not edges:
        view = copy.copy(graph)
        view.edge_index = graph.edge_index[:, :0]
    chances = (
        _networks_on(method, view) if isinstance(method, StagedEstimator) else cast(Any, method).probabilities(view)
    )
    return cast(Tensor, chances).detach().double().numpy()


def _networks_on(method: StagedEstimator, graph: Graph) -> Tensor:
    """Return what released networks predict on a graph that their holder has [n, c]: no noise, nothing paid; never an
    answer about people who are protected. Raises InputError for a graph with other features.
    """
    fitted = method.result
    require_same_features(graph.schema, fitted.schema)
    # A twin that protects nothing: sums are taken as they are, on the same path.
    twin = type(method)(**{**method.parameters(), "epsilon": math.inf, "tuning": None, "queries": 0})
    exact = replace(fitted.noise, sigmas=(0.0,) * len(fitted.noise.sigmas))
    return twin.answer(
        EdgeReading(graph, fitted.schema, exact, SeededRandomness(0), fitted.networks), fitted.noise.sigmas
    )


def _rows_are_own(method: object) -> bool:
    return bool(getattr(method, "own_rows", False))


def labels_alone(graph: Graph, split: Split | None, seed: int) -> np.ndarray:
    """Return what labels and edges alone show of each node [n, k]; nothing where a node has several labels.

    Args:
        graph: its labels are used without noise.
        split: who gives labels; None: drawn by `seed`, which fixes all else.
    """
    if graph.y.dim() != 1:
        return np.zeros((int(graph.num_nodes), 1))
    nodes = split or random_split(graph, seed)
    # As a curator would spread them: that edges are declared private makes no baseline weaker.
    labels = torch.where(nodes.train | nodes.val, graph.y, -1)
    adjacency, channel = topology_of(graph).propagation(), Channel(len(graph.schema.classes))
    chances, _ = propagate_labels(adjacency, labels, nodes.train, nodes.val, channel)
    return _with_logs(chances.double().numpy())


def with_features(graph: Graph, factors: np.ndarray) -> Graph:
    """Return a shallow copy of the graph with row i of its features times factors[i], within the declared range.

    Args:
        graph: its features may be dense or sparse CSR [n, d].
        factors: [n], one for each node.
    """
    changed = copy.copy(graph)
    scale = torch.from_numpy(factors)
    x, schema = graph.x, graph.schema
    if x.layout == torch.sparse_csr:
        # Only stored entries are scaled: a dense copy of sparse features might not fit in memory.
        counts = x.crow_indices().diff()
        values = (x.values() * scale.repeat_interleave(counts)).clamp(schema.low, schema.high)
        parts = (x.crow_indices(), x.col_indices(), values)
        changed.x = torch.sparse_csr_tensor(*parts, x.shape, check_invariants=False)
    else:
        changed.x = (x.double() * scale[:, None]).clamp(schema.low, schema.high)
    return changed


def with_features_of_others(graph: Graph, seed: int) -> Graph:
    """Return a shallow copy of the graph with its rows of features permuted among its nodes.

    Args:
        graph: features [n, d], dense or sparse CSR.
        seed: fixes the permutation of rows.
    """
    changed = copy.copy(graph)
    # A constant beside the seed keeps this draw apart from those of other attacks.
    order = np.random.default_rng([seed, 0xD7]).permutation(int(graph.num_nodes))
    if graph.x.layout == torch.sparse_csr:
        changed.x = features_from_rows(to_rows(graph.x)[order])
    else:
        changed.x = graph.x[torch.from_numpy(order)]
    return changed
