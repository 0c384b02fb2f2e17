"""The collector as one ASGI application: the door for reports, and the routes of devices and organisers.

GET  /task  /opening  /ids        what devices check and answer; ids only where links are asked for
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
from graphveil.collection.service.door import Door, Receive, Scope, Send, said_size
from graphveil.collection.service.intake import Group, Intake
from graphveil.collection.service.limits import Buckets, Rate
from graphveil.collection.service.models import Enrolling, Round
from graphveil.collection.service.openapi import add, completed
from graphveil.collection.service.pages import page_routes
from graphveil.collection.service.troubles import code_of, write_down
from graphveil.collection.store.store import Store
from graphveil.device.reports.degree import Degree
from graphveil.device.reports.links import Links
from graphveil.device.task import VERSION
from graphveil.device.wire import HEAD, TAG

#: Bytes of the disk that stay free for everything else.
RESERVE = 256 << 20
#: Bytes of any request but one with reports.
_LARGEST = 1 << 16
#: From one address: tokens cannot be guessed, and attempts are slowed down all the same.
ENROLMENTS = Rate(1.0, 30.0)
#: Public requests from one address. A visit of the person's page is fewer than thirty: a hundred people behind one
#: router may come at the same moment, and three each second after that.
VISITS = Rate(100.0, 3_000.0)
#: Ids that cost an address one more visit: reading and sending so many takes as long as the counters do.
IDS_A_VISIT = 500
#: Seconds between two writings; what was counted since the last one is lost where the process is killed.
_TALLIED_EVERY = 1.0


@dataclass
class Tally:
    """Refusals by code, counted in memory and written together. A refusal must cost less than what it refuses: none
    waits for the disk, and a full disk is not asked.
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
            await asyncio.sleep(_TALLIED_EVERY)
            await asyncio.to_thread(self.write)


