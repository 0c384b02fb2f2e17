"""Commands as processes of their own: a crash of one leaves the studio up, and the end of the studio leaves them up.

    .graphveil-studio/jobs/ID/   words.json, stdout, stderr, progress.jsonl, and rc once the command has ended

Jobs wait in order until few enough run. A job runs as long as its `runner` holds a lock, which the system releases
however the process ends.
"""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import secrets
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from graphveil.studio import runner
from graphveil.studio.models import Progress
from graphveil.studio.refusals import Refusal, without_cells
from graphveil.studio.root import STATE, Root
from graphveil.studio.store import OPEN, Job, State, Store

#: The command. Without -P a file of the root, where it runs, could take the place of any library.
PROGRAM: Final = (sys.executable, "-P", "-m", "graphveil")
#: Seconds after which a command that was told to stop is killed, and in which one that was just started takes its lock.
PATIENCE, _START = 20.0, 10.0
#: Seconds that a query may take, and bytes of an answer that are read.
QUERY: Final = 60.0
_LARGEST: Final = 16 << 20
#: Queries that run at once, and whose answers are remembered; jobs that may wait.
_AT_ONCE, _ANSWERS, _WAITING = 2, 64, 100
_REFUSED: Final = 2
#: What libraries read the number of their threads from.
_THREADS: Final = (
    *("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"),
    *("NUMBA_NUM_THREADS", "POLARS_MAX_THREADS"),
)
_INTERRUPTED: Final = 130
#: Seconds between two looks at the progress of a job.
_EVENT_INTERVAL: Final = 0.25


@dataclass(frozen=True)
class Limits:
    """How many jobs of a studio run at once, and memory and threads of each."""

    jobs: int = 1
    memory_mb: int = 4096
    threads: int = 2

    @property
    def environment(self) -> dict[str, str]:
        return dict.fromkeys(_THREADS, str(self.threads))


@dataclass(frozen=True)
class Outcome:
    """What a command left: its exit code, None where there is none, its answer, and the line of its error."""

    code: int | None
    answer: dict[str, Any] | None
    error: str | None


