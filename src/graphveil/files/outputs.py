"""Where a result goes: a path that one process has to itself, from before anything is read until it is written.

    reserve the name -> check that it is free -> read, spend, compute -> write beside it -> rename

The reservation is a lock (flock) on a hidden file beside the path, which the system releases when the process ends,
however it ends: a killed run blocks no other. A result that privacy was spent on is always written: where its path can
no longer be used (taken, read-only, full), it goes to another name beside it, or to the next folder that accepts it;
where none does, UsedPathError or WriteError says why. `say` is called with one line about a result that went elsewhere.
"""

from __future__ import annotations

import errno
import hashlib
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Final, TypeVar

from graphveil.errors import GraphveilError, UsedPathError, WriteError
from graphveil.files.reading import read_text
from graphveil.files.writing import new_folder, parents_of, refuse_used_folder, room_for, write_text, writing

try:
    import fcntl
except ImportError:  # not a POSIX system: names are not reserved there, and a second writer goes beside the first
    fcntl = None  # type: ignore[assignment]

T = TypeVar("T")
Say = Callable[[str], None]
#: Endings before which `numbered` puts the number.
_ENDINGS: Final = (".csv", ".parquet", ".jsonl")
_MOST: Final = 10_000
#: Seconds for which a process that only checks for leftover files may hold a lock.
_LOCK_WAIT: Final = 0.3


class Output:
    """A path that this process alone writes to, see `new_output`.

    Args:
        path: where the result goes, or went once it is written.
        say: see the module.
        stack: holds the reservations; closed by the caller.
    """

    def __init__(self, path: Path, say: Say = lambda line: None, stack: ExitStack | None = None) -> None:
        self.path = path
        self._say = say
        self._stack = ExitStack() if stack is None else stack
        self._rooms = self._stack.enter_context(ExitStack())
        self._files: dict[str, str] = {}

    def reserve(self, size: int) -> None:
        """Reserve `size` bytes of the disk until `write`; WriteError where there are fewer."""
        self._rooms.enter_context(room_for(self.path, size))

    def write(self, write: Callable[[Path], T], *, paid: bool = True) -> T:
        """Return `write(path)`, for another path where the reserved one can no longer be used.

        Args:
            write: creates the file or folder at a path, whole or not at all.
            paid: whether it cost privacy or time: it then goes into another folder rather than be lost.
        """
        self._rooms.close()
        try:
            return write(self.path)
        except (UsedPathError, WriteError) as error:
            if not paid and isinstance(error, WriteError):
                raise
            return self.write_beside(error, write)

    def write_beside(self, refusal: Exception, write: Callable[[Path], T]) -> T:
        """Return `write(path)` for another path, and say so.

        Args:
            refusal: why the reserved path cannot be used; raised where no other path can.
            write: as in `write`.
        """
        for folder in _folders(self.path):
            for path in numbered(folder / self.path.name):
                try:
                    if os.path.lexists(path) or not reserve(path, self._stack):
                        continue
                    result = write(path)
                except UsedPathError:
                    continue  # another process was quicker
                except WriteError:
                    break  # the folder refuses, whatever the name
                self._say(f"warning: {_reason(refusal)}: written to {path} instead")
                self.path = path
                return result
        raise refusal

    def create_folder(self, name: str, text: str) -> None:
        """Create the folder of a result that grows, with its first file, unless that file exists.

        Args:
            name: of the first file, which identifies the folder.
            text: its content.
        """
        self._files = {name: text} | self._files
        if not (self.path / name).exists():
            self.write(self._make)

    def add_file(self, name: str, text: str) -> None:
        """Write one more file, `name` below the folder, which is created again if it is gone."""
        self.in_folder(lambda folder: _write_below(folder, name, text))
        self._files[name] = text

    def include(self, name: str) -> None:
        """Include an existing file if the folder has to be created again."""
        self._files[name] = read_text(self.path / name)

    def in_folder(self, do: Callable[[Path], T]) -> T:
        """Return `do(folder)`; the folder is created again if it is gone."""
        try:
            with writing(self.path):
                # Its first file identifies it: the folder may have been deleted, or replaced by another.
                for name in list(self._files)[:1]:
                    (self.path / name).stat()
            return do(self.path)
        except WriteError:
            self.write(self._make)
            return do(self.path)

    def _make(self, path: Path) -> None:
        # For its owner alone: the results are measured on true labels.
        with new_folder(path, owner_only=True) as folder:
            for name, text in self._files.items():
                _write_below(folder, name, text)


