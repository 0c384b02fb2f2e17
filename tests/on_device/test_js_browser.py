"""The client in a real Chromium: a report that outlives the page, and a secret that no script can read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from graphveil.collection.service.service import Collector
from graphveil.device import read
from graphveil.device.task import OPENING
from tests.collection.collections import begun, url_of
from tests.collection.listening import served
from tests.on_device.signing import label, signed, task_of
from tests.reports.browser import Browser, started

pytestmark = pytest.mark.slow

#: What every script begins with: the module, the task and the opening.
BEGIN = """
const device = await import('/assets/device.js');
const bytes = (text) => new TextEncoder().encode(text);
const task = await device.readTask(bytes(told.task));
const opening = await device.readOpening(bytes(told.opening), task);
"""


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """At a page of a collector, which serves the client as `/assets/device.js`."""
    store = begun(url_of(tmp_path_factory.mktemp("collector"))).store
    with served(Collector(store)) as address, started(tmp_path_factory.mktemp("profile")) as window:
        window.driver.get(f"{address.replace('127.0.0.1', 'localhost')}/version")
        yield window


def run(browser: Browser, script: str, arguments: dict[str, Any]) -> Any:
    """What a script of the page returns; an error of it is one of the test."""
    wrapped = (
        "const [told, done] = arguments; (async () => {" + BEGIN + script + "})()"
        ".then((value) => done({value}), (error) => done({error: String(error)}))"
    )
    result = browser.driver.execute_async_script(wrapped, arguments)
    assert "error" not in result, result["error"]
    return result["value"]


BOOK = """
const ledger = await device.BrowserLedger.open(told.name);
const hash = device.hex(task.hash);
const secret = await device.newSecret();
await ledger.append(hash, {number: 3, joined: 1, secret, key: crypto.getRandomValues(new Uint8Array(32))});
const who = await ledger.enrolled(hash);
const report = await device.book(task, opening, who, told.values, ledger);
const hidden = await crypto.subtle.exportKey('raw', who.secret).then(() => false, () => true);
return {sent: device.hex(device.toBytes(report)), key: device.hex(who.key), entries: await ledger.booked(), hidden};
"""


def test_a_report_outlives_the_page_with_its_secret(browser: Browser) -> None:
    task = task_of(label())
    opening = signed("opening", OPENING, {"task": task.hash.hex(), "nonces": ["00" * 16]}).decode()
    arguments = {"task": task.data.decode(), "opening": opening, "name": "outlives", "values": {"label": "sad"}}
    first = run(browser, BOOK, arguments)
    browser.driver.refresh()
    again = run(browser, BOOK, {**arguments, "values": {"label": "glad"}})
    assert again == first
    assert first["hidden"] and len(first["entries"]) == 1 and first["entries"][0]["nano"] == "1000000000"
    report, _ = read(bytes.fromhex(first["sent"]))
    assert report.is_by(bytes.fromhex(first["key"]), 1)
