"""Each refusal that a person at a terminal can meet, provoked by real commands against a collector that is served."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from graphveil.cli.app import main as graphveil
from graphveil.collection.answers import STATUS
from graphveil.collection.limits import Rate
from graphveil.collection.refusal_codes import REFUSAL_CODES
from graphveil.collection.service import Collector
from graphveil.collection.store import Store
from graphveil.collection.tables import opened
from graphveil.device import Task
from graphveil.device.__main__ import main
from graphveil.device.people import ids_hash
from graphveil.device.refusals import BOOKED, COLLECTOR, JOINING, NOTHING, REFUSALS
from graphveil.device.task import OPENING
from tests.collection.collections import PEOPLE, token, url_of
from tests.collection.listening import served
from tests.on_device.signing import label, links, signed, task_of

IDS = [f"person {number}" for number in range(PEOPLE)]
AFTER, BEFORE = 4_000_000_000, 1_000_000_000


@dataclass
class Terminal:
    """A person, their device's folder, and the collector that they were told of."""

    folder: Path
    url: str
    store: Store
    task: Task
    capsys: pytest.CaptureFixture[str]

    def run(self, *words: object, device: str = "device") -> tuple[int, str, str]:
        code = main(["--folder", str(self.folder / device), *map(str, words)])
        told = self.capsys.readouterr()
        return code, told.out, told.err

    def enrol(self, number: int = 3, device: str = "device", url: str = "") -> tuple[int, str, str]:
        words = "enrol", url or self.url, token(number).hex(), "--task", self.task.hash.hex(), "--as", IDS[number]
        return self.run(*words, device=device)

    def answer(self, device: str = "device", **values: object) -> tuple[int, str, str]:
        data = self.folder / "mine.json"
        data.write_text(json.dumps(values or {"label": "sad"}))
        return self.run("answer", data, device=device)

    def open(self, rounds: int = 1) -> None:
        """Open as many rounds more; of the last one is told."""
        nonces = [bytes([place + 1] * 16) for place in range(self.store.opened() + rounds)]
        for nonce in nonces[self.store.opened() :]:
            self.store.open_epoch(nonce)
        self.tell(nonces)

    def tell(self, nonces: list[bytes]) -> None:
        told = {"task": self.task.hash.hex(), "nonces": [one.hex() for one in nonces]}
        self.store.keep("opening", signed("opening", OPENING, told))


@contextmanager
def terminal(
    folder: Path, capsys: pytest.CaptureFixture[str], limits: dict[str, Any] | None = None, **facts: Any
) -> Iterator[Terminal]:
    """A collection whose enrolment is open, served."""
    task = task_of(label(), links(PEOPLE), people=PEOPLE, ids=ids_hash(IDS), **facts)
    store = Store(opened(url_of(folder)))
    store.begin(task, ((one, token(number)) for number, one in enumerate(IDS)))
    with served(Collector(store, **(limits or {}))) as url:
        yield Terminal(folder, url, store, task, capsys)
    store.engine.dispose()


Step = Callable[[Terminal], object]


def enrols(token: str, task: str = "", person: int | None = None, *more: str) -> Step:
    """Somebody enrols with a token, for a task, as a person."""

    def enrol(one: Terminal) -> tuple[int, str, str]:
        whom = () if person is None else ("--as", IDS[person])
        return one.run("enrol", one.url, token, "--task", task or one.task.hash.hex(), *more, *whom)

    return enrol


def set_up_twice(one: Terminal) -> tuple[int, str, str]:
    """Of a copy the noise is another one, because its secret is."""
    one.enrol(device="first")
    shutil.copytree(one.folder / "first", one.folder / "device")
    (one.folder / "device" / "secret").write_bytes(bytes(32))
    one.open()
    assert one.answer(device="first")[0] == 0
    return one.answer(links=[5])


