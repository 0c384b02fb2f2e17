"""Booked before it leaves, the same report for ever after, and nothing that is not as declared."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from graphveil.device import DeviceError, Opening, Task, answer, answers, read
from graphveil.device.canonical import canonical, parse
from graphveil.device.people.person import assigned
from graphveil.device.reporting import Enrolled, book, preview
from graphveil.device.storage.home import Home
from graphveil.device.storage.ledger import DeviceLedger, Limit, write_file
from graphveil.device.task import OPENING, TASK
from graphveil.device.wire import report
from tests.on_device.signing import degree, facts, features, label, links, opening_of, signed, task_of
from tests.syncing import syncs

SECRET, KEY = bytes(range(32)), bytes(range(1, 33))
WHO = Enrolled(3, 1, SECRET, KEY)
NONCES = bytes(16), bytes(range(16))


def refused(code: str) -> pytest.RaisesExc[DeviceError]:
    return pytest.raises(DeviceError, match=f"^{code}: ")


def test_a_report_is_booked_once_and_stays_the_same(tmp_path: Path) -> None:
    task, ledger = task_of(features(), label()), DeviceLedger(tmp_path / "device" / "ledger.jsonl")
    opening = opening_of(task, NONCES[0])
    values = {"features": [0.5] * 6, "label": "sad"}
    first = book(task, opening, WHO, values, ledger)
    assert ledger.spent == 5
    # Whatever the values are now: the epoch has its report.
    assert book(task, opening, WHO, {"label": "glad"}, ledger) == first
    assert len(ledger.booked()) == 1
    # Equal values in a later epoch are the same answers, under another id, at no price; a new label alone is paid for.
    later = opening_of(task, *NONCES)
    again = book(task, later, WHO, values, ledger)
    assert (again.body, ledger.spent) == (first.body, 5) and again.id != first.id
    assert preview(task, later, WHO, {**values, "label": "glad"}, ledger)[1] == 10**9


def test_other_coordinates_are_never_asked_of_one_device(tmp_path: Path) -> None:
    task, ledger = task_of(features()), DeviceLedger(tmp_path / "ledger.jsonl")
    book(task, opening_of(task, NONCES[0]), WHO, {"features": [0.5] * 6}, ledger)
    other = opening_of(task, NONCES[1], bytes([7] * 16))
    with refused("bad-opening"):
        book(task, other, WHO, {"features": [0.5] * 6}, ledger)


def test_a_list_costs_twice_its_epsilon_at_most(tmp_path: Path) -> None:
    task, ledger = task_of(links(12)), DeviceLedger(tmp_path / "ledger.jsonl")
    for epoch, named in enumerate([[5], [5, 6], [7], [8, 9], []], start=1):
        book(task, opening_of(task, *(bytes([n] * 16) for n in range(epoch))), WHO, {"links": named}, ledger)
    assert ledger.spent == 4


def test_ones_own_limit_is_kept_over_all_tasks(tmp_path: Path) -> None:
    ledger = DeviceLedger(tmp_path / "ledger.jsonl", cap=Fraction("1.5"))
    for name in ("one", "two"):
        task = task_of(label(), name=name)
        opening = opening_of(task)
        if name == "two":
            with refused("cap"):
                book(task, opening, WHO, {"label": "sad"}, ledger)
        else:
            book(task, opening, WHO, {"label": "sad"}, ledger)
    assert (ledger.spent, len(ledger.booked())) == (1, 1)


def test_a_task_that_is_signed_twice_is_answered_once(tmp_path: Path) -> None:
    """By the same key under another nonce: two reports of one value, unless the person has set a limit that pays."""
    path, tasks = tmp_path / "ledger.jsonl", [task_of(label(), nonce=nonce) for nonce in ("one", "two")]

    def answers(task: Task, limit: Limit) -> None:
        book(task, opening_of(task, NONCES[0]), WHO, {"label": "sad"}, DeviceLedger(path, limit))

    answers(tasks[0], "default")
    with refused("cap"):
        answers(tasks[1], "default")
    with refused("cap"):
        answers(tasks[1], Fraction("1.5"))
    assert DeviceLedger(path).spent == 1
    # Another round of the first, and what was booked already, as ever.
    later = opening_of(tasks[0], *NONCES)
    book(tasks[0], later, WHO, {"label": "glad"}, DeviceLedger(path))
    answers(tasks[1], None)
    answers(tasks[1], "default")
    assert DeviceLedger(path).spent == 3
    # Another organiser's is another matter.
    DeviceLedger(path).require_limit(replace(tasks[1], key=bytes(32)))


@pytest.mark.parametrize(("now", "code"), [(-1, "not-open"), (2_000_000_000, "closed"), (float("inf"), "closed")])
def test_nothing_is_booked_outside_the_window(now: float, code: str, tmp_path: Path) -> None:
    """No collector takes it; what was booked inside is sent again at any time."""
    task, ledger = task_of(label()), DeviceLedger(tmp_path / "ledger.jsonl")
    opening = opening_of(task)
    with refused(code):
        book(task, opening, WHO, {"label": "sad"}, ledger, clock=lambda: now)
    assert ledger.booked() == []
    first = book(task, opening, WHO, {"label": "sad"}, ledger, clock=lambda: 1_999_999_999)
    assert book(task, opening, WHO, {"label": "sad"}, ledger, clock=lambda: now) == first


def test_what_a_crash_left_of_a_line_was_never_sent(tmp_path: Path) -> None:
    task, path = task_of(label()), tmp_path / "ledger.jsonl"
    opening = opening_of(task)
    first = book(task, opening, WHO, {"label": "sad"}, DeviceLedger(path))
    whole = path.read_bytes()
    for cut in (1, len(whole) // 2, len(whole) - 1):
        # As it was before the line was done: nothing is sealed.
        path.with_suffix(".seal").unlink()
        path.write_bytes(whole[:cut])
        assert DeviceLedger(path).spent == 0
        assert book(task, opening, WHO, {"label": "sad"}, DeviceLedger(path)) == first
        assert path.read_bytes() == whole
    path.with_suffix(".seal").unlink()
    path.write_bytes(b"{\n" + whole)
    with refused("ledger"):
        book(task, opening, WHO, {"label": "sad"}, DeviceLedger(path))


def test_a_ledger_that_forgot_is_refused(tmp_path: Path) -> None:
    """Emptied, cut or written over: what it has forgotten would be told again, and nobody would count it."""
    task, path = task_of(label()), tmp_path / "ledger.jsonl"
    openings = [opening_of(task, *NONCES[:epoch]) for epoch in (1, 2)]
    for opening, value in zip(openings, ("sad", "glad"), strict=True):
        book(task, opening, WHO, {"label": value}, DeviceLedger(path))
    whole = path.read_bytes()
    first = whole[: whole.index(b"\n") + 1]
    for other in (b"", whole[:1], first, whole[:-1], whole.replace(b"1000000000", b"-900000000", 1)):
        path.write_bytes(other)
        for use in (lambda: DeviceLedger(path).spent, lambda: book(task, openings[0], WHO, {}, DeviceLedger(path))):
            with refused("ledger"):
                use()
    path.write_bytes(whole)
    assert DeviceLedger(path).spent == 2
    (seal := path.with_suffix(".seal")).write_bytes(b"{}")
    with refused("ledger"):
        book(task, openings[0], WHO, {}, DeviceLedger(path))
    seal.unlink()
    assert DeviceLedger(path).spent == 2


def test_a_crash_before_the_seal_loses_nothing(tmp_path: Path) -> None:
    """The line is on disk and the seal is of those before it: the report is sent, and the next one is booked."""
    task, path = task_of(label()), tmp_path / "ledger.jsonl"
    book(task, opening_of(task, NONCES[0]), WHO, {"label": "sad"}, DeviceLedger(path))
    seal = path.with_suffix(".seal").read_bytes()
    second = book(task, opening_of(task, *NONCES), WHO, {"label": "glad"}, DeviceLedger(path))
    path.with_suffix(".seal").write_bytes(seal)
    assert DeviceLedger(path).spent == 2
    assert book(task, opening_of(task, *NONCES), WHO, {}, DeviceLedger(path)) == second
    book(task, opening_of(task, *NONCES, bytes([7] * 16)), WHO, {"label": "calm"}, DeviceLedger(path))
    assert (DeviceLedger(path).spent, len(DeviceLedger(path).booked())) == (3, 3)


def test_what_a_crash_kept_from_its_seal_is_sealed_before_it_is_sent(tmp_path: Path) -> None:
    """Cut off after its report has left, the line would be missed by nobody, and another one be made."""
    task, path = task_of(label()), tmp_path / "ledger.jsonl"
    path.touch()
    DeviceLedger(path).begin()
    seal = path.with_suffix(".seal").read_bytes()
    first = book(task, opening_of(task, NONCES[0]), WHO, {"label": "sad"}, DeviceLedger(path))
    path.with_suffix(".seal").write_bytes(seal)
    assert book(task, opening_of(task, NONCES[0]), WHO, {"label": "glad"}, DeviceLedger(path)) == first
    path.write_bytes(b"")
    with refused("ledger"):
        book(task, opening_of(task, NONCES[0]), WHO, {"label": "glad"}, DeviceLedger(path))


def test_a_killed_device_sends_the_same_report(tmp_path: Path) -> None:
    """Killed between booking and sending: the process that starts again finds the report and pays nothing."""
    task, path = task_of(label()), tmp_path / "ledger.jsonl"
    opening = signed("opening", OPENING, {"task": task.hash.hex(), "nonces": [NONCES[0].hex()]})
    (tmp_path / "task").write_bytes(task.data)
    (tmp_path / "opening").write_bytes(opening)
    code = (
        "import os, sys; from pathlib import Path\n"
        "from graphveil.device import Opening, Task\n"
        "from graphveil.device.storage.ledger import DeviceLedger\n"
        "from graphveil.device.reporting import Enrolled, book\n"
        "here = Path(sys.argv[1]); task = Task.of((here / 'task').read_bytes())\n"
        "who = Enrolled(3, 1, bytes(range(32)), bytes(range(1, 33)))\n"
        "opening = Opening.of((here / 'opening').read_bytes(), task)\n"
        "sent = book(task, opening, who, {'label': 'sad'}, DeviceLedger(here / 'ledger.jsonl'))\n"
        "(here / 'sent').write_bytes(sent.to_bytes()); os.kill(os.getpid(), 9)\n"
    )
    assert subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=False).returncode == -9
    again = book(task, Opening.of(opening, task), WHO, {"label": "sad"}, DeviceLedger(path))
    assert again.to_bytes() == (tmp_path / "sent").read_bytes()
    assert DeviceLedger(path).spent == 1


def test_a_report_has_one_encoding_and_a_tag() -> None:
    task = task_of(label())
    prepared = answer(task, task.person(3, NONCES[0]), {"label": "sad"}, SECRET)
    sent = report(task.hash, 1, prepared.body, SECRET, KEY)
    data = sent.to_bytes()
    assert read(data) == (sent, len(data)) and read(b"x" + data + data, 1)[0] == sent
    assert sent.is_by(KEY, 1) and not sent.is_by(SECRET, 1) and not sent.is_by(KEY, 2)
    assert (sent.epoch_by(KEY, (3, 2, 1)), sent.epoch_by(KEY, (3, 2)), sent.epoch_by(SECRET, (1,))) == (1, None, None)
    for place in range(len(data)):
        changed = data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :]
        try:
            assert not read(changed)[0].is_by(KEY, 1), place
        except DeviceError as error:
            assert error.code in ("truncated", "bad-version")
    with refused("truncated"):
        read(data[:-1])


# Every other kind is in the vectors.
@pytest.mark.parametrize("values", [{"features": [0.0] * 5 + [3.1]}, {"label": "angry"}, {"income": 3}], ids=str)
def test_values_that_are_not_as_declared_are_refused(values: dict[str, object], tmp_path: Path) -> None:
    task, ledger = task_of(features(), label(), links(12)), DeviceLedger(tmp_path / "ledger.jsonl")
    with refused("bad-value"):
        book(task, opening_of(task), WHO, values, ledger)
    assert ledger.booked() == []


def test_bodies_that_no_device_sends_are_refused() -> None:
    task = task_of(label(), links(12), degree(12))
    person = task.person(3, NONCES[0])
    body = answer(task, person, {"label": "sad", "links": [5]}, SECRET).body
    answers(task, person, body)
    assert answers(task, person, bytes(len(body))) == [None, None, None]
    with refused("wrong-length"):
        answers(task, person, body + b"\0")
    with refused("filling"):
        answers(task, person, body[:-1] + bytes([body[-1] | 1]))
    for first in (0b01100000, 0b11100000):  # an answer of an unanswered field; a class that there is not
        with refused("impossible"):
            answers(task, person, bytes([first]) + bytes(len(body) - 1))
    with refused("impossible"):  # person 3 does not answer for person 0 in mode "lower"
        answers(task, person, bytes([0b00011000]) + bytes(len(body) - 1))


def test_weaker_thresholds_than_stated_are_refused() -> None:
    """The weakened copy of every mechanism: one part in a thousand less noise than its epsilon asks for."""
    names = "threshold", "share", "threshold", "overflow"
    for field, name in zip((features(), label(), links(12), degree(12)), names, strict=True):
        weaker = {**field, name: str(int(field[name]) * 999 // 1000)}
        with refused("epsilon"):
            task_of(weaker)
        task_of(field)


def test_a_task_is_what_was_signed() -> None:
    declared = facts(label())
    data = signed("task", TASK, declared)
    task = Task.of(data)
    assert Task.of(data, task.hash).hash == task.hash
    with refused("wrong-hash"):
        Task.of(data, bytes(32))
    with refused("bad-signature"):
        Task.of(canonical({**parse(data), "task": {**declared, "least": 1}}))
    with refused("not-canonical"):
        Task.of(data.replace(b'":', b'": ', 1))
    opening = signed("opening", OPENING, {"task": task.hash.hex(), "nonces": ["00" * 16]})
    assert Opening.of(opening, task).nonces == (bytes(16),)
    with refused("bad-signature"):  # the organiser's key beside a nonce that they did not sign
        Opening.of(opening.replace(b"00" * 16, b"01" * 16), task)
    with refused("bad-signature"):  # and somebody else's, who may be the collector
        by_another = Ed25519PrivateKey.generate()
        Opening.of(signed("opening", OPENING, {"task": task.hash.hex(), "nonces": ["00" * 16]}, by_another), task)
    with refused("wrong-hash"):
        Opening.of(signed("opening", OPENING, {"task": "00" * 32, "nonces": ["00" * 16]}), task)


@pytest.mark.parametrize("data", [b'{"a":1.0}', b'{"b":1,"a":1}', b'["\\u0061"]'])
def test_another_spelling_is_refused(data: bytes) -> None:
    with refused("not-canonical"):
        parse(data)


def test_assigned_coordinates_are_uniform() -> None:
    """Each of 20 coordinates by 3 of 20; chi-square above its 1 - 1e-6 quantile (19 degrees: 64.4) is refused."""
    counts = [0] * 20
    for number in range(4000):
        coordinates = assigned(bytes(32), bytes(16), number, 20, 3)
        assert len(set(coordinates)) == 3 and coordinates == sorted(coordinates)
        for coordinate in coordinates:
            counts[coordinate] += 1
    assert sum((count - 600) ** 2 / 600 for count in counts) < 64.4
    assert sum((count - 600) ** 2 / 600 for count in [*counts[:10], *(count + 80 for count in counts[10:])]) > 64.4


# ---- facts that are not as the standard says, whoever signed them ----


FIELDS = {"features": features(), "label": label(), "links": links(12), "degree": degree(12)}


#: What the vectors of `refused` do not have.
FACTS: list[dict[str, Any]] = [
    {"purpose": 5},
    {"contact": ["mail"]},
    {"nonce": ""},
    {"opens": 2_000_000_000},
    {"closes": 1 << 41},
    {"least": 0},
    {"people": "012"},
    {"guarantee": "one"},
    {"fields": {}},
    {"fields": ["label"]},
    {"fields": [{"kind": "label"}]},
]


@pytest.mark.parametrize("changes", FACTS, ids=str)
def test_facts_of_a_task(changes: dict[str, Any]) -> None:
    with refused("bad-task"):
        task_of(label(), **changes)


PARTS: list[tuple[str, dict[str, Any]]] = [
    ("features", {"low": "-1.0e400"}),
    ("features", {"low": "-1e308", "high": "1e308"}),
    ("features", {"high": "nan"}),
    ("features", {"epsilon": "\u0664"}),
    ("features", {"sampled": 0}),
    ("features", {"sampled": 7}),
    ("features", {"threshold": "0"}),
    ("features", {"threshold": str(2**63 + 1)}),
    ("features", {"threshold": "1.5"}),
    ("label", {"classes": "one"}),
    ("label", {"share": True}),
    ("links", {"mode": 1}),
    ("links", {"threshold": "-5"}),
    ("degree", {"digits": "1"}),
    ("degree", {"digits": ["0"]}),
    ("degree", {"overflow": str(2**256 + 1)}),
]


@pytest.mark.parametrize(("kind", "changes"), PARTS, ids=str)
def test_facts_of_a_field(kind: str, changes: dict[str, Any]) -> None:
    task_of(FIELDS[kind])
    with refused("bad-task"):
        task_of({**FIELDS[kind], **changes})
    left_out = {name: value for name, value in FIELDS[kind].items() if name not in changes}
    with refused("bad-task"):
        task_of({**left_out, "extra": "fact"})


def test_an_opening_has_no_nonce_of_a_round_to_come() -> None:
    with refused("bad-opening"):
        opening_of(task_of(label())).nonce(2)


def test_a_value_that_is_not_asked_for_is_refused_and_no_number_is_too_large_to_be() -> None:
    task = task_of(features())
    person = task.person(0, bytes(16))
    for values in ({"links": [1]}, {"label": "sad"}, {"features": [10**400] + [0] * 5}, {"features": [2**63] * 6}):
        with refused("bad-value"):
            answer(task, person, values, bytes(32))
    counted = task_of(degree(12))
    with refused("bad-value"):
        answer(counted, counted.person(0, bytes(16)), {"degree": 3}, bytes(32))
    assert answer(counted, counted.person(0, bytes(16)), {"links": [3]}, bytes(32)).names
    for number, nonce in ((12, bytes(16)), (-1, bytes(16)), (0, bytes(15))):
        with refused("bad-task"):
            task.person(number, nonce)


# ---- what is on disk, its name too, before a device goes on ----


NEEDS_PROC = pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="what is open is told by /proc")


@NEEDS_PROC
def test_a_file_is_synced_before_it_is_named_and_its_folder_after(tmp_path: Path) -> None:
    with syncs(tmp_path) as steps:
        write_file(tmp_path / "limit", b"2.5")
    assert steps == [["limit.new"], ["named"], ["."]]


@pytest.mark.parametrize(
    ("file", "message"),
    [("limit", "your own limit in .*limit is not a number"), ("secret", "neither a secret nor where one is")],
)
def test_a_damaged_limit_or_secret_is_no_default_and_no_new_one(file: str, message: str, tmp_path: Path) -> None:
    home = Home(tmp_path)
    home.secret()
    (tmp_path / file).write_text("three")
    with pytest.raises(DeviceError, match=f"^ledger: .*{message}"):
        home.limit() if file == "limit" else home.secret()
    assert (tmp_path / file).read_text() == "three"


@NEEDS_PROC
def test_a_secret_is_on_disk_before_it_is_told(tmp_path: Path) -> None:
    with syncs(tmp_path) as steps:
        Home(tmp_path).secret()
    # Beside the lock that is held meanwhile.
    assert [[name for name in names if name != "ledger.lock"] for names in steps] == [
        *(["ledger.new"], ["named"], ["."]),
        *(["limit.new"], ["named"], ["."]),
        *(["secret.new"], ["named"], ["."]),
    ]


@NEEDS_PROC
def test_what_is_spent_is_on_disk_before_it_is_sent(tmp_path: Path) -> None:
    home, task, nonce = Home(tmp_path), task_of(label()), bytes(16)
    drawn = answer(task, task.person(0, nonce), {"label": "sad"}, home.secret())
    with syncs(tmp_path) as steps:
        home.ledger().book(task, 1, nonce, drawn, 1)
    # The line, the name of its file, and then the seal.
    assert steps == [["ledger.jsonl"], ["."], ["ledger.new"], ["named"], ["."]]
