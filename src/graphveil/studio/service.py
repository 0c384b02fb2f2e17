"""The studio as one ASGI application: its routes, each of which reads files below the root or starts a command."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import tempfile
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Annotated, Any

from fastapi import APIRouter, Body, FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, StreamingResponse
from pydantic import JsonValue
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

import graphveil
from graphveil.collection.service.pages import Asset
from graphveil.collection.service.troubles import log_error
from graphveil.errors import GraphveilError
from graphveil.files.serial import json_safe, to_json
from graphveil.graphs.declared.declaration import FILE as DECLARATION
from graphveil.graphs.drafts.draft import read_draft
from graphveil.studio import models
from graphveil.studio.access import Access, csrf_of
from graphveil.studio.choices import choices
from graphveil.studio.commands import SPENDING, Commands, line_of
from graphveil.studio.jobs import Jobs, events, outcome_in, warnings_in
from graphveil.studio.refusals import STATUS, Refusal, without_cells
from graphveil.studio.results import FinishedWork
from graphveil.studio.root import store_table
from graphveil.studio.store import OPEN, Job

Text = Annotated[str, Body(embed=True, max_length=1_000)]
Facts = Annotated[models.Content, Body()]
Truth = Annotated[bool, Body()]
Price = Annotated[str | None, Body(embed=True, max_length=20_000)]
ANSWERS = "graph.answers.json"
PAGE_FILES = Path(__file__).parent / "assets"
COLLECTORS = Path(graphveil.__file__).parent / "collection" / "assets"
VENDORED = Path(graphveil.__file__).parent / "reports" / "vendor"
#: Files of other pages and of vendors that this page uses; its own are all in its folder.
SHARED = (
    *(COLLECTORS / name for name in ("look.css", "dom.js", "numbers.js", "icon.svg")),
    VENDORED / "cytoscape.min.js",
)
#: Seconds between two ticks of the jobs.
_TICK_INTERVAL = 0.3
_DOWNLOAD = {"content-security-policy": "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:"}


class Studio:
    """The application.

    Args:
        jobs: of its root.
        access: who may use it.
        data_root: where named sets lie; None: where commands look by themselves.
    """

    def __init__(self, jobs: Jobs, access: Access, data_root: Path | None = None) -> None:
        self.jobs, self.root, self.store, self.access = jobs, jobs.root, jobs.store, access
        self._data_root = data_root
        self._commands = Commands(self.root, data_root)
        self.app = self._build()

    @asynccontextmanager
    async def _lifespan(self, _: FastAPI) -> AsyncIterator[None]:
        ticking = asyncio.create_task(self._tick_jobs())
        yield
        ticking.cancel()

    async def _tick_jobs(self) -> None:
        while True:
            with suppress(sqlite3.Error, OSError):
                await asyncio.to_thread(self.jobs.tick)
            await asyncio.sleep(_TICK_INTERVAL)

    def _build(self) -> FastAPI:
        app = FastAPI(
            title="graphveil studio", version=graphveil.__version__, lifespan=self._lifespan,
            docs_url=None, redoc_url=None, openapi_url=None, redirect_slashes=False,
            generate_unique_id_function=lambda route: route.name.strip("_"),
        )  # fmt: skip
        app.include_router(page_routes())
        for status in (404, 405):
            app.add_exception_handler(status, _not_found)
        for kind in (Refusal, GraphveilError, RequestValidationError, OSError, sqlite3.Error, Exception, 400):
            app.add_exception_handler(kind, self._refuse)
        for route, answer in self._routes().items():
            method, path = route.split()
            options, responses = dict(_OTHER_RESPONSES.get(route, {})), dict(_PROBLEMS)
            if "content" in options:
                responses[200] = {"content": options.pop("content")}
            app.router.add_api_route(path, answer, methods=[method], responses=responses, **options)
        app.get("/openapi.json", include_in_schema=False, response_model=None)(cache(app.openapi))
        return app

    def _routes(self) -> dict[str, Callable[..., Any]]:
        return {
            "POST /api/session": self._begin,
            "GET /api/session": self._session,
            "GET /api/choices": self._choices,
            "GET /api/folders": self._folders,
            "PUT /api/tables/{folder:path}/{file}": self._table,
            "POST /api/drafts": self._draft,
            "POST /api/declarations": self._declare,
            "POST /api/queries": self._query,
            "POST /api/jobs": self._start,
            "GET /api/jobs": self._list,
            "GET /api/jobs/{id}": self._job,
            "DELETE /api/jobs/{id}": self._stop,
            "POST /api/jobs/{id}/again": self._again,
            "GET /api/jobs/{id}/events": self._events,
            "GET /api/runs/{path:path}/files/{name:path}": self._file,
            "GET /api/runs/{path:path}/graph": self._graph,
            "GET /api/runs/{path:path}": self._run,
            "GET /api/saved": self._saved,
            "PUT /api/saved": self._save,
        }

    def _refuse(self, _: Request, error: Exception) -> Response:
        refusal = refusal_of(error)
        # Paths as the page names them: where the folder lies on this machine is not the page's concern.
        line = refusal.line.replace(f"{self.root.folder}/", "").replace(str(self.root.folder), ".")
        return _refusal_response(Refusal(refusal.code, line))

    # ---- sessions ----

    def _begin(self, token: Text, request: Request, response: Response) -> dict[str, str]:
        cookie, csrf = self.access.admit(token, request.client.host if request.client else "")
        response.headers["set-cookie"] = cookie
        return {"csrf": csrf}

    def _session(self, request: Request) -> dict[str, str]:
        return {"csrf": csrf_of(request.state.session)}

    # ---- what may be chosen ----

    def _choices(self) -> models.Choices:
        return choices(self.root.folder.name, self._data_root)

    def _folders(self) -> models.Folders:
        return models.Folders(data=self.root.sources(), runs=self.root.finished())

    async def _table(self, folder: str, file: str, request: Request) -> dict[str, JsonValue]:
        return {"path": f"{folder}/{file}", "bytes": await store_table(self.root, folder, file, request.stream())}

    def _draft(self, folder: Text) -> dict[str, JsonValue]:
        return {"draft": json_safe(read_draft(self.root.existing(folder)).facts())}

    def _declare(self, folder: Text, answers: Facts, replace: Truth = False) -> models.Declared:
        path = self.root.existing(folder)
        if (path / DECLARATION).exists() and not replace:
            raise Refusal("used", f"{folder} has a {DECLARATION} already")
        # Beside the declaration, so that the command can be run again.
        with (
            self.root.descriptor_of(path) as descriptor,
            tempfile.NamedTemporaryFile(dir=self.root.scratch, delete=False) as partial,
        ):
            partial.write(to_json(answers, indent=2).encode() + b"\n")
            os.replace(partial.name, ANSWERS, dst_dir_fd=descriptor)
        words = self._commands.declare(folder, self.root.relative(path / ANSWERS), replace=replace)
        declared = self.jobs.ask(words)
        notes = [*declared["notes"], f"checked: {declared['checked']}"]
        return models.Declared(toml=declared["toml"], command=line_of(words), notes=notes)

    # ---- commands ----

    def _query(self, query: models.Query) -> models.Answered:
        words = self._commands.words(query.query, query)
        answered = models.Answered(command=line_of(words), answer=self.jobs.query(words))
        if query.query == "plan" and answered.answer is not None:
            answered.price = price_of(query, answered.answer)
            answered.run = line_of(self._commands.run(query))
            answered.config = self._commands.config(query)
            answered.rehearsal = self._commands.rehearsal(query, datetime.now())
        return answered

    def _start(self, start: models.Start) -> models.JobOf:
        return self._submit(start, self._out_folder(start))

    def _submit(self, start: models.Start, out: str | None) -> models.JobOf:
        words = self._commands.words(start.job, start, out)
        stamps = None if start.price is None else self.jobs.stamps(words)
        # Planned again: what a page says of prices is not believed.
        plan = self.jobs.query(self._commands.plan(start)) if start.job in SPENDING else None
        price = None if plan is None else price_of(start, plan)
        if start.price != price:
            raise Refusal("other-price", f"the button did not name this price: {price}")
        request = start.model_dump(mode="json", exclude_unset=True)
        return self._job_answer(self.jobs.submit(start.job, request, words, out, stamps))

    def _out_folder(self, start: models.Start) -> str | None:
        used = {job.out for job in self.store.jobs()}
        return self._commands.out_of(start, datetime.now(), used.__contains__)

    # ---- jobs ----

    def _list(self) -> dict[str, list[models.JobOf]]:
        return {"jobs": [self._job_answer(job, whole=False) for job in reversed(self.store.jobs())]}

    def _job(self, id: str) -> models.JobOf:
        return self._job_answer(self.store.job(id))

    def _stop(self, id: str) -> models.JobOf:
        return self._job_answer(self.jobs.stop(self.store.job(id)))

    def _again(self, id: str, price: Price = None) -> models.JobOf:
        job = self.store.job(id)
        if job.state in OPEN:
            raise Refusal("used", "this job has not ended")
        start = models.Start.model_validate({**job.request, "price": price})
        # The same words, unless their folder is there.
        is_free = job.out is None or not self.root.path(job.out).exists()
        return self._submit(start, job.out if is_free else self._out_folder(start))

    def _events(self, id: str) -> StreamingResponse:
        stream = events(lambda: self.store.job(id), self.jobs.folder(self.store.job(id)))
        return StreamingResponse(stream, media_type="text/event-stream")

    def _job_answer(self, job: Job, *, whole: bool = True) -> models.JobOf:
        folder = self.jobs.folder(job)
        outcome = None if job.state in OPEN else outcome_in(folder, whole=whole)
        never_began = job.state == "stopped" and job.began is None
        return models.JobOf(
            **{name: value for name, value in vars(job).items() if name in models.JobOf.model_fields},
            command=line_of(job.words),
            warnings=warnings_in(folder),
            error="it was stopped before it began" if never_began else None if outcome is None else outcome.error,
            answer=None if outcome is None else outcome.answer,
            price=job.request.get("price"),
        )

    # ---- finished work ----

    def _work(self, path: str) -> FinishedWork:
        kind = self.root.kind(self.root.existing(path))
        if kind is None:
            raise Refusal("not-found", f"nothing finished lies in {path}")
        return FinishedWork(self.root, path, kind)

    def _run(self, path: str) -> models.Run:
        work = self._work(path)
        return models.Run(
            path=path,
            kind=work.kind,
            result=work.facts(),
            files=work.files(),
            report=f"{path}/report.html" if (work.folder / "report.html").is_file() else None,
            attacks=work.attacks(),
            private=list(work.private()),
            parties=work.parties(),
        )

    def _graph(self, path: str) -> models.Graph:
        work = self._work(path)
        if work.kind != "run":
            raise Refusal("not-found", f"{path} is a {work.kind}, and only a run has predictions to draw")
        return work.graph()

    def _file(self, path: str, name: str) -> Response:
        file = self._work(path).file(name)
        if file is None:
            raise Refusal("not-found", f"{path} has no {name[:80]!r} to download")
        headers = {**_DOWNLOAD, "content-disposition": f'attachment; filename="{file.name}"'}
        return Response(self.root.read(file), media_type=_ANY, headers=headers)

    # ---- the page's own choices ----

    def _saved(self) -> models.Saved:
        version, saved = self.store.saved()
        return models.Saved(version=version, saved=saved)

    def _save(self, saving: models.Saved) -> models.Saved:
        if len(saving.model_dump_json()) > 64 << 10:
            raise Refusal("too-large", "more than 64 kB of choices")
        return models.Saved(version=self.store.save(saving.version, saving.saved), saved=saving.saved)


def price_of(work: models.Work, plan: Mapping[str, Any]) -> str:
    """Return the sentence for the button of what would be trained or released, by the command's plan of it."""
    void = "" if work.reproducible_noise is None else "VOID, this protects nobody (reproducible noise): "
    times = "" if work.repeats in (None, 1) else f"{work.repeats} trainings, each of which spends: "
    return f"{void}{times}{plan['method']} on {plan['data']}: {plan['guarantee_sentence']}"


