"""The collector as one ASGI application: the door for reports, and the routes of devices and organisers.

GET  /task  /opening  /ids        what devices check and answer; ids only where the task asks for links
GET  /epoch                       {"epoch", "open", "until"}: whether reports are taken now
POST /enrolments                  {"token", "key"} -> {"number", "joined"}
POST /reports                     see `door`
GET  /heartbeat /version /metrics
GET, POST /admin/...              see `administration`
GET  /  /organiser  /assets/NAME  see `pages`
"""

from __future__ import annotations

import asyncio
import json
import shutil
import threading
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Collection, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import StreamingResponse
from sqlalchemy.exc import SQLAlchemyError

import graphveil
from graphveil.collection.desk import Desk
from graphveil.collection.service.addresses import host_of, is_host, name_of
from graphveil.collection.service.administration import Administration, Refused
from graphveil.collection.service.answers import METRICS_KIND, exposition
from graphveil.collection.service.arrival import Arrival, forget
from graphveil.collection.service.door import Door, Receive, Scope, Send, declared_size
from graphveil.collection.service.intake import Intake, ReportWriter
from graphveil.collection.service.limits import Buckets, Rate
from graphveil.collection.service.models import Enrolling, Round
from graphveil.collection.service.openapi import add_routes, completed
from graphveil.collection.service.pages import page_routes
from graphveil.collection.service.troubles import code_of, log_error
from graphveil.collection.store.store import Store
from graphveil.device.reports.degree import Degree
from graphveil.device.reports.links import Links
from graphveil.device.task import VERSION
from graphveil.device.wire import HEAD, TAG

#: Bytes of the disk that stay free for everything but reports.
RESERVED_BYTES = 256 << 20
#: Bytes of a request, unless it brings reports.
_LARGEST = 1 << 16
#: From one address: tokens cannot be guessed, and attempts are slowed down all the same.
ENROLMENT_RATE = Rate(each_second=1.0, burst=30.0)
#: Public requests from one address. A visit of the person's page is fewer than thirty: a hundred people behind one
#: router may come at the same moment, and three each second after that.
VISIT_RATE = Rate(each_second=100.0, burst=3_000.0)
#: Ids that cost an address one more visit: reading and sending so many takes as long as the counters do.
IDS_A_VISIT = 500
#: Seconds between two writings; what was counted since the last one is lost if the process is killed.
_TALLY_INTERVAL = 1.0


