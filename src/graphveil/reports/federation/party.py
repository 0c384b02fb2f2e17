"""What a party of a federation keeps of a run: status while it runs, then guarantee, ledger, transcript, predictions.

status.json        round, rounds, epsilon so far, when
guarantee.json     what is protected from whom      ledger.json   of a holder      card.md, .html   all in words
transcript.jsonl   every message of every start: from, to, kind, shape, bytes, what it reveals, epsilon
outcome.json       what the command prints with --json: promise, cost, and at the label holder accuracy
predictions.csv    at the label holder: id, class, probability of each class, for all aligned nodes
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType
from typing import Any

import polars as pl

from graphveil.errors import DataError, GraphveilError, WriteError
from graphveil.federation.core.agreement import Agreement
from graphveil.federation.core.guarantees import guarantee_of, ledger_of
from graphveil.federation.core.messages import KINDS, Entry, Transcript
from graphveil.federation.core.setting import MODES
from graphveil.federation.modes.labels import LabelHead
from graphveil.federation.party import Outcome
from graphveil.files.outputs import Output, Say
from graphveil.files.reading import LARGEST_HISTORY, parse_json, read_json, read_text, require_lines
from graphveil.files.writing import new_folder, writing
from graphveil.methods.runs.intervals import interval
from graphveil.reports.base.files import to_json, write_text
from graphveil.reports.base.parts import GUARANTEE, LEDGER, writing_part
from graphveil.reports.base.predictions import spreadsheet_table
from graphveil.reports.federation.card import OUTCOME as OUTCOME
from graphveil.reports.federation.card import rewrite_party
from graphveil.reports.federation.plan import priced

#: Paid for by the labels' own epsilon, once.
_OF_LABELS = ("hidden-gradient", "training-labels")
STATUS, TRANSCRIPT = "status.json", "transcript.jsonl"
#: Characters of a transcript's line: names and facts of one message.
_LONGEST_LINE = 4096
#: The fields of a line beside its agreement, with their types; None: looked at on its own.
_ENTRY: Mapping[str, type | None] = MappingProxyType(
    {"round": int, "sender": str, "receiver": str, "kind": str, "shape": None, "bytes": int, "reveals": str}
    | {"epsilon": None}
)


class StatusFile:
    """Writes where a party stands.

    Args:
        price: total epsilon of a holder; None at the server, which has no rows.
        reader: of what holders publish.
    """

    def __init__(self, folder: Path, name: str, rounds: int, price: float | None, reader: str = "the server") -> None:
        self._folder, self._name, self._rounds, self._price = folder, name, rounds, price
        self._reader = reader
        self._round, self._epsilon = 0, 0.0

    def write(self, state: str, round: int, epsilon: float) -> None:
        """Write where the party stands.

        Args:
            state: in words.
            round: how many are finished.
            epsilon: what this party has spent.
        """
        self._round, self._epsilon = round, epsilon
        content = {
            "party": self._name,
            "state": state,
            "round": round,
            "rounds": self._rounds,
            "epsilon": epsilon if self._price is not None else None,
            "epsilon_total": self._price,
            "reader": self._reader,
            "time": datetime.now(UTC).isoformat(timespec="seconds"),
        }
        write_text(self._folder / STATUS, to_json(content, indent=1) + "\n")

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Write that the party waits, and at the end how it ended."""
        self.write("waiting for the others", 0, 0.0)
        try:
            yield
        except GraphveilError as error:
            self.write(f"stopped: {error}", self._round, self._epsilon)
            raise
        except BaseException:
            self.write("interrupted; the same command goes on", self._round, self._epsilon)
            raise
        with suppress(WriteError):  # the outcome is written by now, beside a folder that is gone
            self.write("finished", self._rounds, self._epsilon)


