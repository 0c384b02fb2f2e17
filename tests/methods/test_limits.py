"""What a method is when the noise goes: near what the same information gives without noise.

On digits (1,797 images, linked by likeness), two splits, as first typed. Where a default and not privacy takes points,
a method falls short here, at an epsilon that hides little. Seeds are fixed: nothing is left to chance.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cache
from typing import Any, Final

import pytest

from graphveil.graphs import load_graph, random_split
from graphveil.methods.registry import build_method
from graphveil.privacy import SeededRandomness

pytestmark = pytest.mark.slow  # two trainings of every method

LISTS: Final = {"epsilon_x": math.inf, "epsilon_y": math.inf}
#: Method -> budgets at the largest epsilon that is usual.
LARGEST: Final[Mapping[str, Mapping[str, Any]]] = {
    "lpgnn": {"epsilon_x": 20.0, "epsilon_y": 20.0},
    "upgnet": {"epsilon_x": 20.0, "epsilon_y": 20.0},
    "label-propagation": {"epsilon_y": 20.0},
    "label-pool": {"epsilon_y": 20.0},
    "solitude": {**LISTS, "epsilon_a": 15.0},
    "blink": {**LISTS, "epsilon_a": 30.0},
    "links": {**LISTS, "epsilon_a": 15.0},
    "list-sums": {**LISTS, "epsilon_a": 15.0},
    "link-beliefs": {**LISTS, "epsilon_a": 15.0},
    **{name: {"epsilon": 45.0} for name in ("class-sums", "gap", "progap", "gcon", "lpgnet", "eclipse")},
    "node-sums": {"epsilon": 50.0},
}
#: Those that stay more than 3 points below, by how much at most, and why.
SHORT: Final[Mapping[str, tuple[Mapping[str, Any], float, str]]] = {
    "caribou": ({"epsilon": 45.0}, 5.0, "a published rival whose contracting steps keep little of neighbours"),
    "dpdgc": ({"epsilon": 45.0}, 10.0, "a published rival: messages carry no features, rows are learned privately"),
    "gap": ({"epsilon": 50.0, "unit": "node"}, 7.0, "private steps on 900 people; node-sums does better"),
    "dp-mlp": ({"epsilon": 50.0}, 7.0, "no edges: it is level with the perceptron without privacy"),
}


@cache
def accuracy(name: str, settings: tuple[tuple[str, Any], ...]) -> float:
    """In per cent, the mean of two splits."""
    graph, accuracies = load_graph("digits"), []
    for seed in (0, 1):
        split, model = (
            random_split(graph, seed),
            build_method(name, dict(settings), len(graph.schema.classes), seed=seed),
        )
        model.fit(graph, split=split, randomness=SeededRandomness(seed))
        accuracies.append(100 * model.score(graph, split.test))
    return sum(accuracies) / len(accuracies)


def of(name: str, settings: Mapping[str, Any]) -> float:
    return accuracy(name, tuple(sorted(settings.items())))


def plain() -> float:
    return max(of(name, {}) for name in ("mlp", "gcn", "sage"))


@pytest.mark.parametrize("name", LARGEST)
def test_a_method_at_its_limit_is_near_the_best_plain_network(name: str) -> None:
    assert of(name, LARGEST[name]) > plain() - 3


@pytest.mark.parametrize(
    "name", [name for name in LARGEST if name in ("lpgnn", "upgnet", "label-pool", "class-sums", "gap", "progap")]
)
def test_and_near_itself_without_noise(name: str) -> None:
    free = {key: math.inf if key.startswith("epsilon") else value for key, value in LARGEST[name].items()}
    assert of(name, LARGEST[name]) > of(name, free) - 2


@pytest.mark.parametrize("name", SHORT)
def test_what_falls_short_falls_no_further_than_is_said(name: str) -> None:
    settings, most, _why = SHORT[name]
    # Two splits do not tell 3 points from 2.
    assert plain() - most < of(name, settings) < plain() - 2


@pytest.mark.parametrize("name", ["lpgnn", "class-sums", "links", "gap", "progap", "node-sums"])
def test_more_budget_is_no_loss(name: str) -> None:
    """Within two points, which two splits of 450 test nodes cannot tell apart."""
    largest = LARGEST.get(name) or SHORT[name][0]
    curve = []
    for share in (0.05, 0.2, 1.0):
        less = {key: value if math.isinf(value) else share * value for key, value in largest.items()}
        curve.append(of(name, less))
    assert curve[1] > curve[0] - 2 and curve[2] > curve[1] - 2
