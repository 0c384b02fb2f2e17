"""A collector behind a proxy, below a path of a host: its pages, its devices and its organiser find it there."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from graphveil.collection.store import hashed
from graphveil.device.__main__ import main
from tests.collection.collections import token
from tests.collection.organising import Organiser
from tests.collection.proxied import Proxy, below
from tests.collection.test_person_page import stored
from tests.collection.visits import IDS, Running, Visit, running
from tests.on_device.signing import label, links
from tests.reports.browser import Browser

PATH = "/ours/clubs"


@pytest.fixture
def behind(tmp_path: Path) -> Iterator[tuple[Running, Proxy]]:
    with running(tmp_path, label(), links(12)) as one, below(PATH, one.url) as proxy:
        yield one, proxy


@pytest.mark.slow
def test_a_person_takes_part_and_an_organiser_gives_another_token(
    browser: Browser, behind: tuple[Running, Proxy]
) -> None:
    collection, proxy = behind
    collection.store.keep("admin", hashed(b"let me in"))
    organiser = Organiser(browser, proxy.url)
    organiser.come("let me in")
    organiser.sees("Nobody has enrolled yet")
    browser.ask("document.querySelector('#lost').value = arguments[0]", IDS[5])
    browser.ask("document.querySelector('#lost-form').requestSubmit()")
    organiser.sees(f"{proxy.url}/#")
    visit = Visit(browser, collection)
    browser.complaints()
    visit.come(f"{proxy.url}/#{token(0).hex()}.{collection.task.hash.hex()}")
    visit.join()
    assert browser.ask("return location.href") == f"{proxy.url}/"
    collection.open()
    visit.click("#now button")
    visit.click("input[value=sad]")
    visit.type("#links-name", IDS[3] + "\n")
    visit.click("#preview")
    visit.click("#send")
    visit.sees("your report has arrived")
    assert len(stored(collection)) == 1
    # The 404 is that of an opening that was not there yet.
    assert [one for one in browser.complaints() if f"{PATH}/opening" not in one] == []
    # Not even an icon is looked for at the root.
    assert proxy.strayed == []


def test_a_device_at_a_terminal_takes_part(
    behind: tuple[Running, Proxy], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    collection, proxy = behind
    words = ["--folder", str(tmp_path / "device")]
    enrol = ["enrol", f"{proxy.url}/", token(0).hex(), "--task", collection.task.hash.hex(), "--as", IDS[0]]
    assert main([*words, *enrol]) == 0
    collection.open()
    (mine := tmp_path / "mine.json").write_text(json.dumps({"label": "sad"}))
    assert main([*words, "answer", str(mine)]) == 0 and capsys.readouterr().out.endswith("sent\n")
    assert len(stored(collection)) == 1 and proxy.strayed == []
