"""Jobs as processes: how each ends, who waits, and what a studio that was started again knows of them."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import sys
from collections.abc import Iterator
from pathlib import Path
from threading import Thread

import pytest

from graphveil.errors import UsedPathError
from graphveil.studio.jobs import PROGRAM, Limits
from graphveil.studio.refusals import Refusal
from graphveil.studio.root import Root
from graphveil.studio.service import refusal_of
from graphveil.studio.serving import owned
from graphveil.studio.store import Job, Store
from tests.studio import program
from tests.studio.studios import Open, studio_at
from tests.waiting import until

FAKE = (sys.executable, program.__file__)
WORDS = ["done", "town"], ["done", "other"]


@pytest.fixture
def here(tmp_path: Path) -> Iterator[Open]:
    with studio_at(tmp_path / "root", limits=Limits(1, 512, 3), program=FAKE, patience=0.5) as opened:
        yield opened


def begin(here: Open, kind: str) -> str:
    job: Job = here.jobs.submit("attack", {"job": "attack"}, [kind], None)
    return job.id


@pytest.mark.parametrize(
    ("kind", "state", "error"),
    [
        ("done", "done", None),
        ("refuse", "refused", "town/nodes.csv, line 7: age is ..., not a number; the file alone shows the value"),
        ("hungry", "refused", "not enough memory; choose smaller settings"),
        ("fault", "failed", "internal error: ValueError; its stderr is in .graphveil-studio/jobs, please report it"),
        ("crash", "killed", "ended by signal 9 (SIGKILL): most likely no memory was left, see --memory"),
    ],
)
def test_a_job_ends_in_a_state_with_a_sentence(kind: str, state: str, error: str | None, here: Open) -> None:
    job = here.ended(begin(here, kind), state)
    assert error is None or error in job["error"]
    # What a page hears of a job that has ended: its last progress, and its state.
    lines = here.page.ask("GET", f"/api/jobs/{job['id']}/events").body.decode().splitlines()
    progress, ended = (json.loads(line.removeprefix("data: ")) for line in lines if line.startswith("data: "))
    assert "MARKER" not in json.dumps(job) and progress["stage"] == "training" and ended == {"state": state}
    assert job["warnings"] == (["of the command"] if kind == "refuse" else [])
    if kind == "done":
        assert job["answer"]["threads"] == "3" and job["answer"]["nice"] > os.nice(0)
        assert progress == {"done": 9, "total": 9, "stage": "training", "epsilon": 4.5}
        assert here.page.ask("GET", "/api/jobs/none/events").status == 404


@pytest.mark.parametrize("kind", ["wait", "stubborn"])
def test_a_job_is_stopped_and_killed_where_it_does_not_stop(kind: str, here: Open) -> None:
    id = begin(here, kind)
    until((here.studio.root.folder / "waits").exists)
    stopped = here.page.ask("DELETE", f"/api/jobs/{id}").json
    assert stopped["state"] == "running" and here.page.ask("DELETE", f"/api/jobs/{id}").json["state"] == "running"
    assert "error" in here.ended(id, "stopped")
    assert here.page.ask("POST", f"/api/jobs/{id}/again", {}).status in (400, 404)


def test_jobs_wait_for_their_turn_and_one_that_waits_is_stopped_before_it_begins(here: Open) -> None:
    first, second, third = (begin(here, kind) for kind in ("wait", "done", "done"))
    until((here.studio.root.folder / "waits").exists)
    assert [job["state"] for job in here.page.get("/api/jobs")["jobs"]] == ["waiting", "waiting", "running"]
    stopped = here.page.ask("DELETE", f"/api/jobs/{second}").json
    assert (stopped["state"], stopped["error"]) == ("stopped", "it was stopped before it began")
    (here.studio.root.folder / "go").touch()
    assert here.ended(first)["ended"] <= here.ended(third)["began"] + 1
    assert here.page.get(f"/api/jobs/{second}")["state"] == "stopped"


def test_a_studio_that_was_started_again_knows_its_jobs(tmp_path: Path) -> None:
    folder, limits = tmp_path / "root", Limits(3, 512, 1)
    with studio_at(folder, limits=limits, program=FAKE) as before:
        running, killed = begin(before, "wait"), begin(before, "wait")
        until((folder / "waits").exists)
        places = [before.jobs.folder(before.jobs.store.job(id)) for id in (running, killed)]
        until(lambda: all((place / "progress.jsonl").exists() for place in places))
        # The same processes to a server that did not start them.
        children = dict(before.jobs.processes)
    with studio_at(folder, limits=limits, program=FAKE) as here:
        here.jobs.tick()
        assert here.page.get(f"/api/jobs/{running}")["state"] == "running"
        os.killpg(int((places[1] / "running").read_text()), signal.SIGKILL)
        children[killed].wait()
        lost = here.ended(killed, "killed")
        assert "before it ended" in lost["error"]
        (folder / "go").touch()
        children[running].wait()
        assert here.ended(running)["answer"]["kind"] == "wait"


def test_what_waited_for_an_earlier_studio_does_not_begin_by_itself(tmp_path: Path) -> None:
    with studio_at(tmp_path / "root", limits=Limits(1, 512, 1), program=FAKE) as before:
        running, waiting = begin(before, "wait"), begin(before, "done")
        process = before.jobs.processes[running]
    with studio_at(tmp_path / "root", program=FAKE) as here:
        (tmp_path / "root" / "go").touch()
        process.wait()
        here.ended(running)
        here.jobs.tick()
        assert here.page.get(f"/api/jobs/{waiting}")["error"] == "it was stopped before it began"
        assert not here.jobs.folder(here.jobs.store.job(waiting)).exists()


def test_a_job_does_not_begin_once_the_data_of_its_price_have_changed(here: Open) -> None:
    folder = here.studio.root.folder
    for place in ("town", "other"):
        (folder / place).mkdir()
        (folder / place / "nodes.csv").write_text("id")
    begin(here, "wait")
    same, other = (here.jobs.submit("train", {}, words, None, here.jobs.stamps(words)) for words in WORDS)
    (folder / "other" / "graph.toml").write_text("private = []")
    (folder / "go").touch()
    assert here.ended(same.id)["answer"]["kind"] == "done"
    assert "the data has changed since" in here.ended(other.id, "refused")["error"]
    assert not (here.jobs.folder(other) / "words.json").exists()


def test_a_state_that_cannot_be_written_starts_no_command_twice(here: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a full disk a job that is queued is queued, and one that was not written down as running does not run."""
    put = Store.put

    def full(store: Store, job: Job, **fields: object) -> Job:
        if fields.get("state") == "running":
            raise sqlite3.OperationalError("database or disk is full")
        return put(store, job, **fields)

    with monkeypatch.context() as patched:
        patched.setattr(Store, "put", full)
        id = begin(here, "done")
        assert here.page.get(f"/api/jobs/{id}")["state"] == "waiting" and not here.jobs.processes
    assert here.ended(id)["answer"]["kind"] == "done"


