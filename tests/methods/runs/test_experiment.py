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
from graphveil.graphs import random_split, social_graph
from graphveil.methods import METHODS, Interval, interval
from graphveil.methods.links import controls as link_controls
from graphveil.methods.links.controls import settings_of as link_controls_settings
from graphveil.methods.runs import experiment
from graphveil.methods.runs.experiment import run
from graphveil.methods.runs.intervals import over_runs
from graphveil.methods.runs.result import Result
from graphveil.privacy import SeededRandomness
from graphveil.runtime.progress import Progress
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
def events() -> list[Progress]:
    return []


@pytest.fixture(scope="module")
def twice(events: list[Progress]) -> Result:
    """Two repeats of LPGNN."""
    settings = {**SHORT, "epsilon_x": 1.0, "epsilon_y": 3.0}
    noise = SeededRandomness(7)
    return run("lpgnn", made.graph(), settings=settings, randomness=noise, repeats=2, progress=events.append)


def small(name: str = "lpgnn", graph: Any = None, **options: Any) -> Result:
    names = METHODS[name].options
    settings = {**{k: v for k, v in SHORT.items() if k in names}, **options.pop("settings", {})}
    noise = options.pop("randomness", None) or SeededRandomness(1)
    return run(name, made.graph() if graph is None else graph, settings=settings, randomness=noise, **options)


# ---- what a run shows ----


def test_every_control_and_the_ceiling_are_there_and_the_lift_is_over_the_best(twice: Result) -> None:
    """Paired by run; an even guess of three classes is right of a third."""
    scores = twice.scores
    assert set(scores.controls) == CONTROLS and scores.ceiling is not None
    for score in (scores.accuracy, scores.ceiling, *scores.controls.values()):
        assert len(score.runs) == 2 and 0 <= score.low <= score.mean <= score.high <= 1
    assert scores.controls["public-only"].mean == pytest.approx(1 / 3)
    best = max(scores.controls, key=lambda name: scores.controls[name].mean)
    assert scores.best_control == best and scores.lift is not None
    expected = np.subtract(scores.accuracy.runs, scores.controls[best].runs)
    assert scores.lift.runs == pytest.approx(tuple(expected))
    split = experiment.random_split(made.graph(), 0)
    assert twice.model.score(made.graph(), split.test) == pytest.approx(scores.accuracy.runs[0]), "the first repeat's"


def test_a_run_records_its_promise_its_epochs_and_its_cost(twice: Result) -> None:
    """Repeats simulate other worlds; nobody's budget is spent twice."""
    assert twice.privacy.guarantee.sentence().startswith("NO GUARANTEE")
    assert "seed 7" in str(twice.privacy.guarantee.void)
    assert [twice.privacy.ledger.total(unit)[0] for unit in ("features", "labels")] == [1.0, 3.0]
    assert [len(rows) for rows in twice.history] == [4, 4] and twice.history[0] != twice.history[1]
    assert {"epoch", "loss", "val_loss", "val_accuracy", "val_estimate"} <= set(twice.history[0][0])
    assert 0 < twice.cost.seconds_method < twice.cost.seconds
    assert 50 < twice.cost.peak_memory_mb < 100_000
    assert twice.settings["epsilon_x"] == 1.0 and set(twice.settings) == set(METHODS["lpgnn"].options)
    assert (twice.method, twice.data) == ("lpgnn", made.graph().schema.name)


def test_progress_names_stages_and_the_epsilon_spent(twice: Result, events: list[Progress]) -> None:
    stages = {row.stage for row in events}
    assert {"lpgnn 1/2", "lpgnn 2/2", "ceiling", *(f"control {name}" for name in CONTROLS)} == stages
    assert {row.epsilon for row in events} == {4.0}
    assert all(row.done <= row.total for row in events)


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


@pytest.mark.slow
def test_what_torch_loads_once_is_not_counted_as_fitting() -> None:
    """A private fit draws noise; until then a fresh process has loaded what the first optimiser needs."""
    done = subprocess.run([sys.executable, "-c", FIRST_DRAW], capture_output=True, text=True, timeout=120, check=False)
    assert done.stdout == "True\n", done.stderr


# ---- how runs behave ----


@pytest.mark.slow
@pytest.mark.parametrize("name", METHODS)
def test_every_method_runs_with_its_controls(name: str) -> None:
    result = small(name, settings={"question": "0>=0.5"} if name == "answer-pool" else {})
    assert len(result.scores.accuracy.runs) == 1
    assert name not in result.scores.controls
    assert result.scores.lift is not None and len(result.scores.lift.runs) == 1
    assert result.scores.ceiling is not None


def test_controls_draw_no_noise_and_can_be_left_out() -> None:
    """One report per person: the controls are post-processing of what the method collected."""
    with_controls, without = made.Counted(), made.Counted()
    first, second = small(randomness=with_controls), small(randomness=without, controls=False)
    assert with_controls.counts == without.counts
    assert first.scores.accuracy == second.scores.accuracy
    assert (first.privacy.ledger, first.privacy.guarantee) == (second.privacy.ledger, second.privacy.guarantee)
    left = second.scores
    assert (dict(left.controls), left.best_control, left.lift, left.ceiling) == ({}, None, None, None)


