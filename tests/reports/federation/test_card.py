"""The card of a party of a federation: the same fields as every other, from what the folder holds."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from graphveil.errors import DataError, ModelFileError
from graphveil.federation.core.guarantees import guarantee_of, ledger_of
from graphveil.federation.core.messages import KINDS
from graphveil.federation.core.setting import MODES, Member, Setting
from graphveil.files.serial import to_json
from graphveil.reports.attacks.run import save_results
from graphveil.reports.federation.card import OUTCOME, is_party, rewrite_party
from graphveil.reports.rewrite import has_pages, rewrite
from tests.reports.base.test_card import result
from tests.reports.pages import read

MEMBERS = (Member("clinic", 40, True), Member("bank", 60))


def party(folder: Path, *, epsilon: float = 8.0, **changes: Any) -> Path:
    """The folder of a party that has finished."""
    setting = Setting.of(MEMBERS, classes=3, epsilon=epsilon)
    guarantee = guarantee_of(setting)
    outcome = {
        "run": "clinic-and-bank",
        "party": "clinic",
        "mode": setting.protocol.mode,
        "opens": MODES[setting.protocol.mode],
        "publications": setting.publications,
        "epsilon": epsilon,
        "delta": setting.privacy.delta,
        "epsilon_per_publication": epsilon / 10,
        "epsilon_y": math.inf,
        "guarantee": guarantee.to_dict(),
        "messages": [{"kind": "noisy-share", "from": "clinic", "to": "server", "count": 2, "bytes": 8}],
        "accuracy": {"mean": 0.75, "low": 0.7, "high": 0.8, "runs": [0.75]},
        "test_nodes": 50,
        **changes,
    }
    folder.mkdir(parents=True)
    (folder / OUTCOME).write_text(to_json(outcome))
    (folder / "ledger.json").write_text(to_json(ledger_of(setting, setting.publications).to_dict()))
    return folder


def forms(folder: Path) -> tuple[str, str]:
    assert rewrite(folder)["card"] == str(folder / "card.md")
    return (folder / "card.md").read_text().replace("\\", ""), read((folder / "card.html").read_text()).text


def test_every_field_stands_in_both_forms(tmp_path: Path) -> None:
    folder = party(tmp_path / "run" / "clinic")
    for text in forms(folder):
        for part in (
            *("Privacy card: clinic-and-bank, clinic", "one published embedding row of one holder", "vertical"),
            *(
                "neighbours differ by",
                "epsilon",
                "delta",
                "the server not to collude with any holder",
                "Against:",
                "Assumes:",
            ),
            *("What is not protected", "labels of training nodes", "rows of neighbours", "50 test nodes: 75.0%"),
            *("not covered by epsilon", "Lift over the free baseline: not measured.", "graphveil train sage DATA"),
            *("None was run", f"graphveil attack {folder} --attack", "What was spent", "publications", "Gaussian"),
            *("noisy-share", KINDS["noisy-share"].reveals),
        ):
            assert part in text, part


def test_without_noise_it_says_that_nothing_is_protected(tmp_path: Path) -> None:
    for text in forms(party(tmp_path / "clinic", epsilon=math.inf)):
        section = text.split("What is protected", 1)[1].split("What is not protected", 1)[0]
        assert "Not one published embedding row of one holder: epsilon is infinite." in section
        assert "without noise" in section and "neighbours differ by" not in section and "Against:" not in section
        assert "NOT PROTECTED" in text and "The rows: they are published as they are." in text
        assert "everybody who sees the data or the model" in text and "Nothing was spent" in text
    setting = Setting.of(MEMBERS, classes=3, epsilon=math.inf, epsilon_y=2.0)
    changes = {"guarantee": guarantee_of(setting).to_dict(), "epsilon_y": 2.0}
    for text in forms(party(tmp_path / "labels", epsilon=math.inf, **changes)):
        assert "labels alone are protected" in text and "nothing is protected" not in text


@pytest.mark.slow  # whole runs
@pytest.mark.parametrize("place", ["run", "run/clinic"])
def test_attacks_on_the_party_and_on_the_whole_federation_are_shown(tmp_path: Path, place: str) -> None:
    folder = party(tmp_path / "run" / "clinic")
    assert not has_pages(folder.parent)
    rewrite(folder)
    save_results({"shared-linear": result(name="feature-recovery")}, tmp_path / place, "feature-recovery")
    assert "feature-recovery |" in (folder / "card.md").read_text()
    for text in forms(folder):
        assert "feature-recovery" in text and "None was run" not in text and "proves nothing" in text


@pytest.mark.parametrize("content", ["", "{}", '{"guarantee": 3}'])
def test_what_is_damaged_is_named(tmp_path: Path, content: str) -> None:
    folder = party(tmp_path / "clinic")
    assert is_party(folder)
    (folder / OUTCOME).write_text(content)
    with pytest.raises(DataError, match=r"outcome.json: damaged"):
        rewrite_party(folder)
    other = party(tmp_path / "bank")
    (other / "attack-x.json").write_text("{1}")
    with pytest.raises(ModelFileError, match="damaged attack"):
        rewrite_party(other)


def test_the_label_holders_own_network_is_the_free_baseline_where_it_was_trained(tmp_path: Path) -> None:
    alone = {"mean": 0.6, "low": 0.5, "high": 0.7, "runs": [0.6]}
    for text in forms(party(tmp_path / "clinic", accuracy_alone=alone)):
        assert "Lift over the free baseline: 15.0 points; the label holder's own network alone: 60.0%." in text
        assert "not measured" not in text
