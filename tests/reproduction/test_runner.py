"""Finished splits are kept, an interrupted run goes on where it stopped, and rows say what was found."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from graphveil.errors import InputError, MissingDataError, ModelFileError, UsedPathError
from graphveil.files.outputs import Output
from graphveil.graphs import Graph, load_plain
from graphveil.methods.runs.intervals import Interval
from graphveil.privacy import SeededRandomness
from graphveil.reproduction import runner, table
from graphveil.reproduction.exhibit import Entry, Exhibit, Published

SETTINGS = {"epsilon_y": 2.0}
ENTRIES = (
    Entry("labels, eps_y=2", "social-100", "label-propagation", SETTINGS, Published(30.0, 1.0), "2"),
    Entry("labels, eps_y=4", "social-100", "label-propagation", {"epsilon_y": 4.0}, None, "4"),
)
EXHIBIT = Exhibit("made", "table7", "a made table", "part", "half of it", ENTRIES, {"social-100": 1.0}, ("a note",))
RUN = runner.Run(Interval(0.5, 0.4, 0.6, (0.5,)), runner.Price("a person", 2.0, 0.0), 1.0)


class Counted:
    """A trainer that counts, and stops as a user would at one of its runs."""

    def __init__(self, stop: int | None = None) -> None:
        self.seen: list[tuple[str, int]] = []
        self.stop = stop

    def __call__(self, entry: Entry, graph: Graph, number: int) -> runner.Run:
        if len(self.seen) == self.stop:
            raise KeyboardInterrupt
        self.seen.append((entry.row, number))
        return replace(RUN, accuracy=Interval(0.5 + number / 10, 0.4, 0.6, (0.5,)))


def run(folder: Path, train: runner.Train, splits: int = 2, entries: tuple[Entry, ...] = ENTRIES) -> runner.Outcome:
    output = Output(folder)
    runner.open_folder(EXHIBIT, output, {})
    return runner.run_missing(entries, splits, output, load=load_plain, train=train)


def test_one_exhibit_from_end_to_end(tmp_path: Path) -> None:
    train = runner.trainer(noise=SeededRandomness)
    outcome = run(tmp_path, train)
    first = outcome.rows[0]
    assert len(first.runs) == 2 and first.runs[0].price.epsilon == 2.0 and first.points is not None
    assert first.ours.low <= first.ours.mean <= first.ours.high
    assert table.cells(first)[1:2] + table.cells(first)[4:] == ("30.0±1.0", "2", "2")
    assert table.cells(outcome.rows[1])[1] == "-" and outcome.rows[1].points is None
    page = table.markdown(EXHIBIT, outcome)
    assert "| labels, eps_y=2 | 30.0±1.0 |" in page and "Missing: half of it" in page and "a note" in page
    answer = table.answer(EXHIBIT, outcome, tmp_path)
    assert answer["rows"][0]["published"] == {"mean": 30.0, "width": 1.0} and answer["rows"][0]["splits"] == 2
    assert run(tmp_path, Counted(0)).rows == outcome.rows


def test_it_goes_on_where_it_stopped(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path, Counted(3))
    again = Counted()
    outcome = run(tmp_path, again)
    assert again.seen == [("labels, eps_y=4", 1)]
    assert [row.ours.mean for row in outcome.rows] == pytest.approx([0.55, 0.55])
    more = Counted()
    run(tmp_path, more, splits=3)
    assert more.seen == [("labels, eps_y=2", 2), ("labels, eps_y=4", 2)]


def test_it_goes_on_with_the_same_data_alone(tmp_path: Path) -> None:
    """Also where the interrupted run stopped between two rows, and where more splits are asked for later."""
    output, other = Output(tmp_path), load_plain("social-100")
    other.y = other.y.roll(1)
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path, Counted(2))
    for entries, splits in ((ENTRIES, 2), (ENTRIES[:1], 3)):
        with pytest.raises(UsedPathError, match="another social-100: the graph has changed since it began"):
            runner.run_missing(entries, splits, output, load=lambda name: other, train=Counted())
        run(tmp_path, Counted(), splits, entries)


def test_only_names_data_or_rows() -> None:
    other = replace(ENTRIES[0], data="social-200", row="labels, eps_y=8")
    exhibit = replace(EXHIBIT, entries=(*ENTRIES, other))
    assert runner.select_entries(exhibit, ()) == exhibit.entries
    assert runner.select_entries(exhibit, ["social-100"]) == ENTRIES
    assert runner.select_entries(exhibit, ["social-100", "labels, eps_y=4"]) == ENTRIES[1:]
    with pytest.raises(InputError, match=r"'multi' is in no row.*allowed: social-100, social-200; labels"):
        runner.select_entries(exhibit, ["multi"])


def test_data_that_is_not_at_hand_is_left_out_and_said(tmp_path: Path) -> None:
    def load(name: str) -> Graph:
        if name == "social-100":
            raise MissingDataError("is not there", where=name)
        return load_plain(name)

    other = replace(ENTRIES[0], data="social-200")
    output = Output(tmp_path)
    runner.open_folder(EXHIBIT, output, {})
    outcome = runner.run_missing((*ENTRIES, other), 1, output, load=load, train=Counted())
    assert [row.entry for row in outcome.rows] == [other]
    assert table.remarks(EXHIBIT, outcome)[-1] == ("Not run", "social-100: social-100: is not there")
    with pytest.raises(MissingDataError):
        runner.run_missing(ENTRIES, 1, output, load=load, train=Counted())


def test_what_was_run_with_other_settings_or_edited_is_refused(tmp_path: Path) -> None:
    run(tmp_path, Counted())
    changed = replace(ENTRIES[0], settings={"epsilon_y": 3.0})
    with pytest.raises(InputError, match="other settings"):
        run(tmp_path, Counted(), entries=(changed,))
    with pytest.raises(InputError, match="another exhibit, or other noise"):
        runner.check_folder(EXHIBIT, tmp_path, {"reproducible_noise": 1})
    file = tmp_path / ENTRIES[0].name / "split-0.json"
    content = json.loads(file.read_text())
    content["run"]["accuracy"]["mean"] = 0.9
    file.write_text(json.dumps(content))
    with pytest.raises(ModelFileError, match="changed since"):
        run(tmp_path, Counted())
    file.write_text("[1]")
    with pytest.raises(InputError, match="damaged"):
        run(tmp_path, Counted())
