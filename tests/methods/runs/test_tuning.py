"""Tuning on one collection: it is free, so it must not collect twice, nor look at what nobody released."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.base import clone

from graphveil.errors import InputError, MissingExtraError
from graphveil.graphs import make_graph
from graphveil.methods import METHODS, load_method
from graphveil.methods.base.storage import read_method
from graphveil.methods.registry import build_method
from graphveil.methods.runs import tuning
from graphveil.methods.runs.proposals import Proposals, Range, proposals, require_sampler
from graphveil.methods.runs.search import Search
from graphveil.methods.runs.tuning import require_free, require_tunable, tunable, tune, tune_by_proxy
from graphveil.privacy import Guarantee, SecureRandomness, SeededRandomness, assume
from tests.methods import curator_made as cm
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


@pytest.mark.slow  # trainings
@pytest.mark.parametrize("name", BUDGETS)
def test_all_trials_together_cost_one_collection(name: str) -> None:
    """Item 13: a trial that collected anew would ask for more noise. The best on released validation labels is kept."""
    graph, plain, watched = made.graph(), made.Counted(4), made.Counted(4)
    once = build_method(name, BUDGETS[name], 3).fit(graph, split=made.split_of(graph), randomness=plain)
    tuning = tuned(name, graph, randomness=watched)
    assert len(tuning.trials) == 4 and watched.counts == plain.counts
    assert (tuning.method.ledger, tuning.method.guarantee) == (once.ledger, once.guarantee)
    best = max(tuning.trials, key=lambda trial: trial.score)
    assert tuning.settings == best.settings
    settings = tuning.method.settings
    assert (settings.hidden, settings.learning_rate) == (best.settings["hidden"], best.settings["learning_rate"])
    assert all(0 <= trial.score <= 1 for trial in tuning.trials)


@pytest.mark.parametrize("name", ["lpgnn", "solitude", "sage"])
def test_trials_are_judged_by_released_labels_alone(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Item 12: once reports are in, no true label decides anything, those of validation nodes included."""
    graph = made.graph()
    kind, results = METHODS[name].load_class(), []
    real = kind.collect

    def once(*rest: Any, **how: Any) -> Any:
        results.append(results[0] if results else real(*rest, **how))
        return results[0]

    monkeypatch.setattr(kind, "collect", once)
    tuning = tuned(name, graph)
    other = tuned(name, made.changed(graph, y=torch.where(graph.y >= 0, (graph.y + 1) % 3, -1)))
    assert tuning.trials == other.trials and tuning.settings == other.settings


SENT = {"lpgnn": "epsilon_x mechanism", "solitude": "epsilon_a mode denoiser", "blink": "degree_share"}


def test_what_changes_what_is_sent_or_would_publish_in_every_trial_is_refused() -> None:
    for name, keys in {**SENT, "class-sums": "unit"}.items():
        for key in keys.split():
            with pytest.raises(InputError, match=f"tune: {key} must be fixed before people report; allowed: "):
                require_tunable(name, {key: (1, 2)}, 3)
    for name in ("gap", "progap", "dp-mlp", "label-pool", "link-beliefs"):
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


def test_a_trial_whose_hops_reach_nobody_is_left_out_and_the_reports_serve_the_others() -> None:
    """Links among those who do not train alone: labels that walk reach no training node."""
    graph = made.graph(20)
    split = made.split_of(graph)
    apart = ~(split.train[graph.edge_index[0]] | split.train[graph.edge_index[1]])
    cut = make_graph(graph.x, graph.edge_index[:, apart], graph.y, graph.schema)
    settings = {"epsilon_x": 2.0, "epsilon_y": 2.0, "epochs": 2, "hidden": 4, "steps_x": 0}
    how: dict[str, Any] = {"split": split, "randomness": SeededRandomness(1)}
    tuning = tune("lpgnn", cut, settings, {"steps_y": (4, 0)}, **how)
    assert [trial.settings for trial in tuning.trials] == [{"steps_y": 0}] == [tuning.settings]
    with pytest.raises(InputError, match="no label reaches a training node in 4 hops"):
        tune("lpgnn", cut, settings, {"steps_y": (4,)}, **how)


