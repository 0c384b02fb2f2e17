"""What a report costs on a person's device: the client in TypeScript in a real Chromium, next to the one in Python.

    python benchmarks/device_js.py

Needs selenium, chromium and chromedriver (Debian: chromium, chromium-driver).  Both clients make the same report of the
same values from a task that was checked; their bytes are compared.  Wall time, because a browser works in several
processes: the median of all reports after the first.  "Booked" adds the ledger: IndexedDB or a file, the disk awaited.
"""

from __future__ import annotations

import shutil
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from selenium import webdriver

from graphveil.device import Opening, Task, answer, report
from graphveil.device.canonical import canonical
from graphveil.device.reporting import Enrolled, book
from graphveil.device.storage.ledger import DeviceLedger
from graphveil.device.task import OPENING, TASK
from graphveil.mechanisms import AdjacencyRR, MultiBit
from timing import processor, ratio

CLIENT = Path(__file__).parent.parent / "clients" / "js" / "dist" / "device.js"
KEY = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
SECRET, TAGS, NONCE = bytes(range(32)), bytes(range(1, 33)), bytes(16)
NUMBER = 7
#: What is measured, and the milliseconds in Chromium that it must stay below.
BOUNDS = {"1,433 features, epsilon 1": 5, "a list of 100,000 people": 1000}

SCRIPT = """
const [told, done] = arguments;
(async () => {
  const device = await import('/device.js');
  const bytes = (text) => new TextEncoder().encode(text);
  const [secret, key] = [device.unhex(told.secret), device.unhex(told.key)];
  const task = await device.readTask(bytes(told.task));
  const opening = await device.readOpening(bytes(told.opening), task);
  const person = device.personOf(task, told.number, opening.nonces[0]);
  const made = [], booked = [];
  let sent;
  for (let time = 0; time <= told.repeats; time++) {
    const start = performance.now();
    const {body} = await device.answer(task, person, told.values, secret);
    sent = device.toBytes(await device.report(task.hash, 1, body, secret, key));
    made.push(performance.now() - start);
  }
  const who = {number: told.number, joined: 1, secret, key};
  for (let time = 0; time <= Math.min(told.repeats, 20); time++) {
    const ledger = await device.BrowserLedger.open(device.hex(task.hash) + time);
    const start = performance.now();
    await device.book(task, opening, who, told.values, ledger);
    booked.push(performance.now() - start);
  }
  return {sent: device.hex(sent), made, booked};
})().then((value) => done(value), (error) => done({error: String(error)}));
"""


def main() -> None:
    """Time both clients and print a row for each kind of report."""
    late = []
    with chromium() as driver:
        print(f"{processor()}, Chromium {driver.capabilities['browserVersion']}; milliseconds, medians")
        print(f"{'':36}{'Chromium / Python':>18}{'Chromium':>10}{'Python':>10}{'slowest':>10}{'bound':>8}")
        for (name, bound), (field, people, values, repeats) in zip(BOUNDS.items(), fields(), strict=True):
            task_facts = signed_ones(field, people)
            theirs, ours = in_browser(driver, task_facts, values, repeats), in_python(task_facts, values, repeats)
            if theirs["sent"] != ours["sent"]:
                sys.exit(f"{name}: the clients say different bytes")
            for what in ("made", "booked"):
                page, here = (statistics.median(times[what][1:]) for times in (theirs, ours))
                cells = f"{page:>10.2f}{here:>10.2f}{max(theirs[what][1:]):>10.1f}{bound:>8}"
                print(f"{name + ', ' + what:36}{ratio(page, here):>18}{cells}")
                late += [name] * (page > bound)
    sys.exit(f"longer than the bound: {', '.join(late)}" if late else 0)


