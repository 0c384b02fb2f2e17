"""Runs find their graph again from any folder, and tell nobody else where it lies."""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path

import pytest

from graphveil.graphs import load_parts, social_graph
from graphveil.graphs.load import is_name, lasting_source
from graphveil.graphs.tables.write import write_folder
from graphveil.methods.base.network.start import SHIPPED
from tests.cli.conftest import Terminal

pytestmark = pytest.mark.usefixtures("quick_pages")
PLACE = "secret-place"


@pytest.fixture
def own(tmp_path: Path) -> Path:
    """A folder of own files in a place whose name nobody else may learn."""
    folder = tmp_path / PLACE / "own"
    folder.parent.mkdir()
    write_folder(social_graph(120, seed=1), folder)
    return folder


def trained(type_in: Terminal, *words: object) -> Path:
    """The absolute folder of a short run."""
    assert type_in("train", *words, "--no-controls", "--out", "run", "--json").good
    return Path("run").absolute()


def tells(folder: Path, word: str) -> list[str]:
    """The files below a folder that hold a word."""
    files = [file for file in folder.rglob("*") if file.is_file()]
    return [file.name for file in files if word.encode() in file.read_bytes()]


@pytest.mark.parametrize(
    ("typed", "origin"),
    [
        ("social-200", {"source": "social-200"}),
        ("cora", {"source": "cora", "data_root": "/data"}),
        ("facebook100-x1", {"source": "facebook100-x1", "data_root": "/data"}),
    ],
)
def test_what_finds_the_data_later(typed: str, origin: dict[str, str]) -> None:
    assert lasting_source(typed, "/data") == origin
    assert is_name(typed) and not is_name("/a/cora") and lasting_source("/a/cora", "/data") == {"source": "/a/cora"}
    assert lasting_source("own") == {"source": str(Path.cwd() / "own")}
    assert lasting_source("cora", "data")["data_root"] == str(Path.cwd() / "data")


def test_what_is_handed_on_tells_no_place(type_in: Terminal, own: Path) -> None:
    run = trained(type_in, "lpgnn", own, "--epochs", 2)
    assert set(tells(run, PLACE)) >= {"config.toml", "result.json"}
    assert tells(run / "public", PLACE) == []
    alone = Path(shutil.copytree(run / "public", "handed-on"))
    type_in("predict", alone).refused("does not say where its graph is; name it behind the run")
    assert type_in("predict", alone, own).code == 0


@pytest.mark.slow  # whole commands
@pytest.mark.parametrize("method", ["class-sums", "label-pool"])
def test_of_a_reader_only_name_and_checksum_are_handed_on(method: str, type_in: Terminal) -> None:
    reader = Path(PLACE) / "reader.safetensors"
    reader.parent.mkdir()
    shutil.copy(SHIPPED / f"{method}.safetensors", reader)
    run = trained(type_in, method, "social-200", "--set", f"start={reader}")
    digest = hashlib.sha256(reader.read_bytes()).hexdigest()
    settings = json.loads((run / "public/about.json").read_text())["settings"]
    assert settings["start"] == f"reader.safetensors, sha256 {digest}"
    assert digest in (run / "public/card.md").read_text()
    assert set(tells(run, PLACE)) >= {"config.toml", "result.json"}
    assert tells(run / "public", PLACE) == []
    scores = Path(PLACE) / "scores.txt"
    scores.write_text("\n".join(["1.0"] * load_parts("social-200").schema.dimension))
    words = ("release", "feature-rr", "social-200", "--epsilon-x", 1, "--set", f"scores={scores}", "-o", "made")
    assert type_in(*words).code == 0 and tells(Path("made"), PLACE) == []
    again = type_in("train", "--config", run / "config.toml", "--json").good
    assert again.json["settings"]["start"] == str(reader.absolute())
    # Pages that are written anew when the file is gone tell the same.
    shutil.rmtree(PLACE)
    assert type_in("report", run).code == 0
    assert digest in (run / "public/card.md").read_text()
    assert tells(run / "public", PLACE) == []
