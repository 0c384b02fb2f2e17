"""The three modes of a federation as one plaintext program, with the same modules, seeds and steps.

A plaintext run gives the accuracy that the secure run has to reach, and is fast enough for choosing settings;
`train_twins` runs both. A plaintext run can also add the noise that the paper counts by iteration, which no federation
offers, since it guarantees nothing.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor, nn

from graphveil.aggregation import from_scipy
from graphveil.federation.core.networks import EMBEDDING_LENGTH, Combination, OutputLayer, Propagation, standardise
from graphveil.federation.core.publisher import clip_rows
from graphveil.federation.core.setting import Member, Setting, Training
from graphveil.federation.modes.linear_server import LinearNetwork
from graphveil.federation.modes.propagation import scaled_rows, transition_matrix
from graphveil.federation.simulation import head_of, partition_graph, simulate_training, vertical_partition
from graphveil.graphs import Graph, Split
from graphveil.models import structure_for
from graphveil.models.networks.layers import glorot
from graphveil.privacy import SeededRandomness

Part = tuple[Any, Tensor]  # features (scipy CSR) and edges of one holder


@dataclass(frozen=True)
class Plan:
    """One plaintext run; the names are those of `Setting`.

    Attributes:
        sigma: the noise of one publication in units of the clipping norm C.
        shrink: whether noisy rows are shrunk, see `_published`.
        apart: whether the server standardises published rows, see `core.networks.standardise`; the paper's does not.
    """

    mode: str = "paper"
    combine: str = "mean"
    width: int = 64
    hops: int = 4
    layers: int = 1
    dropout: float = 0.5
    learning_rate: float = 0.01
    weight_decay: float = 1e-3
    shared_rate: float = 20.0
    momentum: float = 0.9
    epochs: int = 150
    sigma: float = 0.0
    shrink: bool = True
    apart: bool = False
    validate: int = Training().validate


@dataclass(frozen=True)
class BestEpoch:
    """The epoch with the best validation accuracy."""

    val: float  # accuracy on validation nodes
    test: float  # accuracy on test nodes
    best: int  # its number


def run(
    plan: Plan, parts: Sequence[Part], labels: Tensor, split: Split, seed: int, words: Sequence[np.ndarray] = ()
) -> BestEpoch:
    """Train on all holders' data in the clear.

    Args:
        parts: features and edges of each holder.
        labels: int64 [n].
        split: who trains, validates and tests.
        seed: of weights, dropout and noise.
        words: the random words of the holders of a secure run for the shared first layer, in order; default: from the
            seed.
    """
    generator = torch.Generator().manual_seed(seed)
    head = OutputLayer(plan.width, int(labels.max()) + 1, generator=generator)
    # Any: the three classes have the same methods, with different networks.
    kind: Any = {"shared-linear": _Linear, "paper": _Opened, "individual": _Own}[plan.mode]
    network = kind.network(plan, len(parts), generator)
    body = kind(plan, parts, generator, list(words) or _words(plan, parts, seed))
    adam = torch.optim.Adam(
        [*head.parameters(), *network.parameters(), *body.parameters()],
        lr=plan.learning_rate,
        weight_decay=plan.weight_decay,
    )
    noise = torch.Generator().manual_seed(10_000 + seed)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return _train(plan, body, network, head, adam, labels, split, noise)


def _train(
    plan: Plan,
    body: Any,
    network: nn.Module,
    head: OutputLayer,
    adam: Any,
    labels: Tensor,
    split: Split,
    noise: torch.Generator,
) -> BestEpoch:
    rows, best = split.train.nonzero().squeeze(1), BestEpoch(-1.0, 0.0, 0)
    least = 0.0
    for epoch in range(1, plan.epochs + 1):
        embeddings = body.forward()
        published = [body.published(h, rows, plan, noise) for h in embeddings]
        leaves = [h[rows].requires_grad_() for h in published]
        network.train()
        adam.zero_grad()
        loss = nn.functional.cross_entropy(head(body.hidden(network, leaves)), labels[rows])
        loss.backward()  # type: ignore[no-untyped-call]
        body.backward(embeddings, [_spread(leaf.grad, rows, len(labels)) for leaf in leaves])
        adam.step()
        # Validated every `plan.validate` epochs, and at the end.
        if epoch % plan.validate and epoch < plan.epochs:
            continue
        network.eval()
        with torch.no_grad():
            logits = head(body.hidden(network, published, leaves))
        hit = logits.argmax(dim=1) == labels
        val = float(hit[split.val].float().mean())
        error = float(nn.functional.cross_entropy(logits[split.val], labels[split.val]))
        if (val, -error) > (best.val, -least):
            best, least = BestEpoch(val, float(hit[split.test].float().mean()), epoch), error
    return best


def _spread(slopes: Tensor | None, rows: Tensor, nodes: int) -> Tensor:
    """Return gradients of the training rows as gradients of all nodes, 0 elsewhere."""
    if slopes is None:
        raise RuntimeError("the loss does not depend on what is published")
    spread = torch.zeros(nodes, slopes.shape[1])
    spread[rows] = slopes
    return spread


def _published(h: Tensor, rows: Tensor, plan: Plan, generator: torch.Generator) -> Tensor:
    """Return clipped rows (C = 1) with noise, if `shrink` times the positive-part James-Stein factor."""
    x, noise = clip_rows(h.detach(), 1.0), plan.sigma * math.sqrt(h.shape[1])
    if plan.sigma:
        x = x + plan.sigma * torch.randn(x.shape, generator=generator)
    if plan.sigma and plan.shrink:
        scale = (x.shape[1] - 2) * plan.sigma**2
        x, noise = x * (1 - scale / x.square().sum(dim=1, keepdim=True)).clamp_min(0), 0.0
    return standardise(x, EMBEDDING_LENGTH, noise, like=x[rows]) if plan.apart else x


class _Combined:
    """Embeddings of every holder, published and combined by the server."""

    published = staticmethod(_published)

    @staticmethod
    def network(plan: Plan, holders: int, generator: torch.Generator) -> Combination:
        return Combination(plan.combine, holders, plan.width, plan.layers, plan.dropout, generator=generator)

    @staticmethod
    def hidden(network: Combination, rows: list[Tensor], trained: list[Tensor] | None = None) -> Tensor:
        hidden: Tensor = network(rows)
        return hidden


class _Own(_Combined):
    """Each holder's embedding from its own X_i W_i, trained by Adam."""

    def __init__(self, plan: Plan, parts: Sequence[Part], generator: torch.Generator, words: list[np.ndarray]) -> None:
        self.branches = []
        for features, edges in parts:
            propagation = Propagation("sage", plan.width, plan.hops, generator=generator)
            weight = glorot((features.shape[1], plan.width), generator)
            structure = structure_for("sage", edges, features.shape[0])
            self.branches.append((propagation, weight, structure, from_scipy(features)))

    def parameters(self) -> list[nn.Parameter]:
        return [p for propagation, weight, _, _ in self.branches for p in (*propagation.parameters(), weight)]

    def forward(self) -> list[Tensor]:
        return [propagation(x @ weight, structure) for propagation, weight, structure, x in self.branches]

    def backward(self, embeddings: list[Tensor], slopes: list[Any]) -> None:
        torch.autograd.backward(embeddings, slopes)


