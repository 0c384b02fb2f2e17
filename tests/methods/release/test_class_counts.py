"""Published counts of neighbours, and a network on a release: what is read, and never less than the public part."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from graphveil.errors import BudgetError, InputError
from graphveil.graphs import Split, draw_private, load_graph, social_graph, validate, write_release
from graphveil.graphs.value.release import NeighbourCounts
from graphveil.mechanisms import PairDomain
from graphveil.methods import ClassCounts, HeteroRR, load_method
from graphveil.methods.registry import plan
from graphveil.methods.release.counts.count_readings import COUNTS_UNUSED, COUNTS_USED, read_counts, read_public
from graphveil.methods.release.family import COUNTS
from graphveil.methods.release.public_part import PublicPart, public_part_of
from graphveil.methods.release.published import domain_of
from graphveil.privacy import SeededRandomness
from graphveil.reproduction.catalogue import HETERORR
from tests.methods import made, released_made


def fitted(graph: Any = None, *, noise: int = 1, **settings: Any) -> ClassCounts:
    graph = graph or released_made.graph()
    method = ClassCounts(**{"epsilon_a": 3.0, **settings})
    return method.fit(graph, split=made.split_of(graph), randomness=SeededRandomness(noise))


@pytest.fixture(scope="module")
def model() -> ClassCounts:
    return fitted()


# ---- what one edge may change ----


def test_groups_are_the_same_whatever_edges_are_private() -> None:
    graph = released_made.graph()
    split, none = made.split_of(graph), released_made.private_pairs(graph)[:, :0]
    groups = [
        ClassCounts(epsilon_a=3.0).release(private, randomness=SeededRandomness(1), split=split).release.counts.groups
        for private in (graph, released_made.with_private(graph, none))
    ]
    assert torch.equal(groups[0], groups[1])


@pytest.mark.slow  # trainings
def test_what_is_published_holds_no_private_edge_and_no_test_label() -> None:
    graph = released_made.graph()
    split = made.split_of(graph)
    out = validate(ClassCounts(epsilon_a=1.0).release(graph, randomness=SeededRandomness(1), split=split))
    assert bool(out.public_edges.all()) and not out.release.edges
    assert torch.equal(out.edge_index, graph.edge_index[:, graph.public_edges])
    other = made.changed(graph, y=torch.where(split.test, (graph.y + 1) % 3, graph.y))
    other.public_edges = graph.public_edges
    again = ClassCounts(epsilon_a=1.0).release(other, randomness=SeededRandomness(1), split=split)
    assert torch.equal(again.release.counts.groups, out.release.counts.groups)
    assert torch.equal(again.release.counts.counts, out.release.counts.counts)
    labelled = split.train | split.val
    assert torch.equal(out.release.counts.groups[labelled], graph.y[labelled])


# ---- folders and files ----


@pytest.mark.slow
def test_a_folder_gives_the_same_predictions(model: ClassCounts, tmp_path: Path) -> None:
    graph = released_made.graph()
    split = made.split_of(graph)
    out = ClassCounts(epsilon_a=3.0).release(graph, randomness=SeededRandomness(1), split=split)
    write_release(out, tmp_path / "out", out.release, card="")
    read = load_graph(str(tmp_path / "out"))
    again = ClassCounts(epsilon_a=9.0).fit(read, split=split)
    assert torch.allclose(again.predict_proba(), model.predict_proba(), atol=1e-5)
    assert again.guarantee.epsilon == 3.0 and again.ledger == read.release.ledger
    with pytest.raises(InputError, match="no counts were released"):
        plain = HeteroRR(epsilon_x=math.inf, epsilon_a=2.0).release(graph, randomness=SeededRandomness(1))
        ClassCounts(epsilon_a=2.0).fit(plain, split=split)


@pytest.mark.slow
def test_a_saved_model_predicts_the_same_and_cannot_release_again(model: ClassCounts, tmp_path: Path) -> None:
    graph, method = released_made.graph(), model
    again = load_method(method.save(tmp_path))
    assert torch.equal(again.predict_proba(), method.predict_proba())
    assert (again.variant, again.guarantee, again.ledger) == (method.variant, method.guarantee, method.ledger)
    with pytest.raises(BudgetError):
        again.release(graph, randomness=SeededRandomness(2))


@pytest.mark.slow
def test_other_people_and_what_cannot_be_served_are_refused(model: ClassCounts) -> None:
    with pytest.raises(InputError, match="predicts only the nodes that were released"):
        model.predict_proba(social_graph(70, average_degree=6, seed=3))
    with pytest.raises(InputError, match="train gcn"):
        ClassCounts(epsilon_a=math.inf)
    with pytest.raises(InputError, match="features and labels as they are"):
        HeteroRR(epsilon_x=1.0, epsilon_a=1.0, edges="class-counts")


# ---- readings of published counts ----


RATE = 2.0


def telling(graph: Any, public: PublicPart) -> NeighbourCounts:
    """Counts that say everybody's class: twenty neighbours of it, and none of any other."""
    label = torch.where(graph.y < 0, 0, graph.y)
    return NeighbourCounts(public.groups(), 20 * torch.nn.functional.one_hot(label, 3))


