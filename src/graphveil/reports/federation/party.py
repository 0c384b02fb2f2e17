"""What a party of a federation keeps of a run: status while it runs, then guarantee, ledger, transcript, predictions.

status.json        round, rounds, epsilon so far, when
guarantee.json     what is protected from whom      ledger.json   of a holder      card.md, .html   all in words
transcript.jsonl   every message of every start, see `log`
outcome.json       what the command prints with --json: promise, cost, and at the label holder accuracy
predictions.csv    at the label holder: id, class, probability of each class, for all aligned nodes
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import polars as pl
from torch import Tensor

from graphveil.errors import DataError, GraphveilError, WriteError
from graphveil.federation.core.agreement import Agreement
from graphveil.federation.core.guarantees import guarantee_of, ledger_of
from graphveil.federation.core.messages import KINDS
from graphveil.federation.core.setting import MODES
from graphveil.federation.modes.labels import LabelHead
from graphveil.federation.party import Outcome
from graphveil.files.outputs import Output, Say
from graphveil.files.reading import read_json
from graphveil.files.writing import new_folder
from graphveil.methods.runs.intervals import interval
from graphveil.reports.base.files import to_json, write_text
from graphveil.reports.base.parts import GUARANTEE, LEDGER, writing_part
from graphveil.reports.base.predictions import spreadsheet_table
from graphveil.reports.federation.card import OUTCOME as OUTCOME
from graphveil.reports.federation.card import rewrite_party
from graphveil.reports.federation.log import TRANSCRIPT, by_kind, is_price, read_log
from graphveil.reports.federation.plan import draft, priced
from graphveil.reports.federation.review import ending_soon

STATUS = "status.json"


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
        self._began: tuple[float, int] | None = None

    def write(self, state: str, round: int, epsilon: float) -> None:
        """Write where the party stands.

        Args:
            state: in words.
            round: how many are finished.
            epsilon: what this party has spent.
        """
        self._round, self._epsilon = round, epsilon
        running, now = state == "running", time.monotonic()
        if running and self._began is None:
            self._began = now, round
        content = {
            "party": self._name,
            "state": state,
            "round": round,
            "rounds": self._rounds,
            "seconds_left": self._left(now) if running else None,
            "epsilon": epsilon if self._price is not None else None,
            "epsilon_total": self._price,
            "reader": self._reader,
            "time": datetime.now(UTC).isoformat(timespec="seconds"),
        }
        write_text(self._folder / STATUS, to_json(content, indent=1) + "\n")

    def _left(self, now: float) -> float | None:
        """Return seconds for the rounds to come, each as long as those of this start; None before the first."""
        began, first = self._began or (now, self._round)
        finished = self._round - first
        return (now - began) / finished * (self._rounds - self._round) if finished > 0 else None

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
    if not (right and (total is None or is_price(total, content.get("epsilon")))):
        raise DataError("is not a status file", where=str(file), remedy="run the party again: it writes a new one")
    return dict(content)


def status_of(folder: Path) -> dict[str, Any]:
    """Return where a party stands, what has left its machine and arrived there, and which certificates end soon.

    Raises:
        DataError: it has not started, or a file is missing or damaged.
    """
    answer, (agreement, _) = read_status(folder), draft(folder)
    log = read_log(folder / TRANSCRIPT, agreement)
    messages = [{**row, "reveals": KINDS[row["kind"]].reveals} for row in by_kind(log.transcript)]
    return {"seconds_left": None, **answer, "messages": messages, "torn": log.torn, "warnings": ending_soon(agreement)}


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
    guarantee, transcript = guarantee_of(setting), read_log(folder / TRANSCRIPT, agreement).transcript
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
        "files": [TRANSCRIPT, GUARANTEE, LEDGER, "card.md", "card.html", OUTCOME],
    }
    if outcome.head is not None and outcome.order is not None:
        answer |= _predicted(folder, agreement, outcome.head, [(ids or [])[row] for row in outcome.order.tolist()])
        answer["files"] += ["predictions.csv", "metrics.jsonl"]
    contents = {OUTCOME: answer, GUARANTEE: guarantee.to_dict(), LEDGER: ledger_of(setting, published).to_dict()}
    with writing_part(folder, {name: to_json(content, indent=1) + "\n" for name, content in contents.items()}):
        pass
    return answer


def write_predictions(folder: Path, agreement: Agreement, ids: Sequence[str], probabilities: Tensor) -> None:
    """Write predictions.csv.

    Args:
        folder: where.
        agreement: names the classes.
        ids: of the rows.
        probabilities: float32 [rows, classes].
    """
    names = [agreement.classes[place] for place in probabilities.argmax(dim=1).tolist()]
    columns = {f"p_{label}": probabilities[:, place].tolist() for place, label in enumerate(agreement.classes)}
    text = spreadsheet_table(pl.DataFrame({"id": list(ids), "class": names, **columns})).write_csv()
    write_text(folder / "predictions.csv", text)


def _predicted(folder: Path, agreement: Agreement, head: LabelHead, ids: list[str]) -> dict[str, Any]:
    probabilities = head.predictions
    if probabilities is None:
        return {}
    write_predictions(folder, agreement, ids, probabilities)
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
