"""Whole runs: repeats, controls, intervals and what is promised."""

from __future__ import annotations

import math
import subprocess
import sys
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from graphveil.errors import InputError
from graphveil.graphs import digits_graph, random_split, social_graph
from graphveil.methods import METHODS
from graphveil.methods.links import controls as link_controls
from graphveil.methods.links.controls import settings_of as link_controls_settings
from graphveil.methods.runs import experiment
from graphveil.methods.runs.experiment import run
from graphveil.methods.runs.result import Result
from graphveil.privacy import SecureRandomness, SeededRandomness
from graphveil.progress import Progress
from tests.methods import links_made, made

SHORT = {"epochs": 4, "hidden": 4, "steps_x": 2, "steps_y": 2}
CONTROLS = {"random-features", "label-propagation", "label-pool", "majority", "no-edges", "public-only"}


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Networks beside a method of private lists train for two epochs."""

    def two_epochs(method: Any) -> Any:
        return replace(link_controls_settings(method), epochs=2, hidden=4)

    monkeypatch.setattr(link_controls, "settings_of", two_epochs)


@pytest.fixture(scope="module")
def told() -> list[Progress]:
    return []


@pytest.fixture(scope="module")
def digits(told: list[Progress]) -> Result:
    """Two repeats of LPGNN on the digits."""
    settings = {"epsilon_x": 1.0, "epsilon_y": 3.0, "epochs": 25, "steps_x": 4, "steps_y": 2}
    noise = SeededRandomness(7)
    return run("lpgnn", digits_graph(), settings=settings, randomness=noise, repeats=2, progress=told.append)


def small(name: str = "lpgnn", graph: Any = None, **options: Any) -> Result:
    known = METHODS[name].options
    settings = {**{k: v for k, v in SHORT.items() if k in known}, **options.pop("settings", {})}
    noise = options.pop("randomness", None) or SeededRandomness(1)
    return run(name, made.graph() if graph is None else graph, settings=settings, randomness=noise, **options)


# ---- what a run on the digits shows ----


def test_every_control_and_the_ceiling_are_there(digits: Result) -> None:
    assert set(digits.scores.controls) == CONTROLS
    assert digits.scores.ceiling is not None
    for score in (digits.scores.accuracy, digits.scores.ceiling, *digits.scores.controls.values()):
        assert len(score.runs) == 2
        assert 0 <= score.mean <= 1
        assert score.low <= score.mean <= score.high


def test_the_accuracies_are_plausible(digits: Result) -> None:
    """Ten classes on a homophilous graph: structure beats an even guess, clean data beat noise."""
    assert digits.scores.controls["public-only"].mean == pytest.approx(0.1)
    assert digits.scores.controls["label-propagation"].mean > 0.8
    assert digits.scores.accuracy.mean > 0.2
    assert digits.scores.ceiling is not None and digits.scores.ceiling.mean > digits.scores.controls["no-edges"].mean


def test_lift_is_accuracy_less_the_best_control_paired_by_run(digits: Result) -> None:
    best = max(digits.scores.controls, key=lambda name: digits.scores.controls[name].mean)
    assert digits.scores.best_control == best
    assert digits.scores.lift is not None
    expected = np.subtract(digits.scores.accuracy.runs, digits.scores.controls[best].runs)
    assert digits.scores.lift.runs == pytest.approx(tuple(expected))
    assert digits.scores.lift.mean == pytest.approx(digits.scores.accuracy.mean - digits.scores.controls[best].mean)


def test_reproducible_noise_voids_the_run(digits: Result) -> None:
    assert "seed 7" in str(digits.privacy.guarantee.void)
    assert digits.privacy.guarantee.sentence().startswith("NO GUARANTEE")
    assert digits.privacy.guarantee.epsilon == pytest.approx(4.0)


def test_repeats_are_called_a_simulation(digits: Result) -> None:
    assert any("2 repeats with fresh noise and splits: a simulation" in note for note in digits.notes)
    assert not any("simulation" in note for note in small(controls=False).notes)
    assert any("one run" in note for note in small(controls=False).notes)
    assert all(
        "of one graph says nothing of new graphs" in found.notes[-1] for found in (digits, small(controls=False))
    )


def test_the_ledger_is_that_of_one_collection(digits: Result) -> None:
    """Repeats simulate other worlds; nobody's budget is spent twice."""
    assert digits.privacy.ledger.total("features")[0] == 1.0
    assert digits.privacy.ledger.total("labels")[0] == 3.0


