"""Both pages in a real Firefox, as far as they are walked in Chromium: where one is installed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from graphveil.collection.export import read_export
from graphveil.collection.service import Collector
from graphveil.device import read
from tests.collection.listening import served
from tests.collection.organising import Organiser, look_at_screens
from tests.collection.test_desk import enrolled, ready, sent
from tests.collection.test_person_page import EVERY, fill_in, stored
from tests.collection.visits import Visit, running
from tests.reports.firefox import Firefox, started_firefox

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def firefox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Firefox]:
    with started_firefox(tmp_path_factory.mktemp("profile")) as window:
        yield window


def test_a_person_answers_in_firefox(firefox: Firefox, tmp_path: Path) -> None:
    with running(tmp_path, *EVERY) as everything:
        visit, recorder = Visit(firefox, everything), everything.recorder
        visit.come()
        visit.sees("at most 73.2% sure")
        look_at_screens(firefox)
        assert firefox.ask("return location.href") == f"{everything.url}/"
        visit.join()
        everything.open()
        visit.click("#now button")
        fill_in(visit)
        visit.click("#preview")
        visit.sees("This is your report")
        look_at_screens(firefox)
        shown, recorder.down = visit.shown(), True
        visit.click("#send")
        visit.sees("booked, and has not arrived yet")
        # Closed and opened again: the same bytes from the disk, and nothing is sent by itself.
        visit.come(f"{everything.url}/")
        visit.sees("booked, and has not arrived yet")
        assert visit.shown() == shown and recorder.bodies("/reports") == [shown]
        recorder.down = False
        visit.click("#again")
        visit.sees("your report has arrived")
        assert recorder.bodies("/reports") == [shown] * 2 and stored(everything) == [read(shown)[0].body]
        assert "epsilon 7.5" in visit.text("#spent")


def test_an_organiser_closes_and_exports_in_firefox(firefox: Firefox, tmp_path: Path) -> None:
    desk = ready(tmp_path, least=2, features="4", label="1")
    with desk.store() as store, served(Collector(store, desk=desk)) as url:
        organiser, token = Organiser(firefox, url), desk.admin_token(store)
        assert token is not None
        organiser.come(token)
        for number in range(3):
            enrolled(desk, number)
        organiser.sees("Enrolment is open")
        organiser.does("open")
        organiser.sees("Round 1 is open.")
        assert [sent(desk, number, 1) for number in (0, 2)] == [["accepted"]] * 2
        organiser.sees("The least number is reached")
        look_at_screens(firefox)
        organiser.does("close")
        organiser.sees("Round 1 is closed.")
        organiser.does("export")
        organiser.sees("The reports of 2 people are exported.")
    assert read_export(tmp_path / "collected").bodies.numbers.tolist() == [0, 2]
