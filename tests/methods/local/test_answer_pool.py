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
from graphveil.graphs import Graph, GraphSchema, load_graph, make_graph, random_split, social_graph
from graphveil.methods import METHODS, LabelPropagation, load_method
from graphveil.methods.base.local_privacy import LocalPrivacy
from graphveil.methods.base.released import topology_of
from graphveil.methods.local.answers import answered, read_statistics
from graphveil.methods.local.asked_privacy import AskedPrivacy
from graphveil.methods.local.plan import report_advice, split_advice
from graphveil.methods.registry import advised, build_method
from graphveil.methods.runs.plan import plan
from graphveil.privacy import SeededRandomness, compose
from graphveil.privacy.printed import rounded_up
from graphveil.privacy.report_bound import best_accuracy, report_information
from graphveil.privacy.unit import USER_FEATURES, USER_LABEL
from tests.graphs.made import folder
from tests.methods import made
from tests.methods.cases import Case
from tests.methods.conformance import MethodSuite

ASKED: Callable[..., Any] = partial(LabelPropagation, epsilon_x=1.0, epsilon_y=1.0, rule="pool", question="0>=0.5")
CASES = {
    "private labels": Case(ASKED, 1.0, 1.0, "never", one_report=True),
    "statistics declared": Case(
        partial(ASKED, statistics="0.9,0.1; 0.1,0.9; 0.5,0.5"), 1.0, 1.0, "never", 20, one_report=True
    ),
}


@pytest.fixture(scope="module", params=CASES.values(), ids=CASES)
def case(request: pytest.FixtureRequest) -> Case:
    found: Case = request.param
    return found


class TestAnswerPool(MethodSuite):
    pass


def telling_graph(people: int = 900) -> Graph:
    """A graph of three classes whose first feature is 1 for one class in nine of ten cases, else 0 so often."""
    graph = social_graph(people, 6, 4, 3, homophily=0.5, apps=2, seed=3)
    yes = np.random.default_rng(0).random(people) < np.where(graph.y.numpy() == 0, 0.9, 0.1)
    x = torch.zeros(people, 4)
    x[:, 0] = torch.from_numpy(yes)
    schema = GraphSchema("telling", 4, 0.0, 1.0, graph.schema.classes)
    return make_graph(x, graph.edge_index, graph.y, schema)


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
    """Where all friends but one share a class, turning what they answered moves the guess for the one who is silent."""
    graph, split = telling_graph(300), random_split(telling_graph(300), 0)
    method = ASKED(epsilon_x=8.0, epsilon_y=2.0, seed=0)
    released, topology = method.randomize(graph, split=split, randomness=SeededRandomness(1)), topology_of(graph)
    pool = torch.full((graph.num_nodes, 3), 1 / 3)
    statistics = "0.1,0.9; 0.9,0.1; 0.9,0.1"
    one = int(released.features.who.nonzero()[0])
    # The same answer of that person, and everybody else's turned round.
    sent = released.features.reports.labels
    others = torch.arange(len(sent)) != 0
    turned = torch.where(others, 1 - sent, sent)
    reports = replace(released.features.reports, labels=turned)
    changed = replace(released, features=replace(released.features, reports=reports))
    found = [answered(pool, what, topology, statistics)[one] for what in (released, changed)]
    friends = graph.edge_index[0][graph.edge_index[1] == one]
    assert bool(released.features.who[friends].any())
    assert float((found[0] - found[1]).abs().max()) > 1e-3


def test_a_total_is_the_most_per_person_and_both_reports_get_all_of_it() -> None:
    choice = advised("answer-pool", {"epsilon": 2.0, "question": "0>=0.5"}, 3)
    assert choice.method is METHODS["answer-pool"]
    assert (choice.settings["epsilon_x"], choice.settings["epsilon_y"]) == (2.0, 2.0)
    built = build_method("answer-pool", {"epsilon": 2.0, "question": "0>=0.5"}, 3)
    assert (built.rule, built.privacy.epsilon_x, built.question) == ("pool", 2.0, "0>=0.5")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"epsilon_x": None, "question": "0>=0.5"}, "epsilon_x = None"),
        ({"epsilon_x": math.inf, "question": "0>=0.5"}, "epsilon_x = inf"),
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


def test_statistics_are_shares_and_rule_nothing_out() -> None:
    table = read_statistics("9,1; 0,5; 1,1", 3, 2)
    assert table is not None
    assert table == pytest.approx(np.array([[0.9, 0.1], [0, 1], [0.5, 0.5]]), abs=2e-3)
    assert (table > 0).all()
    assert read_statistics(None, 3, 2) is None


