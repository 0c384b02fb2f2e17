"""An exhibit as text: the paper's figures beside ours."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from graphveil.privacy.accounting.printed import rounded_up
from graphveil.reproduction.exhibit import Exhibit
from graphveil.reproduction.runner import Outcome, Row
from graphveil.runtime.late import special


@dataclass(frozen=True)
class PairedTest:
    """A two-tailed t-test, paired by split, of one method against the best rival on the same data and setting."""

    data: str
    setting: str
    method: str
    rival: str
    points: float  # the method minus the rival, mean over splits
    p: float | None  # None for one split, or equal differences

    @property
    def sentence(self) -> str:
        chance = "not to be tested on one split" if self.p is None else f"p = {self.p:.2g}"
        return f"{self.data} {self.setting}: {self.method} {self.points:+.1f} points over {self.rival}, {chance}"


def tests_of(rows: Sequence[Row], method: str) -> Iterator[PairedTest]:
    """Yield a test for each data set and setting in which a method and a rival were run.

    Args:
        rows: named "<method> <setting>".
        method: tested against the best of all other methods.
    """
    settings: dict[tuple[str, str], dict[str, Row]] = {}
    for row in rows:
        name, _, setting = row.entry.row.partition(" ")
        settings.setdefault((row.entry.data, setting), {})[name] = row
    for (data, setting), named in settings.items():
        rivals = {name: row for name, row in named.items() if name != method}
        if method in named and rivals:
            # Selected by the tested figures themselves, which makes the test stricter.
            rival = max(rivals, key=lambda name: rivals[name].ours.mean)
            pairs = zip(named[method].runs, rivals[rival].runs, strict=True)
            # Paired: the same split number draws the same nodes for both.
            gaps = np.array([100 * (ours.accuracy.mean - theirs.accuracy.mean) for ours, theirs in pairs])
            count, points, p = len(gaps), float(gaps.mean()), None
            if count > 1 and float(gaps.std(ddof=1)) > 0:
                t = points / (float(gaps.std(ddof=1)) / math.sqrt(count))
                p = float(2 * special.stdtr(count - 1, -abs(t)))
            yield PairedTest(data, setting, method, rival, points, p)


HEADS = ("row", "paper, %", "ours, % (95%)", "points", "epsilon: paper", "epsilon: true")


def cells(row: Row) -> tuple[str, ...]:
    """Return the cells of a row, one for each of HEADS."""
    published, ours, price = row.entry.published, row.ours, row.runs[0].price
    paper = "-"
    if published is not None:
        paper = f"{published.mean:.1f}" + ("" if published.width is None else f"±{published.width:.1f}")
    # Papers count one bit or one entry of a list; readers expect one relationship.
    relationship = "" if price.relationship is None else f" ({rounded_up(price.relationship)} a relationship)"
    return (
        row.entry.row,
        paper,
        f"{100 * ours.mean:.1f} ({100 * ours.low:.1f} to {100 * ours.high:.1f})",
        "-" if row.points is None else f"{row.points:+.1f}",
        row.entry.claimed or "-",
        f"{rounded_up(price.epsilon)}{relationship}",
    )


def by_data(rows: Sequence[Row]) -> Iterator[tuple[str, list[Row]]]:
    """Yield each data set with the number of its splits, in words, and its rows."""
    for data in dict.fromkeys(row.entry.data for row in rows):
        # All rows have the same number of splits: an interrupted run writes no table.
        own = [row for row in rows if row.entry.data == data]
        splits = len(own[0].runs)
        yield f"{data}, {splits} split{'s' if splits > 1 else ''}", own


def remarks(exhibit: Exhibit, outcome: Outcome) -> list[tuple[str, str]]:
    """Return remarks as (kind, sentence): notes, missing parts, costs, tests, and data that were absent."""
    units = " or ".join(dict.fromkeys(row.runs[0].price.unit for row in outcome.rows))
    lines = [("Mind", note) for note in (*exhibit.notes, f"epsilon: true is the price of {units}")]
    # Under every table, so that a part does not pass for the whole.
    if exhibit.why:
        lines.append(("Missing", exhibit.why))
    lines += [("Cost", f"{row.entry.data}, {row.entry.row}: {cost}") for row in outcome.rows for cost in _costs(row)]
    lines += [("t-test", test.sentence) for test in _tests(exhibit, outcome)]
    return lines + [("Not run", f"{data}: {why}") for data, why in outcome.absent.items()]


def _costs(row: Row) -> Iterator[str]:
    """Yield the mean cost of an epoch for the parties, if the row was trained on shares."""
    costs = [run.cost for run in row.runs if run.cost is not None]
    if costs:
        epochs = sum(cost.epochs for cost in costs)
        seconds, size = sum(cost.seconds for cost in costs) / epochs, sum(cost.bytes for cost in costs) / epochs
        yield f"{seconds:.3g} CPU s and {size / 1e6:.0f} MB an epoch, of all parties together, set-up spread over all"


def _tests(exhibit: Exhibit, outcome: Outcome) -> list[PairedTest]:
    return list(tests_of(outcome.rows, exhibit.tested)) if exhibit.tested else []


def markdown(exhibit: Exhibit, outcome: Outcome) -> str:
    parts = [f"# {exhibit.id}: {exhibit.caption}", ""]
    for head, rows in by_data(outcome.rows):
        parts += [f"## {head}", "", f"| {' | '.join(HEADS)} |", "| --- " * len(HEADS) + "|"]
        parts += [*(f"| {' | '.join(cells(row))} |" for row in rows), ""]
    return "\n".join([*parts, *(f"- {kind}: {text}" for kind, text in remarks(exhibit, outcome))]) + "\n"


def answer(exhibit: Exhibit, outcome: Outcome, folder: Path) -> dict[str, Any]:
    """Return what ``--json`` prints."""
    rows = [row.to_dict() for row in outcome.rows]
    splits = max((row["splits"] for row in rows), default=0)
    return {
        **exhibit.to_dict(),
        "splits": splits,
        "rows": rows,
        "tests": [asdict(test) for test in _tests(exhibit, outcome)],
        "absent": dict(outcome.absent),
        "folder": str(folder),
    }
