"""Made-up phones at a collector that runs: what they do is what people do, and only on this machine."""

from __future__ import annotations

from pathlib import Path

import pytest

from graphveil.collection.clients import commands_of
from graphveil.collection.desk import Desk
from graphveil.collection.phones import ring
from graphveil.collection.played import Cast, served
from graphveil.collection.subject import subject_of
from graphveil.errors import InputError
from tests.collection.test_desk import ready

DATA = "social-81"


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return ready(tmp_path / "desk", subject=subject_of(DATA), label="2")


def cast() -> Cast:
    return Cast(None, commands_of("python", Path("none")), 0.2, 0.5)


@pytest.mark.parametrize("url", ["https://collector.example", "http://192.168.0.7:8700", "nowhere"])
def test_no_collector_elsewhere_is_sent_made_up_reports(desk: Desk, url: str) -> None:
    with pytest.raises(InputError, match="is another machine"):
        ring(desk.folder, DATA, url, cast(), lambda _: None)


def test_phones_of_other_people_are_refused(desk: Desk) -> None:
    with served(desk) as url, pytest.raises(InputError, match="81 tokens, and 90 nodes"):
        ring(desk.folder, "social-90", url, cast(), lambda _: None)
