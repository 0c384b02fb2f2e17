"""The collection of everything, what the server holds of it, and lists of some."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from graphveil.errors import InputError
from graphveil.graphs import Split, make_graph
from graphveil.mechanisms import AdjacencyRR
from graphveil.methods.base.people.local_privacy import LocalPrivacy
from graphveil.methods.links.collection import (
    LinkReports,
    named_pairs,
    pairs_of,
    people_key,
    randomize_graph,
    randomize_lists,
    reported_edges,
    subgraph,
)
from graphveil.methods.links.entries import LIST_MECHANISMS
from graphveil.methods.links.privacy import LinkPrivacy
from graphveil.methods.links.silent_lists import usual_excess
from graphveil.methods.links.solitude import Solitude
from graphveil.privacy import SeededRandomness
from tests.methods import links_made, made

NOBODY = torch.zeros(made.NODES, dtype=torch.bool)


def released(links: LinkPrivacy, graph: Any) -> LinkReports:
    split = Split(NOBODY, NOBODY, ~NOBODY)
    return randomize_graph(graph, split, LocalPrivacy(1.0, 1.0), links, randomness=SeededRandomness(1))


@pytest.mark.parametrize("mode", ["lower", "both"])
@pytest.mark.parametrize("mechanism", LIST_MECHANISMS)
def test_every_part_of_a_list_is_reported_once(mechanism: str, mode: str) -> None:
    """What is sent is one report of each mechanism that was paid for, drawn with the noise of one."""
    graph, links = links_made.graph(), LinkPrivacy(4.0, mode, mechanism)
    watched, alone = made.Counted(3), made.Counted(3)
    lists = randomize_lists(graph, links, randomness=watched)
    parts = links.parts(graph.schema, made.NODES)
    wanted = {
        name: part.randomize(part.count(graph.edge_index) if name == "degrees" else graph.edge_index, randomness=alone)
        for name, part in parts.items()
    }
    assert watched.counts == alone.counts and set(lists) == set(parts)
    for name, reports in lists.items():
        sent, expected = reports.to_tensors(), wanted[name].to_tensors()
        assert all(torch.equal(sent[key], expected[key]) for key in {*sent, *expected})


@pytest.mark.parametrize("mode", ["lower", "both", "directed"])
def test_reported_edges_run_from_whom_one_hears(mode: str) -> None:
    """lower: both directions of what the lower id says; both: from those a list names to its owner; directed: as is."""
    graph = links_made.graph(directed=mode == "directed")
    sent = released(LinkPrivacy(45.0, mode), graph)
    pairs = {tuple(pair) for pair in reported_edges(sent).T.tolist()}
    assert pairs == {tuple(pair) for pair in graph.edge_index.T.tolist()}  # noise flips one bit in 10^19
    noisy = released(LinkPrivacy(3.0, mode), graph)
    lists = {tuple(pair) for pair in noisy.lists["lists"].to_edge_index().T.tolist()}
    turned = {(j, i) for i, j in lists}
    expected = {"lower": lists | turned, "both": turned, "directed": lists}[mode]
    assert {tuple(pair) for pair in reported_edges(noisy).T.tolist()} == expected
    assert reported_edges(noisy).shape[1] == len(expected)


@pytest.mark.parametrize("mode", ["lower", "both", "directed"])
@pytest.mark.parametrize("epsilon", [0.5, 4.0])
def test_named_pairs_carry_the_exact_likelihood_of_the_lists(mode: str, epsilon: float) -> None:
    """log L of a pair is what toggling its link does to the log-likelihood of all lists; chi^2 is E[L | link] - 1."""
    graph = links_made.graph(directed=mode == "directed")
    sent = released(LinkPrivacy(epsilon, mode), graph)
    pairs = named_pairs(sent)
    lists = sent.links.parts(graph.schema, made.NODES)["lists"]
    ratios = {(int(i), int(j)): float(r) for i, j, r in zip(pairs.source, pairs.target, pairs.log_ratio, strict=True)}
    codes = set((graph.edge_index[0] * made.NODES + graph.edge_index[1]).tolist())
    for i, j in [*list(ratios)[:5], (0, 1), (4, 50), (11, 12)]:
        other = links_made.toggled(graph, i, j)
        before, after = (float(lists.log_likelihood(sent.lists["lists"], g.edge_index).sum()) for g in (graph, other))
        gain = before - after if i * made.NODES + j in codes else after - before
        assert gain == pytest.approx(ratios.get((i, j), pairs.background), abs=1e-9)
    p = lists.flip
    outcomes = [((1 - p) / p, 1 - p), (p / (1 - p), p)]  # L of one report, and its probability given a link
    mean = sum(ratio * chance for ratio, chance in outcomes)
    assert pairs.information == pytest.approx((mean * mean if mode == "both" else mean) - 1)


def test_people_are_told_apart_by_public_facts_alone() -> None:
    graph = links_made.graph()
    key = people_key(graph)
    assert people_key(links_made.Sealed(graph)) == key
    assert people_key(links_made.toggled(graph, 5, 17)) == key
    plain = {"x": graph.x, "edge_index": graph.edge_index, "y": graph.y, "schema": graph.schema}
    strangers = [f"x{v}" for v in range(58)]
    keys = [key] + [
        people_key(make_graph(**{**plain, "schema": schema}, ids=ids))
        for schema, ids in (
            (replace(graph.schema, name="others"), graph.ids),
            (graph.schema, None),
            (graph.schema, [f"x{v}" for v in range(60)]),
            (graph.schema, ["a/b", "c", *strangers]),
            (graph.schema, ["a", "b/c", *strangers]),
        )
    ]
    assert len(set(keys)) == len(keys)


def test_a_part_of_a_graph_has_its_own_people_and_the_links_among_them() -> None:
    graph = links_made.graph()
    chosen = torch.arange(made.NODES) % 3 > 0
    part, numbers = subgraph(graph, chosen), chosen.nonzero()[:, 0]
    assert torch.equal(part.x, graph.x[chosen]) and torch.equal(part.y, graph.y[chosen])
    assert part.ids == [graph.ids[row] for row in numbers.tolist()]
    inside = chosen[graph.edge_index[0]] & chosen[graph.edge_index[1]]
    assert torch.equal(numbers[part.edge_index], graph.edge_index[:, inside])
    assert subgraph(graph, torch.ones(made.NODES, dtype=torch.bool)) is graph


# ---- lists of some: of a pair only the ends that answered count, and nobody's silence is a no ----


NODES = 40


def log_ratios(pairs: Any) -> dict[tuple[int, int], float]:
    """log L of every pair, named or not."""
    ends = ((i, j) for i in range(NODES) for j in range(NODES) if i != j and (pairs.directed or i < j))
    ratios = dict.fromkeys(ends, pairs.background)
    named = zip(pairs.source.tolist(), pairs.target.tolist(), pairs.log_ratio.tolist(), strict=True)
    listed = [((i, j), ratio) for i, j, ratio in named]
    assert len(dict(listed)) == len(listed), "a pair is named twice"
    return {**ratios, **dict(listed)}


@pytest.mark.parametrize("mode", ["lower", "both", "directed"])
def test_every_pair_is_worth_what_its_heard_ends_said(mode: str) -> None:
    mechanism = AdjacencyRR(epsilon=1.5, nodes=NODES, mode=mode)
    pairs = torch.from_numpy(np.random.default_rng(0).integers(0, NODES, (2, 120)))
    pairs = pairs[:, pairs[0] != pairs[1]]
    both = pairs if mode == "directed" else torch.cat([pairs, pairs.flip(0)], dim=1)
    sent = mechanism.randomize(torch.unique(both, dim=1), randomness=SeededRandomness(3))
    heard = torch.from_numpy(np.random.default_rng(1).random(NODES) < 0.6)
    named = set(map(tuple, sent.to_edge_index().T.tolist()))
    worth = math.log((1 - mechanism.flip) / mechanism.flip)
    for (i, j), ratio in log_ratios(pairs_of(mechanism, sent, heard)).items():
        ends = [(i, j), (j, i)] if mode == "both" else [(i, j)]
        expected = sum(worth * (1 if pair in named else -1) for pair in ends if heard[pair[0]])
        assert ratio == pytest.approx(expected, abs=1e-9)


def partly(core: Solitude, every: int) -> LinkReports:
    """The reports of a graph of which every k-th person sent no list; what stands in its place is never read."""
    graph = made.graph()
    released = randomize_graph(graph, made.split_of(graph), core.privacy, core.links, randomness=SeededRandomness(2))
    return replace(released, heard=torch.arange(int(graph.num_nodes)) % every > 0)


@pytest.mark.parametrize("mode", ["lower", "both"])
@pytest.mark.parametrize(
    "denoiser", ["calibration", "none", "beliefs", "degree-preserving", "blink-hybrid", "blink-soft"]
)
def test_solitude_takes_silence_for_no_evidence(denoiser: str, mode: str) -> None:
    core = Solitude(epsilon_x=2.0, epsilon_y=2.0, epsilon_a=8.0, mode=mode, denoiser=denoiser, epochs=3)
    some = partly(core, 3)
    probabilities = core.fit_reports(some).probabilities()
    assert probabilities.shape[0] == some.nodes and bool(torch.isfinite(probabilities).all())


@pytest.mark.parametrize("mode", ["lower", "both"])
def test_a_pair_is_read_from_the_end_that_answered(mode: str) -> None:
    core = Solitude(epsilon_x=2.0, epsilon_y=2.0, epsilon_a=8.0, mode=mode)
    some = partly(core, 4)
    edges, heard = reported_edges(some), some.heard
    named = set(map(tuple, some.lists["lists"].to_edge_index().T.tolist()))
    silent = [int(person) for person in (~heard).nonzero().flatten()]
    for person in silent:
        # Messages into them come from those who named them, and from nobody else.
        into = edges[0][edges[1] == person].tolist()
        assert sorted(into) == sorted(other for other in range(some.nodes) if heard[other] and (other, person) in named)
    whole = replace(some, heard=None)
    assert torch.equal(reported_edges(whole), reported_edges(replace(some, heard=torch.ones_like(heard))))


def test_no_link_is_learned_from_silence() -> None:
    core = Solitude(epsilon_x=2.0, epsilon_y=2.0, epsilon_a=8.0, complement=5)
    with pytest.raises(InputError, match="complement where some people sent no list"):
        core.fit_reports(partly(core, 3))


@pytest.mark.parametrize("reports", [1, 2])
def test_what_reports_say_of_a_link_is_above_nothing_at_every_epsilon(reports: int) -> None:
    """(1 - f)^2 / f + f^2 / (1 - f) to the power of the reports, less 1; rounding made it 0 at epsilon 1e-9."""
    for flip in (0.02, 0.2, 0.45):
        ratio = (1 - flip) ** 2 / flip + flip**2 / (1 - flip)
        assert usual_excess(flip, reports) == pytest.approx(ratio**reports - 1, rel=1e-12)
    assert usual_excess(1 / (1 + math.exp(1e-9)), reports) == pytest.approx(reports * 1e-18, rel=1e-5)
