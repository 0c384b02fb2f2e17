"""Croissant metadata: valid to the standard's own library, which reads the same records, and silent about people."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars
import pytest
import torch

from graphveil.errors import DataError, InputError
from graphveil.graphs import load_graph, social_graph, write_folder, write_release
from graphveil.graphs.releases.croissant import FILE, Credit, as_day
from graphveil.graphs.releases.croissant_data import of_data
from graphveil.graphs.value.release import NeighbourCounts
from tests.graphs.test_release import GUARANTEE, RELEASE, published

# What the library's own libraries warn of is not ours.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")
FULL = Credit(
    license="https://creativecommons.org/licenses/by/4.0/",
    cite_as="@misc{clubs}",
    url="https://example.org/clubs",
    creator="The club",
    published="2026-01-31",
)
HOSTILE = ['=HYPERLINK("http://x","y")', "a/b#c?d", "</script><b>\x1b[31m"]


def read(file: Path) -> Any:
    """The data set as the standard's library sees it; it must find no error."""
    # Imported here: it takes two seconds.
    import mlcroissant

    dataset = mlcroissant.Dataset(jsonld=str(file))
    assert not dataset.metadata.ctx.issues.errors
    return dataset


def warnings(data: Any) -> list[str]:
    return sorted(data.metadata.ctx.issues.warnings)


def described(folder: Path, credit: Credit = FULL) -> Any:
    """The folder with its metadata written into it."""
    (folder / FILE).write_text(json.dumps(of_data(str(folder), credit=credit)))
    return read(folder / FILE)


@pytest.mark.parametrize("dimension", [20, 300])
def test_a_release_is_described_with_every_hash_and_its_guarantee(tmp_path: Path, dimension: int) -> None:
    folder = published(tmp_path, dimension)
    written = json.loads((folder / FILE).read_text())
    hashes = {file["contentUrl"]: file["sha256"] for file in written["distribution"]}
    assert set(hashes) == {file.name for file in folder.iterdir()} - {"release.json", "card.md", FILE}
    for name, digest in hashes.items():
        assert hashlib.sha256((folder / name).read_bytes()).hexdigest() == digest
    assert written["usageInfo"]["text"] == GUARANTEE.sentence()
    privacy = written["graphveil:privacy"]
    assert (privacy["graphveil:epsilon"], privacy["graphveil:unit_code"]) == (2.0, GUARANTEE.unit.code)
    dataset = read(folder / FILE)
    # What only an owner can say is missing, and nothing else.
    assert [line.split('"')[1].rpartition("/")[2] for line in warnings(dataset)] == ["datePublished", "license"]
    for table in ("nodes", "edges"):
        columns = polars.read_parquet(folder / f"{table}.parquet").columns
        (records,) = [record_set for record_set in dataset.metadata.record_sets if record_set.id == table]
        assert [field.name for field in records.fields] == columns
        assert [field.source.extract.column for field in records.fields] == columns
    # Nothing is missing once the owner has said it, and the release stays whole, also without its metadata.
    assert warnings(described(folder)) == []
    assert json.loads((folder / FILE).read_text())["license"] == FULL.license
    assert load_graph(folder).release.guarantee == GUARANTEE
    (folder / FILE).unlink()
    assert load_graph(folder).release == RELEASE


def test_of_data_that_is_not_released_nothing_is_said_that_depends_on_people(tmp_path: Path) -> None:
    descriptions = set()
    for place, (nodes, degree) in {"one": (40, 4.0), "another": (60, 8.0)}.items():
        graph = social_graph(nodes, degree, 300, 3)
        graph.schema = replace(graph.schema, name="clubs")
        folder = write_folder(graph, tmp_path / place)
        descriptions.add(json.dumps(of_data(str(folder), credit=Credit())))
    # A named set has declared facts, and no files.
    named = of_data("digits", credit=FULL)
    (tmp_path / FILE).write_text(json.dumps(named))
    assert warnings(read(tmp_path / FILE)) == [] and "distribution" not in named
    assert named["graphveil:declared"]["graphveil:dimension"] == 32
    assert [row["classes/name"] for row in named["recordSet"][0]["data"]] == list("0123456789")
    (content,) = descriptions
    assert "sha256" not in content and "contentSize" not in content
    assert '"graphveil:private": ["features", "labels"]' in content


