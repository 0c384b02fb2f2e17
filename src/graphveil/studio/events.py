"""A job's progress as server-sent events: of `progress` the last line that there is, `state` last of all."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path

from graphveil.studio.models import Progress
from graphveil.studio.store import OPEN, Job

#: Seconds between two looks.
_EVERY = 0.25


async def events(job: Callable[[], Job], folder: Path) -> AsyncIterator[str]:
    """Yield the events of a job until it has ended; a page that lost the line begins anew."""
    state, after = "", 0
    while True:
        # First the state: what a command wrote before it ended is then read below.
        present = await asyncio.to_thread(job)
        text = await asyncio.to_thread(_read, folder, after)
        lines = text.split(b"\n")[:-1]
        for line in lines:
            after += len(line) + 1
        if lines and (progress := _progress(lines[-1])) is not None:
            yield _event("progress", progress.model_dump_json())
        if present.state != state:
            state = present.state
            yield _event("state", json.dumps({"state": state}))
        if state not in OPEN:
            return
        await asyncio.sleep(_EVERY)


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


def _read(folder: Path, start: int) -> bytes:
    try:
        with (folder / "progress.jsonl").open("rb") as file:
            file.seek(start)
            return file.read(1 << 20)
    except OSError:
        return b""
