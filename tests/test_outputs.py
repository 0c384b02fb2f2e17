"""Where results go: a name belongs to one process from the start, and what was paid for is written in any case."""

from __future__ import annotations

import errno
import fcntl
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from threading import Barrier

import pytest

from graphveil.errors import UsedPathError, WriteError
from graphveil.files import outputs
from graphveil.files.outputs import Output, locked_folder, new_output
from graphveil.files.writing import new_folder, write_text
from tests.test_writing import files_of_at_most, names


def fill(path: Path) -> str:
    with new_folder(path) as folder:
        write_text(folder / "result", "paid for")
    return path.name


def test_of_two_at_once_each_has_a_name_of_its_own_and_nothing_but_results_is_left(tmp_path: Path) -> None:
    started = Barrier(4)

    def run(_: int) -> str:
        with new_output(None, tmp_path / "runs" / "cora", say=pytest.fail) as output:
            started.wait(30)  # all hold their names, and none has written anything
            return output.write(fill)

    with ThreadPoolExecutor(4) as threads:
        written = sorted(threads.map(run, range(4)))
    assert written == ["cora", *(f"cora-{number}" for number in range(2, 5))] == names(tmp_path / "runs")


def test_a_name_that_was_typed_is_refused_while_another_process_has_it(tmp_path: Path) -> None:
    out = tmp_path / "run"
    with new_output(out, out, say=pytest.fail) as output:
        with pytest.raises(UsedPathError, match="another process is about to write"), new_output(out, out, say=print):
            pytest.fail("was had twice")
        output.write(fill)
    with pytest.raises(UsedPathError, match="is not empty"), new_output(out, out, say=print):
        pytest.fail("was used")
    assert names(tmp_path) == ["run"]


def filled(run: Path) -> None:
    run.mkdir()
    (run / "theirs").touch()


#: What becomes of `runs/run` after it was taken: where the result goes then, and why.
LOST: dict[str, tuple[Callable[[Path], object], str | None, str]] = {
    "filled": (filled, "runs/run-2", "is not empty"),
    "a file": (lambda run: run.touch(), "runs/run-2", "is not a folder"),
    "a link": (lambda run: run.symlink_to("elsewhere"), "runs/run-2", "is not a folder"),
    "its folder deleted": (lambda run: shutil.rmtree(run.parent), None, ""),
    "its folder a file": (
        lambda run: [run.parent.rename(run.parent.with_name("old")), run.parent.touch()],
        "run",
        "cannot",
    ),
}


@pytest.mark.parametrize("what", LOST)
def test_what_was_paid_for_goes_beside_a_path_that_is_gone(tmp_path: Path, what: str) -> None:
    lose, elsewhere, reason = LOST[what]
    messages: list[str] = []
    with new_output(None, tmp_path / "runs" / "run", say=messages.append) as output:
        lose(output.path)
        output.write(fill)
    expected = tmp_path / (elsewhere or "runs/run")
    assert (expected / "result").read_text() == "paid for" and output.path == expected
    if elsewhere is None:
        assert messages == []
    else:
        (line,) = messages
        assert line.endswith(f": written to {expected} instead") and reason in line and "\n" not in line


def test_a_disk_that_takes_nothing_sends_it_to_another_folder_or_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")

    def write(path: Path) -> None:
        if path.parent.name != "here":
            raise WriteError("cannot be written (Read-only file system)", where=str(path))
        fill(path)

    messages: list[str] = []
    with new_output(None, tmp_path / "runs" / "run", say=messages.append) as output:
        output.write(write)
    assert (tmp_path / "here" / "run" / "result").exists()
    assert messages == [
        f"warning: {tmp_path / 'runs' / 'run'}: cannot be written (Read-only file system): "
        f"written to {tmp_path / 'here' / 'run'} instead"
    ]
    # What costs nothing to make again is not scattered.
    with (
        pytest.raises(WriteError, match="Read-only"),
        new_output(None, tmp_path / "runs" / "run", say=pytest.fail) as output,
    ):
        output.write(write, paid=False)
    with files_of_at_most(1), pytest.raises(WriteError, match="too large"):
        Output(tmp_path / "runs" / "run").write(fill)


