"""The description of each route in `/openapi.json`: its answer, and its possible refusals.

It describes and decides nothing: a test compares it with what the routes answer and refuse.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Final

from fastapi import APIRouter, Response
from pydantic import BaseModel

from graphveil.collection.service import models
from graphveil.collection.service.answers import METRICS_KIND, RETRY_AFTER, STATUS
from graphveil.collection.service.refusal_codes import REFUSAL_CODES

#: The framework's schemas of answers with the status 422, which no route gives.
_FRAMEWORKS = ("HTTPValidationError", "ValidationError")
_PROBLEM: Final = {"$ref": "#/components/schemas/Problem"}
#: Refusals of all routes that the framework answers; of public routes; of those that read the database; of both; of the
#: administration.
_ANY = ("too-large", "wrong-host")
_OPEN = (*_ANY, "too-often")
_READ = ("busy", "disk-full", "fault")
_STORED = (*_OPEN, *_READ)
_ADMIN = ("not-admitted", *_STORED)
#: Refusals of `door`, which is outside the framework.
_REPORTS = (
    *("conflict", "closed", "not-open", "wrong-task", "wrong-length", "impossible", "unknown-enrolment", "bad-tag"),
    *("truncated", "bad-version", "too-many", "too-large", "too-slow", "too-often", "wrong-host"),
    *_READ,
)


@dataclass(frozen=True)
class RouteDoc:
    """What a route does, its answer (a model of JSON, or another media type and its schema), and codes of refusals."""

    summary: str
    answer: type[BaseModel] | tuple[str, Mapping[str, str]]
    refusals: tuple[str, ...]


_TEXT, _BYTES = {"type": "string"}, {"type": "string", "format": "binary"}
ROUTES: Final[Mapping[str, RouteDoc]] = {
    "GET /task": RouteDoc("The task, as it was signed", models.SignedTask, _OPEN),
    "GET /opening": RouteDoc("Which epochs were opened, signed", models.SignedOpening, (*_STORED, "no-opening")),
    "GET /ids": RouteDoc(
        "Everybody's id, a JSON text a line, where links are asked for",
        ("application/x-ndjson", _TEXT), (*_STORED, "not-found"),
    ),
    "GET /epoch": RouteDoc("Whether reports are taken now", models.Round, _STORED),
    "POST /enrolments": RouteDoc(
        "Bind a token to a device's key", models.Enrolled, (*_STORED, "bad-request", "bad-enrolment", "bad-token")
    ),
    "GET /heartbeat": RouteDoc("Whether it runs", models.Alive, _OPEN),
    "GET /version": RouteDoc("What runs", models.Version, _OPEN),
    "GET /metrics": RouteDoc("Public counters", (METRICS_KIND.partition(";")[0], _TEXT), _STORED),
    "GET /admin/status": RouteDoc("How the collection stands", models.Status, _ADMIN),
    "GET /admin/expected": RouteDoc("What the answers would say", models.Expected, (*_ADMIN, "bad-request")),
    "POST /admin/open": RouteDoc("Open an epoch", models.Opened, (*_ADMIN, "not-now", "no-key")),
    "POST /admin/close": RouteDoc("Close the epoch that is open", models.Closed, (*_ADMIN, "not-now")),
    "POST /admin/export": RouteDoc(
        "Export into a folder beside the collection's files", models.Exported, (*_ADMIN, "bad-request", "not-now")
    ),
    "GET /admin/export": RouteDoc("Download the export", ("application/zip", _BYTES), (*_ADMIN, "not-now")),
    "POST /admin/tokens": RouteDoc(
        "Give somebody another token", models.Replaced, (*_ADMIN, "bad-request", "not-now")
    ),
}  # fmt: skip


def add_routes(routes: APIRouter, answers: Mapping[str, Callable[..., Any]]) -> None:
    """Add routes with their descriptions.

    Args:
        routes: of the application, or of a part of it.
        answers: the functions that answer some of `ROUTES`.
    """
    for route, answer in answers.items():
        method, path = route.split()
        routes.add_api_route(path, answer, methods=[method], **_description(route))


def _description(route: str) -> dict[str, Any]:
    doc = ROUTES[route]
    # No response model: the framework would build it anew for every answer.
    description: dict[str, Any] = {"summary": doc.summary, "operation_id": _name(route), "response_model": None}
    if isinstance(doc.answer, tuple):
        # Otherwise the framework would declare JSON.
        description["response_class"] = Response
        kind, schema = doc.answer
        return {**description, "responses": {200: {"content": {kind: {"schema": schema}}}, **refusals(doc.refusals)}}
    return {**description, "responses": {200: {"model": doc.answer}, **refusals(doc.refusals)}}


def refusals(codes: tuple[str, ...]) -> dict[int | str, dict[str, Any]]:
    """Return the responses of refusal codes, by status."""
    by_status = groupby(sorted(codes, key=lambda code: (STATUS[code], code)), STATUS.__getitem__)
    return {status: _refusal(tuple(same)) for status, same in by_status}


def completed(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return the framework's document with `POST /reports`, and without what does not apply."""
    paths = {
        path: {method: _without_unreadable(entry) for method, entry in methods.items()}
        for path, methods in document["paths"].items()
    }
    schemas = {name: entry for name, entry in document["components"]["schemas"].items() if name not in _FRAMEWORKS}
    schemas |= {entry.__name__: entry.model_json_schema() for entry in (models.Answers, models.Problem)}
    schema = {"application/json": {"schema": {"$ref": "#/components/schemas/Answers"}}}
    stored = {
        "200": {"description": "Stored before, or a code for each of many reports", "content": schema},
        "201": {"description": "Stored", "content": schema},
    }
    refused = {str(status): response for status, response in refusals(_REPORTS).items()}
    body = {"required": True, "content": {"application/octet-stream": {"schema": _BYTES}}}
    operation = {"summary": "Take one report or many, as docs/standard/wire.md describes them", "requestBody": body}
    paths["/reports"] = {"post": {**operation, "operationId": _name("POST /reports"), "responses": stored | refused}}
    return {**document, "paths": paths, "components": {**document["components"], "schemas": schemas}}


def _without_unreadable(operation: Mapping[str, Any]) -> dict[str, Any]:
    """Return a route without the status 422 of unreadable requests, which are `bad-request` here."""
    return {
        **operation,
        "responses": {code: response for code, response in operation["responses"].items() if code != "422"},
    }


def _refusal(codes: tuple[str, ...]) -> dict[str, Any]:
    """Return the response of codes that share a status."""
    schema = {"properties": {"status": {"const": STATUS[codes[0]]}, "code": {"enum": list(codes)}}}
    content = {"application/problem+json": {"schema": {"allOf": [_PROBLEM, schema]}}}
    response = {
        "description": "; ".join(f"{code}: {REFUSAL_CODES[code].sentence}" for code in codes),
        "content": content,
    }
    if not any(code in RETRY_AFTER for code in codes):
        return response
    return {**response, "headers": {"Retry-After": {"description": "Seconds", "schema": {"type": "integer"}}}}


def _name(route: str) -> str:
    return route.lower().replace(" /", "_").replace("/", "_")
