"""Files that are on disk when the function returns, and stay there through a crash."""

from __future__ import annotations

import os
from pathlib import Path


def write(path: Path, data: bytes) -> None:
    """Write a file whole or not at all, for its owner alone.

    Args:
        path: of the file, which is replaced if it exists. data: its bytes.
    """
    new = path.with_suffix(".new")
    new.touch(mode=0o600)
    with new.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    new.replace(path)
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Wait until the names in a folder are on disk, so that new and replaced files survive a crash."""
    place = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(place)
    finally:
        os.close(place)