def test_a_run_on_private_lists_is_held_against_its_price_its_controls_and_no_privacy_at_all() -> None:
    settings = {"epsilon_x": 2.0, "epsilon_a": 4.0, "rounds": 3}
    scores = small("links", links_made.graph(), settings=settings).scores
    assert set(scores.rivals) == {"list-sums", "link-beliefs"}
    assert set(scores.controls) == {"public-only", "label-propagation", "no-edges", "random-features", "random-graph"}
    assert scores.ceiling is not None
    assert scores.best_rival == max(scores.rivals, key=lambda name: scores.rivals[name].mean)


def test_repeats_take_new_splits_and_new_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that the interval covers both (the published figures share one split)."""
    seeds, drawn = list[int](), experiment.random_split
    monkeypatch.setattr(experiment, "random_split", lambda graph, seed: seeds.append(seed) or drawn(graph, seed))
    result = small(repeats=3, seed=5, controls=False)
    assert seeds == [5, 6, 7]
    assert len(set(result.scores.accuracy.runs)) > 1 or len(set(map(str, result.history))) == 3


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


# ---- means and 95% intervals ----


def test_runs_that_vary_use_students_t_on_the_scale_of_log_odds() -> None:
    """Means 0.5, 0.55, 0.6: half 4.3027 x 0.05 / sqrt 3; by the delta method over 0.55 x 0.45."""
    runs = interval([np.array([1, 0]), np.array([0.5, 0.6]), np.array([1, 1, 1, 0, 0])])
    wide = over_runs([Interval(mean, mean, mean, (mean,)) for mean in (0.5, 0.55, 0.6)])
    half = 4.302652729911275 * 0.05 / math.sqrt(3) / (0.55 * 0.45)
    middle = math.log(0.55 / 0.45)
    assert (wide.low, wide.high) == pytest.approx(tuple(1 / (1 + math.exp(-middle - end)) for end in (-half, half)))
    assert wide.kind == "t" and wide.runs == runs.runs == pytest.approx((0.5, 0.55, 0.6))
    assert runs.mean == wide.mean == pytest.approx(0.55)


@pytest.mark.parametrize(("shares", "kind"), [((0.5, 0.5), "wilson"), ((0.60, 0.62), "wilson"), ((0.3, 0.9), "t")])
def test_of_nodes_and_runs_the_wider_interval_is_taken(shares: tuple[float, float], kind: str) -> None:
    hits = [np.arange(50) < round(share * 50) for share in shares]
    runs, alone = interval([row.astype(float) for row in hits]), interval([hits[0].astype(float)])
    assert runs.kind == kind
    assert runs.high - runs.low > 0.95 * (alone.high - alone.low)


@pytest.mark.parametrize("runs", [1, 2, 5])
@pytest.mark.parametrize(("share", "low", "high"), [(0.0, 0.0, 0.0714), (1.0, 0.9286, 1.0), (0.5, 0.3664, 0.6336)])
def test_equal_runs_have_the_interval_of_one(runs: int, share: float, low: float, high: float) -> None:
    """Wilson's on 50 nodes, computed by hand: 0 hits give z^2 / (50 + z^2) = 0.0714."""
    equal = interval([(np.arange(50) < 50 * share).astype(float)] * runs)
    assert (equal.mean, equal.kind, len(equal.runs)) == (share, "wilson", runs)
    assert (equal.low, equal.high) == (pytest.approx(low, abs=1e-4), pytest.approx(high, abs=1e-4))


def test_differences_of_one_run_are_those_of_bonett_and_price() -> None:
    """10 of 100 better, none worse: (11 - 1) / 102 -+ 1.96 sqrt((11/102 + 1/102 - (10/102)^2) / 102)."""
    better = np.array([1.0] * 10 + [0.0] * 90)
    half = 1.959964 * math.sqrt((12 / 102 - (10 / 102) ** 2) / 102)
    gap = interval([better], difference=True)
    assert (gap.low, gap.high) == (pytest.approx(10 / 102 - half), pytest.approx(10 / 102 + half))
    assert (gap.mean, gap.kind) == (pytest.approx(0.1), "paired")
    worse = interval([-better], difference=True)
    assert (worse.low, worse.high) == (pytest.approx(-gap.high), pytest.approx(-gap.low))


def test_two_methods_that_never_differ_are_not_equal_for_certain() -> None:
    """No difference at 50 nodes: 1.96 sqrt(2 / 52 / 52) = 0.0533 either way."""
    for runs in (1, 2, 5):
        gap = interval([np.zeros(50)] * runs, difference=True)
        assert (gap.low, gap.high) == (pytest.approx(-0.0533, abs=1e-4), pytest.approx(0.0533, abs=1e-4))


def test_accuracies_stay_between_0_and_1_and_differences_between_their_ends() -> None:
    runs = [np.array([value]) for value in (0.9, 0.99)]
    assert 0.0 < interval(runs).low < 0.9 and 0.99 < interval(runs).high <= 1.0
    gap = interval(runs, difference=True)
    assert -1.0 <= gap.low < 0.9 and 0.99 < gap.high <= 1.0
    mirrored = interval([-run for run in runs], difference=True)
    assert (mirrored.low, mirrored.high) == pytest.approx((-gap.high, -gap.low))


def test_an_even_guess_is_known_exactly() -> None:
    """1/3 at every node is a probability, not a hit."""
    even = interval([np.full(50, 1 / 3)])
    assert (even.low, even.high, even.kind) == (pytest.approx(1 / 3), pytest.approx(1 / 3), "exact")
