"""Where data sets lie, and how an absent one gets there: whole or not at all."""

from __future__ import annotations

import contextlib
import io
import os
import shutil
import socket
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from graphveil.errors import MissingDataError

Progress = Callable[[Mapping[str, object]], None]
"""Called with {"stage": str, "done": int, "total": int}; total 0 means not known."""

VARIABLE = "GRAPHVEIL_DATA"


def data_root(root: str | os.PathLike[str] | None = None) -> Path:
    """The data root: the argument, else the environment variable GRAPHVEIL_DATA, else the user cache."""
    if root is not None:
        return Path(root).expanduser()
    if os.environ.get(VARIABLE):
        return Path(os.environ[VARIABLE]).expanduser()
    cache = os.environ.get("XDG_CACHE_HOME")
    return (Path(cache) if cache else Path.home() / ".cache") / "graphveil"


def ensure_files(
    folder: Path,
    files: tuple[str, ...],
    *,
    name: str,
    fetch: Callable[[Path], None] | None,
    progress: Progress | None,
) -> Path:
    """The folder, once all files are in it; what is absent is fetched through a temporary sibling.

    Args:
        folder: where the files belong.
        files: their names.
        name: the data set, for messages.
        fetch: writes the files into the folder it is given; None when nothing may be downloaded.
        progress: told the bytes on disk during the download.

    Raises:
        MissingDataError: a file is absent and could not be fetched. Nothing half-written is left.
    """
    absent = [file for file in files if not (folder / file).is_file()]
    if not absent:
        return folder
    if fetch is None:
        raise missing(name, folder, files, absent)
    try:
        _fetch_whole(folder, fetch, name, progress)
    except OSError as error:
        raise missing(name, folder, files, absent, f"downloading failed ({_reason(error)})") from error
    absent = [file for file in files if not (folder / file).is_file()]
    if absent:
        raise missing(name, folder, files, absent, "the download did not hold them")
    return folder


def missing(
    name: str, folder: Path, files: tuple[str, ...], absent: list[str], reason: str = "not on this machine"
) -> MissingDataError:
    """The refusal for an absent data set: what was looked for, where, and what to put there."""
    listed = ", ".join(absent[:3]) + (f" and {len(absent) - 3} more" if len(absent) > 3 else "")
    return MissingDataError(
        f"data set {name!r}: {listed} absent, {reason}",
        where=str(folder),
        remedy=f"put {', '.join(files)} into {folder}, or name another data root "
        f"with --data-root or {VARIABLE}",
    )


def _fetch_whole(folder: Path, fetch: Callable[[Path], None], name: str, progress: Progress | None) -> None:
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{folder.name}.partial-", dir=folder.parent) as partial:
        inside = Path(partial) / "raw"
        inside.mkdir()
        with _reported(inside, name, progress), _impatient(), contextlib.redirect_stderr(io.StringIO()):
            fetch(inside)
        folder.mkdir(exist_ok=True)
        for file in sorted(inside.iterdir()):
            if not (folder / file.name).exists():
                shutil.move(file, folder / file.name)


@contextlib.contextmanager
def _reported(folder: Path, name: str, progress: Progress | None) -> Iterator[None]:
    """Tell `progress` the bytes in a folder twice a second while the block runs."""
    if progress is None:
        yield
        return
    done, tell = threading.Event(), progress

    def watch() -> None:
        while True:
            stopped = done.wait(0.5)
            tell({"stage": f"downloading {name}", "done": _size(folder), "total": 0})
            if stopped:
                return

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        done.set()
        watcher.join()


@contextlib.contextmanager
def _impatient(seconds: float = 30.0) -> Iterator[None]:
    """Let no connection hang: PyG's downloader sets no time limit of its own."""
    before = socket.getdefaulttimeout()
    socket.setdefaulttimeout(seconds)
    try:
        yield
    finally:
        socket.setdefaulttimeout(before)


def _size(folder: Path) -> int:
    total = 0
    for file in folder.rglob("*"):
        with contextlib.suppress(OSError):
            total += file.stat().st_size
    return total


def _reason(error: OSError) -> str:
    return " ".join(str(getattr(error, "reason", None) or error).split())[:200] or type(error).__name__
