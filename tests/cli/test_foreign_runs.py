"""Runs that say what no run says: of a method nobody knows, or as large as a file may be."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file

from tests.cli.conftest import Answer, Terminal
from tests.fuzz.targets import old_run

READERS = (("compare-runs",), ("report",), ("attack",), ("predict",))


def changed(trained: Path, out: Path, **said: Any) -> Path:
    """A run of an older version, whose result says something else."""
    file = old_run(trained, out) / "result.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), **said}))
    return out


def one_line(answer: Answer) -> str:
    assert answer.code == 2, answer.err
    assert answer.err.startswith("error: ")
    assert answer.err.count("\n") == 1
    assert answer.out == ""
    return answer.err


@pytest.mark.parametrize("name", ["no-such-method", "", "__class__", "LPGNN"])
def test_a_result_of_an_unknown_method_is_no_fault(type_in: Terminal, tmp_path: Path, trained: Path, name: str) -> None:
    run = changed(trained, tmp_path / "run", method=name)
    for words in (("compare-runs", run), ("compare-runs", run, "--json"), ("report", run), ("attack", run)):
        answer = type_in(*words)
        assert answer.code in (0, 2), answer.err
        assert "internal error" not in answer.err
        assert "Traceback" not in answer.err


def test_a_model_of_an_unknown_method_is_refused(type_in: Terminal, tmp_path: Path, trained: Path) -> None:
    from graphveil.methods.base.storage import read_method, save_method

    run = old_run(trained, tmp_path / "run")
    _, facts, tensors = read_method(run)
    save_method(run, "no-such-method", facts, tensors)
    assert "holds a 'no-such-method' model; allowed: lpgnn" in one_line(type_in("predict", run, "digits"))
    for words in (("compare-runs", run), ("report", run), ("attack", run)):
        assert type_in(*words).code in (0, 2)


def test_a_list_of_millions_of_notes_is_answered_soon(type_in: Terminal, tmp_path: Path, trained: Path) -> None:
    """Measured: 1.2 s and 0.1 s; 50 million took 48 s before there was a bound."""
    file = changed(trained, tmp_path / "run", notes=[0] * 5_000_000) / "result.json"
    assert file.stat().st_size < 16 << 20
    assert "notes are no list of at most 10,000 texts" in one_line(type_in("compare-runs", tmp_path / "run"))
    content = json.loads(file.read_text())
    file.write_text(json.dumps({**content, "notes": [], "accuracy": [0] * 5_000_000}))
    assert "no interval" in one_line(type_in("report", tmp_path / "run"))
    file.write_text(json.dumps({**content, "notes": ["abc"] * 5_000_000}))
    assert "allowed: at most 16 MiB for such a file" in one_line(type_in("compare-runs", tmp_path / "run"))


def test_a_history_of_millions_of_lines_is_refused(type_in: Terminal, tmp_path: Path, trained: Path) -> None:
    run = old_run(trained, tmp_path / "run")
    (run / "metrics.jsonl").write_bytes(b"{}\n" * 2_000_000)
    assert "has 2,000,000 lines; allowed: at most 1,000,000" in one_line(type_in("compare-runs", run))


def test_a_header_of_90_megabytes_is_refused_unread(type_in: Terminal, tmp_path: Path, trained: Path) -> None:
    run = tmp_path / "run"
    shutil.copytree(trained, run)
    file = run / "public" / "model.safetensors"
    file.unlink()
    save_file({"weight": torch.zeros(3)}, file, metadata={"graphveil": "[" + "0," * 45_000_000 + "0]"})
    assert "has a header of 86 MiB; allowed: at most 32 MiB" in one_line(type_in("predict", run, "digits"))
    with file.open("r+b") as claimed:
        claimed.truncate(8)
    assert "has a header of 86 MiB" in one_line(type_in("predict", run, "digits"))


@pytest.mark.parametrize("best", ["best_control", "best_rival"])
def test_a_best_control_that_is_none_of_them_is_refused(
    type_in: Terminal, tmp_path: Path, trained: Path, best: str
) -> None:
    for number, name in enumerate(("nobody", 2, [])):
        run = changed(trained, tmp_path / f"run{number}", **{best: name})
        assert "damaged run" in one_line(type_in("compare-runs", run))
