"""Solitude's tables: which run stands for which figure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from graphveil.privacy.accounting.printed import rounded_up
from graphveil.reproduction.exhibit import Entry, Published, figures_of

_FIGURES = figures_of("solitude")
MODELS = ("sage", "gcn")
#: What tells the three ways to read the same reports apart.
_READINGS: Mapping[str, Mapping[str, Any]] = {
    "base": {"denoiser": "none", "steps_x": 0},
    "lpgnn": {"denoiser": "none", "steps_x": 4},
    "solitude": {**_FIGURES["calibration"], "steps_x": 4},
}


def _entry(row: str, data: str, model: str, reading: str, epsilons: tuple[float, float], **more: Any) -> Entry:
    """Return an entry at (epsilon_x, epsilon_a); both ends of a relationship report it, as in the paper."""
    epsilon_x, epsilon_a = epsilons
    used = {**_FIGURES["settings"], "model": model, **_READINGS[reading]}
    used |= {"epsilon_x": epsilon_x, "epsilon_a": epsilon_a}
    claimed = f"{rounded_up(epsilon_x)} + {rounded_up(epsilon_a)} a list"
    return Entry(row, data, "solitude", used, claimed=claimed, **more)


def _readings() -> Iterator[Entry]:
    for data, epsilons in _FIGURES["epsilons"].items():
        for model in MODELS:
            for reading in _READINGS:
                figures = _FIGURES["accuracy"][data][model][reading].split()
                for epsilon_a, figure in zip(epsilons, figures, strict=True):
                    row = f"{model} {reading} eps_a={rounded_up(epsilon_a)}"
                    yield _entry(row, data, model, reading, (1.0, epsilon_a), published=Published.read(figure))


def _as_reported() -> Iterator[Entry]:
    # The paper prints the rows "base" of GraphSAGE a second time, without the last epsilon.
    for entry in _readings():
        if entry.row.startswith("sage base") and entry.data != "lastfm" and entry.settings["epsilon_a"] < 8:
            yield entry


def _budgets() -> Iterator[Entry]:
    for data, epsilons in _FIGURES["epsilons"].items():
        for model in MODELS:
            for epsilon_x in (0.5, 1.0, 2.0):
                for epsilon_a in epsilons:
                    row = f"{model} eps_x={rounded_up(epsilon_x)} eps_a={rounded_up(epsilon_a)}"
                    yield _entry(row, data, model, "solitude", (epsilon_x, epsilon_a))


def _label_rates() -> Iterator[Entry]:
    for data, epsilons in _FIGURES["epsilons"].items():
        for model in MODELS:
            for rate in _FIGURES["label-rates"]:
                row = f"{model} {rate}% labelled"
                # Who is not drawn to train stays in the graph: features and lists are collected from everybody.
                yield _entry(row, data, model, "solitude", (1.0, epsilons[-1]), split=f"{rate}/25/25")


ENTRIES = {"table2": _as_reported, "table3": _readings, "figure4": _budgets, "figure5": _label_rates}
