"""The folder of a published graph: written whole, read with its guarantee, refused once it was changed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from graphveil.errors import DataError, InputError
from graphveil.graphs import Release, describe, draw_private, load_graph, social_graph, validate, write_release
from graphveil.privacy import Guarantee, Ledger, Spend, assume
from graphveil.privacy.statement.observer import RELEASE_READERS
from graphveil.privacy.statement.unit import PRIVATE_EDGE

GUARANTEE = Guarantee(
    unit=PRIVATE_EDGE,
    relation="add/remove",
    model="central",
    epsilon=2.0,
    delta=0.0,
    against=RELEASE_READERS,
    assumes=(assume("released-once"),),
)
LEDGER = Ledger.open({"edges": (2.0, 0.0)}).spend(Spend("edges", "edges", "edge-rand", {"pairs": 10}, 2.0))
RELEASE = Release("edge-rand", {"epsilon_a": 2.0}, GUARANTEE, LEDGER, edges=True, notes=("a note",), version="1")


def published(path: Path, dimension: int = 20) -> Path:
    graph = draw_private(social_graph(40, 5.0, dimension, 3), 0.5, seed=1)
    graph.schema = replace(graph.schema, private=())
    return write_release(graph, path / "out", RELEASE, card="# Card\n")


@pytest.mark.parametrize("dimension", [20, 300])
def test_what_was_published_is_read_with_its_guarantee(tmp_path, dimension):
    graph = validate(load_graph(published(tmp_path, dimension)))
    assert graph.release == RELEASE
    assert graph.schema.private == ()
    assert graph.public_edges.dtype == torch.bool
    stems = {"edges", "nodes"} | ({"features"} if dimension == 300 else set())
    there = {"graph.toml", "release.json", "ledger.json", "card.md", "croissant.json"}
    there |= {f"{stem}.parquet" for stem in stems}
    assert {file.name for file in (tmp_path / "out").iterdir()} == there
    assert [entry.name for entry in tmp_path.iterdir()] == ["out"]
    facts = describe(graph)
    assert facts["release"] == {"method": "edge-rand", "guarantee": GUARANTEE.sentence()}
    assert "anybody may know" in str(facts["warning"])


@pytest.mark.parametrize("name", ["nodes.parquet", "edges.parquet", "ledger.json", "release.json"])
def test_a_missing_file_is_named(tmp_path, name):
    folder = published(tmp_path)
    (folder / name).unlink()
    with pytest.raises(DataError, match=f"the release is incomplete: {name} is missing; restore the published folder"):
        load_graph(folder)


@pytest.mark.parametrize("name", ["nodes.parquet", "edges.parquet", "ledger.json", "release.json", "graph.toml"])
def test_a_changed_file_is_named(tmp_path, name):
    folder = published(tmp_path)
    content = (folder / name).read_bytes()
    (folder / name).write_bytes(content.replace(b"2.0", b"1.0") if name.endswith("json") else content + b"\n")
    with pytest.raises(DataError, match=rf"{name}: was changed since it was published; restore"):
        load_graph(folder)


@pytest.mark.parametrize("content", ["", "[]", '{"files": 3, "sha256": 1, "format": 1}'])
def test_anything_else_is_refused_in_one_line(tmp_path, content):
    folder = published(tmp_path)
    (folder / "release.json").write_text(content)
    with pytest.raises(DataError, match="was changed") as refusal:
        load_graph(folder)
    assert "\n" not in str(refusal.value)


def test_a_card_may_be_written_anew_and_a_table_laid_beside_it_is_refused(tmp_path):
    folder = published(tmp_path)
    (folder / "card.md").write_text("other words")
    (folder / "report.html").write_text("<p>")
    assert load_graph(folder).release == RELEASE
    (folder / "features.csv").write_text("id,feature\n")
    with pytest.raises(DataError, match=r"features.csv was not published with it"):
        load_graph(folder)
    toml = (folder / "graph.toml").read_text().replace("release = true\n", "")
    (folder / "graph.toml").write_text(toml)
    with pytest.raises(DataError, match=r"holds a release.json, but graph.toml does not say release = true"):
        load_graph(folder)


def test_nothing_is_overwritten_and_nothing_half_written_stays(tmp_path, monkeypatch):
    folder = published(tmp_path)
    with pytest.raises(InputError, match="exists already; name a new folder"):
        write_release(load_graph(folder), folder, RELEASE, card="")
    monkeypatch.setattr("os.fsync", lambda _: (_ for _ in ()).throw(OSError("disk full")))
    with pytest.raises(OSError, match="disk full"):
        write_release(load_graph(folder), tmp_path / "second", RELEASE, card="")
    assert [entry.name for entry in tmp_path.iterdir()] == ["out"]