def test_a_result_that_grows_is_whole_wherever_it_goes(tmp_path: Path) -> None:
    messages: list[str] = []
    with new_output(None, tmp_path / "table", say=messages.append) as output:
        output.create_folder("plan", "what")
        output.add_file("cells/1", "one")
        for file in (tmp_path / "table").rglob("*"):
            if file.is_file():
                file.unlink()
        (tmp_path / "table" / "theirs").touch()
        output.add_file("cells/2", "two")
        output.in_folder(lambda folder: write_text(folder / "page", "all"))
    assert [names(tmp_path / "table-2"), names(tmp_path / "table-2" / "cells")] == [
        ["cells", "page", "plan"],
        ["1", "2"],
    ]
    assert len(messages) == 1


_HOLD = """
import sys
from pathlib import Path
from graphveil.files.outputs import locked_folder, new_output
with locked_folder(Path(sys.argv[1])), new_output(None, Path(sys.argv[1], "run"), say=print) as output:
    print(output.path.name, flush=True)
    sys.stdin.read()
"""


def holder(folder: Path) -> subprocess.Popen[str]:
    """Another process that has taken a name in a folder, and the folder."""
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    started = subprocess.Popen([sys.executable, "-c", _HOLD, str(folder)], **pipes)  # type: ignore[call-overload]
    assert started.stdout is not None and started.stdout.readline() == "run\n"
    return started  # type: ignore[no-any-return]


def test_what_a_killed_process_had_is_free_at_once_and_leaves_no_trace(tmp_path: Path) -> None:
    killed = holder(tmp_path)
    with new_output(None, tmp_path / "run", say=print) as output:
        assert output.path.name == "run-2"
        killed.send_signal(signal.SIGKILL)
        killed.communicate(timeout=30)
        with locked_folder(tmp_path, pytest.fail), new_output(None, tmp_path / "run", say=print) as other:
            assert other.write(fill) == "run"
    assert names(tmp_path) == ["run"]


def test_a_folder_is_changed_by_one_after_the_other(tmp_path: Path) -> None:
    other, messages = holder(tmp_path), list[str]()

    def let_go(line: str) -> None:
        messages.append(line)
        other.communicate("")

    tmp_path.chmod(0o500)  # nothing is written for it
    try:
        with locked_folder(tmp_path, let_go):
            assert messages == [f"waiting for another process that changes {tmp_path}"]
    finally:
        tmp_path.chmod(0o700)


def test_files_are_numbered_before_their_ending_and_one_who_was_quicker_keeps_its_name(tmp_path: Path) -> None:
    (tmp_path / "people.csv").touch()

    def write(path: Path) -> None:
        if path.name == "people-2.csv":
            path.touch()
            raise UsedPathError("exists")
        write_text(path, "1")

    messages: list[str] = []
    with ExitStack() as stack:
        Output(tmp_path / "people.csv", messages.append, stack).write_beside(OSError("no room"), write)
    assert names(tmp_path) == ["people-2.csv", "people-3.csv", "people.csv"]
    assert messages == [f"warning: no room: written to {tmp_path / 'people-3.csv'} instead"]


def test_where_all_names_are_used_nothing_begins_and_what_was_paid_for_goes_to_another_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outputs, "_MOST", 3)
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    default = tmp_path / "runs" / "run"
    with new_output(None, default, say=print) as output:
        for name in ("run", "run-2"):
            fill(default.with_name(name))
        output.write(fill)
    assert output.path == tmp_path / "run"
    refusal = pytest.raises(UsedPathError, match="runs/run and 3 names like it are used")
    with refusal, new_output(None, default, say=print):
        pytest.fail("was had")


def test_where_no_name_can_be_reserved_the_second_goes_beside_the_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outputs, "fcntl", None)
    messages: list[str] = []
    with (
        new_output(None, tmp_path / "run", say=pytest.fail) as first,
        new_output(None, tmp_path / "run", say=messages.append) as second,
    ):
        assert first.path == second.path
        first.write(fill)
        second.write(fill)
    assert names(tmp_path) == ["run", "run-2"] and len(messages) == 1


def test_a_disk_without_locks_takes_results_all_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: int) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", refuse)
    with new_output(None, tmp_path / "run", say=pytest.fail) as output:
        output.write(fill)
    assert names(tmp_path) == ["run"]


def test_a_reservation_that_was_removed_meanwhile_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its last holder removes the file after this process has opened it."""
    lock, removed = fcntl.flock, list[Path]()

    def remove_first(file: int, how: int) -> None:
        if not removed:
            (reservation,) = tmp_path.iterdir()
            reservation.unlink()
            removed.append(reservation)
        lock(file, how)

    monkeypatch.setattr(fcntl, "flock", remove_first)
    with new_output(None, tmp_path / "run", say=pytest.fail):
        assert list(tmp_path.iterdir()) == removed
