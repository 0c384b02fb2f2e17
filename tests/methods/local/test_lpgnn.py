"""LPGNN and UPGNet: settings and training, reports of some, and controls that see what the server saw."""

from __future__ import annotations

import math
from copy import copy
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from graphveil.errors import InputError
from graphveil.graphs import Graph, Split, random_split, social_graph
from graphveil.methods import LPGNN, LabelPropagation, load_method
from graphveil.methods.base.network.features import features_of
from graphveil.methods.base.people.released import Answers, LocalReports, Topology, randomize_people, topology_of
from graphveil.methods.local import label_pool, pooled
from graphveil.methods.local.controls import ceiling_of, controls_of, hits, network_settings
from graphveil.methods.local.label_pool import MOST_TEACHERS, Readings, pooled_opinions, read_labels
from graphveil.methods.local.trimming import LEAST, agreement, trimmed
from graphveil.models.labels.label_prior import Channel
from graphveil.privacy import SeededRandomness
from tests.methods import made
from tests.sizes import LargestTensor

SHORT: dict[str, Any] = {"epochs": 3, "hidden": 4, "steps_x": 2, "steps_y": 2}


def short(**settings: Any) -> LPGNN:
    return LPGNN(**{"epsilon_x": 1.0, "epsilon_y": 1.0, **SHORT, **settings})


# ---- settings ----


def test_hops_left_open_are_those_that_each_part_needs() -> None:
    """Noise is averaged out over neighbours; what is public needs no averaging."""
    for epsilon_x, epsilon_y, hops in ((1.0, 1.0, (8, 4)), (math.inf, 1.0, (0, 4)), (1.0, math.inf, (8, 0))):
        for left_open in ({}, {"steps_x": None, "steps_y": None}):
            settings = LPGNN(epsilon_x=epsilon_x, epsilon_y=epsilon_y, **left_open).settings
            assert (settings.steps_x, settings.steps_y) == hops
    assert LPGNN(epsilon_x=math.inf, epsilon_y=1.0, steps_x=3).settings.steps_x == 3


def test_the_default_split_comes_from_the_seed_and_without_labels() -> None:
    graph = made.graph()
    first, again, other = (short(seed=s).fit(graph, randomness=SeededRandomness(1)).released for s in (0, 0, 1))
    assert torch.equal(first.train, again.train)
    assert not torch.equal(first.train, other.train)
    assert not bool(first.labelled[made.UNKNOWN])


# ---- training ----


def test_nothing_of_size_n_times_d_is_built_where_features_stay_sparse() -> None:
    """From collection to prediction; the server holds one number a person."""
    n, d = 1_500, 10_000
    graph = social_graph(n, 6, d, 3, apps=5, seed=1)
    method = LPGNN(epsilon_x=1.0, epsilon_y=1.0, epochs=2, steps_x=2, steps_y=2)
    with LargestTensor() as watch:
        method.fit(graph, randomness=SeededRandomness(1)).predict()
    assert watch.numbers < n * d / 20


def test_labels_that_reach_no_training_node_are_a_clear_error() -> None:
    graph = made.graph()
    graph.edge_index = torch.zeros(2, 0, dtype=torch.int64)
    with pytest.raises(
        InputError, match=r"no label reaches a training node in 2 hops: too few edges; .* --set steps_y=0"
    ):
        short().fit(graph, randomness=SeededRandomness(1))


@pytest.mark.parametrize("selection", ["robust", "published"])
def test_without_validation_nodes_the_last_epoch_is_kept(selection: str) -> None:
    """Nothing says that the first, untrained one is best."""
    graph = made.graph()
    nobody = torch.zeros(made.NODES, dtype=torch.bool)
    split = Split(graph.y >= 0, nobody, nobody)
    fitted = [
        short(selection=name, epochs=5).fit(graph, split=split, randomness=SeededRandomness(1)).predict_proba()
        for name in (selection, "last")
    ]
    assert torch.equal(*fitted)


# ---- UPGNet ----


UPGNET = partial(short, denoising="upgnet", epsilon_x=4.0)


def predicted(**settings: Any) -> torch.Tensor:
    graph = made.graph()
    method = short(**{"epsilon_x": 4.0, **settings})
    return method.fit(graph, split=made.split_of(graph), randomness=SeededRandomness(1)).predict_proba()


