"""``mechanisms compare``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from graphveil.mechanisms import catalogue
from tests.cli.conftest import Terminal

WORDS = ("mechanisms", "compare", "--epsilon", "0.5,2", "--dimension", 8, "--users", 200)
NAMES = {info.name for info in catalogue() if info.kind == "features"}


def test_one_object_and_a_folder(type_in: Terminal) -> None:
    answer = type_in(*WORDS, "--low", -1, "--high", 1, "--out", "study", "--json").json
    assert {(row["mechanism"], row["epsilon"]) for row in answer["rows"]} == {
        (name, epsilon) for name in NAMES for epsilon in (0.5, 2.0)
    }
    assert set(answer) == {"dimension", "users", "low", "high", "input", "rows", "refused", "folder", "figure"}
    assert set(answer["rows"][0]) == {
        "mechanism", "epsilon", "delta", "worst_mse", "mse", "mean_mse", "report_bytes", "users_per_second",
    }  # fmt: skip
    assert (answer["dimension"], answer["users"], answer["low"], answer["high"]) == (8, 200, -1.0, 1.0)
    assert json.loads(Path("study/comparison.json").read_text()) == answer
    assert Path(answer["figure"]).is_file()


def test_one_table_for_each_epsilon_fits_a_terminal(type_in: Terminal) -> None:
    answer = type_in(*WORDS)
    assert answer.code == 0
    assert max(map(len, answer.out.splitlines())) <= 80
    first, second = answer.out.split("epsilon 2 for")
    for table in (first, second):
        lines = [line.split() for line in table.splitlines() if line.split()[:1] and line.split()[0] in NAMES]
        assert {line[0] for line in lines} == NAMES
        worst = [float(line[1].replace(",", "")) for line in lines]
        assert worst == sorted(worst)
    assert "200 users, 8 coordinates" in answer.out
    (folder,) = Path("runs").iterdir()
    assert folder.name.startswith("mechanisms-8-")
    assert str(folder) in answer.out
    assert "figure.png" in answer.out


def test_mechanisms_that_refuse_are_named_with_the_reason(type_in: Terminal) -> None:
    words = ("mechanisms", "compare", "--epsilon", "1e-6", "--dimension", 200, "--users", 20)
    assert "laplace" in {row["mechanism"] for row in type_in(*words, "--json").json["refused"]}
    assert "laplace" in type_in(*words).out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--epsilon", "1,x"), "error: --epsilon: 'x'; allowed: a number"),
        (("--epsilon", "1,1"), "names a value twice"),
        (("--epsilon", "0"), "epsilon is 0.0; allowed: a finite number above 0"),
        (("--epsilon", "inf"), "epsilon is inf"),
        (("--dimension", 0), "dimension is 0"),
        (("--users", 0), "users is 0"),
        (("--low", 2), "--low, --high: the range is 2 to 1"),
        (("--delta", 2), "delta is 2.0"),
        (("--users", 10**8), "dense numbers"),
        (("--dimension", "many"), "--dimension"),
        (("--out", "."), "is not empty"),
    ],
)
def test_bad_questions_are_refused_in_one_line(type_in: Terminal, words: tuple[object, ...], message: str) -> None:
    Path("there").write_text("")
    answer = type_in("mechanisms", "compare", *words)
    assert answer.code == 2
    assert answer.out == ""
    assert message in answer.err
    assert answer.err.count("\n") == 1
    assert [path.name for path in Path().iterdir()] == ["there"]