@pytest.mark.parametrize("name", HOSTILE)
def test_no_name_of_a_column_or_class_names_another_place(tmp_path: Path, name: str) -> None:
    (tmp_path / "mine").mkdir()
    polars.DataFrame({"id": ["p", "q"], name: [0.0, 1.0]}).write_csv(tmp_path / "mine" / "nodes.csv")
    polars.DataFrame({"source": ["p"], "target": ["q"]}).write_csv(tmp_path / "mine" / "edges.csv")
    head = f'private = ["features"]\nrange = [0, 1]\nclasses = [{json.dumps(name)}, "b"]\ndirected = false\n'
    (tmp_path / "mine" / "graph.toml").write_text(head)
    dataset = described(tmp_path / "mine")
    (nodes,) = [record_set for record_set in dataset.metadata.record_sets if record_set.id == "nodes"]
    assert [field.name for field in nodes.fields] == ["id", name]
    assert all(field.id.startswith("nodes/") and field.id.count("/") == 1 for field in nodes.fields)
    assert [next(iter(record.values())) for record in dataset.records("nodes")] == [b"p", b"q"]


def test_counts_in_the_place_of_edges_are_described_too_and_void_is_the_first_word(tmp_path: Path) -> None:
    graph = social_graph(40, 5.0, 20, 3)
    graph.schema = replace(graph.schema, private=())
    counts = NeighbourCounts(torch.zeros(40, dtype=torch.int64), torch.full((40, 3), -2))
    void = replace(RELEASE, guarantee=replace(GUARANTEE, void="noise was reproducible (seed 3)"), counts=counts)
    folder = write_release(graph, tmp_path / "out", void, card="# Card\n")
    dataset = read(folder / FILE)
    (table,) = [record_set for record_set in dataset.metadata.record_sets if record_set.id == "counts"]
    assert [field.name for field in table.fields] == ["group", "count_0", "count_1", "count_2"]
    assert {str(kind) for field in table.fields for kind in field.data_types} == {"https://schema.org/Integer"}
    assert "may be negative" in table.fields[1].description
    written = json.loads((folder / FILE).read_text())
    assert written["description"].startswith("VOID")
    assert written["graphveil:privacy"]["graphveil:void"] == "noise was reproducible (seed 3)"


def test_columns_that_say_who_is_private_and_tables_of_parquet_are_known(tmp_path: Path) -> None:
    people = {"id": ["p", "q"], "part": ["train", None], "in": [True, False], "x": [0.0, 1.0], "remark": ["", ""]}
    polars.DataFrame(people).write_parquet(tmp_path / "nodes.parquet")
    ends = polars.DataFrame({"from": ["p"], "to": ["q"], "known": [True], "since": [1]})
    ends.write_parquet(tmp_path / "edges.parquet")
    names = 'split = "part"\nprivate_nodes = "in"\nsource = "from"\ntarget = "to"\npublic_edges = "known"\n'
    head = 'private = ["edges"]\nrange = [0, 1]\nclasses = ["a", "b"]\ndirected = false\nfeatures = ["x"]\n'
    (tmp_path / "graph.toml").write_text(head + names)
    tables = of_data(str(tmp_path), credit=Credit())["recordSet"][1:]
    assert {field["@id"]: field["dataType"] for table in tables for field in table["field"]} == {
        "nodes/id": "sc:Text",
        "nodes/part": "sc:Text",
        "nodes/in": "sc:Boolean",
        "nodes/x": "sc:Float",
        "edges/from": "sc:Text",
        "edges/to": "sc:Text",
        "edges/known": "sc:Boolean",
    }
    (tmp_path / "nodes.parquet").write_bytes(b"no table")
    with pytest.raises(DataError, match=r"nodes\.parquet: the names of its columns cannot be read"):
        of_data(str(tmp_path), credit=Credit())


def test_columns_with_a_kind_and_ranges_of_their_own_are_described_as_declared(tmp_path: Path) -> None:
    (tmp_path / "nodes.csv").write_text("id,age,team,x\np,31,a,1\n")
    (tmp_path / "edges.csv").write_text("source,target\np,p\n")
    head = 'private = ["features"]\nclasses = ["a", "b"]\ndirected = false\n'
    kinds = '[columns]\nage = { integer = [0, 120] }\nteam = { tags = ["a"], most = 1 }\n'
    (tmp_path / "graph.toml").write_text(head + kinds)
    fields = of_data(str(tmp_path), credit=Credit())["recordSet"][1]["field"]
    assert {field["name"]: field["dataType"] for field in fields} == {
        "id": "sc:Text",
        "age": "sc:Integer",
        "team": "sc:Text",
    }
    (tmp_path / "graph.toml").write_text(head + 'range = { age = [0, 120], "*" = [0, 5] }\nfeatures = ["age", "x"]\n')
    fields = of_data(str(tmp_path), credit=Credit())["recordSet"][1]["field"]
    assert [field["description"] for field in fields[1:]] == [
        f"A feature, declared from 0 to {top}." for top in (120, 5)
    ]


def test_a_day_of_publication_is_written_as_a_day() -> None:
    assert as_day("2026-01-31") == "2026-01-31" and as_day(None) is None
    with pytest.raises(InputError, match="'yesterday' is no day; allowed: such as 2026-01-31"):
        as_day("yesterday")