def test_the_same_reports_are_read_through_other_layers() -> None:
    plain, upgnet = LPGNN(epsilon_x=4.0, epsilon_y=1.0), UPGNET()
    graph, split = made.graph(), made.split_of(made.graph())
    sent = [method.randomize(graph, split=split, randomness=SeededRandomness(1)).digest for method in (plain, upgnet)]
    assert sent[0] == sent[1]
    assert not torch.equal(predicted(), predicted(denoising="upgnet"))


@pytest.mark.parametrize("epsilon_x", [math.inf, None])
def test_what_holds_no_noise_is_left_as_lpgnn_reads_it(epsilon_x: float | None) -> None:
    assert torch.equal(predicted(epsilon_x=epsilon_x), predicted(epsilon_x=epsilon_x, denoising="upgnet"))


def test_the_units_of_features_change_nothing() -> None:
    """The threshold is one for features in [0, 1]: declared in other units, features give the same network."""
    graph = made.graph(20)
    wide = made.changed(graph, x=16 * made.dense(graph.x), low=16 * graph.schema.low, high=16 * graph.schema.high)
    predictions = [
        UPGNET(seed=0).fit(g, split=made.split_of(g), randomness=SeededRandomness(1)).predict_proba()
        for g in (graph, wide)
    ]
    assert torch.allclose(predictions[0], predictions[1], atol=1e-4)


# ---- reports of some, and links that count for as much as their ends agree ----


def of_some(reports: LocalReports, who: Tensor) -> LocalReports:
    """The same reports, of which those of all others never arrived."""
    features = type(reports.features).from_tensors({name: t[who] for name, t in reports.features.to_tensors().items()})
    return replace(reports, features=Answers(who, features))


@pytest.fixture
def graph() -> Graph:
    return made.graph()


@pytest.fixture
def sent(graph: Graph) -> LocalReports:
    return randomize_people(graph, made.split_of(graph), short().privacy, randomness=SeededRandomness(5))


HALF = torch.arange(made.NODES) % 2 == 0


@pytest.mark.parametrize("more", [{}, {"model": "gcn"}, {"denoising": "upgnet"}, {"steps_x": 0}], ids=str)
def test_everybody_is_predicted_where_all_or_half_answered(graph: Graph, sent: LocalReports, more: Any) -> None:
    """Where all did every bit is as without a mask; the reports of half say something else."""
    everyone = of_some(sent, torch.ones(made.NODES, dtype=torch.bool))
    whole, all_answered, some = (
        short(**more).fit_reports(reports, topology_of(graph)) for reports in (sent, everyone, of_some(sent, HALF))
    )
    assert torch.equal(whole.probabilities(), all_answered.probabilities())
    assert tuple(some.probabilities().shape) == (made.NODES, len(graph.schema.classes))
    assert bool(torch.isfinite(some.probabilities()).all()) and some.guarantee.epsilon == 2.0
    assert not torch.equal(some.probabilities(), whole.probabilities())


def test_a_missing_report_has_no_row_that_says_anything(graph: Graph, sent: LocalReports) -> None:
    rows, offset = features_of(of_some(sent, HALF), 0)
    whole, same = features_of(sent, 0)
    assert offset == same
    assert (rows[HALF.numpy()] != whole[HALF.numpy()]).nnz == 0 and rows[~HALF.numpy()].nnz == 0


def test_labels_spread_from_those_who_sent_one(graph: Graph, sent: LocalReports) -> None:
    silent = sent.train & HALF
    fewer = replace(sent, train=sent.train & ~silent, labels=torch.where(silent, -1, sent.labels), features=None)
    core = LabelPropagation(epsilon_y=2.0)
    probabilities = core.fit_reports(replace(fewer, privacy=core.privacy), topology_of(graph)).probabilities()
    assert len(probabilities) == int(graph.num_nodes) and bool(torch.isfinite(probabilities).all())
    # What was never sent cannot matter, whatever stands at its place.
    other = replace(fewer, labels=torch.where(silent, 0, fewer.labels), privacy=core.privacy)
    again = LabelPropagation(epsilon_y=2.0).fit_reports(other, topology_of(graph)).probabilities()
    assert torch.equal(probabilities, again)


# ---- links that count for as much as their ends agree ----


PEOPLE = 240


