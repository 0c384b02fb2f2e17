"""What the clean run installs and says is skipped, with commands that stand in for those of the machine."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parent.parent / ".ci" / "run"
SKIPPED = "Node 20 or later is not there and could not be installed, so skipped: tests of the client in TypeScript"


@pytest.mark.parametrize(
    ("version", "enough"), [("v18.19.0", False), ("v20.0.0", True), ("v24.1.0", True), ("", False)]
)
def test_an_old_node_is_no_node(version: str, enough: bool, tmp_path: Path) -> None:
    """As Debian 12 has it: there, and too old for the client."""
    if not SCRIPT.is_file():
        pytest.skip("not in a source distribution")
    stubs = {"node": f"echo {version}", "npm": 'echo "npm $1" >> said', "apt-get": "exit 1", "make": 'echo "make $*"'}
    changed = (
        "src/graphveil/cli/app.py src/graphveil/none/a.py tests/cli/test_near.py src/graphveil/graphs/named/musae.py"
    )
    stubs["git"] = f"[ $1 = rev-list ] && echo base || printf '%s\\n' {changed}"
    for name, does in stubs.items():
        stub = tmp_path / name
        stub.write_text(f"#!/bin/sh\ncd {tmp_path}\n{does}\n")
        stub.chmod(0o755)
    path = f"{tmp_path}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run([SCRIPT], capture_output=True, text=True, check=True, env={**os.environ, "PATH": path})
    *_, first, benchmarks, slow = done.stdout.splitlines()
    assert [first, benchmarks] == ["make test", "make types-benchmarks"] and (SKIPPED in done.stdout) != enough
    assert re.fullmatch(r"make test-slow ROOMS=tests/cli tests/graphs SECONDS=7[0-2][0-9]", slow)
    assert (tmp_path / "said").exists() == enough