# ---- what a plan says of reports on features before anybody is asked ----


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


# ---- graphs whose columns have kinds of their own, from a folder to a trained, saved and loaded method ----


TOML = """private = ["features", "labels"]
classes = ["junior", "senior"]
directed = false

[columns]
age = { number = [18, 70] }
member = "yes-no"
team = { category = ["design", "sales", "support"], empty = true }
skills = { tags = ["drawing", "law", "python"], most = 2 }
"""
PEOPLE = 160


def office(place: Path) -> Path:
    """160 people in a ring with chords; seniors are older and three times as often members."""
    source = np.random.default_rng(5)
    senior = source.random(PEOPLE) < 0.5
    rows = ["id,age,member,team,skills,label"]
    for number, old in enumerate(senior):
        age = source.integers(40, 70) if old else source.integers(18, 45)
        member = "yes" if source.random() < (0.9 if old else 0.3) else "no"
        team = source.choice(["design", "sales", "support", ""])
        skills = ";".join(source.choice(["drawing", "law", "python"], source.integers(0, 3), replace=False))
        rows.append(f"p{number},{age},{member},{team},{skills},{'senior' if old else 'junior'}")
    edges = ["source,target"]
    for number in range(PEOPLE):
        alike = [other for other in range(PEOPLE) if senior[other] == senior[number] and other != number]
        edges += [f"p{number},p{other}" for other in source.choice(alike, 2, replace=False)]
        edges.append(f"p{number},p{(number + 1) % PEOPLE}")
    return folder(place, graph__toml=TOML, nodes__csv="\n".join(rows) + "\n", edges__csv="\n".join(edges) + "\n")


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Graph:
    return load_graph(office(tmp_path_factory.mktemp("office") / "office"))


@pytest.mark.slow  # trainings
@pytest.mark.parametrize("question", ["member", "age>=40", "team=sales|support", "team", "skills=law"])
def test_every_column_of_the_folder_can_be_asked(graph: Graph, question: str) -> None:
    method = LabelPropagation(epsilon_y=2.0, epsilon_x=2.0, rule="pool", question=question)
    method.fit(graph, split=random_split(graph, 0), randomness=SeededRandomness(1))
    probabilities = method.predict_proba()
    assert torch.allclose(probabilities.sum(dim=1), torch.ones(PEOPLE), atol=1e-5)
    assert method.guarantee.epsilon == 2.0


@pytest.mark.slow
def test_a_column_that_tells_the_class_is_worth_asking_for(graph: Graph) -> None:
    """Ten splits, fixed seeds: "age>=40" (true of seniors, hardly of juniors) adds 4 points, "skills=law" at most 2."""
    gains = {"age>=40": [], "skills=law": []}
    for seed in range(10):
        split = random_split(graph, seed)
        plain = LabelPropagation(epsilon_y=1.0, rule="pool", seed=seed)
        plain.fit(graph, split=split, randomness=SeededRandomness(seed))
        before = (plain.predict_proba().argmax(dim=1) == graph.y)[split.test].double().mean()
        for question, gained in gains.items():
            asked = LabelPropagation(epsilon_y=1.0, epsilon_x=2.0, rule="pool", question=question, seed=seed)
            asked.fit(graph, split=split, randomness=SeededRandomness(seed))
            gained.append(float((asked.predict_proba().argmax(dim=1) == graph.y)[split.test].double().mean() - before))
    assert np.mean(gains["age>=40"]) > 0.04
    assert np.mean(gains["skills=law"]) < 0.02


def test_a_saved_method_knows_its_columns_and_its_question(graph: Graph, tmp_path: Path) -> None:
    method = LabelPropagation(epsilon_y=1.0, epsilon_x=1.0, rule="pool", question="team=sales", statistics="1,1;2,1")
    method.fit(graph, split=random_split(graph, 0), randomness=SeededRandomness(1))
    method.save(tmp_path)
    again = load_method(tmp_path)
    assert again.schema.columns == graph.schema.columns
    assert (again.question, again.statistics) == ("team=sales", "1,1;2,1")
    assert again.guarantee == method.guarantee
    assert torch.equal(again.predict_proba(), method.predict_proba())
    assert again.get_params() == method.get_params()


def test_a_question_that_this_folder_does_not_have_is_refused(graph: Graph) -> None:
    for question, message in (("height", "no column 'height'"), ("team=law", "has no value 'law'")):
        method = LabelPropagation(epsilon_y=1.0, epsilon_x=1.0, rule="pool", question=question)
        with pytest.raises(InputError, match=message):
            method.fit(graph, split=random_split(graph, 0), randomness=SeededRandomness(1))
        assert method.ledger.spends == ()
