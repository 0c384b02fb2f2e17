"""Every acknowledged report is stored once, whatever is sent twice, at once, or by somebody else."""

from __future__ import annotations

import json
import multiprocessing
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from http.client import HTTPConnection
from pathlib import Path
from socket import inet_aton

import numpy as np
import pytest
from sqlalchemy import select

from graphveil.collection.export.bodies import Bodies
from graphveil.collection.service.intake import Intake, reports_in
from graphveil.collection.service.limits import Buckets
from graphveil.collection.service.service import Collector
from graphveil.collection.store.store import CheckedReport, Store
from graphveil.collection.store.tables import ENROLMENTS, PEOPLE, opened
from graphveil.device import DeviceError, Report, answer, answers, read
from graphveil.device.wire import report
from graphveil.errors import InputError
from tests.collection.collections import PEOPLE as MANY
from tests.collection.collections import Collection, begun, key, secret, stored, token, url_of
from tests.collection.listening import served
from tests.on_device.signing import degree, features, label, links, task_of


def test_a_report_is_stored_once(running: Collection) -> None:
    first, other = running.report(3, {"label": "sad"}), running.report(3, {"label": "glad", "links": [5]})
    assert running.intake.take([first]) == ["accepted"]
    assert running.intake.take([first, first]) == ["again", "again"]
    assert running.intake.take([other]) == ["conflict"]
    assert stored(running.store) == [(3, 1, first.body)]
    assert running.store.refusals() == {"conflict": 1}
    # Twice in one request is once.
    mine, yours, theirs = (running.report(number, {"label": "sad"}) for number in (1, 2, 4))
    assert running.intake.take([mine, yours, mine, running.report(1, {}), theirs]) == [
        "accepted", "accepted", "again", "conflict", "accepted",
    ]  # fmt: skip
    assert [row[0] for row in stored(running.store)] == [1, 2, 3, 4]


def test_one_person_cannot_keep_the_collector_busy(running: Collection) -> None:
    """From however many addresses: their reports are not looked at for a while, and nobody else waits."""
    now = [0.0]
    intake = replace(running.intake, limits=Buckets(1.0, 3.0, clock=lambda: now[0]))
    mine, yours = running.report(1, {"label": "sad"}), running.report(2, {"label": "sad"})
    # Who lacks the key uses up nothing.
    assert intake.take([replace(mine, tag=bytes(32))] * 9) == ["bad-tag"] * 9
    assert intake.take([mine] * 5) == ["accepted", "again", "again", "too-often", "too-often"]
    assert intake.take([mine, yours]) == ["too-often", "accepted"]
    now[0] = 1.0
    assert intake.take([mine]) == ["again"]


REFUSED: dict[str, Callable[[Collection, Report], Report]] = {
    "wrong-task": lambda running, valid: replace(valid, task=bytes(32)),
    "wrong-length": lambda running, valid: report(running.task.hash, 1, valid.body + b"\0", secret(3), key(3)),
    "unknown-enrolment": lambda running, valid: report(running.task.hash, 1, valid.body, secret(3), bytes(32)),
    "bad-tag": lambda running, valid: replace(valid, tag=bytes(32)),
    "impossible": lambda running, valid: report(running.task.hash, 1, b"\xff" * len(valid.body), secret(3), key(3)),
}


@pytest.mark.parametrize("code", REFUSED)
def test_what_is_refused_is_not_stored(code: str, running: Collection) -> None:
    right = running.report(3, {"label": "sad"})
    wrong, neighbour = REFUSED[code](running, right), running.report(4, {})
    # In one request with right ones, which stand.
    assert running.intake.take([wrong, neighbour, right]) == [code, "accepted", "accepted"]
    assert running.store.refusals() == {code: 1}


def test_a_tag_of_another_person_is_refused(running: Collection) -> None:
    forged = replace(running.report(4, {}), enrolment=running.report(3, {}).enrolment)
    assert running.intake.take([forged]) == ["bad-tag"] and stored(running.store) == []


def test_nothing_is_taken_before_an_epoch_or_after_it(running: Collection) -> None:
    assert running.intake.take([running.report(0, {"label": "sad"})]) == ["accepted"]
    epoch, digest = running.store.close_epoch()
    late, again = running.report(1, {"label": "sad"}), running.report(0, {"label": "sad"})
    # A late report never changes what is frozen; one that stands is acknowledged for ever.
    assert running.intake.take([late, again]) == ["closed", "again"]
    assert (epoch, len(digest), len(stored(running.store))) == (1, 32, 1)
    with pytest.raises(InputError, match="no epoch is open"):
        running.store.close_epoch()
    joined = running.store.enrol(running.task, token(11), key(11))
    assert joined is not None and joined.joined == 1
    assert running.store.open_epoch(bytes(16)) == 2
    assert running.intake.take([late, again]) == ["closed", "again"]
    assert [row[:2] for row in stored(running.store)] == [(0, 1)]