def read_status(folder: Path) -> dict[str, Any]:
    """Return where a party stands.

    Raises:
        DataError: it has not started, or the file is damaged.
    """
    file = folder / STATUS
    try:
        content = read_json(file)
    except FileNotFoundError as error:
        raise DataError("no run has started here", where=str(folder)) from error
    kinds = {"party": str, "state": str, "round": int, "rounds": int, "reader": str, "time": str}
    right = isinstance(content, dict) and all(type(content.get(key)) is kind for key, kind in kinds.items())
    total = content.get("epsilon_total", "") if right else ""
    if not (right and (total is None or _is_price(total, content.get("epsilon")))):
        raise DataError("is not a status file", where=str(file), remedy="run the party again: it writes a new one")
    return dict(content)


def _is_price(*values: object) -> bool:
    numbers = (value == "inf" or (isinstance(value, int | float) and not isinstance(value, bool)) for value in values)
    return all(numbers)


class TranscriptFile:
    """Keeps every message as it is sent or received, also those before an interruption; without content."""

    def __init__(self, folder: Path, agreement: Agreement) -> None:
        self._file, self._agreement = folder / TRANSCRIPT, agreement.hash.hex()
        self._per_round = agreement.setting.price.per_round

    @contextmanager
    def recording(self) -> Iterator[Callable[[Entry], None]]:
        with writing(self._file):
            file = self._file.open("a", buffering=1, encoding="utf-8")
        with file:
            if file.tell() and not self._file.read_bytes().endswith(b"\n"):
                file.write("\n")  # a line that was cut off by a crash stays by itself

            def record(entry: Entry) -> None:
                row = Transcript((entry,)).to_rows()[0] | _price(entry.kind, self._per_round)
                with writing(self._file):
                    file.write(to_json({"agreement": self._agreement[:16], **row}) + "\n")

            yield record


def read_transcript(folder: Path, agreement: Agreement) -> Transcript:
    """Read all messages of this agreement's run, over all starts; a line that a crash cut off is passed over.

    Args:
        folder: of the party.
        agreement: whose messages are wanted.

    Raises:
        DataError: there are more lines than anybody writes, or one that is none of a transcript.
    """
    file, entries = folder / TRANSCRIPT, []
    if not file.is_file():
        return Transcript(())
    lines = read_text(file, largest=LARGEST_HISTORY).split("\n")
    require_lines(len(lines), file)
    for number, line in enumerate(lines, start=1):
        where = f"{file}, line {number}"
        if len(line) > _LONGEST_LINE:
            raise _no_message(f"has {len(line):,} characters", where)
        try:
            row = parse_json(line, where=where)
        except DataError:
            continue
        if not isinstance(row, dict) or not isinstance(row.get("agreement"), str):
            raise _no_message("is no message", where)
        if row.pop("agreement") == agreement.hash.hex()[:16]:
            entries.append(_entry(row, where))
    return Transcript(tuple(entries))


def _entry(row: dict[str, Any], where: str) -> Entry:
    shape, price = row.get("shape"), row.get("epsilon")
    fits = row.keys() == _ENTRY.keys() and all(type(row[name]) is kind for name, kind in _ENTRY.items() if kind)
    fits = fits and row["kind"] in KINDS and _is_price(price) and row["bytes"] >= 0
    if not fits or not isinstance(shape, list) or not all(type(size) is int and size >= 0 for size in shape):
        raise _no_message("is no message", where)
    return Entry(**{**row, "shape": tuple(shape), "epsilon": float(price)})  # type: ignore[arg-type]


def _no_message(what: str, where: str) -> DataError:
    return DataError(what, where=where, remedy="move the file away: it is only a record, the run does not need it")