def page_routes() -> APIRouter:
    """Return the routes of the page, whose files are read once."""
    routes = APIRouter(include_in_schema=False)
    page_files = sorted(path for path in PAGE_FILES.glob("*") if path.suffix in (".css", ".js", ".svg"))
    files = {"/": PAGE_FILES / "studio.html", **{f"/assets/{path.name}": path for path in (*SHARED, *page_files)}}
    for address, path in files.items():
        if path.is_file():
            routes.get(address)(_served(Asset.of(path)))
    return routes


def _served(asset: Asset) -> Callable[[Request], Response]:
    def answer(request: Request) -> Response:
        response = asset.answer(request.headers.get("if-none-match"))
        # The gate adds its own policy, which also admits pictures that the page draws.
        del response.headers["content-security-policy"]
        return response

    return answer


_ANY, _BYTES = "application/octet-stream", {"schema": {"type": "string", "format": "binary"}}
_EVENT = {"schema": {"type": "object", "properties": {name: {"type": "string"} for name in ("event", "data")}}}
_BODY = {"requestBody": {"required": True, "content": {_ANY: _BYTES}}}
#: Routes that answer something else than JSON with the status 200.
_OTHER_RESPONSES: dict[str, dict[str, Any]] = {
    "POST /api/jobs": {"status_code": 201},
    "POST /api/jobs/{id}/again": {"status_code": 201},
    "PUT /api/tables/{folder:path}/{file}": {"status_code": 201, "openapi_extra": _BODY},
    "GET /api/jobs/{id}/events": {"response_class": Response, "content": {"text/event-stream": _EVENT}},
    "GET /api/runs/{path:path}/files/{name:path}": {"response_class": Response, "content": {_ANY: _BYTES}},
}
_PROBLEMS: dict[int | str, dict[str, Any]] = {
    status: {"model": models.Problem} for status in sorted({*STATUS.values()})
}


