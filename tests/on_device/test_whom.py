"""A person at a terminal is told whom they answer for, and agrees to it, before anything is booked or sent."""

from __future__ import annotations

import io
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from graphveil.device.people.people import ids_hash
from graphveil.device.wire import numbered
from tests.on_device.conftest import Run
from tests.on_device.pretended import IDS, TOKEN, Pretended, pretended, spelled
from tests.on_device.signing import degree, label, links, task_of

ASKS = {"links": links(12), "degree": degree(12)}


@pytest.fixture(params=ASKS)
def collector(request: pytest.FixtureRequest) -> Iterator[Pretended]:
    with pretended(task_of(ASKS[request.param], ids=ids_hash(IDS))) as collection:
        yield collection


@pytest.fixture(autouse=True)
def mine(data: Path) -> Path:
    data.write_text('{"links": [5]}')
    return data


def enrol(collector: Pretended, token: str = TOKEN) -> list[str]:
    return ["enrol", collector.url, token, "--task", collector.task.hash.hex()]


@pytest.mark.slow
def test_a_token_comes_through_a_pipe(collector: Pretended, tmp_path: Path) -> None:
    words = ["--folder", str(tmp_path / "device"), *enrol(collector, "-"), "--as", "Ann 3"]
    for typed, code in (("", 2), (f"{TOKEN}\n", 0)):
        command = [sys.executable, "-m", "graphveil.device", *words]
        assert subprocess.run(command, input=typed, text=True, capture_output=True).returncode == code


def test_off_a_terminal_the_id_is_said(run: Run, collector: Pretended, home: Path, mine: Path) -> None:
    code, out, err = run(*enrol(collector))
    assert (code, out) == (2, "") and err.startswith(
        'command: you would answer as "Ann 3", person 3. None of your data'
    )
    code, out, err = run(*enrol(collector), "--as", "Ann 4")
    assert (code, out) == (2, "") and "--as says 'Ann 4'. None of your data was sent." in err and err.count("\n") == 1
    assert not collector.enrolled and not list(home.iterdir())
    assert run(*enrol(collector), "--as", "Ann 3")[1].endswith('you are "Ann 3", person 3, from epoch 1 on; nothing '
                                                              "of yours was sent\n")  # fmt: skip
    lines = run("show", mine)[1]
    assert 'you answer as "Ann 3", person 3; if this is not you, stop and tell the organiser\n' in lines
    # What was agreed to once is told again, and asked no more: the number stays, and the list is that of the task.
    collector.says["/ids"] = (404, b"{}")
    assert run("answer", mine, "--as", "Ann 4")[:2] == (2, "")
    assert not collector.reports
    assert run("answer", mine)[1].startswith('you answer as "Ann 3", person 3\nrecorded; ')


def test_one_number_for_everybody_is_seen_by_who_is_not_it(run: Run, collector: Pretended) -> None:
    """Tokens and collector agree on number 0: each link of "Ann 3" would be told by both its ends."""
    collector.says["/enrolments"] = (200, b'{"number":0,"joined":1}')
    everybody = numbered(bytes(16), 0).hex()
    code, _, err = run(*enrol(collector, everybody), "--as", "Ann 3")
    assert code == 2 and err.startswith('enrolment: you would answer as "Ann 0", person 0, and --as says')
    assert run(*enrol(collector, numbered(bytes(16), 12).hex()), "--as", "Ann 3")[2].startswith(
        "command: the token is of none"
    )
    assert not collector.enrolled


def test_people_passed_off_as_others_are_refused(run: Run, collector: Pretended) -> None:
    for wrong in (spelled((IDS[1], IDS[0], *IDS[2:])), spelled(IDS[:-1]), b"[1]\n", b"{\n", b"[" * 10**5, b"", b"\xff"):
        collector.says["/ids"] = (200, wrong)
        assert run(*enrol(collector), "--as", "Ann 3")[2].startswith("bad-ids: the list of people")
    assert not collector.enrolled


# Every other kind is in the vectors. Of the second there are as many different ids as people, since it has more lines.
@pytest.mark.parametrize(
    ("people", "ids"),
    [(3, ("a", "b", "c", "d")), (4, ("Ann", "Bob", "Ann", "Bob", "x", "y")), (3, ("zo\u00eb", "Bob", "zoe\u0308"))],
    ids=["too long", "padded", "an accent apart"],
)
def test_a_list_that_names_somebody_twice_is_refused(people: int, ids: tuple[str, ...], run: Run) -> None:
    """With a number below Bob's and one above, Ann would report her link to him, and he his to her."""
    with pretended(task_of(links(people), people=people, least=1, ids=ids_hash(ids))) as collector:
        collector.says["/ids"] = (200, spelled(ids))
        result = run(*enrol(collector, numbered(bytes(16), 1).hex()), "--as", "Bob")
        assert result[2].startswith("bad-ids: the list of people") and not collector.enrolled


class Typed(io.StringIO):
    """A terminal at which something is typed."""

    def isatty(self) -> bool:
        return True


def test_nothing_is_sent_before_the_person_agrees(
    run: Run, collector: Pretended, monkeypatch: pytest.MonkeyPatch
) -> None:
    for answer in ("n", "", "ye"):
        monkeypatch.setattr("sys.stdin", Typed(f"{answer}\n"))
        code, _, err = run(*enrol(collector))
        assert code == 2 and 'You answer as "Ann 3", person 3. If this is not you, stop' in err
        assert 'enrolment: you are not "Ann 3", person 3' in err and not collector.enrolled
    monkeypatch.setattr("sys.stdin", Typed(f"{TOKEN}\ny\n"))
    assert run(*enrol(collector, "-"))[0] == 0 and [enrolment["token"] for enrolment in collector.enrolled] == [TOKEN]


def test_an_id_moves_no_cursor(run: Run, collector: Pretended) -> None:
    collector.says["/enrolments"] = (200, b'{"number":11,"joined":1}')
    token = numbered(bytes(16), 11).hex()
    for more in ((), ("--as", "bob"), ("--as", IDS[11])):
        _, out, err = run(*enrol(collector, token), *more)
        assert '"bob?[2J", person 11' in out + err and "\x1b" not in out + err


def test_without_links_nobody_is_asked(run: Run) -> None:
    with pretended(task_of(label())) as other:
        other.says["/ids"] = (404, b"{}")
        assert run(*enrol(other), "--as", "Ann 3")[2].startswith("command: --as is for tasks that ask for links")
        assert "you are person 3, from epoch 1 on" in run(*enrol(other))[1]
