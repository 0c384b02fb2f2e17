"""Hops that are chosen from reports alone, and what they may read."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from graphveil.graphs import make_graph, random_split, social_graph
from graphveil.methods import LPGNN
from graphveil.methods.base.cost import propagation_of
from graphveil.methods.base.hops import Pair, choose_hops, search_hops
from graphveil.methods.base.network import Labels, train_network
from graphveil.methods.base.reach import public_hops
from graphveil.methods.base.released import Topology
from graphveil.methods.base.settings import NetworkSettings
from graphveil.privacy import SeededRandomness
from tests.methods import made

#: Estimated accuracies of short trainings, epsilon 2 + 2, in percent; what is not there is not asked for.
CALTECH = {(8, 0): 27, (2, 0): 77, (4, 0): 68, (1, 0): 70, (2, 4): 20, (2, 1): 58}
CORA = {(8, 0): 72, (2, 0): 59, (4, 0): 67, (8, 4): 75, (8, 1): 69}
BOTH = ("steps_x", "steps_y")


@pytest.mark.parametrize(
    ("accuracies", "fixed", "free", "chosen"),
    [
        (CALTECH, (8, 4), BOTH, (2, 0)),
        (CORA, (8, 4), BOTH, (8, 4)),
        (CALTECH, (2, 4), ("steps_y",), (2, 0)),
        (CORA, (8, 0), ("steps_x",), (8, 0)),
    ],
)
def test_the_best_of_a_few_pairs_is_kept(
    accuracies: dict[Pair, int], fixed: Pair, free: tuple[str, ...], chosen: Pair
) -> None:
    found = search_hops(accuracies.__getitem__, dict(zip(BOTH, fixed, strict=True)), free, (4, 1))
    assert (found.steps_x, found.steps_y) == chosen
    assert f"{chosen[0]} of features, {chosen[1]} of labels, chosen at no further cost" in found.words


def ring(nodes: int, reach: int) -> np.ndarray:
    """Edges of everybody to the `reach` next ones, in both directions."""
    ends = [np.stack([np.arange(nodes), (np.arange(nodes) + step) % nodes]) for step in range(1, reach + 1)]
    return np.concatenate([*ends, *(pair[::-1] for pair in ends)], axis=1)


@pytest.mark.parametrize(
    ("reach", "hops"),
    # On a ring 8 hops spread over about 9 people; with 20 neighbours 4 hops spread over about 40; with 50 one over 100.
    [(1, (8, 4)), (10, (4, 1)), (50, (1, 0))],
)
def test_public_edges_allow_as_many_hops_as_stay_near(reach: int, hops: Pair) -> None:
    p = propagation_of(ring(300, reach), 300).matrix
    assert tuple(public_hops(p, 3).values()) == hops


def reports(nodes: int = 200) -> tuple[Labels, Topology, torch.Tensor]:
    """Labels through a channel, on a ring, with features that say a little."""
    generator = torch.Generator().manual_seed(0)
    labels = torch.randint(0, 3, (nodes,), generator=generator)
    part = torch.rand(nodes, generator=generator)
    x = torch.nn.functional.one_hot(labels, 3).float() + torch.randn(nodes, 3, generator=generator)
    sent = Labels(labels, part < 0.5, (part >= 0.5) & (part < 0.8), 3, 0.8, 0.1)
    return sent, Topology(torch.from_numpy(ring(nodes, 2)), nodes), x


SHORT = NetworkSettings(steps_x=1, steps_y=1, epochs=3, selection="last")


def test_a_trial_learns_nothing_of_the_reports_that_judge_it() -> None:
    """Otherwise few label hops win: their networks meet the noise that was spread into their targets."""
    labels, topology, x = reports()
    others = replace(labels, values=torch.where(labels.val, (labels.values + 1) % 3, labels.values))
    for unheard in (True, False):
        found = [train_network(x, 0.0, one, topology, SHORT, unheard=unheard).logits for one in (labels, others)]
        assert torch.equal(*found) is unheard


def test_few_validation_reports_leave_the_choice_to_the_public_topology() -> None:
    labels, topology, x = reports()
    few = replace(labels, val=labels.val & (torch.arange(200) < 20))
    others = replace(few, values=(few.values + 1) % 3)
    found = [choose_hops(x, 0.0, one, topology, SHORT, BOTH) for one in (few, others)]
    assert found[0] == found[1] and not found[0].tried
    assert "too few to choose by" in found[0].words
    assert choose_hops(x, 0.0, labels, topology, SHORT, BOTH).tried


@pytest.mark.parametrize("people", [40, 200])
def test_where_nobody_is_connected_labels_take_no_hops_and_nothing_that_was_paid_for_is_lost(people: int) -> None:
    """Whether validation reports choose (200) or are too few to (40)."""
    graph = social_graph(people, 4, 40, 3, seed=1)
    alone = make_graph(graph.x, graph.edge_index[:, :0], graph.y, graph.schema)
    method = LPGNN(epsilon_x=4.0, epsilon_y=4.0, epochs=2)
    core = method.fit(alone, split=random_split(alone, 0), randomness=SeededRandomness(0)).core
    assert core.hops is not None and bool(core.hops.tried) is (people == 200)
    assert core.settings.steps_y == 0


def test_hops_that_were_set_stay_and_a_copy_chooses_anew() -> None:
    graph = made.graph()
    split, how = random_split(graph, 0), {"epsilon_x": 4.0, "epsilon_y": 4.0, "epochs": 1}
    fixed = LPGNN(**how, steps_x=3, steps_y=2).fit(graph, split=split, randomness=SeededRandomness(0)).core
    assert (fixed.settings.steps_x, fixed.settings.steps_y, fixed.hops) == (3, 2, None)
    core = LPGNN(**how, steps_y=2).fit(graph, split=split, randomness=SeededRandomness(0)).core
    assert core.hops is not None and core.settings.steps_x == core.hops.steps_x and core.settings.steps_y == 2
    assert core.parameters()["steps_x"] is None
    public = LPGNN(epsilon_x=float("inf"), epsilon_y=float("inf"), epochs=1).core
    assert public.open_hops == () and (public.settings.steps_x, public.settings.steps_y) == (0, 0)