@pytest.mark.slow
def test_counts_that_tell_are_used_and_those_that_do_not_are_left_out() -> None:
    graph = released_made.graph()
    public, split = released_made.public_part(graph), made.split_of(graph)
    reading = read_counts(public, telling(graph, public), RATE)
    assert reading.variant == COUNTS_USED
    tested = split.test & (graph.y >= 0)
    assert float((reading.scores.argmax(dim=1) == graph.y)[tested].float().mean()) > 0.9
    silent = NeighbourCounts(public.groups(), torch.zeros(made.NODES, 3, dtype=torch.int64))
    quiet = read_counts(public, silent, RATE)
    assert quiet.variant == COUNTS_UNUSED
    assert torch.equal(quiet.scores, read_public(public))


@pytest.mark.slow
def test_labels_of_test_nodes_are_never_seen() -> None:
    """The same scores, whatever labels test nodes have: neither the public part nor the judge reads them."""
    graph = released_made.graph()
    split = made.split_of(graph)
    other = made.changed(graph, y=torch.where(split.test & (graph.y >= 0), (graph.y + 1) % 3, graph.y))
    other.public_edges = graph.public_edges
    first, second = (released_made.public_part(people, split) for people in (graph, other))
    counts = telling(graph, first)
    assert torch.equal(read_counts(first, counts, RATE).scores, read_counts(second, counts, RATE).scores)


# ---- published counts where they meet plans, runs and tuning ----


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 8.0])
def test_a_plan_follows_from_public_facts(epsilon: float) -> None:
    """Whichever private edges there are; its noise is that of two counts at half of epsilon each."""
    graph = released_made.graph()
    planned = plan("class-counts", graph, {"epsilon_a": epsilon})
    other = plan("class-counts", released_made.without_one(graph), {"epsilon_a": epsilon})
    # Seconds are those of this machine, which is measured anew.
    first, second = ({**answer.to_dict(), "seconds": None} for answer in (planned, other))
    assert first == second
    deviation = math.sqrt(2 * math.exp(-epsilon / 2)) / (1 - math.exp(-epsilon / 2))
    assert f"a deviation of {deviation:.2g}" in planned.advice[0]
    assert planned.epsilon == {"one private edge": epsilon}
    assert planned.seconds > 0 and planned.memory_mb > 0


@pytest.mark.slow
def test_controls_are_free_and_rivals_pay_the_same() -> None:
    graph = released_made.graph()
    method, split, noise = fitted(graph), made.split_of(graph), SeededRandomness(1)
    ledger = method.ledger
    controls = COUNTS.controls(method, graph, split, randomness=noise)
    rivals = COUNTS.rivals(method, graph, split, randomness=noise)
    tested = int(split.test.sum())
    for run in (
        *controls.values(),
        rivals["lap-graph"],
        lambda: COUNTS.ceiling(method, graph, split, randomness=noise),
    ):
        hits = run()
        assert hits.shape == (tested,) and set(np.unique(hits)) <= {0.0, 1.0}
    assert set(controls) == {"public-edges", "no-edges"}
    assert set(rivals) == {"edge-rr", "edge-rand", "lap-graph"}
    assert method.ledger == ledger


# ---- a network on a release, pooled with the public part: above it where private data says something ----


OPEN: dict[str, Any] = {"epsilon_x": math.inf, "epsilon_a": math.inf, "model": "gcn"}


def people(degree: float = 16, homophily: float = 0.6) -> Any:
    """400 people of three classes, three in ten of whose friendships are public."""
    return draw_private(social_graph(400, degree, dimension=20, classes=3, homophily=homophily, seed=3), 0.7, 3)


