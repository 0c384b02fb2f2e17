"""What the room exports, and what importing it costs."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import graphveil.privacy


def test_exports_are_sorted_and_complete() -> None:
    names = graphveil.privacy.__all__
    assert names == sorted(names)
    assert set(names) == declared(Path(graphveil.privacy.__file__))
    for name in names:
        assert getattr(graphveil.privacy, name) is not None


def declared(file: Path) -> set[str]:
    """The names that a room declares for type checkers, under `if TYPE_CHECKING`."""
    blocks = [node for node in ast.parse(file.read_text()).body if isinstance(node, ast.If)]
    return {
        alias.name
        for block in blocks
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }


def test_importing_needs_no_torch() -> None:
    code = "import sys, graphveil.privacy; print([m for m in ('torch', 'dp_accounting') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
