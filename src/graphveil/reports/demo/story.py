"""One private graph under three kinds of trust, with what an attacker finds, and a counterexample.

    a curator            class-sums, trained by somebody who may hold the graph      LinkTeller
    nobody               links, on neighbour lists that people randomize themselves  LinkTeller
    two organisations    a simulated federation that exchanges noisy guesses         recovery of the other's columns
    nobody, LPGNN        features that people randomize themselves                   reconstruction of those features

Each is an experiment as `graphveil train` or a federation runs it, and an attack as `graphveil attack` plays it.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np

from graphveil.attacks import AttackResult
from graphveil.attacks.catalogue import Target, attack
from graphveil.attacks.federation.catalogue import attack_federation, simulated
from graphveil.errors import InputError
from graphveil.federation.core.guarantees import guarantee_of
from graphveil.federation.core.setting import Setting
from graphveil.federation.modes.labels import LabelHead
from graphveil.federation.simulation import head_of, partition_graph
from graphveil.graphs import Graph
from graphveil.methods.baselines.network import baseline
from graphveil.methods.local.controls import hits
from graphveil.methods.runs import experiment
from graphveil.methods.runs.intervals import Interval, interval
from graphveil.privacy import Guarantee, Randomness
from graphveil.runtime.progress import Progress, ProgressCallback

GUESSES = "guesses"
COUNTEREXAMPLE = "lpgnn"
#: Method -> its budget; the federation's is of one guess.
BUDGETS: Mapping[str, Mapping[str, float]] = MappingProxyType(
    {
        "class-sums": {"epsilon": 1.0},
        "links": {"epsilon_a": 3.0},
        GUESSES: {"epsilon": 4.0},
        COUNTEREXAMPLE: {"epsilon_x": 1.0, "epsilon_y": 2.0},
    }
)
#: What epsilon is the price of, in two or three words; the whole unit stands in the guarantee.
UNITS: Mapping[str, str] = MappingProxyType(
    {
        "class-sums": "one connection",
        "links": "one connection",
        GUESSES: "one guess",
        COUNTEREXAMPLE: "features and label",
    }
)
#: How many parts of the columns and connections the label holder has, and the other organisation.
SHARES = (1.0, 3.0)
_TARGETS = 300  # nodes whose pairs are attacked
_EPOCHS = 200  # of the plain network


@dataclass(frozen=True)
class Way:
    """One way to trust.

    Attributes:
        control, control_accuracy: the best that does without the private data in question. lift: accuracy minus it.
        unprotected: what an attack finds where nothing is protected. protected: what the same attack finds here.
    """

    trust: str
    method: str
    accuracy: Interval
    control: str
    control_accuracy: Interval
    lift: Interval
    guarantee: Guarantee
    unprotected: AttackResult
    protected: AttackResult

    @property
    def unit(self) -> str:
        """What epsilon is the price of, in short."""
        return UNITS[self.method]

    def to_dict(self) -> dict[str, Any]:
        """Return the value as JSON types."""
        return {
            "trust": self.trust,
            "method": self.method,
            "accuracy": self.accuracy.to_dict(),
            "control": {"name": self.control, **self.control_accuracy.to_dict()},
            "lift": self.lift.to_dict(),
            "guarantee": self.guarantee.to_dict(),
            "attack": {"unprotected": self.unprotected.to_dict(), "protected": self.protected.to_dict()},
        }


@dataclass(frozen=True)
class Story:
    """All ways on one graph: the three kinds of trust, then the counterexample.

    Attributes:
        plain: accuracy of a plain GCN, which protects nothing. seconds: that all of it took.
        alike: what similar answers tell of connections in the curator's model; its baseline saw none.
    """

    data: str
    nodes: int
    connections: int
    columns: int
    classes: int
    seed: int
    plain: Interval
    ways: tuple[Way, ...]
    alike: AttackResult
    seconds: float

    def to_dict(self) -> dict[str, Any]:
        """Return the value as JSON types."""
        plain = ("data", "nodes", "connections", "columns", "classes", "seed", "seconds")
        return {
            **{name: getattr(self, name) for name in plain},
            "unprotected": self.plain.to_dict(),
            "ways": [way.to_dict() for way in self.ways],
            "similar_answers": self.alike.to_dict(),
        }


def tell(graph: Graph, *, randomness: Randomness, seed: int = 0, progress: ProgressCallback | None = None) -> Story:
    """Train and attack everything on one graph. Raises InputError for a graph on which a method cannot be trained.

    Args:
        graph: undirected, n nodes with one label each.
        randomness: of all privacy noise. seed: of splits, weights and the attackers' draws.
    """
    if graph.schema.directed:
        raise InputError("the demo needs undirected connections", where=graph.schema.name)
    start = time.perf_counter()
    stage = _Stage(graph, randomness, seed, progress)
    plain = stage.plain()
    # Once for all ways: what a plain network shows does not depend on whom one trusts.
    connected, rebuilt = (stage.attacked(name, plain, noiseless=True) for name in ("linkteller", "reconstruction"))
    curator, sums = stage.way("a curator", "class-sums", connected)
    nobody, _ = stage.way("nobody", "links", connected)
    organisations = stage.federation()
    counterexample, _ = stage.way("nobody", COUNTEREXAMPLE, rebuilt)
    return Story(
        data=graph.schema.name,
        nodes=int(graph.num_nodes),
        connections=int(graph.edge_index.shape[1]) // 2,
        columns=graph.schema.dimension,
        classes=len(graph.schema.classes),
        seed=seed,
        plain=interval([hits(plain.predict_proba(), graph, stage.split)]),
        ways=(curator, nobody, organisations, counterexample),
        alike=stage.attacked("link-stealing", sums),
        seconds=time.perf_counter() - start,
    )


class _Stage:
    """The graph, who trains on it, and where noise comes from: the same for all ways."""

    def __init__(self, graph: Graph, randomness: Randomness, seed: int, progress: ProgressCallback | None) -> None:
        self.graph, self.randomness, self.seed, self.progress = graph, randomness, seed, progress
        # That of the first repeat of `experiment.run`: rows differ by trust, not by who is tested or attacked.
        self.split = experiment.split_of(graph, "random", seed)

    def plain(self) -> Any:
        """Return a fitted GCN that protects nothing."""
        self._say("a network that protects nothing")
        network = baseline("gcn", epochs=_EPOCHS, seed=self.seed)
        return network.fit(self.graph, split=self.split, randomness=self.randomness)

    def way(self, trust: str, method: str, unprotected: AttackResult) -> tuple[Way, Any]:
        """Return one way and its fitted method, attacked as what was `unprotected`."""
        # Rivals and ceilings would take most of the minute, and say nothing of what trust buys.
        options: dict[str, Any] = {"settings": BUDGETS[method], "seed": self.seed, "comparisons": False}
        result = experiment.run(method, self.graph, randomness=self.randomness, progress=self.progress, **options)
        scores = result.scores
        if scores.best_control is None or scores.lift is None:
            raise InputError("no control can be trained", where=f"{method} on {self.graph.schema.name}")
        self._say(f"attack {unprotected.name} on {method}")
        way = Way(
            trust,
            method,
            scores.accuracy,
            scores.best_control,
            scores.controls[scores.best_control],
            scores.lift,
            result.privacy.guarantee,
            unprotected,
            protected=self.attacked(unprotected.name, result.model),
        )
        return way, result.model

    def attacked(self, name: str, method: Any, *, noiseless: bool = False) -> AttackResult:
        """Return what an attack finds in a fitted method, whose features may be shown as they are."""
        common: dict[str, Any] = {"nodes": _TARGETS, "seed": self.seed, "noiseless": noiseless}
        return attack(name, Target(method, self.graph, self.graph, self.split, None, self.randomness, **common))

    def federation(self) -> Way:
        """Return the way of two organisations: the label holder alone is the control."""
        self._say("two organisations")
        members, holdings = partition_graph(self.graph, self.split, SHARES, seed=self.seed)
        chosen: dict[str, Any] = {"mode": GUESSES, "hops": 2, **BUDGETS[GUESSES]}
        setting = Setting.of(members, len(self.graph.schema.classes), **chosen)
        name, options = "feature-recovery", {"randomness": self.randomness, "seed": self.seed}
        results: list[AttackResult] = []
        # Also the run without protection is attacked in simulation: no organisation would be asked to open its layer.
        for unprotected in (True, False):
            run = simulated(setting, holdings, unprotected=unprotected, name=name, **options)  # type: ignore[arg-type]
            results.append(attack_federation(name, run, nodes=_TARGETS, seed=self.seed, unprotected=unprotected))
        together, alone = _right(head_of(run.holdings))
        return Way(
            "organisations",
            GUESSES,
            interval([together]),
            "own data alone",
            interval([alone]),
            interval([together - alone], difference=True),
            guarantee_of(setting, void=self.randomness.void),
            *results,
        )

    def _say(self, stage: str) -> None:
        if self.progress is not None:
            self.progress(Progress(0, 0, stage))


def _right(head: LabelHead) -> tuple[np.ndarray, np.ndarray]:
    """Return for each test node whether the federation's answer is right, and the label holder's own: 1 or 0."""
    if head.predictions is None or head.alone is None:
        raise InputError("no round was finished", where="federation")
    answers = (head.predictions, head.alone)
    together, alone = (
        (probabilities.argmax(dim=1) == head.labels)[head.test].double().numpy() for probabilities in answers
    )
    return together, alone
