"""Class sums: what one edge may change, what is free, what is refused. Numbers are items of the checklist."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from graphveil.aggregation import CountedSum
from graphveil.errors import InputError
from graphveil.graphs import social_graph
from graphveil.methods import ClassSums, load_method
from graphveil.methods.curator.controls import curator_controls_of
from graphveil.methods.curator.feature_evidence import feature_evidence
from graphveil.methods.curator.messages import corners, named_classes
from graphveil.methods.curator.training import read_people
from graphveil.methods.runs import experiment
from graphveil.methods.runs.plan import plan
from graphveil.privacy import SeededRandomness
from tests.methods import curator_made as cm

FAST: dict[str, Any] = {"epochs": 6, "hidden": 4}


def build(**settings: Any) -> ClassSums:
    return ClassSums(**{**FAST, "epsilon": 2.0, **settings})


def fit(start: Any = None, *, draws: int = 1, **settings: Any) -> ClassSums:
    """A method fitted on the small graph, in little time."""
    start = cm.graph() if start is None else start
    return build(**settings).fit(start, split=cm.split_of(start), randomness=SeededRandomness(draws))


def with_toggled(start: Any, pair: tuple[int, int]) -> Any:
    """The graph in which one undirected edge is there exactly if it was not."""
    pairs = {tuple(p) for p in start.edge_index[:, start.edge_index[0] < start.edge_index[1]].T.tolist()}
    return cm.with_edges(start, torch.tensor(sorted(pairs ^ {pair})).T)


class Watched:
    """A known graph that counts how often its edges are read."""

    def __init__(self, start: Any) -> None:
        self.graph, self.reads = start, 0

    def __getattr__(self, name: str) -> Any:
        self.reads += name == "edge_index"
        return getattr(self.graph, name)


# ---- what one edge may change ----


@pytest.mark.slow  # trainings
@pytest.mark.parametrize("unit", ["edge", "directed-edge"])
@pytest.mark.parametrize("pair", [(0, 1), (10, 33)])
def test_replay_of_counts_on_a_neighbour_changes_nothing_but_them(
    unit: str, pair: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Items 2, 3, 4, as it is by default: an edge moves the counts of its ends by a message each, of L1 length 1."""
    replay = cm.Replay(monkeypatch, CountedSum)
    start = cm.graph()
    first = fit(start, unit=unit)
    before = replay.again()
    second = fit(with_toggled(start, pair), unit=unit)
    assert torch.equal(first.predict_proba(), second.predict_proba())
    assert (first.history, first.ledger, first.guarantee) == (second.history, second.ledger, second.guarantee)
    ((sums, rows, x, _),), ((sums2, rows2, x2, _),) = before, replay.calls
    assert sums == sums2 and torch.equal(x, x2)
    plain = replace(sums, epsilon=math.inf)
    replay.replaying = False
    exact = [plain.perturb(edges, x, SeededRandomness(0)) for edges in (rows, rows2)]
    moved = float((exact[0] - exact[1]).abs().sum())
    assert moved == pytest.approx(float(x[list(pair)].sum()), abs=0.1)
    assert 0.0 < moved <= 2.0
    if unit == "edge":
        assert moved <= sums.change


def test_publish_alone_reads_edges_and_once() -> None:
    start, split = Watched(cm.graph()), cm.split_of(cm.graph())
    method = build()
    published = method.publish(start, split=split, randomness=SeededRandomness(1))
    assert start.reads == 1
    assert published.sums.shape == (60, 3)
    assert not any(tensor is start.graph.edge_index for tensor in vars(published.people).values())
    method.fit_published(published).predict_proba(start)
    method.score(start)
    assert start.reads == 1


# ---- the price ----


@pytest.mark.slow  # trainings
@pytest.mark.parametrize(("settings", "change"), [({}, 2), ({"unit": "k-edges", "relationships": 3}, 6)])
def test_geometric_noise_is_pure_and_smaller(settings: dict[str, Any], change: int, tmp_path: Path) -> None:
    """Epsilon over the L1 change of all counts; the ledger says the law, and a saved model stays what it was."""
    start, normal = cm.graph(), fit(noise="normal", **settings)
    method = build(**settings)
    method.fit(start, split=cm.split_of(start), randomness=SeededRandomness(1))
    assert method.published is not None and normal.published is not None
    (sigma,), (other,) = method.published.noise.sigmas, normal.published.noise.sigmas
    assert sigma == pytest.approx(math.sqrt(2) * change / 2.0, rel=1e-3)
    assert 1.5 * sigma < other
    assert method.epsilon_relationship == pytest.approx(2.0 * 2 / change)
    assert method.ledger.spends[0].parameters["noise_law"] == "two-sided geometric"
    method.save(tmp_path)
    loaded = load_method(tmp_path)
    assert (loaded.guarantee, loaded.core.noise) == (method.guarantee, "geometric")
    assert plan("class-sums", cm.graph(), {"epsilon": 2.0, **settings}).figures.noise.sigmas == (sigma,)


