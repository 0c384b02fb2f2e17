"""An exhibit as it is shown: figures side by side, prices in whose unit, what is missing; runs read from files."""

from __future__ import annotations

import json
import math

import pytest

from graphveil.files.serial import json_safe
from graphveil.methods.runs.intervals import Interval
from graphveil.reproduction.exhibit import Cost, Entry, Exhibit, Price, Published, Run
from graphveil.reproduction.runner import Outcome, Row
from graphveil.reproduction.table import HEADS, cells, markdown, remarks

LINK = Price("one bit of a list", 7.0, 0.0, 14.0)
PERSON = Price("one person", 2.0, 1e-5)
ROWS = (
    Row(Entry("a", "cora", "gcn", {}, Published(70.0, 2.0), "7"), (Run(Interval(0.75, 0.7, 0.8, (0.75,)), LINK, 1.0),)),
    Row(Entry("b", "cora", "gcn"), (Run(Interval(0.5, 0.4, 0.6, (0.5,)), LINK, 2.0),)),
    Row(
        Entry("a", "digits", "gcn", {}, Published(90.0), "2"),
        (Run(Interval(0.8, 0.7, 0.9, (0.8,)), PERSON, 1.0), Run(Interval(0.9, 0.8, 1.0, (0.9,)), PERSON, 1.0)),
    ),
)
CPU = {"cora": 1.0, "digits": 2.0}
EXHIBIT = Exhibit("made", "figure2", "made figures", "yes", "", tuple(row.entry for row in ROWS), CPU, ("a note",))
OUTCOME = Outcome(ROWS, {"pubmed": "is not there"})


def test_a_row_shows_both_figures_their_difference_and_both_prices() -> None:
    assert cells(ROWS[0]) == ("a", "70.0±2.0", "75.0 (70.0 to 80.0)", "+5.0", "7", "7 (14 a relationship)")
    assert cells(ROWS[1]) == ("b", "-", "50.0 (40.0 to 60.0)", "-", "-", "7 (14 a relationship)")
    assert len(HEADS) == len(cells(ROWS[2]))


def test_several_splits_have_the_interval_of_their_mean_and_one_that_of_its_nodes() -> None:
    ours = ROWS[2].ours
    assert abs(ours.mean - 0.85) < 1e-12
    assert ours.low < 0.1 and 0.99 < ours.high < 1.0  # t with one degree of freedom: 12.7
    assert ROWS[0].ours == ROWS[0].runs[0].accuracy


def test_what_to_mind_what_is_missing_and_what_was_not_run_is_said() -> None:
    assert remarks(EXHIBIT, OUTCOME) == [
        ("Mind", "a note"),
        ("Mind", "epsilon: true is the price of one bit of a list or one person"),
        ("Not run", "pubmed: is not there"),
    ]
    page = markdown(EXHIBIT, OUTCOME)
    assert page.startswith("# made-figure2: made figures\n") and "## digits, 2 splits" in page
    assert page.count("| --- ") == 2 * len(HEADS) and page.endswith("- Not run: pubmed: is not there\n")


def test_what_parties_took_is_said_by_the_epoch() -> None:
    """The mean over all splits, and nothing for rows whose parties did not run."""
    costs = (Cost(10, 20.0, 10**9), Cost(10, 40.0, 3 * 10**9))
    runs = tuple(Run(Interval(0.5, 0.4, 0.6, (0.5,)), PERSON, 1.0, cost) for cost in costs)
    texts = [text for kind, text in remarks(EXHIBIT, Outcome((*ROWS, Row(ROWS[0].entry, runs)), {})) if kind == "Cost"]
    assert texts == ["cora, a: 3 CPU s and 200 MB an epoch, of all parties together, set-up spread over all"]


# ---- what a finished run leaves is read back as it was, and anything else is refused ----


RUNS = (
    Run(Interval(0.5, 0.4, 0.6, (0.5,)), Price("one person", 2.0, 1e-5), 1.5),
    Run(Interval(0.25, 0.0, 1.0, (0.25,)), Price("one bit", 7.0, 0.0, 14.0), 0.0),
    Run(Interval(1.0, 0.9, 1.0, (1.0,)), Price("one row", math.inf, 0.0), 3.0),
    Run(Interval(0.5, 0.4, 0.6, (0.5,)), Price("one edge", math.inf, 0.0, math.inf), 3.0),
    Run(Interval(0.5, 0.4, 0.6, (0.5,)), Price("one row", math.inf, 0.0), 3.0, Cost(150, 2.5, 10**9)),
)


@pytest.mark.parametrize("run", RUNS, ids=lambda run: run.price.unit)
def test_a_run_is_read_from_its_file_as_it_was_written(run: Run) -> None:
    """Infinite prices too, which JSON has no number for."""
    text = json.dumps(json_safe(run.to_dict()), allow_nan=False)
    assert Run.from_dict(json.loads(text)) == run


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("accuracy", None),
        ("accuracy", {"mean": 0.5}),
        ("accuracy", "0.5"),
        ("price", None),
        ("price", [1]),
        ("seconds", "long"),
        ("epsilon", "much"),
        ("epsilon", None),
        ("relationship", "x"),
    ],
)
def test_what_is_no_run_is_refused(name: str, value: object) -> None:
    """A part of it is replaced, or taken out for None."""
    content = RUNS[0].to_dict()
    place = content if name in content else content["price"]
    place[name] = value
    if value is None:
        del place[name]
    with pytest.raises((KeyError, TypeError, ValueError)):
        Run.from_dict(content)
