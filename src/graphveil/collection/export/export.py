"""The export of a collection: a folder with the signed task, everybody's id, and everybody's last report.

    task.json          as it was signed
    collection.json    epochs with their hashes, how many were enrolled and answered
    ids.txt            the id of each number, a line each, in JSON
    reports.npz        numbers, epochs, joined [n], salts [n, 16], bodies [n, bytes]: everybody's last report;
                       leaf_epochs [r], leaves [r, bytes]: every report's leaf in the hash of its epoch

Nothing in it says at which hour somebody answered, or from where. `read_export` reads it. A field that somebody left
out is zeros. Where fewer people answered a field than the task's least number, its bits stay in `bodies`, since each
seal is of a whole body; `read_export` treats the field as answered by nobody, and so must any other reader.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
import numpy.typing as npt

from graphveil.collection.export.bodies import Bodies
from graphveil.collection.store import frozen
from graphveil.device.people.canonical_id import require_distinct
from graphveil.device.people.people import ids_hash
from graphveil.device.reports.features import Features
from graphveil.device.task import VERSION, Task
from graphveil.errors import DataError, InputError
from graphveil.graphs.named.archives import read_npz
from graphveil.runtime.words import count_of

if TYPE_CHECKING:
    from graphveil.collection.store.store import Store

Numbers = npt.NDArray[np.int64]
Times = npt.NDArray[np.int32]
#: Nonce and hash of each, in order.
Epochs = tuple[tuple[bytes, bytes], ...]
_ARRAYS = ("numbers", "epochs", "joined", "salts", "bodies", "leaf_epochs", "leaves")
FILES = ("task.json", "collection.json", "ids.txt", "reports.npz")


@dataclass(frozen=True)
class Collected:
    """An exported collection.

    Args:
        ids: of everybody.
        last: everybody's last report.
        nonces: of each epoch, by which coordinates were assigned.
        bodies: the same as bits; a field that fewer people answered than the task's least number counts as unanswered.
        times: int32 [n, fields], in how many epochs each person answered each field.
        facts: of `collection.json`.
    """

    task: Task
    ids: tuple[str, ...]
    last: frozen.Last
    bodies: Bodies
    nonces: tuple[bytes, ...]
    times: Times
    facts: Mapping[str, Any]

    @property
    def too_few(self) -> dict[str, int]:
        """How many answered each field that is left out because they are fewer than the task's least number."""
        counts: Mapping[str, int] = self.facts.get("answered_each", {})
        return {kind: count for kind, count in counts.items() if 0 < count < self.task.least}

    def columns(self, field: Features, rows: npt.NDArray[np.int64]) -> npt.NDArray[np.int32]:
        """Return the coordinates that were assigned to the senders of some bodies, [rows, m].

        Args:
            field: the features.
            rows: indices of bodies.
        """
        columns = np.empty((len(rows), field.sampled), np.int32)
        for row, (number, epoch) in enumerate(zip(self.bodies.numbers[rows], self.last.joined[rows], strict=True)):
            # By the nonce of the epoch in which they joined: a later one would read their bits as other columns'.
            columns[row] = field.coordinates(self.task.person(int(number), self.nonces[int(epoch) - 1]))
        return columns


def export(store: Store, folder: Path, most_links: int | None = None) -> dict[str, Any]:
    """Write everybody's last report of the closed epochs, and return the facts of `collection.json`.

    Args:
        most_links: of one person, a public fact by which lists are checked; None: unknown.

    Raises:
        InputError: no epoch is closed, fewer have answered than the task's least number, or the folder is not empty.
    """
    if folder.exists() and any(folder.iterdir()):
        raise InputError(f"{folder} is not empty", remedy="take another folder")
    task, closed = store.task(), store.closed_epochs()
    if not closed:
        raise InputError("no epoch is closed", remedy="close the collection first: `graphveil collect close`")
    last, leaves = store.frozen()
    flags, times = _answer_flags(task, last), _times_of(last.numbers, leaves)
    answered = int(flags.any(axis=1).sum())
    # Everybody agreed to the least number: below it a single person stands out too much. An empty report hides nobody.
    if answered < task.least:
        who = f"{count_of(answered, 'person')} {'has' if answered == 1 else 'have'}"
        raise InputError(f"{who} answered", allowed=f"{task.least} or more, as the task says")
    facts = {
        "standard": VERSION,
        "task": task.hash.hex(),
        "epochs": [{"hash": digest.hex(), "nonce": nonce.hex()} for nonce, digest in closed],
        "people": task.people,
        "enrolled": store.status()["enrolled"],
        "answered": answered,
        "answered_each": _by_kind(task, flags.sum(axis=0)),
        "most_links": most_links,
        # Of the person who answered most often. Answers can be equal where values were not: changes cannot be counted.
        "answers_a_person": _by_kind(task, times.max(axis=0, initial=0)),
    }
    # Ids with their reports: readable by the owner only, from the first byte on.
    folder.mkdir(parents=True, exist_ok=True)
    folder.chmod(0o700)
    with _private(folder / "task.json") as file:
        file.write(task.data)
    with _private(folder / "ids.txt") as file:
        file.writelines(json.dumps(id, ensure_ascii=False).encode() + b"\n" for id in store.ids())
    with _private(folder / "reports.npz") as file:
        np.savez(file, **vars(last), leaf_epochs=leaves.epochs, leaves=leaves.leaves)
    # Last: a folder without this file was left by a crash, and is not read.
    with _private(folder / "collection.json") as file:
        file.write(json.dumps(facts, indent=2).encode() + b"\n")
    return facts


