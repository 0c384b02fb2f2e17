"""Edges are read block by block from a file: the same graph and the same refusals as from a table in memory."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import cast

import numpy as np
import polars
import pytest

from graphveil.engine import Blocks
from graphveil.errors import DataError
from graphveil.graphs import load_parts
from graphveil.graphs.declared.id_lookup import HashLookup, PeopleIds, find_nodes
from graphveil.graphs.tables.long_csv import LongCsv
from graphveil.graphs.tables.tables import Table, open_table, read_table
from tests.graphs.made import folder

TOML = 'range = [0, 1]\nclasses = ["a", "b"]\nprivate = []\ndirected = true\n'
KINDS = [polars.Int64, polars.String, polars.Float64, polars.UInt64, polars.Int8]


def written(path: Path, ids: polars.Series) -> Table:
    """A parquet file of one column, unread."""
    polars.DataFrame({"source": ids}).write_parquet(path)
    return open_table(path)


@pytest.mark.parametrize(("ours", "theirs"), [*zip(KINDS, KINDS[1:] + KINDS[:1], strict=True), (polars.Int64,) * 2])
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


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        ({1_500_000: None, 2: 9}, "row 1500001: source is missing"),
        ({1_500_000: 8, 1_200_000: 9}, "row 1200001: source 9 is not an id in the nodes file"),
        ({1_100_000: -(2**63)}, f"row 1100001: source {-(2**63)} is not an id"),
    ],
)
@pytest.mark.parametrize("kind", [polars.Int64, polars.String])
def test_a_bad_row_is_named_by_its_number_in_the_file(
    tmp_path: Path, spoil: dict[int, int | None], message: str, kind: polars.DataType
) -> None:
    ids = polars.Series(np.arange(1_600_000) % 5)
    bad = ids.scatter(list(spoil), list(spoil.values())).cast(kind)
    with pytest.raises(DataError) as raised:
        find_nodes(written(tmp_path / "edges.parquet", bad), "source", PeopleIds(polars.Series(range(5))))
    assert message in str(raised.value).replace("'", "")


def test_a_file_that_shrinks_meanwhile_is_refused(tmp_path: Path) -> None:
    table = written(tmp_path / "edges.parquet", polars.Series([1, 2, 3]))
    written(tmp_path / "edges.parquet", polars.Series([1]))
    with pytest.raises(DataError, match=r"became shorter while it was read|cannot be read"):
        table.part("source", next(iter(Blocks(3, 3))))


CSVS = {
    "plain": "a,b\n" + "".join(f"{n},{n * n}\n" for n in range(11)),
    "no end of its last line": "a,b\n" + "\n".join(["1,2", "3,4", "5,6", "7,8"]),
    "ends of two characters": "a,b\r\n1,2\r\n\r\n3,4\r\n\r\n",
    "empty lines": "a,b\n\n\n1,2\n\n\n\n3,\n,\n\n\n\n\n",
    "nothing but empty lines": "a,b\n\n\n,\n\n",
    "a header alone": "a,b\n",
    "a mark of UTF-8, and texts": "\ufeffa,b\nä,b\n\u4e16,\u754c\n,ö\n1,2\n",
    "one column": "a\n1\n\n2\n3\n\n",
    "short lines": "a,b,c\n1\n1,2\n1,2,3\n4\n",
}


@pytest.mark.parametrize("text", CSVS.values(), ids=list(CSVS))
def test_a_csv_in_parts_is_the_csv(tmp_path: Path, text: str) -> None:
    path = tmp_path / "edges.csv"
    path.write_bytes(text.encode())
    whole = read_table(path)
    for lines in (1, 2, 3, 7, 20):
        parts = LongCsv.of(path, lines)
        assert parts is not None
        table = Table(str(path), parts, path)
        assert table.names == whole.names and table.rows == whole.rows
        for name in whole.names:
            assert table.column(name).to_list() == whole.column(name).to_list()
            for block in Blocks(whole.rows, 2):
                assert table.part(name, block).to_list() == whole.part(name, block).to_list()


@pytest.mark.parametrize("text", ['a,b\n1,"2\n3"\n', "a,b\n1,\0\n", "\na,b\n1,2\n"])
def test_a_csv_whose_lines_may_be_no_rows_is_read_whole(tmp_path: Path, text: str) -> None:
    (tmp_path / "edges.csv").write_text(text)
    assert LongCsv.of(tmp_path / "edges.csv") is None


@pytest.mark.parametrize("wrong", [b"1,2,3", b"1,\xff", b"1,7", b"1"])
def test_a_long_csv_is_refused_as_a_short_one_is(tmp_path: Path, wrong: bytes) -> None:
    path, ids, messages = tmp_path / "edges.csv", PeopleIds(polars.Series([1, 2])), []
    path.write_bytes(b"a,b\n" + b"1,2\n" * 30 + wrong + b"\n1,2\n")
    for in_memory in (0, None):
        with pytest.raises(DataError) as raised:
            find_nodes(open_table(path, in_memory=in_memory), "b", ids)
        messages.append(str(raised.value))
    assert messages[0] == messages[1] and "line 32" in messages[0]


PEAK = r"""
import os, re, sys
from pathlib import Path
os.environ["POLARS_MAX_THREADS"] = "1"
import polars
from graphveil.graphs.declared.id_lookup import PeopleIds, find_nodes
from graphveil.graphs.tables.tables import open_table
known = PeopleIds(polars.Series([1]))
peak = lambda: int(re.search(r"VmHWM:\s+(\d+)", Path("/proc/self/status").read_text())[1])
before = peak()
find_nodes(open_table(Path(sys.argv[1]), in_memory=0 if sys.argv[2] == "parts" else None), "b", known)
print(peak() - before)
"""


@pytest.mark.slow  # two processes read 96 MB
@pytest.mark.skipif(sys.platform != "linux", reason="peaks are kilobytes on Linux")
def test_a_long_csv_is_never_held_whole(tmp_path: Path) -> None:
    """4 million lines of 24 characters, which are 96 MB as they are and more as texts."""
    path = tmp_path / "edges.csv"
    path.write_bytes(b"a,b\n" + b"123456789012345678901,1\n" * (4 << 20))
    parts, whole = (
        int(subprocess.run([sys.executable, "-c", PEAK, path, how], capture_output=True, check=True).stdout)
        for how in ("parts", "whole")
    )
    assert parts < path.stat().st_size / 1024 < whole


# ---- ids are found where they stand, whatever they are made of, and what is no id is not found ----


def texts(kind: str, people: int) -> list[str]:
    """Distinct ids in no order."""
    rng = np.random.default_rng(4)
    if kind == "rows":
        return [str(number) for number in rng.permutation(people)]
    numbers = rng.choice(10**15, people, replace=False)
    return [f"{kind}{number}" for number in numbers]


@pytest.mark.parametrize("kind", ["rows", "0", "someone with a long name "])
@pytest.mark.parametrize("people", [1, 128, 5_000])
def test_every_id_is_found_and_no_other(kind: str, people: int) -> None:
    ids = texts(kind, people)
    nodes = HashLookup.of(polars.Series(ids))
    positions = np.random.default_rng(people).integers(0, people, 300_000)
    result = nodes.find(polars.Series(ids).gather(positions))
    assert np.array_equal(result, positions)
    # The same number written otherwise is somebody else.
    strangers = [f"0{text}" for text in ids] + [f"{text} " for text in ids] + [""]
    assert (nodes.find(polars.Series(strangers)) == -1).all()


class Alike:
    """Texts that have one first hash, or few, and each a second one of its own."""

    dtype = polars.String

    def __init__(self, numbers: list[int], alike: int) -> None:
        self.numbers, self.alike = numbers, alike

    def __len__(self) -> int:
        return len(self.numbers)

    def __getitem__(self, rows: slice) -> Alike:
        return Alike(self.numbers[rows], self.alike)

    def hash(self, number: int) -> polars.Series:
        return polars.Series([key if number else key % self.alike for key in self.numbers], dtype=polars.UInt64)


@pytest.mark.parametrize("alike", [1, 40])
def test_ids_of_one_hash_are_told_apart_by_the_other(alike: int) -> None:
    nodes = HashLookup.of(cast(polars.Series, Alike(list(range(7, 57)), alike)))
    result = nodes.find(cast(polars.Series, Alike([56, 7, 20, 57, 6], alike)))
    assert result.tolist() == [49, 0, 13, -1, -1]
