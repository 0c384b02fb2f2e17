"""Files and folders written whole or not at all: a reader never sees half of one, whatever stops the writer.

A partial file lies beside its target under a hidden name, `.NAME.partial-<process>-<random>`, and is renamed at the
end. Its writer holds a lock on it (flock), which the system releases when the process ends, however it ends: the next
process that writes into the same folder removes partial files without a lock. Every refusal of the disk (full,
read-only, no permission, no such name) is a `WriteError` with the path.
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
except ImportError:  # not a POSIX system: nothing is locked there, and leftovers stay
    fcntl = None  # type: ignore[assignment]

_PARTIAL: Final = re.compile(r"\.(?P<name>.+)\.partial-[0-9]+-[0-9a-f]{8}", re.DOTALL)
_LONGEST_NAME: Final = 200
_BLOCK: Final = 1 << 20


def write_text(path: Path, text: str) -> None:
    """Write text to a file; its name always refers to the old file or the whole new one.

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
        # Mode at creation: until a later chmod, other users could read it.
        hidden, lock = _create_partial(
            path, lambda hidden: os.close(os.open(hidden, os.O_CREAT | os.O_EXCL | os.O_WRONLY, mode))
        )
        try:
            yield hidden
            with hidden.open("r+b") as file:
                # Content before name: otherwise a power cut can leave the new name on an empty file.
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
    """Make the files of a folder and its own name durable, before the originals are removed."""
    for path in [folder / name for name in names]:
        with writing(path), path.open("r+b" if os.name == "nt" else "rb") as file:
            os.fsync(file.fileno())
    for synced in (folder, folder.absolute().parent):
        sync_folder(synced)


@contextmanager
def new_folder(path: Path, *, owner_only: bool = False) -> Iterator[Path]:
    """Give a folder that appears under its name only when the block has ended without an error.

    The block writes into a hidden sibling, which is renamed at the end and removed on any exception.

    Args:
        path: its name. UsedPathError: it is already used.
        owner_only: whether only its owner may read it, from before the first file on.
    """
    refuse_used_folder(path)
    with writing(path), partial_folder(path, owner_only=owner_only) as partial:
        yield partial
        # Last: a folder under its final name is complete.
        partial.rename(path)


@contextmanager
def partial_folder(path: Path, *, owner_only: bool = False) -> Iterator[Path]:
    """Give a hidden folder beside `path` that is gone when the block has ended, unless it was renamed."""
    with parents_of(path):
        with writing(path):
            sweep(path.parent)
            partial, lock = _create_partial(path, lambda partial: partial.mkdir(mode=0o700 if owner_only else 0o777))
        try:
            yield partial
        finally:
            _discard(partial, lock)


class Room:
    """Space on a disk that is reserved until `release`."""

    def __init__(self, file: Path, lock: int) -> None:
        self._file, self._lock = file, lock

    def release(self) -> None:
        """Free the space, to be written on; a second call does nothing."""
        _discard(self._file, self._lock)
        self._lock = -1


@contextmanager
def room_for(path: Path, size: int) -> Iterator[Room]:
    """Reserve `size` bytes where `path` will be written, before privacy is spent on its content.

    WriteError: there is not enough space, or nothing may be written there.

    Args:
        path: file or folder; its parents are created, and removed again if nothing was written.
        size: in bytes, freed when the block ends or when `Room.release` is called before writing.
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
    """Turn every refusal of the disk while the block writes `path` into a WriteError.

    Args:
        path: named by the error.
        need: a text before the remedy, such as how much space is needed.
    """
    try:
        yield
    except WriteError:
        raise
    except OSError as error:
        raise _write_error(path, error.strerror or str(error), need, error) from error
    except Exception as error:
        if not re.search(r"\(os error \d+\)", str(error)):  # how Polars and safetensors report system errors
            raise
        raise _write_error(path, str(error), need, error) from error


def refuse_used_folder(path: Path) -> None:
    """Refuse a path at which `new_folder` could not create a folder.

    Raises:
        UsedPathError: the path is a file, a folder with content, a link, a mount point or the working folder.
        WriteError: nothing may be written there, or the system refuses the name.
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
    # The finished folder is renamed, which replaces an empty folder, but none of these.
    if path.name in ("", "..") or path.is_symlink() or path.resolve() == Path.cwd() or path.is_mount():
        reason = "is a link, a disk or the working folder, which a new folder cannot replace"
        raise UsedPathError(f"{path} {reason}", where="--out", remedy="name a new folder in it")


