"""The graph of a run by its record: names, folders, roots, and runs that older versions wrote."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from graphveil.errors import InputError
from graphveil.graphs import draw_private, load_plain
from graphveil.methods.base.start import SHIPPED, start_name
from graphveil.methods.registry import files_of
from graphveil.reports.base.record import RunRecord
from graphveil.reports.runs.card import About
from graphveil.reports.runs.folder import write_run
from graphveil.reports.runs.origin import data_of, graph_of
from tests.graphs import published_made
from tests.graphs.made import folder as own_folder
from tests.reports import made


def record(**options: Any) -> RunRecord:
    return made.record(data="social-100", options=options)


def test_a_name_is_enough() -> None:
    assert graph_of(record(source="social-200")).num_nodes == 200
    # The first versions kept no source: the data's own name stands for it.
    assert graph_of(record()).num_nodes == 100


def test_the_same_edges_are_drawn_as_private() -> None:
    drawn = graph_of(record(source="social-100", private_share=0.5, seed=3))
    again = draw_private(load_plain("social-100"), 0.5, 3)
    other = draw_private(load_plain("social-100"), 0.5, 4)
    assert torch.equal(drawn.public_edges, again.public_edges)
    assert not torch.equal(drawn.public_edges, other.public_edges)


def test_the_root_of_the_run_is_looked_in_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    people = {"kept": 20, "typed": 22, "usual": 24}
    for name, count in people.items():
        published_made.lastfm(tmp_path / name, [0, 1] * (count // 2), [(one, one + 1) for one in range(count - 1)])
    sizes = {name: load_plain("lastfm", tmp_path / name).num_nodes for name in people}
    assert len(set(sizes.values())) == 3
    monkeypatch.setenv("GRAPHVEIL_DATA", str(tmp_path / "usual"))
    run = record(source="lastfm", data_root=str(tmp_path / "kept"))
    assert graph_of(run).num_nodes == sizes["kept"]
    assert graph_of(run, root=tmp_path / "typed").num_nodes == sizes["typed"]
    # A public set is the same set elsewhere, so a root that is gone is no reason to refuse.
    (tmp_path / "kept").rename(tmp_path / "gone")
    assert graph_of(run).num_nodes == sizes["usual"]


def test_a_relative_folder_of_an_older_run_is_found_or_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own_folder(tmp_path / "own")
    monkeypatch.chdir(tmp_path)
    assert graph_of(record(source="own")).num_nodes == 3
    monkeypatch.chdir("/")
    with pytest.raises(InputError, match="its graph lay in own, and is not there; name its place now"):
        graph_of(record(source="own"))
    assert graph_of(record(source="own"), data=str(tmp_path / "own")).num_nodes == 3


def test_a_public_part_names_no_place(tmp_path: Path) -> None:
    options = {"source": "social-100", "seed": 0}
    write_run(made.result(), tmp_path / "run", options=options)
    assert data_of(tmp_path / "run") == ("social-100", None)
    assert data_of(tmp_path / "run", tmp_path) == ("social-100", tmp_path)
    with pytest.raises(InputError, match="does not say where its graph is; name it behind the run"):
        data_of(tmp_path / "run" / "public")


def test_which_settings_name_files(tmp_path: Path) -> None:
    reader = str(SHIPPED / "class-sums.safetensors")
    assert files_of("class-sums", {"start": reader, "epochs": 3}) == {"start": Path(reader)}
    for settings in ({"start": "public"}, {"start": None}, {"start": str(tmp_path / "gone.safetensors")}):
        assert files_of("class-sums", settings) == {}
    assert files_of("a method of tomorrow", {"start": reader}) == {}
    assert [start_name(start) for start in (None, "public", reader)] == [None, "public", "class-sums.safetensors"]


def test_a_file_whose_checksum_nobody_took_is_told_by_name_alone() -> None:
    run = made.record(method="class-sums", settings={"start": "/secret/place/mine.safetensors"}, options={})
    assert About.of(run).settings["start"] == "mine.safetensors"
