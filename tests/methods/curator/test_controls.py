"""Controls and ceiling of the curator's methods."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from graphveil.graphs import Split, random_split
from graphveil.methods import GAP
from graphveil.methods.curator import controls as curator_controls
from graphveil.methods.curator.controls import RIVAL_SETTINGS, curator_ceiling, curator_controls_of
from graphveil.privacy import SeededRandomness
from tests.methods import curator_made as cm


@pytest.mark.parametrize("name", cm.KINDS)
def test_a_method_for_nodes_has_a_ceiling_and_a_control_at_its_own_price(name: str) -> None:
    start = cm.graph()
    split = cm.split_of(start)
    method = cm.fit(name, start, unit="node", epsilon=8.0)
    ceiling = curator_ceiling(method, start, split, randomness=SeededRandomness(1))
    controls = curator_controls_of(method, start, split, randomness=SeededRandomness(2))
    assert list(controls) == ["no-edges"]
    for found in (ceiling, controls["no-edges"]()):
        assert found.shape == (int(split.test.sum()),)
        assert set(found.tolist()) <= {0.0, 1.0}


def test_the_control_takes_the_encoder_that_gap_trained_and_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is the one that the control would train: the same hits; another split's encoder is not taken."""
    start, trained = cm.graph(), []
    real = curator_controls._encoder
    monkeypatch.setattr(curator_controls, "_encoder", lambda *facts: trained.append(1) or real(*facts))
    settings = {**cm.FAST, "epochs": 30}
    split, other = (random_split(start, seed) for seed in (0, 1))
    fitted = GAP(epsilon=2.0, **settings).fit(start, split=split, randomness=SeededRandomness(1))
    unfitted = GAP(epsilon=2.0, **settings)

    def hits(method: GAP, split: Split) -> list[float]:
        return curator_controls_of(method, start, split, randomness=SeededRandomness(0))["no-edges"]().tolist()

    assert hits(fitted, split) == hits(unfitted, split)
    assert len(trained) == 1
    assert hits(fitted, other) == hits(unfitted, other)
    assert len(trained) == 3


def test_rivals_have_the_settings_that_most_scouts_of_the_panel_chose() -> None:
    """Of the choosing half of the families alone."""
    lines = (Path(__file__).parents[3] / "benchmarks" / "panel-runs" / "curator.jsonl").read_text().splitlines()
    families = {"citation", "university", "gender"}
    scouts = [row for row in map(json.loads, lines) if row["kind"] == "scout" and row["family"] in families]
    for rival, settings in RIVAL_SETTINGS.items():
        chosen = [row["settings"] for row in scouts if row["contender"] == rival]
        assert len(chosen) == 3
        for name, value in settings.items():
            assert sum(one[name] == value for one in chosen) >= 2, (rival, name)
