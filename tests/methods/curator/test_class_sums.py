"""Class sums: what one edge may change, what is free, what is refused. Numbers are items of the checklist."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from graphveil.aggregation import CountedSum
from graphveil.aggregation.grid import quantise
from graphveil.errors import BudgetError, InputError, ModelFileError
from graphveil.graphs import social_graph
from graphveil.methods import ClassSums, load_method
from graphveil.methods.curator import class_sums as module
from graphveil.methods.curator.controls import curator_controls_of
from graphveil.methods.curator.feature_evidence import feature_evidence
from graphveil.methods.curator.messages import beside, corners, messages, named_classes
from graphveil.methods.curator.privacy import Noise
from graphveil.methods.curator.training import read_people
from graphveil.methods.runs import experiment
from graphveil.methods.runs.plan import plan
from graphveil.privacy import SecureRandomness, SeededRandomness, gaussian_epsilon
from tests.methods import curator_made as cm
from tests.methods import made

FAST: dict[str, Any] = {"epochs": 6, "hidden": 4}
UNITS = pytest.mark.parametrize("unit", ["edge", "directed-edge"])


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


@UNITS
@pytest.mark.parametrize("pair", [(0, 1), (2, 40), (10, 33), (3, 5)])
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


@UNITS
@pytest.mark.parametrize("pair", [(0, 1), (2, 40), (10, 33), (3, 5)])
def test_replay_on_a_neighbour_changes_nothing_but_the_sums(
    unit: str, pair: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Items 2, 3, 4: with the noisy sums frozen, one edge more or less gives the same calls, shapes, noise, model."""
    replay = cm.Replay(monkeypatch)
    start = cm.graph()
    first = fit(start, unit=unit, noise="normal")
    before = replay.again()
    second = fit(with_toggled(start, pair), unit=unit, noise="normal")
    assert torch.equal(first.predict_proba(), second.predict_proba())
    assert (first.history, first.ledger, first.guarantee) == (second.history, second.ledger, second.guarantee)
    ((sums, rows, x, hop),), ((sums2, rows2, x2, hop2),) = before, replay.calls
    assert (sums, hop) == (sums2, hop2)
    assert torch.equal(x, x2)
    grid = quantise(x, bits=sums.row_bits())
    moved = float((rows.sums(grid).values - rows2.sums(grid).values).norm()) / 2 ** sums.row_bits()
    labelled = int((x[list(pair)].norm(dim=1) > 0).sum())
    assert moved == pytest.approx(math.sqrt(labelled), abs=0.02)
    assert moved <= math.sqrt(2) * (1 + 1e-9)
    if unit == "edge":
        assert moved <= sums.sensitivity


def test_two_labelled_ends_need_all_of_the_sensitivity() -> None:
    """The bound is tight, and without the sqrt(2) it would not hold."""
    start = cm.graph()
    people = read_people(start, cm.split_of(start))
    ends = people.train[:2].tolist()
    x = messages(people, feature_evidence(people, corners(people.classes)))
    assert float(x[ends].norm()) == pytest.approx(math.sqrt(2))
    assert float(x.norm(dim=1).max()) <= 1 + 1e-6


def test_the_replay_would_notice_a_second_reader(monkeypatch: pytest.MonkeyPatch) -> None:
    """A mutant that divides by true degrees is caught by the tests above."""
    replay, real, seen = cm.Replay(monkeypatch, CountedSum), module.beside, [cm.graph()]

    def peeking(sums: Tensor, noise: Noise) -> Tensor:
        return real(sums, noise) / (1 + torch.bincount(seen[0].edge_index[1], minlength=made.NODES)[:, None])

    monkeypatch.setattr(module, "beside", peeking)
    first = fit(seen[0])
    replay.again()
    seen[0] = cm.without_edge(seen[0], 7)
    assert not torch.equal(first.predict_proba(), fit(seen[0]).predict_proba())


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


def test_ten_times_as_many_edges_change_no_public_number() -> None:
    """Item 5: noise, delta, epochs, sizes, ledger and guarantee are the same."""
    start, pairs = cm.graph(), torch.triu_indices(60, 60, 1)
    few, many = (fit(cm.with_edges(start, pairs[:, :m])) for m in (90, 900))
    assert few.ledger == many.ledger and few.guarantee == many.guarantee
    assert few.published is not None and many.published is not None
    assert few.published.noise == many.published.noise
    assert len(few.history) == len(many.history)
    assert few.published.sums.shape == many.published.sums.shape


def test_a_graph_without_edges_is_noise_and_trains() -> None:
    empty = fit(cm.with_edges(cm.graph(), torch.zeros(2, 0, dtype=torch.int64)))
    assert empty.published is not None
    assert float(empty.published.sums.std()) == pytest.approx(empty.published.noise.sigmas[0], rel=0.3)


