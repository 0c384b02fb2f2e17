"""Engines that commands are told to use."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from graphveil.cli import main
from graphveil.engine import RayEngine
from graphveil.engine.on_ray import require_ray
from graphveil.errors import MissingExtraError

RUN = ("train", "class-sums", "digits", "--epochs", "2", "--no-controls", "--reproducible-noise", "3", "--out")


def test_a_run_leaves_the_same_wherever_its_blocks_were_worked_on(ray: RayEngine, tmp_path: Path) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    assert main([*RUN, str(here), "--workers", "3"]) == 0
    # It works in the cluster of these tests, and leaves it standing.
    assert main([*RUN, str(there), "--engine", "ray"]) == 0
    assert ray.workers == 2 and list(ray.put(None)) == [None]
    for name in ("model.safetensors", "config.toml", "ledger.json"):
        assert (here / name).read_bytes() == (there / name).read_bytes(), name


def test_a_missing_ray_is_said_in_one_line_before_anything_is_loaded(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingExtraError, match="ray is not installed"):
        require_ray()
    capsys.readouterr()
    assert main([*RUN, str(tmp_path / "run"), "--engine", "ray"]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1 and "pip install 'graphveil[ray]'" in said
    assert not (tmp_path / "run").exists()
