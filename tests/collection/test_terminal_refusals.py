"""What a person at a terminal is told by a collector that is served, where no collector that is pretended would do."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from graphveil.collection.answers import STATUS
from graphveil.collection.service import Collector
from graphveil.collection.store import Store
from graphveil.collection.tables import opened
from graphveil.device.__main__ import main
from graphveil.device.people import ids_hash
from graphveil.device.refusals import BOOKED, COLLECTOR, JOINING, NOTHING
from graphveil.device.task import OPENING
from tests.collection.collections import PEOPLE, token, url_of
from tests.collection.listening import served
from tests.on_device.signing import label, links, signed, task_of

IDS = [f"person {number}" for number in range(PEOPLE)]
TASK = task_of(label(), links(PEOPLE), people=PEOPLE, ids=ids_hash(IDS), closes=4_000_000_000)
Said = tuple[int, str, str]


@dataclass
class Terminal:
    """A person, their device's folder, and the collector that they heard of."""

    folder: Path
    url: str
    store: Store
    capsys: pytest.CaptureFixture[str]
    room: list[bool]

    def run(self, *words: object, device: str = "device") -> Said:
        code = main(["--folder", str(self.folder / device), *map(str, words)])
        return code, *self.capsys.readouterr()

    def enrol(self, device: str = "device", url: str = "") -> Said:
        words = "enrol", url or self.url, token(3).hex(), "--task", TASK.hash.hex(), "--as", IDS[3]
        return self.run(*words, device=device)

    def answer(self, device: str = "device", **values: object) -> Said:
        (data := self.folder / "mine.json").write_text(json.dumps(values or {"label": "sad"}))
        return self.run("answer", data, device=device)

    def open(self) -> None:
        self.store.open_epoch(bytes([self.store.opened() + 1] * 16))
        self.tell(self.store.opened())

    def tell(self, rounds: int) -> None:
        nonces = [bytes([place + 1] * 16).hex() for place in range(rounds)]
        self.store.keep("opening", signed("opening", OPENING, {"task": TASK.hash.hex(), "nonces": nonces}))


@contextmanager
def terminal(folder: Path, capsys: pytest.CaptureFixture[str]) -> Iterator[Terminal]:
    """A collection whose enrolment is open, served."""
    folder.mkdir(exist_ok=True)
    store, room = Store(opened(url_of(folder))), [True]
    store.begin(TASK, ((one, token(number)) for number, one in enumerate(IDS)))
    with served(Collector(store, room=lambda: room[0])) as url:
        yield Terminal(folder, url, store, capsys, room)
    store.engine.dispose()


def set_up_twice(one: Terminal) -> Said:
    """Of a copy the noise is another one, because its secret is."""
    one.enrol("first")
    shutil.copytree(one.folder / "first", one.folder / "device")
    (one.folder / "device" / "secret").write_bytes(bytes(32))
    one.open()
    assert one.answer("first")[0] == 0
    return one.answer(links=[5])


def forgotten(one: Terminal) -> Said:
    """The collector was put back from a backup of before the enrolment."""
    one.enrol()
    with terminal(one.folder / "backup", one.capsys) as put_back:
        put_back.open()
        (kept,) = (one.folder / "device").glob("*/enrolled.json")
        kept.write_text(kept.read_text().replace(one.url, put_back.url))
        return one.answer()


def of_a_round_that_nobody_opened(one: Terminal) -> Said:
    one.enrol()
    one.open()
    one.tell(3)
    return one.answer()


def joined_late(one: Terminal) -> Said:
    one.open()
    one.enrol()
    return one.answer()


def broken(one: Terminal) -> Said:
    one.enrol()
    one.open()
    with one.store.engine.begin() as connection:
        connection.exec_driver_sql("DROP TABLE settings")
    return one.answer()


def came_too_late(one: Terminal) -> Said:
    """It was booked and never arrived: by the time that it does, the round has closed."""
    one.enrol()
    one.open()
    one.room[0] = False
    assert one.answer()[2].startswith("disk-full")
    one.store.close_epoch()
    one.room[0] = True
    return one.answer()


#: Code, what stands of their report then, words of what happened.
MET: dict[Callable[[Terminal], Said], tuple[str, str, str]] = {
    set_up_twice: ("conflict", BOOKED, "another report of this person"),
    forgotten: ("unknown-enrolment", BOOKED, "put back from a backup"),
    of_a_round_that_nobody_opened: ("bad-tag", BOOKED, "the device's own mark"),
    joined_late: ("not-open", NOTHING, "round 1 had begun when you joined, and your first is round 2"),
    broken: ("fault", NOTHING, "the collector made a mistake"),
    came_too_late: ("closed", BOOKED, "it is not stored and does not count"),
    lambda one: one.enrol(url=f"{one.url}/clubs"): ("not-found", JOINING, "nothing of a collection is at this address"),
}


@pytest.mark.parametrize("does", MET)
def test_one_line_says_what_happened_what_it_means_and_what_to_do(
    does: Callable[[Terminal], Said], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, stands, happened = MET[does]
    with terminal(tmp_path / "one", capsys) as one:
        status, _, line = does(one)
        assert status == 2 and line.startswith(f"{code}: ") and line.count("\n") == 1 and line.endswith(".\n")
        words, _, to_do = line.partition(f" {stands} ")
        assert happened in words and len(to_do) > 10 and ".. " not in line and "  " not in line
        # What is said to be booked is booked, and nothing else.
        assert one.run("spent")[1].startswith("epsilon 0 is spent") == (stands != BOOKED)
        if does is came_too_late:
            assert one.store.status()["received"] == 0
            # And the next round costs nothing more.
            one.open()
            assert one.answer()[1].endswith("booked; epsilon 1 is spent in all\nsent\n")


def test_every_answer_of_a_collector_to_a_person_has_words() -> None:
    of_organisers = {"not-admitted", "not-now", "no-key"}
    assert {code for code, status in STATUS.items() if status >= 400} - of_organisers == set(COLLECTOR)
