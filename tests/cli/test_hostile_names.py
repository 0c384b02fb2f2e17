"""Names in somebody's files are names: no formula in a spreadsheet, no order to a terminal."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from graphveil.progress import Progress, ProgressCallback
from tests.cli.conftest import Terminal

FORMULA = '=HYPERLINK("http://x","y")'
ESCAPE = "\x1b[2Jgone"


def hostile(folder: Path) -> Path:
    folder.mkdir()
    (folder / "graph.toml").write_text(
        'private = ["features", "labels"]\nrange = [0, 1]\nclasses = ["=1+1", "\\u001B[31mred"]\ndirected = false\n'
    )
    ids = [FORMULA, ESCAPE, "-5", "@x", *(f"n{k}" for k in range(16))]
    with (folder / "nodes.csv").open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["id", "a", "label"])
        writer.writerows([name, n % 2, "=1+1" if n % 2 else "\x1b[31mred"] for n, name in enumerate(ids))
    with (folder / "edges.csv").open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["source", "target"])
        writer.writerows([ids[n], ids[(n + 1) % 20]] for n in range(20))
    return folder


def test_predictions_and_screens_neither_compute_nor_obey(type_in: Terminal, tmp_path: Path) -> None:
    data = hostile(tmp_path / "mine")
    answer = type_in("train", "lpgnn", data, "--epochs", 1, "--no-controls", "--threads", 1, "--out", "run")
    assert answer.code == 0, answer.err
    for words in (("predict", "run", data), ("predict", "run", data, "--out", "p.csv"), ("data", "describe", data)):
        answer = type_in(*words)
        assert answer.code == 0, answer.err
        assert "\x1b" not in answer.out + answer.err
    with (tmp_path / "p.csv").open(newline="") as file:
        rows = list(csv.reader(file))
    cells = [cell for row in rows for cell in row]
    assert not [cell for cell in cells if cell.startswith(("=", "@", "\t", "\r"))]
    assert "\x1b" not in "".join(cells)
    assert rows[1][0] == f"'{FORMULA}"
    assert rows[3][0] == "-5"
    assert type_in("compare-runs", "run", "--out", "side").code == 0
    assert "\x1b" not in (tmp_path / "side" / "table.csv").read_text()


@pytest.mark.parametrize(
    "words",
    [
        ("train", "lpgnn", "digits"),
        ("tune", "lpgnn", "digits", "--over", "hidden=8,16"),
        ("compare", "lpgnn", "digits", "--repeats", 1),
    ],
    ids=lambda words: words[0],
)
def test_a_default_is_said_before_any_word_of_progress(
    type_in: Terminal, monkeypatch: pytest.MonkeyPatch, words: tuple[object, ...]
) -> None:
    from graphveil.errors import InputError
    from graphveil.methods.runs import experiment

    def stop(*_: object, progress: ProgressCallback, **__: object) -> None:
        progress(Progress(0, 0, "lpgnn 1/1"))
        raise InputError("stopped")

    monkeypatch.setattr(experiment, "run", stop)
    answer = type_in(*words, "--json")
    first, last = answer.err.splitlines()[0], answer.err.splitlines()[-1]
    assert first == "Using defaults: --epsilon-x 1 and --epsilon-y 1 for lpgnn."
    assert (last, answer.code) == ("error: stopped", 2)


def test_what_stands_in_for_an_epsilon_is_said_first(type_in: Terminal) -> None:
    quick = ("train", "lpgnn", "digits", "--epochs", 1, "--no-controls", "--threads", 1)
    said = "Using defaults: --epsilon-x 1 and --epsilon-y 1 for lpgnn."
    answer = type_in(*quick)
    assert answer.out.splitlines()[0] == said
    assert answer.err.splitlines()[0] == said
    answer = type_in(*quick, "--json")
    assert answer.json["guarantee"]["epsilon"] == 2
    assert answer.err.splitlines()[0] == said
    for given in (("--epsilon-x", 1, "--epsilon-y", 1), ("--epsilon", 9), ("--epsilon-x", "none", "--epsilon-y", 1)):
        answer = type_in(*quick, *given) if given[0] != "--epsilon" else type_in("plan", "lpgnn", "digits", *given)
        assert answer.code == 0
        assert "Using defaults" not in answer.out + answer.err
    assert type_in("plan", "gap", "digits").out.splitlines()[0] == ("Using defaults: --epsilon 4 for gap.")
    half = type_in("plan", "lpgnn", "digits", "--epsilon-x", 1).out.splitlines()[0]
    assert half == "Using defaults: --epsilon-y 1 for lpgnn."
