"""What a collection's folder holds once is on disk before the database relies on it, and an export before it is alone.

SQLite syncs the database itself (`synchronous=FULL`): by a program that this one cannot listen to.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from graphveil.collection.declare import Prices
from graphveil.collection.desk import Desk
from graphveil.collection.drafts import write_draft
from graphveil.collection.export import FILES
from tests.collection.test_desk import TYPED, enrolled, sent
from tests.collection.test_drafts import SUBJECT
from tests.syncing import syncs

pytestmark = pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="what is open is told by /proc")


@pytest.fixture
def drafted(tmp_path: Path) -> Desk:
    folder = tmp_path / "desk"
    folder.mkdir()
    write_draft(folder, SUBJECT, TYPED, Prices(label="1"))
    return Desk(folder)


def own(found: list[list[str]]) -> list[list[str]]:
    """Without the database, which is open all the while."""
    return [[name for name in names if "collection.db" not in name] for names in found]


def test_keys_and_tokens_are_on_disk_before_the_database_relies_on_them(drafted: Desk) -> None:
    with syncs(drafted.folder) as found:
        drafted.sign()
    # Once before the database has the task, and once when all is there.
    assert own(found)[-2:] == [["named"], ["."]] and own(found).count(["."]) == 2
    with syncs(drafted.folder) as found:
        drafted.enrol()
    assert own(found) == [["tokens.csv"], [".", "tokens.csv"]]
    with syncs(drafted.folder) as found, drafted.store() as store:
        drafted.admin_token(store)
    assert own(found)[-2:] == [["named"], ["."]]


def test_an_export_is_on_disk_before_bodies_are_forgotten(drafted: Desk, tmp_path: Path) -> None:
    drafted.sign()
    drafted.enrol()
    joined = enrolled(drafted, 0)
    drafted.open()
    assert sent(drafted, 0, joined) == ["accepted"]
    drafted.close()
    drafted.export(tmp_path / "collected")
    with syncs(tmp_path) as found:
        drafted.scrub(tmp_path / "collected")
    assert own(found) == [*([f"collected/{name}"] for name in FILES), ["collected"], ["."]]
