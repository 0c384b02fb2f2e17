"""What an organiser asks of a running collector: how it stands, open, close, export, another token."""

from __future__ import annotations

import csv
import io
import json
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from graphveil.collection.desk import Desk
from graphveil.collection.export.export import read_export
from graphveil.collection.service.limits import Buckets
from graphveil.collection.service.service import Collector
from graphveil.collection.store.store import hashed
from graphveil.collection.task.declare import new_key
from graphveil.errors import InputError
from tests.collection.collections import key
from tests.collection.test_desk import drafted, enrolled, ready, sent
from tests.collection.test_drafts import SUBJECT
from tests.collection.test_service import JSON, fetch, fetch_json, served


@dataclass(frozen=True)
class Office:
    """A collector with the organiser's folder behind it."""

    desk: Desk
    url: str
    token: str

    def ask(self, path: str, content: object = None, *, token: str | None = None) -> tuple[int, Any]:
        """Status and answer; a POST where something is told."""
        data = None if content is None else json.dumps(content).encode()
        headers = {"Authorization": f"Bearer {self.token if token is None else token}", **JSON}
        return fetch_json(f"{self.url}/admin/{path}", data, **headers)


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return ready(tmp_path / "desk", least=2, label="1")


@contextmanager
def office_of(desk: Desk, **how: Any) -> Iterator[Office]:
    with desk.store() as store:
        token = desk.admin_token(store) or (desk.folder / "admin-token").read_text().strip()
        with served(Collector(store, desk=desk, **how)) as url:
            yield Office(desk, url, token)


@pytest.fixture
def office(desk: Desk) -> Iterator[Office]:
    with office_of(desk) as opened:
        yield opened


