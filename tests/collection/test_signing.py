"""A signing that is cut off at any step leaves a folder that can be signed again, and never one that looks signed."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from graphveil.collection.desk import Desk
from graphveil.collection.export.export import FILES
from graphveil.device.task import Task
from graphveil.errors import InputError
from tests.collection.test_desk import drafted, enrolled, ready, sent
from tests.syncing import syncs

#: What Python tells an audit hook of before it happens: each is a step at which a process may end.
_STEPS = {"open", "os.rename", "os.link", "os.remove", "os.truncate", "sqlite3.connect", "os.chmod"}


def killed_at(step: int, folder: Path) -> bool:
    """Sign in a process that kills itself before its step-th access to the folder; whether it got so far."""
    child = os.fork()
    if child == 0:
        left = [step]

        def hook(event: str, arguments: tuple[Any, ...]) -> None:
            if event in _STEPS and any(str(folder) in str(argument) for argument in arguments):
                left[0] -= 1
                if left[0] == 0:
                    os.kill(os.getpid(), signal.SIGKILL)

        sys.addaudithook(hook)
        Desk(folder).sign()
        os._exit(0)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0
    return os.WIFSIGNALED(status)


def works(folder: Path) -> None:
    """Whether a folder holds a collection from its key to its first epoch."""
    desk = Desk(folder)
    desk.enrol()
    enrolled(desk, 0)
    assert desk.open()["epoch"] == 1
    with desk.store() as store:
        assert store.task().data == (folder / "task.json").read_bytes()


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_kill_at_every_step_can_be_signed_over(tmp_path: Path) -> None:
    drafted(tmp_path / "first", label="1").sign()  # everything is imported: what follows is the folder's own steps
    cut_off = 0
    for step in range(1, 100):
        folder = drafted(tmp_path / f"at {step}", label="1").folder
        if not killed_at(step, folder):
            break
        cut_off += 1
        if (folder / "task.json").exists():
            # It was done but for what nobody needs; a second one is refused as ever.
            with pytest.raises(InputError, match="holds a signed task"):
                Desk(folder).sign()
        else:
            # The draft may be corrected meanwhile: nobody has seen what was being signed.
            drafted(folder, label="1", purpose="another")
            Desk(folder).sign()
            assert Task.of((folder / "task.json").read_bytes()).purpose == "another"
        works(folder)
        extra = {path.name for path in folder.iterdir()} - {"database", "tokens.csv"}
        assert not [name for name in extra if "partial" in name or "unfinished" in name]
    assert cut_off > 10, "the hook saw too little to say anything"


def test_another_folders_collection_is_never_withdrawn(tmp_path: Path) -> None:
    """A signing that was cut off may take back its own task, and no other that came into the database since."""
    url = f"sqlite:///{tmp_path / 'shared.db'}"
    first, second = (drafted(tmp_path / name, label="1") for name in ("first", "second"))
    first.sign(database=url)
    (second.folder / "task.json.unfinished").write_bytes(b"of a signing that never reached the database")
    with pytest.raises(InputError, match="holds a collection already"):
        second.sign(database=url)
    with first.store() as store:
        assert store.task().data == (first.folder / "task.json").read_bytes()


# ---- what is on disk before the database relies on it; SQLite syncs by a program that this one cannot listen to ----


NEEDS_PROC = pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="what is open is told by /proc")


def own(steps: list[list[str]]) -> list[list[str]]:
    """Without the database, which is open all the while."""
    return [[name for name in names if "collection.db" not in name] for names in steps]


@NEEDS_PROC
def test_keys_and_tokens_are_on_disk_before_the_database_relies_on_them(tmp_path: Path) -> None:
    desk = drafted(tmp_path / "desk", label="1")
    with syncs(desk.folder) as steps:
        desk.sign()
    # Once before the database has the task, and once when all is there.
    assert own(steps)[-2:] == [["named"], ["."]] and own(steps).count(["."]) == 2
    with syncs(desk.folder) as steps:
        desk.enrol()
    assert own(steps) == [["tokens.csv"], [".", "tokens.csv"]]
    with syncs(desk.folder) as steps, desk.store() as store:
        desk.admin_token(store)
    assert own(steps)[-2:] == [["named"], ["."]]


@NEEDS_PROC
def test_an_export_is_on_disk_before_bodies_are_forgotten(tmp_path: Path) -> None:
    desk = ready(tmp_path / "desk", label="1")
    joined = enrolled(desk, 0)
    desk.open()
    assert sent(desk, 0, joined) == ["accepted"]
    desk.close()
    desk.export(tmp_path / "collected")
    with syncs(tmp_path) as steps:
        desk.scrub(tmp_path / "collected")
    assert own(steps) == [*([f"collected/{name}"] for name in FILES), ["collected"], ["."]]
