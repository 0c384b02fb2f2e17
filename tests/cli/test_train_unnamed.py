"""``graphveil train DATA`` without a method: nothing is trained, and what it would take is said."""

from __future__ import annotations

from pathlib import Path

import pytest

from graphveil.methods.advise.rules import TRUSTS
from tests.cli.conftest import Terminal

TOWN = str(Path(__file__).parents[2] / "docs" / "examples" / "town")


@pytest.mark.parametrize("data", ["social-100", TOWN])
def test_all_trusts_are_told_and_nothing_is_trained(type_in: Terminal, tmp_path: Path, data: str) -> None:
    answer = type_in("train", data)
    assert answer.code == 2 and not (tmp_path / "runs").exists()
    assert all(trust in answer.out for trust in TRUSTS) and "graphveil train class-sums" in answer.out
    assert answer.err == (
        "error: train: no method is named, so nothing was trained; type one of the commands above, or add --trust\n"
    )


def test_one_trust_is_told_with_the_reason_and_the_whole_command(type_in: Terminal) -> None:
    answer = type_in("train", "social-100", "--trust", "curator")
    said = " ".join(answer.out.split())
    assert answer.code == 2 and "class-sums was best" in said and "label-pool" not in said
    assert answer.err.endswith("type graphveil train class-sums social-100 --epsilon 4\n")


def test_a_script_that_reads_json_gets_no_answer(type_in: Terminal) -> None:
    answer = type_in("train", "social-100", "--trust", "curator", "--json")
    assert (answer.code, answer.out) == (2, "") and answer.err.count("\n") == 1


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("labelpool",), "did you mean label-pool?"),
        (("class-sum", "social-100"), "did you mean class-sums?"),
        (("linkz", "--trust", "links"), "did you mean links?"),
        (("label-pool",), "DATA is missing"),
        (("no-such-thing-at-all",), "no method"),
        (("social-100", "--trust", "curater"), "did you mean curator?"),
        (("label-pool", "social-100", "--trust", "local"), "--trust chooses a method, and one is named"),
    ],
)
def test_a_mistyped_name_still_gets_its_suggestion(type_in: Terminal, words: tuple[str, ...], said: str) -> None:
    answer = type_in("train", *words)
    assert answer.code == 2 and answer.out == "" and said in answer.err and answer.err.count("\n") == 1


def test_a_trust_that_fits_nothing_says_why(type_in: Terminal) -> None:
    answer = type_in("train", TOWN, "--trust", "local")
    assert answer.code == 2 and "connections are declared private" in " ".join(answer.out.split())


@pytest.mark.parametrize("trust", TRUSTS)
def test_the_command_of_every_trust_is_that_of_advise(type_in: Terminal, trust: str) -> None:
    """What is said on stderr can be pasted, and is what `advise` says too."""
    advised = type_in("advise", "social-100", "--json").json["advice"]
    command = next(one["command"] for one in advised if one["trust"] == trust)
    assert type_in("train", "social-100", "--trust", trust).err.endswith(f"type {command}\n")


def test_a_folder_without_a_declaration_is_refused_as_ever(type_in: Terminal, tmp_path: Path) -> None:
    (tmp_path / "own").mkdir()
    answer = type_in("train", "own")
    assert answer.code == 2 and answer.out == "" and "no graph.toml found" in answer.err


def test_a_folder_named_like_a_method_is_a_method_unless_it_is_written_as_a_folder(
    type_in: Terminal, tmp_path: Path
) -> None:
    (tmp_path / "links").mkdir()
    assert "DATA is missing" in type_in("train", "links").err
    assert "no graph.toml found" in type_in("train", "./links").err


def test_with_a_method_and_data_a_run_is_made_as_ever(type_in: Terminal, tmp_path: Path) -> None:
    answer = type_in("train", "label-propagation", "social-100", "--no-controls", "--out", tmp_path / "run")
    assert answer.code == 0 and (tmp_path / "run" / "config.toml").is_file()