def people(epsilon_y: float = 2.0) -> tuple[Graph, LocalReports, Topology]:
    """A graph, its people's reports and who is linked to whom."""
    graph = social_graph(PEOPLE, average_degree=10, dimension=20, classes=3, seed=4)
    core = LPGNN(epsilon_x=2.0, epsilon_y=epsilon_y)
    reports = randomize_people(graph, random_split(graph, 0), core.privacy, randomness=SeededRandomness(3))
    return graph, reports, topology_of(graph)


def test_ends_that_agree_weigh_the_more() -> None:
    beliefs = torch.tensor([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.5, 0.5]])
    edges = torch.tensor([[0, 0, 0], [1, 2, 3]])
    assert agreement(beliefs, edges).tolist() == pytest.approx([1.0, LEAST, 0.5])
    assert torch.equal(agreement(beliefs, edges), agreement(beliefs, edges.flip(0)))


@pytest.mark.parametrize(("setting", "chosen"), [("trimming", "agreement"), ("pooling", "labels")])
def test_trimming_and_a_pool_cost_nothing_are_kept_in_a_file_and_can_be_left_out(
    setting: str, chosen: str, tmp_path: Path
) -> None:
    graph, models = people()[0], []
    for value in (chosen, "none"):
        method = LPGNN(epsilon_x=2.0, epsilon_y=2.0, epochs=2, **{setting: value})
        models.append(method.fit(graph, randomness=SeededRandomness(1)))
        assert method.guarantee.epsilon == 4.0
        again = load_method(method.save(tmp_path / value))
        assert torch.equal(again.predict_proba(), method.predict_proba())
        assert again.get_params()[setting] == value
    assert not torch.equal(*(model.predict_proba() for model in models))
    if setting == "pooling":
        assert models[1].pooled is None and "neither had heard" in models[0].pooled.sentence


def test_what_it_cannot_weigh_is_refused() -> None:
    _, reports, topology = people()
    weighed = Topology(topology.edge_index, PEOPLE, torch.ones(topology.edge_index.shape[1]))
    with pytest.raises(InputError, match="edges without weights"):
        trimmed(weighed, reports, seed=0)
    with pytest.raises(InputError, match="with upgnet"):
        LPGNN(epsilon_x=2.0, epsilon_y=2.0, trimming="agreement", denoising="upgnet")


# ---- the network pooled with what labels alone say ----


def test_no_report_judges_an_opinion_that_has_heard_it(monkeypatch: pytest.MonkeyPatch) -> None:
    # Class shares and homophily are estimated by all reports together: held fixed, nothing else may move. (The costly
    # members stop searching for all folds at once, and move a little by that.)
    monkeypatch.setattr(label_pool, "class_shares", lambda *_: torch.full((3,), 1 / 3))
    monkeypatch.setattr(label_pool, "homophily", lambda *_: 0.7)
    monkeypatch.setattr(label_pool, "TRACE", 0.0)
    _, reports, topology = people()
    values, judges = torch.where(reports.train | reports.val, reports.labels, -1), reports.val
    v = int(judges.nonzero()[0, 0])
    changed = values.clone()
    changed[v] = (changed[v] + 1) % 3
    before, heard = (
        read_labels(topology, labels, Channel(3, 0.8, 0.1), seed=0, work=0) for labels in (values, changed)
    )
    row = int((before.folds[:v] >= 0).sum())
    members = list(zip(before.out_of_fold, heard.out_of_fold, before.whole, heard.whole, strict=True))
    assert all(torch.allclose(old[row], new[row], atol=1e-5) for old, new, _, _ in members)
    assert not any(torch.allclose(old[v], new[v], atol=1e-2) for _, _, old, new in members)
    # Nor do those who judge weigh the members that they judge.
    judged, final = pooled_opinions(before, judges)
    weighed = pooled_opinions(before, torch.zeros_like(judges))
    assert torch.equal(final, weighed[1]) and not torch.equal(judged, weighed[0])