@dataclass
class Tally:
    """Refusals by code, counted in memory and written together: a refusal must cost less than what it refuses, so none
    waits for the disk.
    """

    store: Callable[[Mapping[str, int]], None]
    _counts: Counter[str] = field(default_factory=Counter, repr=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def add(self, code: str) -> None:
        """Count one refusal by a code of `answers.STATUS`."""
        with self._lock:
            self._counts[code] += 1

    def write(self) -> None:
        """Store what was counted; where the database cannot, it stays counted for the next time."""
        with self._lock:
            counts, self._counts = self._counts, Counter()
        try:
            self.store(counts)
        except SQLAlchemyError:
            with self._lock:
                self._counts.update(counts)

    async def run(self) -> None:
        while True:
            await asyncio.sleep(_TALLY_INTERVAL)
            await asyncio.to_thread(self.write)


class Collector:
    """The application.

    Args:
        store: of a collection with a task.
        has_room: whether the disk has room.
        requests: of reports, a second from one address.
        burst: of them, at once.
        enrolments: how often one address may enrol.
        visits: how many public requests it may make.
        wrong_tokens: how often it may send a wrong administration's token; None: as `administration.WRONG_TOKEN_RATE`.
        desk: the organiser's folder, where the administration may use it.
        hosts: host names under which it answers, beside localhost, addresses and the name in people's links.
    """

    def __init__(
        self,
        store: Store,
        *,
        has_room: Callable[[], bool] = lambda: True,
        requests: float = 50.0,
        burst: float = 500.0,
        enrolments: Rate = ENROLMENT_RATE,
        visits: Rate = VISIT_RATE,
        wrong_tokens: Buckets | None = None,
        desk: Desk | None = None,
        hosts: Collection[str] = (),
    ) -> None:
        self.store, self.task = store, store.task()
        self._hosts = {name.casefold() for name in hosts}
        intake = Intake(store, self.task)
        self.writer = ReportWriter(intake.take)
        self.tally = Tally(store.count_refusals)
        self.arrival = Arrival(store)
        report_size = HEAD + self.task.body_bytes + TAG
        addresses = Buckets(rate=requests, size=burst)
        self.door = Door(self.writer, addresses, has_room, self.tally.add, intake.is_authentic, report_size)
        self._enrolling, self._visits = enrolments.buckets(), visits.buckets()
        self._administration = Administration(store, self.task, desk, has_room, wrong_tokens)
        # When the counters are counted again, and their text until then.
        self._metrics_due, self._metrics_text = 0.0, ""
        self.app = self._build_app()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        # All limits go by this name; the address itself is stored nowhere.
        scope = {**scope, "client": (name_of((scope.get("client") or ("", 0))[0]), 0)}
        if not await self._answers_to(host_of(scope["headers"])):
            self.tally.add("wrong-host")
            await Refused("wrong-host").response()(scope, receive, send)
        elif scope["path"] == "/reports" and scope["method"] == "POST":
            # Not through the framework, whose routing and models cost as much as storing the report.
            await self.door(scope, receive, send)
        elif (code := self._refusal(scope)) is not None:
            self.tally.add(code)
            await Refused(code).response()(scope, receive, send)
        else:
            try:
                await self.app(scope, receive, send)
            except Exception as error:
                # It was answered. The server would log its message, which may quote what somebody sent.
                log_error(error)

    async def _answers_to(self, host: str | None) -> bool:
        """Return whether the collector answers under a name: a declared one, or the name in people's links."""
        if host is None:
            return False
        if is_host(host, self._hosts):
            return True
        # Links may have been made since the start: people come by the name in them.
        url = await asyncio.to_thread(self.store.setting, "url")
        linked = None if url is None else host_of([(b"host", urlsplit(url).netloc)])
        if host == linked:
            self._hosts.add(host)
        return host == linked

    def _refusal(self, scope: Scope) -> str | None:
        """Return the code with which a request is refused before it is processed, else None."""
        # The framework reads a body of any size to its end; in chunks, the size is not declared.
        chunked = any(name == b"transfer-encoding" for name, _ in scope["headers"])
        if chunked or declared_size(scope) > _LARGEST:
            return "too-large"
        # These have limits of their own, or need a token whose guesses have one: a crowd behind the same address does
        # not lock the organiser out.
        if scope["method"] == "POST" or scope["path"].startswith("/admin/"):
            return None
        ids = self.task.people if scope["path"] == "/ids" else 0
        # The longest list costs a full bucket: more tokens are never in one.
        tokens = min(1.0 + ids // IDS_A_VISIT, self._visits.size)
        return None if self._visits.take(scope["client"][0], tokens) else "too-often"

    @asynccontextmanager
    async def _lifespan(self, _: FastAPI) -> AsyncIterator[None]:
        loops = [asyncio.create_task(periodic.run()) for periodic in (self.tally, self.arrival)]
        yield
        self.writer.close()
        for loop in loops:
            loop.cancel()
        self.tally.write()
        forget(self.store)

    def _build_app(self) -> FastAPI:
        version = graphveil.__version__
        # Without the framework's own pages: they load foreign scripts.
        app = FastAPI(
            title="graphveil collector", version=version, lifespan=self._lifespan,
            docs_url=None, redoc_url=None, openapi_url=None,
        )  # fmt: skip
        app.include_router(page_routes())
        app.add_exception_handler(Refused, _refuse)
        app.add_exception_handler(RequestValidationError, _bad_request)
        # The framework itself answers 400 to bytes that are no text or are nested too deeply.
        app.add_exception_handler(400, _bad_request)
        for status in (404, 405):
            app.add_exception_handler(status, _not_found)
        app.add_exception_handler(SQLAlchemyError, _failed)
        app.add_exception_handler(Exception, _failed)
        versions = {"version": version, "standard": VERSION}
        public: dict[str, Callable[..., Any]] = {
            "GET /task": self._task,
            "GET /opening": self._opening,
            "GET /ids": self._ids,
            "GET /epoch": self._round,
            "POST /enrolments": self._enrol,
            "GET /heartbeat": lambda: {"alive": True},
            "GET /version": lambda: versions,
            "GET /metrics": self._metrics,
        }
        add_routes(app.router, public)
        app.include_router(self._administration.routes())
        # On the first request: it takes longer than the rest of this function.
        document = cache(lambda: completed(app.openapi()))
        app.get("/openapi.json", include_in_schema=False, response_model=None)(document)
        return app

    def _task(self) -> Response:
        return Response(self.task.data, media_type="application/json")

    def _opening(self) -> Response:
        data = self.store.setting("opening")
        if data is None:
            raise Refused("no-opening")
        return Response(data, media_type="application/json")

    def _round(self) -> Round:
        current = self.store.current_epoch()
        epoch = self.store.epoch_count() if current is None else current
        is_open = current is not None and self.task.opens <= time.time() < self.task.closes
        return Round(epoch=epoch, open=is_open, until=self.task.closes if is_open else None)

    def _ids(self) -> Response:
        # Only devices that name neighbours need everybody's numbers; they check the list by its hash.
        if not any(isinstance(field, Links | Degree) for field in self.task.fields):
            raise Refused("not-found")
        lines = (json.dumps(id, ensure_ascii=False) + "\n" for id in self.store.ids())
        # Each part passes between threads: line by line it would take thirty times as long.
        parts = ("".join(part) for part in iter(lambda: list(islice(lines, IDS_A_VISIT)), []))
        return StreamingResponse(parts, media_type="application/x-ndjson; charset=utf-8")

    def _enrol(self, enrolling: Enrolling, request: Request) -> dict[str, int]:
        try:
            if not self._enrolling.take(request.client.host if request.client else ""):
                raise Refused("too-often")
            try:
                token, key = bytes.fromhex(enrolling.token), bytes.fromhex(enrolling.key)
            except ValueError:
                raise Refused("bad-enrolment") from None
            if len(key) != 32:
                raise Refused("bad-enrolment")
            enrolment = self.store.enrol(self.task, token, key)
            # The same answer for an unknown token and for somebody else's: a guesser learns nothing.
            if enrolment is None:
                raise Refused("bad-token")
            return {"number": enrolment.number, "joined": enrolment.joined}
        except Refused as error:
            self.tally.add(error.code)
            raise

    def _metrics(self) -> Response:
        # Anybody may request it: where counting takes long, it happens at most a tenth of the time.
        start = time.monotonic()
        if start >= self._metrics_due:
            self._metrics_text = exposition(self.store.status())
            seconds = time.monotonic() - start
            self._metrics_due = start + (10 * seconds if seconds > 0.1 else 0.0)
        return Response(self._metrics_text, media_type=METRICS_KIND)


def room_at(folder: Path) -> Callable[[], bool]:
    """Return a function that says whether the disk of the database's folder has room for more."""
    return lambda: shutil.disk_usage(folder).free > RESERVED_BYTES


def _refuse(_: Request, error: Exception) -> Response:
    return (error if isinstance(error, Refused) else Refused("fault")).response()


def _bad_request(_: Request, __: Exception) -> Response:
    # Without the request's content, which the framework would repeat: it may hold a token.
    return Refused("bad-request").response()


def _failed(_: Request, error: Exception) -> Response:
    if isinstance(error, SQLAlchemyError):
        log_error(error)
    return Refused(code_of(error)).response()


def _not_found(_: Request, error: Exception) -> Response:
    return Refused("not-found").response()
