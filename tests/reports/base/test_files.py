"""Files appear whole or not at all."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from graphveil.errors import InputError, ModelFileError
from graphveil.reports.base import files


def test_json_never_holds_a_literal_that_json_lacks() -> None:
    text = files.to_json({"a": math.inf, "b": [-math.inf, math.nan], "c": {"d": (1, 2.5)}, 3: "x"})
    assert json.loads(text) == {"a": "inf", "b": ["-inf", None], "c": {"d": [1, 2.5]}, "3": "x"}


def test_text_replaces_the_old_file_whole(tmp_path: Path) -> None:
    target = tmp_path / "a.txt"
    files.write_text(target, "old")
    files.write_text(target, "new äöü \ud800")
    assert target.read_text("utf-8") == "new äöü ?"
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.txt"]


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "a.txt"
    files.write_text(target, "old")

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OSError, match="No space"):
        files.write_text(target, "new")
    assert target.read_text() == "old"
    assert len(list(tmp_path.iterdir())) == 1


def test_a_new_folder_appears_only_at_the_end(tmp_path: Path) -> None:
    target = tmp_path / "deep" / "run"
    with files.new_folder(target) as folder:
        (folder / "x").write_text("1")
        assert not target.exists()
    assert (target / "x").read_text() == "1"
    assert [entry.name for entry in target.parent.iterdir()] == ["run"]


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, SystemExit])
def test_a_crash_leaves_no_folder(tmp_path: Path, error: type[BaseException]) -> None:
    with pytest.raises(error), files.new_folder(tmp_path / "run") as folder:
        (folder / "x").write_text("1")
        raise error
    assert list(tmp_path.iterdir()) == []


def test_an_empty_folder_may_be_used(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    with files.new_folder(tmp_path / "run") as folder:
        (folder / "x").write_text("1")
    assert (tmp_path / "run" / "x").exists()


def test_a_used_folder_is_refused_and_kept(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "mine").write_text("1")
    with pytest.raises(InputError, match=r"--out: .*run is not empty; name a new folder"):
        files.refuse_used_folder(tmp_path / "run")
    with pytest.raises(InputError, match="is not a folder"):
        files.refuse_used_folder(tmp_path / "run" / "mine")
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    with pytest.raises(InputError, match="is not a folder"):
        files.refuse_used_folder(tmp_path / "link")
    assert (tmp_path / "run" / "mine").read_text() == "1"


def test_a_sealed_file_that_was_edited_is_noticed() -> None:
    whole = {"a": 1.0, "b": {"c": [math.inf, "x"]}}
    kept = json.loads(files.sealed(whole))
    assert files.unsealed(kept, Path("f"), required=True) == {"a": 1.0, "b": {"c": ["inf", "x"]}}
    old = {name: value for name, value in kept.items() if name != "sha256"}
    assert files.unsealed(old, Path("f")) == old
    for changed, required in (({**kept, "a": 2.0}, False), ({**kept, "new": 1}, False), (old, True)):
        with pytest.raises(ModelFileError, match="was changed since it was written"):
            files.unsealed(changed, Path("f"), required=required)
