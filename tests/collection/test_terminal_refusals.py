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


def no_token(one: Terminal) -> tuple[int, str, str]:
    return one.run("enrol", one.url, f"{'ab' * 20}0000000005", "--task", one.task.hash.hex(), "--as", IDS[5])


def token_of_nobody(one: Terminal) -> tuple[int, str, str]:
    return one.run("enrol", one.url, "ab" * 25, "--task", one.task.hash.hex(), "--as", IDS[5])


def token_of_another_device(one: Terminal) -> tuple[int, str, str]:
    one.enrol(device="first")
    return one.enrol()


def too_early(one: Terminal) -> tuple[int, str, str]:
    one.enrol()
    return one.answer()


def joined_late(one: Terminal) -> tuple[int, str, str]:
    one.open()
    one.enrol()
    return one.answer()


def round_is_over(one: Terminal) -> tuple[int, str, str]:
    one.enrol()
    one.open()
    one.store.close_epoch()
    return one.answer()


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


def of_a_round_nobody_opened(one: Terminal) -> tuple[int, str, str]:
    one.enrol()
    one.open()
    one.tell([bytes([place + 1] * 16) for place in range(3)])
    return one.answer()


def answered_again_and_again(one: Terminal) -> tuple[int, str, str]:
    one.enrol()
    one.open()
    one.answer()
    return one.answer()


def enrolled_again_and_again(one: Terminal) -> tuple[int, str, str]:
    one.enrol()
    return one.enrol()


def another_path(one: Terminal) -> tuple[int, str, str]:
    return one.enrol(url=f"{one.url}/clubs")


def enrolled_and_opened(one: Terminal) -> tuple[int, str, str]:
    one.enrol()
    one.open()
    return one.answer()


def broken(one: Terminal) -> tuple[int, str, str]:
    one.enrol()
    one.open()
    with one.store.engine.begin() as connection:
        connection.exec_driver_sql("DROP TABLE settings")
    return one.answer()


def nobody_there(one: Terminal) -> tuple[int, str, str]:
    return one.enrol(url="http://localhost:1")


def not_enrolled(one: Terminal) -> tuple[int, str, str]:
    return one.answer()


def no_such_task(one: Terminal) -> tuple[int, str, str]:
    one.enrol()
    return one.run("show", "--task", "zz")


def another_task(one: Terminal) -> tuple[int, str, str]:
    return one.run("enrol", one.url, token(3).hex(), "--task", "00" * 32)


def somebody_else(one: Terminal) -> tuple[int, str, str]:
    return one.run("enrol", one.url, token(3).hex(), "--task", one.task.hash.hex(), "--as", IDS[4])


def says_nothing(one: Terminal) -> tuple[int, str, str]:
    return one.run("enrol", one.url, token(3).hex(), "--task", one.task.hash.hex())


def mistyped(one: Terminal) -> tuple[int, str, str]:
    return one.run("enrol", one.url, token(3).hex()[:20], "--task", one.task.hash.hex())


def wrong_answer(one: Terminal) -> tuple[int, str, str]:
    one.enrol()
    one.open()
    return one.answer(label="angry")


def no_file(one: Terminal) -> tuple[int, str, str]:
    one.enrol()
    one.open()
    return one.run("answer", one.folder / "none.json")


def too_dear(one: Terminal) -> tuple[int, str, str]:
    own = "--limit", "0.5", "--as", IDS[3]
    one.run("enrol", one.url, token(3).hex(), "--task", one.task.hash.hex(), *own)
    one.open()
    return one.answer()


def lost_its_secret(one: Terminal) -> tuple[int, str, str]:
    one.enrol()
    one.open()
    one.answer()
    (one.folder / "device" / "secret").unlink()
    return one.answer()


def limit_is_damaged(one: Terminal) -> tuple[int, str, str]:
    one.enrol()
    (one.folder / "device" / "limit").write_text("much")
    return one.answer()


