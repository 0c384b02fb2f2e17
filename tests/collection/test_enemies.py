"""What somebody may try who knows the protocol: nothing of it is stored, told or written down."""

from __future__ import annotations

import gzip
import json
import logging
import socket
import threading
from contextlib import ExitStack
from pathlib import Path

import pytest
from sqlalchemy import select

from graphveil.collection.export.export import export
from graphveil.collection.service.door import Receive, Scope, Send
from graphveil.collection.service.service import Collector
from graphveil.collection.store.tables import ENROLMENTS
from graphveil.device.wire import report
from tests.collection.collections import Collection, begun, key, secret, stored, token
from tests.collection.postgresql import Postgres
from tests.collection.test_service import fetch, fetch_json, served
from tests.on_device.signing import label, links
from tests.waiting import in_threads

#: An address that is no other's: what is written down of it would be found.
ADDRESS = "127.0.0.77"


def talk(url: str, data: bytes, *more: bytes) -> bytes:
    """What a server says to raw bytes before it ends the connection, or is silent."""
    with socket.create_connection(("127.0.0.1", int(url.rpartition(":")[2])), 5, (ADDRESS, 0)) as connection:
        for part in (data, *more):
            connection.sendall(part)
        # It may be slow to begin, on a machine that is busy.
        connection.settimeout(5.0)
        answer = b""
        try:
            while part := connection.recv(1 << 16):
                answer += part
                connection.settimeout(1.0)
        except (TimeoutError, ConnectionError):
            pass
        return answer


def slow_reader(port: int) -> socket.socket:
    """A connection of which little is on its way at once."""
    reader = socket.socket()
    # Before it connects: what one end may send is agreed on then.
    reader.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 12)
    reader.settimeout(60.0)
    reader.connect(("127.0.0.1", port))
    return reader


def post(path: str, body: bytes, *headers: str) -> bytes:
    lines = "".join(f"{line}\r\n" for line in ("host: localhost", "connection: close", *headers))
    return f"POST {path} HTTP/1.1\r\n{lines}content-length: {len(body)}\r\n\r\n".encode() + body


def test_one_token_enrols_one_of_many_devices_at_once(url: str) -> None:
    running = begun(url, enrolled=0)
    enrolments: list[object] = []
    start = threading.Barrier(8)

    def enrol(device: int) -> None:
        start.wait()
        enrolments.append(running.store.enrol(running.task, token(3), key(100 + device)))

    with in_threads(enrol, range(8)):
        pass
    with running.store.engine.connect() as connection:
        rows = connection.execute(select(ENROLMENTS)).all()
    assert len(rows) == 1 and len([enrolment for enrolment in enrolments if enrolment is not None]) == 1


def test_requests_that_are_not_what_they_say(running: Collection) -> None:
    with served(Collector(running.store)) as url:
        body = running.report(3, {"label": "sad"}).to_bytes()
        for length, code in ((10**15, b"413"), (1 << 25, b"413")):
            begins = f"POST /reports HTTP/1.1\r\nhost: localhost\r\ncontent-length: {length}\r\n\r\n".encode()
            assert talk(url, begins, body).startswith(b"HTTP/1.1 " + code)
        assert b"413" in talk(url, post("/enrolments", bytes(1 << 17)))[:20]
        chunked = b"POST %b HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n"
        assert b"413" in talk(url, chunked % b"/enrolments", b'5\r\n{"a":\r\n')[:20]
        # A length and chunks: a proxy may believe one of them and we the other.
        both = chunked.replace(b"host: localhost", b"host: x\r\ncontent-length: 5") % b"/reports"
        assert b"400" in talk(url, both, b"0\r\n\r\n")[:20]
        bomb = gzip.compress(bytes(1 << 20))
        assert b"bad-version" in talk(url, post("/reports", bomb, "content-encoding: gzip"))
        assert b"truncated" in talk(url, post("/reports", body[:-1])) and stored(running.store) == []
        deep = post("/enrolments", b"[" * 50_000, "content-type: application/json")
        assert talk(url, deep).startswith(b"HTTP/1.1 4")
        # In chunks of any size a report is a report; a byte after it is none.
        parts = [b"%x\r\n%b\r\n" % (len(part), part) for part in (body[:1], body[1:60], body[60:])]
        assert b"accepted" in talk(url, chunked % b"/reports", *parts, b"0\r\n\r\n")
        assert b'["again","truncated"]' in talk(url, post("/reports", body + b"\1"))
        assert len(stored(running.store)) == 1 and fetch_json(f"{url}/heartbeat")[0] == 200


