"""What was measured on public graphs: the lift in points, over the stronger control, by trust, graph and epsilon.

The figures are those of benchmarks/README.md ("The panel"; "Guesses by unit" for federations of two); a test compares.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True)
class Kind:
    """A graph of the panel: its family, people, mean number of contacts, and classes."""

    family: str
    nodes: int
    degree: float
    classes: int


GRAPHS: Final[Mapping[str, Kind]] = MappingProxyType(
    {
        "caltech": Kind("university", 769, 43, 6),
        "hopkins": Kind("university", 5180, 72, 6),
        "cornell": Kind("university", 18660, 85, 6),
        "reed-gender": Kind("gender", 962, 39, 2),
        "hopkins-gender": Kind("gender", 5180, 72, 2),
        "cora": Kind("citation", 2708, 4, 7),
        "cora-ml": Kind("citation", 2995, 5, 7),
        "citeseer": Kind("citation", 3327, 3, 6),
        "pubmed": Kind("citation", 19717, 4, 3),
        "twitch-es": Kind("twitch", 4648, 26, 2),
        "twitch-ru": Kind("twitch", 4385, 17, 2),
        "computers": Kind("shopping", 13752, 36, 10),
        "pages": Kind("pages", 22470, 15, 4),
        "ppi": Kind("protein", 14755, 30, 2),
        "digits": Kind("digits", 1797, 14, 10),
    }
)

_LIFTS: Final = {
    "curator": """
        caltech        1:+38.7  2:+45.2  4:+47.9  8:+47.0
        hopkins        1:+31.7  4:+34.0
        reed-gender    1:+0.1  2:+0.5  4:+1.1  8:+0.0
        cora           1:+0.8  2:+5.0  4:+9.1  8:+11.9
        cora-ml        1:+0.3  2:+2.6  4:+5.0  8:+6.2
        citeseer       1:-0.1  2:+0.5  4:+3.0  8:+3.4
        twitch-es      1:+1.3  2:+1.5  4:+1.8  8:+1.9
        twitch-ru      1:+0.0  2:+0.0  4:+0.0  8:+0.0
        hopkins-gender 1:+1.8  2:+1.9  4:+2.8  8:+2.9
        computers      1:+3.7  4:+5.6
        ppi            1:-0.3  4:+0.7
    """,
    "nodes": """
        hopkins        2:+2.9  4:+12.4  8:+20.0
        cora-ml        2:-1.8  4:-8.3  8:-1.3
        twitch-es      4:+0.3  8:-0.4
        cornell        2:+9.8  4:+18.0  8:+25.1
    """,
    "release": """
        caltech        1:+17.5  2:+22.3  4:+22.7  8:+22.7
        reed-gender    1:+0.0  2:+0.0  4:+0.0  8:+0.0
        cora           1:+2.1  2:+5.0  4:+8.7  8:+11.2
        cora-ml        1:+1.8  2:+2.9  4:+4.1  8:+3.8
        twitch-es      1:+0.4  2:+0.8  4:+1.4
        ppi            1:-0.3  4:+1.1
    """,
    "links": """
        caltech        2:+41.3  4:+47.2  8:+49.2
        hopkins        2:+27.5  4:+34.1  8:+36.8
        reed-gender    2:+8.2  4:+8.2  8:+9.6
        cora           2:+6.8  4:+10.9  8:+17.1
        cora-ml        2:+4.4  4:+5.6  8:+8.9
        citeseer       2:+4.6  4:+5.2  8:+7.4
        twitch-es      2:+5.6  4:+5.6  8:+6.4
        twitch-ru      2:+9.2  4:+9.2  8:+9.2
        hopkins-gender 2:+4.4  4:+6.7  8:+12.0
    """,
    "local": """
        caltech        1:+6.2  2:+13.3  4:+12.1
        hopkins        1:+2.7  2:+2.5  4:+2.4
        reed-gender    1:-1.1  2:+1.4  4:+2.5
        cora           1:+4.2  2:+1.3  4:+0.9
        cora-ml        1:+2.9  2:+1.8  4:+0.6
        citeseer       1:+0.8  2:+0.0  4:+0.9
        twitch-es      1:+0.2  2:+1.8  4:+2.0
        twitch-ru      1:+0.0  2:+0.0  4:+0.0
        hopkins-gender 1:+1.8  2:+1.5  4:+1.0
        computers      1:+4.0  2:+2.7  4:+2.4
        ppi            1:+0.5  4:+2.9
        pubmed         1:+1.5  4:+0.4
        pages          1:+1.6  4:+0.7
    """,
    "federation": """
        digits         2:+2.0  8:+7.4
        cora           2:+0.5  8:+5.1
        hopkins        2:+6.0  8:+14.3
        twitch-es      2:+0.0  8:-0.3
    """,
}


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
            f"{self.lift:+.1f} at {self.epsilon:g} on {self.graph} ({kind.family}; {kind.nodes:,} people, "
            f"{kind.degree:g} contacts, {kind.classes} classes)"
        )


def cells(table: str) -> tuple[Cell, ...]:
    """Return all that was measured under one heading of the panel.

    Args:
        table: "curator", "nodes", "release", "links", "local" or "federation".
    """
    found = []
    for line in _LIFTS[table].split("\n"):
        graph, *measured = line.split() or ("",)
        for pair in measured:
            epsilon, _, lift = pair.partition(":")
            found.append(Cell(graph, float(epsilon), float(lift)))
    return tuple(found)


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
