"""What a party of a federation keeps is checked, file against file and against the agreement."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from graphveil.errors import ModelFileError
from graphveil.federation.core.agreement import read_agreement
from graphveil.federation.core.guarantees import guarantee_of, ledger_of
from graphveil.files.serial import to_json
from graphveil.reports.base.parts import writing_part
from graphveil.reports.federation.card import check_party
from graphveil.reports.rewrite import rewrite
from tests.cli.conftest import Terminal, type_in  # noqa: F401
from tests.reports.base.test_parts import accepted
from tests.reports.federation.test_card import party


@pytest.fixture
def party_folder(tmp_path: Path) -> Path:
    """A finished party, with digests."""
    folder = party(tmp_path / "run" / "clinic")
    outcome = json.loads((folder / "outcome.json").read_text())
    texts = {"outcome.json": to_json(outcome), "guarantee.json": to_json(outcome["guarantee"])}
    with writing_part(folder, {**texts, "ledger.json": (folder / "ledger.json").read_text()}):
        pass
    return folder


@pytest.mark.parametrize("name", ["outcome.json", "guarantee.json", "ledger.json"])
def test_every_edited_field_is_refused(party_folder: Path, name: str) -> None:
    check_party(party_folder)
    assert accepted(party_folder, party_folder / name, check=check_party) == []
    if name == "ledger.json":
        rewrite(party_folder)
        ledger = json.loads((party_folder / name).read_text())
        (party_folder / name).write_text(json.dumps({**ledger, "spends": []}))
        with pytest.raises(ModelFileError, match=r"ledger\.json: was changed since it was written"):
            rewrite(party_folder)
    (party_folder / name).unlink()
    with pytest.raises(ModelFileError):
        check_party(party_folder)


def test_a_party_without_digests_is_held_against_the_agreement(type_in: Terminal) -> None:  # noqa: F811
    """What older versions wrote: epsilon, delta and which spends there must be follow from what all have signed."""
    assert type_in("federation", "split", "social-200", "--out", "parts").code == 0
    assert type_in("federation", "init", "--from", "parts", "--out", "fed", "--epsilon", 8).code == 0
    folder = Path("fed/holder1")
    setting = read_agreement(folder).setting
    (folder / "ledger.json").write_text(to_json(ledger_of(setting, setting.publications).to_dict()))
    guarantee = guarantee_of(setting).to_dict()
    outcome = {"epsilon": 8.0, "guarantee": guarantee, "mode": setting.protocol.mode}
    for name, content in (("guarantee.json", guarantee), ("outcome.json", outcome)):
        (folder / name).write_text(to_json(content))
    check_party(folder)
    ledger = json.loads((folder / "ledger.json").read_text())
    lower, lowered = {**guarantee, "epsilon": 0.001}, {**outcome, "epsilon": 0.001}
    raised = {**ledger, "budget": [{**ledger["budget"][0], "epsilon": 9.0}, *ledger["budget"][1:]]}
    for change in (
        {"outcome": lowered},
        {"guarantee": lower},
        {"guarantee": lower, "outcome": {**lowered, "guarantee": lower}},
        {"ledger": {**ledger, "spends": []}},
        {"ledger": raised},
    ):
        forged = Path(shutil.copytree(folder, "forged"))
        for name, content in change.items():
            (forged / f"{name}.json").write_text(to_json(content))
        with pytest.raises(ModelFileError):
            check_party(forged)
        answer = type_in("compare-runs", forged)
        assert (answer.code, answer.out) == (2, "")
        shutil.rmtree(forged)
