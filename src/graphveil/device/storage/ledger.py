"""The ledger of a device: one line for each report, on disk before any byte of the report leaves.

    {"task", "organiser", "epoch", "nonce", "body", "names": {field: [name, ...]}, "nano": billionths of epsilon}

A line that a crash cut off was never sent, and is ignored. One process writes at a time.

Beside it lies a seal, the number of booked bytes and their SHA-256: a ledger that is shorter or different is refused,
since the device would repeat what it has forgotten without counting it. The seal is written second: after a crash
between the two the ledger is a line ahead, and is sealed before the report of that line leaves. Old copies of both
that are restored together cannot be distinguished from the present files.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from fractions import Fraction
from pathlib import Path
from typing import Literal, TypeAlias

from graphveil.device.errors import DeviceError
from graphveil.device.reports.answer import NANO, Answer
from graphveil.device.task import Task


def write_file(path: Path, data: bytes) -> None:
    """Write a file whole or not at all, for its owner alone.

    Args:
        path: of the file, which is replaced if it exists.
    """
    new = path.with_suffix(".new")
    new.touch(mode=0o600)
    with new.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    new.replace(path)
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Wait until the names in a folder are on disk, so that new and replaced files survive a crash."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


#: The epsilon that all reports may cost, None for no limit. By default the device answers one task of each organiser: a
#: task that is signed twice, with another nonce, gets no second answer.
Limit: TypeAlias = Fraction | Literal["default"] | None


@dataclass(frozen=True)
class Booked:
    """One booked report.

    Args:
        task: its hash, hexadecimal.
        organiser: the key that signed it, hexadecimal.
        epoch: of the opening.
        nonce, body: hexadecimal.
        names: of the paid parts, by index of the field.
        nano: the price, in billionths of epsilon.
    """

    task: str
    organiser: str
    epoch: int
    nonce: str
    body: str
    names: dict[str, tuple[str, ...]]
    nano: int


class DeviceLedger:
    """All reports of one device, in one file.

    Args:
        path: the file; it need not exist.
        cap: see `Limit`.
    """

    def __init__(self, path: Path, cap: Limit = "default") -> None:
        self._path, self._cap = path, cap

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Keep other processes from booking meanwhile."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        lock_file = self._path.with_suffix(".lock")
        lock_file.touch(mode=0o600)
        with lock_file.open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def booked(self, task: bytes | None = None) -> list[Booked]:
        """Return the booked reports of one task or of all, in order; DeviceError `ledger`, where a line but the last
        cannot be read, or booked lines are gone or changed."""
        lines = self._read().split(b"\n")
        # The last part is empty, or an incomplete line that a crash left: its report was never sent.
        try:
            entries = [Booked(**json.loads(line)) for line in lines[:-1]]
        except (ValueError, TypeError) as error:
            raise DeviceError("ledger", f"{self._path} holds a line that cannot be read") from error
        return [entry for entry in entries if task is None or entry.task == task.hex()]

    def seen(self, task: bytes) -> dict[int, set[str]]:
        """Return the names of the paid parts of a task, by index of the field."""
        paid_names: dict[int, set[str]] = {}
        for entry in self.booked(task):
            for field, names in entry.names.items():
                paid_names.setdefault(int(field), set()).update(names)
        return paid_names

    @property
    def spent(self) -> Fraction:
        return Fraction(sum(entry.nano for entry in self.booked()), NANO)

    def require_limit(self, task: Task, nano: int = 0) -> None:
        """Refuse a report that the limit does not pay for; DeviceError for `cap`.

        Args:
            nano: its price, in billionths of epsilon.
        """
        if isinstance(self._cap, Fraction):
            left = self._cap - self.spent
            if Fraction(nano, NANO) > left:
                detail = f"the report costs epsilon {nano / NANO:g}, and {float(left):g} is left of your own limit"
                raise DeviceError("cap", detail)
            return
        organiser_entries = [
            entry for entry in self.booked() if entry.organiser == task.key.hex() and entry.task != task.hash.hex()
        ]
        if self._cap is not None and organiser_entries:
            cost = sum(entry.nano for entry in organiser_entries) / NANO
            raise DeviceError(
                "cap", f"you have answered this organiser's task {organiser_entries[0].task[:16]}, at epsilon {cost:g}"
            )

    def book(self, task: Task, epoch: int, nonce: bytes, response: Answer, nano: int) -> None:
        """Write a report and its price to disk.

        Args:
            epoch, nonce: of the opening.
            response: what will be sent.

        Raises:
            DeviceError: `cap`, where the limit does not pay for it; nothing is written.
        """
        self.require_limit(task, nano)
        names = {str(index): part_names for index, part_names in response.names.items()}
        body, key = response.body.hex(), task.key.hex()
        line = json.dumps(asdict(Booked(task.hash.hex(), key, epoch, nonce.hex(), body, names, nano)))
        self._path.touch(mode=0o600)
        # An incomplete line that a crash left is removed before the next one is written.
        data = self._read()
        complete = data[: data.rfind(b"\n") + 1]
        with self._path.open("r+b") as file:
            file.truncate(len(complete))
            file.seek(0, os.SEEK_END)
            file.write(line.encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())
        sync_folder(self._path.parent)
        self._seal(complete + line.encode() + b"\n")

    def seal(self) -> None:
        """Seal all complete lines, also one that a crash left unsealed: it could be removed after its report has left;
        DeviceError `ledger`, as `booked`."""
        data = self._read()
        # What a killed process wrote may be in memory only.
        with self._path.open("rb") as file:
            os.fsync(file.fileno())
        self._seal(data[: data.rfind(b"\n") + 1])

    def begin(self) -> None:
        """Make the two files of a new ledger."""
        self._path.touch(mode=0o600)
        self._seal(b"")

    @property
    def is_whole(self) -> bool:
        return self._path.exists() and self._seal_path.exists()

    @property
    def _seal_path(self) -> Path:
        return self._path.with_suffix(".seal")

    def _seal(self, booked: bytes) -> None:
        sealed = {"bytes": len(booked), "sha256": hashlib.sha256(booked).hexdigest()}
        write_file(self._seal_path, json.dumps(sealed).encode())

    def _read(self) -> bytes:
        """Return the ledger's bytes, which begin with the sealed ones."""
        # The seal is read first: a line that is booked between the two reads only makes the ledger longer.
        seal_data = self._seal_path.read_bytes() if self._seal_path.exists() else None
        data = self._path.read_bytes() if self._path.exists() else b""
        if seal_data is None:
            return data
        try:
            seal = json.loads(seal_data)
            is_sealed = hashlib.sha256(data[: seal["bytes"]]).hexdigest() == seal["sha256"]
        except (ValueError, TypeError, KeyError) as error:
            raise DeviceError("ledger", f"{self._seal_path} cannot be read") from error
        if not is_sealed:
            raise DeviceError("ledger", f"{self._path} is not what was booked: lines are gone or changed")
        return data
