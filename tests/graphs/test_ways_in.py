"""Laws of every way in: drawn people come out the same by PyG, adjacency, NetworkX, tables and back."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import networkx
import numpy as np
import polars
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csc_matrix, csr_matrix

from graphveil.errors import DataError
from graphveil.graphs import Graph, from_adjacency, from_networkx, from_pyg, from_tables, to_pyg, validate
from graphveil.runtime.late import quiet

with quiet():
    from torch_geometric.data import Data

CLASSES = ("red", "green", "blue")
FACTS: dict[str, Any] = {"range": (-4, 4), "classes": list(CLASSES), "name": "drawn"}
PARTS = ("train", "val", "test")


@dataclass(frozen=True)
class People:
    """Drawn people as plain values.

    Args:
        rows: features, quarters between -4 and 4, which every number type holds exactly.
        labels: -1 where unknown.
        links: pairs as they are listed, with repetitions, loops and both directions.
        parts: of the split, 3 for none.
    """

    rows: tuple[tuple[float, ...], ...]
    labels: tuple[int, ...]
    links: tuple[tuple[int, int], ...]
    parts: tuple[int, ...]
    directed: bool

    @property
    def n(self) -> int:
        return len(self.rows)

    @property
    def x(self) -> np.ndarray:
        return np.array(self.rows, dtype=np.float32)

    @property
    def facts(self) -> dict[str, Any]:
        return {**FACTS, "directed": self.directed}

    def masks(self) -> dict[str, np.ndarray]:
        return {f"{name}_mask": np.array(self.parts) == place for place, name in enumerate(PARTS)}

    def ends(self) -> np.ndarray:
        return np.array(self.links, dtype=np.int64).reshape(-1, 2).T


@st.composite
def people(draw: st.DrawFn) -> People:
    n, d = draw(st.integers(1, 7)), draw(st.integers(1, 5))
    quarters = st.integers(-16, 16).map(lambda value: value / 4)
    node = st.integers(0, n - 1)
    return People(
        rows=tuple(draw(st.tuples(*[quarters] * d)) for _ in range(n)),
        labels=tuple(draw(st.lists(st.integers(-1, 2), min_size=n, max_size=n))),
        links=tuple(draw(st.lists(st.tuples(node, node), max_size=15))),
        parts=tuple(draw(st.lists(st.integers(0, 3), min_size=n, max_size=n))),
        directed=draw(st.booleans()),
    )


def as_pyg(people: People, kind: torch.dtype = torch.float32) -> Graph:
    masks = {name: torch.from_numpy(mask) for name, mask in people.masks().items()}
    edges = torch.from_numpy(people.ends())
    return from_pyg(
        Data(x=torch.from_numpy(people.x).to(kind), y=torch.tensor(people.labels), edge_index=edges, **masks),
        **people.facts,
    )


def as_adjacency(people: People, kind: Any = csr_matrix) -> Graph:
    table = np.zeros((people.n, people.n), dtype=np.int8)
    table[tuple(people.ends())] = 1
    names = [None if label < 0 else CLASSES[label] for label in people.labels]
    return from_adjacency(kind(table), people.x, names, masks=people.masks(), ids=range(people.n), **people.facts)


def as_tables(people: People) -> Graph:
    columns: dict[str, Any] = {"id": [f"p{node}" for node in range(people.n)]}
    columns |= {f"f{place}": people.x[:, place].tolist() for place in range(people.x.shape[1])}
    columns["label"] = [None if label < 0 else CLASSES[label] for label in people.labels]
    columns["split"] = [PARTS[part] if part < 3 else None for part in people.parts]
    links = {"source": [f"p{a}" for a, _ in people.links], "target": [f"p{b}" for _, b in people.links]}
    return from_tables(
        polars.DataFrame(columns, schema_overrides={"label": polars.String, "split": polars.String}),
        polars.DataFrame(links, schema={"source": polars.String, "target": polars.String}),
        split="split",
        **people.facts,
    )


def as_networkx(people: People) -> Graph:
    club: Any = networkx.MultiDiGraph() if people.directed else networkx.MultiGraph()
    for node in range(people.n):
        label = {} if people.labels[node] < 0 else {"label": CLASSES[people.labels[node]]}
        part = {} if people.parts[node] == 3 else {"part": PARTS[people.parts[node]]}
        club.add_node(node, x=list(people.rows[node]), **label, **part)
    club.add_edges_from(people.links)
    named = {} if all(label < 0 for label in people.labels) else {"label": "label"}
    split = {} if all(part == 3 for part in people.parts) else {"split": "part"}
    return from_networkx(club, **named, **split, **people.facts)


def plain(graph: Graph) -> dict[str, Any]:
    """All that a graph says, as values that compare."""
    validate(graph)
    masks = {name: getattr(graph, name, None) for name in ("train_mask", "val_mask", "test_mask")}
    return {
        "x": graph.x.to_dense().tolist(),
        "y": graph.y.tolist(),
        "edges": [tuple(edge) for edge in graph.edge_index.T.tolist()],
        "split": {name: mask.tolist() for name, mask in masks.items() if mask is not None and bool(mask.any())},
        "schema": (graph.schema.low, graph.schema.high, graph.schema.classes, graph.schema.directed),
    }


def wanted(people: People) -> dict[str, Any]:
    """The same, said by plain sets and lists."""
    linked = {(a, b) for a, b in people.links if a != b}
    linked |= set() if people.directed else {(b, a) for a, b in linked}
    return {
        "x": [list(row) for row in people.rows],
        "y": list(people.labels),
        "edges": sorted(linked),
        "split": {name: mask.tolist() for name, mask in people.masks().items() if mask.any()},
        "schema": (-4.0, 4.0, CLASSES, people.directed),
    }


@pytest.mark.slow  # long tables
@settings(max_examples=50, deadline=None)
@given(people())
@pytest.mark.parametrize("way", [as_pyg, as_adjacency, as_tables, as_networkx], ids=lambda way: way.__name__)
def test_people_come_out_as_they_went_in(way: Any, people: People) -> None:
    assert plain(way(people)) == wanted(people)


@settings(max_examples=40, deadline=None)
@given(
    people(),
    st.sampled_from([torch.float64, torch.float16, torch.bfloat16]),
    st.sampled_from([np.asarray, csc_matrix, lambda table: torch.from_numpy(table).to_sparse()]),
)
def test_types_of_numbers_and_forms_of_matrices_do_not_matter(people: People, kind: torch.dtype, form: Any) -> None:
    assert plain(as_pyg(people, kind)) == plain(as_adjacency(people, form)) == wanted(people)


@settings(max_examples=40, deadline=None)
@given(people())
def test_there_and_back_through_pyg_nothing_is_lost(people: People) -> None:
    graph = as_tables(people)
    copied = to_pyg(graph)
    assert copied.x.layout == torch.strided
    back = from_pyg(copied)
    assert plain(back) == plain(graph)
    assert list(back.ids) == list(graph.ids)
    assert replace(back.schema, notes=()) == replace(graph.schema, notes=())
    assert back.schema.notes[: len(graph.schema.notes)] == graph.schema.notes, "what was changed before stays said"


@settings(max_examples=40, deadline=None)
@given(people(), st.data())
def test_one_entry_out_of_range_is_refused_wherever_it_stands(people: People, data: st.DataObject) -> None:
    row, column = data.draw(st.integers(0, people.n - 1)), data.draw(st.integers(0, len(people.rows[0]) - 1))
    bad = data.draw(st.sampled_from([4.25, -4.25, float("nan"), float("inf")]))
    rows = [list(each) for each in people.rows]
    rows[row][column] = bad
    spoilt = People(tuple(map(tuple, rows)), people.labels, people.links, people.parts, people.directed)
    for way in (as_pyg, as_adjacency, as_tables, as_networkx):
        with pytest.raises(DataError):
            way(spoilt)


@settings(max_examples=30, deadline=None)
@given(people(), st.integers(1, 3))
def test_an_edge_to_nobody_is_refused_on_every_way_that_can_say_it(people: People, beyond: int) -> None:
    far = People(people.rows, people.labels, (*people.links, (0, people.n - 1 + beyond)), people.parts, people.directed)
    with pytest.raises(DataError, match="names a node that does not exist"):
        as_pyg(far)
    with pytest.raises(DataError, match="edges"):
        as_tables(far)
