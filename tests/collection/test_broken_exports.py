"""Exports of processes that are killed: what they leave is removed by the next one, and what others write is not."""

from __future__ import annotations

import http.client
import multiprocessing
import resource
import signal
from pathlib import Path

import pytest

from graphveil.collection.desk import Desk
from graphveil.collection.export import read_export
from graphveil.collection.service import Collector
from graphveil.collection.serving import Place, listening, server_of
from graphveil.writing import partial_folder
from tests.collection.faults import free_port, until
from tests.collection.test_administration import desk, office_of
from tests.collection.test_desk import enrolled, sent
from tests.collection.test_service import asked

__all__ = ["desk"]
LEFT = ".export.partial-*"


def _serve(folder: Path, port: int) -> None:
    """Serve a collection; a file that may not grow kills this process, where Python would go on."""
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
    place, desk = Place(port=port), Desk(folder)
    with listening(place) as own, desk.store() as store:
        server_of(Collector(store, desk=desk), place).run(sockets=[own])


def answered(port: int, path: str, token: str = "") -> int | None:
    """The status of an answer, None where there is none."""
    client = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        client.request("GET", path, headers={"Authorization": f"Bearer {token}"})
        answer = client.getresponse()
        answer.read()
    except (OSError, http.client.HTTPException):
        return None
    finally:
        client.close()
    return answer.status


@pytest.fixture
def closed(desk: Desk) -> Desk:
    """A collection whose first epoch is closed."""
    joined = [enrolled(desk, number) for number in range(3)]
    desk.open()
    assert [sent(desk, number, joined[number]) for number in (1, 2)] == [["accepted"]] * 2
    desk.close()
    return desk


def killed_in_a_download(desk: Desk) -> list[Path]:
    """What lies in the folder after a collector was killed while it made a download."""
    with desk.store() as store:
        token = desk.admin_token(store) or ""
    port = free_port()
    process = multiprocessing.get_context("spawn").Process(target=_serve, args=(desk.folder, port), daemon=True)
    process.start()
    assert process.pid is not None
    until(lambda: answered(port, "/admin/status", token) == 200)
    resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (100, -1))
    assert answered(port, "/admin/export", token) is None
    process.join()
    assert process.exitcode == -signal.SIGXFSZ
    return list(desk.folder.glob(LEFT))


@pytest.mark.slow
def test_what_a_killed_download_leaves_is_swept_by_the_next_export(closed: Desk, tmp_path: Path) -> None:
    (left,) = killed_in_a_download(closed)
    token = (closed.folder / "admin-token").read_text().strip()
    with partial_folder(closed.folder / "export") as other, office_of(closed) as office:
        (other / "file").write_text("another process writes here")
        assert asked(f"{office.url}/admin/export", Authorization=f"Bearer {token}")[0] == 200
        assert not left.exists() and (other / "file").exists()
    # By the command as well, wherever that one goes.
    left.mkdir()
    (left / "task.json").write_text("half")
    closed.export(tmp_path / "elsewhere")
    assert not left.exists() and read_export(tmp_path / "elsewhere").bodies.numbers.tolist() == [1, 2]