def write_outcome(
    folder: Path,
    name: str,
    agreement: Agreement,
    outcome: Outcome,
    *,
    ids: Sequence[str] | None = None,
    seconds: float = 0.0,
    say: Say = lambda line: None,
) -> dict[str, Any]:
    """Write what a finished party keeps, in its folder or else beside it; return what `--json` prints.

    Args:
        ids: of the label holder's rows.
        seconds: how long the run took.
        say: hears what went beside the folder.
    """
    run = (name, agreement, outcome, ids, seconds)
    try:
        answer = _write_outcome(folder, folder, *run)
        rewrite_party(folder)
        return answer
    except WriteError as error:

        def make(path: Path) -> dict[str, Any]:
            with new_folder(path) as beside:
                beside.chmod(0o700)
                return _write_outcome(beside, path, *run)

        with ExitStack() as stack:
            return Output(folder, say, stack).write_beside(error, make)


def _write_outcome(
    folder: Path,
    lasting: Path,
    name: str,
    agreement: Agreement,
    outcome: Outcome,
    ids: Sequence[str] | None,
    seconds: float,
) -> dict[str, Any]:
    """Write all but the card into a folder that will be at `lasting`."""
    setting = agreement.setting
    guarantee, transcript = guarantee_of(setting), read_transcript(folder, agreement)
    publisher = outcome.publisher
    published = len(publisher.seen) if publisher is not None else setting.publications
    answer: dict[str, Any] = {
        "run": agreement.name,
        "party": name,
        "mode": setting.protocol.mode,
        "opens": MODES[setting.protocol.mode],
        "opened": setting.protocol.opened,
        "rounds": setting.rounds,
        "publications": setting.publications,
        "epsilon": setting.privacy.epsilon,
        **priced(setting),
        "epsilon_y": setting.privacy.epsilon_y,
        "guarantee": guarantee.to_dict(),
        "guarantee_sentence": guarantee.sentence(),
        "messages": by_kind(transcript),
        "bytes_sent": sum(e.bytes for e in transcript.entries if e.sender == name),
        "bytes_received": sum(e.bytes for e in transcript.entries if e.receiver == name),
        "seconds": seconds,
        "folder": str(lasting),
        "files": ["transcript.jsonl", GUARANTEE, LEDGER, "card.md", "card.html", OUTCOME],
    }
    if outcome.head is not None and outcome.order is not None:
        answer |= _predicted(folder, agreement, outcome.head, [(ids or [])[row] for row in outcome.order.tolist()])
        answer["files"] += ["predictions.csv", "metrics.jsonl"]
    contents = {OUTCOME: answer, GUARANTEE: guarantee.to_dict(), LEDGER: ledger_of(setting, published).to_dict()}
    with writing_part(folder, {name: to_json(content, indent=1) + "\n" for name, content in contents.items()}):
        pass
    return answer


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


def _price(kind: str, per_round: float) -> dict[str, float]:
    return {"epsilon": per_round if KINDS[kind].priced and kind not in _OF_LABELS else 0.0}


def _predicted(folder: Path, agreement: Agreement, head: LabelHead, ids: list[str]) -> dict[str, Any]:
    probabilities = head.predictions
    if probabilities is None:
        return {}
    names = [agreement.classes[place] for place in probabilities.argmax(dim=1).tolist()]
    columns = {f"p_{label}": probabilities[:, place].tolist() for place, label in enumerate(agreement.classes)}
    text = spreadsheet_table(pl.DataFrame({"id": ids, "class": names, **columns})).write_csv()
    write_text(folder / "predictions.csv", text)
    rows = "\n".join(to_json(row) for row in head.history)
    write_text(folder / "metrics.jsonl", rows + "\n")
    hit = (probabilities.argmax(dim=1) == head.labels)[head.test]
    facts: dict[str, Any] = {"test_nodes": len(hit), "best_round": head.best}
    if len(hit):
        facts["accuracy"] = interval([hit.numpy()]).to_dict()
    if len(hit) and head.alone is not None:
        alone = (head.alone.argmax(dim=1) == head.labels)[head.test]
        facts["accuracy_alone"] = interval([alone.numpy()]).to_dict()
    return facts