def test_labels_of_test_nodes_are_never_used() -> None:
    """Item 12: labels outside training and validation change nothing; a training label does."""
    start = cm.graph()
    split = cm.split_of(start)
    found = fit(start).predict_proba()
    for mask, same in ((split.test, True), (split.train, False)):
        other = cm.graph()
        other.y[mask] = (other.y[mask] + 1) % 3
        assert torch.equal(fit(other).predict_proba(), found) == same


def test_a_class_nobody_has_keeps_its_column() -> None:
    """Item 7: messages and head are as wide as the declared classes."""
    start = cm.graph()
    start.y[start.y == 2] = 0
    method = fit(start)
    assert method.predict_proba().shape == (60, 3)
    assert method.published is not None and method.published.sums.shape == (60, 3)


# ---- the price ----


def test_noise_is_that_of_the_unit() -> None:
    """An undirected edge costs sqrt(2) of a directed one, and both cost their epsilon exactly."""
    one, two = (fit(unit=unit, noise="normal") for unit in ("directed-edge", "edge"))
    assert one.published is not None and two.published is not None
    sigmas = [method.published.noise.sigmas[0] for method in (one, two)]
    assert sigmas[1] / sigmas[0] == pytest.approx(math.sqrt(2))
    for sigma, reach in zip(sigmas, (1.0, math.sqrt(2)), strict=True):
        assert gaussian_epsilon(sigma / reach, 1e-5) == pytest.approx(2.0, rel=1e-4)
        assert gaussian_epsilon(sigma / reach, 1e-5) <= 2.0
    assert two.epsilon_relationship == 2.0
    assert one.epsilon_relationship == pytest.approx(2.91, abs=0.1)
    assert "one undirected edge" in two.guarantee.sentence()


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


def test_an_unknown_law_is_refused() -> None:
    with pytest.raises(InputError, match="allowed: normal, geometric"):
        build(noise="laplace")


def test_relationships_of_one_person_are_hidden_together(tmp_path: Path) -> None:
    """The noise is sqrt(k (k + 1)) wide, the guarantee names k, and a saved model still does."""
    method = fit(unit="k-edges", relationships=4, noise="normal")
    assert method.published is not None
    assert gaussian_epsilon(method.published.noise.sigmas[0] / math.sqrt(20), 1e-5) == pytest.approx(2.0, rel=1e-4)
    assert method.guarantee.unit.code == "4*one-relationship-of-a-person"
    alone = gaussian_epsilon(method.published.noise.sigmas[0] / math.sqrt(2), 1e-5)
    assert method.epsilon_relationship == pytest.approx(alone, rel=1e-6) and alone < 0.6
    method.save(tmp_path)
    loaded = load_method(tmp_path)
    assert loaded.guarantee == method.guarantee and loaded.core.privacy == method.privacy
    with pytest.raises(InputError, match="say how many"):
        build(unit="k-edges")


def test_the_ledger_refuses_a_second_publication_before_anything_is_read() -> None:
    method = fit()
    paid = method.ledger
    assert paid.total("edges") == pytest.approx((2.0, 1e-5))
    with pytest.raises(BudgetError):
        method.publish(cm.Unreadable(cm.graph()), split=cm.split_of(cm.graph()), randomness=SeededRandomness(1))
    assert method.ledger == paid


def test_publishing_alone_is_paid_for() -> None:
    start, method = cm.graph(), build()
    split = cm.split_of(start)
    method.publish(start, split=split, randomness=SeededRandomness(1))
    assert method.ledger.total("edges") == pytest.approx((2.0, 1e-5))
    with pytest.raises(BudgetError):
        method.publish(start, split=split, randomness=SeededRandomness(2))


def test_a_graph_that_is_refused_when_it_is_read_stays_paid() -> None:
    start, method = cm.graph(), build()
    start.y[cm.split_of(start).train.nonzero()[0]] = 7
    with pytest.raises(InputError, match="not a declared class"):
        method.fit(start, split=cm.split_of(start), randomness=SeededRandomness(1))
    assert len(method.ledger.spends) == 1


def test_training_on_the_publication_again_is_free_and_gives_the_same() -> None:
    method = fit()
    found, paid = method.predict_proba(), method.ledger
    assert method.published is not None
    assert torch.equal(method.fit_published(method.published).predict_proba(), found)
    assert method.ledger == paid
    other = build(hidden=8).fit_published(method.published)
    assert other.ledger == paid and other.guarantee == method.guarantee
    with pytest.raises(InputError, match="the sums were published with"):
        build(epsilon=3.0).fit_published(method.published)


def test_fresh_noise_every_time_and_the_same_noise_voids() -> None:
    """Item 17."""
    start, split = cm.graph(), cm.split_of(cm.graph())
    a, b = (build().fit(start, split=split, randomness=SecureRandomness()) for _ in range(2))
    assert a.published is not None and b.published is not None
    assert not torch.equal(a.published.sums, b.published.sums)
    assert a.guarantee.void is None and a.guarantee.protects
    assert fit().guarantee.void is not None


