"""The client in a real Chromium: the bytes of Python, a ledger that tabs share, a secret that no script can read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from graphveil.device import answer, read
from graphveil.device.task import OPENING
from tests.on_device.javascript import BUNDLE, served
from tests.on_device.signing import degree, features, label, links, signed, task_of
from tests.reports.browser import Browser, started

pytestmark = pytest.mark.slow

NONCES = [bytes([place] * 16) for place in range(3)]
#: What every script begins with: the module, the task and the opening.
BEGIN = """
const device = await import('/device.js');
const bytes = (text) => new TextEncoder().encode(text);
const task = await device.readTask(bytes(told.task));
const opening = await device.readOpening(bytes(told.opening), task);
"""


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with (
        served({"device.js": BUNDLE.read_bytes()}) as address,
        started(tmp_path_factory.mktemp("profile")) as window,
    ):
        window.driver.get(address)
        yield window


def run(browser: Browser, script: str, told: dict[str, Any]) -> Any:
    """What a script of the page returns; an error of it is one of the test."""
    wrapped = (
        "const [told, done] = arguments; (async () => {" + BEGIN + script + "})()"
        ".then((value) => done({value}), (error) => done({error: String(error)}))"
    )
    found = browser.driver.execute_async_script(wrapped, told)
    assert "error" not in found, found["error"]
    return found["value"]


def told_of(*fields: dict[str, Any], epochs: int = 1) -> dict[str, Any]:
    task = task_of(*fields)
    opening = {"task": task.hash.hex(), "nonces": [nonce.hex() for nonce in NONCES[:epochs]]}
    return {"task": task.data.decode(), "opening": signed("opening", OPENING, opening).decode()}


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


def test_it_says_the_bytes_of_python(browser: Browser) -> None:
    fields = features("8", 40), label(), links(12), degree(12)
    told, task = told_of(*fields), task_of(*fields)
    cases = [
        {"features": [place / 10 - 1 for place in range(40)], "label": "sad", "links": [1, 5, 11]},
        {"features": [3.0] * 40},
        {"links": []},
        {},
    ]
    secrets = [bytes([place] * 32) for place in range(5)]
    script = """
    const found = [];
    for (const values of told.cases) for (const secret of told.secrets) {
      const person = device.personOf(task, 2, opening.nonces[0]);
      const made = await device.answer(task, person, values, device.unhex(secret));
      found.push([device.hex(made.body), made.names]);
    }
    return found;
    """
    found = run(browser, script, {**told, "cases": cases, "secrets": [secret.hex() for secret in secrets]})
    ours = [answer(task, task.person(2, NONCES[0]), values, secret) for values in cases for secret in secrets]
    assert found == [[one.body.hex(), {str(place): list(own) for place, own in one.names.items()}] for one in ours]


def test_a_report_outlives_the_page_with_its_secret(browser: Browser) -> None:
    told = {**told_of(label()), "name": "outlives", "values": {"label": "sad"}}
    first = run(browser, BOOK, told)
    browser.driver.refresh()
    again = run(browser, BOOK, {**told, "values": {"label": "glad"}})
    assert again == first
    assert first["hidden"] and len(first["entries"]) == 1 and first["entries"][0]["nano"] == "1000000000"
    report, _ = read(bytes.fromhex(first["sent"]))
    assert report.is_by(bytes.fromhex(first["key"]), 1)
    # A later epoch with the same value: the same secret, so the same answer at no price.
    later = run(browser, BOOK, {**told, **told_of(label(), epochs=2)})
    assert [one["nano"] for one in later["entries"]] == ["1000000000", "0"]
    assert later["entries"][0]["body"] == later["entries"][1]["body"]


def test_tabs_that_answer_at_once_send_one_report(browser: Browser) -> None:
    told = {**told_of(links(12, mode="both")), "name": "tabs"}
    driver, first, address = browser.driver, browser.driver.current_window_handle, browser.driver.current_url
    begin = "const told = arguments[0]; window.found = (async () => {" + BEGIN + BOOK + "})(); "
    handles = [first]
    for _ in range(3):
        driver.switch_to.new_window("tab")
        driver.get(address)
        handles.append(driver.current_window_handle)
    for place, handle in enumerate(handles):
        driver.switch_to.window(handle)
        driver.execute_script(begin, {**told, "values": {"links": [place + 5]}})
    found = []
    for handle in handles:
        driver.switch_to.window(handle)
        found.append(driver.execute_async_script("window.found.then(arguments[0])"))
    for handle in handles[1:]:
        driver.switch_to.window(handle)
        driver.close()
    driver.switch_to.window(first)
    assert len({one["sent"] for one in found}) == 1
    assert len(run(browser, "return (await device.BrowserLedger.open('tabs')).booked()", told)) == 1


def test_of_two_writers_that_saw_one_place_the_second_is_told(browser: Browser) -> None:
    script = """
    const ledger = await device.BrowserLedger.open('places');
    const appended = await Promise.all([0, 1, 2, 3].map((nano) => ledger.append(0, {nano: String(nano)})));
    return [appended, await ledger.booked()];
    """
    assert run(browser, script, told_of(label())) == [[True, False, False, False], [{"nano": "0"}]]
