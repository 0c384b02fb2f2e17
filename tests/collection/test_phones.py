"""Made-up phones at a collector that runs: what they do is what people do, and only on this machine."""

from __future__ import annotations

from pathlib import Path

import pytest

from graphveil.collection.clients import commands_of
from graphveil.collection.desk import Desk
from graphveil.collection.phones import ring
from graphveil.collection.played import Cast, served
from graphveil.collection.subject import subject_of
from graphveil.device.remote import Remote
from graphveil.errors import InputError
from graphveil.progress import Progress
from tests.collection.test_desk import ready

DATA = "social-81"


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return ready(tmp_path / "desk", subject=subject_of(DATA), label="2")


def cast() -> Cast:
    return Cast(None, commands_of("python", Path("none")), 0.2, 0.5)


@pytest.mark.slow  # processes, or many people
def test_whose_token_is_left_answers_when_the_round_opens(desk: Desk) -> None:
    """One token is used in a browser before; the others wait for the opening, and are counted once."""
    with served(desk) as url:
        first = (desk.folder / "tokens.csv").read_text().splitlines()[1].split(",")[1]
        Remote(url).enrol(first, "00" * 32)
        opened: list[int] = []

        def tell(told: Progress) -> None:
            # In the phones' own thread: where the epoch does not open, they hear of it, and wait no longer.
            if told.stage.startswith("waiting"):
                assert told.done < 60, "the epoch was opened, and phones do not hear of it"
                if not opened:
                    opened.append(desk.open()["epoch"])

        told = ring(desk.folder, DATA, url, cast(), tell)
        assert opened == [1]
        assert (told["phones"], told["elsewhere"]) == (80, 1)
        assert 0 < told["answered"] <= 80 and told["again"] > 0
        assert desk.close()["received"] == told["answered"]
        # They keep nothing: with their tokens spent, nobody is left who could answer again.
        with pytest.raises(InputError, match="no token is left"):
            ring(desk.folder, DATA, url, cast(), lambda _: None)


@pytest.mark.parametrize("url", ["https://collector.example", "http://192.168.0.7:8700", "nowhere"])
def test_no_collector_elsewhere_is_sent_made_up_reports(desk: Desk, url: str) -> None:
    with pytest.raises(InputError, match="is another machine"):
        ring(desk.folder, DATA, url, cast(), lambda _: None)


def test_phones_of_other_people_are_refused(desk: Desk) -> None:
    with served(desk) as url, pytest.raises(InputError, match="81 tokens, and 90 nodes"):
        ring(desk.folder, "social-90", url, cast(), lambda _: None)
