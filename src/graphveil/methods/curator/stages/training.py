"""What the curator's methods share: the reading of nodes and edges, and training with or without noise."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, TypeAlias, TypeVar

import numpy as np

from graphveil import models
from graphveil.aggregation import ReceiverRows, from_scipy
from graphveil.aggregation.names import WEIGHT_KINDS
from graphveil.aggregation.weights import edge_weights
from graphveil.engine import LOCAL, Blocks, Engine
from graphveil.errors import InputError
from graphveil.graphs import BoundedEdges, Graph, GraphSchema, Split, keep_lists, require_degree, require_taught
from graphveil.graphs.value.checks import require_one_label
from graphveil.methods.base.network.network import as_matrix
from graphveil.methods.base.people.account import tensors_digest
from graphveil.methods.base.storage import number, schema_facts
from graphveil.methods.curator.privacy import CuratorPrivacy, Noise
from graphveil.methods.curator.settings import CuratorSettings
from graphveil.methods.links.collection import people_key
from graphveil.models.networks.pair_similarity import learned_embedding
from graphveil.privacy import Randomness, require_randomness
from graphveil.runtime.late import Tensor, nn, torch
from graphveil.runtime.late import sparse as sp
from graphveil.runtime.progress import Progress, ProgressCallback
from graphveil.training import Epoch
from graphveil.training.dp_sgd import Streamed, train_privately
from graphveil.training.full_batch import Rows, train_full_batch
from graphveil.training.noisy_updates import PrivateSchedule

FeatureBlock: TypeAlias = "sp.csr_matrix | Tensor"
Built = TypeVar("Built")
#: The weights that are trained on edges, and the name of that training.
ATTENTION = "attention"
_OTHER_WEIGHTS = ", ".join(kind for kind in WEIGHT_KINDS if kind != ATTENTION)
#: Methods on noisy sums whose networks, private training and sums may run on a GPU.
_ON_GPU = ("gap", "progap", "node-sums")
#: The most numbers that are dense at once (2 GB).
MOST_DENSE = 500_000_000
#: Folds of the training nodes: predictions for each fold are learned on the others.
_FOLDS = 3
#: Nodes in one pass of a trained network.
_NODES_AT_ONCE = 1 << 18


@dataclass(frozen=True)
class NodeData:
    """The curator's data about nodes, without any edge.

    Attributes:
        features, labels: [n, d], sparse or dense; [n] int64, -1 for nodes that neither train nor validate.
        train, val: int64 numbers of the nodes that train and that validate.
        schema, key: the public facts, and a hash of those that identify the nodes.
    """

    features: sp.csr_matrix | Tensor
    labels: Tensor
    train: Tensor
    val: Tensor
    schema: GraphSchema
    key: str

    @property
    def nodes(self) -> int:
        return int(self.features.shape[0])

    @property
    def train_labels(self) -> Tensor:
        """The labels of training nodes, -1 elsewhere: validation labels may choose, and are in no message."""
        labels = torch.full_like(self.labels, -1)
        labels[self.train] = self.labels[self.train]
        return labels

    @property
    def classes(self) -> int:
        return len(self.schema.classes)


@dataclass(frozen=True)
class EdgeReading:
    """One reading of a graph's edges, behind noise that was paid for.

    Attributes:
        graph, schema: whose edges are read; the schema of the training, which a graph in a query shares.
        noise, randomness, networks: of the sums; the networks of the recipe.
        people: the nodes of the training; None in a query, which trains nothing.
        progress, engine: called while attention trains on edges; where blocks of receivers are summed.
    """

    graph: Graph
    schema: GraphSchema
    noise: Noise
    randomness: Randomness
    networks: Sequence[nn.Module]
    people: NodeData | None = None
    progress: ProgressCallback | None = None
    engine: Engine = LOCAL


@dataclass(frozen=True)
class Publication:
    """The result of one reading of the edges; for the curator's eyes if rows are a node's own (unit node).

    Attributes:
        parts: the input parts of the last network: noisy sums, and what needed no edges.
        networks: all but the last are trained.
        people, privacy, noise: the nodes, the privacy settings and the noise of the reading.
        history, void: epochs of the training so far, none of private training; why the guarantee does not hold, or
            None.
    """

    parts: tuple[FeatureBlock, ...]
    networks: tuple[nn.Module, ...]
    people: NodeData
    privacy: CuratorPrivacy
    noise: Noise
    history: tuple[Epoch, ...]
    void: str | None

    @property
    def digest(self) -> str:
        """A hash that identifies a publication whose rows are for everybody (units of edges)."""
        dense = {str(index): part for index, part in enumerate(self.parts) if isinstance(part, torch.Tensor)}
        return tensors_digest(dense)


@dataclass(frozen=True)
class FittedCurator:
    """A fitted method; logits [n, c] are None in a loaded one for unit node."""

    schema: GraphSchema
    people: str
    networks: tuple[nn.Module, ...]
    noise: Noise
    logits: Tensor | None
    history: tuple[Epoch, ...]
    void: str | None

    def facts(self) -> dict[str, Any]:
        """Return its part of a file beside tensors, as JSON values."""
        return {
            "schema": schema_facts(self.schema),
            "people": self.people,
            "noise": {**asdict(self.noise), "epsilon": number(self.noise.epsilon)},
            "history": [asdict(epoch) for epoch in self.history],
            "void": self.void,
        }


def read_people(graph: Graph, split: Split) -> NodeData:
    """Read features and labels; labels of nodes that neither train nor validate are dropped. Raises InputError for a
    graph with several labels a node, or a label that is not a declared class.
    """
    schema = require_one_label(graph)
    # Features of all nodes: the hops also sum over neighbours that neither train nor validate.
    features, labelled = read_features(graph), split.train | split.val
    # Test labels are dropped here: nothing after this line can use them by mistake.
    labels = torch.where(labelled, graph.y, -1)
    require_taught(split.train)
    if bool(((labels < 0) & labelled).any()) or bool((labels >= len(schema.classes)).any()):
        raise InputError("a label is not a declared class", where=schema.name, allowed=", ".join(schema.classes))
    return NodeData(features, labels, split.train.nonzero()[:, 0], split.val.nonzero()[:, 0], schema, people_key(graph))


def read_features(graph: Graph) -> sp.csr_matrix | Tensor:
    """Read features, sparse or dense, as 32-bit numbers; refuses one outside the declared range."""
    schema = graph.schema
    features: Any = as_matrix(graph.x)
    stored = torch.from_numpy(features.data) if sp.issparse(features) else features
    # NaN fails this comparison as well; the opposite one would let it pass.
    if not bool(((stored >= schema.low) & (stored <= schema.high)).all()):
        raise InputError(
            "a feature is outside the declared range", where=schema.name, allowed=f"{schema.low:g} to {schema.high:g}"
        )
    # 64-bit numbers are checked before they are rounded to those of the networks.
    rounded: sp.csr_matrix | Tensor = (
        features.astype(np.float32, copy=False) if sp.issparse(features) else features.float()
    )
    return rounded


def blocks(parts: Sequence[FeatureBlock], nodes: Tensor | None = None, device: torch.device | str = "cpu") -> Any:
    """Return the rows of some nodes (default: all) in a network's input form: dense parts side by side, else a list.

    Args:
        parts, nodes, device: input parts of every node, int64 numbers, and where the network is.
    """

    def block(part: FeatureBlock) -> Any:
        if isinstance(part, torch.Tensor):
            return (part if nodes is None else part[nodes.to(part.device)]).to(device)
        return from_scipy(part if nodes is None else part[nodes.numpy()]).to(device)

    rows = [block(part) for part in parts]
    return torch.cat(rows, dim=1) if all(isinstance(part, torch.Tensor) for part in parts) else rows


def rows_for(network: nn.Module, parts: Sequence[FeatureBlock], people: NodeData, nodes: Tensor) -> Rows:
    """Return the rows of some nodes and their classes, where the network is."""
    device = device_of(network)
    return Rows(blocks(parts, nodes, device), people.labels[nodes].to(device))


def on_cpu(parts: Sequence[FeatureBlock]) -> tuple[FeatureBlock, ...]:
    """Return parts on the CPU: what is published must be readable without a GPU."""
    return tuple(part.cpu() if isinstance(part, torch.Tensor) else part for part in parts)


def on_device(networks: Sequence[nn.Module], device: str) -> list[nn.Module]:
    """Return networks on a device, but for attention, whose private training on edges runs on the CPU."""
    return [net if isinstance(net, models.PairAttention) else net.to(device) for net in networks]


def device_of(network: nn.Module) -> torch.device:
    """Return the device of a network."""
    return next(network.parameters()).device


def dense_blocks(parts: Sequence[FeatureBlock], nodes: Tensor, device: torch.device | str = "cpu") -> Tensor:
    """Return the rows of some nodes as one dense float32 matrix."""
    rows = []
    for part in parts:
        if isinstance(part, torch.Tensor):
            dense = part[nodes.to(part.device)].float()
        else:
            dense = torch.from_numpy(np.ascontiguousarray(part[nodes.numpy()].toarray(), dtype=np.float32))
        rows.append(dense.to(device))
    return torch.cat(rows, dim=1)


def training_rows(
    network: nn.Module, parts: Sequence[FeatureBlock], nodes: Tensor, *, most: int = MOST_DENSE
) -> Tensor | Streamed:
    """Return the rows of a private training: dense, or built for each batch if there are too many numbers.

    Args:
        network, parts, nodes: which trains on them; the parts of a row, [n, d] each; the training nodes, int64 [m].
        most: the most numbers that are dense at once.
    """
    width, device = sum(int(part.shape[1]) for part in parts), device_of(network)
    if len(nodes) * width <= most:
        return dense_blocks(parts, nodes, device)
    return Streamed((len(nodes), width), lambda rows: dense_blocks(parts, nodes[rows], device))


def require_usable(settings: CuratorSettings, privacy: CuratorPrivacy, kind: str) -> None:
    """Refuse settings of a method on noisy sums that do not go together: weights learned from labels that are private
    or that a query does not have; attention in another method than gap, or over more than one hop.
    """
    if settings.device != "cpu" and kind not in _ON_GPU:
        raise InputError(
            f"device {settings.device!r}: what {kind} reads of edges before its noise is computed by the CPU",
            where=kind,
            allowed="cpu",
            remedy=f"leave the device out, or train {', '.join(_ON_GPU)} or class-sums on a GPU",
        )
    # Labels are part of a protected node: weights learned from them would carry them into every sum.
    if settings.weights in ("learned", ATTENTION) and privacy.protects_nodes:
        raise InputError(
            f"weights is {settings.weights} with unit node: they are learned from labels, which are protected",
            allowed="uniform, similarity, kernel",
        )
    if settings.weights == ATTENTION and kind != "gap":
        raise InputError(f"weights is attention with {kind}", allowed=_OTHER_WEIGHTS)
    if settings.weights == ATTENTION and privacy.relationships is not None:
        raise InputError("weights is attention with unit k-edges: they are priced for one edge", allowed=_OTHER_WEIGHTS)
    # The attention is trained on the rows of hop 0, against the noise of one sum.
    if settings.weights == ATTENTION and settings.hops != 1:
        raise InputError(f"hops is {settings.hops} with weights=attention", allowed="hops=1")
    if settings.weights == "learned" and privacy.queries:
        raise InputError(
            f"queries is {privacy.queries} with weights=learned: labels of another graph are not read",
            allowed="queries=0",
        )


def receiver_rows(
    graph: Graph,
    privacy: CuratorPrivacy,
    settings: CuratorSettings,
    x: Tensor,
    people: NodeData | None = None,
    attention: models.PairAttention | None = None,
) -> ReceiverRows:
    """Read the edges of a graph, cut or checked as the unit requires, with the weights of their messages.

    Args:
        graph, privacy, settings: the private graph, the unit, and the kind of weights.
        x: rows [n, c] from which the weights follow, without any edge.
        people, attention: for weights "learned", whose labels they are learned from; for "attention", trained.
    """
    # Weights of messages are computed by the CPU, once; the rows of edges then go to the device of the sums.
    similar = x.cpu()
    if settings.weights == "learned":
        if people is None:
            raise InputError("weights learned from labels exist for the training graph only", where="predict")
        similar = learned_embedding(similar, people.labels, people.train, seed=settings.seed)
    edges: Tensor | BoundedEdges = graph.edge_index
    nodes = int(graph.num_nodes)
    if privacy.protects_nodes and not privacy.unprotected:
        # Never by sampling: without a hub each of its neighbours would draw another edge, beyond any bound.
        bound = keep_lists if privacy.rule == "lists" else require_degree
        edges = bound(graph.edge_index, nodes, privacy.degree or 1)
    plain = edges if isinstance(edges, torch.Tensor) else edges.edge_index
    weigh = None if attention is None else attention.weigh
    weights, w_max = edge_weights(settings.weights, similar, plain, sharpness=settings.sharpness, attention=weigh)
    return ReceiverRows.of(edges, nodes, weights=weights, w_max=w_max).to(x.device)


def build_seeded(build: Callable[[], Built], seed: int) -> Built:
    """Return networks with initial weights drawn from a seed."""
    # Forked: initial weights must not change what the caller draws next.
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return build()


def train_openly(
    model: nn.Module, train: Rows, val: Rows, settings: CuratorSettings, progress: ProgressCallback | None = None
) -> tuple[Epoch, ...]:
    """Train without noise, on public or released data; the epoch that validates best is selected."""
    # Dropout draws from torch's generator, which belongs to the caller.
    with torch.random.fork_rng():
        torch.manual_seed(settings.seed)
        return train_full_batch(model, train, val, settings.full_batch, progress=progress)


def private_schedule(settings: CuratorSettings, people: int, multiplier: float | None) -> PrivateSchedule:
    """Return the schedule of a private training.

    Args:
        multiplier: of the noise; None where nothing is protected.
    """
    part = settings.descent("training", people)
    return PrivateSchedule(
        steps=part.steps,
        rate=part.rate,
        # The expected size, not the drawn one: dividing by that would reveal it.
        expected_batch=part.rate * people,
        # If nothing is protected the multiplier is not used, but a schedule must have one.
        noise_multiplier=1.0 if multiplier is None else multiplier,
        clip=settings.clip,
        learning_rate=settings.learning_rate,
    )


def noise_source(randomness: Randomness | None) -> Randomness:
    """Return the source of noise of a private training; refuses None and what is no source."""
    if randomness is None:
        raise InputError("private training needs a source of noise", remedy="pass randomness=SecureRandomness()")
    require_randomness(randomness)
    return randomness


def train_with_noise(
    model: nn.Module,
    rows: Rows,
    settings: CuratorSettings,
    multiplier: float,
    *,
    randomness: Randomness,
    progress: ProgressCallback | None = None,
) -> None:
    """Train by private gradient descent; the last weights are selected, since validation labels are private."""
    schedule = private_schedule(settings, len(rows.classes), multiplier)
    train_privately(model, rows.inputs, rows.classes, schedule, randomness=randomness, progress=progress)
    model.eval()


def parameters_of(model: nn.Module) -> int:
    return sum(parameter.numel() for parameter in model.parameters())


def logits_of(network: nn.Module, parts: Sequence[FeatureBlock]) -> Tensor:
    """Return a network's logits [n, c] of all nodes, on the CPU."""
    network.eval()
    return apply_by_blocks(network, parts, device_of(network)).cpu()


