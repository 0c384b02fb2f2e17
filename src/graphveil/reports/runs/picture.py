"""The picture of a graph as a value, as a run folder keeps it: places of nodes, what is predicted, edges by kind."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final

FILE: Final = "picture.json"
#: Kinds of edges; the last three stand in the maker's own copy alone.
LINKED, PUBLIC, RELEASED = "linked", "public", "released"
BOTH, HIDDEN, MADE = "true and released", "true, not released", "released, not true"


@dataclass(frozen=True)
class Picture:
    """Nodes with their places and what may be told of them, and edges by kind.

    Attributes:
        caption: what is drawn, and who may see it; a sentence each. total: nodes of the whole graph, drawn or not.
        places: [n, 2] in [0, 1000]. predicted: class [n]. edges: kind -> pairs of nodes.
        labels: true class [n], -1 where unknown; parts: what each node does in the run [n]; covered: what of it is
            protected [n]; names [n]: numbers of rows. All four are empty in a copy that may be handed on.
    """

    caption: tuple[str, ...]
    total: int
    classes: tuple[str, ...]
    places: tuple[tuple[int, int], ...]
    predicted: tuple[int, ...]
    edges: Mapping[str, tuple[tuple[int, int], ...]]
    labels: tuple[int, ...] = ()
    parts: tuple[str, ...] = ()
    covered: tuple[str, ...] = ()
    names: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """The picture as JSON types."""
        content = asdict(self)
        return {"told": content.pop("caption"), **content}

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Picture:
        """The inverse of `to_dict`. Raises KeyError, TypeError or ValueError for a field of another kind."""
        nodes = len(content["places"])
        columns = {name: tuple(content[name]) for name in ("predicted", "labels", "parts", "covered", "names")}
        if any(len(column) not in (0, nodes) for column in columns.values()):
            raise ValueError("its columns have other lengths than its places")
        edges = {str(kind): tuple(_pair(pair, nodes) for pair in pairs) for kind, pairs in content["edges"].items()}
        return cls(
            caption=tuple(str(line) for line in content["told"]),
            total=int(content["total"]),
            classes=tuple(str(name) for name in content["classes"]),
            places=tuple(_pair(place, 1001) for place in content["places"]),
            predicted=tuple(int(label) for label in columns["predicted"]),
            edges=edges,
            labels=tuple(int(label) for label in columns["labels"]),
            parts=tuple(str(part) for part in columns["parts"]),
            covered=tuple(str(aspects) for aspects in columns["covered"]),
            names=tuple(str(name) for name in columns["names"]),
        )


def _pair(value: Any, below: int) -> tuple[int, int]:
    first, second = (int(end) for end in value)
    if not (0 <= first < below and 0 <= second < below):
        raise ValueError(f"{value} is no pair of numbers below {below}")
    return first, second
