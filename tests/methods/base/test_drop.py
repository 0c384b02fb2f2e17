"""Objectives on a graph small enough to print, against their long forms; hops chosen from reports alone.

0 - 1 - 2 - 3      4 - 5      6 is isolated
nodes 0, 1, 3, 5, 6 train (labels 0, 2, 2, 0, 1), node 2 validates (label 2), node 4 has no label
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from graphveil.aggregation import normalised
from graphveil.errors import InputError
from graphveil.graphs import make_graph, random_split, social_graph
from graphveil.mechanisms import RandomizedResponse
from graphveil.methods import LPGNN
from graphveil.methods.base.cost import propagation_of
from graphveil.methods.base.network.hops import ChosenHops, Pair, choose_hops, public_hops, search_hops
from graphveil.methods.base.network.network import Labels, train_network
from graphveil.methods.base.network.objectives import Drop, drop_objective, label_matrix, smooth_labels
from graphveil.methods.base.people.released import Topology
from graphveil.methods.base.settings import NetworkSettings
from graphveil.methods.links.solitude import Solitude
from graphveil.models.labels.label_prior import Channel
from graphveil.privacy import SeededRandomness
from tests.methods import made

EDGES = torch.tensor([[0, 1, 1, 2, 2, 3, 4, 5], [1, 0, 2, 1, 3, 2, 5, 4]])
LABELS = torch.tensor([0, 2, 2, 2, -1, 0, 1])
TRAIN = torch.tensor([True, True, False, True, False, True, True])
VAL = torch.tensor([False, False, True, False, False, False, False])
CLASSES = 4  # class 3 is declared, and nobody has it
CHANNEL = RandomizedResponse(epsilon=1.0, classes=CLASSES)


def objective(hops: int, **changes: Any) -> Drop:
    plain = {"labels": LABELS, "train": TRAIN, "val": VAL, "channel": Channel(CLASSES, CHANNEL.keep, CHANNEL.flip)}
    return drop_objective(p=normalised(EDGES, 7), hops=hops, **{**plain, **changes})


def logits() -> Tensor:
    return torch.randn(7, CLASSES, generator=torch.Generator().manual_seed(0)) * 2


def power(hops: int, edges: Tensor = EDGES, nodes: int = 7) -> Tensor:
    a = torch.zeros(nodes, nodes, dtype=torch.float64)
    a[edges[1], edges[0]] = 1
    root = a.sum(1).clamp_min(1).rsqrt()
    return torch.linalg.matrix_power(root[:, None] * a * root[None, :], hops)


def long_form(z: Tensor, hops: int) -> Tensor:
    """-log softmax(P^K softmax(z) T)[y~] averaged over training nodes that a label reaches; K = 0: no softmax."""
    corrected = torch.softmax(z.double(), dim=1) @ CHANNEL.transition()
    if hops == 0:
        nodes, targets, likely = [0, 1, 3, 5, 6], [0, 2, 2, 0, 1], corrected
    else:
        spread = power(hops) @ label_matrix(LABELS, LABELS >= 0, CLASSES).double()
        nodes = [node for node in (0, 1, 3, 5, 6) if float(spread[node].sum()) > 0]
        targets = [int(spread[node].argmax()) for node in nodes]
        likely = torch.softmax(power(hops) @ corrected, dim=1)
    return -likely[nodes, targets].log().mean()


@pytest.mark.parametrize("hops", [0, 1, 2, 5])
def test_the_loss_equals_the_long_form(hops: int) -> None:
    assert float(objective(hops).loss(logits())) == pytest.approx(float(long_form(logits(), hops)), rel=1e-5)


@pytest.mark.parametrize("hops", [0, 2])
def test_gradients_equal_those_of_the_long_form(hops: int) -> None:
    gradients = []
    for loss in (objective(hops).loss, lambda z: long_form(z, hops)):
        z = logits().requires_grad_()
        loss(z).backward()
        gradients.append(z.grad)
    assert torch.allclose(gradients[0], gradients[1], atol=1e-6)


def test_nodes_that_no_label_reaches_are_left_out_and_not_given_class_0() -> None:
    """Node 5 after one hop hears only node 4, which sent nothing; node 6 hears nobody."""
    assert objective(1).fit_nodes.tolist() == [0, 1, 3]
    z = logits().requires_grad_()
    objective(1).loss(z).backward()
    assert torch.equal(z.grad[6], torch.zeros(CLASSES))


@pytest.mark.parametrize("hops", [0, 2])
def test_extreme_logits_give_finite_losses_and_gradients(hops: int) -> None:
    z = (logits() * 1e4).requires_grad_()
    loss = objective(hops, channel=Channel(CLASSES)).loss(z)
    loss.backward()
    assert math.isfinite(float(loss.detach()))
    assert bool(z.grad.isfinite().all())


def test_validation_pushes_the_model_through_the_channel_and_does_not_propagate() -> None:
    corrected = torch.softmax(logits().double(), dim=1) @ CHANNEL.transition()
    loss, share, estimate = objective(2).validate(logits())
    assert loss == pytest.approx(-float(corrected[2, 2].log()), rel=1e-5)
    assert share == float(logits()[2].argmax() == 2)
    assert estimate == pytest.approx((share - CHANNEL.flip) / (CHANNEL.keep - CHANNEL.flip))


def test_without_correction_the_loss_is_plain_cross_entropy_on_the_labels_as_they_came() -> None:
    plain, corrected = objective(0, corrected=False), objective(0)
    z = logits()
    nodes = plain.train_nodes
    expected = torch.nn.functional.cross_entropy(z[nodes], plain.train_labels)
    assert torch.allclose(plain.loss(z), expected, atol=1e-6)
    assert not torch.allclose(plain.loss(z), corrected.loss(z))


def test_plain_cross_entropy_over_hops_of_labels_is_refused_and_needs_none() -> None:
    with pytest.raises(InputError, match="loss cross-entropy over 4 hops of labels; allowed: steps_y=0"):
        LPGNN(epsilon_x=1.0, epsilon_y=1.0, loss="cross-entropy", steps_y=4)
    assert LPGNN(epsilon_x=1.0, epsilon_y=1.0, loss="cross-entropy").settings.steps_y == 0
    assert LPGNN(epsilon_x=1.0, epsilon_y=1.0).settings.steps_y == 4


# ---- smoothed public labels, against the same sums by dense matrices ----


KINDS = 3


def drawn(n: int, seed: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """A random graph's edges, labels, and which nodes train and which validate."""
    rng = np.random.default_rng(seed)
    above = np.triu(rng.random((n, n)) < 0.3, 1)
    edges = torch.from_numpy(np.stack(np.nonzero(above | above.T)))
    part = torch.from_numpy(rng.integers(0, 3, n))
    part[0] = 0
    return edges, torch.from_numpy(rng.integers(0, KINDS, n)), part == 0, part == 1


