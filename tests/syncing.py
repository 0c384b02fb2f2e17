"""What is synced to the disk, as the system hears of it."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

#: What gives a file its name.
_NAMING = {id(one): "named" for one in (os.replace, os.rename, os.link)}


def _held(below: Path) -> list[str]:
    """Which of a folder's files this process has open, the folder itself as "."."""
    found = set()
    for one in Path("/proc/self/fd").iterdir():
        try:
            path = one.readlink()
        except OSError:
            continue  # the one that listed them
        if path == below or below in path.parents:
            found.add(str(path.relative_to(below)))
    return sorted(found)


@contextmanager
def syncs(below: Path) -> Iterator[list[list[str]]]:
    """Record what this thread has open below a folder whenever it syncs, in order; `["named"]` where a file is named.

    A folder is open while it is synced alone, and a file while it is written: what is open tells what is synced.
    """
    found: list[list[str]] = []

    def hear(_: FrameType, event: str, called: object) -> None:
        if event == "c_call" and called is os.fsync:
            found.append(_held(below.resolve()))
        elif event == "c_call" and id(called) in _NAMING:
            found.append([_NAMING[id(called)]])

    before = sys.getprofile()
    sys.setprofile(hear)
    try:
        yield found
    finally:
        sys.setprofile(before)
