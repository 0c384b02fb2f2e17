"""What friends' answers say: the formula by hand, nobody's own answer, nothing where nobody answered."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from graphveil.aggregation import adjacency, from_scipy
from graphveil.models.belief import Edges, edges_of
from graphveil.models.friends_answers import DISCOUNT, TEMPER, heard_of_friends

PRIOR = torch.tensor([0.5, 0.5])
#: 0 - 1, 0 - 2.
BEFORE = torch.tensor([[0.5, 0.5], [0.6, 0.4], [0.5, 0.5]])


def star() -> Edges:
    return edges_of(from_scipy(adjacency(torch.tensor([[0, 1, 0, 2], [1, 0, 2, 0]]), 3), symmetric=True))


def test_the_formula_on_one_friend_and_on_busy_people() -> None:
    """Node 1 moves from 0.6 to 0.9; H is 1.5 for equal classes and 0.5 for others; all edges weigh the same."""
    after = BEFORE.clone()
    after[1] = torch.tensor([0.9, 0.1])
    found = heard_of_friends(star(), BEFORE, after, PRIOR, 0.5)
    expected = TEMPER * np.log([(0.9 * 1.5 + 0.1 * 0.5) / (0.6 * 1.5 + 0.4 * 0.5), (0.45 + 0.15) / (0.3 + 0.6)])
    assert found[0].numpy() == pytest.approx(expected, rel=1e-5)
    assert not found[1:].any(), "node 1 is no friend of its own, and node 0 gave no answer"
    # A path of four: the edge in the middle has ends of degree 2.
    path = edges_of(from_scipy(adjacency(torch.tensor([[0, 1, 1, 2, 2, 3], [1, 0, 2, 1, 3, 2]]), 4), symmetric=True))
    before = torch.full((4, 2), 0.5)
    after = before.clone()
    after[1] = torch.tensor([0.9, 0.1])
    heard = heard_of_friends(path, before, after, PRIOR, 0.5)
    assert float(heard[0, 0] / heard[2, 0]) == pytest.approx(2**DISCOUNT, rel=1e-5)