class Jobs:
    """The jobs of a root.

    Args:
        patience: seconds between SIGINT and SIGKILL.
        program: what is run with a job's words.
    """

    def __init__(
        self, root: Root, store: Store, limits: Limits, patience: float = PATIENCE, program: Sequence[str] = PROGRAM
    ) -> None:
        self.root, self.store, self.limits, self._patience = root, store, limits, patience
        self._program = program
        self._slots = threading.BoundedSemaphore(_AT_ONCE)
        self._answers: dict[tuple[object, ...], dict[str, Any]] = {}
        self._lock = threading.RLock()
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        shutil.rmtree(root.scratch, ignore_errors=True)
        root.scratch.mkdir(mode=0o700)
        # Jobs that waited for an earlier studio do not begin by themselves: nobody confirmed their price to this one.
        for job in store.jobs("waiting"):
            store.put(job, state="stopped", ended=time.time(), stopped=time.time())

    def submit(
        self, kind: str, request: Mapping[str, Any], words: Sequence[str], out: str | None,
        stamps: dict[str, int] | None = None,
    ) -> Job:  # fmt: skip
        """Queue a command and return its job.

        Args:
            kind: of job.
            request: from which the job can be started again.
            words: of the command, after its name.
            out: the folder that it will write, as pages name it.
            stamps: of the data whose price was confirmed; the job does not begin where they have changed by its turn.

        Raises:
            Refusal: too many wait already.
        """
        job = Job(secrets.token_hex(8), kind, dict(request), list(words), out, time.time(), stamps=stamps)
        with self._lock:
            if len(self.store.jobs("waiting")) >= _WAITING:
                raise Refusal("too-often", f"{_WAITING} jobs wait already")
            self.store.put(job)
            # The job is queued, whatever becomes of others: a page that heard of an error would start it twice.
            with suppress(sqlite3.Error, OSError):
                self.tick()
            return self.store.job(job.id)

    def stop(self, job: Job) -> Job:
        """Stop a job: one that waits never starts, one that runs is interrupted, and killed where it does not end."""
        with self._lock:
            job = self.store.job(job.id)
            if job.state == "waiting":
                return self.store.put(job, state="stopped", ended=time.time(), stopped=time.time())
            if job.state == "running" and job.stopped is None:
                self._signal(job, signal.SIGINT)
                job = self.store.put(job, stopped=time.time())
        return job

    def folder(self, job: Job) -> Path:
        return self.root.state / "jobs" / job.id

    def tick(self) -> None:
        """Write down which jobs have ended, kill those that do not stop, and start those whose turn it is."""
        with self._lock:
            running = [job for job in self.store.jobs("running") if not self._has_ended(job)]
            for job in self.store.jobs("waiting")[: max(0, self.limits.jobs - len(running))]:
                self._start(job)

    def _start(self, job: Job) -> None:
        if job.stamps is not None and job.stamps != self.stamps(job.words):
            self._end(job, "refused", "the data has changed since this price was confirmed: start it again")
            return
        # Before it runs: a command that is on its way is never taken for one that waits, and started again.
        job = self.store.put(job, state="running", began=time.time())
        try:
            self.processes[job.id] = self._launch(self.folder(job), job.words)
        except OSError as error:
            # A full disk, or no process left: the job has ended, and the next ones get their turn.
            self._end(job, "failed", error.strerror or str(error))

    def _end(self, job: Job, state: State, line: str) -> None:
        folder = self.folder(job)
        with suppress(OSError):
            folder.mkdir(parents=True, mode=0o700, exist_ok=True)
            (folder / "stderr").write_text(f"error: {line}\n", encoding="utf-8")
        self.store.put(job, state=state, ended=time.time())

    def _has_ended(self, job: Job) -> bool:
        """Return whether a job has ended, and write down how."""
        folder, now = self.folder(job), time.time()
        process = self.processes.get(job.id)
        is_ours = process is not None and process.poll() is None
        if is_ours or _is_locked(folder, now - (job.began or 0.0)):
            if job.stopped is not None and now - job.stopped > self._patience:
                self._signal(job, signal.SIGKILL)
            return False
        self.processes.pop(job.id, None)
        self.store.put(job, state=state_of(code_in(folder), stopped=job.stopped is not None), ended=now)
        return True

    def query(self, words: Sequence[str]) -> dict[str, Any]:
        """As `ask`, of a command that spends and writes nothing: the last answer where no folder has changed."""
        key = (*words, *self.stamps(words).items())
        if key not in self._answers:
            answer = self.ask(words)
            # The oldest first: dictionaries keep their order.
            self._answers = {**dict(list(self._answers.items())[-_ANSWERS:]), key: answer}
        return self._answers[key]

    def stamps(self, words: Sequence[str]) -> dict[str, int]:
        """Return the files in the folders that words name, each with when it was changed."""
        folders = [path for word in words if (path := self.root.folder / word).is_dir()]
        files = [file for folder in folders for file in sorted(folder.iterdir()) if file.is_file()]
        return {str(file): file.stat().st_mtime_ns for file in files}

    def ask(self, words: Sequence[str], seconds: float = QUERY) -> dict[str, Any]:
        """Run a command's words at once and return its answer; Refusal: it refuses, or takes so many seconds."""
        if not self._slots.acquire(timeout=seconds):
            raise Refusal("too-often", "other questions are being answered: ask again in a minute")
        folder = self.root.scratch / secrets.token_hex(8)
        try:
            process = self._launch(folder, words)
            try:
                process.wait(seconds)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
                raise Refusal("too-slow", f"no answer within {seconds:g} seconds: the data is large") from None
            outcome = outcome_in(folder)
        finally:
            shutil.rmtree(folder, ignore_errors=True)
            self._slots.release()
        if outcome.code != 0 or outcome.answer is None:
            raise Refusal("refused", outcome.error or "the command gave no answer")
        return outcome.answer

    def _signal(self, job: Job, number: int) -> None:
        """Send a signal to the runner of a job and its command, if they live."""
        process, folder = self.processes.get(job.id), self.folder(job)
        with suppress(OSError, ValueError):
            if process is not None and process.poll() is None:
                os.killpg(process.pid, number)
            elif _is_locked(folder, _START):  # so the number in the file is still its own
                os.killpg(int((folder / "running").read_text(encoding="utf-8")), number)

    def _launch(self, folder: Path, words: Sequence[str]) -> subprocess.Popen[bytes]:
        folder.mkdir(parents=True, mode=0o700)
        job = {
            "command": [*self._program, *words, "--json"],
            "cwd": str(self.root.folder),
            "memory": self.limits.memory_mb << 20,
            "environment": self.limits.environment,
        }
        (folder / "words.json").write_text(json.dumps(job), encoding="utf-8")
        # Its own session: Ctrl-C at the studio's terminal is not for its jobs.
        return subprocess.Popen(
            [sys.executable, "-I", runner.__file__, str(folder)],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
        )  # fmt: skip