def test_history_has_every_epoch_of_every_repeat(digits: Result) -> None:
    assert [len(rows) for rows in digits.history] == [25, 25]
    assert {"epoch", "loss", "val_loss", "val_accuracy", "val_estimate"} <= set(digits.history[0][0])
    assert digits.history[0] != digits.history[1]


def test_progress_names_stages_and_the_epsilon_spent(digits: Result, told: list[Progress]) -> None:
    stages = {row.stage for row in told}
    assert {"lpgnn 1/2", "lpgnn 2/2", "ceiling", *(f"control {name}" for name in CONTROLS)} == stages
    assert {row.epsilon for row in told} == {4.0}
    assert all(row.done <= row.total for row in told)


def test_cost_and_settings_are_recorded(digits: Result) -> None:
    assert 0 < digits.cost.seconds_method < digits.cost.seconds
    assert 50 < digits.cost.peak_memory_mb < 100_000
    assert digits.settings["epsilon_x"] == 1.0
    assert set(digits.settings) == set(METHODS["lpgnn"].options)
    assert (digits.method, digits.data) == ("lpgnn", "digits")


FIRST_DRAW = """
import sys
from graphveil.graphs import load_plain
from graphveil.methods.runs.experiment import run

class Randomness:
    void = "draws nothing"

    def uint64(self, count):
        print("torch._dynamo" in sys.modules)
        sys.exit()

    bytes = uint64

run("gap", load_plain("social-200"), settings={"epsilon": 1.0}, randomness=Randomness())
"""
WHOLE_RUN = """
import sys
from graphveil.graphs import load_plain
from graphveil.methods.runs.experiment import run
from graphveil.privacy import SecureRandomness

run("lpgnn", load_plain("social-200"), settings={"epochs": 2}, randomness=SecureRandomness())
print("torch._dynamo" in sys.modules)
"""


def test_what_torch_loads_once_is_not_counted_as_fitting() -> None:
    """A private fit draws noise; until then a fresh process has loaded what the first optimiser needs."""
    done = subprocess.run([sys.executable, "-c", FIRST_DRAW], capture_output=True, text=True, timeout=120, check=False)
    assert done.stdout == "True\n", done.stderr


def test_training_on_reports_never_loads_torchs_compiler() -> None:
    done = subprocess.run([sys.executable, "-c", WHOLE_RUN], capture_output=True, text=True, timeout=120, check=False)
    assert done.stdout == "False\n", done.stderr


def test_the_model_is_the_first_repeats(digits: Result) -> None:
    graph = digits_graph()
    split = experiment.random_split(graph, 0)
    assert digits.model.score(graph, split.test) == pytest.approx(digits.scores.accuracy.runs[0])


# ---- how runs behave ----


@pytest.mark.slow
@pytest.mark.parametrize("name", METHODS)
def test_every_method_runs_with_its_controls(name: str) -> None:
    result = small(name)
    assert len(result.scores.accuracy.runs) == 1
    assert name not in result.scores.controls
    assert result.scores.lift is not None and len(result.scores.lift.runs) == 1
    assert result.scores.ceiling is not None


LISTED = {"public-only", "label-propagation", "no-edges", "random-features", "random-graph"}


@pytest.mark.parametrize(
    ("name", "directed"),
    [("solitude", True), ("list-sums", False), ("dprr", False)]
    + [
        pytest.param(*case, marks=pytest.mark.slow)
        for case in (("links", True), ("link-beliefs", False), ("blink", True))
    ],
)
def test_private_lists_run_with_controls_and_rivals_at_the_same_price(name: str, directed: bool) -> None:
    told: list[Progress] = []
    settings = {"epsilon_x": 1.0, "epsilon_a": 3.0, **({"mode": "directed"} if directed else {})}
    graph = links_made.graph(directed=directed)
    result = small(name, graph, settings=settings, repeats=2, progress=told.append)
    expected = {"base", "lpgnn", "solitude", "link-beliefs", "list-sums", "links", "blink", "dprr"} - {name}
    if name in ("blink", "dprr"):  # their reports are read by themselves alone
        expected = {"blink", "dprr"} - {name}
    assert set(result.scores.controls) == LISTED
    assert set(result.scores.rivals) == expected
    assert all(len(score.runs) == 2 for score in result.scores.rivals.values())
    assert result.scores.best_rival == max(result.scores.rivals, key=lambda rival: result.scores.rivals[rival].mean)
    assert result.scores.best_control in LISTED
    both = 2 if name in ("blink", "dprr") and not directed else 1
    # Of a directed graph both ends may list a relationship, each for themselves.
    assert result.privacy.epsilon_relationship == 3.0 * (2 if directed else both)
    assert result.privacy.ledger.total("links")[0] == pytest.approx(3.0 * both)
    assert any("false entries" in note for note in result.notes)
    stages = {row.stage for row in told}
    assert {f"rival {rival}" for rival in expected} | {f"control {control}" for control in LISTED} < stages
    assert all(row.done <= row.total for row in told)


