"""What a device keeps in a folder of its own: the secret, the tasks that it is enrolled in, the ledger, the limit.

    secret          32 bytes, or where they are in the platform's key store (see `keystore`)
                                                made once; whoever reads it can undo the noise of every report
    ledger.jsonl, ledger.seal                   see `ledger`
    limit           epsilon over all tasks, a decimal
    HASH/task.json  the signed task             HASH/enrolled.json  who the person is to it

The folder is its owner's alone (0700), its files too (0600).
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass, field
from fractions import Fraction
from pathlib import Path

from graphveil.device import keystore
from graphveil.device.durable import sync_folder, write
from graphveil.device.errors import DeviceError
from graphveil.device.ledger import DeviceLedger
from graphveil.device.noise import SECRET_BYTES
from graphveil.device.reading import number
from graphveil.device.reporting import Enrolled
from graphveil.device.task import Task


@dataclass(frozen=True)
class Enrolment:
    """A task that a device is enrolled in, or about to be.

    Args:
        url: of the collector. key: of the tags, hexadecimal. number, joined: the person's, None until the collector
        has told them. id: the person's, as they said that it is; None where links are not asked.
    """

    url: str
    key: str = field(repr=False)
    number: int | None = None
    joined: int | None = None
    id: str | None = None


class Home:
    """The folder of a device.

    Args:
        folder: made where it is missing.
    """

    def __init__(self, folder: Path) -> None:
        self._folder, self._ledger = folder, folder / "ledger.jsonl"
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            is_open = folder.stat().st_mode & 0o077
        except OSError as error:
            raise DeviceError("enrolment", f"{folder} cannot be used ({error.strerror})") from error
        # Others may have read the secret: whoever opened the folder should know.
        if is_open:
            raise DeviceError("enrolment", f"{folder} is open to others; chmod 700 it, or name another folder")

    def secret(self) -> bytes:
        """Return the secret, made and kept for good before anybody uses it.

        Raises:
            DeviceError: `ledger`, where it is gone and reports were made with it, or the ledger is; `keystore`, where
            the key store does not keep it, or not tell it.
        """
        held = self._held()
        return held if isinstance(held, bytes) else held.secret()

    @property
    def place(self) -> str:
        """Where the secret is, in words."""
        held = self._held()
        return f"the file {self._folder / 'secret'}" if isinstance(held, bytes) else f"the key store {held.store}"

    def _held(self) -> bytes | keystore.Kept:
        """The secret, or where it is; made where there was none."""
        path, ledger = self._folder / "secret", self.ledger()
        with ledger.alone():
            # Fresh noise, or old prices forgotten: either would let the same values be told again, and nobody count it.
            lost_secret = not path.exists() and ledger.booked()
            lost_ledger = path.exists() and not ledger.is_whole
            if lost_secret or lost_ledger:
                raise DeviceError("ledger", f"{self._folder} lost its secret or its ledger; enrol as a new person")
            if not path.exists():
                ledger.begin()
                secret = os.urandom(SECRET_BYTES)
                # The mark is last: after a crash in between nothing was said with what lies in the store, and never is.
                kept = keystore.keep(secret)
                write(path, secret if kept is None else kept.to_bytes())
        data = path.read_bytes()
        return data if len(data) == SECRET_BYTES else keystore.Kept.of(data)

    def limit(self, decimal: str | None = None) -> Fraction | None:
        """Return the person's own limit over all tasks, None for none.

        Args:
            decimal: a new one.
        """
        path = self._folder / "limit"
        if decimal is not None:
            try:
                number({"limit": decimal}, "limit")
            except DeviceError as error:
                raise DeviceError("command", error.said) from error
            write(path, decimal.encode())
        return Fraction(path.read_text()) if path.exists() else None

    def ledger(self) -> DeviceLedger:
        """Return the ledger of all tasks."""
        return DeviceLedger(self._ledger, self.limit())

    def tasks(self) -> dict[str, Enrolment]:
        """Return the tasks that the device is enrolled in, by their hashes; those not told a number included."""
        found = sorted(self._folder.glob("*/enrolled.json"))
        try:
            return {path.parent.name: Enrolment(**json.loads(path.read_bytes())) for path in found}
        except (ValueError, TypeError) as error:
            raise DeviceError("enrolment", f"{self._folder} holds an enrolment that cannot be read") from error

    def keep(self, task: Task, enrolment: Enrolment) -> None:
        """Write down a task, and who the person is to it.

        Args:
            task: its signed bytes are kept. enrolment: replaces what was there.
        """
        folder = self._folder / task.hash.hex()
        folder.mkdir(mode=0o700, exist_ok=True)
        # Before the token is spent for the key in it: without its folder's name the file would be gone after a crash.
        sync_folder(self._folder)
        # The signed bytes and not their facts: they are checked anew each time, so a file that was changed is refused.
        write(folder / "task.json", task.data)
        write(folder / "enrolled.json", json.dumps(asdict(enrolment)).encode())

    def task(self, digest: str | None = None) -> tuple[Task, Enrolment, Enrolled]:
        """Return a task, where its collector is, and who the person is to it.

        Args:
            digest: its hash, or the beginning of it; may be left out where there is one task.

        Raises:
            DeviceError: `enrolment`, where there is none or more than one.
        """
        found = [(name, one) for name, one in self.tasks().items() if name.startswith(digest or "")]
        if len(found) != 1:
            raise DeviceError("enrolment", f"{len(found)} tasks; name one by --task HASH, or enrol")
        name, one = found[0]
        if one.number is None or one.joined is None:
            raise DeviceError("enrolment", "the collector has not confirmed it: enrol again with the same token")
        task = Task.of((self._folder / name / "task.json").read_bytes(), bytes.fromhex(name))
        return task, one, Enrolled(one.number, one.joined, self.secret(), bytes.fromhex(one.key))
