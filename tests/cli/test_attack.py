"""``graphveil attack`` on a real run."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from graphveil.attacks.catalogue import ATTACKS
from graphveil.attacks.federation.catalogue import FEDERATION_ATTACKS
from graphveil.cli.attack import NAMES
from graphveil.errors import ModelFileError
from graphveil.reports.attacks.files import read_attacks
from tests.cli.conftest import Terminal

pytestmark = pytest.mark.usefixtures("quick_pages")


@pytest.fixture
def run(trained: Path, tmp_path: Path) -> Path:
    """A copy, to which attacks may add."""
    return Path(shutil.copytree(trained, tmp_path / "run"))


def test_every_attack_is_named_and_a_damaged_one_is_refused(run: Path) -> None:
    assert NAMES.replace("; on a federation:", ",").split(", ") == [*ATTACKS, *FEDERATION_ATTACKS]
    (run / "attack-x.json").write_text('{"a": 1}')
    with pytest.raises(ModelFileError, match="damaged"):
        read_attacks(run)


# ---- the cards of a run tell of attacks as soon as they were run, and `graphveil report` writes them anew ----


CARDS = ("card.md", "card.html")


def cards(run: Path) -> list[str]:
    return [(run / name).read_text() for name in CARDS]


@pytest.mark.slow  # whole commands
def test_report_writes_the_cards_anew_from_what_the_folder_holds(type_in: Terminal, run: Path) -> None:
    fresh = cards(run)
    type_in("attack", run, "--attack", "averaging-labels")
    texts = cards(run)
    assert all("the ledger refuses to pay for a second" in card and "MORE THAN" not in card for card in texts)
    for name in CARDS:
        (run / name).unlink()
    assert type_in("report", run, "--json").json["card"] == str(run / "card.md")
    assert cards(run) == texts
    # What was edited or damaged is named, and nothing is written.
    file = run / "attack-averaging-labels.json"
    content = json.loads(file.read_text())
    content["lpgnn"]["auc"]["mean"] = 0.5
    for forged in (content, {name: value for name, value in content.items() if name != "sha256"}):
        file.write_text(json.dumps(forged))
        type_in("report", run).refused("was changed since it was written")
    file.write_text("[1]")
    type_in("report", run).refused("averaging-labels.json: damaged attack")
    assert cards(run) == texts
    file.unlink()
    assert type_in("report", run).code == 0
    assert cards(run) != texts
    assert all("None was run." in card for card in (*fresh, *cards(run)))
