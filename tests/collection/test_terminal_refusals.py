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


Does = Callable[[Terminal], tuple[int, str, str]]


def steps(*does: Callable[[Terminal], object]) -> Does:
    """One thing after the other; what the last one says is looked at."""

    def all_of_them(one: Terminal) -> tuple[int, str, str]:
        for do in does[:-1]:
            do(one)
        return does[-1](one)  # type: ignore[return-value]

    return all_of_them


def enrols(token: str, task: str = "", person: int | None = None, *more: str) -> Does:
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
enrolled = steps(Terminal.enrol, Terminal.open)  # type: ignore[arg-type]
answered = steps(enrolled, Terminal.answer)
again = steps(answered, Terminal.answer)
twice = steps(Terminal.enrol, Terminal.enrol)

#: What a person does -> code, what stands of their report then, words of what happened and of what to do.
MET: dict[str, tuple[Does, str, str, str, str]] = {
    "no token": (
        enrols(f"{'ab' * 20}0000000005", person=5),
        "bad-token", JOINING, "this token enrols nobody here. It is mistyped", "Copy it again, whole.",
    ),
    "token of nobody": (
        enrols("ab" * 25, person=5),
        "command", JOINING, "the token is of none of the 12 people of this task", "Copy it again, whole.",
    ),
    "token of another device": (
        steps(lambda one: one.enrol(device="first"), Terminal.enrol),
        "bad-token", JOINING, "each enrols one device, once", "ask the organiser for another",
    ),
    "too early": (
        steps(Terminal.enrol, Terminal.answer),
        "no-opening", NOTHING, "no round has opened yet", "when the organiser has opened the first round",
    ),
    "joined late": (
        steps(Terminal.open, Terminal.enrol, Terminal.answer),
        "not-open", NOTHING, "round 1 had begun when you joined, and your first is round 2", "when that",
    ),
    "round is over": (
        steps(enrolled, lambda one: one.store.close_epoch(), Terminal.answer),
        "closed", NOTHING, "round 1 takes no reports now", "Where another round opens, answer again",
    ),
    "set up twice": (
        set_up_twice, "conflict", BOOKED, "another report of this person", "Nothing changes the first report",
    ),
    "forgotten": (
        forgotten,
        "unknown-enrolment", BOOKED, "put back from a backup", "Enrol again with the same token and folder",
    ),
    "of a round nobody opened": (
        steps(enrolled, lambda one: one.tell([bytes([n] * 16) for n in (1, 2, 3)]), Terminal.answer),
        "bad-tag", BOOKED, "the device's own mark", "tell the organiser",
    ),
    "another path": (
        lambda one: one.enrol(url=f"{one.url}/clubs"),
        "not-found", JOINING, "nothing of a collection is at this address", "Copy the collector's address",
    ),
    "broken": (
        steps(enrolled, broken, Terminal.answer),
        "fault", NOTHING, "the collector made a mistake", "Type the same command again later",
    ),
    "nobody there": (
        lambda one: one.enrol(url="http://localhost:1"),
        "collector", JOINING, "cannot be reached at http://localhost:1", "Look at address and connection",
    ),
    "not enrolled": (
        Terminal.answer,
        "enrolment", NOTHING, "this device takes part in no collection yet", "the command enrol: address",
    ),
    "no such task": (
        steps(Terminal.enrol, lambda one: one.run("show", "--task", "zz")),
        "enrolment", NOTHING, "no single task of this device begins with zz", "Name one of these by its",
    ),
    "another task": (
        enrols(MINE, "00" * 32),
        "wrong-hash", JOINING, "this is another task than the one that was expected", "compare the hash",
    ),
    "somebody else": (
        enrols(MINE, person=4),
        "enrolment", JOINING, 'you would answer as "person 3", person 3', "tell the organiser",
    ),
    "says nothing": (
        enrols(MINE), "command", JOINING, 'you would answer as "person 3", person 3', "If you are they, add --as",
    ),
    "mistyped": (
        enrols(MINE[:20]),
        "command", JOINING, "the token is too short: it has 42 digits or more", "Copy it again, whole.",
    ),
    "wrong answer": (
        steps(enrolled, lambda one: one.answer(label="angry")),
        "bad-value", NOTHING, "label is none of calm, glad, sad", "Correct the file",
    ),
    "no file": (
        steps(enrolled, lambda one: one.run("answer", one.folder / "none.json")),
        "bad-value", NOTHING, "none.json cannot be read (No such file or directory)", "Correct the file",
    ),
    "too dear": (
        steps(enrols(MINE, "", 3, "--limit", "0.5"), Terminal.open, Terminal.answer),
        "cap", NOTHING, "the report costs epsilon 1, and 0.5 is left of your own limit", "a larger --limit",
    ),
    "lost its secret": (
        steps(answered, lambda one: (one.folder / "device" / "secret").unlink(), Terminal.answer),
        "ledger", NOTHING, "lost its secret, or the record of what was spent", "Restore the device's",
    ),
    "limit is damaged": (
        steps(Terminal.enrol, lambda one: (one.folder / "device" / "limit").write_text("much"), Terminal.answer),
        "ledger", NOTHING, "your own limit in", "Write it there again: 5, 2.5, none or default",
    ),
}  # fmt: skip