class Collector:
    """The application.

    Args:
        store: of a collection with a task.
        room: whether the disk has room.
        requests: a second, from one address.
        burst: at once.
        enrolments: how often one address may enrol.
        visits: how many public requests it may make.
        wrong_tokens: how often it may send a wrong administration's token; None: as `administration.WRONG_TOKENS`.
        desk: the organiser's folder, where the administration may use it.
        hosts: host names under which it answers, beside localhost, addresses and the name in people's links.
    """

    def __init__(
        self,
        store: Store,
        *,
        room: Callable[[], bool] = lambda: True,
        requests: float = 50.0,
        burst: float = 500.0,
        enrolments: Rate = ENROLMENTS,
        visits: Rate = VISITS,
        wrong_tokens: Buckets | None = None,
        desk: Desk | None = None,
        hosts: Collection[str] = (),
    ) -> None:
        self.store, self.task = store, store.task()
        self._hosts = {name.casefold() for name in hosts}
        intake = Intake(store, self.task)
        self.group = Group(intake.take)
        self.tally = Tally(store.count)
        self.arrival = Arrival(store)
        addresses, size = Buckets(requests, burst), HEAD + -(-self.task.bits // 8) + TAG
        self.door = Door(self.group, addresses, room, self.tally.add, intake.proves, size)
        self._enrolling, self._visits = enrolments.buckets(), visits.buckets()
        self._administration = Administration(store, self.task, desk, room, wrong_tokens)
        self._counted = 0.0, ""
        self.app = self._build_app()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        # All limits go by this name; the address itself is stored nowhere.
        scope = {**scope, "client": (name_of((scope.get("client") or ("", 0))[0]), 0)}
        if not await self._is_asked(host_of(scope["headers"])):
            self.tally.add("wrong-host")
            await Refused("wrong-host").answer()(scope, receive, send)
        elif scope["path"] == "/reports" and scope["method"] == "POST":
            # Not through the framework, whose routing and models cost as much as storing the report.
            await self.door(scope, receive, send)
        elif (code := self._turned_away(scope)) is not None:
            self.tally.add(code)
            await Refused(code).answer()(scope, receive, send)
        else:
            try:
                await self.app(scope, receive, send)
            except Exception as error:
                # It was answered. The server would log its message, which may quote what somebody sent.
                write_down(error)

    async def _is_asked(self, host: str | None) -> bool:
        if host is None or is_host(host, self._hosts):
            return host is not None
        # Links may have been made since the start: people come by the name in them.
        url = await asyncio.to_thread(self.store.setting, "url")
        linked = None if url is None else host_of([(b"host", urlsplit(url).netloc)])
        if host == linked:
            self._hosts.add(host)
        return host == linked

    def _turned_away(self, scope: Scope) -> str | None:
        """Return the code of a request that is refused before it is processed, else None."""
        # The framework reads a body of any size to its end; in chunks, the size is not declared.
        chunked = any(name == b"transfer-encoding" for name, _ in scope["headers"])
        if chunked or said_size(scope) > _LARGEST:
            return "too-large"
        # These have limits of their own, or need a token whose guesses have one: a crowd behind the same address does
        # not lock the organiser out.
        if scope["method"] == "POST" or scope["path"].startswith("/admin/"):
            return None
        # For the longest list a full bucket, and no more.
        more = self.task.people // IDS_A_VISIT if scope["path"] == "/ids" else 0
        return None if self._visits.take(scope["client"][0], min(1.0 + more, self._visits.size)) else "too-often"

    @asynccontextmanager
    async def _alive(self, _: FastAPI) -> AsyncIterator[None]:
        running = [asyncio.create_task(task.run()) for task in (self.tally, self.arrival)]
        yield
        self.group.close()
        for task in running:
            task.cancel()
        self.tally.write()
        forget(self.store)

    def _build_app(self) -> FastAPI:
        title, version = "graphveil collector", graphveil.__version__
        # Without the framework's own pages: they load foreign scripts.
        app = FastAPI(
            title=title, version=version, lifespan=self._alive, docs_url=None, redoc_url=None, openapi_url=None
        )
        app.include_router(page_routes())
        app.add_exception_handler(Refused, _refuse)
        app.add_exception_handler(RequestValidationError, _unread)
        # The framework itself answers 400 to bytes that are no text or are nested too deeply.
        app.add_exception_handler(400, _unread)
        for status in (404, 405):
            app.add_exception_handler(status, _unknown)
        app.add_exception_handler(SQLAlchemyError, _failed)
        app.add_exception_handler(Exception, _failed)
        facts = {"version": version, "standard": VERSION}
        public: dict[str, Callable[..., Any]] = {
            "GET /task": self._task,
            "GET /opening": self._opening,
            "GET /ids": self._ids,
            "GET /epoch": self._round,
            "POST /enrolments": self._enrol,
            "GET /heartbeat": lambda: {"alive": True},
            "GET /version": lambda: facts,
            "GET /metrics": self._metrics,
        }
        add(app.router, public)
        app.include_router(self._administration.routes())
        # Made on the first request: it takes longer than all else here.
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
        running = self.store.epoch()
        epoch = self.store.opened() if running is None else running
        is_open = running is not None and self.task.opens <= time.time() < self.task.closes
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
        if start >= self._counted[0]:
            text = exposition(self.store.status())
            took = time.monotonic() - start
            self._counted = start + (10 * took if took > 0.1 else 0.0), text
        return Response(self._counted[1], media_type=METRICS_KIND)


def room_at(folder: Path) -> Callable[[], bool]:
    """Return a function that says whether the disk of the database's folder has room for more."""
    return lambda: shutil.disk_usage(folder).free > RESERVE


def _refuse(_: Request, error: Exception) -> Response:
    return (error if isinstance(error, Refused) else Refused("fault")).answer()


def _unread(_: Request, __: Exception) -> Response:
    # Without the request's content, which the framework would repeat: it may hold a token.
    return Refused("bad-request").answer()


def _failed(_: Request, error: Exception) -> Response:
    if isinstance(error, SQLAlchemyError):
        write_down(error)
    return Refused(code_of(error)).answer()


def _unknown(_: Request, error: Exception) -> Response:
    return Refused("not-found").answer()
