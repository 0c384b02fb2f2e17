"""An organiser's folder beside either database, and the collector on a port with TLS."""

from __future__ import annotations

import csv
import logging
import os
import threading
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from graphveil.collection.desk import RESERVED_NAMES, Desk
from graphveil.collection.export.export import read_export
from graphveil.collection.service.intake import Intake
from graphveil.collection.service.serving import Place, listening, server_of
from graphveil.collection.store.frozen import Last, Row
from graphveil.collection.store.store import Store, hashed
from graphveil.collection.store.tables import opened
from graphveil.collection.task.declare import Prices, new_key
from graphveil.collection.task.drafts import write_draft
from graphveil.collection.task.subject import Subject
from graphveil.device import Opening, Report, answer
from graphveil.device.wire import report
from graphveil.errors import DataError, InputError
from tests.collection.collections import begun, key, secret
from tests.collection.test_drafts import SUBJECT
from tests.on_device.signing import label
from tests.waiting import in_threads

TYPED = {
    "organiser": "me", "purpose": "p", "contact": "c", "opens": "2026-01-01", "closes": "2036-01-01", "least": 1,
}  # fmt: skip


def drafted(folder: Path, *, subject: Subject = SUBJECT, **more: str | int) -> Desk:
    """A folder with a draft."""
    folder.mkdir(exist_ok=True)
    prices = {name: str(more.pop(name)) for name in ("features", "label", "links", "degree") if name in more}
    write_draft(folder, subject, {**TYPED, **more}, Prices(**prices))
    return Desk(folder)


def ready(folder: Path, *, subject: Subject = SUBJECT, **more: str | int) -> Desk:
    """A folder whose task is signed and whose tokens are written."""
    desk = drafted(folder, subject=subject, **more)
    desk.sign()
    desk.enrol()
    return desk


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return drafted(tmp_path / "desk", label="1")


def enrolled(desk: Desk, number: int) -> int:
    """Enrol a person with the token of the folder; their first epoch."""
    with desk.store() as store, (desk.folder / "tokens.csv").open(newline="") as file:
        token = list(csv.DictReader(file))[number]["token"]
        who = store.enrol(store.task(), bytes.fromhex(token), key(number))
    assert who is not None and who.number == number
    return who.joined


def report_of(store: Store, number: int, joined: int, values: Mapping[str, object]) -> Report:
    """What a person's device sends."""
    task = store.task()
    opening = Opening.of(store.setting("opening") or b"", task)
    body = answer(task, task.person(number, opening.nonce(joined)), values, secret(number)).body
    return report(task.hash, opening.epoch, body, secret(number), key(number))


def sent(desk: Desk, number: int, joined: int, label: str = "right") -> list[str]:
    """Answer with a label; with an empty one nothing is answered."""
    with desk.store() as store:
        sends = report_of(store, number, joined, {"label": label} if label else {})
        return Intake(store, store.task()).take([sends])


def test_no_epoch_opens_after_the_window(desk: Desk) -> None:
    """Devices would refuse it, or pay for a report that nobody takes."""
    desk.sign()
    desk.enrol()
    enrolled(desk, 0)
    with desk.store() as store:
        closes = store.task().closes
    with pytest.raises(InputError, match=r"the task closed on 2036-01-01 00:00 UTC"):
        desk.open(clock=lambda: closes)
    assert desk.status()["epoch"] == 0
    assert desk.open(clock=lambda: closes - 1)["epoch"] == 1


def test_two_first_starts_share_one_token_which_is_made_once(desk: Desk, url: str) -> None:
    """Both have seen that there is none before either makes one."""
    desk.sign(database=url)
    started, tokens = threading.Barrier(2), []

    def start(_: int) -> None:
        with desk.store() as store:
            seen = store.setting

            def setting(name: str) -> bytes | None:
                value = seen(name)
                if name == "admin":
                    started.wait(10.0)
                return value

            store.setting = setting  # type: ignore[method-assign]
            tokens.append(desk.admin_token(store))

    with in_threads(start, range(2)):
        pass
    with desk.store() as store:
        assert tokens == [(desk.folder / "admin-token").read_text().strip()] * 2 and desk.admin_token(store) is None
        assert store.setting("admin") == hashed(str(tokens[0]).encode())
    assert (desk.folder / "admin-token").stat().st_mode & 0o777 == 0o600


