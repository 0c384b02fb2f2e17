"""A refusal speaks of what was typed: the method, the setting, its value, and the nearest value that is taken."""

from __future__ import annotations

import re
from typing import Any

import pytest

from graphveil.errors import BudgetError, InputError
from graphveil.graphs import GraphSchema, social_graph
from graphveil.methods import METHODS
from graphveil.methods.base.method import AnyMethod
from graphveil.methods.base.ranges import NAMES, NUMBERS, Bounds
from graphveil.methods.registry import build_method, name_of
from graphveil.methods.runs.plan import plan
from graphveil.privacy import SeededRandomness

SCHEMA = GraphSchema("made", 8, 0.0, 1.0, ("a", "b", "c"))
GRAPH = social_graph(60, average_degree=4, dimension=20, classes=3, seed=1)
OTHER = social_graph(50, average_degree=4, dimension=20, classes=3, seed=2)
#: Settings beside which a setting has a meaning, and short trainings.
BESIDE = {"delta": {"mechanism": "gaussian"}, "degree_share": {"denoiser": "blink-hybrid"}}
SHORT = {"epochs": 1, "passes": 1, "batch": 1000}


def built(method: AnyMethod, settings: dict[str, Any]) -> Any:
    """The estimator of chosen settings."""
    return build_method(method.name, settings, classes=3)


def beyond(bounds: Bounds, kind: type) -> list[float]:
    """Values just outside of a range."""
    step = 1 if kind is int else 1e-6
    ends = (bounds.least, -step), (bounds.most, step), (bounds.above, 0), (bounds.below, 0)
    return [kind(end + move) for end, move in ends if end is not None]


@pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)
def test_a_value_out_of_range_is_refused_by_its_name(method: AnyMethod) -> None:
    for key, option in method.options.items():
        beside = {name: value for name, value in BESIDE.get(key, {}).items() if name in method.options}
        if option.type is str:
            values: list[Any] = ["nonsense"] if option.within or key in NAMES else []
        else:
            values = beyond(NUMBERS.get(key, Bounds()), option.type)
        for value in values:
            with pytest.raises(InputError) as caught:
                built(method, {**beside, key: value})
            text = str(caught.value)
            assert key in text and (re.search(re.escape(str(value)), text) or "does not apply" in text), text
            assert option.within is None or not any(name in text for name in set(NAMES.get(key, ())) - {*option.within})


@pytest.mark.parametrize(
    ("name", "settings", "refused", "nearest"),
    [
        ("dp-mlp", {"passes": 1_000_000, "hidden": 1000}, "passes = 1000000", {}),
        ("gap", {"bits": 2, "epsilon": 50.0}, "bits = 2", {"bits": 6}),
        ("gap", {"bits": 20}, "bits = 20", {"bits": 15}),
        ("gap", {"epsilon": 1e-6}, "epsilon = 1e-06", {}),
        ("gap", {"delta": 1e-290, "epsilon": 2.0}, "delta = 1e-290", {}),
        ("gap", {"degree_bound": 10**13, "batch": 1000}, f"degree_bound = {10**13}", {}),
    ],
)
def test_noise_that_cannot_be_had_is_refused_with_the_nearest_value(
    name: str, settings: dict[str, Any], refused: str, nearest: dict[str, Any]
) -> None:
    method = METHODS[name]
    with pytest.raises(InputError, match=f"^{re.escape(refused)}: ") as caught:
        built(method, settings).core.planned_noise(SCHEMA, 60)
    key = refused.partition(" ")[0]
    end = re.search(r"allowed: at (least|most) (\S+), the other settings", str(caught.value))
    assert end is not None, str(caught.value)
    value = method.options[key].type(float(end[2]))
    built(method, {**settings, key: value}).core.planned_noise(SCHEMA, 60)
    assert (value > settings[key]) == (end[1] == "least") and (not nearest or value == nearest[key])


@pytest.mark.parametrize(
    ("name", "settings", "followed"),
    [
        ("gap", {"weights": "attention"}, {"hops": 1}),
        ("gap", {"relationships": 3}, {"unit": "k-edges"}),
        ("progap", {"degree_bound": 5}, {"unit": "node"}),
        ("heterorr", {"bins": 4}, {"features": "feature-rr"}),
        ("heterorr", {"count_share": 0.1}, {"edges": "lap-graph"}),
        ("lpgnn", {"stand_in": "degree"}, {"epsilon_x": None}),
    ],
)
def test_what_a_setting_forces_follows_unless_it_is_set(
    name: str, settings: dict[str, Any], followed: dict[str, Any]
) -> None:
    method = METHODS[name]
    settled = method.settle(settings)
    assert {key: settled[key] for key in followed} == followed
    assert built(method, settings).core.parameters().items() >= followed.items()
    for rule in method.forced:
        assert {rule.by, rule.other} <= {*method.options}
        default = method.options[rule.other].default
        assert default != rule.value, "a setting that follows is another than by default"
    with pytest.raises(InputError, match="|".join((*settings, *followed))):
        other = {"hops": 2, "unit": "edge", "features": "laplace", "edges": "public-tree", "epsilon_x": 1.0}
        built(method, {**settings, **{key: other[key] for key in followed}})


@pytest.mark.parametrize("name", METHODS)
def test_a_core_knows_what_users_call_it(name: str) -> None:
    question = {"question": "0>=0.5"} if name == "answer-pool" else {}
    assert name_of(built(METHODS[name], question).core) == name


@pytest.mark.parametrize("name", ["links", "list-sums", "label-pool", "edge-rand", "gcon", "class-sums"])
def test_who_cannot_be_predicted_is_refused_by_the_method_that_was_trained(name: str) -> None:
    method = METHODS[name]
    fitted = built(method, {key: value for key, value in SHORT.items() if key in method.options})
    fitted.fit(GRAPH, randomness=SeededRandomness(0))
    with pytest.raises(InputError, match=f"{name} predicts only"):
        fitted.predict(OTHER, randomness=SeededRandomness(1))


@pytest.mark.parametrize(("name", "unit"), [("gap", {}), ("progap", {}), ("gap", {"unit": "node"}), ("node-sums", {})])
def test_people_who_join_later_are_told_the_setting_and_the_total(name: str, unit: dict[str, str]) -> None:
    method = METHODS[name]
    settings = {"epsilon": 8.0, **unit, **{key: value for key, value in SHORT.items() if key in method.options}}
    total = "--set queries=1, epsilon 16, delta 2e-05 in total"
    fitted = built(method, settings).fit(GRAPH, randomness=SeededRandomness(0))
    with pytest.raises(BudgetError, match=f"room for 0 .queries.; nothing was read .* train {name} DATA {total}"):
        fitted.predict(OTHER, randomness=SeededRandomness(1))
    assert len(fitted.ledger.spends) == 1
    room = built(method, {**settings, "queries": 1}).fit(GRAPH, randomness=SeededRandomness(0))
    room.predict(OTHER, randomness=SeededRandomness(1))
    assert (room.guarantee.epsilon, room.guarantee.delta) == (16.0, pytest.approx(2e-5))
    assert any("--set queries=1" in line and "epsilon 16" in line for line in plan(name, GRAPH, settings).advice)
    declared = plan(name, GRAPH, {**settings, "queries": 2}).advice
    assert any("queries = 2 makes room for 2: epsilon 24, delta 3e-05 in total" in line for line in declared)
