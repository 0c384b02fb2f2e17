"""The cards of a run tell of attacks as soon as they were run, and `graphveil report` writes them anew."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.cli.conftest import Terminal

CARDS = ("card.md", "card.html")


@pytest.fixture
def run(trained: Path, tmp_path: Path) -> Path:
    """A copy, to which attacks may add."""
    return Path(shutil.copytree(trained, tmp_path / "run"))


def cards(run: Path) -> list[str]:
    return [(run / name).read_text() for name in CARDS]


def test_the_cards_tell_of_an_attack_at_once(type_in: Terminal, run: Path) -> None:
    for card in cards(run):
        assert "None was run." in card and "--attack link-stealing" in card
    answer = type_in("attack", run, "--attack", "link-stealing", "--nodes", 100)
    assert answer.code == 0 and "not covered by epsilon" in " ".join(answer.out.split())
    for card in cards(run):
        assert "None was run." not in card and "AUC without protection" in card and "proves nothing" in card
        assert "outside what the method protects" in card


def test_report_writes_the_cards_anew_from_what_the_folder_holds(type_in: Terminal, run: Path) -> None:
    fresh = cards(run)
    type_in("attack", run, "--attack", "averaging-labels")
    told = cards(run)
    assert all("the ledger refuses to pay for a second" in card and "MORE THAN" not in card for card in told)
    for name in CARDS:
        (run / name).unlink()
    assert type_in("report", run, "--json").json["card"] == str(run / "card.md")
    assert cards(run) == told
    (run / "attack-averaging-labels.json").unlink()
    assert type_in("report", run).code == 0
    assert cards(run) != told
    assert all("None was run." in card for card in (*fresh, *cards(run)))


def test_a_damaged_attack_is_named_and_nothing_is_written(type_in: Terminal, run: Path) -> None:
    before = cards(run)
    (run / "attack-x.json").write_text("[1]")
    answer = type_in("report", run)
    assert (answer.code, "attack-x.json: damaged attack" in answer.err) == (2, True)
    assert cards(run) == before


def test_an_attack_that_was_edited_is_not_shown(type_in: Terminal, run: Path) -> None:
    type_in("attack", run, "--attack", "averaging-labels")
    file, before = run / "attack-averaging-labels.json", cards(run)
    content = json.loads(file.read_text())
    content["lpgnn"]["auc"]["mean"] = 0.5
    for forged in (content, {name: value for name, value in content.items() if name != "sha256"}):
        file.write_text(json.dumps(forged))
        answer = type_in("report", run)
        assert (answer.code, "was changed since it was written" in answer.err) == (2, True)
    assert cards(run) == before