def test_neither_jobs_nor_questions_pile_up(here: Open) -> None:
    ids = [begin(here, "wait") for _ in range(101)]
    with pytest.raises(Refusal, match="100 jobs wait already"):
        begin(here, "wait")
    for id in reversed(ids):
        here.page.ask("DELETE", f"/api/jobs/{id}")
    questions = [Thread(target=here.jobs.ask, args=(["wait"],)) for _ in range(2)]
    for question in questions:
        question.start()
    until(lambda: len(list(here.studio.root.scratch.iterdir())) == 2)
    with pytest.raises(Refusal, match="other questions are being answered"):
        here.jobs.ask(["done"], 0.01)
    (here.studio.root.folder / "go").touch()
    for question in questions:
        question.join()
    assert here.jobs.ask(["done"])["kind"] == "done"


def test_one_studio_serves_a_folder(tmp_path: Path) -> None:
    root = Root(tmp_path)
    with owned(root), pytest.raises(UsedPathError, match="another studio serves"), owned(root):
        pass
    root.state.chmod(0o777)  # as it may come with a folder from elsewhere
    with owned(root):
        assert root.state.stat().st_mode & 0o777 == 0o700


def test_a_full_disk_is_one_line(here: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr("graphveil.studio.jobs.subprocess.Popen", full)
        assert here.ended(begin(here, "done"), "failed")["error"] == "No space left on device"
    assert here.ended(begin(here, "done"))["answer"]["kind"] == "done"
    assert refusal_of(sqlite3.OperationalError("database or disk is full")).status == 507


def test_no_file_of_the_root_takes_a_librarys_place(tmp_path: Path) -> None:
    with studio_at(tmp_path / "root", program=(*PROGRAM[:2], *FAKE[1:])) as here:
        (here.studio.root.folder / "json.py").write_text("raise SystemExit(9)")
        assert here.ended(begin(here, "done"))["answer"]["path"] != str(here.studio.root.folder)
    assert PROGRAM[1] == "-P"
