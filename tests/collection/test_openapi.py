"""`/openapi.json` and the service say the same: every answer and every refusal is as it is described, and described."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from graphveil.collection.desk import Desk
from graphveil.collection.service.answers import STATUS
from graphveil.collection.service.service import Collector
from tests.collection.collections import begun, key, url_of
from tests.collection.test_administration import office_of, tokens
from tests.collection.test_desk import enrolled, ready, report_of
from tests.collection.test_service import JSON, fetch, fetch_json, served

PROBLEM = "application/problem+json"


@dataclass
class Described:
    """A collector whose every answer is held against its own description."""

    url: str
    token: str
    document: dict[str, Any]
    seen: set[tuple[str, int]] = field(default_factory=set)

    def ask(self, route: str, body: object = None, **more: str) -> Any:
        """What a route answers; its code, where it refuses."""
        method, path = route.split()
        query = more.pop("query", "")
        data = body if isinstance(body, bytes) else json.dumps(body or {}).encode() if method == "POST" else None
        headers = {"Authorization": f"Bearer {self.token}", **JSON} | more
        status, body, answered = fetch(f"{self.url}{path}{query}", data, **headers)
        self.seen.add((route, status))
        kind = answered["content-type"].partition(";")[0]
        schema = self.document["paths"][path][method.lower()]["responses"][str(status)]["content"][kind]["schema"]
        assert schema
        if kind not in ("application/json", PROBLEM):
            return body
        value = json.loads(body)
        jsonschema.Draft202012Validator({**schema, "components": self.document["components"]}).validate(value)
        return value["code"] if kind == PROBLEM else value


def operations(document: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            yield f"{method.upper()} {path}", operation


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return ready(tmp_path / "desk", least=2, label="1", links="1")


@pytest.fixture
def office(desk: Desk) -> Iterator[Described]:
    with office_of(desk) as office:
        yield Described(office.url, office.token, fetch_json(f"{office.url}/openapi.json")[1])


def test_every_route_says_what_it_answers_and_refuses(tmp_path: Path) -> None:
    with served(Collector(begun(url_of(tmp_path)).store)) as url:
        document: dict[str, Any] = fetch_json(f"{url}/openapi.json")[1]
    described = dict(operations(document))
    assert len(described) == 16 and len({operation["operationId"] for operation in described.values()}) == 16
    codes = set()
    for route, operation in described.items():
        assert re.match("[A-Z]", operation["summary"]), route
        contents = {int(status): response["content"] for status, response in operation["responses"].items()}
        good = [content for status, content in contents.items() if status < 300]
        assert good and all(kind["schema"] for content in good for kind in content.values()), route
        for status, content in contents.items():
            if status >= 300:
                assert list(content) == [PROBLEM], route
                reference, named = content[PROBLEM]["schema"]["allOf"]
                mine = named["properties"]["code"]["enum"]
                assert reference == {"$ref": "#/components/schemas/Problem"}
                assert mine and {STATUS[code] for code in mine} == {status}, route
                codes |= set(mine)
        # The administration and nothing else has the bearer's scheme.
        assert operation.get("security") == ([{"HTTPBearer": []}] if " /admin/" in route else None), route
    scheme = document["components"]["securitySchemes"]["HTTPBearer"]
    assert (scheme["type"], scheme["scheme"]) == ("http", "bearer")
    named = set(re.findall(r'"\$ref": "#/components/schemas/(\w+)"', json.dumps(document)))
    assert named == set(document["components"]["schemas"]) and {"Status", "Problem", "Answers"} <= named
    # What is answered somewhere is described somewhere, and nothing is left of what the framework would answer.
    assert codes == set(STATUS) - {"accepted", "again"}
    assert '"422"' not in json.dumps(document) and "ValidationError" not in json.dumps(document)


def test_what_is_answered_is_as_it_is_described(office: Described, desk: Desk) -> None:
    ask = office.ask
    token = tokens(desk)["ann"]
    assert ask("GET /opening") == "no-opening" and ask("POST /admin/open") == "not-now"
    assert ask("POST /enrolments", {"token": token, "key": key(0).hex()}) == {"number": 0, "joined": 1}
    assert ask("POST /enrolments", {"token": "00", "key": key(0).hex()}) == "bad-token"
    assert ask("POST /enrolments", {"token": token, "key": "00"}) == "bad-enrolment"
    assert ask("POST /enrolments", {"key": [token]}) == "bad-request"
    assert ask("POST /enrolments", bytes(1 << 17)) == "too-large"
    enrolled(desk, 1)
    assert ask("GET /admin/expected")["means"][0]["error"] is None
    ask("POST /admin/open")
    with desk.store() as store:
        first, two = (report_of(store, number, 1, {"label": "right", "links": []}).to_bytes() for number in (0, 1))
    assert [ask("POST /reports", body) for body in (first, first, two[:-1], first[:-1] + b"\0")] == [
        {"answers": ["accepted"]}, {"answers": ["again"]}, "truncated", "bad-tag",
    ]  # fmt: skip
    assert ask("POST /reports", first + two) == {"answers": ["again", "accepted"]}
    status = ask("GET /admin/status")
    assert status["received"] == 2 and status["refused"] and status["hours"] and status["train"]
    assert ask("GET /admin/expected", query="?neighbours=4")["accuracy"]["neighbours"] == 4.0
    assert ask("GET /admin/expected", query="?alike=2") == "bad-request"
    for path in ("task", "opening", "ids", "epoch", "heartbeat", "version", "metrics"):
        assert ask(f"GET /{path}")
    ask("POST /admin/close")
    assert ask("POST /admin/close") == "not-now" and ask("GET /epoch")["until"] is None
    assert ask("POST /admin/export", {"folder": "../out"}) == "bad-request"
    assert ask("POST /admin/export", {"folder": "out"})["epochs"] and ask("GET /admin/export").startswith(b"PK")
    assert ask("POST /admin/tokens", {"id": "cleo"})["id"] == "cleo"
    assert ask("POST /admin/tokens", {"id": "ann"}) == "not-now"
    (desk.folder / "organiser.key").rename(desk.folder / "elsewhere")
    assert ask("POST /admin/open") == "no-key"
    every = {(route, int(code)) for route, each in operations(office.document) for code in each["responses"]}
    good = {(route, status) for route, status in every if status < 300}
    assert good <= office.seen
