"""Label propagation on released labels: no features, no training, no further privacy cost.

    Z <- alpha P Z + (1 - alpha) Y'   (30 steps)     or     Z = P^K Y'

Y' [n, c] holds the one-hot labels that were released (randomized or public), zero rows elsewhere; P = D^-1/2 A D^-1/2.
The variant is chosen by its accuracy on the validation nodes' noisy labels when only the training nodes' labels are
spread, then run with both.  Source: Zhou, Bousquet, Lal, Weston, Scholkopf, "Learning with Local and Global
Consistency", NeurIPS 2003, section 2.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from graphveil.aggregation import SparseMatrix, normalised, propagate
from graphveil.errors import InputError
from graphveil.graphs import Graph, GraphSchema, Split, random_split
from graphveil.methods.base.account import Booked
from graphveil.methods.base.drop import label_matrix
from graphveil.methods.base.local_privacy import LocalPrivacy
from graphveil.methods.base.network import require_device
from graphveil.methods.base.released import (
    LocalReports,
    Topology,
    randomize_people,
    require_matching,
    require_servable,
    topology_of,
)
from graphveil.methods.base.scores import true_score
from graphveil.methods.base.storage import (
    number,
    read_method,
    require_numbers,
    restoring,
    save_method,
    schema_facts,
    schema_from,
)
from graphveil.methods.local.label_pool import pool_labels
from graphveil.privacy import Guarantee, Ledger, Randomness
from graphveil.progress import Progress, ProgressCallback

ALPHAS = (0.8, 0.9, 0.95, 0.98)
HOPS = (2, 4, 8, 16)
STEPS = 30
RULES = ("propagation", "pool")


def spread(p: SparseMatrix, seeds: Tensor, alpha: float, steps: int = STEPS) -> Tensor:
    """Return Z [n, c] after `steps` of the first formula."""
    z = seeds
    for _ in range(steps):
        z = alpha * (p @ z) + (1 - alpha) * seeds
    return z


def variants(p: SparseMatrix) -> Iterator[tuple[str, Callable[[Tensor], Tensor]]]:
    """Yield every candidate as (name, function from seeds to Z)."""
    for alpha in ALPHAS:
        yield f"alpha={alpha}", partial(spread, p, alpha=alpha)
    for hops in HOPS:
        yield f"hops={hops}", partial(propagate, p, hops=hops)


def propagate_labels(
    p: SparseMatrix, labels: Tensor, train: Tensor, val: Tensor, *, classes: int, keep: float, flip: float
) -> tuple[Tensor, str]:
    """Return class probabilities [n, c] and the name of the variant chosen.

    Args:
        labels: released labels [n], -1 where none.
        keep, flip: the channel of randomized response; it is inverted on the shares that reach a node.
    """
    seeds = label_matrix(labels, train, classes)

    def hits(candidate: tuple[str, Callable[[Tensor], Tensor]]) -> int:
        return int((candidate[1](seeds)[val].argmax(dim=1) == labels[val]).sum())

    name, run = max(variants(p), key=hits)
    return shares_to_probabilities(run(label_matrix(labels, train | val, classes)), keep, flip), name


def shares_to_probabilities(z: Tensor, keep: float, flip: float) -> Tensor:
    """Return the class shares behind the noisy mass `z` [n, c]: (z / sum - q) / (p - q), clipped and normalised.

    Rows without mass become uniform; the most likely class stays the one with the largest mass.
    """
    total = z.sum(dim=1, keepdim=True)
    shares = torch.where(total > 0, z / total.clamp_min(1e-30), torch.full_like(z, 1.0 / z.shape[1]))
    clean = ((shares - flip) / (keep - flip)).clamp_min(0) + 1e-6 * shares
    return clean / clean.sum(dim=1, keepdim=True)


@dataclass(frozen=True)
class FittedLabels:
    """What a fitted label propagation keeps."""

    schema: GraphSchema
    void: str | None
    fingerprint: str
    probabilities: Tensor
    variant: str
    published: Guarantee | None = None


class LabelPropagation(Booked):
    """The estimator; `fit` is `randomize` (the devices) followed by `fit_reports` (the server).

    Args:
        epsilon_y: budget of one label report, all that a person spends; inf for public labels.
        rule: "propagation" (the formulas above) or "pool" (see `methods.local.label_pool`).
        seed: fixes the default split and the pool's folds, never privacy noise.
        device: "cpu" or "cuda".

    After fitting: `guarantee`, `ledger`, `variant` (the formula chosen on noisy labels, or the pool's weights).

    Raises:
        InputError: for a budget outside its range or a device that is not there.
    """

    kind = "label-propagation"

    def __init__(self, *, epsilon_y: float, rule: str = "propagation", seed: int = 0, device: str = "cpu") -> None:
        self.privacy = LocalPrivacy(None, epsilon_y)
        require_device(device)
        if rule not in RULES:
            raise InputError(f"rule {rule!r} is not known", allowed=", ".join(RULES))
        self.rule, self.seed, self.device = rule, seed, device
        self.ledger: Ledger = self.privacy.open_ledger()
        self.history: tuple[Any, ...] = ()
        self._fitted: FittedLabels | None = None
        self.released: LocalReports | None = None
        self.topology: Topology | None = None

    def randomize(self, graph: Graph, *, split: Split, randomness: Randomness) -> LocalReports:
        """Return every person's report; the only place that reads raw labels.

        Raises:
            BudgetError: when this collection has already been made, before data is read.
        """
        spends = self.privacy.spends(graph.schema)
        self.afford(*spends)
        require_servable(graph)
        self.pay(*spends)
        released = randomize_people(graph, split, self.privacy, randomness=randomness)
        self.made(released.digest)
        return released

    def fit_reports(
        self, released: LocalReports, topology: Topology, *, progress: ProgressCallback | None = None
    ) -> LabelPropagation:
        """Spread the released labels; costs nothing and may be repeated.

        Raises:
            InputError: when reports, topology and budgets do not belong together.
            BudgetError: other reports than those that were paid for.
        """
        require_matching(released, topology, self.privacy)
        if released.origin is None:
            self.recognise(released.digest, self.privacy.spends(released.schema))
        else:
            self.adopt(released.published_as(topology), released.origin.ledger)
        rule = _pool if self.rule == "pool" else _propagate
        found, variant = rule(self, released, topology, progress)
        origin = released.origin
        published = None if origin is None else origin.guarantee
        place = topology.fingerprint
        self._fitted = FittedLabels(released.schema, released.void, place, found.cpu(), variant, published)
        self.released, self.topology = released, topology
        return self

    def fit(
        self,
        graph: Graph,
        *,
        randomness: Randomness,
        split: Split | None = None,
        progress: ProgressCallback | None = None,
    ) -> LabelPropagation:
        """Simulate the collection on `graph` and spread its reports."""
        split = split or random_split(graph, self.seed)
        released = self.randomize(graph, split=split, randomness=randomness)
        return self.fit_reports(released, topology_of(graph), progress=progress)

    def predict_proba(self, graph: Graph | None = None, *, randomness: Randomness | None = None) -> Tensor:
        """Return class probabilities [n, c] of the topology that was fitted.

        Raises:
            InputError: for another graph: nobody there has reported a label.
        """
        fitted = self._require_fitted()
        if graph is not None and topology_of(graph).fingerprint != fitted.fingerprint:
            raise InputError(
                "label propagation knows only the graph whose labels were collected",
                where=graph.schema.name,
                remedy="train lpgnn, which predicts on new graphs from features",
            )
        return fitted.probabilities

    def predict(self, graph: Graph | None = None, *, randomness: Randomness | None = None) -> Tensor:
        """Return the most likely class of every node [n]."""
        return self.predict_proba(graph).argmax(dim=1)

    def score(self, graph: Graph, mask: Tensor | None = None, *, randomness: Randomness | None = None) -> float:
        """Return the accuracy against the true labels of `graph` on `mask` (default: all nodes with a label)."""
        return true_score(self.predict(graph), graph, mask)

    @property
    def schema(self) -> GraphSchema:
        """The public facts of the collection that was fitted."""
        return self._require_fitted().schema

    @property
    def variant(self) -> str:
        """The formula that was chosen."""
        return self._require_fitted().variant

    @property
    def guarantee(self) -> Guarantee:
        """What the collection that was fitted protects; of a published graph, what its release protects."""
        fitted = self._require_fitted()
        return fitted.published or self.privacy.guarantee(fitted.schema, fitted.void, self.ledger)

    def save(self, path: str | Path) -> Path:
        """Write predictions, settings, guarantee and ledger to one safetensors file; no reports, no edges."""
        fitted = self._require_fitted()
        facts = {
            "epsilon_y": number(self.privacy.epsilon_y),
            "rule": self.rule,
            "seed": self.seed,
            "schema": schema_facts(fitted.schema),
            "void": fitted.void,
            "fingerprint": fitted.fingerprint,
            "variant": fitted.variant,
            "collections": sorted(self.collections),
            "published": None if fitted.published is None else fitted.published.to_dict(),
            "ledger": self.ledger.to_dict(),
            "guarantee": self.guarantee.to_dict(),
        }
        return save_method(path, self.kind, facts, {"probabilities": fitted.probabilities})

    @classmethod
    def load(cls, path: str | Path) -> LabelPropagation:
        """Return a saved method, able to predict on its own graph.

        Raises:
            ModelFileError: for a file that is missing, damaged or of another method.
        """
        _, facts, tensors = read_method(path, cls.kind)
        with restoring(path):
            method = cls(epsilon_y=float(facts["epsilon_y"]), rule=facts["rule"], seed=facts["seed"])
            method.ledger = Ledger.from_dict(facts["ledger"])
            method.collections = frozenset(facts.get("collections", ()))
            schema = schema_from(facts["schema"])
            found = require_numbers("probabilities", tensors["probabilities"])
            if found.dim() != 2 or found.shape[1] != len(schema.classes):
                raise InputError(f"probabilities are {tuple(found.shape)}", allowed=f"(nodes, {len(schema.classes)})")
            published = facts.get("published")
            guarantee = None if published is None else Guarantee.from_dict(published)
            place, variant = facts["fingerprint"], facts["variant"]
            method._fitted = FittedLabels(schema, facts["void"], place, found, variant, guarantee)
        return method

    def _require_fitted(self) -> FittedLabels:
        if self._fitted is None:
            raise InputError("this label propagation has not been fitted", remedy="call fit or fit_reports first")
        return self._fitted


def _propagate(
    method: LabelPropagation, released: LocalReports, topology: Topology, progress: ProgressCallback | None
) -> tuple[Tensor, str]:
    classes = len(released.schema.classes)
    keep, flip = released.channel
    p = normalised(topology.edge_index, topology.num_nodes).to(method.device)
    places = (t.to(method.device) for t in (released.labels, released.train, released.val))
    found = propagate_labels(p, *places, classes=classes, keep=keep, flip=flip)
    if progress is not None:
        progress(Progress(1, 1))
    return found


def _pool(
    method: LabelPropagation, released: LocalReports, topology: Topology, progress: ProgressCallback | None
) -> tuple[Tensor, str]:
    classes = len(released.schema.classes)
    keep, flip = released.channel
    pool = pool_labels(
        topology,
        released.labels,
        classes=classes,
        keep=keep,
        flip=flip,
        seed=method.seed,
        device=method.device,
        progress=progress,
    )
    heaviest = sorted(pool.weights, key=lambda name: -pool.weights[name])[:3]
    return pool.probabilities, "pool led by " + ", ".join(f"{name} ({pool.weights[name]:.2f})" for name in heaviest)