def test_a_database_is_its_owners_alone_wherever_it_lies(desk: Desk, tmp_path: Path) -> None:
    """Outside the folder, under the usual umask, and where the file was there and open to others."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir(mode=0o755)
    file, before = elsewhere / "other.db", os.umask(0o022)
    try:
        file.touch(mode=0o644)
        desk.sign(database=f"sqlite:///{file}")
        with desk.store() as store:
            store.keep("a", b"b")
            modes = {path.name: path.stat().st_mode & 0o777 for path in elsewhere.iterdir()}
    finally:
        os.umask(before)
    assert modes == dict.fromkeys(("other.db", "other.db-wal", "other.db-shm"), 0o600)


@pytest.fixture
def two(desk: Desk, url: str) -> Desk:
    """Two have enrolled, in either database."""
    desk.sign(database=url)
    desk.enrol()
    assert [enrolled(desk, number) for number in range(2)] == [1, 1]
    return desk


def round_of(desk: Desk, number: int, out: Path | None = None) -> None:
    """A round in which one person answers, and its export."""
    desk.open()
    assert sent(desk, number, 1) == ["accepted"]
    desk.close()
    if out is not None:
        desk.export(out)


def test_nothing_is_scrubbed_that_an_export_does_not_keep(two: Desk, tmp_path: Path) -> None:
    round_of(two, 0, tmp_path / "one")
    round_of(two, 1)
    # The second epoch is in no export yet.
    with pytest.raises(InputError, match="other reports than those"):
        two.scrub(tmp_path / "one")
    two.export(tmp_path / "two")
    assert two.scrub(tmp_path / "two")["forgotten"] == 2
    with pytest.raises(InputError, match="scrubbed"):
        two.export(tmp_path / "three")
    assert read_export(tmp_path / "two").bodies.numbers.tolist() == [0, 1]


def test_what_was_scrubbed_is_asked_nothing_more(two: Desk, tmp_path: Path) -> None:
    """An export holds all epochs or none: later reports would be acknowledged, paid for, and never come out."""
    round_of(two, 0, tmp_path / "out")
    assert two.status()["scrubbed"] is False
    two.scrub(tmp_path / "out")
    assert two.status()["scrubbed"] is True
    with pytest.raises(InputError, match="this collection was scrubbed; sign another task: `graphveil collect init`"):
        two.open()
    assert two.status()["epoch"] == 1
    # Again, where the first time did not get to its end.
    assert two.scrub(tmp_path / "out")["forgotten"] == 0


def test_nothing_is_scrubbed_while_an_epoch_is_open(two: Desk, tmp_path: Path) -> None:
    round_of(two, 0, tmp_path / "one")
    two.open()
    with pytest.raises(InputError, match="epoch 2 is open, and its reports are in no export; close it and exp"):
        two.scrub(tmp_path / "one")
    assert sent(two, 0, 1, label="left") == ["accepted"]
    two.close()
    two.export(tmp_path / "two")
    assert two.scrub(tmp_path / "two")["forgotten"] == 2


def test_no_epoch_opens_while_bodies_are_forgotten(url: str) -> None:
    """Another process opens one after the reports were compared: it waits, and is refused."""
    running = begun(url, label())
    assert running.intake.take([running.report(number, {"label": "sad"}) for number in range(5)]) == ["accepted"] * 5
    running.store.close_epoch()

    class Slow(Last):
        def matches(self, rows: Iterator[Row]) -> bool:
            opening.append(pool.submit(other.open_epoch, b"n" * 16))
            time.sleep(0.3)
            return super().matches(rows)

    other, opening = Store(opened(url)), list[Future[int]]()
    with ThreadPoolExecutor(1) as pool:
        assert running.store.scrub(Slow(**vars(running.store.frozen()[0]))) == 5
        with pytest.raises(InputError, match="was scrubbed"):
            opening[0].result()
    assert running.store.epoch_count() == 1
    other.engine.dispose()


@pytest.mark.parametrize("name", [*sorted(RESERVED_NAMES), "Database", "task.json.unfinished"])
def test_no_export_takes_a_name_of_the_folder(name: str, desk: Desk, tmp_path: Path) -> None:
    desk.sign()
    desk.enrol(tmp_path / "tokens.csv")
    (tmp_path / "link").symlink_to(desk.folder)
    for out in (desk.folder / name, tmp_path / "link" / name):
        with pytest.raises(InputError, match=f"{name} is a name that"):
            desk.export(out)
    # Made by an earlier version, or by hand: not the address of a database.
    (desk.folder / "database").mkdir(exist_ok=True)
    assert desk.status()["people"] == 3


#: What an export may have lost or changed, of each of its arrays.
SPOILED = {
    "rows": lambda arrays: {name: rows[:1] for name, rows in arrays.items()},
    "numbers": lambda arrays: {**arrays, "numbers": arrays["numbers"] + np.array([0, 1])},
    "epochs": lambda arrays: {**arrays, "epochs": arrays["epochs"] * 0 + 1},
    "joined": lambda arrays: {**arrays, "joined": arrays["joined"] * 0 + 2},
    "bodies": lambda arrays: {**arrays, "bodies": arrays["bodies"] ^ np.uint8(32)},
}


def test_nothing_is_scrubbed_by_an_export_that_lost_or_changed_a_report(two: Desk, tmp_path: Path) -> None:
    round_of(two, 0)
    round_of(two, 1, tmp_path / "out")
    with two.store() as store:
        whole = store.frozen()[0]
        for spoil in SPOILED.values():
            with pytest.raises(InputError, match="other reports than those"):
                store.scrub(replace(whole, **spoil(vars(whole))))
            assert len(store.frozen()[0].bodies) == 2
        np.savez(tmp_path / "out" / "reports.npz", **SPOILED["rows"](vars(whole)))
        with pytest.raises(DataError, match="export the collection again"):
            two.scrub(tmp_path / "out")
        assert store.scrub(whole) == 2


def test_an_address_that_cannot_be_had_is_refused() -> None:
    with listening(Place(port=0)) as own:
        host, used = own.getsockname()
        # Nobody beyond this machine is listened to unless the organiser says so.
        assert host == "127.0.0.1" and Place().is_local and not Place("0.0.0.0").is_local
        for place in (Place(port=used), Place("nowhere.invalid")):
            with pytest.raises(InputError, match=f"cannot listen at {place.host}"), listening(place):
                pass
    file = Path("a")
    for place, message in ((Place(certificate=file, key=file), "is no file"), (Place(key=file), "needs both files")):
        with pytest.raises(InputError, match=message):
            place.require_files()


def test_a_server_closes_no_handler_of_another_library(desk: Desk) -> None:
    """Some libraries' handlers close the stream that they write to, which is that of the terminal."""
    from graphveil.collection.service.service import Collector

    ended: list[str] = []
    (other := logging.Handler()).close = lambda: ended.append("closed")  # type: ignore[method-assign]
    desk.sign()
    with desk.store() as store:
        server_of(Collector(store), Place(port=0))
    assert not ended, other


def test_a_key_of_ones_own_signs_the_task_and_its_openings(desk: Desk, tmp_path: Path) -> None:
    own = new_key(tmp_path / "mine")
    desk.sign(key=tmp_path / "mine")
    desk.enrol()
    enrolled(desk, 1)
    desk.open()
    with desk.store() as store:
        task = store.task()
        assert task.key == own.public_key().public_bytes_raw()
        # Signed by another key it would be refused by every device.
        assert Opening.of(store.setting("opening") or b"", task).epoch == 1
    assert (desk.folder / "organiser.key").stat().st_mode & 0o077 == 0
