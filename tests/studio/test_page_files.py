"""The studio's page as files: small, of this machine alone, nothing inline, and scripts that a browser can read."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from graphveil.cli import studio
from graphveil.studio.service import PAGE_FILES, SHARED

PAGE = (PAGE_FILES / "studio.html").read_text(encoding="utf-8")
SCRIPTS = sorted(PAGE_FILES.glob("*.js"))


def test_nothing_is_inline_and_nothing_comes_from_elsewhere() -> None:
    """The policy admits files of the studio alone; a style or a script within the page would be stopped by it."""
    assert not re.search(r"<style|<script(?![^>]* src=)| style=| on\w+=|javascript:", PAGE)
    sources = re.findall(r' (?:src|href)="([^"#]+)"', PAGE)
    served = {f"assets/{file.name}" for file in (*SHARED, *PAGE_FILES.iterdir())}
    assert set(sources) <= served
    for script in SCRIPTS:
        text = script.read_text(encoding="utf-8")
        text = text.replace("http://www.w3.org/2000/svg", "")
        assert not re.search(r"(inner|outer|Adjacent)HTML|document\.write|eval\(|https?://", text), script.name
        assert {f"assets/{name}" for name in re.findall(r'from "\./([^"]+)"', text)} <= served


def test_the_page_is_small() -> None:
    assert sum(file.stat().st_size for file in (*SHARED, *PAGE_FILES.iterdir())) < 1_000_000
    whole = (*PAGE_FILES.iterdir(), *PAGE_FILES.parent.glob("*.py"), Path(studio.__file__))
    assert sum(len(file.read_text(encoding="utf-8").splitlines()) for file in whole) <= 4_500


def test_scripts_can_be_read(tmp_path: Path) -> None:
    """All in one process: each as a module, linked with those that it names."""
    node = shutil.which("node")
    if node is None:
        pytest.skip("no node here")
    for file in (*SHARED, *SCRIPTS):
        shutil.copy(file, tmp_path)
    (tmp_path / "package.json").write_text('{"type": "module"}', encoding="utf-8")
    # Linking fails at a name that another module does not export; what runs without a browser fails otherwise.
    begin = 'await import("./studio.js").catch((error) => { if (error instanceof SyntaxError) throw error; });'
    (tmp_path / "begin.js").write_text(begin, encoding="utf-8")
    done = subprocess.run([node, "begin.js"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
