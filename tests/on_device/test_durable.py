"""What a device promises to have kept is on disk, its name too, before it goes on."""

from __future__ import annotations

from pathlib import Path

import pytest

from graphveil.device import answer
from graphveil.device.durable import write
from graphveil.device.home import Home
from tests.on_device.signing import label, task_of
from tests.syncing import syncs

pytestmark = pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="what is open is told by /proc")


def test_a_file_is_synced_before_it_is_named_and_its_folder_after(tmp_path: Path) -> None:
    with syncs(tmp_path) as found:
        write(tmp_path / "limit", b"2.5")
    assert found == [["limit.new"], ["named"], ["."]]


def test_a_secret_is_on_disk_before_it_is_told(tmp_path: Path) -> None:
    with syncs(tmp_path) as found:
        Home(tmp_path).secret()
    # Beside the lock that is held meanwhile.
    assert [[one for one in names if one != "ledger.lock"] for names in found] == [
        *(["ledger.new"], ["named"], ["."]),
        *(["limit.new"], ["named"], ["."]),
        *(["secret.new"], ["named"], ["."]),
    ]


def test_what_is_spent_is_on_disk_before_it_is_sent(tmp_path: Path) -> None:
    home, task, nonce = Home(tmp_path), task_of(label()), bytes(16)
    drawn = answer(task, task.person(0, nonce), {"label": "sad"}, home.secret())
    with syncs(tmp_path) as found:
        home.ledger().book(task, 1, nonce, drawn, 1)
    # The line, the name of its file, and then the seal.
    assert found == [["ledger.jsonl"], ["."], ["ledger.new"], ["named"], ["."]]
