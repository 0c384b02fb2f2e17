"""The collector over HTTP, as devices and strangers meet it: a real server on a loopback port."""

from __future__ import annotations

import asyncio
import json
import logging
import socket
import threading
import urllib.error
import urllib.request
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import uvicorn

from graphveil.collection.service.answers import STATUS
from graphveil.collection.service.intake import ReportWriter
from graphveil.collection.service.limits import Buckets
from graphveil.collection.service.service import Collector, room_at
from graphveil.collection.service.serving import Place, server_of
from graphveil.device.__main__ import main
from tests.collection.collections import PEOPLE, Collection, begun, key, token, url_of
from tests.collection.listening import ran, served
from tests.waiting import until

JSON = {"Content-Type": "application/json"}


def fetch(url: str, data: bytes | None = None, **headers: str) -> tuple[int, Any, Any]:
    """Status, what is said, headers."""
    request = urllib.request.Request(url, data, headers)
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.status, answer.read(), answer.headers
    except urllib.error.HTTPError as error:
        return error.code, error.read(), error.headers


def fetch_json(url: str, data: bytes | None = None, **headers: str) -> tuple[int, Any]:
    """Status, and the value of the JSON."""
    status, body, _ = fetch(url, data, **headers)
    return status, json.loads(body)


@pytest.fixture
def running(tmp_path: Path) -> Collection:
    return begun(url_of(tmp_path), enrolled=PEOPLE - 1)


def test_a_device_is_enrolled_and_reports(running: Collection) -> None:
    with served(Collector(running.store)) as url:
        assert fetch(f"{url}/task")[1] == running.task.data
        ids = [json.loads(line) for line in fetch(f"{url}/ids")[1].splitlines()]
        assert ids == [f"person {number}" for number in range(PEOPLE)]
        assert fetch_json(f"{url}/opening")[0] == 404
        running.store.keep("opening", b"signed")
        assert fetch(f"{url}/opening")[1] == b"signed"
        last = PEOPLE - 1
        enrolment = json.dumps({"token": token(last).hex(), "key": key(last).hex()}).encode()
        enrolled = {"number": last, "joined": 2}
        for _ in range(2):
            assert fetch_json(f"{url}/enrolments", enrolment, **JSON) == (200, enrolled)
        first, two = running.report(0, {"label": "sad"}).to_bytes(), running.report(1, {}).to_bytes()
        assert fetch_json(f"{url}/reports", first) == (201, {"answers": ["accepted"]})
        assert fetch_json(f"{url}/reports", first) == (200, {"answers": ["again"]})
        answers = {"answers": ["again", "accepted", "bad-version"]}
        assert fetch_json(f"{url}/reports", first + two + b"\x01" * 200)[1] == answers
        until(lambda: running.store.refusals().get("bad-version") == 1)
        assert b"graphveil_received 2\n" in fetch(f"{url}/metrics")[1]
        assert fetch_json(f"{url}/epoch") == (200, {"epoch": 1, "open": True, "until": running.task.closes})
        assert fetch_json(f"{url}/heartbeat") == (200, {"alive": True})
        assert fetch_json(f"{url}/version")[1]["standard"] == 2


def test_refusals_are_problems_with_a_code(running: Collection) -> None:
    with served(Collector(running.store)) as url:
        right = running.report(0, {"label": "sad"}).to_bytes()
        short = (b"", "truncated"), (b"\x01" * 10, "truncated")
        for data, code in ((right[:-1] + b"\0", "bad-tag"), *short, (b"\x01" * 200, "bad-version")):
            status, content, headers = fetch(f"{url}/reports", data)
            assert (status, json.loads(content)["code"]) == (STATUS[code], code)
            assert headers["content-type"] == "application/problem+json"
        bad = [("zz", "00" * 32, "bad-enrolment"), ("00", "00", "bad-enrolment"), ("00", "00" * 32, "bad-token")]
        for own, device_key, code in bad:
            content = {"token": own, "key": device_key}
            refusal = fetch_json(f"{url}/enrolments", json.dumps(content).encode(), **JSON)
            assert (refusal[0], refusal[1]["code"]) == (STATUS[code], code)
        for data, length in ((right * 1001, len(right) * 1001), (right, 1 << 25)):
            assert fetch(f"{url}/reports", data, **{"Content-Length": str(length)})[0] == 413
        expected = {"bad-tag": 1, "truncated": 2, "bad-version": 1, "bad-enrolment": 2, "bad-token": 1}
        # Counted by reason, written every second.
        until(lambda: running.store.refusals() == {**expected, "too-many": 1, "too-large": 1})
    assert running.store.status()["received"] == 0


