"""Runs that say what no run says: of a method nobody knows, or as large as a file may be."""

from __future__ import annotations

import csv
import json
import shutil
from pathlib import Path
from typing import Any

import polars
import pytest
import torch
from safetensors.torch import save_file

from tests.cli.conftest import Terminal


def changed(trained: Path, out: Path, **entries: Any) -> Path:
    """A copy of a run whose result says something else."""
    file = Path(shutil.copytree(trained, out)) / "result.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), **entries}))
    return out


@pytest.mark.parametrize("name", ["", "__class__"])
def test_a_result_of_an_unknown_method_is_no_fault(type_in: Terminal, tmp_path: Path, trained: Path, name: str) -> None:
    run = changed(trained, tmp_path / "run", method=name)
    for words in (("compare-runs", run), ("compare-runs", run, "--json"), ("report", run), ("attack", run)):
        answer = type_in(*words)
        assert answer.code in (0, 2), answer.err
        assert "internal error" not in answer.err
        assert "Traceback" not in answer.err


def test_a_list_of_more_notes_or_lines_than_a_run_has_is_refused(
    type_in: Terminal, tmp_path: Path, trained: Path
) -> None:
    run = changed(trained, tmp_path / "run", notes=[0] * 10_001)
    type_in("compare-runs", run).refused("notes are no list of at most 10,000 texts")
    run = changed(trained, tmp_path / "other")
    (run / "metrics.jsonl").write_bytes(b"{}\n" * 1_000_001)
    type_in("compare-runs", run).refused("has 1,000,001 lines; allowed: at most 1,000,000")


def test_a_header_of_90_megabytes_is_refused_unread(type_in: Terminal, tmp_path: Path, trained: Path) -> None:
    run = tmp_path / "run"
    shutil.copytree(trained, run)
    file = run / "public" / "model.safetensors"
    file.unlink()
    save_file({"weight": torch.zeros(3)}, file, metadata={"graphveil": "[" + "0," * 45_000_000 + "0]"})
    type_in("predict", run, "digits").refused("has a header of 86 MiB; allowed: at most 32 MiB")
    with file.open("r+b") as claimed:
        claimed.truncate(8)
    type_in("predict", run, "digits").refused("has a header of 86 MiB")


def test_a_best_control_that_is_none_of_them_is_refused(type_in: Terminal, tmp_path: Path, trained: Path) -> None:
    for number, (best, name) in enumerate((("best_control", "nobody"), ("best_control", []), ("best_rival", 2))):
        run = changed(trained, tmp_path / f"run{number}", **{best: name})
        type_in("compare-runs", run).refused("damaged run")


# ---- names in somebody's files are names ----


FORMULA = '=HYPERLINK("http://x","y")'
ESCAPE = "\x1b[2Jgone"


def hostile(folder: Path) -> Path:
    folder.mkdir()
    (folder / "graph.toml").write_text(
        'private = ["features", "labels"]\nrange = [0, 1]\nclasses = ["=1+1", "\\u001B[31mred"]\ndirected = false\n'
    )
    ids = [FORMULA, ESCAPE, "-5", "@x", *(f"n{k}" for k in range(16))]
    nodes = {"id": ids, "a": [0, 1] * 10, "label": ["\x1b[31mred", "=1+1"] * 10}
    polars.DataFrame(nodes).write_csv(folder / "nodes.csv")
    polars.DataFrame({"source": ids, "target": [*ids[1:], ids[0]]}).write_csv(folder / "edges.csv")
    return folder


def test_predictions_and_screens_neither_compute_nor_obey(type_in: Terminal, tmp_path: Path) -> None:
    data = hostile(tmp_path / "mine")
    assert type_in("train", "lpgnn", data, "--epochs", 1, "--no-controls", "--threads", 1, "--out", "run").good
    for words in (("predict", "run", data), ("predict", "run", data, "--out", "p.csv"), ("data", "describe", data)):
        answer = type_in(*words).good
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