@pytest.mark.parametrize("more", [0, 2])
def test_of_very_many_reports_evenly_spaced_ones_weigh_the_members(more: int) -> None:
    """The first member is right of every second report, the other one of those between them."""
    _, reports, topology = people()
    read, count = read_labels(topology, reports.labels, Channel(3, 0.8, 0.1), seed=0, work=0), MOST_TEACHERS + more
    labels, first = torch.arange(count) % 3, torch.arange(count)[:, None] % 2 == 0
    right, wrong = (torch.nn.functional.one_hot((labels + turned) % 3, 3).float() for turned in (0, 1))
    scores = [torch.where(first, right, wrong), torch.where(first, wrong, right)]
    setting = replace(read.setting, likelihood=read.setting.channel.matrix[:, labels].T)
    many = Readings(setting, labels, ["first", "second"], scores, scores)
    _, opinions = pooled_opinions(many, torch.zeros(count, dtype=torch.bool))
    met = (opinions.argmax(dim=1) == labels).view(-1, 2).float().mean(dim=0)
    gap = (opinions.amax(dim=1) - opinions.gather(1, labels[:, None])[:, 0]).view(-1, 2).mean(dim=0)
    if more:
        assert met.tolist() == [1, 0] and gap[1] > 0.1, "those between were not heard"
    else:
        assert abs(gap[0] - gap[1]) < 0.01, "up to that number everybody is heard, and both are right as often"


def taught(graph: Graph, *, features: bool, edges: bool, epsilon_y: float = 3.0) -> LPGNN:
    """A network on features that say the class or nothing, over the graph's edges or none."""
    rows = torch.nn.functional.one_hot(graph.y, 3).float()
    copied = copy(graph)
    copied.x = torch.cat([rows if features else torch.zeros_like(rows), torch.zeros(PEOPLE, 17)], dim=1).to_sparse_csr()
    if not edges:
        copied.edge_index = graph.edge_index[:, :0]
    model = LPGNN(epsilon_x=math.inf, epsilon_y=epsilon_y, epochs=100)
    return model.fit(copied, randomness=SeededRandomness(1))


def test_weights_go_to_whoever_knows() -> None:
    graph, _, _ = people()
    by_features, by_edges = taught(graph, features=True, edges=False), taught(graph, features=False, edges=True)
    assert float((by_features.predict() == graph.y).float().mean()) > 0.95
    assert by_features.pooled.weights[0] > 3 * by_edges.pooled.weights[0]
    assert by_edges.pooled.weights[1] > by_features.pooled.weights[1]