def test_a_collection_is_run_from_the_page_alone(
    office: Office, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    joined = [enrolled(office.desk, number) for number in range(3)]
    assert office.ask("open", {})[1]["epoch"] == 1
    assert [sent(office.desk, number, joined[number]) for number in (0, 2)] == [["accepted"]] * 2
    status, answer = office.ask("status")
    assert (status, answer["people"], answer["enrolled"], answer["received"], answer["least"]) == (200, 3, 3, 2, 2)
    assert answer["open"] and answer["answered"] == 0 and sum(hour["reports"] for hour in answer["hours"]) == 2
    assert all(hour["hour"] % 3600 == 0 for hour in answer["hours"])
    with office.desk.store() as store:
        assert answer["guarantee"] == list(store.task().guarantee)
    assert answer["opens"] < answer["now"] < answer["closes"]
    frozen = office.ask("close", {})[1]["hash"]
    assert office.ask("status")[1]["epochs"] == [frozen]
    # What a process left that was killed in an export is swept by the next one.
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    (left := office.desk.folder / f".export.partial-{ended.pid}-0123abcd").mkdir()
    status, answer = office.ask("export", {"folder": "collected"})
    assert status == 200 and answer["answered"] == 2 and not left.exists()
    folder = office.desk.folder / "collected"
    assert answer["folder"] == str(folder) and answer["train"][0].startswith(f"graphveil train label-pool {folder}")
    assert read_export(folder).bodies.numbers.tolist() == [0, 2]
    before = sorted(path.name for path in office.desk.folder.iterdir())
    packing: list[int] = []
    pack = zipfile.ZipFile.write

    def watched(file: zipfile.ZipFile, name: Path, *args: Any) -> None:
        packing.append(Path(str(file.filename)).parent.stat().st_mode & 0o077)
        pack(file, name, *args)

    monkeypatch.setattr(zipfile.ZipFile, "write", watched)
    status, packed, headers = fetch(f"{office.url}/admin/export", Authorization=f"Bearer {office.token}")
    assert (status, headers["content-type"]) == (200, "application/zip") and headers["cache-control"] == "no-store"
    zipfile.ZipFile(io.BytesIO(packed)).extractall(tmp_path)
    assert read_export(tmp_path / "collected").bodies.numbers.tolist() == [0, 2]
    # Nobody else on the machine can look into it, not even while it is packed.
    assert set(packing) == {0}
    # A download leaves nothing behind.
    assert sorted(path.name for path in office.desk.folder.iterdir()) == before


def test_who_leaves_everything_out_counts_towards_nothing(office: Office) -> None:
    """As an export counts: of a least number of two, two reports that say nothing are none."""
    joined = [enrolled(office.desk, number) for number in range(3)]
    office.ask("open", {})
    for number, label, received, empty in ((0, "", 0, 1), (1, "left", 1, 1), (2, "", 1, 2)):
        assert sent(office.desk, number, joined[number], label=label) == ["accepted"]
        for standing in (office.ask("status")[1], office.desk.status()):
            assert (standing["received"], standing["empty"]) == (received, empty)
        assert office.ask("expected")[1]["answered"] == received
    office.ask("close", {})
    assert office.ask("status")[1]["answered"] == 1
    assert "1 person has answered" in office.ask("export", {"folder": "out"})[1]["detail"]
    # The last report of each counts: who answers now does, and who answered before and says nothing now does not.
    office.ask("open", {})
    for number, label in ((0, "left"), (1, ""), (2, "right")):
        assert sent(office.desk, number, joined[number], label=label) == ["accepted"]
    office.ask("close", {})
    assert office.ask("status")[1]["answered"] == 2
    assert office.ask("export", {"folder": "out"})[1]["answered"] == 2


def test_what_cannot_be_done_says_why(office: Office) -> None:
    refused = [
        ("open", {}, "nobody has enrolled"),
        ("close", {}, "no epoch is open"),
        ("export", {"folder": "out"}, "no epoch is closed"),
        ("export", {"folder": "database"}, "a name that the collection's folder uses itself"),
    ]
    for path, content, said_why in refused:
        status, answer = office.ask(path, content)
        assert (status, answer["code"]) == (409, "not-now") and said_why in answer["detail"]
    joined = enrolled(office.desk, 1)
    office.ask("open", {})
    assert "epoch 1 is open" in office.ask("open", {})[1]["detail"]
    assert sent(office.desk, 1, joined) == ["accepted"]
    office.ask("close", {})
    # One report of a least number of two: neither a folder nor a file comes out.
    for content in ({"folder": "out"}, None):
        assert "1 person has answered" in office.ask("export", content)[1]["detail"]
    assert not [path for path in office.desk.folder.iterdir() if path.is_dir()]


def test_without_the_key_the_command_is_told(office: Office, tmp_path: Path) -> None:
    enrolled(office.desk, 0)
    elsewhere = tmp_path / "stick" / "organiser.key"
    elsewhere.parent.mkdir()
    (office.desk.folder / "organiser.key").rename(elsewhere)
    assert office.ask("status")[1]["key"] is False
    status, answer = office.ask("open", {})
    assert (status, answer["code"]) == (409, "no-key")
    assert answer["command"] == f"graphveil collect open {office.desk.folder} --key organiser.key"
    new_key(tmp_path / "other")
    with pytest.raises(InputError, match="not the one that signed"):
        office.desk.open(tmp_path / "other")
    assert office.desk.open(elsewhere)["epoch"] == 1


def test_requests_that_cannot_be_read_are_problems(office: Office) -> None:
    secret = "f00d" * 10
    headers = {"Authorization": f"Bearer {office.token}", **JSON}
    for data in (b"{", b"[]", json.dumps({"id": [secret]}).encode()):
        status, body, answered = fetch(f"{office.url}/admin/tokens", data, **headers)
        assert (status, json.loads(body)["code"]) == (400, "bad-request")
        assert answered["content-type"] == "application/problem+json" and secret not in body.decode()
    # Neither text nor JSON, and texts that no database takes.
    for wrong in (b'{"id": "\xff"}', b"[" * 60_000, b'{"id": "\\ud800"}', b'{"id": "a\\u0000b"}', b"\xff\xfe{}"):
        for path in ("admin/tokens", "admin/export", "enrolments"):
            body = wrong.replace(b"id", {"admin/tokens": b"id", "admin/export": b"folder"}.get(path, b"token"))
            status, answer = fetch_json(f"{office.url}/{path}", body, **headers)
            assert (status, answer["code"]) == (400, "bad-request"), (path, wrong[:20])
    for name in ("../out", "/tmp/out", "a/b", ".hidden", "", "x" * 65):
        status, answer = office.ask("export", {"folder": name})
        assert (status, answer["code"]) == (400, "bad-request")
    for path in ("nowhere", "admin/nowhere", "reports"):
        status, answer = fetch_json(f"{office.url}/{path}")
        assert (status, answer["code"]) == (404, "not-found")


def test_every_request_asks_for_the_token(office: Office) -> None:
    documented = fetch_json(f"{office.url}/openapi.json")[1]["paths"]
    doors = [(path, method) for path, methods in documented.items() for method in methods if path.startswith("/admin/")]
    assert len(doors) == 7
    for path, method in doors:
        data = b"{}" if method == "post" else None
        assert fetch_json(f"{office.url}{path}", data, **JSON)[1]["code"] == "not-admitted"


def test_wrong_tokens_are_slowed_down_and_keep_nobody_out(desk: Desk) -> None:
    now = [0.0]
    with office_of(desk, wrong_tokens=Buckets(0.1, 3.0, clock=lambda: now[0])) as office:
        answers = [office.ask("status", token=f"guess {number}")[1]["code"] for number in range(5)]
        assert answers == ["not-admitted"] * 3 + ["too-often"] * 2
        # Strangers behind the organiser's address: who has the token is never slowed down.
        assert [office.ask("status")[0] for _ in range(5)] == [200] * 5
        assert office.ask("status", token="another guess")[1]["code"] == "too-often"
        now[0] = 10.0
        assert office.ask("status", token="another guess")[1]["code"] == "not-admitted"


def test_a_token_that_agrees_in_part_is_none(office: Office) -> None:
    """A guess whose hash begins as the right one does, which is all that a comparison in part would see."""
    with office.desk.store() as store:
        stored = store.setting("admin")
    assert stored is not None and hashed(office.token.encode()) == stored
    near = next(guess for guess in map(str, count()) if hashed(guess.encode())[:2] == stored[:2])
    assert office.ask("status", token=near)[1]["code"] == "not-admitted"


def tokens(desk: Desk) -> dict[str, str]:
    with (desk.folder / "tokens.csv").open(newline="") as file:
        return {row["id"]: row["token"] for row in csv.DictReader(file)}


def test_a_lost_token_is_replaced_once_and_never_for_a_second_device(tmp_path: Path, url: str) -> None:
    desk = drafted(tmp_path / "desk", label="1")
    desk.sign(database=url)
    desk.enrol()
    lost, *_, joined = SUBJECT.ids
    old = tokens(desk)[lost]
    enrolled(desk, 2)
    with office_of(desk) as office:
        status, answer = office.ask("tokens", {"id": lost})
        assert status == 200 and answer["id"] == lost and answer["token"] != old

        def enrol(token: str) -> tuple[int, Any]:
            enrolment = {"token": token, "key": key(7).hex()}
            return fetch_json(f"{office.url}/enrolments", json.dumps(enrolment).encode(), **JSON)

        assert enrol(old)[1]["code"] == "bad-token"
        assert enrol(answer["token"]) == (200, {"number": 0, "joined": 1})
        # Both have a device now: a second one would draw noise anew.
        for person in (lost, joined):
            assert "has enrolled a device already" in office.ask("tokens", {"id": person})[1]["detail"]
        assert "nobody has the id 'nobody'" in office.ask("tokens", {"id": "nobody"})[1]["detail"]
