"""What was measured on public graphs, and which of them are like another: panel.toml holds the figures."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Final

from graphveil.privacy.accounting.printed import rounded_up


@dataclass(frozen=True)
class Kind:
    """A graph of the panel: its family, people, mean number of contacts, and classes."""

    family: str
    nodes: int
    degree: float
    classes: int


def _read() -> tuple[dict[str, Kind], dict[str, dict[str, dict[str, float]]]]:
    tables = tomllib.loads((Path(__file__).parent / "panel.toml").read_text(encoding="utf-8"))
    return {name: Kind(*facts) for name, facts in tables["graphs"].items()}, tables["lifts"]


_GRAPHS, _LIFTS = _read()
GRAPHS: Final[Mapping[str, Kind]] = MappingProxyType(_GRAPHS)


@dataclass(frozen=True)
class Cell:
    """A measured lift, in points, on a graph of the panel."""

    graph: str
    epsilon: float
    lift: float

    @property
    def sentence(self) -> str:
        """The measurement in words."""
        kind = GRAPHS[self.graph]
        return (
            f"{self.lift:+.1f} points at epsilon {rounded_up(self.epsilon)} on {self.graph} ({kind.family}; "
            f"{kind.nodes:,} people, {kind.degree:g} contacts, {kind.classes} classes)"
        )


def cells(table: str) -> tuple[Cell, ...]:
    """Return all that was measured under one heading of the panel.

    Args:
        table: "curator", "nodes", "release", "links", "local" or "federation".
    """
    return tuple(
        Cell(graph, float(epsilon), lift) for graph, lifts in _LIFTS[table].items() for epsilon, lift in lifts.items()
    )


def most_alike(
    table: str, epsilon: float, *, nodes: int, classes: int, degree: float | None, most: int = 3
) -> tuple[Cell, ...]:
    """Return what was measured on the graphs that are most like another, each at the nearest epsilon measured there.

    Graphs are alike whose people, contacts and classes are about as many (distances of their logarithms).

    Args:
        table: as of `cells`.
        epsilon: that is asked for.
        nodes, classes: of the graph.
        degree: contacts of a person, or None where that is not public: then it does not count.
        most: how many graphs.
    """
    nearest: dict[str, Cell] = {}
    for cell in cells(table):
        # Epsilons are compared as ratios: from 1 to 2 is as far as from 4 to 8.
        best = nearest.get(cell.graph)
        if best is None or abs(math.log(cell.epsilon / epsilon)) < abs(math.log(best.epsilon / epsilon)):
            nearest[cell.graph] = cell

    def distance(cell: Cell) -> float:
        kind = GRAPHS[cell.graph]
        # People count half: what a graph is like depends less on its size than on contacts and classes.
        apart = abs(math.log(kind.nodes / nodes)) / 2 + abs(math.log(kind.classes / classes))
        return apart + (0.0 if degree is None else abs(math.log(kind.degree / max(degree, 0.5))))

    return tuple(sorted(nearest.values(), key=distance)[:most])
