"""`GET /epoch`: whether a round is open, which, until when; and the person's page, which says so at once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from graphveil.collection.service import Collector
from graphveil.collection.store import Store
from graphveil.collection.tables import opened
from tests.collection.collections import PEOPLE, stored
from tests.collection.listening import served
from tests.collection.test_service import said
from tests.collection.visits import Running, Visit, running
from tests.on_device.signing import label, task_of
from tests.reports.browser import Browser

CLOSES = 4_000_000_000


def test_it_is_told_whether_reports_are_taken(url: str) -> None:
    task, store = task_of(label(), people=PEOPLE, opens=0, closes=CLOSES), Store(opened(url))
    store.begin(task, ())
    closed = {"open": False, "until": None}
    with served(Collector(store)) as address:
        assert said(f"{address}/epoch") == (200, {"epoch": 0, **closed})
        for epoch in (1, 2):
            store.open_epoch(bytes([epoch] * 16))
            assert said(f"{address}/epoch") == (200, {"epoch": epoch, "open": True, "until": CLOSES})
            store.close_epoch()
            assert said(f"{address}/epoch") == (200, {"epoch": epoch, **closed})
        assert "/epoch" in said(f"{address}/openapi.json")[1]["paths"]
    store.engine.dispose()


@pytest.fixture
def moods(tmp_path: Path) -> Iterator[Running]:
    with running(tmp_path, label()) as one:
        yield one


def comes_back(browser: Browser) -> None:
    browser.ask("window.dispatchEvent(new Event('focus'))")


@pytest.mark.slow
def test_what_was_typed_stays_and_nothing_is_booked_for_a_round_that_is_closed(
    browser: Browser, moods: Running
) -> None:
    visit = Visit(browser, moods)
    visit.joined()
    visit.click("input[value=sad]")
    moods.store.close_epoch()
    comes_back(browser)
    visit.sees("Nothing was booked or sent")
    assert browser.ask("return document.querySelector('input[value=sad]').checked")
    assert "Round 1 is open" not in browser.ask("return document.querySelector('#main').innerText")
    visit.click("#preview")
    visit.click("#send")
    visit.sees("Nothing was booked or sent")
    assert moods.recorder.bodies("/reports") == [] and "Your report is booked" not in visit.text("#main")
    # Another one opens: the report that is shown is one of it.
    moods.open()
    comes_back(browser)
    browser.until("return document.querySelector('#refused').hidden && document.querySelector('#send')")
    visit.click("#send")
    visit.sees("You have answered round 2.")
    assert len(moods.recorder.bodies("/reports")) == len(stored(moods.store)) == 1