def shares_of(network: nn.Module, parts: Sequence[FeatureBlock]) -> Tensor:
    """Return the class probabilities [n, c] of a network for all nodes, on the CPU."""
    return torch.softmax(logits_of(network, parts), dim=1)


def unseen_shares(
    untrained: Callable[[], nn.Module],
    trained: nn.Module,
    parts: Sequence[FeatureBlock],
    people: NodeData,
    settings: CuratorSettings,
) -> Tensor:
    """Return class probabilities [n, c] from features, for each training node by a network that did not train on it: a
    network overfits its training nodes, and what learns from that trusts the network too much everywhere.

    Args:
        untrained, trained: builds the network, untrained; the same one, trained on all.
        parts, people, settings: its input parts, the nodes, and the settings of training without noise.
    """
    shares = shares_of(trained, parts)
    # From fewer nodes a network would learn nothing.
    if len(people.train) < 2 * _FOLDS:
        return shares
    judges = rows_for(trained, parts, people, people.val)
    for fold in range(_FOLDS):
        in_fold = torch.arange(len(people.train)) % _FOLDS == fold
        network, left_out = untrained(), people.train[in_fold]
        train_openly(network, rows_for(network, parts, people, people.train[~in_fold]), judges, settings)
        shares[left_out] = shares_of(network, parts)[left_out]
    return shares


def apply_by_blocks(
    network: Callable[[Any], Tensor], parts: Sequence[FeatureBlock], device: torch.device | str = "cpu"
) -> Tensor:
    """Return the rows [n, k] of a trained network, some nodes at a time.

    Args:
        network, parts, device: takes the `blocks` of some nodes, each by itself; its input parts; where it is.
    """
    nodes = int(parts[0].shape[0])
    with torch.no_grad():
        if nodes <= _NODES_AT_ONCE:
            return network(blocks(parts, device=device))
        # In blocks, since layers take several times the memory of their input.
        numbers = (torch.arange(block.start, block.stop) for block in Blocks(nodes, _NODES_AT_ONCE))
        return torch.cat([network(blocks(parts, part, device)) for part in numbers])


def progress_of(progress: ProgressCallback | None, networks: int) -> Callable[[int], ProgressCallback | None]:
    """Return what gives each network's callback, which continues where the one before ended, in thousandths."""
    if progress is None:
        return lambda which: None
    report = progress

    def callback_of(which: int) -> ProgressCallback:
        return lambda event: report(Progress(round(1000 * (which + event.done / event.total) / networks), 1000))

    return callback_of
