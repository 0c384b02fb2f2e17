"""Link beliefs, list sums and both together: the contract, and when lists are used."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch

from graphveil.errors import InputError
from graphveil.graphs import Split, make_graph, social_graph
from graphveil.methods import LinkBeliefs, load_method
from graphveil.methods.base.features import labels_of
from graphveil.methods.base.network import Labels
from graphveil.methods.links.controls import random_edges
from graphveil.methods.links.names import READINGS
from graphveil.methods.links.readings import LINKS_UNUSED, LINKS_USED, Opinion, judged_labels, read_lists, worth_pooling
from graphveil.methods.links.regression import with_labels, without_links
from graphveil.models.label_prior import log_channel
from graphveil.privacy import SeededRandomness
from graphveil.progress import Progress
from tests.methods import links_made, made
from tests.methods.cases import Case
from tests.methods.conformance import MethodSuite
from tests.models.test_block_model import planted
from tests.sizes import LargestTensor


def of(x: float | None, a: float, y: float, mode: str, **settings: Any) -> Case:
    asked = None if settings.pop("left_open", False) else mode
    build = partial(LinkBeliefs, epsilon_x=x, epsilon_a=a, epsilon_y=y, mode=asked, rounds=4, **settings)
    # Of 60 people's public features the regression alone is taken, which no seed decides.
    trains = x is None or ("reading" in settings and x < math.inf)
    return Case(build, x or 0.0, y, "never", 20, trains, links=a, mode=mode)


CASES = {
    "lower": of(1.0, 4.0, math.inf, "lower", mechanism="gaussian"),
    "both": of(1.0, 3.0, 2.0, "both"),
    "lists alone, mode left open": of(math.inf, 4.0, math.inf, "lower", left_open=True),
    "no features, directed": of(None, 4.0, 1.0, "directed"),
    "sums, directed": of(math.inf, 6.0, 2.0, "directed", reading="sums"),
    "all, no features": of(None, 4.0, 1.0, "lower", reading="all"),
}


#: What networks read beside the lists takes seconds.
SLOW = {"sums, directed", "all, no features"}


@pytest.fixture(
    scope="module",
    params=[pytest.param(one, marks=[pytest.mark.slow] * (name in SLOW), id=name) for name, one in CASES.items()],
)
def case(request: pytest.FixtureRequest) -> Case:
    found: Case = request.param
    return found


class TestLinkBeliefs(MethodSuite):
    pass


@pytest.mark.slow  # trainings
def test_planted_blocks_are_asked_for_kept_in_a_file_and_cost_nothing(tmp_path: Path) -> None:
    graph, made_with = communities(), {"epsilon_x": None, "epsilon_a": 4.0, "epsilon_y": 2.0}
    plain, full, few = (
        LinkBeliefs(**made_with, **more).fit(graph, split=half(graph), randomness=SeededRandomness(1))
        for more in ({}, {"blocks": "full"}, {"blocks": "planted"})
    )
    assert torch.equal(plain.predict_proba(), full.predict_proba())
    assert not torch.equal(plain.predict_proba(), few.predict_proba())
    assert few.guarantee == plain.guarantee
    few.save(tmp_path / "model")
    assert load_method(tmp_path / "model").get_params()["blocks"] == "planted"


def communities(nodes: int = 600, *, directed: bool = False) -> Any:
    """3 communities whose links tell more than their features."""
    edges, classes = planted(nodes, 16, 0.9, seed=1)
    if directed:
        edges = edges[:, (edges.sum(dim=0) % 2 == 0) == (edges[0] < edges[1])]
    order = torch.argsort(edges[0] * nodes + edges[1])
    plain = social_graph(nodes, 6, 20, 3, apps=4, seed=1)
    return make_graph(plain.x, edges[:, order], classes, replace(plain.schema, directed=directed))


def tenth(graph: Any) -> Split:
    """One in ten trains, another one validates."""
    numbers = torch.arange(graph.num_nodes) % 10
    return Split(numbers == 0, numbers == 1, numbers > 1)


def half(graph: Any) -> Split:
    """Half trains, a quarter validates."""
    numbers = torch.arange(graph.num_nodes) % 4
    return Split(numbers > 1, numbers == 1, numbers == 0)


@pytest.mark.parametrize(
    ("mode", "y", "reading"),
    [
        pytest.param("lower", math.inf, "all", marks=pytest.mark.slow),
        ("both", 2.0, "beliefs"),
        ("directed", math.inf, "beliefs"),
    ],
)
def test_lists_that_tell_something_are_used_and_help(mode: str, y: float, reading: str) -> None:
    """Random features; half of the reported links are false, yet far more classes are met than without lists."""
    graph = communities(directed=mode == "directed")
    split = tenth(graph) if math.isinf(y) else half(graph)
    bit = 2.5 if mode == "both" else 4.0
    method = LinkBeliefs(epsilon_x=None, epsilon_a=bit, epsilon_y=y, mode=mode, reading=reading)
    method.fit(graph, split=split, randomness=SeededRandomness(1))
    assert method.variant == LINKS_USED
    assert method.score(graph, split.test) > 0.7
    assert method.released is not None
    alone, _ = without_links(method.released, seed=0)
    assert float((alone.argmax(dim=1) == graph.y)[split.test].float().mean()) < 0.5


@pytest.mark.slow
@pytest.mark.parametrize("reading", READINGS)
def test_strangers_in_the_lists_cost_no_accuracy(reading: str) -> None:
    """Links between people drawn at random: what comes out is what comes out of lists that nobody wrote."""
    people = made_of(600)
    edges = random_edges(600, 3_000, False, 1)
    lists = make_graph(people.x, edges, people.y, people.schema)
    empty = make_graph(people.x, edges[:, :0], people.y, people.schema)
    split = half(people)
    found, without = (
        LinkBeliefs(epsilon_x=math.inf, epsilon_a=6.0, reading=reading).fit(
            one, split=split, randomness=SeededRandomness(1)
        )
        for one in (lists, empty)
    )
    assert (found.variant, without.variant) == (LINKS_UNUSED, LINKS_UNUSED)
    assert torch.equal(found.predict_proba(), without.predict_proba())


def made_of(people: int) -> Any:
    """People whose features say much about their class."""
    return social_graph(people, 6, 60, 3, apps=12, seed=1)


def test_lists_that_mislead_are_left_out() -> None:
    """Links that follow another partition: what comes out is just what the control without links gives."""
    graph, shuffled = communities(), torch.randperm(600, generator=torch.Generator().manual_seed(1))
    edges = shuffled[graph.edge_index]
    graph.edge_index = edges[:, torch.argsort(edges[0] * 600 + edges[1])]
    method = LinkBeliefs(epsilon_x=math.inf, epsilon_a=6.0)
    method.fit(graph, split=made.split_of(graph), randomness=SeededRandomness(2))
    assert method.released is not None
    assert method.variant == LINKS_UNUSED
    assert torch.allclose(method.predict_proba(), torch.softmax(without_links(method.released, seed=0)[0], dim=1))


@pytest.mark.slow  # trainings
def test_the_choice_reads_released_labels_alone() -> None:
    """Item 12: validation labels go through their mechanism before they judge."""
    graph = communities()
    method = LinkBeliefs(epsilon_x=math.inf, epsilon_a=4.0, epsilon_y=1.0)
    released = method.randomize(graph, split=tenth(graph), randomness=SeededRandomness(1))
    assert method.ledger.total("labels")[0] == 1.0
    first = method.fit_reports(released).predict_proba()
    wrong = replace(released.people, labels=torch.where(released.people.val, 0, released.people.labels))
    other = LinkBeliefs(epsilon_x=math.inf, epsilon_a=4.0, epsilon_y=1.0).fit_reports(replace(released, people=wrong))
    assert not torch.equal(other.predict_proba(), first)


@pytest.mark.slow  # trainings
@pytest.mark.parametrize(("epsilon", "mode"), [(1e-3, "both"), (60.0, "lower")])
def test_extreme_epsilons_and_empty_lists_give_probabilities(epsilon: float, mode: str) -> None:
    for graph in (links_made.graph(), links_made.graph()):
        found = LinkBeliefs(epsilon_x=epsilon, epsilon_a=epsilon, epsilon_y=min(epsilon, 40.0), mode=mode).fit(
            graph, randomness=SeededRandomness(1)
        )
        assert bool(found.predict_proba().isfinite().all())
        graph.edge_index = graph.edge_index[:, :0]


@pytest.mark.slow  # trainings
def test_nothing_of_all_pairs_or_of_n_times_d_is_built() -> None:
    n, d = 1_000, 4_000
    graph = social_graph(n, 8, d, 3, apps=5, seed=1)
    method = LinkBeliefs(epsilon_x=1.0, epsilon_a=9.0, rounds=2)
    with LargestTensor() as watch:
        method.fit(graph, randomness=SeededRandomness(1))
    assert watch.numbers < n * d / 20


def test_a_network_joins_the_regression_only_where_held_out_labels_are_likelier() -> None:
    """200 labels judge; a network that is sure at random never joins, one that knows more than the regression does."""
    drawn = torch.Generator().manual_seed(1)
    true = torch.arange(200) % 2
    asked = torch.ones(200, dtype=torch.bool)
    labels = Labels(true, ~asked, asked, 2, 1.0, 0.0)
    said = torch.eye(2).log().clamp_min(-20.0)[true]

    def opinion(right: float, sure: float, first: float) -> Opinion:
        kept = torch.where(torch.rand(200, generator=drawn) < right, true, 1 - true)
        scores = sure * torch.nn.functional.one_hot(kept, 2).float()
        return Opinion(scores, scores, first)

    regression = opinion(0.7, 1.0, 0.5)
    assert [one.first for one in worth_pooling([regression, opinion(0.5, 9.0, 0.1)], labels, said)] == [1.0]
    assert len(worth_pooling([regression, opinion(0.9, 2.0, 0.1)], labels, said)) == 2
    assert worth_pooling([regression], labels, said) == [replace(regression, first=1.0)]


# ---- readings ----


def released(**settings: Any) -> Any:
    graph = links_made.graph()
    method = LinkBeliefs(**{"epsilon_x": math.inf, "epsilon_a": 6.0, **settings})
    return method.randomize(graph, split=made.split_of(graph), randomness=SeededRandomness(1))


@pytest.mark.slow  # trainings
@pytest.mark.parametrize(
    ("reading", "settings", "steps"),
    [
        ("beliefs", {}, 4 * 3),
        ("beliefs", {"epsilon_x": 1.0}, 4 * 3),
        ("sums", {}, 2),
        ("all", {}, 4 * 3 + 2),
    ],
)
def test_progress_ends_with_all_done(reading: str, settings: dict[str, Any], steps: int) -> None:
    """Four fields of three rounds; likeness of noisy features says nothing, and those two fields are passed over."""
    told: list[Progress] = []
    read_lists(released(**settings), reading, rounds=3, seed=0, progress=told.append)
    assert [at.done for at in told] == sorted({at.done for at in told})
    assert (told[-1].done, told[-1].total) == (steps, steps)


def test_where_nobody_validates_a_third_of_those_who_train_judges() -> None:
    labels = labels_of(released().people)
    nobody = replace(labels, val=torch.zeros_like(labels.val))
    first, second = judged_labels(nobody, "cpu"), judged_labels(nobody, "cpu")
    assert int(first.val.sum()) == int(labels.train.sum()) // 3
    assert not bool((first.val & first.train).any())
    assert torch.equal(first.val | first.train, labels.train)
    assert torch.equal(first.val, second.val)
    assert judged_labels(labels, "cpu").val.equal(labels.val)


def test_own_labels_count_for_those_who_sent_one_alone() -> None:
    labels = labels_of(released(epsilon_y=2.0).people)
    heard = log_channel(labels.classes, labels.keep, labels.flip)
    found = with_labels(torch.zeros(made.NODES, 3), labels, heard)
    asked = labels.train | labels.val
    assert torch.allclose(found[asked], heard[:, labels.values[asked]].T)
    assert not found[~asked].any()


@pytest.mark.parametrize("reading", READINGS)
def test_reports_without_training_labels_are_refused(reading: str) -> None:
    sent = released()
    nobody = torch.zeros(made.NODES, dtype=torch.bool)
    empty = replace(sent, people=replace(sent.people, train=nobody, val=nobody))
    with pytest.raises(InputError, match="no training node carries a label; give the split some training nodes"):
        read_lists(empty, reading, rounds=2, seed=0)


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["both"])
def test_all_readings_read_one_collection_at_one_price(mode: str) -> None:
    """What is sent does not depend on what is made of it: the same reports, guarantee and ledger."""
    graph = links_made.graph()
    sent = released(mode=mode)
    methods = [
        LinkBeliefs(epsilon_x=math.inf, epsilon_a=6.0, mode=mode, reading=one).fit_reports(sent) for one in READINGS
    ]
    assert len({str(method.guarantee) for method in methods}) == 1
    assert all(method.ledger == methods[0].ledger for method in methods)
    answers = [method.predict_proba() for method in methods]
    assert all(found.shape == (graph.num_nodes, 3) for found in answers)
    assert not torch.equal(answers[0], answers[1])
