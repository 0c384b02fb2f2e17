"""How far a party is: status.json while a run or a prediction goes on, and what has left the machine so far.

status.json                         round, rounds, epsilon so far, when
predictions/NAME/status.json        the same of a prediction
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from graphveil.errors import DataError, GraphveilError, WriteError
from graphveil.federation.core.agreement import Agreement
from graphveil.federation.core.messages import KINDS
from graphveil.federation.modes.joined import ROUNDS
from graphveil.federation.predicting import PREDICTIONS
from graphveil.files.reading import read_json
from graphveil.files.serial import to_json
from graphveil.files.writing import write_text
from graphveil.reports.federation.card import OUTCOME
from graphveil.reports.federation.log import TRANSCRIPT, Log, by_kind, is_price, read_log
from graphveil.reports.federation.plan import draft
from graphveil.reports.federation.review import ending_soon

STATUS = "status.json"


class StatusFile:
    """Writes how far a party is.

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
        """Write how far the party is.

        Args:
            epsilon: what this party has spent.
        """
        self._round, self._epsilon = round, epsilon
        running, now = state == "running", time.monotonic()
        if running and self._began is None:
            self._began = now, round
        # Each round to come is expected to take as long as those since this start.
        began, first = self._began or (now, round)
        left = (now - began) / (round - first) * (self._rounds - round) if round > first else None
        content = {
            "party": self._name,
            "state": state,
            "round": round,
            "rounds": self._rounds,
            "seconds_left": left if running else None,
            "epsilon": epsilon if self._price is not None else None,
            "epsilon_total": self._price,
            "reader": self._reader,
            "time": datetime.now(UTC).isoformat(timespec="seconds"),
        }
        write_text(self._folder / STATUS, to_json(content, indent=1) + "\n")

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Write that the party waits; at the end of the block, write how it ended."""
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
    """Return how far a party is; DataError where it has not started, or the file is damaged."""
    file = folder / STATUS
    try:
        content = read_json(file)
    except FileNotFoundError as error:
        raise DataError("no run has started here", where=str(folder)) from error
    kinds = {"party": str, "state": str, "round": int, "rounds": int, "reader": str, "time": str}
    is_valid = isinstance(content, dict) and all(type(content.get(key)) is kind for key, kind in kinds.items())
    total = content.get("epsilon_total", "") if is_valid else ""
    if not (is_valid and (total is None or is_price(total, content.get("epsilon")))):
        raise DataError("is not a status file", where=str(file), remedy="run the party again: it writes a new one")
    return dict(content)


def status_of(folder: Path) -> dict[str, Any]:
    """Return how far a party is, what it sent and received, its predictions, and which certificates end soon. Raises
    DataError: it has not started, or a file is missing or damaged.
    """
    answer, (agreement, _) = read_status(folder), draft(folder)
    log = read_log(folder / TRANSCRIPT, agreement)
    predictions = sorted(path for path in (folder / PREDICTIONS).glob("*") if path.is_dir())
    return {
        "seconds_left": None,
        **answer,
        **_messages(log),
        "predictions": [_prediction(prediction, agreement, answer["party"]) for prediction in predictions],
        "warnings": ending_soon(agreement),
    }


def _messages(log: Log) -> dict[str, Any]:
    messages = [{**row, "reveals": KINDS[row["kind"]].reveals} for row in by_kind(log.transcript)]
    return {"messages": messages, "torn": log.torn}


def _prediction(folder: Path, agreement: Agreement, party: str) -> dict[str, Any]:
    """Return how far a prediction is; people and epsilon are those of the log, which is written before a message."""
    # What was published counts, also where no status file says how far the prediction came.
    status = read_status(folder) if (folder / STATUS).is_file() else {"state": "unknown", "round": 0, "rounds": ROUNDS}
    log = read_log(folder / TRANSCRIPT, agreement)
    entries = log.transcript.entries
    return {
        "prediction": folder.name,
        **{fact: status[fact] for fact in ("state", "round", "rounds")},
        # Also if it was repeated later with other data, which is refused.
        "finished": (folder / OUTCOME).is_file(),
        "people": next((entry.shape[0] for entry in entries if entry.kind == "new-rows"), None),
        # The highest and not the sum: repeated, the same rows go out under the same noise.
        "epsilon": max((entry.epsilon for entry in entries if entry.sender == party), default=0.0),
        **_messages(log),
    }