class _Opened(_Combined):
    """Each holder's embedding from the opened sum_j X_j W_j; W is trained by gradient descent with momentum."""

    def __init__(self, plan: Plan, parts: Sequence[Part], generator: torch.Generator, words: list[np.ndarray]) -> None:
        self.branches = []
        for features, edges in parts:
            propagation = Propagation("sage", plan.width, plan.hops, generator=generator)
            self.branches.append((propagation, structure_for("sage", edges, features.shape[0])))
        self.inputs = [from_scipy(features) for features, _ in parts]
        columns = sum(features.shape[1] for features, _ in parts)
        scale = (6.0 / (columns + plan.width)) ** 0.5 / len(parts) ** 0.5
        uniform = [_uniform(word) for word in words]
        self.weights = []
        for index, (features, _) in enumerate(parts):
            shares = [uniform[holder * len(parts) + index] for holder in range(len(parts))]
            start = (sum(shares) * scale).reshape(features.shape[1], plan.width)
            self.weights.append(nn.Parameter(torch.from_numpy(start).float()))
        self.descent = torch.optim.SGD(self.weights, lr=plan.shared_rate, momentum=plan.momentum)

    def parameters(self) -> list[nn.Parameter]:
        return [p for propagation, _ in self.branches for p in propagation.parameters()]

    def forward(self) -> list[Tensor]:
        h0 = torch.stack([x @ w for x, w in zip(self.inputs, self.weights, strict=True)]).sum(dim=0)
        return [propagation(h0, structure) for propagation, structure in self.branches]

    def backward(self, embeddings: list[Tensor], slopes: list[Any]) -> None:
        self.descent.zero_grad()
        torch.autograd.backward(embeddings, slopes)
        self.descent.step()