def fields() -> Iterator[tuple[dict[str, Any], int, dict[str, Any], int]]:
    """The field, how many people there are, a person's values, how often they are told."""
    law = MultiBit(epsilon=1.0, dimension=1433, low=0.0, high=1.0)
    task_facts = {"kind": "features", "names": [f"word {place}" for place in range(1433)], "low": "0", "high": "1"}
    field = {**task_facts, "epsilon": "1", "sampled": law.coordinates, "threshold": str(law.law.low)}
    yield field, 2708, {"features": [float(place % 80 == 0) for place in range(1433)]}, 200
    threshold = AdjacencyRR(epsilon=1.0, nodes=100_000, mode="both").threshold
    field = {"kind": "links", "mode": "both", "epsilon": "1", "threshold": str(threshold)}
    yield field, 100_000, {"links": list(range(50, 100_000, 331))}, 20


def signed_ones(field: dict[str, Any], people: int) -> dict[str, str]:
    """A signed task of one field, and its opening."""
    words = {name: name for name in ("name", "organiser", "purpose", "contact", "ids", "nonce")}
    numbers = {"version": 1, "opens": 0, "closes": 2_000_000_000, "least": 5, "people": people}
    data = signed("task", TASK, {**words, **numbers, "fields": [field], "guarantee": [], "public": []})
    opening = {"task": Task.of(data).hash.hex(), "nonces": [NONCE.hex()]}
    return {"task": data.decode(), "opening": signed("opening", OPENING, opening).decode()}


def signed(name: str, purpose: bytes, value: dict[str, Any]) -> bytes:
    """The canonical bytes of a value with its signature."""
    signature = KEY.sign(purpose + canonical(value)).hex()
    return canonical({"key": KEY.public_key().public_bytes_raw().hex(), "signature": signature, name: value})


def in_browser(driver: Any, task_facts: dict[str, str], values: dict[str, Any], repeats: int) -> dict[str, Any]:
    """The report, and milliseconds of making it and of booking it."""
    who = {"secret": SECRET.hex(), "key": TAGS.hex(), "number": NUMBER}
    figures = driver.execute_async_script(SCRIPT, {**task_facts, **who, "values": values, "repeats": repeats})
    if "error" in figures:
        raise SystemExit(figures["error"])
    return dict(figures)


def in_python(task_facts: dict[str, str], values: dict[str, Any], repeats: int) -> dict[str, Any]:
    """The same of our other client."""
    task = Task.of(task_facts["task"].encode())
    opening, person = Opening.of(task_facts["opening"].encode(), task), task.person(NUMBER, NONCE)
    reports, booked, sent = [], [], b""
    for _ in range(repeats + 1):
        start = time.perf_counter()
        sent = report(task.hash, 1, answer(task, person, values, SECRET).body, SECRET, TAGS).to_bytes()
        reports.append(1e3 * (time.perf_counter() - start))
    with tempfile.TemporaryDirectory() as folder:
        for turn in range(min(repeats, 20) + 1):
            ledger = DeviceLedger(Path(folder) / f"{turn}.jsonl")
            start = time.perf_counter()
            book(task, opening, Enrolled(NUMBER, 1, SECRET, TAGS), values, ledger)
            booked.append(1e3 * (time.perf_counter() - start))
    return {"sent": sent.hex(), "made": reports, "booked": booked}


@contextmanager
def chromium() -> Iterator[Any]:
    """A browser that has opened an empty page beside the client."""
    options = webdriver.ChromeOptions()
    options.binary_location = str(shutil.which("chromium"))
    for flag in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-background-networking"):
        options.add_argument(flag)
    with served() as address:
        driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(str(shutil.which("chromedriver"))))
        try:
            driver.set_script_timeout(120)
            driver.get(address)
            yield driver
        finally:
            driver.quit()


@contextmanager
def served() -> Iterator[str]:
    """An address on this machine: the client, and an empty page."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/javascript" if self.path == "/device.js" else "text/html")
            self.end_headers()
            self.wfile.write(CLIENT.read_bytes() if self.path == "/device.js" else b"<!doctype html>")

        def log_message(self, format: str, *values: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


if __name__ == "__main__":
    main()