def understood(found: tuple[int, str, str], code: str, stands: str, happened: str, to_do: str) -> None:
    """One line that says what happened, what it means for the report, and what to do, in this order."""
    status, _, line = found
    assert status == 2 and line.startswith(f"{code}: ") and line.count("\n") == 1 and line.endswith(".\n")
    places = [line.find(said) for said in (happened, stands, to_do)]
    assert -1 < places[0] < places[1] < places[2], line
    assert ".. " not in line and "  " not in line


@pytest.mark.parametrize("what", MET)
def test_what_happened_what_it_means_and_what_to_do(
    what: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    does, code, stands, happened, to_do = MET[what]
    with terminal(tmp_path, capsys, closes=AFTER) as one:
        understood(does(one), code, stands, happened, to_do)
        spent = one.run("spent")[1]
        # What is said to be booked is booked, and nothing else.
        if stands == BOOKED:
            ends = "no limit of your own: one task of each organiser\n"
            assert spent.endswith(tuple(f"epsilon {cost} is spent; {ends}" for cost in (1, 2)))
        elif what != "lost its secret":
            assert spent.startswith("epsilon 0 is spent") or code == "ledger"


@pytest.mark.parametrize(
    ("limits", "does", "code", "stands", "to_do"),
    [
        ({"room": lambda: False}, answered, "disk-full", BOOKED, "in a few minutes"),
        (
            {"burst": 1.0, "requests": 0.001},
            steps(answered, Terminal.answer),
            "too-often",
            BOOKED,
            "Wait ten seconds",
        ),
        (
            {"enrolments": Rate(0.001, 1.0)},
            steps(Terminal.enrol, Terminal.enrol),
            "too-often",
            JOINING,
            "Wait ten seconds",
        ),
    ],
    ids=["disk", "reports", "enrolments"],
)
def test_what_a_collector_cannot_take_now(
    limits: dict[str, Any],
    does: Does,
    code: str,
    stands: str,
    to_do: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    with terminal(tmp_path, capsys, limits, closes=AFTER) as one:
        understood(does(one), code, stands, COLLECTOR[code].happened, to_do)


@pytest.mark.parametrize(
    ("code", "window"),
    [("closed", {"opens": 0, "closes": BEFORE}), ("not-open", {"opens": AFTER, "closes": AFTER + 1})],
)
def test_outside_the_window_nothing_is_booked(
    code: str, window: dict[str, int], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with terminal(tmp_path, capsys, **window) as one:
        understood(answered(one), code, NOTHING, "answers ", "answer again" if code == "closed" else "again")


def test_a_report_that_comes_too_late_says_that_it_is_paid_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It was booked and never arrived: by the time that it does, the round has closed."""
    full = [True]
    with terminal(tmp_path, capsys, {"room": lambda: not full[0]}, closes=AFTER) as one:
        assert answered(one)[2].startswith("disk-full")
        one.store.close_epoch()
        full[0] = False
        understood(one.answer(), "closed", BOOKED, "it is not stored and does not count", "answer again")
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