@settings(max_examples=40, deadline=None)
@given(st.integers(2, 15), st.integers(0, 4), st.integers(0, 999))
def test_targets_are_the_training_labels_spread_over_the_hops(n: int, hops: int, seed: int) -> None:
    edges, labels, train, val = drawn(n, seed)
    smoothed = smooth_labels(labels, train, val, normalised(edges, n), hops, classes=KINDS)
    own = np.eye(KINDS)[labels.numpy()] * train.numpy()[:, None]
    spread = power(hops, edges, n).numpy() @ own
    for node, target in zip(smoothed.nodes.tolist(), smoothed.targets.numpy(), strict=True):
        total = spread[node].sum()
        assert target == pytest.approx(spread[node] / total if total > 0 else own[node], abs=1e-5)
    assert smoothed.nodes.tolist() == train.nonzero().squeeze(1).tolist()


def test_the_loss_is_the_cross_entropy_and_least_at_the_targets() -> None:
    edges, labels, train, val = drawn(10, 8)
    smoothed = smooth_labels(labels, train, val, normalised(edges, 10), 1, classes=KINDS)
    logits = torch.randn(10, KINDS, generator=torch.Generator().manual_seed(0))
    by_hand = -(smoothed.targets * torch.softmax(logits[smoothed.nodes], 1).log()).sum(dim=1).mean()
    assert float(smoothed.loss(logits)) == pytest.approx(float(by_hand), rel=1e-5)
    best = torch.zeros(10, KINDS)
    best[smoothed.nodes] = smoothed.targets.clamp_min(1e-9).log()
    assert float(smoothed.loss(best)) <= float(smoothed.loss(best + 0.1 * logits))


