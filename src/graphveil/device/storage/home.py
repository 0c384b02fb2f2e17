"""A device's own folder: the secret, the tasks that it is enrolled in, the ledger, the limit.

    secret          32 bytes, or their entry in the platform's key store (Keychain, Secret Service, KWallet), where
                    ``keyring`` finds one; made once: whoever reads it can undo the noise of every report
    ledger.jsonl, ledger.seal                   see `ledger`
    limit           epsilon over all tasks, a decimal or none; or default, see `ledger.Limit`
    HASH/task.json  the signed task             HASH/enrolled.json  the enrolment in it

Only its owner can open the folder (0700) and its files (0600). An entry of the key store is named by a hash of the
secret in it, so that what somebody else puts in its place is recognised.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

from graphveil.device.errors import DeviceError
from graphveil.device.reading import number
from graphveil.device.reporting import Enrolled
from graphveil.device.reports.noise import SECRET_BYTES
from graphveil.device.storage.ledger import DeviceLedger, Limit, sync_folder, write_file
from graphveil.device.task import Task

if TYPE_CHECKING:
    from keyring.backend import KeyringBackend

SERVICE: Final = "graphveil-device"
#: From which priority on keyring recommends a backend; below are files in the clear, and backends that keep nothing.
_RECOMMENDED: Final = 1.0
_Result = TypeVar("_Result")


@dataclass(frozen=True)
class KeystoreEntry:
    """Where the key store keeps a secret; a device's folder holds this in the secret's place.

    Args:
        name: of the entry.
        store: what keyring calls the key store.
    """

    name: str
    store: str

    @classmethod
    def of(cls, data: bytes) -> KeystoreEntry:
        """Return the entry in a file's bytes; DeviceError `ledger`, where they are something else."""
        try:
            return cls(**json.loads(data))
        except (ValueError, TypeError) as error:
            raise DeviceError("ledger", "the file secret holds neither a secret nor where one is") from error

    def to_bytes(self) -> bytes:
        """Return the entry as a file holds it; it is never as long as a secret."""
        return json.dumps(asdict(self)).encode()

    def secret(self) -> bytes:
        """Return the secret; DeviceError `keystore`, where the store is gone or locked, or does not hold that
        secret."""
        texts = (_call(store, store.get_password, SERVICE, self.name) for store in _stores())
        secret = next((_bytes(text) for text in texts if text is not None), None)
        if secret is None or _entry_name(secret) != self.name:
            raise DeviceError("keystore", f"your secret was put into {self.store}, and is not there")
        return secret


def keep_secret(secret: bytes) -> KeystoreEntry | None:
    """Put a secret, 32 bytes, into the key store and read it back; None where there is no key store. Raises
    DeviceError: `keystore`, where the key store is locked or does not keep the secret.
    """
    store = next(iter(_stores()), None)
    if store is None:
        return None
    entry = KeystoreEntry(_entry_name(secret), store.name)
    _call(store, store.set_password, SERVICE, entry.name, secret.hex())
    entry.secret()
    return entry


def _stores() -> list[KeyringBackend]:
    """Return the key stores that keyring recommends here, the best first."""
    # Imported here: whoever does not need keyring does not wait for it, and it need not be installed.
    try:
        import keyring
    except ImportError:
        return []
    try:
        chosen = keyring.get_keyring()
        # Where there are several, keyring answers with a chain of all, those that it does not recommend among them.
        chain: list[KeyringBackend] = getattr(chosen, "backends", [chosen])
        return [store for store in chain if store.priority >= _RECOMMENDED]
    except Exception as error:
        raise _unavailable("keyring", error) from error


def _call(store: KeyringBackend, call: Callable[..., _Result], *args: str) -> _Result:
    try:
        return call(*args)
    # Stores are other programs, reached over a bus: each fails in its own way, and none may end in a traceback.
    except Exception as error:
        raise _unavailable(store.name, error) from error


def _unavailable(store: str, error: Exception) -> DeviceError:
    # The kind of the error and not its message, which may hold what the store was asked for.
    return DeviceError("keystore", f"{store} is locked or does not answer ({type(error).__name__})")


def _entry_name(secret: bytes) -> str:
    return hashlib.sha256(b"graphveil/keystore/1" + secret).hexdigest()[:32]


def _bytes(text: str) -> bytes:
    try:
        return bytes.fromhex(text)
    except ValueError:
        return b""


_RESTORE = "Restore the folder as it was last."
_NO_LIMIT, _LIMITS = "none", "5, 2.5, none or default"


@dataclass(frozen=True)
class Enrolment:
    """A task that a device is enrolled in, or about to be.

    Args:
        url: of the collector.
        key: of the tags, hexadecimal.
        number, joined: the person's, None until the collector has confirmed them.
        id: which the person has confirmed; None where links are not asked.
    """

    url: str
    key: str = field(repr=False)
    number: int | None = None
    joined: int | None = None
    id: str | None = None