@contextmanager
def new_output(
    out: Path | None, default: Path, *, say: Say, check: Callable[[Path], None] = refuse_used_folder
) -> Iterator[Output]:
    """Give a path that no other process gets while the block runs.

    Args:
        out: the path that the user named. None: the first of `default`, `default-2`, `default-3` that is free.
        default: see `out`.
        say: see the module.
        check: raises UsedPathError for a path that can neither be created nor continued.

    Raises:
        UsedPathError: `out` is used, or another process is about to write it.
        InputError, WriteError: nothing may be written there.
    """
    with ExitStack() as stack:
        if out is None:
            out = _first_free(default, stack, check)
        else:
            check(out)
            if not reserve(out, stack):
                remedy = "wait until it has ended, or name another place"
                raise UsedPathError(f"another process is about to write {out}", where="--out", remedy=remedy)
            # Once more: between the two another process may have written it.
            check(out)
        yield Output(out, say, stack)


def reserve(path: Path, stack: ExitStack) -> bool:
    """Reserve a path until a stack is closed; return whether it was free.

    Args:
        path: need not exist.
        stack: closing it releases the path.

    Raises:
        WriteError: nothing may be written beside it.
    """
    stack.enter_context(parents_of(path))
    if fcntl is None:
        return True
    # Named like a partial file, so that `sweep` removes one that a killed process left.
    file = path.with_name(f".{path.name[:200]}.partial-0-{hashlib.sha256(os.fsencode(path.name)).hexdigest()[:8]}")
    with writing(path):
        lock = _lock(file)
    if lock is None:
        return False
    stack.callback(_unlock, file, lock)
    return True


def numbered(path: Path) -> Iterator[Path]:
    """Yield the path, then the same with a number: `run`, `run-2`, `run-3`; `people.csv`, `people-2.csv`."""
    yield path
    ending = path.suffix if path.suffix in _ENDINGS else ""
    for number in range(2, _MOST):
        yield path.with_name(f"{path.name.removesuffix(ending)}-{number}{ending}")


@contextmanager
def locked_folder(folder: Path, say: Say = lambda line: None) -> Iterator[None]:
    """Give a folder to one process at a time; the rest wait.

    Args:
        folder: locked without writing into it, so that it may be read-only; not locked where it does not exist.
        say: called with one line if another process holds the lock.
    """
    if fcntl is None or not folder.is_dir():
        yield
        return
    lock = os.open(folder, os.O_RDONLY)
    try:
        with suppress(OSError):  # a disk without locks
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                say(f"waiting for another process that changes {folder}")
                fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)


def _first_free(default: Path, stack: ExitStack, check: Callable[[Path], None]) -> Path:
    for path in numbered(default):
        with suppress(UsedPathError):
            check(path)
            if reserve(path, stack):
                check(path)
                return path
    raise UsedPathError(f"{default} and {_MOST:,} names like it are used", where="--out", remedy="name a new folder")


def _folders(path: Path) -> Iterator[Path]:
    """Where a result may go: beside its path, the next writable folder above, the working folder, temporary files."""
    yield path.parent
    above = path.absolute().parent.parents
    yield from [folder for folder in above if folder.is_dir() and os.access(folder, os.W_OK | os.X_OK)][:1]
    with suppress(FileNotFoundError):
        yield Path.cwd()
        yield Path(tempfile.gettempdir())


def _reason(refusal: Exception) -> str:
    if not isinstance(refusal, GraphveilError):
        return str(refusal)
    # "--out" says no more than the path.
    return refusal.what if refusal.where in (None, "--out") else f"{refusal.where}: {refusal.what}"


def _write_below(folder: Path, name: str, text: str) -> None:
    with writing(folder):
        (folder / name).parent.mkdir(exist_ok=True)
    write_text(folder / name, text)


def _lock(file: Path) -> int | None:
    """Create and lock a file; None: another process holds it."""
    until = time.monotonic() + _LOCK_WAIT
    while True:
        lock = os.open(file, os.O_CREAT | os.O_RDWR | os.O_NOFOLLOW, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            busy = error.errno in (errno.EWOULDBLOCK, errno.EACCES)
            if busy:
                os.close(lock)
                # `sweep` in another process locks it for a moment too.
                if time.monotonic() > until:
                    return None
                time.sleep(_LOCK_WAIT / 30)
                continue
        with suppress(FileNotFoundError):
            # Its last holder may have removed it after `open`: then the name is free, or another file's.
            if file.stat().st_ino == os.fstat(lock).st_ino:
                return lock
        os.close(lock)


def _unlock(file: Path, lock: int) -> None:
    with suppress(OSError):
        file.unlink(missing_ok=True)
    os.close(lock)
