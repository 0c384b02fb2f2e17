"""A PostgreSQL of the tests' own, on a loopback port, where Debian's package is installed."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import psycopg
import pytest

from tests.collection.collections import url_of

_NUMBERS = count()


def programs() -> Path | None:
    """Where PostgreSQL's programs are, the newest first; None where they are not installed."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), reverse=True)
    return found[0].parent if found else None


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """The address of a server that keeps nothing: "host:port"."""
    where = programs()
    if where is None:
        pytest.skip("PostgreSQL is not installed (Debian: postgresql)")
    # It refuses to run as root; the account of the package runs it then.
    root = os.getuid() == 0
    if root and shutil.which("runuser") is None:
        pytest.skip("PostgreSQL does not run as root, and nobody else can be made to run it")
    as_user = ["runuser", "-u", "postgres", "--"] if root else []
    # Not below pytest's own folder, which every run of pytest closes to all accounts but its own.
    with tempfile.TemporaryDirectory() as made, socket.socket() as free:
        folder = Path(made)
        if root:
            shutil.chown(folder, "postgres")
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
        free.close()
        data, told = folder / "data", f"-h 127.0.0.1 -p {port} -k {folder}"

        def run(program: str, *words: object) -> None:
            line = [*as_user, str(where / program), "-D", str(data), *map(str, words)]
            subprocess.run(line, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=folder)

        run("initdb", "-U", "graphveil", "--auth=trust", "--no-sync")
        run("pg_ctl", "-o", told, "-w", "-l", folder / "log", "start")
        yield f"127.0.0.1:{port}"
        run("pg_ctl", "-m", "immediate", "stop")


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """An empty database of each kind."""
    if request.param == "sqlite":
        return url_of(tmp_path)
    address, name = request.getfixturevalue("postgres"), f"test{os.getpid()}_{next(_NUMBERS)}"
    with psycopg.connect(f"postgresql://graphveil@{address}/postgres", autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    return f"postgresql+psycopg://graphveil@{address}/{name}"
