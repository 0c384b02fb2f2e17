"""A round that closes while a person answers: what was typed stays, and nothing is booked."""

from __future__ import annotations

import pytest

from tests.collection.collections import stored
from tests.collection.visits import Running, Visit
from tests.reports.browser import Browser


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
    visit.sees("Nothing was recorded or sent")
    assert browser.ask("return document.querySelector('input[value=sad]').checked")
    assert "Round 1 is open" not in browser.ask("return document.querySelector('#main').innerText")
    visit.click("#preview", "#send")
    visit.sees("Nothing was recorded or sent")
    assert moods.recorder.bodies("/reports") == [] and "Your report is recorded" not in visit.text("#main")
    # Another one opens: the report that is shown is one of it.
    moods.open()
    comes_back(browser)
    browser.until("return document.querySelector('#refused').hidden && document.querySelector('#send')")
    visit.click("#send")
    visit.sees("You have answered round 2.")
    assert len(moods.recorder.bodies("/reports")) == len(stored(moods.store)) == 1
