"""A studio without a port: its application is called as a server would, and its jobs are looked after by hand."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from graphveil.studio.access import Access, Gate
from graphveil.studio.jobs import PROGRAM, Jobs, Limits
from graphveil.studio.root import Root
from graphveil.studio.service import Studio
from graphveil.studio.store import OPEN, Store

HOST = "127.0.0.1:8750"


@dataclass(frozen=True)
class Reply:
    """What an application answered."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass
class Browser:
    """Somebody who sends requests, with a cookie and the header of the page once admitted."""

    gate: Gate
    cookie: str | None = None
    csrf: str | None = None
    log: list[tuple[str, str, Reply]] = field(default_factory=list)

    @property
    def seen(self) -> list[Reply]:
        return [reply for _, _, reply in self.log]

    def ask(
        self, method: str, path: str, value: object = None, data: bytes | None = None, **headers: str | None
    ) -> Reply:
        """Send a request: `value` as JSON or `data` as it is; a header of None is left out."""
        body = data if data is not None else b"" if value is None else json.dumps(value).encode()
        sent = {"host": HOST, "content-type": "application/json", "content-length": str(len(body)) if body else None}
        sent |= {"cookie": self.cookie, "x-csrf-token": self.csrf if method not in ("GET", "HEAD") else None}
        sent |= {name.replace("_", "-"): text for name, text in headers.items()}
        pairs = [(name.encode(), text.encode()) for name, text in sent.items() if text is not None]
        reply = asyncio.run(_reply(self.gate, method, path, pairs, body))
        self.log.append((method, path, reply))
        return reply

    def get(self, path: str) -> Any:
        reply = self.ask("GET", path)
        assert reply.status == 200, reply.body
        return reply.json

    def post(self, path: str, value: object, status: int = 200) -> Any:
        reply = self.ask("POST", path, value)
        assert reply.status == status, reply.body
        return reply.json

    def enter(self, token: str) -> Reply:
        """Exchange a token for a session, which this browser then has."""
        reply = self.ask("POST", "/api/session", {"token": token})
        if reply.status == 200:
            self.cookie, self.csrf = reply.headers["set-cookie"].partition(";")[0], reply.json["csrf"]
        return reply


async def _reply(gate: Gate, method: str, path: str, headers: list[tuple[bytes, bytes]], body: bytes) -> Reply:
    messages: list[Any] = []
    connection = {"type": "http", "http_version": "1.1", "scheme": "http", "root_path": "", "asgi": {"version": "3.0"}}
    ends = {"client": ("127.0.0.1", 5), "server": ("127.0.0.1", 8750)}
    scope = {**connection, **ends, "method": method, "path": path, "query_string": b"", "headers": headers}
    # A header of the tests' own: of such a body no other part ever comes.
    more = any(name == b"x-unfinished" for name, _ in headers)
    sent = iter([{"type": "http.request", "body": body, "more_body": more}])

    async def receive() -> Any:
        message = next(sent, None)
        if message is None:
            await asyncio.Event().wait()
        return message

    async def send(message: Any) -> None:
        messages.append(message)

    # The framework raises an unexpected error once it is answered, for the server to log.
    try:
        await gate(scope, receive, send)
    except Exception:
        assert messages, "it was not answered"
    start = messages[0]
    text = {name.decode().lower(): value.decode() for name, value in start["headers"]}
    return Reply(start["status"], text, b"".join(message.get("body", b"") for message in messages[1:]))


@dataclass(frozen=True)
class Open:
    """A studio and a browser that it has admitted."""

    studio: Studio
    page: Browser
    access: Access

    @property
    def jobs(self) -> Jobs:
        return self.studio.jobs

    def stranger(self) -> Browser:
        return Browser(self.page.gate)

    def ended(self, id: str, *states: str) -> dict[str, Any]:
        """Wait until a job has ended, in one of these states; done, where none is named."""
        until = time.monotonic() + 400
        while (job := self.page.get(f"/api/jobs/{id}"))["state"] in OPEN and time.monotonic() < until:
            self.jobs.tick()
            time.sleep(0.02)
        assert job["state"] in (states or ("done",)), job
        return dict(job)

    def run(self, job: str, *states: str, **request: Any) -> dict[str, Any]:
        """Run a job at the price that its button names."""
        spends = job in ("train", "release")
        price = self.page.post("/api/queries", {"query": "plan", **request})["price"] if spends else None
        started = self.page.post("/api/jobs", {"job": job, **request, "price": price}, 201)
        return self.ended(started["id"], *states)


@contextmanager
def studio_at(
    folder: Path, *, limits: Limits | None = None, program: tuple[str, ...] = PROGRAM, data_root: Path | None = None,
    patience: float = 20.0,
) -> Iterator[Open]:  # fmt: skip
    """Open a folder's studio."""
    folder.mkdir(exist_ok=True)
    root = Root(folder.resolve())
    root.state.mkdir(mode=0o700, exist_ok=True)
    store = Store(root.state / "studio.sqlite")
    access = Access(store, 8750)
    studio = Studio(Jobs(root, store, limits or Limits(), patience, program), access, data_root)
    page = Browser(Gate(studio.app, access))
    assert page.enter(access.token).status == 200
    try:
        yield Open(studio, page, access)
    finally:
        store.close()