def forgotten(one: Terminal) -> tuple[int, str, str]:
    """The collector was put back from a backup of before the enrolment."""
    one.enrol()
    one.open()
    (one.folder / "backup").mkdir()
    store = Store(opened(url_of(one.folder / "backup")))
    store.begin(one.task, ((id, token(number)) for number, id in enumerate(IDS)))
    put_back = replace(one, store=store)
    put_back.open()
    with served(Collector(store)) as url:
        (kept,) = (one.folder / "device").glob("*/enrolled.json")
        kept.write_text(kept.read_text().replace(one.url, url))
        found = put_back.answer()
    store.engine.dispose()
    return found


def broken(one: Terminal) -> None:
    with one.store.engine.begin() as connection:
        connection.exec_driver_sql("DROP TABLE settings")


MINE = token(3).hex()
enrol, begin, send = Terminal.enrol, Terminal.open, Terminal.answer

#: What a person does, step by step.
DOES: dict[str, tuple[Step, ...]] = {
    "no token": (enrols(f"{'ab' * 20}0000000005", person=5),),
    "token of nobody": (enrols("ab" * 25, person=5),),
    "token of another device": (lambda one: one.enrol(device="first"), enrol),
    "too early": (enrol, send),
    "joined late": (begin, enrol, send),
    "round is over": (enrol, begin, lambda one: one.store.close_epoch(), send),
    "set up twice": (set_up_twice,),
    "forgotten": (forgotten,),
    "of a round nobody opened": (enrol, begin, lambda one: one.tell([bytes([n] * 16) for n in (1, 2, 3)]), send),
    "another path": (lambda one: one.enrol(url=f"{one.url}/clubs"),),
    "broken": (enrol, begin, broken, send),
    "nobody there": (lambda one: one.enrol(url="http://localhost:1"),),
    "not enrolled": (send,),
    "no such task": (enrol, lambda one: one.run("show", "--task", "zz")),
    "another task": (enrols(MINE, "00" * 32),),
    "somebody else": (enrols(MINE, person=4),),
    "says nothing": (enrols(MINE),),
    "mistyped": (enrols(MINE[:20]),),
    "wrong answer": (enrol, begin, lambda one: one.answer(label="angry")),
    "no file": (enrol, begin, lambda one: one.run("answer", one.folder / "none.json")),
    "too dear": (enrols(MINE, "", 3, "--limit", "0.5"), begin, send),
    "lost its secret": (enrol, begin, send, lambda one: (one.folder / "device" / "secret").unlink(), send),
    "limit is damaged": (enrol, lambda one: (one.folder / "device" / "limit").write_text("much"), send),
    "reports": (enrol, begin, send, send),
    "enrolments": (enrol, enrol),
    **dict.fromkeys(("disk", "ended", "not begun"), (enrol, begin, send)),
}
#: Code, what stands of their report then, words of what happened.
MET = {
    "no token": ("bad-token", JOINING, "this token enrols nobody here. It is mistyped"),
    "token of nobody": ("command", JOINING, "the token is of none of the 12 people of this task"),
    "token of another device": ("bad-token", JOINING, "each enrols one device, once"),
    "too early": ("no-opening", NOTHING, "no round has opened yet"),
    "joined late": ("not-open", NOTHING, "round 1 had begun when you joined, and your first is round 2"),
    "round is over": ("closed", NOTHING, "round 1 takes no reports now"),
    "set up twice": ("conflict", BOOKED, "another report of this person"),
    "forgotten": ("unknown-enrolment", BOOKED, "put back from a backup"),
    "of a round nobody opened": ("bad-tag", BOOKED, "the device's own mark"),
    "another path": ("not-found", JOINING, "nothing of a collection is at this address"),
    "broken": ("fault", NOTHING, "the collector made a mistake"),
    "nobody there": ("collector", JOINING, "cannot be reached at http://localhost:1"),
    "not enrolled": ("enrolment", NOTHING, "this device takes part in no collection yet"),
    "no such task": ("enrolment", NOTHING, "no single task of this device begins with zz"),
    "another task": ("wrong-hash", JOINING, "this is another task than the one that was expected"),
    "somebody else": ("enrolment", JOINING, 'you would answer as "person 3", person 3'),
    "says nothing": ("command", JOINING, 'you would answer as "person 3", person 3'),
    "mistyped": ("command", JOINING, "the token is too short: it has 42 digits or more"),
    "wrong answer": ("bad-value", NOTHING, "label is none of calm, glad, sad"),
    "no file": ("bad-value", NOTHING, "none.json cannot be read (No such file or directory)"),
    "too dear": ("cap", NOTHING, "the report costs epsilon 1, and 0.5 is left of your own limit"),
    "lost its secret": ("ledger", NOTHING, "lost its secret, or the record of what was spent"),
    "limit is damaged": ("ledger", NOTHING, "your own limit in"),
    "reports": ("too-often", BOOKED, COLLECTOR["too-often"].happened),
    "enrolments": ("too-often", JOINING, COLLECTOR["too-often"].happened),
    "disk": ("disk-full", BOOKED, COLLECTOR["disk-full"].happened),
    "ended": ("closed", NOTHING, "answers "),
    "not begun": ("not-open", NOTHING, "answers "),
}
#: The collections that take nothing now.
KINDS: dict[str, dict[str, Any]] = {
    "disk": {"limits": {"room": lambda: False}},
    "reports": {"limits": {"burst": 1.0, "requests": 0.001}},
    "enrolments": {"limits": {"enrolments": Rate(0.001, 1.0)}},
    "ended": {"opens": 0, "closes": BEFORE},
    "not begun": {"opens": AFTER, "closes": AFTER + 1},
}


