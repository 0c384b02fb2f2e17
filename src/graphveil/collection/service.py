"""The collector as one ASGI application: the door for reports, and what devices and organisers ask for.

GET  /task  /opening  /ids        what devices check and answer
POST /enrolments                  {"token", "key"} -> {"number", "joined"}
POST /reports                     see `door`
GET  /heartbeat /version /metrics
GET  /admin/status   POST /admin/close        with the organiser's token
GET  /  /organiser  /assets/NAME  see `pages`
"""

from __future__ import annotations

import hmac
import json
import shutil
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from fastapi import Depends, FastAPI, Request, Response
from fastapi.responses import StreamingResponse
from pydantic import BaseModel

import graphveil
from graphveil.collection.answers import problem
from graphveil.collection.door import Door, Receive, Scope, Send
from graphveil.collection.group import Group
from graphveil.collection.intake import Intake
from graphveil.collection.limits import Buckets
from graphveil.collection.pages import page_routes
from graphveil.collection.store import Store, hashed

#: Bytes of a disk that are left to everything else.
RESERVE = 256 << 20


class Refused(Exception):
    """A request is refused with a code of `answers.STATUS`."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


class Enrolling(BaseModel):
    """What a device says to be enrolled, both hexadecimal: the token it was given, a key of 32 bytes that it made."""

    token: str
    key: str


class Collector:
    """The application.

    Args:
        store: of a collection that was begun. room: whether the disk has room. requests: a second, from one address.
    """

    def __init__(
        self, store: Store, *, room: Callable[[], bool] = lambda: True, requests: float = 50.0, burst: float = 500.0
    ) -> None:
        self.store, self.task = store, store.task()
        self.group = Group(Intake(store, self.task).take)
        self.door = Door(self.group, Buckets(requests, burst), room)
        self._enrolling = Buckets(1.0, 30.0)
        self.others = self._made()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] == "http" and scope["path"] == "/reports" and scope["method"] == "POST":
            # Past the framework, whose routing and models cost as much as storing the report.
            await self.door(scope, receive, send)
        else:
            await self.others(scope, receive, send)

    @asynccontextmanager
    async def _alive(self, _: FastAPI) -> AsyncIterator[None]:
        yield
        self.group.close()

    def _made(self) -> FastAPI:
        title, version = "graphveil collector", graphveil.__version__
        # No pages of the framework's: they load scripts of others.
        app = FastAPI(title=title, version=version, lifespan=self._alive, docs_url=None, redoc_url=None)
        app.include_router(page_routes())
        app.add_exception_handler(Refused, _refuse)
        app.get("/task")(self._task)
        app.get("/opening")(self._opening)
        app.get("/ids")(self._ids)
        app.post("/enrolments")(self._enrol)
        app.get("/heartbeat")(lambda: {"alive": True})
        app.get("/version")(lambda: {"version": graphveil.__version__, "standard": 1})
        app.get("/metrics")(self._metrics)
        admitted = [Depends(self._admitted)]
        app.get("/admin/status", dependencies=admitted)(self.store.status)
        app.post("/admin/close", dependencies=admitted)(self._close)
        return app

    def _task(self) -> Response:
        return Response(self.task.data, media_type="application/json")

    def _opening(self) -> Response:
        data = self.store.setting("opening")
        if data is None:
            raise Refused("no-opening")
        return Response(data, media_type="application/json")

    def _ids(self) -> Response:
        # Public, by the task: who names neighbours has to know how everybody is numbered, and checks it by the hash.
        lines = (json.dumps(one, ensure_ascii=False) + "\n" for one in self.store.ids())
        return StreamingResponse(lines, media_type="application/x-ndjson; charset=utf-8")

    def _enrol(self, asked: Enrolling, request: Request) -> dict[str, int]:
        # Tokens cannot be guessed; whoever tries is slowed down all the same.
        if not self._enrolling.take(request.client.host if request.client else ""):
            raise Refused("too-often")
        try:
            token, key = bytes.fromhex(asked.token), bytes.fromhex(asked.key)
        except ValueError:
            raise Refused("bad-enrolment") from None
        if len(key) != 32:
            raise Refused("bad-enrolment")
        found = self.store.enrol(self.task, token, key)
        # One answer for a token that was never given out and for one of somebody else: it tells a guesser nothing.
        if found is None:
            raise Refused("bad-token")
        return {"number": found.number, "joined": found.joined}

    def _metrics(self) -> Response:
        status = self.store.status()
        lines = [f"graphveil_{name} {value}" for name, value in status.items() if isinstance(value, int)]
        lines += [f'graphveil_refused{{code="{code}"}} {count}' for code, count in status["refused"].items()]
        return Response("\n".join(lines) + "\n", media_type="text/plain; version=0.0.4")

    def _close(self) -> dict[str, Any]:
        epoch, digest = self.store.close_epoch()
        return {"epoch": epoch, "hash": digest.hex()}

    def _admitted(self, request: Request) -> None:
        kept = self.store.setting("admin")
        told = request.headers.get("authorization", "").removeprefix("Bearer ")
        # In constant time, and hashed first: how long it takes tells nothing of the token.
        if kept is None or not hmac.compare_digest(kept, hashed(told.encode())):
            raise Refused("not-admitted")


def room_at(folder: Path) -> Callable[[], bool]:
    """Return what tells whether the disk of a folder has room for more.

    Args:
        folder: of the database.
    """
    return lambda: shutil.disk_usage(folder).free > RESERVE


def _refuse(_: Request, error: Exception) -> Response:
    status, headers, body = problem(error.code if isinstance(error, Refused) else "fault")
    return Response(body, status, {name.decode(): value.decode() for name, value in headers})
