"""Writing files whole or not at all: a reader never sees half of one, whatever interrupts the writer."""

from __future__ import annotations

import json
import math
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from graphveil.errors import InputError


def json_safe(value: Any) -> Any:
    """``value`` with every infinite or undefined number spelt as a word, since JSON has no literal for them.

    Mappings and sequences are walked; ``inf`` becomes ``"inf"``, ``-inf`` ``"-inf"`` and ``nan`` ``None``.
    """
    if isinstance(value, Mapping):
        return {str(key): json_safe(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [json_safe(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else ("inf" if value > 0 else "-inf")
    return value


def to_json(value: Any, *, indent: int | None = None) -> str:
    """Strict JSON text of ``value``: never a ``NaN`` or ``Infinity`` literal."""
    return json.dumps(json_safe(value), indent=indent, ensure_ascii=False, allow_nan=False, default=str)


def write_text(path: Path, text: str) -> None:
    """Write ``text`` to ``path`` so that the name only ever holds the old file or the whole new one."""
    write_bytes(path, text.encode("utf-8", "replace"))


def write_bytes(path: Path, content: bytes) -> None:
    """The same as :func:`write_text` for bytes."""
    partial = path.with_name(f".{path.name}.partial-{os.getpid()}")
    try:
        with partial.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def refuse_used_folder(path: Path, *, where: str = "--out") -> None:
    """Refuse a folder that could not be made: one that holds something, a file, a place one may not write to.

    Raises:
        InputError: the path exists and is a file, or a folder with content, or nothing may be made there.
    """
    near = next(place for place in (path.absolute().parent, *path.absolute().parents) if place.exists())
    if not (near.is_dir() and os.access(near, os.W_OK | os.X_OK)):
        raise InputError(f"nothing can be written in {near}", where=where, remedy="name another folder")
    if path.is_dir() and not any(path.iterdir()):
        return
    if path.exists() or path.is_symlink():
        what = "is not empty" if path.is_dir() else "is not a folder"
        raise InputError(f"{path} {what}", where=where, remedy="name a new folder; nothing is ever overwritten")


@contextmanager
def new_folder(path: Path) -> Iterator[Path]:
    """A folder that appears under its name only when the block has ended without an error.

    The block writes into a hidden sibling, which is renamed at the end and removed on any exception.

    Raises:
        InputError: ``path`` is already used.
    """
    refuse_used_folder(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.partial-{os.getpid()}")
    try:
        partial.mkdir()
        yield partial
        partial.rename(path)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
