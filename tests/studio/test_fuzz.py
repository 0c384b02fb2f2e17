"""Requests drawn from the studio's own OpenAPI document, whole and spoilt: each is answered as the document says."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from graphveil.studio.jobs import Limits
from tests.studio import program
from tests.studio.studios import Open, studio_at

pytestmark = pytest.mark.slow

FITTING = "town", "name:digits", "lpgnn", "gap", "heterorr", "epsilon_x", "epsilon", "unit", "runs/run", "nothing"
SMALL = st.integers(1, 9) | st.sampled_from(["edge", "node", "inf"])
#: What opens more of a request than letters drawn blindly.
WORDS = st.sampled_from(
    [
        *(
            "town",
            ".",
            "..",
            "runs/run",
            "/etc",
            "name:digits",
            "name:../x",
            "-x",
            "a\nb",
            "a/\u202eb",
            "\ud800",
            "x" * 300,
        ),
        *("lpgnn", "gap", "heterorr", "membership", "local", "accuracy=0.8", "epsilon", "epsilon_x", "unit", "hidden"),
        *("sqlite:///town/nodes.csv", "postgresql://me@db/town", "SELECT 1", "result.json", "nodes.csv", "inf", "-1"),
    ]
)
#: Whatever is asked of the command: the studio's own part is under test here.
ANSWER = {"toml": "", "notes": [], "checked": "", "guarantee_sentence": "nothing", "parties": {}}
TEXTS = WORDS | st.text(st.characters(), max_size=8)
NUMBERS = st.integers(-2, 9) | st.floats() | st.integers()
VALUES = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=6,
)


def values(schema: dict[str, Any], document: dict[str, Any]) -> st.SearchStrategy[Any]:
    """Values that mostly fit a schema."""
    if "$ref" in schema:
        return values(document["components"]["schemas"][schema["$ref"].rpartition("/")[2]], document)
    if "anyOf" in schema:
        return st.one_of(*(values(kind, document) for kind in schema["anyOf"]))
    if "enum" in schema or "const" in schema:
        return st.sampled_from(schema.get("enum") or [schema["const"]])
    if schema.get("type") == "object" and "properties" in schema:
        fields = {name: values(kind, document) for name, kind in schema["properties"].items()}
        needed = {name: fields.pop(name) for name in schema.get("required", ())}
        # Few beside what is needed, and of the first ones most: data and a method make a request whole.
        some = st.lists(st.sampled_from([*fields]), max_size=4) if fields else st.just([])
        always = [name for name in ("data", "method") if name in fields]
        return some.flatmap(
            lambda names: st.fixed_dictionaries({**needed, **{name: fields[name] for name in [*always, *names]}})
        )
    kinds: dict[str, st.SearchStrategy[Any]] = {
        "string": st.sampled_from(FITTING) | TEXTS,
        "boolean": st.booleans(),
        "null": st.none(),
        "array": st.lists(values(schema.get("items", {}), document), max_size=3) if "items" in schema else VALUES,
        "object": st.dictionaries(st.sampled_from(FITTING) | TEXTS, SMALL | VALUES, max_size=2),
    }
    return kinds.get(schema.get("type", ""), NUMBERS if schema.get("type") in ("integer", "number") else VALUES)


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Open]:
    folder = tmp_path_factory.mktemp("fuzz") / "root"
    with studio_at(
        folder, limits=Limits(1, 512, 1), program=(sys.executable, program.__file__), patience=0.1
    ) as opened:
        for file, text in (
            ("town/nodes.csv", "id,age\n1,2"),
            ("town/edges.csv", "source,target"),
            ("runs/run/result.json", "{}"),
        ):
            (folder / file).parent.mkdir(parents=True, exist_ok=True)
            (folder / file).write_text(text)
        yield opened


def test_no_request_is_a_fault(here: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(here.jobs, "ask", lambda words: ANSWER)
    document = here.page.get("/openapi.json")
    operations = [
        (method, path, operation)
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
        if (method, path) != ("delete", "/api/session")
    ]
    assert len(operations) >= 20
    job = here.jobs.submit("train", {"job": "train", "data": "town", "method": "gap"}, ["done"], None)
    here.ended(job.id)
    places = [job.id, "runs/run", "town", "result.json", "a.csv"]

    @settings(
        max_examples=2_000, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck)
    )
    @given(st.data())
    def holds(data: st.DataObject) -> None:
        method, path, operation = data.draw(st.sampled_from(operations))
        address = path
        for parameter in operation.get("parameters", ()):
            if parameter["in"] == "path":
                address = address.replace(f"{{{parameter['name']}}}", data.draw(st.sampled_from(places) | TEXTS))
        address = address.encode(errors="replace").decode()  # as servers decode what is no text
        content = operation.get("requestBody", {}).get("content", {})
        schema = content.get("application/json", {}).get("schema")
        body = (
            None
            if schema is None
            else json.dumps(data.draw(values(schema, document) if data.draw(st.integers(0, 4)) else VALUES)).encode()
        )
        if "application/octet-stream" in content:
            body = data.draw(st.binary(max_size=20))
        last = data.draw(st.sampled_from([None, "0", "9" * 40, "x"]))
        reply = here.page.ask(method.upper(), address, data=body, last_event_id=last)
        assert reply.status < 500 and {str(reply.status), "405"} & operation["responses"].keys(), (address, body, reply)
        if reply.status >= 400:
            assert reply.json.keys() == {"error", "code"} and "\n" not in reply.json["error"]
            assert str(here.studio.root.folder) not in reply.json["error"]

    holds()
