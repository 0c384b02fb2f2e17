"""A disk that is full, read-only or forbidden: exit 2, one line with the path, nothing half-written, nothing lied.

The nth thing that a command does to the disk fails, for every n until none is left; what fails is decided where Python
asks the system (audit events), so no way of writing is forgotten.
"""

from __future__ import annotations

import errno
import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from graphveil.graphs import load_graph, make_graph, write_folder
from tests.cli.conftest import Answer, Terminal
from tests.flows.kinds import Kind
from tests.test_writing import files_of_at_most

_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT
_CHANGES = {"os.mkdir", "os.rename"}


class Disk:
    """Refuses from the nth change on, of those below a folder, while it is armed."""

    def __init__(self) -> None:
        self.folder, self.left, self.code, self.lasting, self.refused = "", -1, errno.ENOSPC, True, 0
        sys.addaudithook(self._ask)  # never removed, but silent unless armed

    @contextmanager
    def refusing(self, folder: Path, nth: int, code: int, *, lasting: bool) -> Iterator[None]:
        self.folder, self.left, self.code, self.lasting, self.refused = str(folder), nth, code, lasting, 0
        try:
            yield
        finally:
            self.folder = ""

    def _ask(self, event: str, args: tuple[object, ...]) -> None:
        if not self.folder or not (event in _CHANGES or (event == "open" and _opens_to_write(args))):
            return
        path = os.fsdecode(args[0]) if isinstance(args[0], str | bytes) else ""
        if not (Path.cwd() / path).is_relative_to(self.folder):
            return
        self.left -= 1
        if self.left == -1 or (self.left < -1 and self.lasting):
            self.refused += 1
            raise OSError(self.code, os.strerror(self.code), path)


def _opens_to_write(args: tuple[object, ...]) -> bool:
    mode, flags = args[1], args[2]
    return (isinstance(mode, str) and any(letter in mode for letter in "wax+")) or bool(
        mode is None and isinstance(flags, int) and flags & _WRITES
    )


@pytest.fixture(scope="module")
def disk() -> Disk:
    return Disk()


