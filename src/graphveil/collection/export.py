"""What leaves a collector: a folder with the signed task, who takes part, and everybody's last report.

    task.json          as it was signed
    collection.json    epochs with their hashes, how many were enrolled and answered
    ids.txt            the id of each number, a line each, in JSON
    reports.npz        numbers, epochs, joined [n], bodies [n, bytes]: everybody's last report, by number;
                       times [n, fields]: in how many epochs each of them answered each field

Nothing in it says when somebody answered, or from where.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import accumulate, islice
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from graphveil.collection.bodies import Bodies
from graphveil.collection.declare import ids_hash
from graphveil.collection.frozen import Last
from graphveil.collection.store import Store
from graphveil.device.bits import sized
from graphveil.device.features import Features
from graphveil.device.task import Task
from graphveil.errors import DataError, InputError

Numbers = npt.NDArray[np.int64]
Times = npt.NDArray[np.int32]
_AT_ONCE = 1 << 14
FILES = ("task.json", "collection.json", "ids.txt", "reports.npz")


@dataclass(frozen=True)
class Collected:
    """An exported collection.

    Args:
        task: what was asked. ids: of everybody. last: everybody's last report. bodies: the same, as bits.
        nonces: by which coordinates were assigned, of each epoch.
        times: int32 [n, fields], in how many epochs they answered each field. facts: what `collection.json` says.
    """

    task: Task
    ids: tuple[str, ...]
    last: Last
    bodies: Bodies
    nonces: tuple[bytes, ...]
    times: Times
    facts: Mapping[str, Any]

    def columns(self, field: Features, rows: npt.NDArray[np.int64]) -> npt.NDArray[np.int32]:
        """Return the coordinates that the senders of some bodies were asked for, [rows, m].

        Args:
            field: the features. rows: places of bodies.
        """
        found = np.empty((len(rows), field.sampled), np.int32)
        for place, (number, epoch) in enumerate(zip(self.bodies.numbers[rows], self.last.joined[rows], strict=True)):
            # Of the epoch in which they joined: a later nonce would read their bits as other columns'.
            found[place] = field.asked(self.task.person(int(number), self.nonces[int(epoch) - 1]))
        return found


def export(store: Store, folder: Path, most_links: int | None = None) -> dict[str, Any]:
    """Write everybody's last report of the closed epochs, and return what `collection.json` says.

    Args:
        store: of the collection. folder: that is not there yet, or empty.
        most_links: of one person, a public fact by which lists are checked; None: nobody knows it.

    Raises:
        InputError: no epoch is closed, fewer have answered than the task asks for, or the folder holds something.
    """
    if folder.exists() and any(folder.iterdir()):
        raise InputError(f"{folder} is not empty", remedy="take another folder")
    task, closed = store.task(), store.closed()
    if not closed:
        raise InputError("no epoch is closed", remedy="close the collection first: `graphveil collect close`")
    last = store.last_reports()
    numbers, bodies = last.numbers, last.bodies
    # The least number stands in what everybody has agreed to: below it a single person stands out too much.
    if len(numbers) < task.least:
        raise InputError(f"{len(numbers)} people have answered", allowed=f"{task.least} or more, as the task says")
    times = _times(task, numbers, bodies, store.earlier_reports())
    told = {
        "standard": 1,
        "task": task.hash.hex(),
        "epochs": [{"hash": digest.hex(), "nonce": nonce.hex()} for nonce, digest in closed],
        "people": task.people,
        "enrolled": store.status()["enrolled"],
        "answered": len(numbers),
        "most_links": most_links,
        # Of the most asked person. Answers can be equal where values were not, so changes cannot be counted.
        "answers_a_person": {field.kind: int(most) for field, most in zip(task.fields, times.max(axis=0), strict=True)},
    }
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "task.json").write_bytes(task.data)
    with (folder / "ids.txt").open("w", encoding="utf-8") as file:
        file.writelines(json.dumps(one, ensure_ascii=False) + "\n" for one in store.ids())
    np.savez(folder / "reports.npz", **vars(last), times=times)
    # Last: a folder without it is one that a crash left, and is not read.
    (folder / "collection.json").write_text(json.dumps(told, indent=2) + "\n")
    return told


def read_export(folder: Path) -> Collected:
    """Return an exported collection.

    Raises:
        DataError: a file is missing, or does not fit the task.
    """
    missing = [name for name in FILES if not (folder / name).is_file()]
    if missing:
        raise DataError(f"{', '.join(missing)} is missing", where=str(folder), remedy="export the collection again")
    task = Task.of((folder / "task.json").read_bytes())
    told = json.loads((folder / "collection.json").read_text())
    ids = tuple(json.loads(line) for line in (folder / "ids.txt").read_text().split("\n") if line)
    if told.get("task") != task.hash.hex() or ids_hash(ids) != task.ids:
        raise DataError("the files belong to another task", where=str(folder), remedy="export the collection again")
    with np.load(folder / "reports.npz", allow_pickle=False) as held:
        if "times" not in held:
            raise DataError("times is missing", where=str(folder / "reports.npz"), remedy="export the collection again")
        last, times = Last(held["numbers"], held["epochs"], held["joined"], held["bodies"]), held["times"]
    numbers, bodies = last.numbers, last.bodies
    width = -(-task.bits // 8)
    if bodies.ndim != 2 or bodies.shape[1] != width or len(numbers) != len(bodies) or bodies.dtype != np.uint8:
        raise DataError(f"reports are not of {sized(width)} each", where=str(folder / "reports.npz"))
    # Checked again: the folder has been on other disks since.
    made = Bodies(task, np.unpackbits(bodies, axis=1), numbers)
    if not made.possible().all():
        raise DataError("a report that no device sends", where=str(folder / "reports.npz"))
    told_now = np.stack([made.answered(place) for place in range(len(task.fields))], axis=1)
    # Fewer than the report at hand shows would state too small a price.
    if times.shape != told_now.shape or (times < told_now).any() or (times > len(told["epochs"])).any():
        raise DataError("times are not those of the reports", where=str(folder / "reports.npz"))
    nonces = tuple(bytes.fromhex(one["nonce"]) for one in told["epochs"])
    return Collected(task, ids, last, made, nonces, times, told)


def _times(task: Task, numbers: Numbers, bodies: npt.NDArray[np.uint8], earlier: Iterator[tuple[int, bytes]]) -> Times:
    """Return in how many epochs everybody answered each field, int32 [n, fields].

    Args:
        task: what was asked. numbers, bodies: everybody's last report, by number.
        earlier: number and body of every other one.
    """
    times = _flags(task, bodies)
    # In blocks: after many epochs the earlier reports are many times the last ones.
    while block := list(islice(earlier, _AT_ONCE)):
        rows = np.frombuffer(b"".join(body for _, body in block), np.uint8).reshape(len(block), -1)
        np.add.at(times, np.searchsorted(numbers, [number for number, _ in block]), _flags(task, rows))
    return times


def _flags(task: Task, bodies: npt.NDArray[np.uint8]) -> Times:
    """Return which fields bodies [n, bytes] answer, 0 or 1, int32 [n, fields]."""
    starts = list(accumulate((1 + field.width for field in task.fields[:-1]), initial=0))
    # Of their own bytes alone: taken apart into bits, a body is eight times as long.
    return np.stack([bodies[:, at >> 3] >> (7 - at % 8) & 1 for at in starts], axis=1).astype(np.int32)
