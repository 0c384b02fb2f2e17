"""`graphveil data croissant`: metadata on the screen or in a file, and in every release."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Terminal
from tests.graphs.test_croissant import office, read, warnings
from tests.graphs.test_release import published

CREDIT = (
    *("--license", "https://spdx.org/licenses/CC-BY-4.0.html", "--cite-as", "@misc{office}", "--creator", "The office"),
    *("--url", "https://example.org", "--published", "2026-01-31"),
)


def test_what_is_declared_goes_to_the_screen_as_one_object(type_in: Terminal, tmp_path: Path) -> None:
    answer = type_in("data", "croissant", office(tmp_path / "office"))
    content = json.loads(answer.out)
    assert (answer.code, content["name"], content["@type"]) == (0, "office", "sc:Dataset")
    assert "license" not in content and "sha256" not in answer.out


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_an_owner_adds_a_licence_to_a_release_that_is_out(type_in: Terminal, tmp_path: Path) -> None:
    folder = published(tmp_path)
    before = type_in("data", "describe", folder, "--json").json
    answer = type_in("data", "croissant", folder, *CREDIT, "--out", folder / "croissant.json")
    assert (answer.code, answer.out) == (0, f"Written to {folder / 'croissant.json'}\n")
    assert warnings(read(folder / "croissant.json")) == []
    # The release is still whole: its metadata is not among what was hashed.
    assert type_in("data", "describe", folder, "--json").json == before


def test_a_release_that_was_changed_is_not_described(type_in: Terminal, tmp_path: Path) -> None:
    folder = published(tmp_path)
    (folder / "graph.toml").write_text((folder / "graph.toml").read_text() + "\n")
    answer = type_in("data", "croissant", folder)
    assert (answer.code, answer.out) == (2, "")
    assert "graph.toml: was changed since it was published" in answer.err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("digits", "--published", "yesterday"), "'yesterday' is no day"),
        (("digitss",), "did you mean digits?"),
        (("digits", "--out", "no/such/folder/x.json"), "no/such/folder"),
    ],
    ids=["day", "name", "folder"],
)
def test_what_cannot_be_done_is_one_line(type_in: Terminal, words: tuple[str, ...], said: str) -> None:
    answer = type_in("data", "croissant", *words)
    assert (answer.code, answer.out, answer.err.count("\n")) == (2, "", 1)
    assert said in answer.err


def test_tables_without_a_readable_header_are_named(type_in: Terminal, tmp_path: Path) -> None:
    folder = office(tmp_path / "office")
    (folder / "nodes.csv").write_bytes(b"\xff\xfe\x00")
    answer = type_in("data", "croissant", folder)
    assert (answer.code, answer.err.count("\n")) == (2, 1)
    assert "nodes.csv: the names of its columns cannot be read" in answer.err