# ---- hops that are chosen from reports alone ----


#: Estimated accuracies of short trainings, epsilon 2 + 2, in percent; what is not there is not asked for.
CALTECH = {(2, 0): 77, (4, 0): 68, (1, 0): 70, (2, 1): 58}
CORA = {(8, 0): 72, (2, 0): 59, (4, 0): 67, (8, 4): 75, (8, 1): 69}
BOTH = ("steps_x", "steps_y")


@pytest.mark.parametrize(
    ("accuracies", "fixed", "free", "chosen"),
    [
        (CALTECH, (8, 4), BOTH, (2, 0)),
        (CORA, (8, 4), BOTH, (8, 4)),
        ({**CALTECH, (2, 4): 20}, (2, 4), ("steps_y",), (2, 0)),
        (CORA, (8, 0), ("steps_x",), (8, 0)),
    ],
)
def test_the_best_of_a_few_pairs_is_kept(
    accuracies: dict[Pair, int], fixed: Pair, free: tuple[str, ...], chosen: Pair
) -> None:
    hops = search_hops(accuracies.__getitem__, dict(zip(BOTH, fixed, strict=True)), free, (4, 1))
    assert (hops.steps_x, hops.steps_y) == chosen
    assert f"{chosen[0]} of features, {chosen[1]} of labels, chosen at no further cost" in hops.sentence


@pytest.mark.parametrize(("none", "hops"), [(83, 0), (52, 2)])
def test_features_that_came_without_noise_may_need_no_hops(none: int, hops: int) -> None:
    result = search_hops({**CALTECH, (0, 0): none}.__getitem__, dict.fromkeys(BOTH, 0), ("steps_x",), (0,), exact=True)
    assert result.steps_x == hops


@pytest.mark.parametrize(
    ("epsilon_x", "epsilon_y", "chosen"),
    [(math.inf, math.inf, {"steps_x"}), (2.0, 2.0, {"steps_x", "steps_y"}), (None, 2.0, {"steps_y"})],
)
def test_hops_of_lists_are_chosen_wherever_there_is_something_to_smooth(
    epsilon_x: float | None, epsilon_y: float, chosen: set[str]
) -> None:
    assert set(Solitude(epsilon_x=epsilon_x, epsilon_y=epsilon_y, epsilon_a=4.0).open_hops) == chosen
    fixed = Solitude(epsilon_x=epsilon_x, epsilon_y=epsilon_y, epsilon_a=4.0, steps_x=0, steps_y=0)
    assert not fixed.open_hops


