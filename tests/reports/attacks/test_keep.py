"""What an attack found is kept, also where the folder it belongs to is gone."""

from __future__ import annotations

from pathlib import Path

from graphveil.reports.attacks.files import kept
from graphveil.reports.attacks.run import keep
from tests.reports import made


def test_what_was_found_lies_beside_a_run_that_is_gone(tmp_path: Path) -> None:
    said: list[str] = []
    files = keep(made.attacks()["linkteller"], tmp_path / "run", "linkteller", say=said.append)
    beside = tmp_path / "run.attack-linkteller"
    assert {file.parent for file in files} == {beside} and all(file.is_file() for file in files)
    assert beside.stat().st_mode & 0o077 == 0 and kept(beside).keys() == {"linkteller"}
    assert len(said) == 1 and said[0].endswith(f": written to {beside} instead")