# ---- tuning on a public graph ----


FAST: dict[str, dict[str, Any]] = {
    "gap": {"epsilon": 4.0, "epochs": 3, "hidden": 4, "bits": 5},
    "dp-mlp": {"epsilon": 4.0, "hidden": 4, "passes": 2, "batch": 1000},
    "class-sums": {"epsilon": 4.0, "epochs": 3},
    "lpgnn": {"epsilon_x": 2.0, "epsilon_y": 2.0, "epochs": 3},
}


def by_proxy(name: str, graph: Any, proxy: Any, **how: Any) -> Any:
    chosen = {"split": cm.split_of(cm.graph()), "randomness": SeededRandomness(3), "trials": 5, **how}
    return tune_by_proxy(name, graph, proxy, FAST[name], {"learning_rate": (0.01, 0.1)}, **chosen)


@pytest.mark.slow  # trainings
@pytest.mark.parametrize("name", FAST)
def test_the_guarantee_is_that_of_one_training(name: str) -> None:
    start, proxy = cm.graph(), cm.graph(seed=9)
    tuning = by_proxy(name, start, proxy)
    once = build_method(name, {**FAST[name], **tuning.settings}, 3)
    once.fit(start, split=cm.split_of(start), randomness=SeededRandomness(5))
    assert tuning.method.ledger == once.ledger
    public = assume("proxy-public", graph="social-60")
    assumes = (*once.guarantee.assumes, public)
    assert tuning.method.guarantee == replace(once.guarantee, assumes=assumes, void=tuning.method.guarantee.void)
    assert len(tuning.trials) == 2
    assert tuning.settings == max(tuning.trials, key=lambda trial: trial.score).settings


def test_the_choice_does_not_look_at_the_private_graph(monkeypatch: pytest.MonkeyPatch) -> None:
    """Until all trials are over it cannot be read at all, but for the check that it is another graph."""
    monkeypatch.setattr(tuning, "fingerprint", lambda graph, key: str(id(graph)))
    done: list[int] = []
    with pytest.raises(AssertionError, match="was read"):
        by_proxy("gap", cm.Unreadable(cm.graph()), cm.graph(seed=9), progress=lambda at: done.append(at.done))
    assert done == [1, 2]


def test_the_graph_is_no_proxy_of_itself_under_any_name() -> None:
    with pytest.raises(InputError, match="the proxy is the private graph itself"):
        by_proxy("gap", cm.graph(), cm.graph())


def test_a_proxy_with_people_of_the_private_graph_is_refused_before_any_trial() -> None:
    """Known by their ids, however these are spelled: an older export of the same people differs by an edge."""
    start, proxy = cm.graph(), cm.graph(seed=9)
    start.ids = np.array([f"anna {row}" for row in range(start.num_nodes)])
    proxy.ids = np.array(["ANNA  7", *(f"bob {row}" for row in range(1, proxy.num_nodes))])
    trials: list[Any] = []
    with pytest.raises(InputError, match="--proxy: the proxy has 1 of the private graph's ids; allowed: a public gr"):
        by_proxy("gap", start, proxy, progress=trials.append)
    assert not trials


@pytest.mark.parametrize("name", ["class-sums", "dp-mlp", "heterorr"])
def test_a_model_says_on_which_graph_its_settings_were_chosen(name: str, tmp_path: Path) -> None:
    settings = {"heterorr": {"epsilon_x": 2.0}, **FAST}[name]
    how: dict[str, Any] = {"split": cm.split_of(cm.graph()), "randomness": SeededRandomness(3), "trials": 1}
    model = tune_by_proxy(name, cm.graph(), cm.graph(seed=9), settings, {"hidden": (4,)}, **how).method
    assert model.guarantee.assumes[-1] == assume("proxy-public", graph="social-60")
    loaded = load_method(model.save(tmp_path))
    assert loaded.guarantee == model.guarantee and clone(model).account is model.account
    assert Guarantee.from_dict(read_method(tmp_path)[1]["guarantee"]) == model.guarantee


