"""Edges are read block by block from parquet: the same graph and the same refusals as from a table in memory."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars
import pytest

from graphveil.engine import Blocks
from graphveil.errors import DataError
from graphveil.graphs import load_parts
from graphveil.graphs.id_places import KnownIds, find_places
from graphveil.graphs.tables import Table, open_table
from tests.graphs.made import folder

TOML = 'range = [0, 1]\nclasses = ["a", "b"]\nprivate = []\ndirected = true\n'
KINDS = [polars.Int64, polars.String, polars.Float64, polars.UInt64, polars.Int8]


def written(path: Path, ids: polars.Series) -> Table:
    """A parquet file of one column, unread."""
    polars.DataFrame({"source": ids}).write_parquet(path)
    return open_table(path)


@pytest.mark.parametrize("theirs", KINDS)
@pytest.mark.parametrize("ours", KINDS)
def test_ids_are_the_same_whatever_they_are_stored_as(
    tmp_path: Path, ours: polars.DataType, theirs: polars.DataType
) -> None:
    nodes = polars.DataFrame({"id": polars.Series([7, 3, 11]).cast(ours), "f": [0.5, 0.5, 0.5]})
    edges = polars.Series([11, 7, 3, 7]).cast(theirs)
    own = folder(tmp_path / "own", nodes__csv=None, edges__csv=None, graph__toml=TOML)
    nodes.write_parquet(own / "nodes.parquet")
    polars.DataFrame({"source": edges, "target": edges.reverse()}).write_parquet(own / "edges.parquet")
    parts = load_parts(own)
    assert parts.ids is not None and list(parts.ids) == ["7", "3", "11"]
    assert parts.edge_index.tolist() == [[0, 0, 1, 2], [1, 2, 0, 0]]


def test_numbers_far_apart_and_close_together_are_found_alike(tmp_path: Path) -> None:
    for spread, step in ((1, 1), (-3, 1), (2**40, 5)):
        ids = np.random.default_rng(step).permutation(3_000) * spread
        asked = np.random.default_rng(2).integers(0, len(ids), 50_000)
        table = written(tmp_path / "edges.parquet", polars.Series(ids[asked]))
        assert np.array_equal(find_places(table, "source", KnownIds(polars.Series(ids))), asked)


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        ({1_500_000: None, 2: 9}, "row 1500001: source is missing"),
        ({1_500_000: 8, 1_200_000: 9}, "row 1200001: source 9 is not an id in the nodes file"),
        ({1_100_000: -(2**63)}, f"row 1100001: source {-(2**63)} is not an id"),
    ],
)
@pytest.mark.parametrize("kind", [polars.Int64, polars.String])
def test_a_bad_row_is_named_by_its_number_in_the_file(
    tmp_path: Path, spoil: dict[int, int | None], said: str, kind: polars.DataType
) -> None:
    ids = polars.Series(np.arange(1_600_000) % 5)
    bad = ids.scatter(list(spoil), list(spoil.values())).cast(kind)
    with pytest.raises(DataError) as raised:
        find_places(written(tmp_path / "edges.parquet", bad), "source", KnownIds(polars.Series(range(5))))
    assert said in str(raised.value).replace("'", "")


def test_a_fraction_in_any_block_makes_all_floats_texts(tmp_path: Path) -> None:
    ids = polars.Series(np.zeros(1_200_000))
    known = KnownIds(polars.Series([0, 1]))
    assert not find_places(written(tmp_path / "whole.parquet", ids), "source", known).any()
    with pytest.raises(DataError, match=r"row 1: source 0.0 is not an id"):
        find_places(written(tmp_path / "edges.parquet", ids.scatter(1_199_999, 0.5)), "source", known)


def test_a_file_that_shrinks_meanwhile_is_refused(tmp_path: Path) -> None:
    table = written(tmp_path / "edges.parquet", polars.Series([1, 2, 3]))
    written(tmp_path / "edges.parquet", polars.Series([1]))
    with pytest.raises(DataError, match=r"became shorter while it was read|cannot be read"):
        table.part("source", next(iter(Blocks(3, 3))))
