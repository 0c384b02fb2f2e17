"""A job's progress as server-sent events: `progress` with the place in its file as id, `state` last of all."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Final

from graphveil.studio.models import Progress
from graphveil.studio.store import OPEN, Job

#: Seconds between two looks, and between two comments that keep a quiet connection open.
_EVERY, _ALIVE = 0.25, 15.0
_LONGEST: Final = 4096


def last_progress(folder: Path) -> Progress | None:
    """Return how far the command of a folder is; None before its first line."""
    lines = [line for line in _read(folder, max(0, _size(folder) - _LONGEST)).split(b"\n")[:-1] if line]
    return None if not lines else _progress(lines[-1])


async def events(job: Callable[[], Job], folder: Path, after: int) -> AsyncIterator[str]:
    """Yield the events of a job, `after` the last that the page has, until the job has ended."""
    state, quiet = "", 0.0
    while True:
        # First the state: what a command wrote before it ended is then read below.
        present = await asyncio.to_thread(job)
        text = await asyncio.to_thread(_read, folder, after)
        lines = text.split(b"\n")[:-1]
        for line in lines:
            after += len(line) + 1
        if lines and (progress := _progress(lines[-1])) is not None:
            yield _event("progress", progress.model_dump_json(), after)
        if present.state != state:
            state = present.state
            yield _event("state", json.dumps({"state": state}), after)
            quiet = 0.0
        if state not in OPEN:
            return
        quiet = 0.0 if lines else quiet + _EVERY
        if quiet >= _ALIVE:
            yield ": alive\n\n"
            quiet = 0.0
        await asyncio.sleep(_EVERY)


def _event(name: str, data: str, id: int) -> str:
    return f"id: {id}\nevent: {name}\ndata: {data}\n\n"


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


def _size(folder: Path) -> int:
    try:
        return (folder / "progress.jsonl").stat().st_size
    except OSError:
        return 0


def _read(folder: Path, start: int) -> bytes:
    try:
        with (folder / "progress.jsonl").open("rb") as file:
            file.seek(start)
            return file.read(1 << 20)
    except OSError:
        return b""