def test_rivals_draw_noise_of_their_own_and_change_nothing_of_the_run() -> None:
    graph, settings = links_made.graph(), {"epsilon_x": 1.0, "epsilon_a": 3.0}
    first = small("solitude", graph, settings=settings)
    second = small("solitude", graph, settings=settings, controls=False)
    assert first.scores.accuracy == second.scores.accuracy
    assert first.privacy.ledger == second.privacy.ledger
    assert first.privacy.guarantee == second.privacy.guarantee
    assert (dict(second.scores.rivals), second.scores.best_rival) == ({}, None)
    assert second.privacy.epsilon_relationship == 3.0


def test_rivals_and_the_ceiling_can_be_left_out_and_controls_stay() -> None:
    settings = {"epsilon_a": 4.0, "epochs": 2, "hidden": 4}
    result = small("solitude", links_made.graph(), settings=settings, comparisons=False)
    assert result.scores.rivals == {} and result.scores.best_rival is None and result.scores.ceiling is None
    assert {"no-edges", "random-graph"} <= set(result.scores.controls) and result.scores.lift is not None


def test_rivals_that_were_too_large_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """The bound is lowered in place of a graph of 100,000 people."""
    from graphveil.mechanisms.edges import adjacency as edges
    from graphveil.mechanisms.edges import degree_preserving

    for module in (edges, degree_preserving):
        monkeypatch.setattr(module, "FALSE_EDGES_WARNING", 200)
    settings = {"epsilon_x": 1.0, "epsilon_a": 3.0}
    result = small("solitude", links_made.graph(), settings=settings)
    assert not {"blink", "dprr"} & set(result.scores.rivals)
    assert sum("was left out: epsilon" in note for note in result.notes) == 2
    assert not any("left out" in note for note in small("solitude", links_made.graph(), controls=False).notes)


def test_link_beliefs_says_what_it_used() -> None:
    found = small("link-beliefs", links_made.graph(), settings={"epsilon_a": 8.0}, controls=False)
    assert any(note.startswith("used: features") for note in found.notes)


def test_controls_can_be_left_out() -> None:
    result = small(controls=False)
    assert (dict(result.scores.controls), result.scores.best_control, result.scores.lift, result.scores.ceiling) == (
        {},
        None,
        None,
        None,
    )


def test_controls_draw_no_noise_and_read_no_new_reports() -> None:
    """One report per person: the controls are post-processing of what the method collected."""
    with_controls, without = made.Counted(), made.Counted()
    first, second = small(randomness=with_controls), small(randomness=without, controls=False)
    assert with_controls.asked == without.asked
    assert first.scores.accuracy == second.scores.accuracy
    assert first.privacy.ledger == second.privacy.ledger


def test_the_random_features_control_does_not_depend_on_features() -> None:
    graph = made.graph()
    other = made.changed(graph, x=1 - made.dense(graph.x))
    scores = [small(graph=g, settings={"epsilon_x": None}).scores.accuracy for g in (graph, other)]
    assert scores[0] == scores[1]
    controls = [small(graph=g, settings={"epsilon_y": math.inf}).scores.controls for g in (graph, other)]
    assert controls[0]["random-features"] == controls[1]["random-features"]
    assert controls[0]["label-propagation"] == controls[1]["label-propagation"]