def entries(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


def refused(answer: Answer, code: int) -> None:
    """One line with the path."""
    errors = [line for line in answer.err.splitlines() if line.startswith(("error:", "fault", "Traceback"))]
    assert answer.code == 2, answer.err
    assert len(errors) == 1, answer.err
    assert os.strerror(code) in errors[0]
    assert "out" in errors[0]
    assert ".partial-" not in errors[0]
    assert "Traceback" not in answer.err
    assert answer.out == ""


TRAIN = ("train", "lpgnn", "PEOPLE", "--epsilon-x", 1, "--epsilon-y", 1, "--epochs", 1, "--no-controls", "--threads", 1)
COMMANDS = {
    "train": (*TRAIN, "--out", "out"),
    "release": ("release", "edge-rand", "PEOPLE", "--epsilon-a", 1, "-o", "out"),
    "split": ("federation", "split", "PEOPLE", "-o", "out"),
    "key": ("federation", "key", "bank", "-o", "out"),
    "mechanisms": ("mechanisms", "compare", "--epsilon", 1, "--dimension", 2, "--users", 10, "--out", "out"),
}


@pytest.fixture(scope="module")
def people(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of twenty people, on a disk that is never full."""
    folder = tmp_path_factory.mktemp("data") / "people"
    Kind("people", people=20).write(folder)
    return folder


def typed(command: str, people: Path) -> list[object]:
    return [people if word == "PEOPLE" else word for word in COMMANDS[command]]


def refused_or_elsewhere(answer: Answer, full: Path, *, paid: bool) -> bool:
    """Whether a command whose disk failed stopped, or wrote what was paid for into the next folder that takes it."""
    assert entries(full) == [], answer.err
    if answer.code:
        refused(answer, errno.ENOSPC)
        assert not (full.parent / "out").exists()
        return True
    assert paid and answer.err.splitlines()[-1].endswith(f": written to {full.parent / 'out'} instead"), answer.err
    shutil.rmtree(full.parent / "out")
    return False


@pytest.fixture
def full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder on a disk that will be full, beside one that is not; commands run there."""
    (tmp_path / "full").mkdir()
    monkeypatch.chdir(tmp_path / "full")
    return tmp_path / "full"


@pytest.fixture
def inputs(type_in: Terminal, quick_pages: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Training that takes no time: the result of one run, whatever is asked for."""
    from graphveil.methods.runs import experiment

    done = []
    original = experiment.run

    def run(*words: object, **how: object) -> object:
        if not done:
            done.append(original(*words, **how))  # type: ignore[arg-type]
        return done[0]

    monkeypatch.setattr(experiment, "run", run)


@pytest.mark.slow  # whole commands
@pytest.mark.parametrize("command", ["release", "split", "key", "train"])
def test_whatever_fails_first_is_one_line_and_leaves_nothing(
    type_in: Terminal, inputs: None, full: Path, disk: Disk, people: Path, command: str
) -> None:
    stopped, paid = [], command in ("release", "train")
    for nth in range(200):
        with disk.refusing(full, nth, errno.ENOSPC, lasting=True):
            answer = type_in(*typed(command, people))
        if not disk.refused:
            assert answer.code == 0, answer.err
            assert nth > 4
            break
        stopped.append(refused_or_elsewhere(answer, full, paid=paid))
    else:
        pytest.fail("never came to an end")
    # First what stops before anything is paid, then what does not: never the other way round.
    assert stopped == sorted(stopped, reverse=True) and all(stopped) != paid


@pytest.mark.parametrize("code", [errno.EACCES, errno.EDQUOT])
@pytest.mark.parametrize("command", ["release", "mechanisms", "train"])
def test_every_reason_is_said(
    type_in: Terminal, tmp_path: Path, disk: Disk, people: Path, command: str, code: int
) -> None:
    with disk.refusing(tmp_path, 0, code, lasting=True):
        answer = type_in(*typed(command, people))
    refused(answer, code)
    assert entries(tmp_path) == []


PRICED = (
    "train lpgnn digits --epsilon-x 1 --out out",
    "tune gap digits --epsilon 4 --over hops=1,2 --trials 2 --out out",
    "tune lpgnn digits --epsilon-x 1 --over hidden=8,16 --out out",
    "compare lpgnn digits --epsilon-x 1 --repeats 1 --out out",
    "release edge-rand social-200 --epsilon-a 1 --without-lift -o out",
    "federation split digits -o out",
)


@pytest.mark.parametrize("words", PRICED, ids=lambda words: words.split()[0])
def test_a_disk_without_room_is_refused_before_anything_is_spent(
    type_in: Terminal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: str
) -> None:
    """200 kB are too little for a run; nobody's report may be asked for before that is seen."""
    for work in (
        "graphveil.methods.runs.experiment.run",
        "graphveil.methods.release.heterorr.HeteroRR.release",
        "graphveil.reports.federation.folders.write_split",
    ):
        monkeypatch.setattr(work, lambda *_, **__: pytest.fail("spent"))
    with files_of_at_most(200_000):
        answer = type_in(*words.split())
    refused(answer, errno.EFBIG)
    assert "MB are needed there; free space there" in answer.err
    assert [name for name in entries(tmp_path) if name not in ("out", "out/comparison.json", "out/graph")] == []


@pytest.mark.slow  # whole commands
@pytest.mark.parametrize("out", [(), ("--out", "out.csv")], ids=["kept", "file"])
def test_a_prediction_without_room_for_what_is_sent_asks_nobody(
    type_in: Terminal, tmp_path: Path, trained: Path, out: tuple[str, ...]
) -> None:
    """New people would report, and their reports could not be kept: they would be asked, and pay, once more."""
    shutil.copytree(trained, tmp_path / "out", symlinks=True)
    graph = load_graph("digits")
    among = graph.edge_index[:, (graph.edge_index < 1_700).all(dim=0)]
    write_folder(make_graph(graph.x[:1_700], among, graph.y[:1_700], graph.schema), tmp_path / "new", format="parquet")
    before = (tmp_path / "out" / "ledger.json").read_bytes()
    with files_of_at_most(60_000):
        answer = type_in("predict", "out", "new", "--people", "other", *out)
    refused(answer, errno.EFBIG)
    assert "MB are needed there; free space there" in answer.err
    assert (tmp_path / "out" / "ledger.json").read_bytes() == before
    assert not [name for name in entries(tmp_path) if "partial" in name or name.endswith(".csv")]
    assert type_in("predict", "out", "new", "--people", "other", *out).code == 0
    assert (tmp_path / "out" / "ledger.json").read_bytes() != before


def test_the_log_of_a_tuning_gets_the_room_that_was_kept_for_it(tmp_path: Path, disk: Disk) -> None:
    from graphveil.files.writing import room_for
    from graphveil.reports.runs.trial_log import TrialLog, read_trials

    path = tmp_path / "out.trials.jsonl"
    with room_for(path, 1 << 20) as room:
        log = TrialLog(path, room)
        log({"trial": 1})
        with disk.refusing(tmp_path, 0, errno.ENOSPC, lasting=False):
            log({"trial": 2})
        log.end()
    trials, ended = read_trials(path)
    assert ([entry["trial"] for entry in trials], ended) == ([1, 2], True)
    assert entries(tmp_path) == ["out.trials.jsonl"]


def test_a_prediction_that_cannot_be_written_leaves_no_half_of_it(
    type_in: Terminal, full: Path, disk: Disk, trained: Path
) -> None:
    shutil.copytree(trained, full / "out")
    before = {name: (full / name).read_bytes() for name in entries(full) if (full / name).is_file()}
    elsewhere = full.parent / "out.csv"
    for nth in range(50):
        with disk.refusing(full, nth, errno.ENOSPC, lasting=True):
            answer = type_in("predict", "out", "digits", "--out", "out.csv")
        if not disk.refused:
            break
        # Refused before anything is asked, or written where there is room.
        assert (answer.code, elsewhere.is_file()) in ((2, False), (0, True)), answer.err
        elsewhere.unlink(missing_ok=True)
        assert "Traceback" not in answer.err
        assert "fault" not in answer.err
        now = {name: (full / name).read_bytes() for name in entries(full) if (full / name).is_file()}
        ours = {name: content for name, content in now.items() if not name.endswith(".lock")}
        assert ours == before
    assert answer.code == 0, answer.err
    assert (full / "out.csv").is_file()
