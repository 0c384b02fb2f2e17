"""Both pages in a real Firefox, as far as they are walked in Chromium: where one is installed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from graphveil.device import read
from tests.collection.organising import look_at_screens
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
