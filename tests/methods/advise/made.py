"""Parts of a graph whose private ones must not be read."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from graphveil.graphs.named.social import social_parts
from graphveil.graphs.value.parts import GraphParts


class Sealed:
    """An array of which the shape alone may be known, and of labels also who has one."""

    def __init__(self, values: Any, *, labelled: bool = False) -> None:
        self.shape, self.ndim = values.shape, len(values.shape)
        self._labelled = np.asarray(values >= 0) if labelled else None

    def __ge__(self, other: int) -> np.ndarray:
        assert other == 0 and self._labelled is not None, "a private part was read"
        return self._labelled

    def __array__(self, *_: object, **__: object) -> np.ndarray:
        raise AssertionError("a private part was read")

    def __getattr__(self, name: str) -> Any:
        raise AssertionError(f"a private part was read: {name}")


def parts(*private: str, nodes: int = 300, classes: int = 3, degree: float = 8.0) -> GraphParts:
    """A small made graph of which some parts are declared private."""
    people = social_parts(nodes, degree, 12, classes, apps=4, seed=3)
    labels = people.y.copy()
    labels[::10] = -1
    return replace(people, y=labels, schema=replace(people.schema, private=private))


def sealed(graph: GraphParts, *hidden: str) -> GraphParts:
    """The same parts; those that are hidden fail when they are read."""
    names = {"features": "x", "labels": "y", "edges": "edge_index"}
    closed: Any = {names[part]: Sealed(getattr(graph, names[part]), labelled=part == "labels") for part in hidden}
    return replace(graph, **closed)
