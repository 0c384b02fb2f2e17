"""``graphveil advise`` at the terminal."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import typer

from graphveil.cli.app import build
from graphveil.methods.advise.rules import TRUSTS
from tests.cli.conftest import Terminal

TOWN = str(Path(__file__).parents[2] / "docs" / "examples" / "town")


def test_a_line_for_each_trust_with_a_command_that_is_one(type_in: Terminal) -> None:
    answer = type_in("advise", TOWN)
    assert answer.code == 0 and answer.err == ""
    first = [line.split(" ")[0] for line in answer.out.splitlines()]
    assert [word for word in first if word in TRUSTS] == list(TRUSTS)
    found = type_in("advise", TOWN, "--json").json["advice"]
    assert [one["trust"] for one in found] == list(TRUSTS)
    assert [one["method"] for one in found] == [None, "links", "class-sums", "class-counts", "guesses"]
    assert all(one["rehearsal"] == [] and one["rehearsed_on"] in ("", "not rehearsed") for one in found)
    for line in " && ".join(one["command"] for one in found if one["command"]).split(" && "):
        program, *words = shlex.split(line)
        command: Any = typer.main.get_command(build())
        while hasattr(command, "commands"):
            command, words = command.commands[words[0]], words[1:]
        assert program == "graphveil"
        command.make_context("advised", list(words))


# ---- graphveil train DATA`` without a method ----


def test_the_command_of_every_trust_is_that_of_advise(type_in: Terminal, tmp_path: Path) -> None:
    """What is said on stderr can be pasted, and is what `advise` says too."""
    advised = {one["trust"]: one["command"] for one in type_in("advise", "social-100", "--json").json["advice"]}
    for trust in TRUSTS:
        assert type_in("train", "social-100", "--trust", trust).err.endswith(f"type {advised[trust]}\n")
    # A folder named like a method is a method unless it is written as a folder.
    (tmp_path / "links").mkdir()
    assert "DATA is missing" in type_in("train", "links").err
    assert "no graph.toml found" in type_in("train", "./links").err
