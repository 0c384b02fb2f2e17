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
from graphveil.methods.base.cost import drawn, propagation_of
from graphveil.methods.base.local_privacy import LocalPrivacy
from graphveil.methods.base.released import (
    Topology,
    randomize_people,
    require_servable,
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


def test_only_training_and_validation_nodes_send_a_label() -> None:
    graph = made.graph()
    split = made.split_of(graph)
    released = randomize_people(graph, split, LocalPrivacy(None, 50.0), randomness=SecureRandomness())
    asked = split.train | split.val
    assert torch.equal(released.labelled, asked)
    assert torch.equal(released.labels[asked], graph.y[asked])
    assert bool((released.labels[~asked] == -1).all())


def test_reproducible_noise_is_marked_on_the_reports() -> None:
    graph = made.graph()
    for noise, void in ((SecureRandomness(), None), (SeededRandomness(9), "noise was reproducible (seed 9)")):
        for privacy in (LocalPrivacy(1.0, math.inf), LocalPrivacy(None, 1.0), LocalPrivacy(math.inf, 1.0)):
            assert randomize_people(graph, made.split_of(graph), privacy, randomness=noise).void == void


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
