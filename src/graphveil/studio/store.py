"""What a studio remembers, in one SQLite file: jobs, sessions by their hashes, and the choices of the page."""

from __future__ import annotations

import json
import sqlite3
import threading
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

from graphveil.errors import InputError
from graphveil.studio.refusals import Refusal

_TABLES: Final = """
CREATE TABLE IF NOT EXISTS jobs (number INTEGER PRIMARY KEY, id TEXT UNIQUE, content TEXT);
CREATE TABLE IF NOT EXISTS sessions (hash TEXT PRIMARY KEY, until REAL);
CREATE TABLE IF NOT EXISTS saved (id INTEGER PRIMARY KEY CHECK (id = 1), version INTEGER, content TEXT);
"""
_PUT: Final = "INSERT INTO jobs (id, content) VALUES (?, ?) ON CONFLICT (id) DO UPDATE SET content = excluded.content"
State: TypeAlias = Literal["waiting", "running", "done", "refused", "failed", "stopped", "killed"]
#: States of a job that has not ended.
OPEN: Final = ("waiting", "running")


@dataclass(frozen=True)
class Job:
    """A command that a page has started: its words, and how far it is; moments are seconds since 1970."""

    id: str
    job: str
    request: dict[str, Any]
    words: list[str]
    out: str | None
    created: float
    state: State = "waiting"
    began: float | None = None
    ended: float | None = None
    stopped: float | None = None
    stamps: dict[str, int] | None = None  # of the data whose price was confirmed


class Store:
    """The database; threads use it in turn.

    Args:
        path: of the file, which is made where it is absent; InputError: it is no file of this version.
    """

    def __init__(self, path: Path) -> None:
        self._lock = threading.RLock()
        self._file = sqlite3.connect(path, check_same_thread=False, isolation_level=None)
        try:
            self._file.executescript(_TABLES)
            # Everything is read once: the file of another version is refused now, and not at some click.
            self.jobs(), self.is_admitted(""), self.saved()
        except (sqlite3.Error, ValueError, TypeError) as error:
            self.close()
            remedy = "move the file away: data and runs stay, and choices and the list of jobs begin anew"
            reason = f"the studio's database is of another version or damaged ({error})"
            raise InputError(reason, where=str(path), remedy=remedy) from error
        path.chmod(0o600)

    def close(self) -> None:
        with self._lock:
            self._file.close()

    def put(self, job: Job, **fields: object) -> Job:
        """Store a job with other values of some fields, and return it."""
        changed = replace(job, **fields)  # type: ignore[arg-type]
        with self._lock:
            self._file.execute(_PUT, (job.id, json.dumps(asdict(changed))))
        return changed

    def job(self, id: str) -> Job:
        """Return a job; Refusal: there is none of this name."""
        jobs = self._jobs("WHERE id = ?", id)
        if not jobs:
            raise Refusal("not-found", "there is no such job")
        return jobs[0]

    def jobs(self, *states: State) -> list[Job]:
        """Return the jobs in these states, or all, in the order in which they were started."""
        condition = f"WHERE json_extract(content, '$.state') IN ({', '.join('?' * len(states))})" if states else ""
        return self._jobs(f"{condition} ORDER BY number", *states)

    def _jobs(self, clause: str, *values: str) -> list[Job]:
        with self._lock:
            rows = self._file.execute(f"SELECT content FROM jobs {clause}", values).fetchall()
        return [Job(**json.loads(content)) for (content,) in rows]

    def admit(self, hash: str, until: float) -> None:
        with self._lock:
            self._file.execute("DELETE FROM sessions WHERE until < ?", (time.time(),))
            self._file.execute("INSERT OR REPLACE INTO sessions VALUES (?, ?)", (hash, until))

    def is_admitted(self, hash: str) -> bool:
        with self._lock:
            row = self._file.execute("SELECT until FROM sessions WHERE hash = ?", (hash,)).fetchone()
        return row is not None and row[0] > time.time()

    def saved(self) -> tuple[int, dict[str, Any]]:
        """Return the choices of the page with their version, 0 before the first."""
        with self._lock:
            row = self._file.execute("SELECT version, content FROM saved").fetchone()
        return (0, {}) if row is None else (row[0], json.loads(row[1]))

    def save(self, version: int, content: dict[str, Any]) -> int:
        """Store choices that were made from a version, and return the next one; Refusal: another page was quicker."""
        with self._lock:
            if version != self.saved()[0]:
                raise Refusal("stale", "another window has changed the choices meanwhile: load them first")
            self._file.execute("INSERT OR REPLACE INTO saved VALUES (1, ?, ?)", (version + 1, json.dumps(content)))
        return version + 1
