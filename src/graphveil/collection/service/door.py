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
from graphveil.collection.service.intake import ReportWriter, reports_in
from graphveil.collection.service.limits import Buckets
from graphveil.collection.service.troubles import code_of, log_error
from graphveil.device.wire import Report

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Scope = MutableMapping[str, Any]
#: Status, headers and body.
Response = tuple[int, list[tuple[bytes, bytes]], bytes]

#: Bytes of a request, however large a report is.
LARGEST = 1 << 24


class TooLarge(Exception):
    """A body above the limit."""


def declared_size(scope: Scope) -> int:
    """Return the length that a request declares for its body, 0 where it declares none."""
    length = next((value for name, value in scope["headers"] if name == b"content-length"), b"0")
    return int(length) if length.isdigit() else 0


@dataclass(frozen=True)
class Door:
    """Takes reports.

    Args:
        writer: stores reports.
        addresses: how many requests an address may make.
        has_room: whether the disk has room.
        count_refusal: called with the code of each request that is refused whole, and of what ends a body too early.
        is_authentic: whether bytes begin with a report with a valid tag: where memory is short, such a body stays.
        report_size: bytes of a report.
        most: reports of a request.
        patience: seconds in which a request must arrive.
    """

    writer: ReportWriter
    addresses: Buckets
    has_room: Callable[[], bool]
    count_refusal: Callable[[str], None]
    is_authentic: Callable[[bytes], bool]
    report_size: int
    most: int = 1_000
    patience: float = 15.0

    @property
    def largest(self) -> int:
        """The most bytes of a request: room for one report too many, so that it can be named as the fault."""
        return min((self.most + 1) * self.report_size, LARGEST)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        status, headers, body = await self._answer(scope, receive)
        length = (b"content-length", str(len(body)).encode())
        await send({"type": "http.response.start", "status": status, "headers": [*headers, length]})
        await send({"type": "http.response.body", "body": body})

    async def _answer(self, scope: Scope, receive: Receive) -> Response:
        # In memory only, and no longer than its bucket.
        address = (scope.get("client") or ("", 0))[0]
        if not self.addresses.take(address):
            return self._refuse("too-often")
        if not self.has_room():
            return self._refuse("disk-full")
        # Before a byte of it is read.
        if declared_size(scope) > self.largest:
            return self._refuse("too-large")
        try:
            async with asyncio.timeout(self.patience):
                data = await self._read(scope, receive)
        # A client that sends a byte a second occupies a connection for seconds, and nothing else.
        except TimeoutError:
            return self._refuse("too-slow")
        except TooLarge:
            return self._refuse("too-large")
        reports, unread = reports_in(data, self.most)
        if unread == "too-many" or not reports:
            return self._refuse(unread or "truncated")
        return await self._store(reports, len(data), unread)

    async def _store(self, reports: list[Report], size: int, unread: str | None) -> Response:
        """Store reports and answer each.

        Args:
            size: bytes of the request.
            unread: why the rest of the request cannot be read, or None.
        """
        try:
            # Reports that are stored after this time are acknowledged when they are sent again.
            async with asyncio.timeout(2 * self.patience):
                answers = await self.writer.submit(reports, size)
        except TimeoutError:
            return self._refuse("busy")
        except Exception as error:
            log_error(error)
            return self._refuse(code_of(error))
        # Refused and not queued: a retry in a second is faster than a queue that only grows.
        if answers is None:
            return self._refuse("busy")
        if unread is None:
            return report_answers(answers)
        # What cannot be read is refused once; the reports before it are stored.
        self.count_refusal(unread)
        return report_answers([*answers, unread])

    def _refuse(self, code: str) -> Response:
        self.count_refusal(code)
        return problem(code)

    async def _read(self, scope: Scope, receive: Receive) -> bytes:
        # In one piece: a list of small pieces would take many times their size.
        body, is_checked = bytearray(), False
        while True:
            message = await receive()
            body += message.get("body", b"")
            if len(body) > self.largest:
                raise TooLarge
            if message["type"] == "http.disconnect" or not message.get("more_body", False):
                return bytes(body)
            if not is_checked and len(body) >= self.report_size:
                is_checked, proven = True, scope.get("extensions", {}).get(PROVEN)
                if proven is not None and await asyncio.to_thread(self.is_authentic, bytes(body[: self.report_size])):
                    proven["call"]()
