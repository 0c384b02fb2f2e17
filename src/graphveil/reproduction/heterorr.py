"""HeteroRR's figures: which run stands for which curve."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from graphveil.privacy.accounting.printed import rounded_up
from graphveil.reproduction.exhibit import Entry, figures_of

_FIGURES = figures_of("heterorr")
INF = float("inf")


def _entry(row: str, budgets: tuple[float, float], share: float, **chosen: Any) -> Entry:
    """Return an entry at (epsilon_x, epsilon_a) with a share of private edges; the paper gives curves, no numbers."""
    epsilon_x, epsilon_a = budgets
    used = {**_FIGURES["settings"], "epsilon_x": epsilon_x, "epsilon_a": epsilon_a, **chosen}
    spent = " + ".join(rounded_up(epsilon) for epsilon in budgets if epsilon < INF)
    return Entry(row, "ppi", "heterorr", used, claimed=spent, private_share=share)


def _features() -> Iterator[Entry]:
    for epsilon in _FIGURES["epsilons"]:
        for mechanism in _FIGURES["mechanisms"]:
            yield _entry(f"{mechanism} eps={rounded_up(epsilon)}", (epsilon, INF), 0.0, features=mechanism)


def _edges() -> Iterator[Entry]:
    for share in _FIGURES["shares"]:
        for epsilon in _FIGURES["epsilons"]:
            for method in _FIGURES["edges"]:
                yield _entry(f"{method} rho={share:g} eps={rounded_up(epsilon)}", (INF, epsilon), share, edges=method)


def _both() -> Iterator[Entry]:
    for share in _FIGURES["shares"]:
        for epsilon in _FIGURES["epsilons"]:
            for features, edges in (("feature-rr", "mcmc"), ("three-outputs", "lap-graph")):
                row = f"{features}+{edges} rho={share:g} eps={rounded_up(epsilon)}"
                yield _entry(row, (epsilon, epsilon), share, features=features, edges=edges)


ENTRIES = {"figure6": _features, "figure7": _edges, "figure11": _both}
