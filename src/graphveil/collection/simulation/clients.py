"""The clients of simulated people: ours in Python, and ours in JavaScript under Node.js."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from graphveil.errors import InputError

#: The program of `clients/js`, as built there; it lies beside the pages, and none of them loads it.
LINES = Path(__file__).parents[1] / "assets" / "lines.mjs"


def commands_of(names: str, js: Path | None = None) -> dict[str, Sequence[str]]:
    """Return the command that starts each client. Raises InputError for another name, a name twice, or no Node.js or
    program.

    Args:
        names: python, js or both, with a comma. js: a program to use in place of our JavaScript client.
    """
    clients = [name.strip() for name in names.split(",")]
    for name in clients:
        if name not in ("python", "js"):
            raise InputError(f"unknown client '{name}'", where="--clients", allowed="python, js")
    if len(set(clients)) < len(clients):
        raise InputError(f"{names!r} names a client twice", where="--clients", allowed="python, js, or python,js")
    return {
        name: _javascript(js or LINES) if name == "js" else [sys.executable, "-m", "graphveil.device", "lines"]
        for name in clients
    }


def _javascript(program: Path) -> Sequence[str]:
    node = shutil.which("node")
    if node is None:
        raise InputError("there is no node", where="--clients js", remedy="install Node.js 20 or later")
    if not program.is_file():
        raise InputError(f"{program} is no file", where="--js", remedy="leave the option out: our client is installed")
    return [node, str(program)]
