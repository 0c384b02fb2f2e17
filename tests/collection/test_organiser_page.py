"""The organiser's page in a real Chromium: what it shows, what it asks before what is for good, what it keeps."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from graphveil.collection.desk import Desk
from graphveil.collection.export.export import read_export
from graphveil.collection.service.service import Collector
from tests.collection.organising import Organiser, look
from tests.collection.test_desk import enrolled, ready, sent
from tests.collection.test_service import served
from tests.collection.visits import Recorder
from tests.reports.browser import Browser
from tests.waiting import until

pytestmark = pytest.mark.slow

#: Markup in what an organiser wrote is text.
NAME = "Clubs <img src=x onerror=alert(1)> & more"


@dataclass(frozen=True)
class Office:
    """A collection of three people whose least number is two, and its organiser in a browser."""

    desk: Desk
    recorder: Recorder
    token: str
    organiser: Organiser

    @property
    def browser(self) -> Browser:
        return self.organiser.browser


@pytest.fixture
def office(browser: Browser, tmp_path: Path) -> Iterator[Office]:
    desk = ready(tmp_path / "desk", name=NAME, least=2, features="4", label="1")
    with desk.store() as store:
        token = desk.admin_token(store)
        assert token is not None
        recorder = Recorder(Collector(store, desk=desk))
        with served(recorder) as url:
            yield Office(desk, recorder, token, Organiser(browser, url))


def answered(office: Office, *numbers: int) -> None:
    for number in numbers:
        assert sent(office.desk, number, 1) == ["accepted"]


def test_a_collection_is_run_by_keyboard_alone(office: Office, tmp_path: Path) -> None:
    organiser, browser = office.organiser, office.browser
    browser.complaints()
    organiser.come(office.token)
    organiser.sees("Nobody has enrolled yet")
    assert organiser.offered() == []
    for number in range(3):
        enrolled(office.desk, number)
    organiser.sees("Enrolment is open")
    assert organiser.offered() == ["open"] and organiser.text("h1") == NAME
    assert "joins the next one" in organiser.does("open", yes=False)
    assert office.desk.status()["epoch"] == 0
    organiser.does("open")
    organiser.sees("Round 1 is open.")
    organiser.sees("2 more needed")
    # Whoever has just pressed a button that is gone goes on where it was.
    assert browser.ask("return document.activeElement.id") == "next-head"
    answered(office, 0, 2)
    organiser.sees("The least number is reached")
    assert browser.ask("return document.querySelector('#status').textContent") == "The least number is reached."
    assert organiser.offered() == ["close"]
    look(browser)
    assert "2 reports are frozen and hashed" in organiser.does("close")
    organiser.sees("Round 1 is closed.")
    look(browser)
    with office.desk.store() as store:
        frozen = store.closed_epochs()[0][1].hex()
    assert frozen in organiser.text("#done")
    assert organiser.offered() == ["open", "export", "download"]
    assert "cannot be called back" in organiser.does("export")
    organiser.sees("The reports of 2 people are exported.")
    assert read_export(office.desk.folder / "collected").bodies.numbers.tolist() == [0, 2]
    # A second one does not overwrite the first, and says so.
    organiser.does("export")
    browser.until("return /is not empty|already/.test(document.querySelector('#refused').innerText)")
    behaviour = {"behavior": "allow", "downloadPath": str(tmp_path)}
    browser.driver.execute_cdp_cmd("Browser.setDownloadBehavior", behaviour)
    organiser.does("download")
    organiser.sees("The export is downloaded.")
    packed = tmp_path / "collected.zip"
    until(packed.exists)
    zipfile.ZipFile(packed).extractall(tmp_path / "unpacked")
    assert read_export(tmp_path / "unpacked" / "collected").bodies.numbers.tolist() == [0, 2]
    # The refused export's 409 is the only thing the browser had to say.
    assert [complaint for complaint in browser.complaints() if "/admin/export" not in complaint] == []


def test_the_token_is_in_this_tab_alone(office: Office) -> None:
    organiser, browser = office.organiser, office.browser
    organiser.come("a wrong one")
    organiser.sees("This token is not the administrator's.")
    look(browser)
    assert browser.ask("return document.activeElement.id") == "token"
    assert not browser.ask("return document.querySelector('#desk').checkVisibility()")
    organiser.log_in(office.token)
    organiser.sees("How it stands")
    stored = browser.ask("return [localStorage.length, document.cookie, location.href, Object.values(sessionStorage)]")
    assert stored == [0, "", f"{organiser.url}/organiser", [office.token]]
    assert browser.ask("return document.querySelector('#token').value") == ""
    browser.driver.refresh()
    organiser.sees("How it stands")
    requests = [request for request in office.recorder.seen if request.path.startswith("/admin")]
    assert {request.headers["authorization"] for request in requests[1:]} == {f"Bearer {office.token}"}
    addresses = "".join(f"{request.path}{request.query!r}" for request in requests)
    assert office.token not in addresses and not any("cookie" in request.headers for request in requests)
    browser.ask("document.querySelector('#logout').click()")
    organiser.sees("Log in")
    assert browser.ask("return sessionStorage.length") == 0 and NAME not in organiser.text("body")