def network_on(graph: Any, split: Any = None, **settings: Any) -> HeteroRR:
    method = HeteroRR(**{**OPEN, **settings})
    return method.fit(graph, split=split or made.split_of(graph), randomness=SeededRandomness(1))


def accuracy(scores: Any, graph: Any) -> float:
    return float((scores.argmax(dim=1) == graph.y)[made.split_of(graph).test].float().mean())


def test_made_edges_that_only_disturb_are_left_out() -> None:
    graph = people()
    pooled, alone = (network_on(graph, epsilon_a=1.0, pooling=pooling) for pooling in ("public-part", "none"))
    public = read_public(public_part_of(pooled.published, made.split_of(graph), domain_of(graph)))
    assert torch.allclose(pooled.predict_proba(), torch.softmax(public, dim=1), atol=1e-5)
    assert accuracy(public, graph) > accuracy(alone.predict_proba(), graph) + 0.1


def test_private_data_that_says_something_is_used() -> None:
    features = {"epsilon_x": 200.0, "epsilon_a": 1.0}
    for graph, settings in ((people(), {"epsilon_a": 8.0, "edges": "edge-rand"}), (people(6, 0.8), features)):
        method = network_on(graph, **settings)
        assert method.reading.used
        assert accuracy(method.predict_proba(), graph) > accuracy(method.reading.public, graph) + 0.1


def test_sums_over_made_edges_are_less_what_chance_brings() -> None:
    """Where every protected pair is an edge, nothing is left but public neighbours; so too for a few private nodes."""
    for members in (None, torch.arange(0, 400, 3)):
        graph = people()
        pairs = graph.edge_index[:, graph.public_edges]
        domain = PairDomain(400, members, pairs[:, pairs[0] < pairs[1]])
        part = public_part_of(graph, made.split_of(graph), domain)
        every = domain.unrank(torch.arange(domain.size))
        # How much of each class; in which proportion is rounding where nobody is left.
        drawn = (every, every[:, ::2], every[:, :0])
        all_made, half_made, public = (part.made_sums(pairs, domain)[:, :3] for pairs in drawn)
        torch.testing.assert_close(all_made, part.sums[:, :3], atol=1e-3, rtol=0)
        torch.testing.assert_close(public, part.sums[:, :3])
        assert float((half_made - part.sums[:, :3]).abs().max()) > 0.1


def test_no_made_edge_and_no_noisy_feature_is_in_the_public_part() -> None:
    graph, settings = people(), {**OPEN, "epsilon_a": 1.0, "epsilon_x": 1.0, "epsilon_y": 2.0}
    first = network_on(graph, **settings)
    again = HeteroRR(**settings).release(graph, randomness=SeededRandomness(2))
    again.y = first.published.y
    assert not torch.equal(again.edge_index, first.published.edge_index)
    second = HeteroRR(**OPEN).fit_released(again, split=made.split_of(graph))
    assert torch.equal(second.reading.public, first.reading.public)


def test_where_nobody_judges_and_in_reproductions_the_network_speaks_alone() -> None:
    graph, quick = people(), {"epochs": 2}
    split = made.split_of(graph)
    several = made.changed(graph, y=torch.nn.functional.one_hot(graph.y, 3).float())
    several.public_edges = graph.public_edges
    unjudged = network_on(graph, Split(split.train, torch.zeros_like(split.val), split.test), epsilon_a=1.0, **quick)
    for method in (unjudged, network_on(several, epsilon_a=1.0, **quick), network_on(graph, **quick)):
        assert method.reading is None
        assert torch.equal(method.predict_proba(), method.network.predict_proba())
    assert all(entry.settings["pooling"] == "none" for exhibit in HETERORR.values() for entry in exhibit())


def test_a_release_is_read_as_it_was_made_at_no_further_cost(tmp_path: Path) -> None:
    first = network_on(people(), epsilon_a=3.0)
    again = network_on(first.published, epsilon_x=1.0, epsilon_a=9.0)
    assert load_method(again.save(tmp_path)).epsilon_relationship == 3.0
    assert torch.equal(again.predict_proba(), first.predict_proba())
    assert (again.ledger, again.guarantee.epsilon, again.epsilon_relationship) == (first.ledger, 3.0, 3.0)
