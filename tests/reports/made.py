"""A finished run made by hand, so that reports and commands are tested without training anything."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import torch

from graphveil.attacks import AttackResult
from graphveil.methods.base.storage import save_method
from graphveil.methods.runs.intervals import Interval
from graphveil.methods.runs.result import Cost, Result, RunPrivacy, Scores
from graphveil.privacy import ProtectedUnit, assume, together
from graphveil.privacy.ledger import Ledger, Spend
from graphveil.privacy.statement.guarantee import Guarantee
from graphveil.privacy.statement.observer import SERVER_AND_MODEL
from graphveil.privacy.statement.unit import RELATIONSHIP, USER_FEATURES, USER_LABEL
from graphveil.reports.attacks.files import PLAIN
from graphveil.reports.base.card import HTML, MARKDOWN, pages
from graphveil.reports.base.record import RunRecord
from graphveil.reports.runs.card import run_card
from graphveil.reports.runs.picture import Picture


@dataclass
class Model:
    """Saves what a trained method saves, or fails on the way like a full disk."""

    guarantee: Guarantee
    ledger: Ledger
    fails: bool = False
    epsilon_relationship: float | None = None

    def keep(self, model: Path) -> None:
        """It keeps nothing of anybody."""

    def save(self, path: Path) -> Path:
        facts = {"guarantee": self.guarantee.to_dict(), "ledger": self.ledger.to_dict()}
        saved = save_method(path, "made", facts, {"weights": torch.zeros(2)})
        if self.fails:
            raise OSError(28, "No space left on device", str(path))
        return saved


#: What methods need to be told that have no default.
NEEDED: dict[str, dict[str, Any]] = {"answer-pool": {"question": "0>=0.5"}}
#: Where the figures of a result and a record are.
PLACES = {
    **dict.fromkeys(("accuracy", "controls", "ceiling", "best_control", "lift", "rivals", "best_rival"), "scores"),
    **dict.fromkeys(("guarantee", "ledger", "epsilon_relationship"), "privacy"),
    **dict.fromkeys(("seconds", "seconds_method", "peak_memory_mb"), "cost"),
}
Run = TypeVar("Run", Result, RunRecord)


def changed(run: Run, **changes: Any) -> Run:
    """A result or record with other figures, wherever they are."""
    for name, value in changes.items():
        place = PLACES.get(name)
        run = replace(
            run, **({name: value} if place is None else {place: replace(getattr(run, place), **{name: value})})
        )
    return run


def interval(mean: float, *, runs: int = 5, spread: float = 0.01, seed: int = 0) -> Interval:
    values = mean + spread * np.random.default_rng(seed).standard_normal(runs)
    half = 1.96 * float(values.std()) / math.sqrt(runs) if runs > 1 else 0.015
    middle = float(values.mean())
    return Interval(middle, middle - half, middle + half, tuple(float(v) for v in values))


RANGE = assume("feature-range-public", low=0, high=1, number="its 1433 features")


def guarantee(epsilon_x: float = 1.0, epsilon_y: float = 2.0, void: str | None = None) -> Guarantee:
    def part(unit: ProtectedUnit, epsilon: float) -> Guarantee:
        return Guarantee(
            unit=unit,
            relation="replace",
            model="local",
            epsilon=epsilon,
            delta=0.0,
            against=SERVER_AND_MODEL,
            assumes=(RANGE,),
            void=void,
        )

    parts = (part(USER_FEATURES, epsilon_x), part(USER_LABEL, epsilon_y))
    return replace(
        part(together([USER_FEATURES, USER_LABEL]), epsilon_x + epsilon_y),
        assumes=(RANGE, assume("topology-public")),
        parts=parts,
    )


def ledger(epsilon_x: float = 1.0, epsilon_y: float = 2.0) -> Ledger:
    return Ledger.open({"features": (epsilon_x, 0.0), "labels": (epsilon_y, 0.0)}).spend(
        Spend("feature reports", "features", "MultiBit", {"dimension": 1433, "m": 1}, epsilon_x),
        Spend("label reports", "labels", "RandomizedResponse", {"classes": 7}, epsilon_y),
    )


def history(repeats: int = 5, epochs: int = 60) -> list[list[dict[str, Any]]]:
    def row(repeat: int, epoch: int) -> dict[str, Any]:
        fall = math.exp(-epoch / 15) * (1 + 0.1 * repeat)
        return {
            "epoch": epoch,
            "loss": 0.6 + 1.3 * fall,
            "val_loss": 0.8 + 1.2 * fall + 0.003 * epoch,
            "val_accuracy_noisy": 0.5 - 0.3 * fall,
            "val_estimate": 0.82 - 0.5 * fall if epoch else math.nan,
        }

    return [[row(repeat, epoch) for epoch in range(epochs)] for repeat in range(repeats)]


def result(*, runs: int = 5, void: str | None = None, **changes: Any) -> Result:
    """A run of lpgnn on cora: 82 per cent, which random features reach as well."""
    promised, paid = guarantee(void=void), ledger()
    outcome = Result(
        method="lpgnn",
        built="lpgnn",
        data="cora",
        settings={"epsilon_x": 1.0, "epsilon_y": 2.0, "model": "sage", "epochs": 60, "x_hops": 16},
        scores=Scores(
            accuracy=interval(0.821, runs=runs, seed=2),
            controls={
                "random-features": interval(0.823, runs=runs, seed=2),
                "label-propagation": interval(0.799, runs=runs, seed=3),
                "no-edges": interval(0.31, runs=runs, seed=4),
                "public-only": interval(0.302, runs=runs, seed=5),
            },
            ceiling=interval(0.872, runs=runs, seed=6),
            best_control="random-features",
            lift=Interval(-0.002, -0.009, 0.005, (-0.002,) * runs),
        ),
        privacy=RunPrivacy(promised, paid),
        cost=Cost(seconds=12.3, seconds_method=1.7, peak_memory_mb=412.0),
        history=tuple(tuple(rows) for rows in history(runs)),
        model=None,
        notes=("Each repeat draws fresh noise.",),
    )
    outcome = changed(outcome, **changes)
    privacy = outcome.privacy
    return outcome if outcome.model is not None else replace(outcome, model=Model(privacy.guarantee, privacy.ledger))


def record(*, options: dict[str, Any] | None = None, **changes: Any) -> RunRecord:
    """The record of :func:`result`."""
    options = {"seed": 0, "repeats": 5, "device": "cpu"} if options is None else options
    run = RunRecord.from_result(result(**changes), options=options)
    return replace(run, created="2026-01-02T03:04:05+00:00", version="0.1.0")


def card_markdown(record: RunRecord) -> str:
    """The card of a run that nobody attacked."""
    return pages(run_card(record, {}))[MARKDOWN]


def card_html(record: RunRecord) -> str:
    """The same as a page."""
    return pages(run_card(record, {}))[HTML]


def beside_rivals(*, runs: int = 5, **changes: Any) -> dict[str, Any]:
    """What makes :func:`result` a run on private connections, compared with two others at the same price."""
    own = guarantee()
    links = replace(own.parts[0], unit=RELATIONSHIP, relation="add/remove", epsilon=4.0)
    whole = together([own.unit, RELATIONSHIP])
    return {
        "method": "solitude",
        "settings": {"epsilon_x": 1.0, "epsilon_a": 4.0, "epsilon_y": 2.0, "model": "gcn"},
        "guarantee": replace(own, unit=whole, epsilon=7.0, parts=(*own.parts, links)),
        "controls": {"no-edges": interval(0.71, runs=runs, seed=4), "random-graph": interval(0.31, runs=runs, seed=5)},
        "best_control": "no-edges",
        "lift": Interval(0.11, 0.10, 0.12, (0.11,) * runs),
        "rivals": {
            "blink-hybrid": interval(0.815, runs=runs, seed=7),
            "degree-preserving": interval(0.62, runs=runs, seed=8),
        },
        "best_rival": "blink-hybrid",
        "epsilon_relationship": 4.0,
        "runs": runs,
        **changes,
    }


def judged(auc: float, epsilon: float, limit: float | None) -> AttackResult:
    """What LinkTeller found, with a smooth curve."""
    score = Interval(auc, auc - 0.02, auc + 0.02, (auc,))
    places = np.linspace(0, 1, 60)
    curve = tuple(zip(places.tolist(), (places ** ((1 - auc) / auc)).tolist(), strict=True))
    note = "one relationship" if limit is not None else "epsilon is infinite"
    few = Interval(0.02, 0.0, 0.05, (0.02,))
    return AttackResult(
        "linkteller", "edges", score, score, few, limit, None, note, epsilon, 0.0, 0.52, "features", curve, 100, 100
    )


def attacks() -> dict[str, dict[str, AttackResult]]:
    """One attack on a run and on the network without protection."""
    return {"linkteller": {"solitude": judged(0.55, 4.0, 0.3), PLAIN: judged(0.93, math.inf, None)}}


def picture(*, own: bool = True) -> Picture:
    """Four people in a ring, two of them classified wrongly."""
    places, edges = ((0, 0), (1000, 0), (1000, 1000), (0, 1000)), ((0, 1), (1, 2), (2, 3), (0, 3))
    open_copy = Picture(("All 4 nodes are drawn.",), 4, ("a", "b"), places, (0, 0, 1, 1), {"public": edges})
    if not own:
        return open_copy
    kinds = {"true and released": edges[:2], "true, not released": edges[2:], "released, not true": ((0, 2),)}
    return replace(
        open_copy,
        labels=(1, 0, 1, 0),
        parts=("tests", "trains", "trains", "validates"),
        covered=("features", *["features, label"] * 3),
        names=("p0", "p1", "p2", "p3"),
        edges=kinds,
    )