def state_of(code: int | None, *, stopped: bool) -> State:
    """Return the state of a job that has ended, by its exit code: None where its runner was killed too."""
    if code == 0:
        return "done"
    if stopped or code == _INTERRUPTED:
        return "stopped"
    if code == _REFUSED:
        return "refused"
    return "killed" if code is None or code < 0 else "failed"


def code_in(folder: Path) -> int | None:
    try:
        return int((folder / "rc").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None


def outcome_in(folder: Path, *, whole: bool = True) -> Outcome:
    """Return what the command of a folder left; its answer only if `whole`."""
    code, answer = code_in(folder), None
    with suppress(ValueError):
        answer = json.loads(_tail(folder / "stdout")) if code == 0 and whole else None
    lines = [line for line in _tail(folder / "stderr", 1 << 16).splitlines() if line.strip()]
    error_line = next((line for line in reversed(lines) if line.startswith(("error: ", "internal error: "))), None)
    return Outcome(code, answer if isinstance(answer, dict) else None, _sentence(code, error_line))


def warnings_in(folder: Path) -> list[str]:
    """Return the warnings that a command has printed so far."""
    lines = _tail(folder / "stderr", 1 << 16).splitlines()
    return [without_cells(line.removeprefix("warning: ")) for line in lines if line.startswith("warning: ")]


def _sentence(code: int | None, error_line: str | None) -> str | None:
    if code == 0:
        return None
    if error_line is not None and error_line.startswith("error: "):
        return without_cells(error_line.removeprefix("error: "))
    if error_line is not None:
        # Without its message, which may quote what it read.
        return f"{': '.join(error_line.split(': ')[:2])}; its stderr is in {STATE}/jobs, please report it"
    if code is None:
        return "it was killed, or the machine was switched off, before it ended"
    if code == _INTERRUPTED:
        return "interrupted; no partial files remain"
    if code < 0:
        # Libraries abort where they are refused memory.
        full = code in (-signal.SIGKILL, -signal.SIGABRT)
        why = ": most likely no memory was left, see --memory" if full else ""
        return f"it was ended by signal {-code} ({signal.Signals(-code).name}){why}; no result was written"
    return f"it ended with code {code} and no reason"


def _tail(file: Path, size: int = _LARGEST) -> str:
    try:
        with file.open("rb") as stream:
            stream.seek(max(0, file.stat().st_size - size))
            return stream.read(size).decode("utf-8", "replace")
    except OSError:
        return ""


def _is_locked(folder: Path, seconds: float) -> bool:
    """Return whether the runner of a folder, which was started so many seconds ago, lives."""
    try:
        descriptor = os.open(folder / "running", os.O_RDWR)
    except OSError:
        return seconds < _START
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(descriptor)
    return False


async def events(job: Callable[[], Job], folder: Path) -> AsyncIterator[str]:
    """Yield a job's progress as server-sent events until it has ended; a page that lost the line begins anew.

    Of `progress` only the last line so far is sent; `state` comes after it.
    """
    state, after = "", 0
    while True:
        # The state is read first: then all that a command wrote before it ended is read below.
        current = await asyncio.to_thread(job)
        text = await asyncio.to_thread(_lines_after, folder, after)
        lines = text.split(b"\n")[:-1]
        for line in lines:
            after += len(line) + 1
        if lines and (progress := _progress(lines[-1])) is not None:
            yield _event("progress", progress.model_dump_json())
        if current.state != state:
            state = current.state
            yield _event("state", json.dumps({"state": state}))
        if state not in OPEN:
            return
        await asyncio.sleep(_EVENT_INTERVAL)


def _event(name: str, data: str) -> str:
    return f"event: {name}\ndata: {data}\n\n"


def _progress(line: bytes) -> Progress | None:
    try:
        content = json.loads(line)
        epsilon = content["epsilon"]
        return Progress(
            stage=content["stage"],
            done=content["done"],
            total=content["total"],
            epsilon=epsilon if isinstance(epsilon, float | int) else None,
        )
    except (ValueError, KeyError, TypeError):
        return None


def _lines_after(folder: Path, start: int) -> bytes:
    try:
        with (folder / "progress.jsonl").open("rb") as file:
            file.seek(start)
            return file.read(1 << 20)
    except OSError:
        return b""
