"""What a fork does that runs tests on a copy of the tree."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from tests.mutants.catalogue import ROOT


def run_pytest(tree: Path, words: list[str], output: str) -> None:
    """In a fork of a process that has loaded the libraries: forget our modules, and take those of the copy."""
    import pytest

    out = os.open(output, os.O_WRONLY | os.O_CREAT)
    for stream in (1, 2):
        os.dup2(out, stream)
    os.chdir(tree)
    os.environ["PYTHONPATH"] = str(tree / "src")
    os.environ["PYTHONDONTWRITEBYTECODE"], sys.dont_write_bytecode = "1", True
    for name in [name for name in sys.modules if name.split(".")[0] in ("tests", "graphveil", "__mp_main__")]:
        del sys.modules[name]
    sys.path[:] = [str(tree), str(tree / "src"), *(path for path in sys.path if not path.startswith(str(ROOT / "src")))]
    sys.exit(int(pytest.main(words)))