class _Linear:
    """z = S^K X W over all edges; W is trained by gradient descent with momentum. No rows are published or clipped."""

    @staticmethod
    def network(plan: Plan, holders: int, generator: torch.Generator) -> LinearNetwork:
        return LinearNetwork(cast(Setting, SimpleNamespace(model=plan)), generator=generator)

    @staticmethod
    def published(h: Tensor, rows: Tensor, plan: Plan, generator: torch.Generator) -> Tensor:
        return h.detach().clone()

    @staticmethod
    def hidden(network: LinearNetwork, rows: list[Tensor], trained: list[Tensor] | None = None) -> Tensor:
        # As at the server: all rows are scaled by mean and length of the training rows.
        hidden: Tensor = network(rows[0], like=None if trained is None else trained[0].detach())
        return hidden

    def __init__(self, plan: Plan, parts: Sequence[Part], generator: torch.Generator, words: list[np.ndarray]) -> None:
        nodes, holders = parts[0][0].shape[0], len(parts)
        p = torch.cat([scaled_rows(features, holders) for features, _ in parts], dim=1).numpy()
        s = sum(transition_matrix(edges, nodes) for _, edges in parts) * (1 / holders)
        for _ in range(plan.hops):
            p = s @ p
        self.p = torch.from_numpy(p).float()
        scale = (6.0 / (p.shape[1] + plan.width)) ** 0.5 / holders**0.5
        start = (sum(_uniform(word) for word in words) * scale).reshape(p.shape[1], plan.width)
        self.weight = nn.Parameter(torch.from_numpy(start).float())
        self.descent = torch.optim.SGD([self.weight], lr=plan.shared_rate, momentum=plan.momentum)

    def parameters(self) -> list[nn.Parameter]:
        return []

    def forward(self) -> list[Tensor]:
        return [self.p @ self.weight.detach()]

    def backward(self, embeddings: list[Tensor], slopes: list[Any]) -> None:
        self.weight.grad = self.p.T @ slopes[0]
        self.descent.step()


def _words(plan: Plan, parts: Sequence[Part], seed: int) -> list[np.ndarray]:
    """Return the random words that holders would draw for the shared first layer."""
    source, widths = np.random.default_rng(20_000 + seed), [features.shape[1] for features, _ in parts]
    by_mode = {"shared-linear": [sum(widths)] * len(parts), "individual": []}
    sizes = by_mode.get(plan.mode, widths * len(parts))
    return [source.integers(0, 2**64, size * plan.width, dtype=np.uint64) for size in sizes]


def _uniform(words: np.ndarray) -> np.ndarray:
    return (words >> np.uint64(11)).astype(float) * 2.0**-52 - 1.0


@dataclass(frozen=True)
class Twins:
    """A secure and a plaintext run on one partition."""

    secure: float  # accuracy of the secure run on test nodes, a fraction
    plain: BestEpoch  # of the plaintext run, with the same seeds and, for a shared first layer, the same draws
    bytes: int  # of all messages of the secure run
    seconds: float  # of CPU time of the secure run, all parties together


def train_twins(plan: Plan, graph: Graph, split: Split, shares: Sequence[float], seed: int) -> Twins:
    """Train a federation's parties, and their plaintext twin on the same random draws.

    Args:
        plan: without noise.
        graph, split: of all holders together.
        shares: of columns and edges, a number for each holder.
        seed: of the partition, weights and dropout, and of secrets too: a comparison protects nobody.
    """
    members, holdings = partition_graph(graph, split, shares, seed=seed)
    setting = setting_of(plan, members, len(graph.schema.classes))
    blocks = {"paper": [member.columns for member in members] * len(members)}
    blocks["shared-linear"] = [setting.columns] * len(members)
    sizes = [columns * plan.width for columns in blocks.get(plan.mode, [])]
    source, start = _RecordingSource(seed, set(sizes)), time.process_time()
    trained = simulate_training(setting, holdings, randomness=source, seed=seed)
    seconds, predicted = time.process_time() - start, head_of(holdings).predictions
    if predicted is None:
        raise RuntimeError("the label holder has no predictions")
    secure = float((predicted.argmax(dim=1) == graph.y)[split.test].float().mean())
    # Only the first: later draws of the same size are masks.
    words = source.words[: len(sizes)]
    # The parties' server always standardises rows, unlike the paper's.
    plain = run(replace(plan, apart=True), vertical_partition(graph, shares, seed=seed), graph.y, split, seed, words)
    return Twins(secure, plain, trained.transcript.bytes, seconds)


def setting_of(plan: Plan, members: tuple[Member, ...], classes: int, **changes: Any) -> Setting:
    """Return the setting of a federation with the settings of a plan.

    Args:
        members: the holders.
        classes: how many.
        changes: further settings.
    """
    own = {name: value for name, value in asdict(plan).items() if name not in ("sigma", "shrink", "apart")}
    return Setting.of(members, classes, **{"opened": True, "epsilon": math.inf, **own, **changes})


class _RecordingSource:
    """A seeded source that records every draw of one of the given sizes."""

    def __init__(self, seed: int, counts: set[int]) -> None:
        self._source, self._counts = SeededRandomness(seed), counts
        self.void = self._source.void
        self.words: list[np.ndarray] = []

    def uint64(self, count: int) -> np.ndarray:
        drawn = self._source.uint64(count)
        if count in self._counts:
            self.words.append(drawn.copy())
        return drawn

    def bytes(self, count: int) -> bytes:
        return self._source.bytes(count)
