"""Tokens that say who is who: on the person's page, and where an organisation brings its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from graphveil.collection.service.tokens import in_order
from graphveil.device.wire import numbered
from graphveil.errors import InputError
from tests.collection.visits import Visit, running
from tests.on_device.signing import label
from tests.reports.browser import started

IDS = ("ann", "bob", "eve")


def table(path: Path, tokens: dict[str, bytes]) -> Path:
    path.write_text("id,token\n" + "".join(f"{person},{token.hex()}\n" for person, token in tokens.items()))
    return path


def test_tokens_of_ones_own_end_with_numbers(tmp_path: Path) -> None:
    right = {person: numbered(bytes(range(number, number + 16)), number) for number, person in enumerate(IDS)}
    assert dict(in_order(table(tmp_path / "right.csv", dict(reversed(right.items()))), IDS)) == right
    wrong = right | {"bob": right["bob"][:-1] + b"\x02"}
    with pytest.raises(InputError, match=r"the token of 'bob' does not end with their number.*0000000001"):
        in_order(table(tmp_path / "wrong.csv", wrong), IDS)


@pytest.mark.slow
def test_the_page_takes_no_other_number(tmp_path: Path) -> None:
    with running(tmp_path, label()) as collection, started(tmp_path / "profile") as browser:
        collection.recorder.lies["/enrolments"] = b'{"number":0,"joined":1}'
        visit = Visit(browser, collection)
        visit.come(collection.link(5))
        visit.click("#join button.main")
        visit.sees("The collector takes you for somebody else")
        collection.recorder.lies.clear()
        visit.click("#join button.main")
        visit.sees("Enrolment is still open")
