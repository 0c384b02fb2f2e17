"""The log of a tuning's trials: for the curator alone, one line a trial, and append-only.

The guarantee of a paid tuning covers only the best trial; the other trials, and their number, must not be published.
The log is therefore beside the run folder and not in it, readable by its owner only. Every line has the hash of the
line before it; the last line says that the tuning ended.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any, Final

from graphveil.errors import ModelFileError, UsedPathError, WriteError
from graphveil.files.outputs import Output, Say
from graphveil.files.reading import LARGEST_HISTORY, parse_json, read_bytes, require_lines
from graphveil.files.serial import to_json
from graphveil.files.writing import Room, refuse_used_folder, writing
from graphveil.runtime.words import count_of

_FIRST: Final = "0" * 64
_WARNING: Final = "for the curator alone: the promise of a tuning covers its best trial and nothing else of this file"


class TrialLog:
    """Called with each trial, appends a durable line; the first call creates the file.

    Args:
        path: of the log.
        room: reserved space on its disk, used when the disk is full.
        say: called with one line if the log had to go elsewhere.
        stack: holds the reservation of its new path.

    Raises:
        InputError: a log exists, finished or not, or nothing may be written there.
    """

    def __init__(
        self,
        path: Path,
        room: Room | None = None,
        say: Say = lambda line: None,
        stack: contextlib.ExitStack | None = None,
    ) -> None:
        # An unfinished log too: continuing would hide trials that were seen, whose epsilon is not in this run.
        require_unused(path)
        self._output = Output(path, say, stack)
        self._room = room
        self._lines: list[bytes] = []

    @property
    def path(self) -> Path:
        return self._output.path

    def __call__(self, entry: Mapping[str, Any]) -> None:
        if not self._lines:
            self._output.write(self._create)
            self._add({"note": _WARNING}, _FIRST)
        # Chained: removing or inserting a trial breaks every later line.
        self._add(entry, hashlib.sha256(self._lines[-1]).hexdigest())

    def end(self) -> None:
        self({"ended": True})

    def _add(self, entry: Mapping[str, Any], previous: str) -> None:
        self._lines.append((to_json({"previous": previous, **entry}) + "\n").encode())
        try:
            line = self._lines[-1]
            with writing(self.path):
                length = self.path.stat().st_size
            try:
                self._extend(line)
            except WriteError:
                if self._room is None:
                    raise
                self._room.release()
                with writing(self.path):
                    # A line that was cut short would break the chain of hashes.
                    os.truncate(self.path, length)
                self._extend(line)
        except WriteError:
            # The trials are paid for: if the file is gone or cannot grow, all lines go to another path.
            self._output.write(self._create)

    def _create(self, path: Path) -> None:
        with writing(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            # O_EXCL: only one of two concurrent tunings gets the name. Mode 0600 from the first byte.
            file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            try:
                with os.fdopen(file, "wb") as out:
                    _write(out, b"".join(self._lines))
            except BaseException:
                path.unlink(missing_ok=True)
                raise

    def _extend(self, line: bytes) -> None:
        # Not "ab", which would create a deleted file again, without its first lines.
        with writing(self.path), self.path.open("r+b") as file:
            file.seek(0, os.SEEK_END)
            _write(file, line)


def _write(file: IO[bytes], content: bytes) -> None:
    file.write(content)
    file.flush()
    # Durable at once: a killed tuning is recognised by its log.
    os.fsync(file.fileno())


def read_trials(path: Path) -> tuple[list[dict[str, Any]], bool]:
    """The trials of a log, and whether the tuning ended; ModelFileError where a line was changed or removed."""
    entries, expected = [], _FIRST
    try:
        content = read_bytes(path, largest=LARGEST_HISTORY)
        require_lines(content.count(b"\n"), path, error=ModelFileError)
        for line in content.splitlines(keepends=True):
            entry = parse_json(line, where="one line")
            if entry.pop("previous") != expected:
                raise ModelFileError("the log of trials was modified", where=str(path))
            expected = hashlib.sha256(line).hexdigest()
            entries.append(entry)
    except (OSError, ValueError, KeyError, AttributeError) as error:
        if isinstance(error, ModelFileError):
            raise
        raise ModelFileError(f"damaged log of trials: {error}", where=str(path)) from error
    return [entry for entry in entries if "trial" in entry], bool(entries) and "ended" in entries[-1]


def require_unused(path: Path) -> None:
    """Raise UsedPathError for an existing log, finished or not; InputError where none can be written."""
    if path.exists():
        trials, ended = read_trials(path)
        what = (
            f"{path} holds {count_of(len(trials), 'trial')} of a tuning that {'ended' if ended else 'was not finished'}"
        )
        raise UsedPathError(what, where="--out", remedy="name another folder")
    refuse_used_folder(path)
