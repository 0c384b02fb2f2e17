"""``graphveil reproduce``: the list, one table on small data, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from graphveil.cli import reproduce as reproduce_screen
from graphveil.methods.runs.intervals import Interval
from graphveil.reproduction.catalogue import EXHIBITS
from graphveil.reproduction.exhibit import Exhibit
from graphveil.reproduction.runner import Outcome, Price, Row, Run
from tests.cli.conftest import Terminal, text_of
from tests.graphs.published_made import facebook

PEOPLE = 24


def publish_sets(root: Path) -> None:
    """Page-Page with few pages, in two kinds that link among themselves."""
    kinds = ("company", "tvshow", "politician", "government")
    edges = [(a, b) for a in range(PEOPLE) for b in range(a) if a % 4 == b % 4]
    features = {str(page): [page % 4, 100 + page] for page in range(PEOPLE)}
    facebook(root, edges, features, [kinds[page % 4] for page in range(PEOPLE)])


@pytest.mark.slow
def test_a_table_is_run_and_taken_up_again(type_in: Terminal, tmp_path: Path) -> None:
    publish_sets(tmp_path / "data")
    words = ("reproduce", "lpgnn-table3", "--splits", 1, "--only", "facebook,multi-bit eps_x=1", "--out", "table")
    answer = type_in(*words, "--reproducible-noise", 1, "--json").good
    rows = answer.json["rows"]
    assert [(row["row"], row["price"]["epsilon"]) for row in rows] == [("multi-bit eps_x=1", 1.0)]
    assert rows[0]["published"] == {"mean": 92.7, "width": 0.1} and rows[0]["splits"] == 1
    answer = type_in(*words, "--reproducible-noise", 1)
    assert answer.code == 0 and "92.7±0.1" in answer.out and "split 0" not in answer.err
    assert (tmp_path / "table" / "table.md").read_text().startswith("# lpgnn-table3")


def test_a_table_without_its_data_leaves_nothing_behind(type_in: Terminal, tmp_path: Path) -> None:
    type_in("reproduce", "solitude-table2", "--data-root", "nowhere").refused()
    assert not (tmp_path / "runs").exists()


# ---- what ``graphveil reproduce`` shows ----


def outcome_of(exhibit: Exhibit, accuracy: float, splits: int = 1) -> Outcome:
    """Every figure of an exhibit as if it had been run."""
    run = Run(Interval(accuracy, accuracy - 0.1, accuracy + 0.1, (accuracy,)), Price("one person", 2.0, 0.0), 1.0)
    return Outcome(tuple(Row(entry, (run,) * splits) for entry in exhibit.entries), {})


def test_every_exhibit_fits_a_terminal() -> None:
    for exhibit in (exhibit for exhibit in EXHIBITS.values() if exhibit.entries):
        lines = text_of(reproduce_screen.reproduced(exhibit, outcome_of(exhibit, 0.5), Path("runs/there"))).splitlines()
        text = "\n".join(lines)
        assert lines[0].startswith(f"{exhibit.id}: ") and max(map(len, lines)) <= 80
        assert all(f"{data}, 1 split" in text for data in exhibit.data)
        for entry in exhibit.entries:
            assert any(line.startswith(f"{entry.row} ") for line in lines), entry.row
        assert "runs/there" in text and all(note[:20] in text for note in exhibit.notes)
    missing = EXHIBITS["lpgnn-figure5"]
    text = text_of(reproduce_screen.reproduced(missing, outcome_of(missing, 0.5), Path("there")), 300)
    assert f"Missing  {missing.why}" in text