#: What a person does -> code, what stands of their report then, words of what happened and of what to do.
MET: dict[Callable[[Terminal], tuple[int, str, str]], tuple[str, str, str, str]] = {
    no_token: ("bad-token", JOINING, "this token enrols nobody here. It is mistyped", "Copy it again, whole."),
    token_of_nobody: (
        "command",
        JOINING,
        "the token is of none of the 12 people of this task",
        "Copy it again, whole.",
    ),
    token_of_another_device: ("bad-token", JOINING, "each enrols one device, once", "ask the organiser for another"),
    too_early: ("no-opening", NOTHING, "no round has opened yet", "when the organiser has opened the first round"),
    joined_late: ("not-open", NOTHING, "round 1 had begun when you joined, and your first is round 2", "when that"),
    round_is_over: ("closed", NOTHING, "round 1 takes no reports now", "Where another round opens, answer again"),
    set_up_twice: ("conflict", BOOKED, "another report of this person", "Nothing changes the first report"),
    forgotten: ("unknown-enrolment", BOOKED, "put back from a backup", "Enrol again with the same token and folder"),
    of_a_round_nobody_opened: ("bad-tag", BOOKED, "the device's own mark", "tell the organiser"),
    another_path: ("not-found", JOINING, "nothing of a collection is at this address", "Copy the collector's address"),
    broken: ("fault", NOTHING, "the collector made a mistake", "Type the same command again later"),
    nobody_there: ("collector", JOINING, "cannot be reached at http://localhost:1", "Look at address and connection"),
    not_enrolled: ("enrolment", NOTHING, "this device takes part in no collection yet", "the command enrol: address"),
    no_such_task: ("enrolment", NOTHING, "no single task of this device begins with zz", "Name one of these by its"),
    another_task: ("wrong-hash", JOINING, "this is another task than the one that was expected", "compare the hash"),
    somebody_else: ("enrolment", JOINING, 'you would answer as "person 3", person 3', "tell the organiser"),
    says_nothing: ("command", JOINING, 'you would answer as "person 3", person 3', "If you are they, add --as"),
    mistyped: ("command", JOINING, "the token is too short: it has 42 digits or more", "Copy it again, whole."),
    wrong_answer: ("bad-value", NOTHING, "label is none of calm, glad, sad", "Correct the file"),
    no_file: ("bad-value", NOTHING, "none.json cannot be read (No such file or directory)", "Correct the file"),
    too_dear: ("cap", NOTHING, "the report costs epsilon 1, and 0.5 is left of your own limit", "a larger --limit"),
    lost_its_secret: ("ledger", NOTHING, "lost its secret, or the record of what was spent", "Restore the device's"),
    limit_is_damaged: ("ledger", NOTHING, "your own limit in", "Write it there again: 5, 2.5, none or default"),
}


def understood(found: tuple[int, str, str], code: str, stands: str, happened: str, to_do: str) -> None:
    """One line that says what happened, what it means for the report, and what to do, in this order."""
    status, _, line = found
    assert status == 2 and line.startswith(f"{code}: ") and line.count("\n") == 1 and line.endswith(".\n")
    places = [line.find(said) for said in (happened, stands, to_do)]
    assert -1 < places[0] < places[1] < places[2], line
    assert ".. " not in line and "  " not in line


@pytest.mark.parametrize("does", MET, ids=lambda does: does.__name__)
def test_what_happened_what_it_means_and_what_to_do(
    does: Callable[[Terminal], tuple[int, str, str]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with terminal(tmp_path, capsys, closes=AFTER) as one:
        understood(does(one), *MET[does])
        spent = one.run("spent")[1]
        # What is said to be booked is booked, and nothing else.
        if MET[does][1] == BOOKED:
            assert spent.endswith(
                tuple(f"epsilon {cost} is spent; no limit of your own: one task of each organiser\n" for cost in (1, 2))
            )
        elif does is not lost_its_secret:
            assert spent.startswith("epsilon 0 is spent") or MET[does][0] == "ledger"


@pytest.mark.parametrize(
    ("limits", "does", "code", "stands", "to_do"),
    [
        ({"room": lambda: False}, enrolled_and_opened, "disk-full", BOOKED, "in a few minutes"),
        ({"burst": 1.0, "requests": 0.001}, answered_again_and_again, "too-often", BOOKED, "Wait ten seconds"),
        ({"enrolments": Rate(0.001, 1.0)}, enrolled_again_and_again, "too-often", JOINING, "Wait ten seconds"),
    ],
    ids=["disk", "reports", "enrolments"],
)
def test_what_a_collector_cannot_take_now(
    limits: dict[str, Any],
    does: Callable[[Terminal], tuple[int, str, str]],
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
        understood(enrolled_and_opened(one), code, NOTHING, "answers ", "answer again" if code == "closed" else "again")


def test_a_report_that_comes_too_late_says_that_it_is_paid_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It was booked and never arrived: by the time that it does, the round has closed."""
    full = [True]
    with terminal(tmp_path, capsys, {"room": lambda: not full[0]}, closes=AFTER) as one:
        assert enrolled_and_opened(one)[2].startswith("disk-full")
        one.store.close_epoch()
        full[0] = False
        understood(one.answer(), "closed", BOOKED, "it is not stored and does not count", "answer again")
        assert one.store.status()["received"] == 0
        # And the next round costs nothing more.
        one.open()
        assert one.answer()[1].endswith("booked; epsilon 1 is spent in all\nsent\n")


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
