"""What `make demo` and `make test` install and say, with a pip that only writes down what it was asked for."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PIP = """#!/bin/sh
echo "$@" >> "$(dirname "$0")/asked"
echo "WARNING: a line that nobody needs"
echo "ERROR: no space" >&2
exit {code}
"""


def make(target: str, venv: Path, *, code: int = 0) -> subprocess.CompletedProcess[str]:
    """Run a target with an environment whose programs do nothing but end with this code."""
    (venv / "bin").mkdir(parents=True, exist_ok=True)
    for name in ("python", "graphveil", "ruff", "mypy"):
        script = venv / "bin" / name
        script.write_text(PIP.format(code=code if name == "python" else 0))
        script.chmod(0o755)
    words = ["make", "--no-print-directory", target, f"VENV={venv}", f"PYTHON={sys.executable}"]
    return subprocess.run(words, cwd=ROOT, env=dict(os.environ), capture_output=True, text=True, check=False)


def pip_calls(venv: Path) -> list[str]:
    return [line for line in (venv / "bin" / "asked").read_text().splitlines() if line.startswith("-m pip")]


def test_the_demo_installs_the_base_alone_and_once(tmp_path: Path) -> None:
    done = make("demo", tmp_path)
    assert done.returncode == 0, done.stderr
    first, second, *_ = done.stdout.splitlines()
    assert first.startswith(f"Installing graphveil into {tmp_path}") and second == "Installed."
    assert "WARNING: a line that nobody needs" in (tmp_path / "pip.log").read_text()
    (install,) = pip_calls(tmp_path)
    assert install.endswith("--editable .") and "--no-compile" in install and "constraints.txt" in install
    again = make("demo", tmp_path)
    assert "Installing" not in again.stdout and len(pip_calls(tmp_path)) == 1


@pytest.mark.parametrize(("first", "second", "installs"), [("demo", "check", 2), ("check", "demo", 1)])
def test_tests_install_more_and_all_that_a_demo_needs(first: str, second: str, installs: int, tmp_path: Path) -> None:
    for target in (first, second):
        assert make(target, tmp_path).returncode == 0
    every = pip_calls(tmp_path)
    assert len(every) == installs and any(line.endswith("--editable .[test]") for line in every)


def test_a_failed_install_shows_why_and_is_tried_again(tmp_path: Path) -> None:
    done = make("demo", tmp_path, code=1)
    assert done.returncode != 0
    assert "ERROR: no space" in done.stderr and "Installed." not in done.stdout
    assert make("demo", tmp_path).returncode == 0 and len(pip_calls(tmp_path)) == 2


def test_an_old_python_is_refused_in_one_line(tmp_path: Path) -> None:
    old = tmp_path / "old"
    old.write_text("#!/bin/sh\necho 'graphveil needs Python 3.11 or newer' >&2\nexit 1\n")
    old.chmod(0o755)
    words = ["make", "--no-print-directory", "demo", f"VENV={tmp_path / 'venv'}", f"PYTHON={old}"]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode != 0 and done.stderr.startswith("graphveil needs Python 3.11 or newer\n")
    assert not (tmp_path / "venv").exists()
