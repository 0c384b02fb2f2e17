"""Requests that schemathesis draws from the studio's own OpenAPI document: each is answered as the document says."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from graphveil.studio.jobs import Limits
from tests.studio import program
from tests.studio.studios import HOST, Open, studio_at

pytestmark = pytest.mark.slow

#: Whatever is asked of the command: the studio's own part is under test here.
ANSWER = {
    "toml": "",
    "notes": [],
    "checked": "",
    "guarantee_sentence": "nothing",
    "parties": {},
    "method": "gap",
    "data": "town",
}
#: What opens more of a request than letters drawn blindly.
FITTING: dict[str, list[Any]] = {
    "data": ["town", "name:digits", ".", "..", "/etc", "name:../x", "a\nb", "a/\u202eb", "x" * 300],
    "method": ["lpgnn", "gap", "heterorr", "class-sums", "hidden"],
    "settings": [{"epsilon": 1}, {"epsilon_x": "inf", "hidden": 8}, {"unit": "node", "epochs": "-1"}],
    "run": ["runs/run", "town", ".."],
    "attack": ["membership", "nothing"],
    "source": ["town/nodes.csv", "sqlite:///town/nodes.csv", "postgresql://me@db/town"],
    "folder": ["town", "new", "../x"],
    "runs": [["runs/run"], ["..", "runs/run"]],
}
CHECKED = ["not_a_server_error", "status_code_conformance", "content_type_conformance", "response_schema_conformance"]
PLACES = {"path": ["runs/run", "town"], "name": ["result.json", "card.md"], "folder": ["town"], "file": ["a.csv"]}


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Open]:
    folder = tmp_path_factory.mktemp("document") / "root"
    small = Limits(1, 512, 1)
    with studio_at(folder, limits=small, program=(sys.executable, program.__file__), patience=0.1) as opened:
        for file, text in (
            *(("town/nodes.csv", "id,age\n1,2"), ("town/edges.csv", "source,target")),
            ("runs/run/result.json", "{}"),
        ):
            (folder / file).parent.mkdir(parents=True, exist_ok=True)
            (folder / file).write_text(text)
        yield opened


def test_every_request_is_answered_as_the_document_says(here: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    schemathesis: Any = pytest.importorskip("schemathesis")
    monkeypatch.setattr(here.jobs, "ask", lambda words: ANSWER)
    schema = schemathesis.openapi.from_dict(here.page.get("/openapi.json"))
    schema.app = here.page.gate
    job = here.jobs.submit("train", {"job": "train", "data": "town", "method": "gap"}, ["done"], None)
    here.ended(job.id)
    operations = [outcome.ok() for outcome in schema.get_all_operations()]
    assert len(operations) >= 18
    statuses = {operation.label: hold(here, operation, job.id) for operation in operations}
    # Each is also answered well, but where a token, a question or a job's price would have to be drawn.
    drawn_blindly = {"POST /api/session", "POST /api/queries", "POST /api/jobs", "POST /api/jobs/{id}/again"}
    assert {label for label, codes in statuses.items() if min(codes) >= 300} <= drawn_blindly, statuses


def hold(here: Open, operation: Any, job: str) -> set[int]:
    """Send requests to one operation, hold each answer against the document, and return their statuses."""
    from schemathesis import GenerationMode as modes
    from schemathesis.checks import CHECKS

    checks = CHECKS.get_by_names(CHECKED)
    headers = {"cookie": here.page.cookie, "x-csrf-token": here.page.csrf, "host": HOST}
    statuses = set[int]()

    @settings(max_examples=100, deadline=None, derandomize=True, database=None, suppress_health_check=[*HealthCheck])
    @given(st.data())
    def holds(data: st.DataObject) -> None:
        spoilt = bool(operation.body) and data.draw(st.booleans())
        case = data.draw(operation.as_strategy(modes.NEGATIVE if spoilt else modes.POSITIVE))
        fitting = not spoilt and data.draw(st.booleans())
        for name in case.path_parameters if fitting else ():
            case.path_parameters[name] = data.draw(st.sampled_from(PLACES.get(name, [job])))
        for name in {*FITTING} & {*case.body} if fitting and isinstance(case.body, dict) else ():
            case.body[name] = data.draw(st.sampled_from(FITTING[name]))
        response = case.call(headers=headers)
        case.validate_response(response, checks=checks)
        statuses.add(response.status_code)
        if response.status_code >= 400:
            error = response.json()
            assert error.keys() == {"error", "code"} and "\n" not in error["error"]
            assert str(here.studio.root.folder) not in error["error"]

    holds()
    return statuses