def test_named_classes_are_shares_of_length_one() -> None:
    """A label is one class; who has none sends what features expect of it, where they explain something."""
    start = cm.graph()
    people = read_people(start, cm.split_of(start))
    found = named_classes(people, feature_evidence(people, corners(people.classes)))
    known = people.labels >= 0
    assert torch.equal(found[known].argmax(dim=1), people.labels[known])
    assert float(found.abs().sum(dim=1).max()) <= 1 + 1e-6


def test_a_graph_that_is_refused_when_it_is_read_stays_paid() -> None:
    start, method = cm.graph(), build()
    start.y[cm.split_of(start).train.nonzero()[0]] = 7
    with pytest.raises(InputError, match="not a declared class"):
        method.fit(start, split=cm.split_of(start), randomness=SeededRandomness(1))
    assert len(method.ledger.spends) == 1


# ---- what is computed ----


@pytest.mark.parametrize("classes", [1, 2, 3, 7])
def test_corners_are_unit_rows_as_far_apart_as_can_be(classes: int) -> None:
    found = corners(classes)
    assert torch.allclose(found.norm(dim=1), torch.ones(classes))
    if classes > 1:
        apart = torch.cdist(found, found)[~torch.eye(classes, dtype=torch.bool)]
        assert torch.allclose(apart, torch.tensor(math.sqrt(2 * classes / (classes - 1))), atol=1e-3)


def test_exact_sums_count_neighbours_by_class() -> None:
    start = cm.graph()
    split = cm.split_of(start)
    known = torch.where(split.train | split.val, start.y, -1)
    for law, names in (("geometric", torch.eye(3)), ("normal", corners(3))):
        method, expected = fit(epsilon=math.inf, noise=law), torch.zeros(60, 3)
        for sender, receiver in start.edge_index.T.tolist():
            if known[sender] >= 0:
                expected[receiver] += names[known[sender]]
        assert method.published is not None
        assert torch.allclose(method.published.sums, expected, atol=0.02)


@pytest.mark.slow
def test_sums_help_where_neighbours_are_alike() -> None:
    """600 people in 3 communities, little noise: 0.91 against 0.57 of the same network without sums."""
    start = social_graph(600, 12, 100, 3, apps=4, seed=1)
    split = cm.split_of(start)
    method = fit(start, epsilon=20.0, epochs=40, hidden=16)
    alone = curator_controls_of(method, start, split, randomness=SeededRandomness(0))["no-edges"]()
    assert method.score(start, split.test) > float(alone.mean()) + 0.2


# ---- files ----


# ---- settings, plan, experiment ----


def test_a_plan_reads_no_edge() -> None:
    class NoEdges:
        """The known graph without its edges; labels are there for their shape."""

        def __init__(self) -> None:
            start = cm.graph()
            self.num_nodes, self.schema, self.y = start.num_nodes, start.schema, start.y

    promised = plan("class-sums", NoEdges(), {"epsilon": 2.0})
    method = fit()
    assert promised.figures is not None and method.published is not None
    assert promised.figures.noise == method.published.noise
    assert promised.guarantee.epsilon == method.guarantee.epsilon == 2.0
    assert promised.guarantee.unit == method.guarantee.unit


@pytest.mark.slow
def test_a_run_has_its_control_ceiling_and_rivals() -> None:
    """Item 18, in one run: the same network without sums, the same without noise, others at the same price."""
    settings = {**FAST, "epsilon": 2.0}
    result = experiment.run("class-sums", cm.graph(), settings=settings, randomness=SeededRandomness(1))
    assert set(result.scores.controls) == {"no-edges"}
    assert result.scores.best_control == "no-edges"
    assert set(result.scores.rivals) == {"gap", "progap"}
    assert result.scores.ceiling is not None and result.scores.lift is not None
    assert result.privacy.epsilon_relationship == 2.0
    assert result.privacy.ledger.total("edges") == pytest.approx((2.0, 1e-5))
    assert (
        "class-sums"
        in experiment.run(
            "gap", cm.graph(), settings={**cm.FAST, "epsilon": 2.0}, randomness=SeededRandomness(1)
        ).scores.rivals
    )


def test_the_control_reads_no_edge() -> None:
    method, start = fit(), Watched(cm.graph())
    curator_controls_of(method, start, cm.split_of(start.graph), randomness=SeededRandomness(1))["no-edges"]()
    assert start.reads == 0
