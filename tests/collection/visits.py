"""A collector that keeps what it is asked, and a person who visits its page in a real browser."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from graphveil.collection.service.answers import problem
from graphveil.collection.service.door import Message, Receive, Scope, Send
from graphveil.collection.service.service import Collector
from graphveil.collection.store.store import Store
from graphveil.collection.store.tables import opened
from graphveil.device import Task
from graphveil.device.people.people import ids_hash
from graphveil.device.task import OPENING
from tests.collection.collections import PEOPLE, token, url_of
from tests.collection.listening import served
from tests.on_device.signing import signed, task_of
from tests.reports.browser import Browser

IDS = [f"Person {number}, of the planted names" for number in range(PEOPLE)]


@dataclass(frozen=True)
class Asked:
    """A request as it came."""

    method: str
    path: str
    query: bytes
    headers: dict[str, str]
    body: bytes


@dataclass
class Recorder:
    """A collector between whose door and whose visitors everything is kept; `lies` are answered in its place."""

    inner: Collector
    down: bool = False
    lies: dict[str, bytes] = field(default_factory=dict)
    seen: list[Asked] = field(default_factory=list)
    answers: list[bytes] = field(default_factory=list)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.inner(scope, receive, send)
            return
        body = await _read(receive)
        headers = {name.decode(): value.decode() for name, value in scope["headers"]}
        self.seen.append(Asked(scope["method"], scope["path"], scope["query_string"], headers, body))
        messages: list[Message] = [{"type": "http.request", "body": body}]

        async def again() -> Message:
            return messages.pop() if messages else await receive()

        async def back(message: Message) -> None:
            self.answers.append(message.get("body", b""))
            await send(message)

        if self.down and scope["path"] == "/reports":
            await _answer(send, *problem("busy"))
        elif scope["path"] in self.lies:
            await _answer(send, 200, [], self.lies[scope["path"]])
        else:
            await self.inner(scope, again, back)

    def bodies(self, path: str) -> list[bytes]:
        """What was posted to a path."""
        return [request.body for request in self.seen if (request.method, request.path) == ("POST", path)]


async def _read(receive: Receive) -> bytes:
    body = b""
    while True:
        message = await receive()
        body += bytes(message.get("body", b""))
        if not message.get("more_body", False):
            return body


async def _answer(send: Send, status: int, headers: list[tuple[bytes, bytes]], body: bytes) -> None:
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


@dataclass(frozen=True)
class Running:
    """A collection that is served."""

    task: Task
    store: Store
    recorder: Recorder
    url: str

    def link(self, number: int = 0) -> str:
        """What a person was sent."""
        return f"{self.url}/#{token(number).hex()}.{self.task.hash.hex()}"

    def open(self) -> None:
        """Open an epoch, so that devices hear of it."""
        self.store.open_epoch(bytes([len(self.store.nonces())] * 16))
        opening = {"task": self.task.hash.hex(), "nonces": [nonce.hex() for nonce in self.store.nonces()]}
        self.store.keep("opening", signed("opening", OPENING, opening))


@contextmanager
def running(folder: Path, *fields: dict[str, Any], **changes: Any) -> Iterator[Running]:
    """Serve a collection that nobody has enrolled in."""
    task = task_of(*fields, **{"people": PEOPLE, "ids": ids_hash(IDS), **changes})
    store = Store(opened(url_of(folder)))
    store.begin(task, ((person, token(number)) for number, person in enumerate(IDS)))
    recorder = Recorder(Collector(store))
    with served(recorder) as url:
        # A name and not a number: both are this machine to a browser, which gives cryptography to either.
        yield Running(task, store, recorder, url.replace("127.0.0.1", "localhost"))
    store.engine.dispose()


@dataclass(frozen=True)
class Visit:
    """A person at the page."""

    browser: Browser
    running: Running

    def come(self, address: str = "") -> None:
        """Open an address of the collector, as from a mail."""
        self.browser.show("about:blank")
        self.browser.show(address or self.running.link())

    def sees(self, *texts: str) -> None:
        """Wait for each of some texts."""
        for text in texts:
            self.browser.until("return document.body.innerText.includes(arguments[0])", text)

    def text(self, selector: str) -> str:
        """What stands in an element."""
        content: str = self.browser.until("return document.querySelector(arguments[0])?.textContent", selector)
        return content

    def click(self, *selectors: str) -> None:
        """Press buttons or choose boxes, each as soon as it is there."""
        for selector in selectors:
            self.browser.until("return document.querySelector(arguments[0])?.checkVisibility()", selector)
            self.browser.ask("document.querySelector(arguments[0]).click()", selector)

    def type(self, selector: str, text: str) -> None:
        """Write into an input that is there."""
        self.browser.until("return document.querySelector(arguments[0])?.checkVisibility()", selector)
        self.browser.ask("document.querySelector(arguments[0]).focus()", selector)
        self.browser.press(text)

    def join(self) -> None:
        """Take part."""
        self.click("#join button.main")
        self.sees("Enrolment is still open")

    def joined(self) -> None:
        """Take part, and come to the form of a round that opens then."""
        self.come()
        self.join()
        self.running.open()
        self.click("#now button")
        self.sees("Your answers")

    def preview(self) -> bytes:
        """The exact report that the page shows."""
        return bytes.fromhex(re.sub(r"\s", "", self.text("pre.bytes")))


def in_words(requests: list[Asked]) -> bytes:
    """All that requests hold, one after the other."""
    return json.dumps(
        [(request.method, request.path, request.query.decode(), request.headers) for request in requests]
    ).encode() + b"".join(request.body for request in requests)