def sweep(folder: Path, name: str | None = None) -> None:
    """Remove the partial files that killed processes left in a folder, not below it.

    Args:
        name: only those of the file of this name; None: all.
    """
    if fcntl is None:
        return
    with contextlib.suppress(OSError):
        for entry in list(os.scandir(folder)):
            match = _PARTIAL.fullmatch(entry.name)
            if match and name in (None, match["name"]):
                partial = Path(entry.path)
                with contextlib.suppress(OSError):
                    # Follows no link and waits for no pipe: other users may write into the folder.
                    lock = os.open(partial, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
                    try:
                        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    except OSError:
                        os.close(lock)  # its writer is alive, or this disk has no locks
                    else:
                        _discard(partial, lock)


def _create_partial(path: Path, make: Callable[[Path], object]) -> tuple[Path, int]:
    """Create and lock a hidden sibling of `path`; return it and the descriptor that holds the lock."""
    while True:
        # Shortened, so that the hidden name of a long name is still allowed.
        partial = path.with_name(f".{path.name[:_LONGEST_NAME]}.partial-{os.getpid()}-{secrets.token_hex(4)}")
        make(partial)
        with contextlib.suppress(FileNotFoundError):  # a `sweep` removed it before it was locked
            lock = os.open(partial, os.O_RDONLY)
            if _locked(partial, lock):
                return partial, lock
            os.close(lock)


def _locked(partial: Path, lock: int) -> bool:
    """Lock a new partial file; return whether it still has its name."""
    if fcntl is None:
        return True
    with contextlib.suppress(OSError):  # a disk without locks: leftovers stay there
        fcntl.flock(lock, fcntl.LOCK_EX)
    try:
        # A `sweep` may have removed it before it was locked; then the name is gone, or another file's.
        return partial.stat().st_ino == os.fstat(lock).st_ino
    except FileNotFoundError:
        return False


def _discard(partial: Path, lock: int) -> None:
    """Remove a partial file or folder if it still exists, and release its lock."""
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
    """Create the parents of `path`; after the block, remove those of them that are empty."""
    with writing(path):
        # Noted beforehand: a folder that existed before is never removed.
        created = [parent for parent in path.absolute().parents if not parent.exists()]
        path.parent.mkdir(parents=True, exist_ok=True)
    try:
        yield
    finally:
        for parent in created:  # innermost first; one with content stays
            with contextlib.suppress(OSError):
                parent.rmdir()


def _allocate(file: Path, size: int) -> None:
    with file.open("r+b") as out:
        if hasattr(os, "posix_fallocate"):
            try:
                # Unlike a sparse file, this reserves the blocks.
                os.posix_fallocate(out.fileno(), 0, max(size, 1))
                return
            except OSError as error:
                if error.errno not in (errno.EINVAL, errno.EOPNOTSUPP, errno.ENOSYS):
                    raise
        for start in range(0, size, _BLOCK):
            # For a disk that cannot reserve blocks.
            out.write(bytes(min(_BLOCK, size - start)))
        out.flush()
        os.fsync(out.fileno())


def _final_name(name: str) -> str:
    match = _PARTIAL.fullmatch(name)
    return match["name"] if match else name


def _write_error(path: Path, reason: str, need: str, error: BaseException) -> WriteError:
    # Some libraries report a full disk only in their message.
    full = getattr(error, "errno", None) in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG) or "space" in reason.lower()
    remedy = "free space there, or name another place" if full else "name another place"
    return WriteError(
        f"cannot be written ({reason.splitlines()[0]})",
        where=str(Path(*(_final_name(part) for part in path.parts))),
        remedy=f"{need}{remedy}; no partial files remain",
    )
