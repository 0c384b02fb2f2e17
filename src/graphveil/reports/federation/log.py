"""A party's log of messages: one JSON line a message, appended as it leaves or is read, over all starts.

    agreement, session   first 16 hexadecimal digits of each; a restart of any party begins another session
    round, sender, receiver, kind, shape, bytes, reveals, epsilon
    tag                  of the body and its place in the session, under a key of its two ends; both write the same
    publication          of what this party publishes, a name under a key that the log does not hold

So a log can be handed on: whoever is neither sender nor receiver of a message cannot test guesses of its content.

Every line goes to the system before the program continues, so a killed process loses none; a line that a crash cut off
stays on a line of its own and is skipped.
"""

from __future__ import annotations

import hmac
import shutil
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from graphveil.errors import DataError
from graphveil.federation.core.agreement import Agreement
from graphveil.federation.core.messages import KINDS, Entry, Transcript
from graphveil.federation.crypto.keys import Identity
from graphveil.federation.transport.session import Message
from graphveil.files.outputs import Say
from graphveil.files.reading import LARGEST_HISTORY, parse_json, read_text, require_lines
from graphveil.files.serial import to_json
from graphveil.files.writing import writing
from graphveil.runtime.checks import is_number

#: Priced kinds that the labels' own epsilon pays for, once.
OF_LABELS = ("hidden-gradient", "training-labels")
TRANSCRIPT = "transcript.jsonl"
#: Characters of a transcript's line: names and facts of one message.
_LONGEST_LINE = 4096
#: The fields of a line beside its agreement, with their types; None: checked separately.
_FIELDS: Mapping[str, type | None] = MappingProxyType(
    {"round": int, "sender": str, "receiver": str, "kind": str, "shape": None, "bytes": int, "reveals": str}
    | {"epsilon": None}
)
#: Fields that lines of earlier versions do not have, with the values that stand for them.
_LATER_FIELDS: Mapping[str, str] = MappingProxyType({"session": "", "tag": "", "publication": ""})


class TranscriptFile:
    """Writes the log.

    Args:
        identity: this party's, whose key names publications and messages; without it they have no names.
        say: called with a warning where a line was cut off.
    """

    def __init__(
        self, folder: Path, agreement: Agreement, *, identity: Identity | None = None, say: Say = lambda line: None
    ) -> None:
        self._file, self._agreement, self._say = folder / TRANSCRIPT, agreement.hash.hex(), say
        self._per_round = agreement.setting.price.per_round
        self._secret, self._keys = b"", dict[str, bytes]()
        self._places: Counter[tuple[str, str, str]] = Counter()
        if identity is not None:
            self._secret = identity.private_key
            peers = (party for party in agreement.parties if party.name != identity.name)
            self._keys = {peer.name: identity.shared_with(peer.certificate.encode()) for peer in peers}

    @contextmanager
    def recording(self) -> Iterator[Callable[[Message], None]]:
        """Open the log and yield a function that appends a message; WriteError where the disk refuses."""
        with writing(self._file):
            file = self._file.open("a", buffering=1, encoding="utf-8")
        with file:
            if file.tell() and not self._file.read_bytes().endswith(b"\n"):
                self._say(f"{self._file}: its last line was cut off by a crash and is dropped")
                file.write("\n")

            def record(message: Message) -> None:
                with writing(self._file):
                    file.write(to_json(self._row(message)) + "\n")

            yield record

    def _row(self, message: Message) -> dict[str, Any]:
        row = Transcript((message.entry,)).to_rows()[0]
        priced = KINDS[message.entry.kind].priced and message.entry.kind not in OF_LABELS
        row["epsilon"] = self._per_round if priced else 0.0
        row |= {"session": message.session[:16], "tag": self._tag(message), "publication": ""}
        if self._secret and message.publication:
            # Logs are handed to partners, and a bare digest of rows would let them test guesses of the rows.
            row["publication"] = hmac.digest(self._secret, message.publication.encode(), "sha256").hex()
        return {"agreement": self._agreement[:16], **row}

    def _tag(self, message: Message) -> str:
        """Return a tag of a message that both ends, and nobody else, can compute; "" for one without a digest."""
        sender, receiver = message.entry.sender, message.entry.receiver
        key = self._keys.get(sender) or self._keys.get(receiver)
        if key is None or not message.tag:
            return ""
        # With its number: otherwise equal tags would show that a message of one bit equals an earlier one.
        where = message.session, sender, receiver
        self._places[where] += 1
        return hmac.digest(key, f"{where} {self._places[where]} {message.tag}".encode(), "sha256").hex()