def test_what_is_promised_may_not_be_chosen() -> None:
    for name, key in (("gap", "epsilon"), ("lpgnn", "epsilon_x"), ("gap", "unit"), ("solitude", "mode")):
        with pytest.raises(InputError, match=f"{key} is part of the guarantee and cannot be tuned; allowed: "):
            require_free(name, {key: (1, 2)}, 3)
    with pytest.raises(InputError, match="nothing to try"):
        require_free("gap", {}, 3)
    require_free("gap", {"hops": (1, 2), "weights": ("uniform",)}, 3)
    require_free("lpgnn", {"mechanism": ("laplace",)}, 1)


# ---- what proposes settings: lists, random draws and TPE; and where they may not ----


SPACE = {"learning_rate": Range(0.001, 0.1, log=True), "hidden": Range(2, 64), "model": ("sage", "gcn")}


@pytest.mark.parametrize("sampler", ["random", "tpe"])
def test_values_lie_in_their_space(sampler: str) -> None:
    proposed = proposals(SPACE, 30, sampler, 1)
    tried = []
    for settings in proposed:
        tried.append(settings)
        proposed.tell(0.0)
    assert (len(tried), proposed.total) == (30, 30)
    assert all(0.001 <= settings["learning_rate"] <= 0.1 for settings in tried)
    assert all(isinstance(settings["hidden"], int) and 2 <= settings["hidden"] <= 64 for settings in tried)
    assert {settings["model"] for settings in tried} == {"sage", "gcn"}
    # Evenly by the logarithm: about half of 30 below the middle; fewer than 5 happens once in 10,000 times at random.
    assert sum(settings["learning_rate"] < 0.01 for settings in tried) >= 5


def take(proposed: Proposals, count: int) -> list[dict[str, Any]]:
    """So many of the proposals, told their scores, and one more that is never told."""
    tried = []
    for settings in proposed:
        if len(tried) == count:
            break
        proposed.tell(float(len(tried)))
        tried.append(settings)
    return tried


def test_a_search_that_was_stopped_goes_on(tmp_path: Path) -> None:
    file = tmp_path / "search.log"
    first = take(proposals(SPACE, 6, "tpe", 0, file, "here"), 4)
    again = proposals(SPACE, 6, "tpe", 0, file, "here")
    earlier = [(dict(chosen), score) for chosen, score in again.earlier]
    assert earlier == [(chosen, float(at)) for at, chosen in enumerate(first)]
    rest = take(again, 10)
    assert len(rest) == 2
    assert not [settings for settings in rest if settings in first]
    # Another search in the same file, by its settings, its space or its seed, starts anew.
    for other in (("there", SPACE, 0), ("here", {"hidden": (1, 2)}, 0), ("here", SPACE, 1)):
        key, space, seed = other
        assert list(proposals(space, 6, "tpe", seed, file, key).earlier) == []


def test_a_sampler_that_learns_is_refused_where_trials_have_a_price() -> None:
    """The price of a random number of trials is proved for candidates drawn without looking at earlier ones."""
    listed = {"hops": (1, 2)}
    with pytest.raises(InputError, match=r"tpe chooses by what earlier trials scored, and the price .* is proved only"):
        Search(listed, sampler="tpe").require("gap", {"epsilon": 2.0})
    with pytest.raises(InputError, match="hops is a range; allowed: listed values where trials have a price"):
        Search({"hops": Range(1, 3)}, sampler="random").require("gap", {"epsilon": 2.0})
    Search(listed, sampler="random").require("gap", {"epsilon": 2.0})
    Search(listed, sampler="tpe", proxy="social-100").require("gap", {"epsilon": 2.0})


def test_other_refusals() -> None:
    with pytest.raises(InputError, match="allowed: grid, random, tpe"):
        require_sampler({}, "bayes", paid=False)
    with pytest.raises(InputError, match=r"hidden is a range, which has no list of values; .* --sampler random or tpe"):
        require_sampler(SPACE | {"learning_rate": (0.1,)}, "grid", paid=False)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("graphveil.runtime.extras.find_spec", lambda name: None)
        require_sampler({"hidden": (2, 4)}, "grid", paid=False)
        with pytest.raises(MissingExtraError, match=r"optuna is not installed; run: pip install 'graphveil\[optuna\]'"):
            require_sampler(SPACE, "tpe", paid=False)
