"""A server that is killed at any moment: what it acknowledged stands, once, and what it did not can be sent again."""

from __future__ import annotations

import random
import resource
from collections import Counter
from pathlib import Path

import pytest

from graphveil.collection.store import Store
from graphveil.collection.tables import opened
from tests.collection.collections import stored, url_of
from tests.collection.faults import Round, answers_of, serving

KILLS, PEOPLE = 50, 600


@pytest.mark.slow
def test_what_was_acknowledged_is_counted_once_through_kills(tmp_path: Path) -> None:
    made = Round(url_of(tmp_path), KILLS, PEOPLE)
    made.run(random.Random(0))
    assert made.faults() == [] and made.acknowledged.total() == PEOPLE


def test_a_disk_that_is_full_takes_nothing_and_recovers(tmp_path: Path) -> None:
    """The system lets files grow no further: nothing is acknowledged that is not stored, and no restart is needed."""
    with serving(url_of(tmp_path), 60) as (server, each):
        server.limit(resource.RLIMIT_FSIZE, (tmp_path / "collection.db-wal").stat().st_size + (1 << 15))
        found = Counter(code for one in each for code in answers_of(server.port, one) or ["nothing"])
        assert set(found) == {"again", "accepted", "disk-full"}, found
        server.limit(resource.RLIMIT_FSIZE, -1)
        after = Counter(code for one in each for code in answers_of(server.port, one) or ["nothing"])
        assert after == {"again": found["accepted"] + 1, "accepted": found["disk-full"]}
    assert len(stored(Store(opened(url_of(tmp_path))))) == len(each)
