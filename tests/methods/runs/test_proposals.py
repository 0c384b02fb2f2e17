"""What proposes settings: lists, random draws and TPE; and where they may not."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from graphveil.errors import InputError, MissingExtraError
from graphveil.graphs import load_plain
from graphveil.methods.registry import build_method
from graphveil.methods.runs.proposals import Proposals, Range, proposals, require_sampler
from graphveil.methods.runs.proxy_tuning import tune_by_proxy
from graphveil.methods.runs.search import Search
from graphveil.methods.runs.tuning import tune
from graphveil.privacy import SeededRandomness
from graphveil.progress import Progress
from tests.methods import made

SPACE = {"learning_rate": Range(0.001, 0.1, log=True), "hidden": Range(2, 64), "model": ("sage", "gcn")}
LPGNN = {"epsilon_x": 2.0, "epsilon_y": 2.0, "epochs": 2}
Peak = tuple[float, list[dict[str, Any]]]


def climbed(sampler: str, seed: int, trials: int = 40) -> Peak:
    """The highest score that a sampler finds on a hill with its top at 0.02, and all that it proposed."""
    proposed = proposals({"learning_rate": SPACE["learning_rate"]}, trials, sampler, seed)
    best, tried = -math.inf, []
    for one in proposed:
        score = -abs(math.log(one["learning_rate"] / 0.02))
        proposed.tell(score)
        tried.append(one)
        best = max(best, score)
    return best, tried


@pytest.mark.parametrize("sampler", ["random", "tpe"])
def test_values_lie_in_their_space(sampler: str) -> None:
    proposed = proposals(SPACE, 30, sampler, 1)
    tried = []
    for one in proposed:
        tried.append(one)
        proposed.tell(0.0)
    assert (len(tried), proposed.total) == (30, 30)
    assert all(0.001 <= one["learning_rate"] <= 0.1 for one in tried)
    assert all(isinstance(one["hidden"], int) and 2 <= one["hidden"] <= 64 for one in tried)
    assert {one["model"] for one in tried} == {"sage", "gcn"}
    # Evenly by the logarithm: about half of 30 below the middle; fewer than 5 happens once in 10,000 times at random.
    assert sum(one["learning_rate"] < 0.01 for one in tried) >= 5


@pytest.mark.parametrize("sampler", ["random", "tpe"])
def test_the_same_seed_proposes_the_same(sampler: str) -> None:
    assert climbed(sampler, 3, 12) == climbed(sampler, 3, 12)
    assert climbed(sampler, 3, 12) != climbed(sampler, 4, 12)


def test_tpe_learns_from_scores() -> None:
    """Its later proposals lie nearer to the top than random ones: a sampler that is told nothing would not do that."""

    def late(sampler: str) -> float:
        rates = [one["learning_rate"] for seed in range(4) for one in climbed(sampler, seed)[1][20:]]
        return sum(abs(math.log(rate / 0.02)) for rate in rates) / len(rates)

    assert late("tpe") < 0.6 * late("random")


def take(proposed: Proposals, count: int) -> list[dict[str, Any]]:
    """So many of the proposals, told their scores, and one more that is never told."""
    tried = []
    for one in proposed:
        if len(tried) == count:
            break
        proposed.tell(float(len(tried)))
        tried.append(one)
    return tried


def test_a_search_that_was_stopped_goes_on(tmp_path: Path) -> None:
    file = tmp_path / "search.log"
    first = take(proposals(SPACE, 6, "tpe", 0, file, "here"), 4)
    again = proposals(SPACE, 6, "tpe", 0, file, "here")
    assert [(dict(one), score) for one, score in again.known] == [(one, float(at)) for at, one in enumerate(first)]
    rest = take(again, 10)
    assert len(rest) == 2
    assert not [one for one in rest if one in first]
    # Another search in the same file, by its settings, its space or its seed, starts anew.
    for other in (("there", SPACE, 0), ("here", {"hidden": (1, 2)}, 0), ("here", SPACE, 1)):
        key, space, seed = other
        assert list(proposals(space, 6, "tpe", seed, file, key).known) == []


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
        patch.setattr("graphveil.methods.runs.proposals.find_spec", lambda name: None)
        require_sampler({"hidden": (2, 4)}, "grid", paid=False)
        with pytest.raises(MissingExtraError, match=r"optuna is not installed; run: pip install 'graphveil\[optuna\]'"):
            require_sampler(SPACE, "tpe", paid=False)


def test_sampled_trials_on_one_collection_cost_nothing_more() -> None:
    graph = made.graph()
    split, watched, plain = made.split_of(graph), made.Counted(4), made.Counted(4)
    once = build_method("lpgnn", LPGNN, 3).fit(graph, split=split, randomness=plain)
    found = tune("lpgnn", graph, LPGNN, SPACE, split=split, randomness=watched, trials=5, sampler="tpe")
    assert (found.method.ledger, found.method.guarantee) == (once.ledger, once.guarantee)
    assert watched.asked == plain.asked
    assert len(found.trials) == 5
    assert found.settings == max(found.trials, key=lambda trial: trial.score).settings
    assert "5 trials proposed by tpe: this costs no privacy" in found.how


def test_a_search_on_a_proxy_goes_on_where_it_stopped(tmp_path: Path) -> None:
    graph, file = made.graph(), tmp_path / "search.log"
    how: dict[str, Any] = {"split": made.split_of(graph), "trials": 4, "sampler": "tpe", "journal": file}
    proxy = load_plain("social-100")

    class Stopped(Exception):
        pass

    def stop(event: Progress) -> None:
        if event.done == 2:
            raise Stopped

    space = {"hidden": Range(2, 6)}
    with pytest.raises(Stopped):
        tune_by_proxy("lpgnn", graph, proxy, LPGNN, space, randomness=SeededRandomness(1), progress=stop, **how)
    heard: list[int] = []
    found = tune_by_proxy(
        *("lpgnn", graph, proxy, LPGNN, space),
        randomness=SeededRandomness(1),
        progress=lambda event: heard.append(event.done),
        **how,
    )
    assert heard == [3, 4, 5]
    assert len(found.trials) == 4