def _times_of(numbers: Numbers, leaves: frozen.Leaves) -> Times:
    """Return in how many epochs everybody, ascending, answered each field, int32 [n, fields]."""
    times = np.zeros((len(numbers), leaves.flags.shape[1]), np.int32)
    np.add.at(times, np.searchsorted(numbers, leaves.numbers), leaves.flags)
    return times


def _answer_flags(task: Task, last: frozen.Last) -> frozen.Bytes:
    # From the flags' own bytes: as bits, a body is eight times as long.
    return np.stack([last.bodies[:, at >> 3] >> (7 - at % 8) & 1 for at in frozen.flag_offsets(task)], axis=1)


def _by_kind(task: Task, counts: npt.NDArray[Any]) -> dict[str, int]:
    return {field.kind: int(count) for field, count in zip(task.fields, counts, strict=True)}


def _private(path: Path) -> BinaryIO:
    return open(path, "wb", opener=lambda name, flags: os.open(name, flags, 0o600))


def read_export(folder: Path) -> Collected:
    """Return an exported collection, each report checked against the hash of its epoch. The export holds these hashes:
    compare them with `graphveil collect status`. Raises DataError: a file is missing or damaged, or does not match the
    task or a hash.
    """
    missing = [name for name in FILES if not (folder / name).is_file()]
    if missing:
        raise _unusable(folder, f"{', '.join(missing)} is missing")
    with _reading(folder / "task.json") as path:
        task = Task.of(path.read_bytes())
    with _reading(folder / "ids.txt") as path:
        ids = tuple(json.loads(line) for line in path.read_text(encoding="utf-8").split("\n") if line)
        _require(all(isinstance(id, str) for id in ids) and ids_hash(ids) == task.ids, "belongs to another task")
        require_distinct(ids)
    with _reading(folder / "collection.json") as path:
        facts = json.loads(path.read_text(encoding="utf-8"))
        _require(isinstance(facts, dict) and facts.get("standard") == VERSION, "is no description of a collection")
        _require(facts.get("task") == task.hash.hex(), "belongs to another task")
        epochs = tuple((bytes.fromhex(epoch["nonce"]), bytes.fromhex(epoch["hash"])) for epoch in facts["epochs"])
        _require(bool(epochs), "holds no epoch")
    with _reading(folder / "reports.npz") as path:
        last, leaves = _arrays(path, task)
        bodies = Bodies(task, np.unpackbits(last.bodies, axis=1), last.numbers)
        # Before the hashes, which cost most.
        _require(bool(bodies.possible().all()), "holds a report that no device sends")
        _require_frozen(task, epochs, last, leaves)
        times = _times_of(last.numbers, leaves)
    with _reading(folder / "collection.json"):
        _require_facts(facts, task, last, times)
    bodies = bodies.without(
        [index for index, field in enumerate(task.fields) if 0 < facts["answered_each"][field.kind] < task.least]
    )
    return Collected(task, ids, last, bodies, tuple(nonce for nonce, _ in epochs), times, facts)


@contextmanager
def _reading(path: Path) -> Iterator[Path]:
    """Turn any failure to read a file of unknown origin into one error that names it."""
    try:
        yield path
    except DataError as error:
        raise _unusable(path, error.what) from error
    # Any exception: bytes that are no archive, no JSON or no array fail in ways that libraries do not list.
    except Exception as error:
        raise _unusable(path, f"cannot be read ({str(error) or type(error).__name__})") from error


