"""What a method buys in given worlds: accuracy, and lift over its controls, as bands over worlds and draws of noise."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from graphveil.methods.advise.worlds import World
from graphveil.methods.base.cost import settle_threads
from graphveil.methods.local.controls import hits
from graphveil.methods.registry import advised, build_method
from graphveil.methods.runs.experiment import split_of
from graphveil.methods.runs.intervals import Interval, interval
from graphveil.privacy import SeededRandomness
from graphveil.runtime.progress import Progress, ProgressCallback


@dataclass(frozen=True)
class Band:
    """From the least to the greatest that may be expected, as shares: ends of the 95% intervals of all rehearsals."""

    low: float
    high: float

    @property
    def points(self) -> str:
        """The band in points."""
        return f"{100 * self.low:+.1f} to {100 * self.high:+.1f}"

    def to_dict(self) -> dict[str, float]:
        """Return the band as JSON types."""
        return {"low": self.low, "high": self.high}


@dataclass(frozen=True)
class Trial:
    """One rehearsal: in which world, what accuracy, and what lift over the best control, and which that was."""

    world: str
    accuracy: Interval
    lift: Interval
    control: str


@dataclass(frozen=True)
class Rehearsal:
    """What one method and one epsilon brought in all worlds."""

    trials: tuple[Trial, ...]

    def band(self, what: str) -> Band:
        """Return the band of "lift" or "accuracy"."""
        bands = [getattr(trial, what) for trial in self.trials]
        return Band(min(band.low for band in bands), max(band.high for band in bands))


def rehearse(
    name: str,
    settings: Mapping[str, Any],
    worlds: Sequence[World],
    over: tuple[str, ...],
    *,
    seeds: Sequence[int] = (0,),
    progress: ProgressCallback | None = None,
) -> Rehearsal:
    """Train a method and its controls in every world.

    Args:
        name, settings: the method.
        worlds: made or public graphs; their noise is seeded, since nobody is in them whom it could hide.
        over: the controls that count; empty: all of them.
        seeds: of splits and noise, one rehearsal each.
        progress: hears of each rehearsal.
    """
    trials = []
    for number, (world, seed) in enumerate((world, seed) for world in worlds for seed in seeds):
        if progress is not None:
            progress(Progress(number, len(worlds) * len(seeds), f"rehearsing {name}{_at(settings)}"))
        # Worlds are small: on a busy machine a second thread makes them slower by far.
        settle_threads(world.graph)
        trials.append(_rehearse(name, settings, world, over, seed))
    return Rehearsal(tuple(trials))


def _at(settings: Mapping[str, Any]) -> str:
    spent = [value for key, value in settings.items() if key in ("epsilon", "epsilon_a", "epsilon_x", "epsilon_y")]
    finite = [value for value in spent if value is not None and math.isfinite(value)]
    return f" at epsilon {finite[-1]:g}" if finite else ""


def _rehearse(name: str, settings: Mapping[str, Any], world: World, over: tuple[str, ...], seed: int) -> Trial:
    graph, classes = world.graph, len(world.graph.schema.classes)
    split = split_of(graph, "random", seed)
    method = build_method(name, settings, classes, seed=seed)
    method.fit(graph, split=split, randomness=SeededRandomness(seed))
    mine = hits(method.predict_proba(), graph, split)
    family = advised(name, settings, classes).method.load_family()
    # Other noise than the method's: a control that shared it would be better than any that could be had.
    controls = family.controls(method, graph, split, randomness=SeededRandomness(1_000 + seed))
    rows: dict[str, np.ndarray] = {key: train() for key, train in controls.items() if not over or key in over}
    # The best is chosen by the figures it is compared with, so the lift errs on the low side.
    best = max(rows, key=lambda key: rows[key].mean())
    lift = interval([mine - rows[best]], difference=True)
    return Trial(world.name, interval([mine]), lift, best)
