"""The person's page says whom this browser answers for, by the list whose hash the task holds, before anybody joins."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.collection.collections import PEOPLE
from tests.collection.visits import IDS, Running, Visit, running
from tests.on_device.pretended import spelled
from tests.on_device.signing import degree
from tests.reports.browser import Browser

pytestmark = pytest.mark.slow
WHOM = f"You answer as {IDS[4]}."


@pytest.fixture
def friends(tmp_path: Path) -> Iterator[Running]:
    with running(tmp_path, degree(PEOPLE)) as collection:
        yield collection


def test_who_answers_is_shown_before_joining_and_before_answering(browser: Browser, friends: Running) -> None:
    visit = Visit(browser, friends)
    visit.come(friends.link(4))
    visit.sees(WHOM, "If this is not you, stop: do not take part, and tell the organiser.")
    assert WHOM in visit.text("#join") and not friends.recorder.bodies("/enrolments")
    visit.join()
    friends.open()
    visit.click("#now button")
    visit.sees("Your answers")
    assert WHOM in visit.text("#now")
    # Who comes back without a link is told as well: the number is that of this browser.
    visit.come(f"{friends.url}/")
    visit.sees(WHOM)


def test_people_passed_off_as_others_are_refused_before_joining(browser: Browser, friends: Running) -> None:
    visit = Visit(browser, friends)
    for wrong in ([IDS[1], IDS[0], *IDS[2:]], IDS[:-1], [*IDS[:-1], IDS[0]], [1], [None] * PEOPLE, []):
        friends.recorder.lies["/ids"] = spelled(wrong)
        visit.come(friends.link(4))
        visit.sees("The list of people cannot be right")
        assert not browser.ask("return document.querySelector('#join').checkVisibility()")