def _unusable(path: Path, what: str) -> DataError:
    return DataError(what, where=str(path), remedy="export the collection again, or take another copy")


def _require(holds: bool, what: str) -> None:
    if not holds:
        raise DataError(what)


def _arrays(path: Path, task: Task) -> tuple[frozen.Last, frozen.Leaves]:
    # At most its own size: nothing in it is compressed, and a compressed file could unpack to any size.
    *columns, leaf_epochs, leaf_rows = read_npz(path, _ARRAYS, largest=path.stat().st_size)
    last, leaves = frozen.Last(*columns), frozen.Leaves(leaf_epochs, leaf_rows)
    people = len(last.numbers)
    shapes: list[tuple[npt.NDArray[Any], type, tuple[int, ...]]] = [
        *((column, np.int64, (people,)) for column in (last.numbers, last.epochs, last.joined)),
        (last.salts, np.uint8, (people, frozen.SHORT)),
        (last.bodies, np.uint8, (people, task.body_bytes)),
        (leaves.epochs, np.int64, (len(leaves.leaves),)),
        (leaves.leaves, np.uint8, (len(leaves.leaves), frozen.leaf_size(task))),
    ]
    for array, kind, shape in shapes:
        _require(array.dtype == kind and array.shape == shape, "holds an array of another shape or type")
    numbers = last.numbers
    _require(bool((numbers[:1] >= 0).all() and (numbers[-1:] < task.people).all()), "holds numbers of nobody")
    _require(bool((np.diff(numbers) > 0).all()), "does not hold everybody once, in order")
    return last, leaves


def _require_frozen(task: Task, epochs: Epochs, last: frozen.Last, leaves: frozen.Leaves) -> None:
    """Refuse reports that do not match the hashes of their epochs."""
    _require(bool((leaves.flags <= 1).all() and (leaves.numbers >= 0).all()), "holds leaves that no collector makes")
    _require(bool(np.isin(leaves.epochs, np.arange(1, len(epochs) + 1)).all()), "holds reports of no closed epoch")
    for epoch, (nonce, digest) in enumerate(epochs, start=1):
        rows = leaves.leaves[leaves.epochs == epoch].tobytes()
        _require(
            frozen.epoch_hash(task, epoch, nonce, [rows]) == digest,
            f"holds others than the frozen reports of epoch {epoch}",
        )
    # By number and epoch, so that each person's last report comes right before the next person's.
    order = np.lexsort((leaves.epochs, leaves.numbers))
    numbers = leaves.numbers[order]
    ends = order[np.append(numbers[1:] != numbers[:-1], True)[: len(numbers)]]
    same = np.array_equal(last.numbers, leaves.numbers[ends]) and np.array_equal(last.epochs, leaves.epochs[ends])
    _require(same, "does not hold everybody's last report")
    _require(bool((last.joined >= 1).all() and (last.joined <= last.epochs).all()), "holds reports of later people")
    offsets = frozen.flag_offsets(task)
    rows = zip(last.numbers, last.joined, last.salts, last.bodies, leaves.leaves[ends], strict=True)
    for number, joined, salt, row, leaf in rows:
        body = row.tobytes()
        expected = frozen.leaf_of(
            int(number), frozen.flags_of(body, offsets), frozen.seal_of(salt.tobytes(), int(joined), body)
        )
        _require(expected == leaf.tobytes(), "holds a report that was not sent so")


def _require_facts(facts: Mapping[str, Any], task: Task, last: frozen.Last, times: Times) -> None:
    """Refuse a description that does not match the reports."""
    flags, enrolled, most_links = _answer_flags(task, last), facts["enrolled"], facts["most_links"]
    answered = int(flags.any(axis=1).sum())
    _require(
        answered >= task.least, f"holds answers of {count_of(answered, 'person')}; the task says {task.least} or more"
    )
    counts = {
        "people": task.people,
        "answered": answered,
        "answered_each": _by_kind(task, flags.sum(axis=0)),
        "answers_a_person": _by_kind(task, times.max(axis=0, initial=0)),
    }
    _require({name: facts[name] for name in counts} == counts, "counts other reports")
    _require(type(enrolled) is int and len(flags) <= enrolled <= task.people, "counts other people as enrolled")
    _require(most_links is None or (type(most_links) is int and most_links >= 1), "names no number of links")
