"""A collector behind a proxy, below a path of a host: its pages, its devices and its organiser find it there."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from graphveil.collection.service.door import Receive, Scope, Send
from graphveil.collection.store.store import hashed
from graphveil.device.__main__ import main
from tests.collection.collections import stored, token
from tests.collection.listening import served
from tests.collection.organising import Organiser
from tests.collection.visits import IDS, Running, Visit, running
from tests.on_device.signing import label, links
from tests.reports.browser import Browser

PATH = "/ours/clubs"


@pytest.fixture
def behind(tmp_path: Path) -> Iterator[tuple[Running, list[str]]]:
    """What is below a path, and what was looked for elsewhere on that host."""
    strayed: list[str] = []
    with running(tmp_path, label(), links(12)) as collection:

        async def proxy(scope: Scope, receive: Receive, send: Send) -> None:
            if scope["type"] == "http" and not scope["path"].startswith(f"{PATH}/"):
                strayed.append(scope["path"])
                await send({"type": "http.response.start", "status": 404, "headers": []})
                await send({"type": "http.response.body", "body": b""})
            else:
                await collection.recorder({**scope, "path": scope.get("path", "").removeprefix(PATH)}, receive, send)

        with served(proxy) as url:
            yield replace(collection, url=url.replace("127.0.0.1", "localhost") + PATH), strayed


@pytest.mark.slow
def test_a_person_takes_part_and_an_organiser_gives_another_token(
    browser: Browser, behind: tuple[Running, list[str]]
) -> None:
    collection, strayed = behind
    collection.store.keep("admin", hashed(b"let me in"))
    organiser = Organiser(browser, collection.url)
    organiser.come("let me in")
    organiser.sees("Nobody has enrolled yet")
    browser.ask("document.querySelector('#lost').value = arguments[0]", IDS[5])
    browser.ask("document.querySelector('#lost-form').requestSubmit()")
    organiser.sees(f"{collection.url}/#")
    visit = Visit(browser, collection)
    browser.complaints()
    visit.joined()
    assert browser.ask("return location.href") == f"{collection.url}/"
    visit.click("input[value=sad]")
    visit.type("#links-name", IDS[3] + "\n")
    visit.click("#preview", "#send")
    visit.sees("your report has arrived")
    # The 404 is that of an opening that was not there yet; not even an icon is looked for at the root.
    assert [complaint for complaint in browser.complaints() if f"{PATH}/opening" not in complaint] == strayed == []


def test_a_device_at_a_terminal_takes_part(
    behind: tuple[Running, list[str]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    collection, strayed = behind
    words = ["--folder", str(tmp_path / "device")]
    enrol = ["enrol", f"{collection.url}/", token(0).hex(), "--task", collection.task.hash.hex(), "--as", IDS[0]]
    assert main([*words, *enrol]) == 0
    collection.open()
    (mine := tmp_path / "mine.json").write_text(json.dumps({"label": "sad"}))
    assert main([*words, "answer", str(mine)]) == 0 and capsys.readouterr().out.endswith("sent\n")
    assert len(stored(collection.store)) == 1 and strayed == []
