"""The propagation of a plan beside that of a training."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from graphveil.aggregation import normalised
from graphveil.graphs import load_parts
from graphveil.methods.base.cost import MOST_TIMED, assumed_propagation, drawn, propagation_of


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
