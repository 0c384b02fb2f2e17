"""A ledger on disk: one account for every process that uses the same folder.

    lock -> reload -> compare with what this process believes -> check the budget -> write, fsync -> unlock

A spend is on disk before `settle` returns, so before any data is read. A process that is killed afterwards leaves it
spent: that errs to the private side. What no file can see is a copy of its folder, which has the same budget again.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import IO, Any

from graphveil.errors import GraphveilError, InputError, ModelFileError
from graphveil.files.reading import read_json
from graphveil.files.writing import sync_folder, write_text
from graphveil.privacy.ledger import Budget, Ledger


class LedgerFile:
    """The account of one folder, an `Account` for the ledgers it opens; the first spend makes a missing file."""

    def __init__(self, path: Path) -> None:
        # Resolved once: after a change of folder a relative path would name another ledger, with the whole budget left.
        self.path = path.resolve()

    def open(self, recorded: Ledger) -> Ledger:
        """Return the ledger on disk, which must continue `recorded`, the model's own record, tied to this account;
        ModelFileError where the file is damaged, or is no continuation."""
        stored = self._read(recorded)
        # Who puts an older copy back would spend the budget again: the model's own record notices.
        if not continues(stored, recorded):
            raise self._foreign()
        return replace(stored, account=self)

    def settle(self, previous: Ledger, paid: Ledger) -> Ledger:
        """Put on disk what `paid` has beyond `previous`; return everything on disk then. A refusal has spent nothing.

        Args:
            previous: what the caller knew before spending.
            paid: the same with its new spends at the end.

        Raises:
            BudgetError: other processes have spent what was left.
            ModelFileError: the file is no continuation of `previous`.
            InputError: the disk refuses to write.
        """
        # In one lock: two processes that each saw enough left would both be paid otherwise.
        with self.locked():
            stored = self._read(previous)
            # Spends of other processes stand behind the previous ones, never in front: a ledger grows at its end.
            if not begins(stored, previous):
                raise self._foreign()
            # Read again under the lock: other processes may have spent since `previous` was opened, and come first.
            # Of both, the larger where both declare one: raising what is raised already adds nothing.
            budgets = {entry.unit: entry for entry in stored.budget}
            for entry in paid.budget:
                old = budgets.get(entry.unit, entry)
                budgets[entry.unit] = Budget(entry.unit, max(entry.epsilon, old.epsilon), max(entry.delta, old.delta))
            budget = tuple(budgets.values())
            # Building this ledger raises BudgetError where the spends of all processes together are too many.
            settled = replace(stored, budget=budget, spends=stored.spends + paid.spends[len(previous.spends) :])
            try:
                write_text(
                    self.path, json.dumps(settled.to_dict(), indent=2, ensure_ascii=False, allow_nan=False) + "\n"
                )
                # The rename itself must reach the disk before data are read: else a power cut forgets the spend.
                sync_folder(self.path.parent)
            except OSError as error:
                remedy = "nothing was read or spent: make room, or let the folder be written to"
                raise InputError(f"cannot be written: {error.strerror}", where=str(self.path), remedy=remedy) from error
        return replace(settled, account=self)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the account alone; other processes wait. Not to be entered twice. Raises InputError: the lock cannot be
        made.
        """
        # A file of its own: the ledger is replaced by each write, and a lock would stay on the old one.
        place = self.path.with_name(f".{self.path.name}.lock")
        try:
            file = place.open("a+b")
        except OSError as error:
            remedy = "nothing was read or spent: let the folder be written to"
            raise InputError(f"no lock can be made: {error.strerror}", where=str(place), remedy=remedy) from error
        with file:
            _lock(file)
            yield

    def _read(self, recorded: Ledger) -> Ledger:
        return read_ledger(self.path) if self.path.is_file() else recorded.detached()

    def _foreign(self) -> ModelFileError:
        remedy = "it was changed, or belongs to another model: put the file of this folder back"
        return ModelFileError("does not continue what was spent before", where=str(self.path), remedy=remedy)


def read_ledger(path: Path) -> Ledger:
    """Return the ledger in a file; ModelFileError where the file is damaged, or its ledger does not add up."""
    try:
        return Ledger.from_dict(read_json(path))
    # A damaged ledger never counts as an empty one: that would hand the whole budget out again.
    except (OSError, ValueError, KeyError, TypeError, AttributeError, GraphveilError) as error:
        raise ModelFileError(f"damaged ledger: {error}", where=str(path)) from error


def begins(stored: Ledger, earlier: Ledger) -> bool:
    """Whether `stored` begins with the spends of `earlier`.

    Args:
        stored: the longer one, such as a file's.
        earlier: the one it should go on from.
    """
    mine = earlier.to_dict()["spends"]
    # Compared as they are written: a spend that was read back is equal however its parameters were typed.
    return bool(stored.to_dict()["spends"][: len(mine)] == mine)


def continues(stored: Ledger, earlier: Ledger) -> bool:
    """Whether `stored` begins with the spends of `earlier`, and differs in budgets only for what was spent since.

    Args:
        stored: the later one, such as a file's.
        earlier: the one it should go on from.
    """
    since = {spend.unit for spend in stored.spends[len(earlier.spends) :]}
    new = {entry.unit: entry for entry in stored.budget}
    for entry in earlier.budget:
        now = new.pop(entry.unit, None)
        raised = now is not None and now.epsilon >= entry.epsilon and now.delta >= entry.delta and now.unit in since
        # A budget may grow, by a declaration that a later spend needed; any other change was made by hand.
        if now != entry and not raised:
            return False
    return begins(stored, earlier) and set(new) <= since


def _lock(file: IO[bytes]) -> None:
    """Wait until nobody else holds the file; closing it, or dying, lets go."""
    try:
        import fcntl
    except ImportError:  # Windows
        import msvcrt

        file.seek(0)
        lock: Any = msvcrt
        lock.locking(file.fileno(), lock.LK_LOCK, 1)
        return
    # The system lets go when a process dies, so that a killed run blocks nobody; a file that marks the lock would stay.
    fcntl.flock(file.fileno(), fcntl.LOCK_EX)
