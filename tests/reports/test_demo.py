"""The demo as a value, a picture and a folder, and the page that explains it."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from graphveil.attacks import AttackResult
from graphveil.attacks.catalogue import ATTACKS as KNOWN
from graphveil.attacks.federation.catalogue import FEDERATION_ATTACKS
from graphveil.errors import InputError
from graphveil.graphs import load_plain
from graphveil.methods import METHODS
from graphveil.privacy import Guarantee, SecureRandomness, SeededRandomness
from graphveil.reports.demo.story import BUDGETS, COUNTEREXAMPLE, GUESSES, ROOM, SECRETS, SHARES, UNITS, run_demo, write
from graphveil.runtime.progress import Progress
from tests.graphs.made import folder as own_folder
from tests.reports.demo_made import ATTACKS, story

PAGE = Path(__file__).parent.parent.parent / "docs" / "start" / "demo.md"


def test_a_folder_is_written_whole_and_only_once(tmp_path: Path) -> None:
    answer = write(story(), tmp_path / "run")
    files = {file.name: file for file in (tmp_path / "run").iterdir()}
    assert set(files) == {"demo.json", "demo.svg", "demo.png"}
    assert json.loads(files["demo.json"].read_text()) == answer
    for facts, way in zip(answer["ways"], story().ways, strict=True):
        assert Guarantee.from_dict(facts["guarantee"]) == way.guarantee
        assert AttackResult.from_dict(facts["attack"]["protected"]).auc == way.protected.auc
        assert AttackResult.from_dict(facts["attack"]["unprotected"]).auc == way.unprotected.auc
        assert facts["control"]["name"] == way.control and facts["lift"]["mean"] == way.lift.mean
    assert files["demo.png"].read_bytes().startswith(b"\x89PNG")
    assert sum(file.stat().st_size for file in files.values()) < ROOM
    with pytest.raises(InputError, match="run"):
        write(story(), tmp_path / "run")
    assert [file.name for file in tmp_path.iterdir()] == ["run"]


def test_connections_that_have_a_direction_are_refused_before_anything_is_trained(tmp_path: Path) -> None:
    events: list[Progress] = []
    graph = load_plain(own_folder(tmp_path / "own"))
    graph.schema = replace(graph.schema, directed=True)
    with pytest.raises(InputError, match="undirected"):
        run_demo(graph, randomness=SecureRandomness(), progress=events.append)
    assert events == []


def test_the_page_names_the_budgets_and_shares_of_the_program() -> None:
    rows = {match[1]: match[0] for match in re.finditer(r"^\| \[?`([\w-]+)`.*$", PAGE.read_text(), re.MULTILINE)}
    assert set(rows) == set(BUDGETS)
    for method, budget in BUDGETS.items():
        assert [float(number) for number in re.findall(r"epsilon (\d+)", rows[method])] == list(budget.values()), method
    # Every method and attack is one of the program.
    assert set(BUDGETS) - {GUESSES} <= set(METHODS) and set(UNITS) == set(BUDGETS) == set(ATTACKS)
    assert set(SECRETS) == set(ATTACKS.values()) <= {*KNOWN, *FEDERATION_ATTACKS}
    assert all(method == GUESSES or set(budget) <= set(METHODS[method].options) for method, budget in BUDGETS.items())
    assert SHARES[0] / sum(SHARES) == 0.25 and "a quarter of the columns" in rows[GUESSES]
    assert "connections are public" in rows[COUNTEREXAMPLE]


@pytest.mark.slow
def test_a_story_is_of_its_graph_its_seed_and_the_noise_that_was_handed_in() -> None:
    """A seeded source voids what it touches: a way that drew its noise elsewhere would still claim to protect."""
    events: list[Progress] = []
    demo = run_demo(load_plain("social-100"), randomness=SeededRandomness(3), seed=2, progress=events.append)
    assert (demo.data, demo.nodes, demo.seed) == ("social-100", 100, 2)
    assert [way.method for way in demo.ways] == list(BUDGETS)
    for way in demo.ways:
        assert way.guarantee.void is not None and not way.guarantee.protects, way.method
        assert way.guarantee.epsilon == sum(BUDGETS[way.method].values())
        assert way.lift.mean == pytest.approx(way.accuracy.mean - way.control_accuracy.mean)
        for score in (way.accuracy, way.control_accuracy):
            right = 25 * score.mean  # a quarter of the people is tested
            assert (len(score.runs) == 1 and right == pytest.approx(round(right))) or way.control == "public-only"
    # Each attack is the same on both sides, and no rival is trained.
    assert (
        [way.protected.name for way in demo.ways]
        == [way.unprotected.name for way in demo.ways]
        == list(ATTACKS.values())
    )
    assert demo.ways[0].unprotected is demo.ways[1].unprotected
    assert demo.alike.name == "link-stealing" and demo.alike.baseline is not None
    stages = list(dict.fromkeys(event.stage for event in events))
    assert stages[0] == "a network that protects nothing" and "two organisations" in stages
    assert not any(stage.startswith("rival") for stage in stages)
    assert {f"attack linkteller on {method}" for method in ("class-sums", "links")} < set(stages)