def understood(found: tuple[int, str, str], code: str, stands: str, happened: str) -> None:
    """One line that says what happened, what it means for the report, and what to do, in this order."""
    status, _, line = found
    assert status == 2 and line.startswith(f"{code}: ") and line.count("\n") == 1 and line.endswith(".\n")
    said, _, to_do = line.partition(f" {stands} ")
    assert happened in said and len(to_do) > 10 and ".. " not in line and "  " not in line


@pytest.mark.parametrize("what", DOES)
def test_what_happened_what_it_means_and_what_to_do(
    what: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (code, stands, happened), does = MET[what], DOES[what]
    with terminal(tmp_path, capsys, **{"closes": AFTER, **KINDS.get(what, {})}) as one:
        for do in does[:-1]:
            do(one)
        understood(does[-1](one), code, stands, happened)  # type: ignore[arg-type]
        spent = one.run("spent")[1]
        # What is said to be booked is booked, and nothing else.
        if stands == BOOKED:
            ends = "no limit of your own: one task of each organiser\n"
            assert spent.endswith(tuple(f"epsilon {cost} is spent; {ends}" for cost in (1, 2)))
        elif what != "lost its secret":
            assert spent.startswith("epsilon 0 is spent") or code == "ledger"


def test_a_report_that_comes_too_late_says_that_it_is_paid_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It was booked and never arrived: by the time that it does, the round has closed."""
    full = [True]
    with terminal(tmp_path, capsys, {"room": lambda: not full[0]}, closes=AFTER) as one:
        one.enrol()
        one.open()
        assert one.answer()[2].startswith("disk-full")
        one.store.close_epoch()
        full[0] = False
        understood(one.answer(), "closed", BOOKED, "it is not stored and does not count")
        assert one.store.status()["received"] == 0
        # And the next round costs nothing more.
        one.open()
        assert one.answer()[1].endswith("booked; epsilon 1 is spent in all\nsent\n")
        assert one.answer()[1].endswith("nothing new was sent\n") and one.store.status()["received"] == 1


@pytest.mark.parametrize("code", sorted(set(REFUSALS)))
def test_explain_says_it_in_the_same_words(code: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert graphveil(["explain", code, "--json"]) == 0
    (entry,) = json.loads(capsys.readouterr().out)["codes"]
    own = REFUSALS[code]
    assert (entry["sentence"], entry["means"]) == (own.happened, own.means)
    assert entry["limits"].startswith(own.to_do)
    assert REFUSAL_CODES[code].limits == entry["limits"]


def test_every_answer_of_a_collector_to_a_person_has_words() -> None:
    of_organisers = {"not-admitted", "not-now", "no-key"}
    assert {code for code, status in STATUS.items() if status >= 400} - of_organisers == set(COLLECTOR)
