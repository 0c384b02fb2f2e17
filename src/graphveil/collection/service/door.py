"""`POST /reports`, as a plain ASGI application: one report or many in a body, an answer for each, in order.

Slow or large requests are cut off before their end; neither addresses nor bodies are logged.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass
from typing import Any

from graphveil.collection.service.answers import problem, report_answers
from graphveil.collection.service.connections import PROVEN
from graphveil.collection.service.intake import Group, reports_in
from graphveil.collection.service.limits import Buckets
from graphveil.collection.service.troubles import code_of, write_down

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Scope = MutableMapping[str, Any]
#: Status, headers and body.
Response = tuple[int, list[tuple[bytes, bytes]], bytes]


#: Bytes of a request, whatever a report takes.
LARGEST = 1 << 24


class TooLarge(Exception):
    """A body above the limit."""


def said_size(scope: Scope) -> int:
    """Return the length that a request declares for its body, 0 where it declares none."""
    length = next((value for name, value in scope["headers"] if name == b"content-length"), b"0")
    return int(length) if length.isdigit() else 0


@dataclass(frozen=True)
class Door:
    """Takes reports.

    Args:
        group: stores them.
        addresses: how many requests an address may make.
        room: whether the disk has room.
        refused: called with the code of each request that holds nothing to check, and of what ends a body too early.
        proves: whether bytes are a report with a valid tag: where memory is short, a body that begins with one stays.
        size: bytes of a report.
        most: reports of a request.
        patience: seconds in which a request must arrive.
    """

    group: Group
    addresses: Buckets
    room: Callable[[], bool]
    refused: Callable[[str], None]
    proves: Callable[[bytes], bool]
    size: int
    most: int = 1_000
    patience: float = 15.0

    @property
    def largest(self) -> int:
        """The most bytes of a request: room for one report too many, so that it can be named as the fault."""
        return min((self.most + 1) * self.size, LARGEST)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        status, headers, body = await self._answer(scope, receive)
        length = (b"content-length", str(len(body)).encode())
        await send({"type": "http.response.start", "status": status, "headers": [*headers, length]})
        await send({"type": "http.response.body", "body": body})

    async def _answer(self, scope: Scope, receive: Receive) -> Response:
        # Kept in memory only, and no longer than its bucket.
        address = (scope.get("client") or ("", 0))[0]
        if not self.addresses.take(address):
            return self._no("too-often")
        if not self.room():
            return self._no("disk-full")
        # Before a byte of it is read.
        if said_size(scope) > self.largest:
            return self._no("too-large")
        try:
            async with asyncio.timeout(self.patience):
                data = await self._read(scope, receive)
        # A client that sends a byte a second occupies a connection for seconds, and nothing else.
        except TimeoutError:
            return self._no("too-slow")
        except TooLarge:
            return self._no("too-large")
        reports, wrong = reports_in(data, self.most)
        if wrong == "too-many" or not reports:
            return self._no(wrong or "truncated")
        return await self._store(reports, len(data), wrong)

    async def _store(self, reports: list[Any], size: int, wrong: str | None) -> Response:
        try:
            # What is stored later is acknowledged when it is sent again.
            async with asyncio.timeout(2 * self.patience):
                answers = await self.group.submit(reports, size)
        except TimeoutError:
            return self._no("busy")
        except Exception as error:
            write_down(error)
            return self._no(code_of(error))
        # Refused and not queued: a retry in a second is faster than a queue that only grows.
        if answers is None:
            return self._no("busy")
        if wrong:
            self.refused(wrong)
        # What cannot be read is refused once; the reports before it are stored.
        return report_answers([*answers, wrong] if wrong else answers)

    def _no(self, code: str) -> Response:
        self.refused(code)
        return problem(code)

    async def _read(self, scope: Scope, receive: Receive) -> bytes:
        # In one piece: a list of small pieces would take many times their size.
        body, judged = bytearray(), False
        while True:
            message = await receive()
            body += message.get("body", b"")
            if len(body) > self.largest:
                raise TooLarge
            if message["type"] == "http.disconnect" or not message.get("more_body", False):
                return bytes(body)
            if not judged and len(body) >= self.size:
                judged, server = True, scope.get("extensions", {}).get(PROVEN)
                if server is not None and await asyncio.to_thread(self.proves, bytes(body[: self.size])):
                    server["call"]()
