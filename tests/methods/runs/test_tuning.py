"""Tuning on one collection: it is free, so it must not collect twice, nor look at what nobody released."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch

from graphveil.errors import InputError
from graphveil.methods import METHODS
from graphveil.methods.registry import build_method
from graphveil.methods.runs.experiment import run
from graphveil.methods.runs.search import Search
from graphveil.methods.runs.tuning import require_tunable, tunable, tune
from graphveil.privacy import SecureRandomness, SeededRandomness
from tests.methods import made

OVER = {"hidden": (2, 4), "learning_rate": (0.01, 0.1)}
BUDGETS: dict[str, dict[str, Any]] = {
    "lpgnn": {"epsilon_x": 2.0, "epsilon_y": 2.0, "epochs": 3},
    "solitude": {"epsilon_x": 2.0, "epsilon_y": 2.0, "epsilon_a": 5.0, "epochs": 3},
    "class-sums": {"epsilon": 2.0, "epochs": 3},
    "sage": {"epochs": 3},
}


def tuned(name: str, graph: Any, **changes: Any) -> Any:
    chosen: dict[str, Any] = {"split": made.split_of(graph), "randomness": SeededRandomness(4)}
    return tune(name, graph, BUDGETS[name], OVER, **{**chosen, **changes})


@pytest.mark.parametrize("name", BUDGETS)
def test_all_trials_together_cost_one_collection(name: str) -> None:
    graph = made.graph()
    once = build_method(name, {**BUDGETS[name], "hidden": 2, "learning_rate": 0.01}, 3)
    once.fit(graph, split=made.split_of(graph), randomness=SeededRandomness(4))
    found = tuned(name, graph)
    assert len(found.trials) == 4
    assert found.method.ledger == once.ledger
    assert found.method.guarantee == once.guarantee


@pytest.mark.parametrize("name", BUDGETS)
def test_noise_is_drawn_as_often_as_without_tuning(name: str) -> None:
    """Item 13: a trial that collected anew would ask for more."""
    graph, split = made.graph(), made.split_of(made.graph())
    plain, watched = made.Counted(4), made.Counted(4)
    build_method(name, BUDGETS[name], 3).fit(graph, split=split, randomness=plain)
    tuned(name, graph, randomness=watched)
    assert watched.asked == plain.asked


@pytest.mark.parametrize("name", BUDGETS)
def test_the_best_on_released_validation_labels_is_kept(name: str) -> None:
    found = tuned(name, made.graph())
    best = max(found.trials, key=lambda trial: trial.score)
    assert found.settings == best.settings
    settings = found.method.settings
    assert (settings.hidden, settings.learning_rate) == (best.settings["hidden"], best.settings["learning_rate"])
    assert all(0 <= trial.score <= 1 for trial in found.trials)


@pytest.mark.parametrize("name", ["lpgnn", "solitude", "sage"])
def test_trials_are_judged_by_released_labels_alone(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Item 12: once reports are in, no true label decides anything, those of validation nodes included."""
    graph = made.graph()
    family, kept = METHODS[name].load_family(), []
    real = family.collect

    def once(*rest: Any, **how: Any) -> Any:
        kept.append(kept[0] if kept else real(*rest, **how))
        return kept[0]

    monkeypatch.setattr(family, "collect", once)
    one = tuned(name, graph)
    other = tuned(name, made.changed(graph, y=torch.where(graph.y >= 0, (graph.y + 1) % 3, -1)))
    assert one.trials == other.trials and one.settings == other.settings


def test_settings_that_change_what_is_sent_are_refused() -> None:
    for name, key in (
        ("lpgnn", "epsilon_x"),
        ("lpgnn", "mechanism"),
        ("solitude", "epsilon_a"),
        ("solitude", "mode"),
        ("solitude", "denoiser"),
        ("blink", "degree_share"),
        ("class-sums", "unit"),
    ):
        assert key in METHODS[name].options
        with pytest.raises(InputError, match=f"tune: {key} must be fixed before people report; allowed: "):
            require_tunable(name, {key: (1, 2)}, 3)


@pytest.mark.parametrize("name", ["gap", "progap", "dp-mlp", "label-pool", "link-beliefs"])
def test_methods_that_would_publish_in_every_trial_are_refused(name: str) -> None:
    assert tunable(name) == ()
    with pytest.raises(InputError, match="would publish again in every trial, or has nothing to tune"):
        require_tunable(name, {"hops": (1, 2)}, 3)


def test_nothing_to_try_nobody_to_judge_and_a_total_for_the_label_are_refused() -> None:
    graph, split = made.graph(), made.split_of(made.graph())
    for over, trials in (({}, 3), ({"hidden": ()}, 3), (OVER, 0)):
        with pytest.raises(InputError, match="nothing to try"):
            require_tunable("lpgnn", over, trials)
    blind = type(split)(split.train, torch.zeros_like(split.val), split.test)
    with pytest.raises(InputError, match="no validation node is left"):
        tuned("lpgnn", graph, split=blind)
    with pytest.raises(InputError, match="nothing to tune"):
        tune("lpgnn", graph, {"epsilon": 1.0}, OVER, split=split, randomness=SecureRandomness())


def test_a_run_says_what_was_tried_and_chosen() -> None:
    result = run(
        "lpgnn",
        made.graph(),
        settings=BUDGETS["lpgnn"],
        search=Search(OVER),
        randomness=SeededRandomness(1),
        controls=False,
    )
    assert result.notes[0] == "tuned on one collection in each run, 4 trials: this costs no privacy"
    assert f"run 1 chose hidden={result.settings['hidden']}" in result.notes[1]
    assert math.isclose(result.privacy.guarantee.epsilon, 4.0)
