"""People in a person's own file: by number or by name, and nobody hears which."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from graphveil.device import read
from graphveil.device.people.people import ids_hash
from graphveil.device.reports.answer import answers
from tests.on_device.conftest import Run
from tests.on_device.pretended import IDS, TOKEN, Pretended
from tests.on_device.signing import links, task_of

# At epsilon 44 a bit is turned once in 10^19: what is sent is what was meant.
TASK = task_of(links(12, "44", "both"), ids=ids_hash(IDS))
Say = Callable[[object], tuple[int, str, str]]


@pytest.fixture
def say(collector: Pretended, run: Run, data: Path) -> Say:
    assert run("enrol", collector.url, TOKEN, "--task", TASK.hash.hex(), "--as", IDS[3])[0] == 0

    def answered(linked: object) -> tuple[int, str, str]:
        data.write_text(json.dumps({"links": linked}))
        return run("answer", data)

    return answered


def test_names_are_the_numbers_of_the_tasks_list(say: Say, collector: Pretended) -> None:
    assert say(["Ann 7", 1, "bob\x1b[2J"])[0] == 0
    (bits,) = answers(TASK, TASK.person(3, bytes(16)), read(collector.reports[0])[0].body)
    assert bits is not None and np.flatnonzero(bits).tolist() == [1, 7, 11]
    # The same people by number are the same report, and by name a free one.
    assert "\nnothing new was sent" in say([11, 7, 1])[1]


@pytest.mark.parametrize(
    ("linked", "message"),
    [
        (["Ann 12"], "names 'Ann 12', and nobody of that name takes part. "),
        (["4"], "names 4, and nobody of that name takes part. "),
        (["Ann 3"], "names yourself, or somebody twice"),
        (["Ann 4", 4], "names yourself, or somebody twice"),
        (["Ann 4", 12], "names somebody by no number from 0 to 11"),
        (["Ann 4", None], "names somebody by no number"),
        ("Ann 4", "is no list of people"),
    ],
)
def test_nobody_is_guessed(linked: object, message: str, say: Say, collector: Pretended) -> None:
    code, _, err = say(linked)
    message = f"bad-value: an answer is not as declared: links {message}"
    assert code == 2 and err.startswith(message) and err.count("\n") == 1 and not collector.reports


def test_a_list_of_other_people_names_nobody(say: Say, collector: Pretended) -> None:
    """Two names that changed places would be links to somebody else."""
    collector.says["/ids"] = (200, b"".join(json.dumps(person).encode() + b"\n" for person in (*IDS[1:], IDS[0])))
    assert say(["Ann 7"])[2].startswith("bad-ids: the list of people is not one")
    # Who names numbers alone needs no list, and asks for none.
    assert say([7])[0] == 0 and len(collector.reports) == 1