def test_who_asks_too_often_or_too_slowly_is_cut_off(running: Collection) -> None:
    collector = Collector(running.store, requests=0.001, burst=3)
    with served(collector) as url:
        codes = [fetch(f"{url}/reports", running.report(n, {}).to_bytes())[0] for n in range(5)]
        assert codes == [201, 201, 201, 429, 429]
    assert running.store.refusals() == {"too-often": 2}


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("localhost:80", 200), ("127.0.0.1", 200), ("[::1]:8700", 200), ("203.0.113.9", 200), ("LOCALHOST.", 200),
        ("clubs.example", 200), ("Declared.example:443", 200), ("a.wild.example", 200), ("other.example", 421),
        ("declared.example.other.example", 421), ("a.b.wild.example", 421), ("", 421), ("[", 421), ("ü", 421),
    ],
)  # fmt: skip
def test_a_collector_is_asked_under_its_own_names(host: str, status: int, running: Collection) -> None:
    """A page whose name suddenly leads here is told nothing; the name in people's links is one of the collector's."""
    running.store.keep("url", b"https://clubs.example:8443/below")
    collector = Collector(running.store, hosts=["declared.example", "*.wild.example"])
    answers, head = [], [(b"host", host.encode())]

    async def send(message: Any) -> None:
        answers.append(message)

    async def receive() -> Any:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def ask() -> None:
        for headers in (head, [], head * 2):
            scope = {"type": "http", "method": "GET", "path": "/heartbeat", "query_string": b"", "headers": headers}
            await collector({**scope, "client": ("127.0.0.1", 1)}, receive, send)

    asyncio.run(ask())
    codes = [message["status"] for message in answers if message["type"] == "http.response.start"]
    # Neither without the header nor with two of them.
    assert codes == [status, 421, 421]


def test_strangers_cause_few_lines(running: Collection, caplog: pytest.LogCaptureFixture) -> None:
    with ran(server_of(Collector(running.store), Place())) as url:
        for _ in range(20):
            with socket.create_connection(("127.0.0.1", int(url.rpartition(":")[2])), 10) as connection:
                connection.sendall(b"nonsense\r\n\r\n")
                assert b" 400 " in connection.recv(1 << 12)
            fetch(url, None, Connection="upgrade", Upgrade="websocket")
    assert all(count <= 3 for count in Counter(record.msg for record in caplog.records).values())


def test_a_full_disk_refuses_and_recovers_by_itself(running: Collection, tmp_path: Path) -> None:
    has_room = [False]
    with served(Collector(running.store, has_room=lambda: has_room[0])) as url:
        body = running.report(0, {}).to_bytes()
        status, content, headers = fetch(f"{url}/reports", body)
        assert (status, json.loads(content)["code"], headers["retry-after"]) == (507, "disk-full", "60")
        has_room[0] = True
        assert fetch(f"{url}/reports", body)[0] == 201
    assert running.store.refusals() == {"disk-full": 1} and room_at(tmp_path)()


