"""The vectors of the standard, and what lines of their kind are made of: fixed people, secrets, nonces and keys."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from graphveil.device.lines import Client
from graphveil.device.task import TASK
from tests.on_device.signing import facts, signed

FOLDER = Path(__file__).parents[2] / "vectors"
SECRETS = [bytes([place]) * 32 for place in (0, 1, 127, 255)]
NONCES = [bytes(16), bytes(range(16)), b"\xff" * 16]
KEY = bytes(range(100, 132))
Line = dict[str, Any]
#: Two spellings of one id.
TWINS = (
    ("anna b", "anna  b"), ("anna", "ann\u200ba"), ("zo\u00eb", "zoe\u0308"), ("anna", "\uff41\uff4e\uff4e\uff41"),
    ("anna b", "anna\u00a0b"), ("Anna", "ANNA"), ("stra\u00dfe", "STRASSE"),
    ("\u03c3\u03b1\u03c3", "\u03a3\u0391\u03a3"), ("zo\u00eb", "zoe\u200d\u0308"), ("anna", "\u2067anna\u2069"),
    ("anna", "anna\x01"), ("\ud55c", "\u1112\u1161\u11ab"), ("\u13a0", "\uab70"), ("\u0131b", "\U0001d6a4b"),
)  # fmt: skip
#: Name -> SHA-256 of the file: another byte is another version of the standard.
FILES = {
    "plain": "74a41ea8398be6ea64eb0ea48e860e848494c58394fa4c0e6ac5587ad8bedcf2",
    "features": "07f6f053abfba13e506101b5ab225e3beff84762f6202b979572e6b7bf5ad063",
    "labels": "71f2a59087a0b1e4664d373c49637b4e00bc5763c7cca7d118cfedf0c2621231",
    "lists": "cd3881ec5d00edb5df58becccbdf829939383399086c821e7c564855d8e2ecc3",
    "whole": "4db460817d19a070213c77fef22310008fd493bbd875b7c4919df163b182eafa",
    "reports": "2338452d7372f552ea50a84ab53bb84f2a94ba0db5cd8d0eb22cf230d48eea15",
    "refused": "e90ce70399fece2f7c50690f1260ef5c7c84dc5708acf7afce1fe334b450f9be",
}


def vectors(name: str) -> list[dict[str, Any]]:
    """The lines of a file, as they stand: what a client is told, and what it answers."""
    data = (FOLDER / f"{name}.jsonl").read_bytes()
    assert hashlib.sha256(data).hexdigest() == FILES[name], "a changed vector is another standard"
    return [json.loads(line) for line in data.splitlines()]


def task_line(*fields: dict[str, Any], people: int = 12, **changes: Any) -> tuple[Line, str]:
    """The line that tells of a task, and the task's hash."""
    data = signed("task", TASK, facts(*fields, people=people, least=1, **changes))
    line = {"op": "task", "data": data.decode()}
    return line, str(Client().answer(line)["hash"])


def answer(task: str, values: Line, number: int = 0, secret: int = 1, nonce: int = 1, **more: Any) -> Line:
    request = {"op": "answer", "task": task, "number": number, "nonce": NONCES[nonce].hex()}
    return {**request, "secret": SECRETS[secret].hex(), "values": values, **more}
