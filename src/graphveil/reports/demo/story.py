"""One private graph under three kinds of trust, each with an attack, and a counterexample.

    a curator            class-sums, trained by somebody who may hold the graph      LinkTeller
    nobody               links, on neighbour lists that people randomize themselves  LinkTeller
    two organisations    a simulated federation that exchanges noisy guesses         recovery of the other's columns
    nobody, LPGNN        features that people randomize themselves                   reconstruction of those features

Each is an experiment as `graphveil train` or a federation runs it, and an attack as `graphveil attack` runs it.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from graphveil.attacks import AttackResult
from graphveil.attacks.catalogue import Target, attack
from graphveil.attacks.federation.catalogue import attack_federation, simulate_run
from graphveil.errors import InputError
from graphveil.federation.core.guarantees import guarantee_of
from graphveil.federation.core.setting import Setting
from graphveil.federation.modes.labels import LabelHead
from graphveil.federation.simulation import head_of, partition_graph
from graphveil.files.serial import to_json
from graphveil.files.writing import new_folder, write_bytes, write_text
from graphveil.graphs import Graph
from graphveil.methods.baselines.network import baseline
from graphveil.methods.local.controls import hits
from graphveil.methods.runs import experiment
from graphveil.methods.runs.intervals import Interval, interval
from graphveil.privacy import Guarantee, Randomness
from graphveil.privacy.accounting.printed import rounded_up
from graphveil.reports.base.figures import BLUE, GREY, INK, ORANGE, clean, png, svg
from graphveil.reports.base.text import percent, points
from graphveil.reports.base.words import lift_interval
from graphveil.runtime.progress import Progress, ProgressCallback

GUESSES = "guesses"
COUNTEREXAMPLE = "lpgnn"
#: Method -> its budget; that of the federation is for one guess.
BUDGETS: Mapping[str, Mapping[str, float]] = MappingProxyType(
    {
        "class-sums": {"epsilon": 1.0},
        "links": {"epsilon_a": 3.0},
        GUESSES: {"epsilon": 4.0},
        COUNTEREXAMPLE: {"epsilon_x": 1.0, "epsilon_y": 2.0},
    }
)
#: Method -> the protected unit in two or three words; the guarantee has the full unit.
UNITS: Mapping[str, str] = MappingProxyType(
    {
        "class-sums": "one connection",
        "links": "one connection",
        GUESSES: "one guess",
        COUNTEREXAMPLE: "features and label",
    }
)
#: The shares of columns and edges of the label holder, and of the other organisation.
SHARES = (1.0, 3.0)
_TARGETS = 300  # nodes whose pairs are attacked
_EPOCHS = 200  # of the plain network


@dataclass(frozen=True)
class Way:
    """A method under one kind of trust."""

    trust: str
    method: str
    accuracy: Interval
    control: str  # the best control without the private data in question
    control_accuracy: Interval
    lift: Interval  # accuracy minus that of the control
    guarantee: Guarantee
    unprotected: AttackResult  # of an attack on a plain network
    protected: AttackResult  # of the same attack on the method

    @property
    def unit(self) -> str:
        return UNITS[self.method]

    def to_dict(self) -> dict[str, Any]:
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
    """The result of the demo."""

    data: str
    nodes: int
    connections: int
    columns: int
    classes: int
    seed: int
    plain: Interval  # accuracy of a plain GCN, which protects nothing
    ways: tuple[Way, ...]  # the three kinds of trust, then the counterexample
    alike: AttackResult  # link stealing from similar predictions of the curator's model; its baseline has no edges
    seconds: float

    def to_dict(self) -> dict[str, Any]:
        plain = ("data", "nodes", "connections", "columns", "classes", "seed", "seconds")
        return {
            **{name: getattr(self, name) for name in plain},
            "unprotected": self.plain.to_dict(),
            "ways": [way.to_dict() for way in self.ways],
            "similar_answers": self.alike.to_dict(),
        }


def run_demo(graph: Graph, *, randomness: Randomness, seed: int = 0, progress: ProgressCallback | None = None) -> Story:
    """Train and attack everything on one graph; InputError for a graph on which a method cannot be trained.

    Args:
        graph: undirected, n nodes with one label each.
        randomness: of all privacy noise.
        seed: of splits, weights and the attackers' draws.
    """
    if graph.schema.directed:
        raise InputError("the demo needs undirected connections", where=graph.schema.name)
    start = time.perf_counter()
    stage = _Experiments(graph, randomness, seed, progress)
    plain = stage.plain()
    # Once for all ways: attacks on a plain network do not depend on the kind of trust.
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


class _Experiments:
    """Runs trainings and attacks on the same graph, split and source of noise."""

    def __init__(self, graph: Graph, randomness: Randomness, seed: int, progress: ProgressCallback | None) -> None:
        self.graph, self.randomness, self.seed, self.progress = graph, randomness, seed, progress
        # The split of the first repeat of `experiment.run`: all ways have the same test nodes and targets.
        self.split = experiment.split_of(graph, "random", seed)

    def plain(self) -> Any:
        """Return a fitted GCN that protects nothing."""
        self._say("a network that protects nothing")
        network = baseline("gcn", epochs=_EPOCHS, seed=self.seed)
        return network.fit(self.graph, split=self.split, randomness=self.randomness)

    def way(self, trust: str, method: str, unprotected: AttackResult) -> tuple[Way, Any]:
        """Return one way and its fitted method, with the attack of the result `unprotected`."""
        # Without rivals and ceilings, which would take most of the time.
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
        """Return the result of an attack on a fitted method; `noiseless`: its features have no noise."""
        common: dict[str, Any] = {"nodes": _TARGETS, "seed": self.seed, "noiseless": noiseless}
        return attack(name, Target(method, self.graph, self.graph, self.split, None, self.randomness, **common))

    def federation(self) -> Way:
        """Return the way of two organisations: the label holder alone is the control."""
        self._say("two organisations")
        members, holdings = partition_graph(self.graph, self.split, SHARES, seed=self.seed)
        settings: dict[str, Any] = {"mode": GUESSES, "hops": 2, **BUDGETS[GUESSES]}
        setting = Setting.of(members, len(self.graph.schema.classes), **settings)
        name, options = "feature-recovery", {"randomness": self.randomness, "seed": self.seed}
        results: list[AttackResult] = []
        # Both runs are simulated: no organisation would open its layer for the run without protection.
        for unprotected in (True, False):
            run = simulate_run(setting, holdings, unprotected=unprotected, name=name, **options)  # type: ignore[arg-type]
            results.append(attack_federation(name, run, nodes=_TARGETS, seed=self.seed, unprotected=unprotected))
        together, alone = _correct(head_of(run.holdings))
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


def _correct(head: LabelHead) -> tuple[np.ndarray, np.ndarray]:
    """Return for each test node whether the federation's prediction is correct, and the label holder's own: 1 or 0."""
    if head.predictions is None or head.alone is None:
        raise InputError("no round was finished", where="federation")
    answers = (head.predictions, head.alone)
    together, alone = (
        (probabilities.argmax(dim=1) == head.labels)[head.test].double().numpy() for probabilities in answers
    )
    return together, alone


#: The most bytes that the written folder takes.
ROOM = 2 << 20


def write(story: Story, path: Path) -> Mapping[str, Any]:
    """Write a story whole or not at all; return the output of `--json`.

    Args:
        path: of the folder; it must not exist, or be empty.
    """
    answer = {**story.to_dict(), "run": str(path), "picture": str(path / "demo.svg")}
    picture = figure(story)
    with new_folder(path) as folder:
        write_text(folder / "demo.json", to_json(answer, indent=2) + "\n")
        # On white, since dark ink is invisible on a dark page.
        write_text(folder / "demo.svg", svg(picture, background="white"))
        write_bytes(folder / "demo.png", png(picture))
    return answer


#: Attack -> what it is after.
SECRETS = {
    "linkteller": "connections",
    "feature-recovery": "the other's columns",
    "reconstruction": "a person's features",
}

_TRUST = {"a curator": "A trusted curator", "nobody": "Nobody is trusted", "organisations": "Two organisations"}


def figure(story: Story) -> Figure:
    """Two panels with a row for each way: accuracy and best control, and the AUC of the attack."""
    picture = Figure(figsize=(9.6, 4.0), layout="constrained", facecolor="white")
    scores, attacks = picture.subplots(1, 2, sharey=True, width_ratios=(3, 2))
    least = min(min(way.accuracy.low, way.control_accuracy.mean) for way in story.ways)
    for index, way in enumerate(story.ways):
        _draw_score(scores, index, way, middle=50 * (1 + least))
        _draw_attack(attacks, index, way)
    scores.set_yticks(range(len(story.ways)), [_row_name(way) for way in story.ways])
    scores.set(ylim=(len(story.ways) - 0.5, -0.7), xlim=(100 * least - 2, 101.5))
    _set_title(scores, "Accuracy, %, and the lift over the best control")
    attacks.axvline(0.5, color=GREY, linewidth=1, linestyle=":")
    attacks.set(xlim=(0.44, 1.06), xticks=(0.5, 0.75, 1.0))
    attacks.set_xticklabels(["0.5\nguessing", "0.75", "1\nall found"])
    _set_title(attacks, "What an attacker finds (AUC)")
    for axes in (scores, attacks):
        clean(axes, grid="x")
    for kind, axes in (((BLUE, "with the private data"), scores), ((BLUE, "protected"), attacks)):
        other = (GREY, "best control") if axes is scores else (ORANGE, "unprotected")
        for (colour, label), marker in ((kind, "o"), (other, "D")):
            axes.plot([], [], marker, color=colour, label=label)
        axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.14), ncols=2, frameon=False, labelcolor=INK)
    return picture


def _row_name(way: Way) -> str:
    head = "Counterexample" if way.method == COUNTEREXAMPLE else _TRUST[way.trust]
    return f"{head}\n{way.method}, epsilon {rounded_up(way.guarantee.epsilon)}\nfor {way.unit}"


def _draw_score(axes: Axes, row: int, way: Way, middle: float) -> None:
    """The control, the method with its interval, and the lift between them, written towards the middle of the axis."""
    control, mean = 100 * way.control_accuracy.mean, 100 * way.accuracy.mean
    axes.plot([control, mean], [row, row], color=GREY, linewidth=1.2)
    axes.plot(control, row, "D", color=GREY, markersize=7)
    spread = [[100 * (way.accuracy.mean - way.accuracy.low)], [100 * (way.accuracy.high - way.accuracy.mean)]]
    axes.errorbar(mean, row, xerr=spread, color=BLUE, marker="o", markersize=8, capsize=3.5)
    # At an end of the axis, the text would leave the panel or cover the names of the rows.
    lift = f"lift {points(way.lift.mean)} ({lift_interval(way.lift)})"
    axes.annotate(
        f"{percent(way.accuracy.mean)}   {lift}",
        (100 * (way.accuracy.high if mean > middle else way.accuracy.low), row),
        xytext=(0, 9),
        textcoords="offset points",
        ha="right" if mean > middle else "left",
        color=INK,
        fontsize=9,
    )


def _draw_attack(axes: Axes, row: int, way: Way) -> None:
    before, after = way.unprotected.auc.mean, way.protected.auc.mean
    axes.annotate("", (after, row), (before, row), arrowprops={"arrowstyle": "-|>", "color": GREY, "shrinkB": 5})
    axes.plot(before, row, "D", color=ORANGE, markersize=7)
    axes.plot(after, row, "o", color=BLUE, markersize=8)
    axes.annotate(
        f"{SECRETS[way.protected.name]}: {before:.2f} to {after:.2f}",
        ((before + after) / 2, row),
        xytext=(0, 9),
        textcoords="offset points",
        ha="center",
        color=INK,
        fontsize=9,
    )


def _set_title(axes: Axes, text: str) -> None:
    axes.set_title(text, fontsize=10.5, fontweight="bold", color=INK, loc="left")
