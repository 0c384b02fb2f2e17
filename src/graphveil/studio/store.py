"""What a studio remembers, in one SQLite file: jobs, sessions by their hashes, and the choices of the page."""

from __future__ import annotations

import json
import sqlite3
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from graphveil.studio.refusals import Refusal

_TABLES: Final = """
CREATE TABLE IF NOT EXISTS jobs (
    number INTEGER PRIMARY KEY, id TEXT UNIQUE, kind TEXT, request TEXT, words TEXT, out TEXT,
    state TEXT, code INTEGER, created REAL, began REAL, ended REAL, stopped REAL
);
CREATE TABLE IF NOT EXISTS sessions (hash TEXT PRIMARY KEY, until REAL);
CREATE TABLE IF NOT EXISTS saved (id INTEGER PRIMARY KEY CHECK (id = 1), version INTEGER, content TEXT);
"""
#: States of a job that has not ended.
WAITING, RUNNING = "waiting", "running"
_COLUMNS: Final = "id, kind, request, words, out, state, code, created, began, ended, stopped"


@dataclass(frozen=True)
class Job:
    """A command that a page has started: its words, and how far it is; moments are seconds since 1970."""

    id: str
    kind: str
    request: dict[str, Any]
    words: tuple[str, ...]
    out: str | None
    state: str = WAITING
    code: int | None = None
    created: float = 0.0
    began: float | None = None
    ended: float | None = None
    stopped: float | None = None


class Store:
    """The file; threads take turns.

    Args:
        path: of the file, which is made where it is absent.
    """

    def __init__(self, path: Path) -> None:
        self._lock = threading.RLock()
        self._file = sqlite3.connect(path, check_same_thread=False, isolation_level=None)
        path.chmod(0o600)
        self._file.executescript(_TABLES)

    def close(self) -> None:
        with self._lock:
            self._file.close()

    @contextmanager
    def _turn(self) -> Iterator[sqlite3.Connection]:
        with self._lock:
            yield self._file

    def add(self, job: Job) -> None:
        values = _row(job)
        with self._turn() as file:
            file.execute(f"INSERT INTO jobs ({_COLUMNS}) VALUES ({', '.join('?' * len(values))})", values)

    def change(self, job: Job, **fields: object) -> Job:
        """Store other values of some fields, and return the job with them."""
        changed = replace(job, **fields)  # type: ignore[arg-type]
        assigned = ", ".join(f"{name} = ?" for name in fields)
        with self._turn() as file:
            file.execute(f"UPDATE jobs SET {assigned} WHERE id = ?", (*fields.values(), job.id))
        return changed

    def job(self, id: str) -> Job:
        """Return a job; Refusal: there is none of this name."""
        jobs = self._jobs("WHERE id = ?", (id,))
        if not jobs:
            raise Refusal("not-found", "there is no such job")
        return jobs[0]

    def jobs(self, *states: str) -> list[Job]:
        """Return the jobs in these states, or all, in the order in which they were started."""
        where = f"WHERE state IN ({', '.join('?' * len(states))})" if states else ""
        return self._jobs(f"{where} ORDER BY number", states)

    def _jobs(self, rest: str, values: Sequence[str]) -> list[Job]:
        with self._turn() as file:
            rows = file.execute(f"SELECT {_COLUMNS} FROM jobs {rest}", values).fetchall()
        return [
            Job(id, kind, json.loads(request), tuple(json.loads(words)), *rest)
            for id, kind, request, words, *rest in rows
        ]

    def admit(self, hash: str, until: float) -> None:
        with self._turn() as file:
            file.execute("DELETE FROM sessions WHERE until < ?", (time.time(),))
            file.execute("INSERT OR REPLACE INTO sessions VALUES (?, ?)", (hash, until))

    def is_admitted(self, hash: str) -> bool:
        with self._turn() as file:
            row = file.execute("SELECT until FROM sessions WHERE hash = ?", (hash,)).fetchone()
        return row is not None and row[0] > time.time()

    def dismiss(self, hash: str) -> None:
        with self._turn() as file:
            file.execute("DELETE FROM sessions WHERE hash = ?", (hash,))

    def saved(self) -> tuple[int, dict[str, Any]]:
        """Return the choices of the page with their version, 0 before the first."""
        with self._turn() as file:
            row = file.execute("SELECT version, content FROM saved").fetchone()
        return (0, {}) if row is None else (row[0], json.loads(row[1]))

    def save(self, version: int, content: dict[str, Any]) -> int:
        """Store choices that were made from a version, and return the next one; Refusal: another page was quicker."""
        with self._turn() as file:
            if version != self.saved()[0]:
                raise Refusal("stale", "another window has changed the choices meanwhile: load them first")
            file.execute("INSERT OR REPLACE INTO saved VALUES (1, ?, ?)", (version + 1, json.dumps(content)))
        return version + 1


def _job(row: Sequence[Any]) -> Job:
    id, kind, request, words, *rest = row
    return Job(id, kind, json.loads(request), tuple(json.loads(words)), *rest)


def _row(job: Job) -> tuple[object, ...]:
    texts = (json.dumps(job.request), json.dumps(job.words))
    return (job.id, job.kind, *texts, job.out, job.state, job.code, job.created, job.began, job.ended, job.stopped)
