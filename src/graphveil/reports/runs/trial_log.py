"""The log of a tuning's trials: for the curator alone, one line a trial, and never rewritten.

What a paid tuning promises holds for the best trial alone; the others, and their number, must not be handed on. So the
log lies beside the run folder and not in it, readable by its owner only. Every line carries the hash of the line before
it; the last one says that the tuning came to its end.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from graphveil.errors import InputError, ModelFileError, WriteError
from graphveil.reading import LARGEST_HISTORY, parse_json, read_bytes, require_lines
from graphveil.reports.base.files import refuse_used_folder, to_json
from graphveil.writing import Room, writing

_FIRST: Final = "0" * 64
_WARNING: Final = "for the curator alone: the promise of a tuning covers its best trial and nothing else of this file"


class TrialLog:
    """A log that is called with each trial, appends a line and brings it to the disk; the first call makes the file.

    Args:
        path: the file to make.
        room: space on its disk that is given to the log where there is no other left.

    Raises:
        InputError: there is a log already, finished or not, or nothing may be written there.
    """

    def __init__(self, path: Path, room: Room | None = None) -> None:
        # Also an unfinished one: going on would hide trials that were seen and thrown away, whose price is not in this
        # run.
        if path.exists():
            raise _begun(path)
        refuse_used_folder(path)
        self.path = path
        self._room = room
        self._previous = ""

    def __call__(self, entry: Mapping[str, Any]) -> None:
        if not self._previous:
            with writing(self.path):
                self.path.parent.mkdir(parents=True, exist_ok=True)
                # O_EXCL: of two tunings at once only one gets the log. Mode 0600 from the first byte.
                os.close(os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
            self._append({"note": _WARNING}, _FIRST)
        self._append(entry, self._previous)

    def end(self) -> None:
        """Write the last line."""
        self({"ended": True})

    def _append(self, entry: Mapping[str, Any], previous: str) -> None:
        # Chained: a trial that is taken out, or put in afterwards, breaks every line that follows.
        line = (to_json({"previous": previous, **entry}) + "\n").encode()
        length = self.path.stat().st_size
        try:
            self._write(line)
        except WriteError:
            if self._room is None:
                raise
            self._room.release()
            with writing(self.path):
                # A line that was cut short would break the chain of hashes.
                os.truncate(self.path, length)
            self._write(line)
        self._previous = hashlib.sha256(line).hexdigest()

    def _write(self, line: bytes) -> None:
        with writing(self.path), self.path.open("ab") as file:
            file.write(line)
            file.flush()
            # On the disk at once: the log is how a tuning that was killed is recognised.
            os.fsync(file.fileno())


def read_trials(path: Path) -> tuple[list[dict[str, Any]], bool]:
    """The trials of a log in their order, and whether their tuning came to its end.

    Raises:
        ModelFileError: a line was changed, added between others or taken away.
    """
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


def _begun(path: Path) -> InputError:
    trials, ended = read_trials(path)
    what = "ended" if ended else "was not finished"
    return InputError(
        f"{path} holds {len(trials)} trials of a tuning that {what}", where="--out", remedy="name another folder"
    )
