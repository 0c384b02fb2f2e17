"""How often one address may ask for what is public: pages, the task, counters."""

from __future__ import annotations

import http.client
import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from graphveil.collection.service.limits import Rate
from graphveil.collection.service.service import VISIT_RATE, Collector
from graphveil.collection.store.store import hashed
from tests.collection.collections import begun, key, token, url_of
from tests.collection.listening import served
from tests.collection.test_service import JSON, fetch, fetch_json
from tests.collection.visits import Visit, running
from tests.on_device.signing import label, links
from tests.reports.browser import started

PUBLIC = ("/", "/organiser", "/assets/person.js", "/task", "/opening", "/ids", "/version", "/heartbeat", "/metrics")
CROWD = 100


def statuses(url: str, paths: Sequence[str], own: str = "127.0.0.1") -> list[int]:
    """What a client at an address is told, over one connection."""
    client = http.client.HTTPConnection(url.removeprefix("http://"), timeout=60, source_address=(own, 0))
    codes = []
    for path in paths:
        client.request("GET", path)
        answer = client.getresponse()
        answer.read()
        codes.append(answer.status)
    client.close()
    return codes


@pytest.mark.slow  # processes, or many people
def test_who_asks_for_too_much_waits(tmp_path: Path) -> None:
    collection = begun(url_of(tmp_path))
    collection.store.keep("admin", hashed(b"let me in"))
    with served(Collector(collection.store, visits=Rate(0.001, 3))) as url:
        for number, path in enumerate((*PUBLIC, "/nothing", "/openapi.json")):
            codes = statuses(url, [path] * 4, f"127.0.0.{number + 2}")
            assert [code == 429 for code in codes] == [False] * 3 + [True]
        assert 429 not in statuses(url, ["/task"] * 3)
        status, content, headers = fetch(f"{url}/task")
        assert (status, json.loads(content)["code"], headers["retry-after"]) == (429, "too-often", "10")
        # What has a limit of its own keeps it.
        assert fetch(f"{url}/reports", collection.report(0, {}).to_bytes())[0] == 201
        told_again = json.dumps({"token": token(0).hex(), "key": key(0).hex()}).encode()
        assert fetch_json(f"{url}/enrolments", told_again, **JSON)[0] == 200
        assert fetch_json(f"{url}/admin/status", Authorization="Bearer let me in")[0] == 200
    assert collection.store.refusals() == {"too-often": len(PUBLIC) + 3}


def test_a_long_list_of_ids_costs_more_visits(tmp_path: Path) -> None:
    """Of 2,500 people six; where it is longer than anybody may ask for, all that they may."""
    collection = begun(url_of(tmp_path), label(), links(2_500), people=2_500, enrolled=0)
    for burst, expected in ((13, [200, 200, 200, 429]), (2, [200, 429, 429, 429])):
        with served(Collector(collection.store, visits=Rate(0.001, burst))) as url:
            assert statuses(url, ["/ids", "/ids", "/task", "/task"]) == expected


@pytest.mark.slow
def test_a_hundred_people_behind_one_address_see_the_page(tmp_path: Path) -> None:
    """All that a browser asks for from the link to the form, as often as there are people in a crowd, at once."""
    with running(tmp_path, label()) as collection, started(tmp_path / "profile") as browser:
        visit = Visit(browser, collection)
        visit.joined()
        asks = [request.path for request in collection.recorder.seen if request.method == "GET"]
        assert {"/", "/task", "/opening", "/assets/person.js", "/assets/device.js"} <= set(asks)
        assert len(asks) * CROWD <= VISIT_RATE.burst
        codes = statuses(collection.url.replace("localhost", "127.0.0.1"), asks * (CROWD - 1))
        assert set(codes) <= {200, 404} and "too-often" not in collection.store.refusals()
