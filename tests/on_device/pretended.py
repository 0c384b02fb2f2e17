"""A collector of one task, in a thread: what a device asks for, and no check that the device should make."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

from graphveil.device import Task
from graphveil.device.task import OPENING
from tests.on_device.signing import signed

#: Of everybody; the last one would move the cursor of a terminal.
IDS = (*(f"Ann {number}" for number in range(11)), "bob\x1b[2J")
#: Of person 3, whom a pretended collector enrols.
TOKEN = "ab" * 16 + "0000000003"


class Pretended:
    """What it says, which a test may change, and what it was told."""

    def __init__(self, task: Task) -> None:
        self.url, self.task = "", task
        opening = {"task": task.hash.hex(), "nonces": ["00" * 16]}
        self.says: dict[str, tuple[int, bytes]] = {
            "/task": (200, task.data),
            "/ids": (200, spelled(IDS)),
            "/opening": (200, signed("opening", OPENING, opening)),
            "/enrolments": (200, b'{"number":3,"joined":1}'),
        }
        self.enrolled: list[dict[str, str]] = []
        self.reports: list[bytes] = []

    def answer(self, path: str, body: bytes) -> tuple[int, bytes]:
        if path == "/enrolments":
            self.enrolled.append(json.loads(body))
        if path != "/reports" or path in self.says:
            return self.says.get(path, (404, b"{}"))
        repeated = body in self.reports
        self.reports.append(body)
        return (200, b'{"answers":["again"]}') if repeated else (201, b'{"answers":["accepted"]}')


def spelled(ids: Sequence[object]) -> bytes:
    """A list of ids on the wire."""
    return "".join(json.dumps(person) + "\n" for person in ids).encode()


@contextmanager
def pretended(task: Task) -> Iterator[Pretended]:
    """A collector on a free port."""
    collector = Pretended(task)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            status, data = collector.answer(self.path, self.rfile.read(int(self.headers.get("Content-Length", 0))))
            self.send_response(status)
            self.send_header("Location", "http://127.0.0.1:1/")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        do_POST = do_GET

        def log_message(self, format: str, *args: object) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        collector.url = f"http://127.0.0.1:{server.server_address[1]}"
        thread = Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield collector
        finally:
            server.shutdown()
            thread.join()
