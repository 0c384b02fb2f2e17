"""What a collection's folder holds once is on disk before the database relies on it, and an export before it is alone.

SQLite syncs the database itself (`synchronous=FULL`): by a program that this one cannot listen to.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from graphveil.collection.export import FILES
from tests.collection.test_desk import drafted, enrolled, ready, sent
from tests.syncing import syncs

pytestmark = pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="what is open is told by /proc")


def own(found: list[list[str]]) -> list[list[str]]:
    """Without the database, which is open all the while."""
    return [[name for name in names if "collection.db" not in name] for names in found]


def test_keys_and_tokens_are_on_disk_before_the_database_relies_on_them(tmp_path: Path) -> None:
    desk = drafted(tmp_path / "desk", label="1")
    with syncs(desk.folder) as found:
        desk.sign()
    # Once before the database has the task, and once when all is there.
    assert own(found)[-2:] == [["named"], ["."]] and own(found).count(["."]) == 2
    with syncs(desk.folder) as found:
        desk.enrol()
    assert own(found) == [["tokens.csv"], [".", "tokens.csv"]]
    with syncs(desk.folder) as found, desk.store() as store:
        desk.admin_token(store)
    assert own(found)[-2:] == [["named"], ["."]]


def test_an_export_is_on_disk_before_bodies_are_forgotten(tmp_path: Path) -> None:
    desk = ready(tmp_path / "desk", label="1")
    joined = enrolled(desk, 0)
    desk.open()
    assert sent(desk, 0, joined) == ["accepted"]
    desk.close()
    desk.export(tmp_path / "collected")
    with syncs(tmp_path) as found:
        desk.scrub(tmp_path / "collected")
    assert own(found) == [*([f"collected/{name}"] for name in FILES), ["collected"], ["."]]
