"""The person's page in a real Chromium: from the link to the stored report, and nothing else leaves."""

from __future__ import annotations

import json
import logging
import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from graphveil.device import answers, read
from graphveil.device.canonical import parse
from graphveil.device.reports.noise import number_of
from graphveil.device.task import TASK, short_key
from tests.collection.collections import PEOPLE, stored, token
from tests.collection.organising import enter, look, reach
from tests.collection.visits import IDS, Running, Visit, in_words, running
from tests.on_device.signing import MOODS, degree, features, label, links, signed
from tests.reports.browser import Browser

pytestmark = pytest.mark.slow

#: What no request, answer or file of the server may hold.
PLANTED = ("1.234567891", "2.345678912")
EVERY = features("4", 6), label(), links(PEOPLE), degree(PEOPLE)


@pytest.fixture
def everything(tmp_path: Path) -> Iterator[Running]:
    with running(tmp_path, *EVERY) as collection:
        yield collection


def fill_in(visit: Visit) -> None:
    """Answer everything."""
    for place in range(6):
        visit.type(f"#number-{place}", PLANTED[place % 2])
    visit.click("input[value=glad]")
    for name in (IDS[3], IDS[7]):
        visit.type("#links-name", name + "\n")


def test_from_a_link_to_a_stored_report_and_nothing_else_leaves(
    browser: Browser, everything: Running, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    visit, recorder, task = Visit(browser, everything), everything.recorder, everything.task
    caplog.set_level(logging.DEBUG)
    browser.complaints()
    visit.come()
    visit.sees("What is asked of you", "This protects you little.")
    # Of label, epsilon 1: e / (1 + e) is 0.73105...; of a link in list and number, epsilon 2 and 0.5: 0.92414...
    visit.sees("at most 73.2% sure")
    visit.sees("at most 92.5% sure whether one certain person is connected with you, by list and number")
    assert browser.ask("return location.href") == f"{everything.url}/"
    visit.join()
    everything.open()
    visit.click("#now button")
    fill_in(visit)
    visit.click("#preview")
    visit.sees("This is your report")
    browser.ask("document.querySelectorAll('details').forEach(one => one.open = true)")
    look(browser)
    preview = visit.preview()
    strong = browser.ask("return [...document.querySelectorAll('.says strong')].map(x => x.innerText)")
    assert recorder.bodies("/reports") == [] and stored(everything.store) == []
    visit.click("#send")
    visit.sees("your report has arrived")
    look(browser)

    report, _ = read(preview)
    assert recorder.bodies("/reports") == [preview] and [body for *_, body in stored(everything.store)] == [report.body]
    bits, mood, list_, number = answers(task, task.person(0, everything.store.nonces()[0]), report.body)
    named = [IDS[place] for place in list_.nonzero()[0]]  # type: ignore[union-attr]
    counted = number_of(number) + task.fields[3].lowest  # type: ignore[arg-type,union-attr]
    width = len(bits)  # type: ignore[arg-type]
    assert strong[0] == f"{int(bits.sum())} of {width} numbers are high" or width == 1  # type: ignore[union-attr]
    assert strong[1:] == [MOODS[number_of(mood)], ", ".join(named) or "nobody", str(counted)]  # type: ignore[arg-type]
    # The ledger's words: 4 for the numbers, 1, 2 and 0.5.
    assert "epsilon 7.5" in visit.text("#spent") and "arrived" in visit.text("#spent")

    posts = [request for request in recorder.seen if request.method != "GET"]
    assert [post.path for post in posts] == ["/enrolments", "/reports"]
    enrolled = json.loads(posts[0].body)
    assert enrolled.keys() == {"token", "key"} and enrolled["token"] == token(0).hex() and len(enrolled["key"]) == 64
    assert not any(request.query or {"cookie", "referer"} & {*request.headers} for request in recorder.seen)
    left = in_words(recorder.seen)
    assert not any(planted.encode() in left for planted in (*PLANTED, "glad", "planted names"))
    everything.store.engine.dispose()
    logged = [record.getMessage() for record in caplog.records if not record.name.startswith(("selenium", "urllib3"))]
    stored_bytes = b"".join([*(path.read_bytes() for path in tmp_path.iterdir() if path.is_file()), *recorder.answers])
    stored_bytes += "".join(logged).encode()
    assert not any(secret in stored_bytes for secret in (token(0), token(0).hex().encode(), *map(str.encode, PLANTED)))
    # The 404 of an opening that is not there yet; nothing of the policy.
    assert [complaint for complaint in browser.complaints() if "/opening" not in complaint] == []
    addresses = [address for address in browser.requests() if address.startswith("http")]
    paths = [address.removeprefix(everything.url).split("/")[1] for address in addresses]
    assert {"", "assets", "task", "opening", "epoch", "ids", "enrolments", "reports", "#" + token(0).hex()} >= {*paths}


def test_of_two_tabs_one_report_is_sent_and_the_other_says_so(browser: Browser, moods: Running) -> None:
    visit, driver = Visit(browser, moods), browser.driver
    visit.joined()
    visit.click("input[value=sad]", "#preview")
    visit.sees("This is your report")
    first, preview = driver.current_window_handle, visit.preview()
    driver.switch_to.new_window("tab")
    second = driver.current_window_handle
    visit.come(f"{moods.url}/")
    visit.click("#label-left", "#preview")
    visit.sees("Your report leaves this out.")
    driver.switch_to.window(first)
    visit.click("#send")
    visit.sees("your report has arrived")
    driver.switch_to.window(second)
    visit.click("#send")
    visit.sees("Another tab was first")
    driver.close()
    driver.switch_to.window(first)
    assert set(moods.recorder.bodies("/reports")) == {preview}


def test_a_report_that_was_booked_and_not_sent_is_sent_again_as_the_same_bytes(
    browser: Browser, moods: Running
) -> None:
    visit, recorder = Visit(browser, moods), moods.recorder
    visit.joined()
    visit.click("input[value=sad]", "#preview")
    visit.sees("This is your report")
    preview = visit.preview()
    recorder.down = True
    visit.click("#send")
    visit.sees("recorded, and has not arrived yet", "The collector is busy")
    visit.come(f"{moods.url}/")
    visit.sees("recorded, and has not arrived yet")
    assert visit.preview() == preview and "not confirmed" in visit.text("#spent")
    visit.click("#again")
    visit.sees("The collector is busy")
    recorder.down = False
    visit.click("#again")
    visit.sees("your report has arrived")
    assert set(recorder.bodies("/reports")) == {preview} and len(recorder.bodies("/reports")) == 3
    assert [body for *_, body in stored(moods.store)] == [read(preview)[0].body]


def test_a_browser_that_asks_whether_to_keep_the_site_is_not_waited_for(browser: Browser, moods: Running) -> None:
    """Firefox asks the person, who may never answer: the page goes on, and asks when there is something to keep."""
    silent = "globalThis.asked = 0; navigator.storage.persist = () => { asked += 1; return new Promise(() => {}); }"
    words = {"source": silent}
    script = browser.driver.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", words)["identifier"]
    try:
        visit = Visit(browser, moods)
        visit.come()
        visit.sees("What is asked of you")
        assert browser.ask("return asked") == 0
        visit.join()
        assert browser.ask("return asked") == 1
    finally:
        browser.driver.execute_cdp_cmd("Page.removeScriptToEvaluateOnNewDocument", {"identifier": script})


def test_the_keyboard_alone_is_enough(browser: Browser, moods: Running) -> None:
    from selenium.webdriver.common.keys import Keys

    visit = Visit(browser, moods)
    visit.come(f"{moods.url}/")
    visit.sees("You were sent a link")
    look(browser)
    for selector, typed in (("#token", token(2).hex()), ("#hash", "no hash" + Keys.ENTER)):
        reach(browser, selector)
        browser.press(typed)
    visit.sees("This is no hash")
    assert browser.ask("return document.activeElement.id") == "hash"
    described = browser.ask("return document.activeElement.getAttribute('aria-describedby')")
    assert "hash-wrong" in described.split()
    browser.press(Keys.CONTROL + "a")
    browser.press(moods.task.hash.hex() + Keys.ENTER)
    visit.sees("Take part?")
    enter(browser, "#join button")
    visit.sees("Enrolment is still open")
    moods.open()
    enter(browser, "#now button")
    visit.sees("Your answers")
    enter(browser, "#preview")
    visit.sees("Choose one, or leave this out.")
    assert browser.ask("return document.activeElement.value") == MOODS[0]
    browser.press(Keys.ARROW_DOWN)
    enter(browser, "#preview")
    visit.sees("This is your report")
    assert browser.ask("return document.activeElement.id") == "now-head"
    reach(browser, "#send")
    browser.press(Keys.SPACE)
    visit.sees("your report has arrived")
    assert len(stored(moods.store)) == 1 and moods.recorder.bodies("/enrolments")


def test_answers_come_from_a_file_or_a_paste(browser: Browser, tmp_path: Path) -> None:
    row = [place / 20 for place in range(60)]
    names = [f"f{place}" for place in range(60)]
    pairs = dict(zip(names, row, strict=True))
    turned = (reversed(names), map(str, reversed(row)))
    files = {
        "mine.json": json.dumps({"features": pairs, "links": [IDS[4], 5]}),
        "mine.csv": "\n".join(",".join(line) for line in turned),
        "none.json": "[1",
    }
    with running(tmp_path, features("8", 60), links(PEOPLE)) as collection:
        visit = Visit(browser, collection)
        visit.joined()
        visit.type("#numbers", "1, 2, 9")
        visit.click("#preview")
        visit.sees("These are 3 numbers of 60.")
        for name, text in files.items():
            (tmp_path / name).write_text(text)
            browser.driver.find_element("id", "file").send_keys(str(tmp_path / name))
            if name == "none.json":
                visit.sees("The file cannot be read")
            browser.until("return document.querySelector('#status').textContent === ''")
            time.sleep(0.1)
            numbers = browser.ask("return document.querySelector('#numbers').value").split(", ")
            assert list(map(float, numbers)) == row
            if name == "mine.json":
                assert browser.ask("return document.querySelectorAll('#links-chosen li').length") == 2
        assert len(collection.recorder.bodies("/reports")) == 0


def test_a_number_of_another_scale_is_told_what_to_write_and_a_small_limit_what_is_left(
    browser: Browser, tmp_path: Path
) -> None:
    from selenium.webdriver.common.keys import Keys

    numbers = {**features("1", 2, "0", "1"), "names": ["age (0 to 120 as 0 to 1)", "km (-0.5 to 40 as 0 to 1)"]}
    with running(tmp_path, numbers) as collection:
        visit = Visit(browser, collection)
        visit.joined()
        visit.type("#number-0", "30")
        visit.type("#number-1", "-1")
        visit.click("#preview")
        visit.sees("30 is not from 0 to 1. From 0 to 120 it stands at 0.25: write that.")
        assert visit.text("#number-1-wrong") == "-1 is not from 0 to 1."
        for place in range(2):
            visit.type(f"#number-{place}", f"{Keys.CONTROL}a")
            browser.press("0.25")
        visit.click("#preview")
        visit.sees("The report says nothing of your other number.")
        browser.ask("localStorage.setItem('limit', '500000000')")
        visit.click("#back", "#preview")
        visit.sees("0.5 of your 0.5 left, less than the price")


def test_each_refusal_is_told_in_words(browser: Browser, moods: Running, tmp_path: Path) -> None:
    visit, url = Visit(browser, moods), moods.url
    for address, words in (
        (f"{url}/#{token(0).hex()}.{'0' * 64}", "other questions than those you were invited to"),
        (f"{url}/#{token(0).hex()}.00", "This is not a token, or not a hash"),
    ):
        visit.come(address)
        visit.sees(words)
        assert "#" not in browser.ask("return location.href") and not moods.recorder.bodies("/enrolments")
    visit.come(f"{url}/#{'00' * 20}.{moods.task.hash.hex()}")
    visit.click("#join button")
    visit.sees("This token does not work here")
    visit.come()
    visit.click("#join button")
    visit.sees("Enrolment is still open")
    # On a machine that two people share, the second one does not answer for the first.
    visit.come(moods.link(1))
    visit.sees("This browser takes part for somebody else")
    visit.come(f"{url}/")
    visit.sees("Enrolment is still open")
    # A browser that lost what it kept makes another key, and a token works once.
    browser.driver.execute_cdp_cmd("Storage.clearDataForOrigin", {"origin": url, "storageTypes": "all"})
    visit.come()
    visit.click("#join button")
    visit.sees("or this one before its data were cleared")
    changed = moods.task.data.replace(b'"least":5', b'"least":4')
    moods.recorder.lies["/task"] = changed
    visit.come()
    visit.sees("The organiser's signature is wrong")
    moods.recorder.lies["/task"] = b"{"
    visit.come()
    visit.sees("The questions cannot be read")


def test_no_part_of_a_link_stays_in_the_address_bar(browser: Browser, moods: Running) -> None:
    """A mail may cut a link at its point, or write the point otherwise: the token is in it all the same."""
    visit, url, hash = Visit(browser, moods), moods.url, moods.task.hash.hex()
    for fragment in (token(0).hex(), f"{token(0).hex()}%2E{hash}", f"{token(0).hex()}.", f"?{token(0).hex()}"):
        visit.come(f"{url}/#{fragment}")
        visit.sees("This is not a token, or not a hash")
        assert browser.ask("return location.href") == f"{url}/"
        # The same, pasted where the page is open.
        visit.come(f"{url}/")
        visit.sees("You were sent a link")
        browser.ask("location.hash = arguments[0]", fragment)
        visit.sees("This is not a token, or not a hash")
        assert browser.ask("return location.href") == f"{url}/"


def test_what_an_organiser_writes_is_shown_as_text(browser: Browser, tmp_path: Path) -> None:
    markup = "<img src=x onerror=\"document.title='run'\"><script>document.title='run'</script>"
    mood = {**label(), "classes": [markup, "glad", "sad"]}
    with running(tmp_path, mood, name=markup, purpose=markup, guarantee=[markup], public=[markup]) as collection:
        visit = Visit(browser, collection)
        visit.joined()
        assert visit.text("h1") == markup and browser.ask("return document.querySelectorAll('img').length") == 0
        assert markup in visit.text("#now") and visit.text("#terms").count(markup) >= 4
        assert browser.ask("return document.title") == f"{markup} - graphveil"


#: Texts whose letters stand in another order than they are written in, outside of runs of their own; each in words.
TURNED = """
const found = [], walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT), range = new Range();
while (walker.nextNode()) {
  const node = walker.currentNode;
  if (!node.parentElement.checkVisibility() || node.parentElement.closest("bdi, .unseen")) continue;
  let last;
  for (let at = 0; at < node.data.length; at++) {
    range.setStart(node, at), range.setEnd(node, at + 1);
    const {left, top, width} = range.getBoundingClientRect();
    if (!width) continue;
    if (last && Math.abs(last.top - top) < 2 && left < last.left) { found.push(node.data); break; }
    last = {left, top};
  }
}
return found;
"""


def test_no_text_of_an_organiser_turns_the_words_of_the_page(browser: Browser, tmp_path: Path) -> None:
    turned, hebrew = "low \u202eprice\u2067 \u200f\u061c", "שלום, עולם 5"
    mood = {**label(), "classes": [turned, hebrew, "sad"]}
    numbers = {**features(dimension=2), "names": [turned, hebrew]}
    words = dict.fromkeys(("name", "organiser", "purpose", "contact"), turned)
    with running(tmp_path, mood, numbers, **words, guarantee=[turned], public=[hebrew]) as collection:
        visit = Visit(browser, collection)
        visit.come()
        visit.sees("Which of these you are: low \ufffdprice\ufffd \ufffd\ufffd, שלום, עולם 5, sad. Your report names")
        browser.ask("for (const one of document.querySelectorAll('details')) one.open = true")
        assert browser.ask(TURNED) == []
        visit.join()
        collection.open()
        visit.click("#now button", "input[name=label]")
        visit.type("#number-0", "1")
        visit.type("#number-1", "1")
        assert browser.ask(TURNED) == []
        visit.click("#now button.main")
        visit.sees("This is your report")
        assert browser.ask(TURNED) == [] and hebrew in visit.text("#terms")
        assert not re.search("[\u202a-\u202e\u2066-\u2069\u200f\u061c]", visit.text("body"))
        # The control: without a run of its own, and as it was written, the same text turns what stands after it.
        browser.ask("document.querySelector('main').append(arguments[0] + 'of them, epsilon 1')", turned)
        assert browser.ask(TURNED) == [f"{turned}of them, epsilon 1"]


def test_a_collector_that_swaps_the_key_is_refused(browser: Browser, everything: Running) -> None:
    """The same facts under a key of its own: neither a link nor a browser that takes part is led to them."""
    swapped = signed("task", TASK, parse(everything.task.data)["task"], Ed25519PrivateKey.generate())
    visit = Visit(browser, everything)
    visit.come()
    visit.sees(f"{short_key(everything.task.key)}, a key that the organiser can confirm")
    visit.join()
    everything.recorder.lies["/task"] = swapped
    try:
        visit.come(f"{everything.url}/")
        visit.sees("This collector asks something else now")
        visit.come(everything.link(1))
        visit.sees("These are other questions than those you were invited to")
    finally:
        everything.recorder.lies.clear()
