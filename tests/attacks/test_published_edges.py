"""What a published graph lists: the truth gives itself away, a made graph does not, and a planted leak is found.

Noise is seeded. `beats_limit` of a right release needs both its interval above the limit and its AUC above the control:
with these seeds a fact, by chance in less than one release of 40 (the AUC's 95% interval, one side).
"""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest
import torch

from graphveil.attacks.pairs import pairs_of, true_adjacency
from graphveil.attacks.release_edges import (
    as_it_is,
    common_neighbours,
    entries_of,
    published_edges,
    with_public_edges,
)
from graphveil.attacks.stolen_links import link_stealing, public_network
from graphveil.errors import InputError
from graphveil.graphs import draw_private, random_split
from graphveil.methods import HeteroRR
from graphveil.privacy import SeededRandomness
from tests.attacks import made


def truth() -> Any:
    return draw_private(made.graph(), 0.4, 1)


def published(epsilon: float = 2.0, edges: str = "edge-rand", seed: int = 3) -> Any:
    maker = HeteroRR(epsilon_x=float("inf"), epsilon_a=epsilon, edges=edges)
    return maker.release(truth(), randomness=SeededRandomness(seed))


@pytest.mark.parametrize("edges", [pytest.param("public-tree", marks=pytest.mark.slow), "edge-rand", "lap-graph"])
def test_made_edges_tell_no_more_than_epsilon_allows(edges: str) -> None:
    found = published_edges(made.graph(), published(edges=edges))
    assert found.epsilon == 2.0 and found.limit is not None and found.limit < 0.1
    assert not found.beats_limit


def test_true_edges_under_a_promise_are_caught_and_give_themselves_away_without_one() -> None:
    """The wrong scale: the truth, sold as a release at epsilon 2."""
    leaking = copy.copy(published())
    leaking.edge_index, leaking.public_edges = truth().edge_index, truth().public_edges
    found = published_edges(made.graph(), leaking)
    assert found.auc.mean == 1.0 and found.beats_limit
    found = published_edges(made.graph(), as_it_is(made.graph(), published()))
    assert found.auc.mean == 1.0 and found.limit is None and not found.beats_limit
    assert found.figures == {"edges listed": 1.0, "others listed": 0.0}


def test_noise_for_a_far_larger_epsilon_than_promised_is_caught() -> None:
    loose, promised = published(12.0, "edge-rand"), published(1.0, "edge-rand")
    loose.release = promised.release
    assert published_edges(made.graph(), loose).beats_limit
    assert not published_edges(made.graph(), published(1.0, "edge-rand")).beats_limit


def test_public_edges_are_no_secret() -> None:
    marked = with_public_edges(made.graph(), published())
    assert torch.equal(marked.public_edges, truth().public_edges)
    found = published_edges(made.graph(), published())
    assert found.positives == int((~truth().public_edges).sum()) // 2


def test_the_control_leaves_the_pair_itself_out() -> None:
    served = published()
    pairs = pairs_of(with_public_edges(made.graph(), served))
    shown = true_adjacency(served).tolil()
    place = int(np.flatnonzero(entries_of(shown.tocsr(), pairs))[0])
    i, j = (int(end[place]) for end in pairs.ends())
    without = shown.copy()
    without[i, j] = without[j, i] = 0
    scores = []
    for a in (shown.tocsr(), without.tocsr()):
        found = common_neighbours(a, pairs, entries_of(a, pairs))
        scores.append(np.floor(found[place]))  # the tie-break is scaled by the largest of all pairs
    assert scores[0] == scores[1]
    assert entries_of(without.tocsr(), pairs)[place] == 0.0


def test_another_graph_is_no_truth() -> None:
    with pytest.raises(InputError, match="the truth has 200 nodes"):
        published_edges(made.graph(200, seed=8), published())
    served, other = published(), copy.copy(made.graph())
    served.ids, other.ids = [f"{row}" for row in range(300)], [f"{row}" for row in reversed(range(300))]
    with pytest.raises(InputError, match="other node ids"):
        published_edges(other, served)


@pytest.mark.slow  # attacks on trained networks
def test_link_stealing_on_a_release_is_held_against_its_public_edges() -> None:
    served, split = published(), random_split(made.graph(), 0)
    control = public_network(served, split=split)
    graph = with_public_edges(made.graph(), served)
    found = link_stealing(control, graph, without_edges=control, without="public edges", split=split)
    assert found.auc.mean == found.baseline and found.baseline_note == "public edges"
    bare = copy.copy(served)
    bare.public_edges = None
    assert public_network(bare, split=split).released is not None