def test_the_no_edges_control_does_not_depend_on_edges() -> None:
    graph, bare = made.graph(), made.graph()
    bare.edge_index = torch.zeros(2, 0, dtype=torch.int64)
    controls = [small(graph=g, settings={"steps_y": 0}).scores.controls for g in (graph, bare)]
    assert controls[0]["no-edges"] == controls[1]["no-edges"]


def test_where_no_features_are_collected_there_is_no_control_without_edges() -> None:
    """Random numbers stand in for features then: that control would be the method itself."""
    assert set(small(settings={"epsilon_x": None}).scores.controls) == CONTROLS - {"no-edges", "random-features"}


def test_the_pool_is_compared_with_a_network_and_propagation_with_neither() -> None:
    assert set(small("label-pool").scores.controls) == CONTROLS - {"no-edges", "label-pool"}
    assert set(small("label-propagation").scores.controls) == {"public-only", "majority"}


def test_public_labels_make_the_public_control_label_propagation() -> None:
    controls = small(settings={"epsilon_y": math.inf}).scores.controls
    assert controls["public-only"] == controls["label-propagation"]


def test_repeats_take_new_splits_and_new_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that the interval covers both (the published figures share one split)."""
    seeds: list[int] = []
    original = experiment.random_split

    def recorded(graph: Any, seed: int) -> Any:
        seeds.append(seed)
        return original(graph, seed)

    monkeypatch.setattr(experiment, "random_split", recorded)
    result = small(repeats=3, seed=5, controls=False)
    assert seeds == [5, 6, 7]
    assert len(set(result.scores.accuracy.runs)) > 1 or len(set(map(str, result.history))) == 3


def test_the_same_seeds_give_the_same_result_and_fresh_noise_does_not() -> None:
    first, second = small(controls=False), small(controls=False)
    assert first.history == second.history
    fresh = [small(controls=False, randomness=SecureRandomness()).history for _ in range(2)]
    assert fresh[0] != fresh[1]


def test_secure_noise_gives_a_guarantee() -> None:
    guarantee = small(controls=False, randomness=SecureRandomness()).privacy.guarantee
    assert guarantee.void is None
    assert guarantee.protects


def test_the_ceiling_is_no_part_of_the_guarantee() -> None:
    noise = SecureRandomness()
    assert small(randomness=noise).privacy.guarantee == small(randomness=noise, controls=False).privacy.guarantee


def test_unknown_methods_settings_and_repeats_are_refused() -> None:
    graph = made.Sealed(made.graph())
    for name, options, words in (
        ("gnn", {}, "method 'gnn' is not known; allowed: lpgnn"),
        ("lpgnn", {"settings": {"epoch": 3}}, "setting 'epoch' is not known"),
        ("lpgnn", {"repeats": 0}, "repeats = 0; allowed: a whole number of at least 1"),
    ):
        asked = {"settings": {}, "randomness": SecureRandomness(), **options}
        with pytest.raises(InputError, match=words):
            run(name, graph, **asked)


def test_a_graph_without_test_nodes_is_refused() -> None:
    graph = made.graph()
    graph.y = torch.where(torch.arange(made.NODES) < 2, graph.y, -1)
    with pytest.raises(InputError, match="no test node is left"):
        small(graph=graph)


def test_a_declared_split_is_used_when_asked_for() -> None:
    graph = social_graph(60, 6, 20, 3, apps=4, seed=1)
    settings = {"epsilon_y": 2.0}
    options = {"settings": settings, "controls": False, "randomness": SeededRandomness(0)}
    with pytest.raises(InputError, match="declares no split"):
        experiment.run("label-propagation", graph, split="declared", **options)
    with pytest.raises(InputError, match="split 'mine' is not known; allowed: random, declared"):
        experiment.run("label-propagation", graph, split="mine", **options)
    drawn = experiment.run("label-propagation", graph, split="70/10/20", seed=4, **options)
    assert torch.equal(drawn.model.released.train, random_split(graph, 4, (0.7, 0.1, 0.2)).train)
    with pytest.raises(InputError, match="at most 1 in all"):
        experiment.run("label-propagation", graph, split="75/10/20", **options)
    own = random_split(graph, 99)
    graph.train_mask, graph.val_mask, graph.test_mask = own.train, own.val, own.test
    result = experiment.run("label-propagation", graph, split="declared", **options)
    assert torch.equal(result.model.released.train, own.train)