def test_a_report_that_was_held_back_counts_in_no_later_epoch(running: Collection) -> None:
    """Whoever carries reports hands an old one in later: it is refused, and its sender's own report is taken."""
    late, sent = running.report(3, {"label": "sad"}), running.report(4, {"label": "sad"})
    assert running.intake.take([sent]) == ["accepted"]
    later = running.after(bytes(16))
    own = later.report(3, {"label": "glad"})
    assert later.intake.take([late]) == ["closed"]
    assert later.intake.take([late, own, sent]) == ["closed", "accepted", "again"]
    assert later.intake.take([late, own]) == ["closed", "again"]
    third = later.after(bytes([3] * 16))
    # Known by its bytes in whichever epoch it was sent; other bytes of a closed epoch are too late.
    assert third.intake.take([sent, late, own, running.report(4, {"label": "glad"})]) == [
        "again", "closed", "again", "closed",
    ]  # fmt: skip
    assert stored(running.store) == [(3, 2, own.body), (4, 1, sent.body)]


def test_a_report_of_an_epoch_that_has_not_opened_waits(running: Collection) -> None:
    """A database from before an epoch opened, or a process that hears of it a moment later."""
    who, empty = running.devices[3], bytes(-(-running.task.bits // 8))
    early, never = (report(running.task.hash, epoch, empty, who.secret, who.key) for epoch in (2, 3))
    assert running.intake.take([early, never]) == ["not-open", "bad-tag"]
    assert running.after(bytes(16)).intake.take([early, never]) == ["accepted", "not-open"]


def test_an_epoch_that_changes_meanwhile_is_seen(running: Collection) -> None:
    """Checked while one epoch was open, stored when the next one was: it was made for the first."""
    sent = CheckedReport(3, 1, bytes(16), b"\0")
    running.store.close_epoch()
    running.store.open_epoch(bytes(16))
    assert running.store.add([sent]) == ["closed"]
    assert running.store.add([replace(sent, epoch=2), sent]) == ["accepted", "closed"]


def test_the_window_of_the_task_is_kept_by_the_collectors_clock(running: Collection) -> None:
    """What stands is acknowledged at any time, and nothing new outside the window, to the second."""
    first, late = running.report(0, {"label": "sad"}), running.report(1, {"label": "sad"})
    opens, closes = running.task.opens, running.task.closes
    at = {"before": opens - 1, "first": opens, "last": closes - 1, "after": closes}
    take = {name: replace(running.intake, clock=lambda now=now: now).take for name, now in at.items()}
    assert take["before"]([first]) == ["not-open"]
    assert take["first"]([first]) == ["accepted"]
    assert take["after"]([first, late]) == ["again", "closed"]
    assert take["last"]([late]) == ["accepted"]
    assert take["before"]([late]) == ["again"]


def test_who_enrolled_later_takes_part_later(url: str) -> None:
    running = begun(url, enrolled=11)
    late = running.store.enrol(running.task, token(11), key(11))
    assert late is not None and late.joined == 2
    sent = report(running.task.hash, 1, bytes(-(-running.task.bits // 8)), secret(11), key(11))
    assert running.intake.take([sent]) == ["not-open"]


def test_a_token_enrols_one_device(running: Collection) -> None:
    store, task = running.store, running.task
    assert store.enrol(task, token(3), key(3)) == store.enrol(task, token(3), key(3)) is not None
    assert store.enrol(task, token(3), key(4)) is None and store.enrol(task, b"another", key(3)) is None
    # With one key for two people, one of them would speak for the other.
    assert store.enrol(task, token(4), key(3)) is None
    with store.engine.connect() as connection:
        assert not [row for row in connection.execute(select(PEOPLE)) if token(row.number) in bytes(row.token)]
        assert len(connection.execute(select(ENROLMENTS)).all()) == MANY


def test_a_database_from_before_an_enrolment_takes_the_same_device_again(tmp_path: Path) -> None:
    """A backup of before: the same token and key are the same person again, and their report is taken."""
    running = begun(url_of(tmp_path), enrolled=3)
    own_report = running.report(2, {"label": "sad"})
    assert running.intake.take([own_report]) == ["accepted"]
    (earlier := tmp_path / "earlier").mkdir()
    store = Store(opened(url_of(earlier)))
    store.begin(running.task, ((f"person {number}", token(number)) for number in range(running.task.people)))
    assert Intake(store, running.task).take([own_report]) == ["unknown-enrolment"]
    who = store.enrol(running.task, token(2), key(2))
    assert who is not None and (who.number, who.joined) == (2, 1)
    store.open_epoch(running.opening.nonces[0])
    assert Intake(store, running.task).take([own_report]) == ["accepted"]
    store.engine.dispose()


def test_a_collection_begins_once(running: Collection) -> None:
    with pytest.raises(InputError, match="holds a collection already"):
        running.store.begin(running.task, [])
    with pytest.raises(InputError, match="of another kind"):
        opened("mysql://here")


def test_a_body_of_many_is_read_to_where_it_breaks(running: Collection) -> None:
    each = [running.report(number, {"label": "sad"}) for number in range(3)]
    data = b"".join(sent.to_bytes() for sent in each)
    assert reports_in(data, 3) == (each, None)
    assert reports_in(data, 2) == (each[:2], "too-many")
    assert reports_in(data[:-1], 3) == (each[:2], "truncated")
    assert reports_in(data + b"\x01" * 200, 9) == (each, "bad-version")


def test_many_bodies_are_judged_as_one_is() -> None:
    """Random bytes and bodies with one bit changed: possible here where the device's own reading takes them."""
    task = task_of(label(), links(MANY, mode="lower"), degree(MANY), features())
    randomness = np.random.default_rng(0)
    numbers = randomness.integers(MANY, size=400)
    people, values = [task.person(int(number), bytes(16)) for number in numbers], {"label": "sad", "links": []}
    bodies = [answer(task, person, values, secret(person.number)).body for person in people]
    for place in range(0, 400, 2):
        bits = np.unpackbits(np.frombuffer(bodies[place], np.uint8))
        bits[randomness.integers(len(bits))] ^= 1
        bodies[place] = np.packbits(bits).tobytes()
    # A mark in bits behind the last field, which nobody reads.
    spare = 8 * len(bodies[0]) - task.bits
    bodies[1 : 1 + 2 * spare : 2] = [bodies[1][:-1] + bytes([bodies[1][-1] | 1 << bit]) for bit in range(spare)]
    possible_bodies = Bodies.of(task, bodies, numbers).possible()
    for body, person, possible in zip(bodies, people, possible_bodies, strict=True):
        try:
            answers(task, person, body)
        except DeviceError:
            assert not possible
        else:
            assert possible
    assert 200 <= possible_bodies.sum() < 400


def _sends(url: str, data: bytes, times: int, out: str) -> None:
    store = Store(opened(url))
    intake, codes = Intake(store, store.task()), Counter[str]()
    reports = reports_in(data, 100)[0]
    for _ in range(times):
        for sent in reports:
            codes.update(intake.take([sent]))
    Path(out).write_text(json.dumps(codes))


def test_two_processes_store_each_person_once(running: Collection, url: str, tmp_path: Path) -> None:
    """The same people, other reports, at once: of each person one report stands, by the constraint."""
    first = b"".join(running.report(number, {"label": "sad"}).to_bytes() for number in range(MANY))
    other = b"".join(running.report(number, {"label": "glad", "links": []}).to_bytes() for number in range(MANY))
    context = multiprocessing.get_context("spawn")
    sends = (("a", first), ("b", other), ("c", first))
    workers = [context.Process(target=_sends, args=(url, data, 5, str(tmp_path / name))) for name, data in sends]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    codes = Counter[str]()
    for name in "abc":
        codes.update(json.loads((tmp_path / name).read_text()))
    assert (codes["accepted"], sum(codes.values())) == (MANY, 3 * 5 * MANY)
    assert len(stored(running.store)) == MANY
    sent = {read(data)[0].body for data in (first, other)}
    assert {row[2] for row in stored(running.store) if row[0] == 0} <= sent


def test_planted_values_are_nowhere(tmp_path: Path) -> None:
    """Neither a token nor a device's secret stands in the database, nor the address that a report came from."""
    running, address = begun(url_of(tmp_path), label(), links(MANY)), "127.0.0.78"
    reports = [running.report(number, {"label": "sad", "links": []}) for number in range(MANY)]
    with served(Collector(running.store)) as url:
        client = HTTPConnection("127.0.0.1", int(url.rpartition(":")[2]), timeout=60, source_address=(address, 0))
        client.request("POST", "/reports", b"".join(sent.to_bytes() for sent in reports))
        assert client.getresponse().status == 200
        client.close()
    stored_bytes = b"".join(file.read_bytes() for file in tmp_path.iterdir())
    for number in range(MANY):
        assert token(number) not in stored_bytes and secret(number) not in stored_bytes
    assert address.encode() not in stored_bytes and inet_aton(address) not in stored_bytes
    # What is looked for would be found.
    assert key(3) in stored_bytes and all(sent.body in stored_bytes for sent in reports)