@pytest.mark.slow  # processes, or many people
@pytest.mark.parametrize("ours", [True, False])
def test_no_address_or_token_is_logged(ours: bool, running: Collection, caplog: pytest.LogCaptureFixture) -> None:
    """The server's own settings would write both down: what is looked for would be found."""
    collector, requests = Collector(running.store), logging.getLogger("uvicorn.access")
    theirs = uvicorn.Config(collector, log_config=None, log_level="info")
    server = server_of(collector, Place()) if ours else uvicorn.Server(theirs)
    # Heard there: a server that keeps silent leaves it cut off from all else, for those after it too.
    requests.addHandler(caplog.handler)
    with caplog.at_level(logging.DEBUG), ran(server) as url:
        fetch(f"{url}/reports", running.report(0, {}).to_bytes())
        enrolment = json.dumps({"token": token(3).hex(), "key": key(4).hex()}).encode()
        assert fetch_json(f"{url}/enrolments", enrolment, **JSON)[0] == 403
        fetch(f"{url}/reports", b"nonsense")
        fetch(f"{url}/{token(3).hex()}")
    requests.removeHandler(caplog.handler)
    logged = "".join(record.getMessage() for record in caplog.records)
    assert (token(3).hex() in logged, "127.0.0.1" in logged) == (not ours, not ours)


def test_a_group_answers_in_order_and_stops_when_too_many_wait() -> None:
    batches: list[int] = []
    release = threading.Event()

    def take(reports: Any) -> list[str]:
        release.wait()
        batches.append(len(reports))
        return [str(report) for report in reports]

    async def asks() -> list[list[str] | None]:
        writer = ReportWriter(take, most=9_000)
        first = asyncio.ensure_future(writer.submit([0], 400))  # type: ignore[list-item]
        await asyncio.sleep(0.05)
        later = [asyncio.ensure_future(writer.submit([n] * 3, 1_200)) for n in (1, 2, 3)]  # type: ignore[list-item]
        await asyncio.sleep(0.05)
        refused = await writer.submit([4], 400)  # type: ignore[list-item]
        release.set()
        answers = [await task for task in (first, *later)]
        await asyncio.to_thread(writer.close)
        return [*answers, refused, await writer.submit([5], 400)]  # type: ignore[list-item]

    assert asyncio.run(asks()) == [["0"], ["1"] * 3, ["2"] * 3, ["3"] * 3, None, None]
    assert batches == [1, 9]


def test_a_group_answers_when_its_reports_are_stored_and_not_before() -> None:
    stored = threading.Event()

    def take(reports: Any) -> list[str]:
        stored.wait()
        return ["accepted"] * len(reports)

    async def asks() -> None:
        writer = ReportWriter(take)
        sent = [asyncio.ensure_future(writer.submit([n] * 2, 9)) for n in range(3)]  # type: ignore[list-item]
        done, _ = await asyncio.wait(sent, timeout=0.2, return_when=asyncio.FIRST_COMPLETED)
        stored.set()
        assert await asyncio.gather(*sent) == [["accepted"] * 2] * 3
        await asyncio.to_thread(writer.close)
        assert not done, "answered while nothing was stored"

    asyncio.run(asks())


def test_who_lost_their_secret_is_not_enrolled_anew(
    running: Collection, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A folder and a key store that were wiped: the token has been spent for the key that went with them."""
    words = (token(PEOPLE - 1).hex(), "--task", running.task.hash.hex(), "--as", f"person {PEOPLE - 1}")
    with served(Collector(running.store)) as url:
        assert main(["--folder", str(tmp_path / "first"), "enrol", url, *words]) == 0
        assert main(["--folder", str(tmp_path / "wiped"), "enrol", url, *words]) == 2
    assert "bad-token" in capsys.readouterr().err


def test_buckets_fill_at_their_rate_and_the_oldest_is_forgotten_first() -> None:
    now = [0.0]
    buckets = Buckets(2.0, 3.0, most=2, clock=lambda: now[0])
    assert [buckets.take("a") for _ in range(4)] == [True, True, True, False]
    now[0] = 0.5
    assert [buckets.take("a") for _ in range(2)] == [True, False]
    # "a" is forgotten where two others ask: its bucket is full again.
    assert buckets.take("b", 3.0) and buckets.take("c") and buckets.take("a", 3.0)
