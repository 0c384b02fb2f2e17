"""Answer pool: who is asked what, what it costs, and what an answer changes."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from graphveil.errors import InputError
from graphveil.graphs import social_graph
from graphveil.methods import LabelPropagation
from graphveil.methods.base.people.local_privacy import LocalPrivacy
from graphveil.methods.base.people.released import topology_of
from graphveil.methods.local.plan import report_advice, split_advice
from graphveil.methods.local.question import QuestionPrivacy, posterior_with_answers, read_statistics
from graphveil.methods.registry import plan
from graphveil.privacy import SeededRandomness, assume, compose
from graphveil.privacy.accounting.printed import rounded_up
from graphveil.privacy.accounting.report_bound import best_accuracy, report_information
from graphveil.privacy.statement.unit import USER_FEATURES, USER_LABEL
from tests.methods import made

ASKED: Callable[..., Any] = partial(LabelPropagation, epsilon_x=1.0, epsilon_y=1.0, rule="pool", question="0>=0.5")


def test_everybody_sends_a_label_or_an_answer() -> None:
    graph, split = made.graph(), made.split_of(made.graph())
    method = ASKED(seed=0)
    released = method.randomize(graph, split=split, randomness=SeededRandomness(1))
    assert torch.equal(released.features.who, split.test)
    assert not bool((released.features.who & released.labelled).any())
    assert bool((released.labels[released.features.who] == -1).all())
    assert len(released.features.reports) == int(split.test.sum())


def test_the_larger_of_the_two_prices_is_what_a_person_pays() -> None:
    """Either, not both: the same parts composed would cost their sum."""
    graph = made.graph()
    for epsilon_x, epsilon_y in ((1.0, 2.0), (2.0, 1.0)):
        method = ASKED(epsilon_x=epsilon_x, epsilon_y=epsilon_y, seed=0)
        method.fit(graph, split=made.split_of(graph), randomness=SeededRandomness(1))
        parts = {part.unit: part.epsilon for part in method.guarantee.parts}
        assert parts == {USER_FEATURES: epsilon_x, USER_LABEL: epsilon_y}
        assert method.guarantee.epsilon == 2.0 and method.guarantee.assumption("one-of-reports")
        assert compose(method.guarantee.parts).epsilon == 3.0
        assert [spend.name for spend in method.ledger.spends] == ["answer", "label report"]
        assert method.ledger.total("features") == (epsilon_x, 0.0)


def test_answers_of_friends_are_heard() -> None:
    """Turning what friends answered moves the guess for one whose own answer is the same."""
    graph, split = made.graph(), made.split_of(made.graph())
    method = ASKED(epsilon_x=8.0, epsilon_y=2.0, seed=0)
    released, topology = method.randomize(graph, split=split, randomness=SeededRandomness(1)), topology_of(graph)
    pool = torch.full((graph.num_nodes, 3), 1 / 3)
    statistics = "0.1,0.9; 0.9,0.1; 0.9,0.1"
    person = int(released.features.who.nonzero()[0])
    # The same answer of that person, and everybody else's turned round.
    sent = released.features.reports.labels
    rest = torch.arange(len(sent)) != 0
    turned = torch.where(rest, 1 - sent, sent)
    reports = replace(released.features.reports, labels=turned)
    changed = replace(released, features=replace(released.features, reports=reports))
    evidence = [posterior_with_answers(pool, what, topology, statistics)[person] for what in (released, changed)]
    friends = graph.edge_index[0][graph.edge_index[1] == person]
    assert bool(released.features.who[friends].any())
    assert float((evidence[0] - evidence[1]).abs().max()) > 1e-3


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"epsilon_x": None, "question": "0>=0.5"}, "epsilon_x is None"),
        ({"epsilon_x": math.inf, "question": "0>=0.5"}, "epsilon_x is inf"),
        ({"statistics": "1,0"}, "without a question"),
    ],
)
def test_settings_that_do_not_go_together_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        LabelPropagation(epsilon_y=1.0, rule="pool", **settings)


@pytest.mark.parametrize("question", [None, "100>=0.5", "status=1", "0=1"])
def test_a_question_that_the_graph_cannot_be_asked_is_refused_before_anything_is_paid(question: str) -> None:
    graph = made.graph()
    method = ASKED(question=question, seed=0)
    with pytest.raises(InputError, match=r"column|features 0 to"):
        method.fit(graph, split=made.split_of(graph), randomness=SeededRandomness(1))
    assert method.ledger.spends == ()


@pytest.mark.parametrize("text", ["1,0", "1,0;0,1;1", "a,b;c,d;e,f", "0,0;1,0;0,1", "-1,2;1,0;0,1", "nan,1;1,0;0,1"])
def test_statistics_that_are_none_are_refused(text: str) -> None:
    with pytest.raises(InputError, match="statistics"):
        read_statistics(text, 3, 2)


def test_declared_statistics_are_assumed_to_be_public(tmp_path: Path) -> None:
    graph = made.graph()
    plain, declared = (
        ASKED(seed=0, statistics=text).fit(graph, split=made.split_of(graph), randomness=SeededRandomness(1))
        for text in (None, "0.9,0.1;0.2,0.8;0.5,0.5")
    )
    expected = (*plain.guarantee.assumes, assume("statistics-public"))
    assert declared.guarantee == replace(plain.guarantee, assumes=expected)
    assert LabelPropagation.load(declared.save(tmp_path)).guarantee == declared.guarantee


def test_statistics_are_shares_and_rule_nothing_out() -> None:
    table = read_statistics("9,1; 0,5; 1,1", 3, 2)
    assert table == pytest.approx(np.array([[0.9, 0.1], [0, 1], [0.5, 0.5]]), abs=2e-3)
    assert (table > 0).all()
    assert read_statistics(None, 3, 2) is None


# ---- what a plan says of reports on features before anybody is asked ----


TOWN = social_graph(60, average_degree=4, dimension=20, classes=3, seed=1)


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0, 6.0])
def test_the_figures_are_those_of_the_bounds(epsilon: float) -> None:
    advice = " ".join(report_advice(LocalPrivacy(epsilon, 1.0), TOWN.schema))
    assert f"at most {report_information(epsilon):.3f} nats" in advice
    assert f"one of 3 even classes takes {math.log(3):.3f}" in advice
    for share in (0.5, 0.7, 0.9):
        reached = best_accuracy([[share, 1 - share]], epsilon)[0]  # type: ignore[arg-type]
        assert f"{100 * reached:.0f}%" in advice
    assert f"{rounded_up(math.exp(epsilon), 3)} times as likely" in advice


def test_a_plan_of_answers_does_not_add_up_what_nobody_pays_twice() -> None:
    planned = plan("answer-pool", TOWN, {"epsilon": 2.0, "question": "0>=0.5"})
    assert planned.guarantee.epsilon == 2.0
    assert not any("spends 4" in line for line in planned.advice)
    assert split_advice(QuestionPrivacy(2.0, 2.0, question="0>=0.5"), 3) == (
        "compare with label-pool at the same epsilon before asking anybody: it needs no answers",
    )
