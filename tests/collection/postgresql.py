"""A PostgreSQL of the tests' own, on a loopback port, where Debian's package is installed."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psycopg
import pytest

from tests.federation.ports import free_ports


def programs() -> Path | None:
    """Where PostgreSQL's programs are, the newest first; None where they are not installed."""
    binaries = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), reverse=True)
    return binaries[0].parent if binaries else None


@dataclass(frozen=True)
class Postgres:
    """A server.

    Args:
        where: its programs. as_user: what lets it run as its own account. folder: of its files. port: on loopback.
    """

    where: Path
    as_user: tuple[str, ...]
    folder: Path
    port: int

    @property
    def log(self) -> bytes:
        return (self.folder / "log").read_bytes()

    def url(self, name: str) -> str:
        """An empty database."""
        address = f"graphveil@127.0.0.1:{self.port}"
        with psycopg.connect(f"postgresql://{address}/postgres", autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}")
        return f"postgresql+psycopg://{address}/{name}"

    def run(self, program: str, *words: object) -> None:
        line = [*self.as_user, str(self.where / program), "-D", str(self.folder / "data"), *map(str, words)]
        subprocess.run(line, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=self.folder)

    def start(self) -> None:
        options = f"-h 127.0.0.1 -p {self.port} -k {self.folder}"
        self.run("pg_ctl", "-o", options, "-w", "-l", self.folder / "log", "start")

    def stop(self) -> None:
        self.run("pg_ctl", "-m", "immediate", "stop")

    def kill(self) -> None:
        """Kill it as a power cut would; what it forked ends by itself when it sees that."""
        os.kill(int((self.folder / "data" / "postmaster.pid").read_text().split()[0]), signal.SIGKILL)


@contextmanager
def postgresql(*, durable: bool = False) -> Iterator[Postgres]:
    """Give a server that runs; one that is killed must write durably."""
    where = programs()
    if where is None:
        pytest.skip("PostgreSQL is not installed (Debian: postgresql)")
    # It refuses to run as root; the account of the package runs it then.
    root = os.getuid() == 0
    if root and shutil.which("runuser") is None:
        pytest.skip("PostgreSQL does not run as root, and nobody else can be made to run it")
    # Not below pytest's own folder, which every run of pytest closes to all accounts but its own.
    with tempfile.TemporaryDirectory() as folder:
        if root:
            shutil.chown(folder, "postgres")
        account = ("runuser", "-u", "postgres", "--") if root else ()
        server = Postgres(where, account, Path(folder), free_ports(1)[0])
        server.run("initdb", "-U", "graphveil", "--auth=trust", *([] if durable else ["--no-sync"]))
        server.start()
        try:
            yield server
        finally:
            server.stop()