@pytest.mark.parametrize("seed", [0, 1])
def test_whole_trainings_tell_close_hops_apart_and_the_better_is_the_fit(seed: int) -> None:
    """Bit for bit what these hops give where they are set."""
    assert ChosenHops(1, 0, {(8, 0): 0.3, (2, 0): 0.8, (1, 0): 0.82}).close_pairs(0.03) == ((1, 0), (2, 0))
    assert not ChosenHops(1, 0, {(8, 0): 0.3, (2, 0): 0.7, (1, 0): 0.82}).close_pairs(0.03)
    graph = social_graph(200, 8, 20, 3, seed=1)
    how: dict[str, Any] = {"split": random_split(graph, seed), "randomness": SeededRandomness(seed)}
    core = Solitude(epsilon_x=math.inf, epsilon_a=6.0, epochs=70).fit(graph, **how)
    assert core.hops is not None and core.hops.whole is core.result.network
    fixed = Solitude(epsilon_x=math.inf, epsilon_a=6.0, epochs=70, steps_x=core.settings.steps_x)
    how["randomness"] = SeededRandomness(seed)
    assert torch.equal(fixed.fit(graph, **how).predict_proba(), core.predict_proba())


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
    sent = Labels(labels, part < 0.5, (part >= 0.5) & (part < 0.8), Channel(3, 0.8, 0.1))
    return sent, Topology(torch.from_numpy(ring(nodes, 2)), nodes), x


SHORT = NetworkSettings(steps_x=1, steps_y=1, epochs=3, selection="last")


def test_a_trial_learns_nothing_of_the_reports_that_judge_it() -> None:
    """Otherwise few label hops win: their networks meet the noise that was spread into their targets."""
    labels, topology, x = reports()
    changed = replace(labels, values=torch.where(labels.val, (labels.values + 1) % 3, labels.values))
    for exclude_validation in (True, False):
        outputs = [
            train_network(x, 0.0, y, topology, SHORT, exclude_validation=exclude_validation).logits
            for y in (labels, changed)
        ]
        assert torch.equal(*outputs) is exclude_validation


def test_few_validation_reports_leave_the_choice_to_the_public_topology() -> None:
    labels, topology, x = reports()
    few = replace(labels, val=labels.val & (torch.arange(200) < 20))
    changed = replace(few, values=(few.values + 1) % 3)

    def reads(settings: NetworkSettings) -> tuple[Any, float, NetworkSettings]:
        return x, 0.0, settings

    choices = [choose_hops(reads, y, topology, SHORT, BOTH) for y in (few, changed)]
    assert choices[0] == choices[1] and not choices[0].estimates
    assert "too few validation reports" in choices[0].sentence
    assert choose_hops(reads, labels, topology, SHORT, BOTH).estimates


@pytest.mark.parametrize("people", [40, 200])
def test_where_nobody_is_connected_labels_take_no_hops_and_nothing_that_was_paid_for_is_lost(people: int) -> None:
    """Whether validation reports choose (200) or are too few to (40)."""
    graph = social_graph(people, 4, 40, 3, seed=1)
    alone = make_graph(graph.x, graph.edge_index[:, :0], graph.y, graph.schema)
    method = LPGNN(epsilon_x=4.0, epsilon_y=4.0, epochs=2)
    core = method.fit(alone, split=random_split(alone, 0), randomness=SeededRandomness(0))
    assert core.hops is not None and bool(core.hops.estimates) is (people == 200)
    assert core.settings.steps_y == 0


def test_hops_that_were_set_stay_and_a_copy_chooses_anew() -> None:
    graph = made.graph()
    split, how = random_split(graph, 0), {"epsilon_x": 4.0, "epsilon_y": 4.0, "epochs": 1}
    fixed = LPGNN(**how, steps_x=3, steps_y=2).fit(graph, split=split, randomness=SeededRandomness(0))
    assert (fixed.settings.steps_x, fixed.settings.steps_y, fixed.hops) == (3, 2, None)
    core = LPGNN(**how, steps_y=2).fit(graph, split=split, randomness=SeededRandomness(0))
    assert core.hops is not None and core.settings.steps_x == core.hops.steps_x and core.settings.steps_y == 2
    assert core.parameters()["steps_x"] is None
    layers = LPGNN(**how, denoising="upgnet").fit(graph, split=split, randomness=SeededRandomness(0))
    assert layers.hops is not None and layers.settings.steps_x == layers.hops.steps_x
    public = LPGNN(epsilon_x=float("inf"), epsilon_y=float("inf"), epochs=1)
    assert public.open_hops == () and (public.settings.steps_x, public.settings.steps_y) == (0, 0)
