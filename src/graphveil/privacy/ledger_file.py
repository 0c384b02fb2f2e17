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
        # An older copy of the file would allow the budget to be spent again: the model's own record reveals it.
        if not continues(stored, recorded):
            raise self._discontinuity()
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
        # Under one lock: otherwise two processes that both saw enough left would both be paid.
        with self.locked():
            stored = self._read(previous)
            # Spends of other processes come after the previous ones, never before: a ledger grows at its end.
            if not starts_with(stored, previous):
                raise self._discontinuity()
            # Read again under the lock: other processes may have spent since `previous` was opened, and come first.
            # The larger budget where both declare one: a budget that another process has raised is not raised again.
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
        """Hold the account alone while other processes wait; not reentrant. Raises InputError where the lock file
        cannot be opened.
        """
        # A file of its own: the ledger is replaced by each write, and a lock would stay on the old one.
        lock_path = self.path.with_name(f".{self.path.name}.lock")
        try:
            file = lock_path.open("a+b")
        except OSError as error:
            remedy = "nothing was read or spent: let the folder be written to"
            raise InputError(f"no lock can be made: {error.strerror}", where=str(lock_path), remedy=remedy) from error
        with file:
            _lock(file)
            yield

    def _read(self, recorded: Ledger) -> Ledger:
        return read_ledger(self.path) if self.path.is_file() else recorded.detached()

    def _discontinuity(self) -> ModelFileError:
        remedy = "it was changed, or belongs to another model: put the file of this folder back"
        return ModelFileError("does not continue what was spent before", where=str(self.path), remedy=remedy)


def read_ledger(path: Path) -> Ledger:
    """Return the ledger in a file; ModelFileError where the file is damaged, or its ledger does not add up."""
    try:
        return Ledger.from_dict(read_json(path))
    # A damaged ledger never counts as an empty one: that would hand the whole budget out again.
    except (OSError, ValueError, KeyError, TypeError, AttributeError, GraphveilError) as error:
        raise ModelFileError(f"damaged ledger: {error}", where=str(path)) from error


def starts_with(stored: Ledger, earlier: Ledger) -> bool:
    """Whether `stored` begins with the spends of `earlier`.

    Args:
        stored: the longer ledger, such as a file's.
        earlier: the ledger that it should continue.
    """
    spends = earlier.to_dict()["spends"]
    # Compared as they are written: a spend that was read back is equal however its parameters were typed.
    return bool(stored.to_dict()["spends"][: len(spends)] == spends)


def continues(stored: Ledger, earlier: Ledger) -> bool:
    """Whether `stored` begins with the spends of `earlier`, and its budgets differ only for units spent on since.

    Args:
        stored: the later ledger, such as a file's.
        earlier: the ledger that it should continue.
    """
    spent_since = {spend.unit for spend in stored.spends[len(earlier.spends) :]}
    budgets = {entry.unit: entry for entry in stored.budget}
    for entry in earlier.budget:
        current = budgets.pop(entry.unit, None)
        raised = (
            current is not None
            and current.epsilon >= entry.epsilon
            and current.delta >= entry.delta
            and current.unit in spent_since
        )
        # A budget may grow by a declaration that a later spend needed; anything else is tampering.
        if current != entry and not raised:
            return False
    return starts_with(stored, earlier) and set(budgets) <= spent_since


def _lock(file: IO[bytes]) -> None:
    """Wait until nobody else holds the file; it is released when it is closed or the process dies."""
    try:
        import fcntl
    except ImportError:  # Windows
        import msvcrt

        file.seek(0)
        lock: Any = msvcrt
        lock.locking(file.fileno(), lock.LK_LOCK, 1)
        return
    # The system releases this lock when a process dies, so a killed run blocks nobody; a marker file would stay.
    fcntl.flock(file.fileno(), fcntl.LOCK_EX)