@contextmanager
def remove_if_silent(folder: Path) -> Iterator[None]:
    """Remove a folder that the block makes, if an error ends it before the log's first message."""
    before = folder.exists()
    try:
        yield
    except BaseException:
        file = folder / TRANSCRIPT
        if not before and file.is_file() and not file.stat().st_size:
            shutil.rmtree(folder, ignore_errors=True)
            with suppress(OSError):  # others are in it
                folder.parent.rmdir()
        raise


@dataclass(frozen=True)
class Log:
    """A log of one agreement's run: its messages in order, and how many lines of the file are cut off (`torn`)."""

    messages: tuple[Message, ...] = ()
    torn: int = 0

    @property
    def transcript(self) -> Transcript:
        return Transcript(tuple(message.entry for message in self.messages))


def read_log(file: Path, agreement: Agreement) -> Log:
    """Read all messages of this agreement's run, over all starts.

    Args:
        file: of any party; where it is missing there are no messages.
        agreement: whose messages are wanted.

    Raises:
        DataError: there are more lines than anybody writes, or one that is none of a log.
    """
    if not file.is_file():
        return Log()
    messages, torn = [], 0
    lines = read_text(file, largest=LARGEST_HISTORY).split("\n")
    require_lines(len(lines), file)
    for number, line in enumerate(lines, start=1):
        where = f"{file}, line {number}"
        if len(line) > _LONGEST_LINE:
            raise _no_message(f"has {len(line):,} characters", where)
        try:
            row = parse_json(line, where=where)
        except DataError:
            torn += bool(line)
            continue
        if not isinstance(row, dict) or not isinstance(row.get("agreement"), str):
            raise _no_message("is no message", where)
        if row.pop("agreement") == agreement.hash.hex()[:16]:
            messages.append(_message({**_LATER_FIELDS, **row}, where))
    return Log(tuple(messages), torn)


def by_kind(transcript: Transcript) -> list[dict[str, Any]]:
    """Return count and bytes of each kind of message between each two parties, in order of first appearance."""
    totals: dict[tuple[str, str, str], list[int]] = {}
    for entry in transcript.entries:
        sums = totals.setdefault((entry.kind, entry.sender, entry.receiver), [0, 0])
        sums[0] += 1
        sums[1] += entry.bytes
    return [
        {"kind": kind, "from": sender, "to": to, "count": count, "bytes": size}
        for (kind, sender, to), (count, size) in totals.items()
    ]


def is_price(*values: object) -> bool:
    """Return whether each value read from a file is a number or "inf"."""
    return all(value == "inf" or is_number(value) for value in values)


def _message(row: dict[str, Any], where: str) -> Message:
    names = [row.pop(name) for name in _LATER_FIELDS]
    shape, price = row.get("shape"), row.get("epsilon")
    fits = row.keys() == _FIELDS.keys() and all(type(row[name]) is kind for name, kind in _FIELDS.items() if kind)
    fits = fits and row["kind"] in KINDS and is_price(price) and row["bytes"] >= 0
    fits = fits and all(isinstance(name, str) for name in names)
    if not fits or not isinstance(shape, list) or not all(type(size) is int and size >= 0 for size in shape):
        raise _no_message("is no message", where)
    entry = Entry(**{**row, "shape": tuple(shape), "epsilon": float(price)})  # type: ignore[arg-type]
    return Message(entry, *names)


def _no_message(what: str, where: str) -> DataError:
    return DataError(what, where=where, remedy="move the file away: it is only a record, the run does not need it")
