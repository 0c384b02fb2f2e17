"""What a plan says of reports on features before anybody is asked."""

from __future__ import annotations

import math
from typing import Any

import pytest

from graphveil.graphs import social_graph
from graphveil.methods.base.local_privacy import LocalPrivacy
from graphveil.methods.local.asked_privacy import AskedPrivacy
from graphveil.methods.local.plan import report_advice, split_advice
from graphveil.methods.runs.plan import plan
from graphveil.privacy.printed import rounded_up
from graphveil.privacy.report_bound import best_accuracy, report_information

SCHEMA = social_graph(60, average_degree=4, dimension=20, classes=3, seed=1).schema


def planned(name: str, **settings: Any) -> Any:
    graph = social_graph(60, average_degree=4, dimension=20, classes=3, seed=1)
    return plan(name, graph, settings)


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0, 6.0])
def test_the_figures_are_those_of_the_bounds(epsilon: float) -> None:
    told = " ".join(report_advice(LocalPrivacy(epsilon, 1.0), SCHEMA))
    assert f"at most {report_information(epsilon):.3f} nats" in told
    assert f"one of 3 even classes takes {math.log(3):.3f}" in told
    for share in (0.5, 0.7, 0.9):
        reached = best_accuracy([[share, 1 - share]], epsilon)[0]  # type: ignore[arg-type]
        assert f"{100 * reached:.0f}%" in told
    assert f"{rounded_up(math.exp(epsilon), 3)} times as likely" in told


@pytest.mark.parametrize("epsilon_x", [None, math.inf])
def test_nothing_is_said_where_no_report_on_features_is_randomized(epsilon_x: float | None) -> None:
    assert report_advice(LocalPrivacy(epsilon_x, 1.0), SCHEMA) == ()


def test_a_plan_prints_them_for_features_and_for_answers_and_not_for_labels_alone() -> None:
    for name, settings in (
        ("lpgnn", {"epsilon_x": 1.0, "epsilon_y": 1.0}),
        ("answer-pool", {"epsilon": 1.0, "question": "0>=0.5"}),
    ):
        assert any("nats of anything" in line for line in planned(name, **settings).advice), name
    assert not any("nats" in line for line in planned("label-pool", epsilon_y=1.0).advice)


def test_a_plan_of_answers_does_not_add_up_what_nobody_pays_twice() -> None:
    found = planned("answer-pool", epsilon=2.0, question="0>=0.5")
    assert found.guarantee.epsilon == 2.0
    assert not any("spends 4" in line for line in found.advice)
    assert split_advice(AskedPrivacy(2.0, 2.0, question="0>=0.5"), 3) == (
        "compare with label-pool at the same epsilon before asking anybody: it needs no answers",
    )