def _not_found(_: Request, __: Exception) -> Response:
    return _refusal_response(Refusal("not-found", "there is nothing at this address"))


def _refusal_response(refusal: Refusal) -> Response:
    return JSONResponse({"error": refusal.line, "code": refusal.code}, refusal.status)


def refusal_of(error: Exception) -> Refusal:
    """Return an error as the refusal that a page gets."""
    if isinstance(error, Refusal):
        return error
    if isinstance(error, RequestValidationError):
        # The members that are wrong, never what was sent.
        faults = [".".join(str(part) for part in fault["loc"][1:]) + f": {fault['msg']}" for fault in error.errors()]
        return Refusal("bad-request", "; ".join(faults[:3])[:500])
    if isinstance(error, GraphveilError):
        return Refusal("refused", without_cells(str(error)))
    if isinstance(error, HTTPException | ClientDisconnect):
        return Refusal("bad-request", "this is no JSON that can be read, or not all of it")
    if isinstance(error, sqlite3.OperationalError):
        return Refusal("no-room", f"the studio's database cannot be written: {error}")
    if isinstance(error, OSError):
        return Refusal("no-room", f"the studio's folder cannot be written: {error.strerror or error}")
    log_error(error)
    return Refusal("fault", "an internal error: the studio's terminal says where")
