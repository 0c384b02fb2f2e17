"""Engines that commands are told to use."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from graphveil.cli import main
from graphveil.engine import RayEngine

LAST = ("--no-controls", "--reproducible-noise", "3", "--out")
RUN = ("train", "class-sums", "digits", "--epochs", "2", *LAST)
RUNS = {"class-sums": RUN, "lpgnn": ("train", "lpgnn", "digits", "--epochs", "2", *LAST)}


@pytest.mark.slow
@pytest.mark.parametrize("method", RUNS)
def test_a_run_leaves_the_same_wherever_its_blocks_were_worked_on(method: str, ray: RayEngine, tmp_path: Path) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    assert main([*RUNS[method], str(here), "--workers", "3"]) == 0
    # It works in the cluster of these tests, and leaves it standing.
    assert main([*RUNS[method], str(there), "--engine", "ray"]) == 0
    assert ray.workers == 2 and list(ray.put(None)) == [None]
    for name in ("model.safetensors", "config.toml", "ledger.json"):
        assert (here / name).read_bytes() == (there / name).read_bytes(), name


@pytest.mark.slow  # graphs of many blocks
def test_a_missing_ray_is_said_in_one_line_before_anything_is_loaded(tmp_path: Path) -> None:
    typed = [*RUN, str(tmp_path / "run"), "--engine", "ray"]
    # In a process of its own, in which no import can find Ray.
    without = "import sys; sys.modules['ray'] = None; from graphveil.cli import main; sys.exit(main(sys.argv[1:]))"
    answer = subprocess.run([sys.executable, "-c", without, *typed], capture_output=True, text=True, check=False)
    assert answer.returncode == 2 and answer.stdout == ""
    assert answer.stderr.count("\n") == 1 and "pip install 'graphveil[ray]'" in answer.stderr
    assert not (tmp_path / "run").exists()