def test_the_control_of_labels_is_the_whole_pool(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its opinion of the same run where that has all members, and not one trained again."""
    graph, _, _ = people()
    controls = []
    for work in (pooled.NETWORK_WORK, 0):
        monkeypatch.setattr(pooled, "NETWORK_WORK", work)
        model = LPGNN(epsilon_x=2.0, epsilon_y=2.0, epochs=2).fit(graph, randomness=SeededRandomness(1))
        alone = controls_of(model, graph, random_split(graph, 0))["label-pool"]()
        controls.append((torch.from_numpy(alone).bool(), model.pooled.labels_alone))
    (control, opinion), (fitted, none) = controls
    assert none is None and torch.equal(control, right(opinion, graph)) and torch.equal(control, fitted)


def right(scores: Tensor, graph: Graph) -> Tensor:
    test = random_split(graph, 0).test
    return scores.argmax(dim=1)[test] == graph.y[test]


def test_labels_taken_as_they_came_have_no_pool_and_public_ones_have() -> None:
    graph, _, _ = people()
    for settings, has_pool in (({"epsilon_y": math.inf}, True), ({"epsilon_y": 2.0, "loss": "cross-entropy"}, False)):
        model = LPGNN(epsilon_x=2.0, epochs=2, **settings).fit(graph, randomness=SeededRandomness(1))
        assert (model.pooled is not None) is has_pool


GRAPH = social_graph(200, average_degree=8, dimension=20, classes=3, seed=1)


def test_matrices_are_those_of_the_edges_themselves() -> None:
    one_way = Topology(GRAPH.edge_index[:, GRAPH.edge_index[0] < GRAPH.edge_index[1]], int(GRAPH.num_nodes))
    weighted = replace(topology_of(GRAPH), weights=torch.full((GRAPH.edge_index.shape[1],), 2.0))
    plain = topology_of(GRAPH).propagation()
    for topology in (topology_of(GRAPH), one_way, weighted):
        matrix = topology.both_ways.normalised()
        assert torch.equal(matrix.forward.indices, plain.forward.indices)
        assert torch.equal(matrix.forward.values, plain.forward.values)


# ---- controls see what the method's server saw, and nothing else ----


BUDGETS = {
    "private": {"epsilon_x": 1.0, "epsilon_y": 1.0},
    "private features": {"epsilon_x": 1.0, "epsilon_y": math.inf},
    "no features": {"epsilon_x": None, "epsilon_y": 1.0},
    "public": {"epsilon_x": math.inf, "epsilon_y": math.inf},
}


@pytest.mark.slow  # trainings
@pytest.mark.parametrize("name", BUDGETS)
def test_controls_read_no_features_and_no_labels_but_those_of_test_nodes(name: str) -> None:
    """The accuracy of each is the same when everything that was not released is out of reach."""
    graph = made.graph()
    split = made.split_of(graph)
    method = LPGNN(**BUDGETS[name], epochs=3, hidden=4, steps_x=2, steps_y=2)
    method.fit(graph, split=split, randomness=SeededRandomness(1))
    open_, sealed = (controls_of(method, g, split) for g in (graph, made.Sealed(graph, split.test)))
    assert set(open_) == set(sealed)
    for control in open_:
        assert np.array_equal(open_[control](), sealed[control]()), control


def test_each_method_is_compared_with_what_it_is_not() -> None:
    """Where no features are collected random numbers stand in for them: a control without edges would be the method."""
    common, graph = {"public-only", "majority"}, made.graph()
    for method, controls in (
        (LPGNN(epsilon_x=None, epsilon_y=1.0, epochs=1), {"label-propagation", "label-pool"}),
        (LabelPropagation(epsilon_y=1.0, rule="pool"), {"label-propagation", "random-features"}),
        (LabelPropagation(epsilon_y=1.0), set()),
    ):
        method.fit(graph, split=made.split_of(graph), randomness=SeededRandomness(1))
        assert set(controls_of(method, graph, made.split_of(graph))) == common | controls


def test_the_ceiling_is_one_whatever_the_noise() -> None:
    """It reads the truth, so neither epsilon nor the draw of noise reaches it."""
    graph = made.graph()
    split = made.split_of(graph)
    ceilings = []
    for epsilon, seed in ((0.1, 1), (3.0, 2)):
        method = LPGNN(epsilon_x=epsilon, epsilon_y=epsilon, epochs=3, hidden=4)
        method.fit(graph, split=split, randomness=SeededRandomness(seed))
        ceilings.append(ceiling_of(network_settings(method), graph, split))
    assert np.array_equal(*ceilings)


def test_hits_are_counted_on_test_nodes_alone() -> None:
    graph = made.graph()
    split = made.split_of(graph)
    right = torch.nn.functional.one_hot(graph.y.clamp_min(0), 3).float()
    assert hits(right, graph, split).tolist() == [1.0] * int(split.test.sum())
    right[~split.test] = 0
    assert hits(right, graph, split).tolist() == [1.0] * int(split.test.sum())
    assert hits(1 - right, graph, split).sum() == 0


def test_the_majority_is_the_class_that_most_released_labels_name() -> None:
    graph = made.graph()
    split = made.split_of(graph)
    method = LPGNN(epsilon_x=1.0, epsilon_y=0.5, epochs=2, hidden=4, steps_x=2, steps_y=2)
    method.fit(graph, split=split, randomness=SeededRandomness(1))
    released = method.released.labels[split.train | split.val]
    most = int(torch.bincount(released, minlength=3).argmax())
    expected = (graph.y[split.test] == most).numpy().astype(float)
    assert np.array_equal(controls_of(method, graph, split)["majority"](), expected)


def test_the_pool_beside_a_network_is_the_method_of_that_name_on_the_same_labels() -> None:
    graph = made.graph()
    split = made.split_of(graph)
    settings: dict[str, Any] = {"epochs": 2, "hidden": 4, "steps_x": 2, "steps_y": 2}
    method = LPGNN(epsilon_x=None, epsilon_y=1.0, **settings)
    method.fit(graph, split=split, randomness=SeededRandomness(1))
    pool = LabelPropagation(epsilon_y=1.0, rule="pool").fit(graph, split=split, randomness=SeededRandomness(1))
    assert torch.equal(method.released.labels, pool.released.labels)
    expected = hits(pool.predict_proba(), graph, split)
    assert np.array_equal(controls_of(method, graph, split)["label-pool"](), expected)
