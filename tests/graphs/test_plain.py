"""The graph value of commands: the same parts as PyG's, without PyG."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import Tensor

from graphveil import graphs
from graphveil.errors import DataError, InputError
from graphveil.graphs import load_graph, load_parts, social_graph, validate
from graphveil.graphs.releases.release import COUNTS as FILE
from graphveil.graphs.releases.release import read_counts, write_counts
from graphveil.graphs.value.release import NeighbourCounts
from graphveil.graphs.value.value import attributes_of, fingerprint, plain_graph


@pytest.mark.parametrize("name", ["digits", "docs/examples/town"])
def test_a_plain_graph_has_the_parts_of_a_pyg_graph(name: str) -> None:
    plain, whole = plain_graph(load_parts(name)), load_graph(name)
    assert set(plain.keys()) == {key for key in whole.keys() if whole.get(key) is not None}  # noqa: SIM118
    assert plain.num_nodes == whole.num_nodes
    assert plain.schema == whole.schema
    for part in ("x", "y", "edge_index"):
        mine, theirs = plain.get(part), whole.get(part)
        assert torch.equal(mine.to_dense(), theirs.to_dense())
    validate(plain)


def test_tensors_share_the_arrays_they_are_made_of() -> None:
    """No second copy of a large graph: what is written into an array is read in the tensor."""
    parts = load_parts("docs/examples/town")
    attributes = attributes_of(parts)
    for name in ("edge_index", "y"):
        array = getattr(parts, name)
        before = int(array.flat[0])
        array.flat[0] = before + 1
        assert int(torch.as_tensor(attributes[name]).flatten()[0]) == before + 1
        array.flat[0] = before


# ---- fingerprints ----


KEY = bytes(range(32))


def test_any_change_shows_and_nothing_else_does() -> None:
    for dimension in (20, 100):  # dense and sparse features
        start = social_graph(40, 6, dimension, 3, apps=4, seed=1)
        first = fingerprint(start, KEY)
        assert fingerprint(social_graph(40, 6, dimension, 3, apps=4, seed=1), KEY) == first
        assert len(first) == 32 and fingerprint(start, b"other") != first
        stored = start.x.values() if start.x.layout == torch.sparse_csr else start.x
        for tensor in (stored.view(-1), start.y, start.edge_index.view(-1)):
            old = tensor[3].clone()
            tensor[3] = old + 1
            assert fingerprint(start, KEY) != first
            tensor[3] = old
        assert fingerprint(start, KEY) == first
        start.edge_index = start.edge_index[:, 2:]
        assert fingerprint(start, KEY) != first


# ---- tables of noisy counts ----


GROUPS = torch.tensor([0, 2, 1, 1])
COUNTS = torch.tensor([[3, -1, 0], [1 << 40, 2, -(1 << 50)], [0, 0, 0], [7, 8, 9]])


def test_a_file_gives_back_what_was_written(tmp_path: Path) -> None:
    write_counts(NeighbourCounts(GROUPS, COUNTS), tmp_path)
    counts = read_counts(tmp_path)
    assert torch.equal(counts.groups, GROUPS) and torch.equal(counts.counts, COUNTS)


@pytest.mark.parametrize(
    ("groups", "counts", "message"),
    [
        (GROUPS[:3], COUNTS, "of 3 groups"),
        (GROUPS, COUNTS.double(), "of 4 groups"),
        (GROUPS, COUNTS[0], "of 4 groups"),
        (GROUPS + 1, COUNTS, "a group does not exist"),
        (GROUPS - 1, COUNTS, "a group does not exist"),
    ],
)
def test_tables_that_cannot_be_are_refused(groups: Tensor, counts: Tensor, message: str) -> None:
    with pytest.raises(InputError, match=message):
        NeighbourCounts(groups, counts)


def test_a_file_without_counts_is_refused(tmp_path: Path) -> None:
    import polars

    for content in (b"", b"PAR1garbagePAR1"):
        (tmp_path / FILE).write_bytes(content)
        with pytest.raises(DataError, match="holds no counts"):
            read_counts(tmp_path)
    # Of a few hundred bytes.
    polars.DataFrame({"group": polars.repeat(0, (1 << 27) + 1, dtype=polars.Boolean, eager=True)}).write_parquet(
        tmp_path / FILE
    )
    with pytest.raises(DataError, match="holds no counts") as refused:
        read_counts(tmp_path)
    assert "cells in a file of its size" in str(refused.value.__cause__)
    for columns in ({"group": [0, 1]}, {"group": [0, 5], "count_0": [1, 2]}, {"count_0": [1, 2], "other": [0, 0]}):
        polars.DataFrame(columns).write_parquet(tmp_path / FILE)
        with pytest.raises(DataError, match="holds no counts"):
            read_counts(tmp_path)


def test_a_public_name_is_no_module_of_the_room() -> None:
    """A module of the same name would replace the function once something imports it."""
    modules = {path.stem for path in Path(graphs.__file__).parent.glob("*.py")}
    assert not modules & set(graphs.__all__)


def test_a_plain_graph_is_asked_like_a_mapping_and_shows_no_content() -> None:
    graph = plain_graph(load_parts("social-100"))
    assert "x" in graph and "release" not in graph and graph.get("release") is None
    assert graph["y"] is graph.get("y") is graph.y and graph.get("release", "none") == "none"
    assert repr(graph) == f"PlainGraph({', '.join(graph.keys())})"
    with pytest.raises(KeyError):
        graph["release"]
