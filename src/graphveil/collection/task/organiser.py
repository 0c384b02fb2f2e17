"""The organiser's key, and what it signs: the task and the openings of epochs."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from graphveil.device.canonical import canonical
from graphveil.device.task import OPENING, TASK, Task, to_sign
from graphveil.errors import InputError
from graphveil.files.writing import write_bytes


def new_key(path: Path) -> Ed25519PrivateKey:
    """Make a key and write it to a new file of its owner. Raises InputError if it exists: devices would refuse the new
    key.
    """
    key = Ed25519PrivateKey.generate()
    partial = path.with_name(f".{path.name}.new")
    # Whole or not at all: half a key would block the name for good, as keys are never overwritten.
    write_bytes(partial, key.private_bytes_raw().hex().encode(), mode=0o600)
    try:
        os.link(partial, path)
    except FileExistsError as error:
        raise InputError(f"{path} is there already", remedy="take that key, or another file") from error
    finally:
        partial.unlink()
    return key


def read_key(path: Path) -> Ed25519PrivateKey:
    """Return the key of a file. Raises InputError if the file holds no key."""
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
    """Return the signed opening of the last epoch.

    Args:
        nonces: one for each epoch so far. key: the organiser's.
    """
    return _signed("opening", OPENING, {"task": task.hash.hex(), "nonces": [nonce.hex() for nonce in nonces]}, key)


def _signed(name: str, purpose: bytes, value: Mapping[str, object], key: Ed25519PrivateKey) -> bytes:
    public = key.public_key().public_bytes_raw()
    signature = key.sign(to_sign(purpose, public, value)).hex()
    return canonical({"key": public.hex(), "signature": signature, name: dict(value)})
