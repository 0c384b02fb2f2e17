"""What the room exports, and what importing it costs."""

from __future__ import annotations

import subprocess
import sys

import graphveil.privacy


def test_exports_are_sorted_and_complete() -> None:
    names = graphveil.privacy.__all__
    assert names == sorted(names)
    public = {
        name
        for name, value in vars(graphveil.privacy).items()
        if not name.startswith("_") and not isinstance(value, type(graphveil))
    }
    assert public == set(names)


def test_importing_needs_no_torch() -> None:
    code = "import sys, graphveil.privacy; print([m for m in ('torch', 'dp_accounting') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
