"""What is synced to the disk, as the system hears of it."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

#: What gives a file its name.
_NAMING = {id(function): "named" for function in (os.replace, os.rename, os.link)}


def _open_files(below: Path) -> list[str]:
    """Which of a folder's files this process has open, the folder itself as "."."""
    names = set()
    for descriptor in Path("/proc/self/fd").iterdir():
        try:
            path = descriptor.readlink()
        except OSError:
            continue  # the one that listed them
        if path == below or below in path.parents:
            names.add(str(path.relative_to(below)))
    return sorted(names)


@contextmanager
def syncs(below: Path) -> Iterator[list[list[str]]]:
    """Record what this thread has open below a folder whenever it syncs, in order; `["named"]` where a file is named.

    A folder is open while it is synced alone, and a file while it is written: what is open tells what is synced.
    """
    steps: list[list[str]] = []

    def hear(_: FrameType, event: str, called: object) -> None:
        if event == "c_call" and called is os.fsync:
            steps.append(_open_files(below.resolve()))
        elif event == "c_call" and id(called) in _NAMING:
            steps.append([_NAMING[id(called)]])

    before = sys.getprofile()
    sys.setprofile(hear)
    try:
        yield steps
    finally:
        sys.setprofile(before)
