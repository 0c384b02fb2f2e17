"""Files and folders written whole or not at all: a reader never sees half of one, whatever stops the writer.

What is being written lies beside its place under a hidden name, `.NAME.partial-<process>-<random>`, and is renamed at
the end. Its writer holds a lock on it (flock), which the system lets go of when the process ends, however it ends: the
next one that writes into the same folder removes what nobody holds any more, and never what a living process writes.
Whatever a disk refuses (full, read-only, no permission, no such name) is one `WriteError` with the path.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import secrets
import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from graphveil.errors import UsedPathError, WriteError

try:
    import fcntl
except ImportError:  # not a POSIX system: nothing is locked there, and nothing left over is removed
    fcntl = None  # type: ignore[assignment]

_PARTIAL: Final = re.compile(r"\.(?P<name>.+)\.partial-[0-9]+-[0-9a-f]{8}", re.DOTALL)
_LONGEST_NAME: Final = 200
_BLOCK: Final = 1 << 20


def write_text(path: Path, text: str) -> None:
    """Write text to a file so that its name only ever holds the old file or the whole new one.

    Args:
        path: its folder must exist. WriteError: the disk refuses; the old file is still there.
        text: written as UTF-8; what UTF-8 cannot hold becomes a question mark.
    """
    write_bytes(path, text.encode("utf-8", "replace"))


def write_bytes(path: Path, content: bytes, *, mode: int = 0o666) -> None:
    """Write bytes as `write_text` does text.

    Args:
        path, content: as there.
        mode: who may read and write it, less what the umask takes away.
    """
    with whole_file(path, mode=mode) as partial, partial.open("r+b") as file:
        file.write(content)


@contextmanager
def whole_file(path: Path, *, mode: int = 0o666) -> Iterator[Path]:
    """Give an empty hidden file beside `path`, which takes its place when the block ends without an error.

    Args:
        path: its folder must exist.
        mode: who may read and write it, less what the umask takes away; set before the first byte.
    """
    with writing(path):
        sweep(path.parent, path.name)
        # Mode at creation: a chmod afterwards would leave a moment in which others could read it.
        hidden, lock = _create_partial(
            path, lambda hidden: os.close(os.open(hidden, os.O_CREAT | os.O_EXCL | os.O_WRONLY, mode))
        )
        try:
            yield hidden
            with hidden.open("r+b") as file:
                # Content before name: else a power cut can leave the new name on an empty file.
                os.fsync(file.fileno())
            hidden.replace(path)
        finally:
            _discard(hidden, lock)


def sync_folder(folder: Path) -> None:
    """Make a rename in the folder durable; Windows has no such call and needs none."""
    if os.name == "nt":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_files(folder: Path, names: Iterable[str]) -> None:
    """Make the files of a folder and its own name durable, before what they are a copy of is removed."""
    for path in [folder / name for name in names]:
        with writing(path), path.open("r+b" if os.name == "nt" else "rb") as file:
            os.fsync(file.fileno())
    for synced in (folder, folder.absolute().parent):
        sync_folder(synced)


@contextmanager
def new_folder(path: Path, *, own: bool = False) -> Iterator[Path]:
    """Give a folder that appears under its name only when the block has ended without an error.

    The block writes into a hidden sibling, which is renamed at the end and removed on any exception.

    Args:
        path: its name. UsedPathError: it is already used.
        own: whether nobody but its owner may look into it, from before the first file on.
    """
    refuse_used_folder(path)
    with writing(path), partial_folder(path, own=own) as partial:
        yield partial
        # The last thing: a folder that has its name is whole, however many files are in it.
        partial.rename(path)


@contextmanager
def partial_folder(path: Path, *, own: bool = False) -> Iterator[Path]:
    """Give a hidden folder beside `path` that is gone when the block has ended, unless it was renamed."""
    with parents_of(path):
        with writing(path):
            sweep(path.parent)
            partial, lock = _create_partial(path, lambda partial: partial.mkdir(mode=0o700 if own else 0o777))
        try:
            yield partial
        finally:
            _discard(partial, lock)


class Room:
    """Space on a disk that nobody else gets until `release`."""

    def __init__(self, file: Path, lock: int) -> None:
        self._file, self._lock = file, lock

    def release(self) -> None:
        """Give the space back, to be written on; a second call does nothing."""
        _discard(self._file, self._lock)
        self._lock = -1


@contextmanager
def room_for(path: Path, size: int) -> Iterator[Room]:
    """Reserve `size` bytes where `path` will be written, before anything is spent on what is to be written there.

    WriteError: there is not so much space, or nothing may be written there.

    Args:
        path: file or folder; its parents are made, and removed again if nothing was written.
        size: bytes, given back when the block ends or when `Room.release` is called before writing.
    """
    with parents_of(path):
        with writing(path, f"{max(size / 1e6, 0.1):,.1f} MB are needed there; "):
            sweep(path.parent)
            file, lock = _create_partial(path, lambda partial: partial.touch())
            room = Room(file, lock)
            try:
                _allocate(file, size)
            except BaseException:
                room.release()
                raise
        try:
            yield room
        finally:
            room.release()


@contextmanager
def writing(path: Path, need: str = "") -> Iterator[None]:
    """Turn whatever a disk refuses while the block writes `path` into one WriteError that names it.

    Args:
        path: what the error names.
        need: what to say before the remedy, such as how much space is needed.
    """
    try:
        yield
    except WriteError:
        raise
    except OSError as error:
        raise _write_error(path, error.strerror or str(error), need, error) from error
    except Exception as error:
        if not re.search(r"\(os error \d+\)", str(error)):  # how Polars and safetensors report what the system said
            raise
        raise _write_error(path, str(error), need, error) from error


def refuse_used_folder(path: Path) -> None:
    """Refuse a folder that could not be made: one that holds something, a file, a place one may not write to.

    Raises:
        UsedPathError: the path exists and is a file, a folder with content, or what no folder can replace.
        WriteError: nothing may be made there, or the system refuses the name.
    """
    with writing(path):
        parent = next(existing for existing in (path.absolute().parent, *path.absolute().parents) if existing.exists())
        empty = path.is_dir() and not any(path.iterdir())
        exists = path.exists() or path.is_symlink()
    if not (parent.is_dir() and os.access(parent, os.W_OK | os.X_OK)):
        raise WriteError(f"cannot write in {parent}", where="--out", remedy="name another folder")
    if exists and not empty:
        reason = "is not empty" if path.is_dir() else "is not a folder"
        raise UsedPathError(f"{path} {reason}", where="--out", remedy="name a new folder; files are never overwritten")
    # A finished folder is renamed to its place, which replaces an empty one, but none of these.
    if path.name in ("", "..") or path.is_symlink() or path.resolve() == Path.cwd() or path.is_mount():
        reason = "is a link, a disk or the working folder, which a new folder cannot replace"
        raise UsedPathError(f"{path} {reason}", where="--out", remedy="name a new folder in it")


def sweep(folder: Path, name: str | None = None) -> None:
    """Remove the partial files that killed processes left in a folder: those of the file `name`, or all.

    Args:
        folder, name: only entries of the folder itself are looked at.
    """
    if fcntl is None:
        return
    with contextlib.suppress(OSError):
        for entry in list(os.scandir(folder)):
            match = _PARTIAL.fullmatch(entry.name)
            if match and name in (None, match["name"]):
                partial = Path(entry.path)
                with contextlib.suppress(OSError):
                    # No link is followed and no pipe waited for: the folder may be somebody else's to fill.
                    lock = os.open(partial, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
                    try:
                        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    except OSError:
                        os.close(lock)  # somebody writes it, or this disk has no locks
                    else:
                        _discard(partial, lock)


def _create_partial(path: Path, make: Callable[[Path], object]) -> tuple[Path, int]:
    """Make a hidden sibling of `path` and hold a lock on it; return it and the descriptor that holds the lock."""
    while True:
        # A name that is long already gets a shorter hidden one, so that it stays allowed.
        partial = path.with_name(f".{path.name[:_LONGEST_NAME]}.partial-{os.getpid()}-{secrets.token_hex(4)}")
        make(partial)
        with contextlib.suppress(FileNotFoundError):  # another process took it for a leftover before it was locked
            lock = os.open(partial, os.O_RDONLY)
            if _locked(partial, lock):
                return partial, lock
            os.close(lock)


def _locked(partial: Path, lock: int) -> bool:
    """Lock a hidden sibling that was just made; return whether it still has its name."""
    if fcntl is None:
        return True
    with contextlib.suppress(OSError):  # a disk without locks: what is left over there stays
        fcntl.flock(lock, fcntl.LOCK_EX)
    try:
        # Between making and locking, a sweep may have removed it; then the name is gone, or another file's.
        return partial.stat().st_ino == os.fstat(lock).st_ino
    except FileNotFoundError:
        return False


def _discard(partial: Path, lock: int) -> None:
    """Remove what is still there of a hidden sibling, and let go of the lock."""
    if lock < 0:
        return
    if partial.is_dir():
        shutil.rmtree(partial, ignore_errors=True)
    else:
        with contextlib.suppress(OSError):
            partial.unlink(missing_ok=True)
    os.close(lock)


@contextmanager
def parents_of(path: Path) -> Iterator[None]:
    """Make the folder that `path` lies in; remove what was made of it if the block leaves nothing there."""
    with writing(path):
        # Noted before making them: only what was not there before may be removed again.
        created = [parent for parent in path.absolute().parents if not parent.exists()]
        path.parent.mkdir(parents=True, exist_ok=True)
    try:
        yield
    finally:
        for parent in created:  # innermost first; one that holds something stays
            with contextlib.suppress(OSError):
                parent.rmdir()


def _allocate(file: Path, size: int) -> None:
    with file.open("r+b") as out:
        if hasattr(os, "posix_fallocate"):
            try:
                # A sparse file would reserve nothing; this takes the blocks.
                os.posix_fallocate(out.fileno(), 0, max(size, 1))
                return
            except OSError as error:
                if error.errno not in (errno.EINVAL, errno.EOPNOTSUPP, errno.ENOSYS):
                    raise
        for start in range(0, size, _BLOCK):
            # Where the disk cannot reserve: write zeros.
            out.write(bytes(min(_BLOCK, size - start)))
        out.flush()
        os.fsync(out.fileno())


def _final_name(name: str) -> str:
    match = _PARTIAL.fullmatch(name)
    return match["name"] if match else name


def _write_error(path: Path, reason: str, need: str, error: BaseException) -> WriteError:
    # Libraries that write for us report a full disk in words alone.
    full = getattr(error, "errno", None) in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG) or "space" in reason.lower()
    remedy = "free space there, or name another place" if full else "name another place"
    return WriteError(
        f"cannot be written ({reason.splitlines()[0]})",
        where=str(Path(*(_final_name(part) for part in path.parts))),
        remedy=f"{need}{remedy}; no partial files remain",
    )
