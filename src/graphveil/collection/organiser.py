"""The organiser's key, and what it signs: the task, and that an epoch has opened."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from graphveil.device.canonical import canonical
from graphveil.device.task import OPENING, TASK, Task
from graphveil.errors import InputError


def new_key(path: Path) -> Ed25519PrivateKey:
    """Make a key, and keep it in a file that its owner alone may read.

    Args:
        path: of a file that is not there yet.

    Raises:
        InputError: the file is there: a new key would make every device refuse what it signs.
    """
    key = Ed25519PrivateKey.generate()
    # Made with its mode, not given it afterwards: between the two somebody could read it.
    try:
        place = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError as error:
        raise InputError(f"{path} is there already", remedy="take that key, or another file") from error
    with os.fdopen(place, "w") as file:
        file.write(key.private_bytes_raw().hex())
        file.flush()
        os.fsync(file.fileno())
    return key


def read_key(path: Path) -> Ed25519PrivateKey:
    """Return the key of a file.

    Raises:
        InputError: there is none.
    """
    try:
        return Ed25519PrivateKey.from_private_bytes(bytes.fromhex(path.read_text()))
    except (OSError, ValueError) as error:
        raise InputError(f"{path} holds no key of an organiser") from error


def signed_task(facts: Mapping[str, object], key: Ed25519PrivateKey) -> Task:
    """Return a signed task, checked as a device checks it.

    Args:
        facts: see `declare.task_facts`. key: the organiser's.
    """
    return Task.of(_signed("task", TASK, facts, key))


def signed_opening(task: Task, nonces: Sequence[bytes], key: Ed25519PrivateKey) -> bytes:
    """Return what tells devices that an epoch has opened.

    Args:
        task: whose. nonces: one for each epoch so far. key: the organiser's.
    """
    return _signed("opening", OPENING, {"task": task.hash.hex(), "nonces": [one.hex() for one in nonces]}, key)


def _signed(name: str, purpose: bytes, value: Mapping[str, object], key: Ed25519PrivateKey) -> bytes:
    signature = key.sign(purpose + canonical(dict(value))).hex()
    return canonical({"key": key.public_key().public_bytes_raw().hex(), "signature": signature, name: dict(value)})