@pytest.mark.slow  # processes, or many people
def test_a_slow_reader_of_the_list_of_people_stops_nobody(url: str) -> None:
    """Whoever asks for everybody's id and reads none of it holds nothing that reports wait for."""
    running = begun(url, label(), links(6_000), people=6_000, enrolled=2)
    collector, ended = Collector(running.store), []

    async def watched(scope: Scope, receive: Receive, send: Send) -> None:
        await collector(scope, receive, send)
        ended.append(scope.get("path"))

    # What the system would take from the server in the readers' place is less than the list.
    with served(watched, room=1 << 12) as address, ExitStack() as readers:
        port = int(address.rpartition(":")[2])
        slow = [readers.enter_context(slow_reader(port)) for _ in range(20)]
        for reader in slow:
            reader.sendall(b"GET /ids HTTP/1.1\r\nhost: localhost\r\n\r\n")
        assert {reader.recv(12) for reader in slow} == {b"HTTP/1.1 200"}
        empty = bytes(-(-running.task.bits // 8))
        body = report(running.task.hash, 1, empty, secret(1), key(1)).to_bytes()
        assert fetch_json(f"{address}/reports", body) == (201, {"answers": ["accepted"]})
        assert ended == ["/reports"], "no reader was slow"


def test_planted_values_are_in_no_log_error_metric_or_export(
    running: Collection, request: pytest.FixtureRequest, tmp_path: Path, caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    """Through refusals, malformed requests, and statements of a database that lacks its tables."""
    said_to: list[bytes] = []
    mine, json_kind = running.report(3, {"label": "sad"}), "content-type: application/json"
    with caplog.at_level(logging.DEBUG), served(Collector(running.store)) as url:
        enrolments = [
            {"token": token(3).hex(), "key": key(103).hex()}, {"token": token(3).hex(), "key": [key(103).hex()]},
            {"token": {"a": token(3).hex()}}, {"token": token(3).hex() + "zz", "key": key(103).hex()},
        ]  # fmt: skip
        tries = [post("/enrolments", json.dumps(enrolment).encode(), json_kind) for enrolment in enrolments]
        tries += [post("/enrolments", f"not json {token(3).hex()}".encode(), json_kind)]
        tries += [post("/reports", mine.to_bytes()), post("/reports", key(3) * 9), b"GET /" + key(103).hex().encode()]
        tries += [b"POST \0 " + token(3).hex().encode() + b"\r\n\r\n", post(f"/{token(3).hex()}", b"")]
        said_to += [talk(url, request + b"\r\n\r\n") for request in tries]
        said_to += [fetch(f"{url}/metrics")[1]]
        assert (
            running.intake.take([running.report(number, {"label": "glad"}) for number in range(8)]).count("accepted")
            == 7
        )
        running.store.close_epoch()
        export(running.store, tmp_path / "out")
        said_to += [path.read_bytes() for path in (tmp_path / "out").iterdir()]
        with running.store.engine.begin() as connection:
            for table in ("reports", "enrolments"):
                connection.exec_driver_sql(f"ALTER TABLE {table} RENAME TO {table}_gone")
        for sent in (tries[0], tries[5]):
            answer = talk(url, sent)
            assert b'"code": "fault"' in answer and b"application/problem+json" in answer
            said_to.append(answer)
    written = "".join(f"{record.getMessage()} {record.exc_text or ''}" for record in caplog.records).encode()
    out, err = capfd.readouterr()
    everything = [*said_to, written, out.encode(), err.encode()]
    if running.store.engine.dialect.name == "postgresql":
        server: Postgres = request.getfixturevalue("postgres")
        everything.append(server.log)
        assert b"enrolments" in server.log  # the failing statement is there, and what it was given is not
    assert b"fault" in written
    for value in (token(3), key(103), key(3), secret(3), mine.body * 3, mine.tag, mine.enrolment):
        for form in (value, value.hex().encode(), repr(value).encode()[2:-1], value.hex().upper().encode()):
            assert not [place for place, content in enumerate(everything) if form in content], (form, value)
    assert not [content for content in everything if ADDRESS.encode() in content]