class Home:
    """The folder of a device, which is made where it is missing."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._ledger = folder, folder / "ledger.jsonl"
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            is_open = folder.stat().st_mode & 0o077
        except OSError as error:
            detail = f"the folder {folder} cannot be used ({error.strerror})"
            raise DeviceError("enrolment", detail, "Make it usable, or name another --folder.") from error
        # Others may have read the secret, which the owner should know.
        if is_open:
            detail = f"others on this machine may open the folder {folder}, which holds your secret"
            raise DeviceError("enrolment", detail, f"Close it with chmod 700 {folder}, or name another --folder.")

    def secret(self) -> bytes:
        """Return the secret; at first use it is made and stored. Raises DeviceError: `ledger`, where the secret or the
        ledger of earlier reports is gone; `keystore`, where the key store does not keep the secret or does not return
        it.
        """
        stored = self._secret_or_entry()
        return stored if isinstance(stored, bytes) else stored.secret()

    @property
    def place(self) -> str:
        """Where the secret is kept, in words."""
        stored = self._secret_or_entry()
        return f"the file {self._folder / 'secret'}" if isinstance(stored, bytes) else f"the key store {stored.store}"

    def _secret_or_entry(self) -> bytes | KeystoreEntry:
        """Return the secret or its entry in the key store; make it where there is none."""
        path, limit, ledger = self._folder / "secret", self._folder / "limit", self.ledger()
        with ledger.locked():
            # With fresh noise or forgotten prices, the same values could be reported again uncounted. An enrolment
            # shows that there was a secret, even if the ledger is gone too: collectors still know its key.
            lost_secret = not path.exists() and (ledger.booked() or self.tasks())
            lost_ledger = path.exists() and not ledger.is_whole
            if lost_secret or lost_ledger:
                raise DeviceError(
                    "ledger", f"the folder {self._folder} lost its secret, or the record of what was spent"
                )
            if not path.exists():
                ledger.begin()
                # Written before the secret: from then on a missing file is a lost limit.
                if not limit.exists():
                    write_file(limit, b"default")
                secret = os.urandom(SECRET_BYTES)
                # This file is last: after a crash in between, the store's secret is never used.
                entry = keep_secret(secret)
                write_file(path, secret if entry is None else entry.to_bytes())
        data = path.read_bytes()
        return data if len(data) == SECRET_BYTES else KeystoreEntry.of(data)

    def limit(self, decimal: str | None = None) -> Limit:
        """Return the limit over all tasks, after setting a new one: a decimal, "none" or "default". Raises DeviceError:
        `ledger`, where the limit cannot be read or is gone; `command`, where the new one is invalid.
        """
        path, secret = self._folder / "limit", self._folder / "secret"
        if decimal is not None:
            try:
                if decimal not in (_NO_LIMIT, "default"):
                    number({"limit": decimal}, "limit")
            except DeviceError as error:
                raise DeviceError("command", error.detail, f"Write a limit as one of these: {_LIMITS}.") from error
            # Locked: a process that begins the folder at the same time must not overwrite it with the default.
            with DeviceLedger(self._ledger).locked():
                write_file(path, decimal.encode())
        # Checked first: a process that makes the secret meanwhile has written the limit before it.
        is_begun = secret.exists()
        if not path.exists():
            if is_begun:
                detail = f"{path}, your own limit, is gone"
                raise DeviceError("ledger", detail, f"Write the limit into that file again: {_LIMITS}.")
            return "default"
        text = path.read_text().strip()
        if text == "default":
            return "default"
        try:
            return None if text == _NO_LIMIT else Fraction(text)
        except ValueError as error:
            detail = f"your own limit in {path} is not a number"
            raise DeviceError("ledger", detail, f"Write it there again: {_LIMITS}.") from error

    def ledger(self) -> DeviceLedger:
        return DeviceLedger(self._ledger, self.limit())

    def tasks(self) -> dict[str, Enrolment]:
        """Return all enrolments by the hashes of their tasks, including unconfirmed ones."""
        files = sorted(self._folder.glob("*/enrolled.json"))
        try:
            return {path.parent.name: Enrolment(**json.loads(path.read_bytes())) for path in files}
        except (ValueError, TypeError) as error:
            detail = f"an enrolment in {self._folder} is damaged"
            raise DeviceError("enrolment", detail, _RESTORE) from error

    def keep(self, task: Task, enrolment: Enrolment) -> None:
        """Store a task's signed bytes and the enrolment in it, which replaces an older one."""
        folder = self._folder / task.hash.hex()
        folder.mkdir(mode=0o700, exist_ok=True)
        # Before the token is spent for the enrolment's key: a crash must not lose the folder's name.
        sync_folder(self._folder)
        # The signed bytes: they are checked at every reading, so a changed file is refused.
        write_file(folder / "task.json", task.data)
        write_file(folder / "enrolled.json", json.dumps(asdict(enrolment)).encode())

    def task(self, digest: str | None = None) -> tuple[Task, Enrolment, Enrolled]:
        """Return a task with its enrolment and keys, by its hash or the beginning of it; None: the only task. Raises
        DeviceError: `enrolment`, where there is none or more than one.
        """
        tasks = self.tasks()
        matches = [(name, enrolment) for name, enrolment in tasks.items() if name.startswith(digest or "")]
        if len(matches) != 1:
            raise _no_single_task(digest, tasks)
        name, enrolment = matches[0]
        if enrolment.number is None or enrolment.joined is None:
            detail = "the collector has not confirmed that you take part"
            raise DeviceError("enrolment", detail, "Enrol again with the same token; it counts once.")
        task = Task.of((self._folder / name / "task.json").read_bytes(), bytes.fromhex(name))
        enrolled = Enrolled(enrolment.number, enrolment.joined, self.secret(), bytes.fromhex(enrolment.key))
        return task, enrolment, enrolled


def _no_single_task(digest: str | None, tasks: Mapping[str, Enrolment]) -> DeviceError:
    if not tasks:
        join = "Join one with the command enrol: address, token, --task HASH."
        return DeviceError("enrolment", "this device takes part in no collection yet", join)
    detail = f"no single task of this device begins with {digest}" if digest else "this device takes part in several"
    return DeviceError("enrolment", detail, f"Name one of these by its hash: {', '.join(sorted(tasks))}.")
