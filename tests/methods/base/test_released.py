"""What the server holds: topology and reports."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from graphveil.aggregation import normalised
from graphveil.errors import InputError
from graphveil.graphs import load_parts
from graphveil.methods import METHODS
from graphveil.methods.base.cost import MOST_TIMED, assumed_propagation, drawn, propagation_of
from graphveil.methods.base.local_privacy import LocalPrivacy
from graphveil.methods.base.ranges import NAMES, NUMBERS, Bounds
from graphveil.methods.base.released import (
    Topology,
    randomize_people,
    require_matching,
    require_servable,
    topology_of,
)
from graphveil.privacy import SecureRandomness, SeededRandomness
from tests.methods import made

EDGES = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])


def test_any_change_of_the_topology_changes_the_fingerprint() -> None:
    other_edge = EDGES.clone()
    other_edge[1, 0] = 2
    changed = [Topology(EDGES, 4), Topology(EDGES[:, :2], 3), Topology(other_edge, 3), Topology(EDGES.flip(0), 3)]
    fingerprints = {found.fingerprint for found in [Topology(EDGES, 3), *changed]}
    assert len(fingerprints) == 5


def test_features_and_labels_are_no_part_of_the_fingerprint() -> None:
    graph = made.graph()
    assert topology_of(made.neighbour(graph)).fingerprint == topology_of(graph).fingerprint


def test_only_training_and_validation_nodes_send_a_label() -> None:
    graph = made.graph()
    split = made.split_of(graph)
    released = randomize_people(graph, split, LocalPrivacy(None, 50.0), randomness=SecureRandomness())
    asked = split.train | split.val
    assert torch.equal(released.labelled, asked)
    assert torch.equal(released.labels[asked], graph.y[asked])
    assert bool((released.labels[~asked] == -1).all())


def test_public_parts_are_sent_as_they_are_and_draw_no_noise() -> None:
    graph = made.graph()
    noise = made.Counted()
    released = randomize_people(graph, made.split_of(graph), LocalPrivacy(math.inf, math.inf), randomness=noise)
    assert released.features is graph.x
    assert noise.asked == []
    assert released.void is None


def test_reproducible_noise_is_marked_on_the_reports() -> None:
    graph = made.graph()
    for noise, void in ((SecureRandomness(), None), (SeededRandomness(9), "noise was reproducible (seed 9)")):
        for privacy in (LocalPrivacy(1.0, math.inf), LocalPrivacy(None, 1.0), LocalPrivacy(math.inf, 1.0)):
            assert randomize_people(graph, made.split_of(graph), privacy, randomness=noise).void == void


def test_reports_say_what_they_were_made_with() -> None:
    graph = made.graph()
    privacy = LocalPrivacy(2.0, 1.0, "one-bit")
    released = randomize_people(graph, made.split_of(graph), privacy, randomness=SecureRandomness())
    assert released.privacy == privacy
    assert released.schema == graph.schema
    require_matching(released, topology_of(graph), LocalPrivacy(2.0, 1.0, "one-bit"))
    for other in (LocalPrivacy(2.0, 1.1, "one-bit"), LocalPrivacy(2.0, 1.0), LocalPrivacy(None, 1.0)):
        with pytest.raises(InputError, match="the reports were made with") as refused:
            require_matching(released, topology_of(graph), other)
        assert "\n" not in str(refused.value)


@pytest.mark.parametrize("flags", [(True, False, False), (False, True, False)], ids=["train", "validate"])
def test_label_noise_is_as_large_as_declared(flags: tuple[bool, bool, bool]) -> None:
    """3,000 labels at epsilon 1: the share kept is within 5 deviations of p (false alarm 6e-7), not of 1.2 p."""
    graph = replace_labels(3_000)
    released = randomize_people(
        graph,
        made.Split(*(torch.full((3_000,), flag) for flag in flags)),
        LocalPrivacy(None, 1.0),
        randomness=SeededRandomness(4),
    )
    kept = float((released.labels == graph.y).float().mean())
    p = math.e / (math.e + 2)
    error = 5 * math.sqrt(p * (1 - p) / 3_000)
    assert abs(kept - p) < error
    assert abs(kept - 1.2 * p) > error


def replace_labels(nodes: int) -> made.Labelled:
    schema = replace(made.graph().schema, name="labels alone")
    return made.Labelled(nodes, torch.arange(nodes) % 3, schema)


def test_a_graph_with_private_edges_is_refused_before_anything_is_read() -> None:
    graph = made.graph()
    graph.schema = replace(graph.schema, private=("features", "labels", "edges"))
    with pytest.raises(InputError, match="declares its edges private"):
        require_servable(graph)


# ---- the propagation of a plan beside that of a training ----


@pytest.mark.parametrize(("below", "shape"), [(2, (7, 64)), (1_000, (2, 5_000)), (1_797, (2, 33)), (1, (2, 3))])
def test_numbers_are_those_of_torch_for_the_seed_0(below: int, shape: tuple[int, ...]) -> None:
    theirs = torch.randint(0, below, shape, generator=torch.Generator().manual_seed(0))
    assert np.array_equal(drawn(below, shape), theirs.numpy())


@pytest.mark.parametrize("name", ["digits", "social-200"])
def test_a_plan_counts_what_a_training_holds(name: str) -> None:
    parts = load_parts(name)
    planned = propagation_of(parts.edge_index, parts.num_nodes)
    trained = normalised(torch.from_numpy(parts.edge_index), parts.num_nodes)
    assert (planned.nodes, planned.entries, planned.nbytes) == (parts.num_nodes, trained.entries, trained.nbytes)
    x = torch.randn(parts.num_nodes, 3, generator=torch.Generator().manual_seed(1))
    np.testing.assert_allclose(planned.matrix @ x.numpy(), (trained @ x).numpy(), rtol=1e-4, atol=1e-6)


def test_a_directed_graph_is_held_twice() -> None:
    edges = np.array([[0, 1, 2], [1, 2, 0]])
    assert propagation_of(edges, 3).nbytes == normalised(torch.from_numpy(edges), 3).nbytes == 2 * (4 * 4 + 8 * 3)


def test_made_edges_are_as_many_as_asked_for_at_most() -> None:
    assert assumed_propagation(5_000, 100).entries <= 100
    assert assumed_propagation(2_000, 2 * MOST_TIMED).entries <= MOST_TIMED


# ---- the ranges of settings ----


def holds(bounds: Bounds, value: float) -> bool:
    """Whether a number lies within its bounds."""
    if math.isinf(value):
        return bounds.infinite
    ends = (
        bounds.least is None or value >= bounds.least,
        bounds.most is None or value <= bounds.most,
        bounds.above is None or value > bounds.above,
        bounds.below is None or value < bounds.below,
    )
    return all(ends)


OPTIONS = [(name, key, option) for name, info in METHODS.items() for key, option in info.options.items()]


def test_every_range_is_of_a_setting_that_some_method_takes() -> None:
    kinds = {key: option.type for _, key, option in OPTIONS}
    assert {key for key, kind in kinds.items() if kind in (int, float)} == {*NUMBERS, "bins"}
    assert all(kinds[key] is str for key in NAMES)


def test_defaults_lie_within_their_ranges() -> None:
    for name, key, option in OPTIONS:
        if option.default is None:
            continue
        if option.type is str:
            assert option.default in (option.within or NAMES.get(key) or (option.default,)), (name, key)
        elif key in NUMBERS:
            assert holds(NUMBERS[key], option.default), (name, key)
