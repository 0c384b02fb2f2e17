"""Where a result goes: a path that one process has to itself, from before anything is read until it is written.

    reserve the name -> check that it is free -> read, spend, compute -> write beside it -> rename

The reservation is a lock (flock) on a hidden file beside the path, which the system lets go of when the process ends,
however it ends: a run that was killed blocks no other. What was paid for is written in any case: where its path can no
longer be had (filled, read-only, full), it goes to another name beside it, or to the next folder that takes it; where
none does, UsedPathError or WriteError says why. `say` hears in one line of a result that had to go elsewhere.
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
#: Endings of files, before which their number stands.
_ENDINGS: Final = (".csv", ".parquet", ".jsonl")
_MOST: Final = 10_000
#: Seconds for which a lock may be that of a process that only looks whether the file is left over.
_LOCK_WAIT: Final = 0.3


class Output:
    """A path that this process alone writes to, see `new_output`.

    Args:
        path: where the result goes; once it is written, where it lies.
        say: see the module.
        stack: what is closed with the output.
    """

    def __init__(self, path: Path, say: Say = lambda line: None, stack: ExitStack | None = None) -> None:
        self.path = path
        self._say = say
        self._stack = ExitStack() if stack is None else stack
        self._rooms = self._stack.enter_context(ExitStack())
        self._files: dict[str, str] = {}

    def reserve(self, size: int) -> None:
        """Take `size` bytes of the disk, which are given back to be written on; WriteError where there are fewer
        bytes."""
        self._rooms.enter_context(room_for(self.path, size))

    def write(self, write: Callable[[Path], T], *, paid: bool = True) -> T:
        """Return what `write` returns for the path, or for another one where that can no longer be had.

        Args:
            write: makes the file or folder that it is given the path of, whole or not at all.
            paid: whether it cost privacy or time, and goes into another folder rather than be lost.
        """
        self._rooms.close()
        try:
            return write(self.path)
        except (UsedPathError, WriteError) as error:
            if not paid and isinstance(error, WriteError):
                raise
            return self.write_beside(error, write)

    def write_beside(self, refusal: Exception, write: Callable[[Path], T]) -> T:
        """Return what `write` returns for another path, and say so.

        Args:
            refusal: why the path cannot be had; raised where no other can.
            write: as in `write`.
        """
        for folder in _folders(self.path):
            for path in numbered(folder / self.path.name):
                try:
                    if os.path.lexists(path) or not reserve(path, self._stack):
                        continue
                    result = write(path)
                except UsedPathError:
                    continue  # somebody was quicker
                except WriteError:
                    break  # of the folder, whatever the name
                self._say(f"warning: {_reason(refusal)}: written to {path} instead")
                self.path = path
                return result
        raise refusal

    def begin(self, name: str, text: str) -> None:
        """Make the folder of a result that grows, with its first file, or take up the one that is there.

        Args:
            name: of the file by which the folder is known.
            text: what it holds.
        """
        self._files = {name: text} | self._files
        if not (self.path / name).exists():
            self.write(self._make)

    def keep(self, name: str, text: str) -> None:
        """Write one more file, `name` below the folder of a result that grows, which is made anew where it is gone."""
        self.within(lambda folder: _write_below(folder, name, text))
        self._files[name] = text

    def remember(self, name: str) -> None:
        """Have a file that is there already go along where the folder has to be made anew."""
        self._files[name] = read_text(self.path / name)

    def within(self, do: Callable[[Path], T]) -> T:
        """Return what `do` returns for the folder of a result that grows, which is made anew where it is gone."""
        try:
            with writing(self.path):
                # By its first file: a folder that was deleted, or replaced by another, has none of that name.
                for name in list(self._files)[:1]:
                    (self.path / name).stat()
            return do(self.path)
        except WriteError:
            self.write(self._make)
            return do(self.path)

    def _make(self, path: Path) -> None:
        # What is compared and reproduced is measured on true labels.
        with new_folder(path, own=True) as folder:
            for name, text in self._files.items():
                _write_below(folder, name, text)


@contextmanager
def new_output(
    out: Path | None, default: Path, *, say: Say, check: Callable[[Path], None] = refuse_used_folder
) -> Iterator[Output]:
    """Give a path that no other process gets while the block runs.

    Args:
        out: as it was named. None: the first of `default`, `default-2`, `default-3` that is free.
        default: a name.
        say: see the module.
        check: raises UsedPathError for a path that cannot be written to, or gone on with.

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
    """Take a name; return whether it was free.

    Args:
        path: the name.
        stack: until it ends.

    Raises:
        WriteError: nothing may be written beside it.
    """
    stack.enter_context(parents_of(path))
    if fcntl is None:
        return True
    # Named as what is being written is, so that a file that a killed process left is removed with that.
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
    """Wait until no other process changes a folder that is there; others wait until the block ends.

    Args:
        folder: nothing is written into it for that, so that it may be read-only.
        say: hears in one line that another process has to be waited for.
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
    """Where a result may go: beside its path, else the next folder above, else here, else among temporary files."""
    yield path.parent
    above = path.absolute().parent.parents
    yield from [folder for folder in above if folder.is_dir() and os.access(folder, os.W_OK | os.X_OK)][:1]
    with suppress(FileNotFoundError):
        yield Path.cwd()
        yield Path(tempfile.gettempdir())


def _reason(refusal: Exception) -> str:
    if not isinstance(refusal, GraphveilError):
        return str(refusal)
    # An option that names the path tells nothing here.
    return refusal.what if refusal.where in (None, "--out") else f"{refusal.where}: {refusal.what}"


def _write_below(folder: Path, name: str, text: str) -> None:
    with writing(folder):
        (folder / name).parent.mkdir(exist_ok=True)
    write_text(folder / name, text)


def _lock(file: Path) -> int | None:
    """Make and lock a file; None: another process holds it."""
    until = time.monotonic() + _LOCK_WAIT
    while True:
        lock = os.open(file, os.O_CREAT | os.O_RDWR | os.O_NOFOLLOW, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            busy = error.errno in (errno.EWOULDBLOCK, errno.EACCES)
            if busy:
                os.close(lock)
                # Whoever looks for leftovers locks it for a moment too.
                if time.monotonic() > until:
                    return None
                time.sleep(_LOCK_WAIT / 30)
                continue
        with suppress(FileNotFoundError):
            # Its last holder may have removed it after it was opened here: then the name is free, or another file's.
            if file.stat().st_ino == os.fstat(lock).st_ino:
                return lock
        os.close(lock)


def _unlock(file: Path, lock: int) -> None:
    with suppress(OSError):
        file.unlink(missing_ok=True)
    os.close(lock)