def test_without_privacy_it_is_said_and_no_noise_is_drawn() -> None:
    method = fit(epsilon=math.inf)
    assert "NOT PROTECTED" in method.guarantee.sentence()
    assert method.ledger.spends == () and method.guarantee.protects is False
    assert torch.equal(method.predict_proba(), fit(epsilon=math.inf, draws=9).predict_proba())


def test_features_and_labels_are_said_to_be_open() -> None:
    assert fit().guarantee.assumption("features-and-labels-open")


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


def test_what_is_beside_the_features_is_finite_and_standard() -> None:
    noise = Noise((0.0,))
    z = beside(torch.tensor([[0.0, 0.0], [1e6, -1.0], [3.0, 4.0]]), noise)
    assert bool(z.isfinite().all())
    assert torch.allclose(z.mean(dim=0), torch.zeros(4), atol=1e-6)
    assert bool(beside(torch.ones(1, 2), noise).isfinite().all()), "one node has no deviation"
    assert beside(torch.zeros(5, 0), noise).shape == (5, 0)


def test_sums_help_where_neighbours_are_alike() -> None:
    """600 people in 3 communities, little noise: 0.91 against 0.57 of the same network without sums."""
    start = social_graph(600, 12, 100, 3, apps=4, seed=1)
    split = cm.split_of(start)
    method = fit(start, epsilon=20.0, epochs=40, hidden=16)
    alone = curator_controls_of(method, start, split, randomness=SeededRandomness(0))["no-edges"]()
    assert method.score(start, split.test) > float(alone.mean()) + 0.2


# ---- files ----


def test_predicting_known_nodes_touches_nothing_and_is_free(tmp_path: Path) -> None:
    """Item 11: from the cache, with the graph sealed, also after save and load."""
    method, sealed = fit(), cm.Unreadable(cm.graph())
    paid, found = method.ledger, method.predict_proba()
    assert torch.equal(method.predict_proba(sealed), found)
    path = method.save(tmp_path)
    for loaded in (load_method(tmp_path), ClassSums.load(path)):
        assert torch.equal(loaded.predict_proba(sealed), found)
        assert method.ledger == loaded.ledger == paid
        assert (loaded.guarantee, loaded.history) == (method.guarantee, method.history)
        assert loaded.epsilon_relationship == method.epsilon_relationship
        assert (loaded.privacy, loaded.settings) == (method.privacy, method.settings)
        assert loaded.schema.classes == method.schema.classes


def test_an_unprotected_model_is_saved_as_such(tmp_path: Path) -> None:
    fit(epsilon=math.inf).save(tmp_path)
    assert load_method(tmp_path).guarantee.protects is False


def test_files_hold_neither_sums_nor_edges(tmp_path: Path) -> None:
    from safetensors import safe_open

    with safe_open(fit().save(tmp_path), framework="pt") as file:
        names = set(file.keys())
    assert not any(word in name for name in names for word in ("sums", "edge", "features"))
    assert any("logits" in name for name in names)


def test_a_loaded_model_cannot_publish_again(tmp_path: Path) -> None:
    fit().save(tmp_path)
    with pytest.raises(BudgetError):
        load_method(tmp_path).publish(
            cm.Unreadable(cm.graph()), split=cm.split_of(cm.graph()), randomness=SeededRandomness(1)
        )


def test_damaged_files_and_unfitted_methods_are_refused(tmp_path: Path) -> None:
    for call in (lambda: build().predict_proba(), lambda: build().guarantee, lambda: build().save(tmp_path)):
        with pytest.raises(InputError, match="has not been fitted"):
            call()
    path = fit().save(tmp_path)
    path.write_bytes(path.read_bytes()[:-8])
    with pytest.raises(ModelFileError):
        load_method(tmp_path)


def test_other_nodes_are_refused_without_reading_them() -> None:
    other = cm.Unreadable(cm.graph())
    other.num_nodes = 61
    with pytest.raises(InputError, match="predicts only nodes whose sums were published"):
        fit().predict_proba(other)


# ---- settings, plan, experiment ----


@pytest.mark.parametrize(
    "settings",
    [
        {"unit": "node"},
        {"unit": "graph"},
        {"epsilon": 0.0},
        {"epsilon": math.nan},
        {"delta": 0.0},
        {"hidden": 0},
        {"hidden": True},
        {"epochs": 1.5},
        {"dropout": 1.0},
        {"learning_rate": 0.0},
        {"weight_decay": -1.0},
        {"hops": 2},
    ],
)
def test_bad_settings_are_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        build(**settings)


def test_unit_edge_is_for_undirected_graphs() -> None:
    start = made.changed(cm.graph(), directed=True)
    with pytest.raises(InputError, match="unit edge is for undirected graphs"):
        fit(start, unit="edge")
    directed = fit(start)
    assert directed.epsilon_relationship == 2.0
    assert "one directed edge" in directed.guarantee.sentence()


def test_progress_reaches_its_end() -> None:
    told: list[tuple[int, int]] = []
    build().fit(cm.graph(), randomness=SeededRandomness(1), progress=lambda at: told.append((at.done, at.total)))
    assert told[-1] == (6, 6)


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
