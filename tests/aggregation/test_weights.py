"""Weights of messages: within their declared range, tight, and nothing but both ends decides them."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from graphveil.aggregation import weights as weights_module
from graphveil.aggregation.names import WEIGHT_KINDS, largest_weight
from graphveil.aggregation.weights import cosines, edge_weights
from graphveil.errors import InputError

KERNELS = ("kernel", "learned")
UNTRAINED = [kind for kind in WEIGHT_KINDS if kind != "attention"]


def rows(n: int = 40, seed: int = 0) -> Tensor:
    return torch.randn(n, 5, generator=torch.Generator().manual_seed(seed))


def pairs(n: int = 40, seed: int = 1) -> Tensor:
    return torch.randint(0, n, (2, 200), generator=torch.Generator().manual_seed(seed))


SCALES = st.sampled_from([1e-30, 1e-3, 1.0, 1e30])


@given(st.sampled_from(UNTRAINED), st.integers(0, 10**6), st.floats(0, 50), SCALES)
@settings(max_examples=40, deadline=None)
def test_every_weight_is_between_0_and_the_declared_largest(
    kind: str, seed: int, sharpness: float, scale: float
) -> None:
    x = rows(seed=seed) * scale
    x[::7], x[1::7] = math.nan, 0.0
    x[2::7, 0] = math.inf
    weights, w_max = edge_weights(kind, x, pairs(seed=seed), sharpness=sharpness)
    assert w_max == largest_weight(kind)
    if weights is None:
        assert (kind, w_max) == ("uniform", 1.0)
        return
    assert weights.dtype == torch.float32
    assert bool(((weights >= 0) & (weights.double() <= w_max)).all())


@pytest.mark.parametrize("kind", ["similarity", *KERNELS])
def test_the_largest_weight_is_reached_where_both_ends_are_the_same(kind: str) -> None:
    """Tight: no smaller bound would hold; 0.731 is sigmoid(1), and published code pays for 1."""
    edges = torch.arange(40).expand(2, 40)
    weights, w_max = edge_weights(kind, rows(), edges, sharpness=2.0)
    exact = 1 / (1 + math.exp(-1.0)) if kind == "similarity" else 1.0
    assert exact <= w_max <= exact + 2e-8
    assert float(weights.max()) == pytest.approx(w_max, abs=1e-6)
    opposite, _ = edge_weights(kind, torch.tensor([[1.0], [-1.0]]), torch.tensor([[0], [1]]), sharpness=2.0)
    assert float(opposite) == pytest.approx(1 / (1 + math.e) if kind == "similarity" else math.exp(-4), rel=1e-6)


def test_cosines_are_those_of_the_formula_and_of_rows_of_any_length(monkeypatch: pytest.MonkeyPatch) -> None:
    x, edges = rows(), pairs()
    expected = torch.nn.functional.cosine_similarity(x[edges[0]].double(), x[edges[1]].double())
    for scale in (1e-15, 1.0, 1e15):
        assert torch.allclose(cosines(x * scale, edges).double(), expected, atol=1e-6)
    whole = cosines(x, edges)
    monkeypatch.setattr(weights_module, "_CHUNK", 7)
    assert torch.equal(cosines(x, edges), whole) and cosines(x, edges[:, :0]).shape == (0,)


@pytest.mark.parametrize("bad", [0.0, math.nan, math.inf, -math.inf])
def test_rows_of_nothing_are_close_to_nobody_and_spoil_no_other_pair(bad: float) -> None:
    x, edges = rows(), pairs()
    expected = cosines(x, edges)
    touched, x[3] = (edges == 3).any(dim=0), bad
    expected[touched] = 0.0
    assert bool(touched.any()) and torch.equal(cosines(x, edges), expected)


def test_attention_is_what_somebody_trained_and_what_is_not_known_is_refused() -> None:
    with pytest.raises(InputError, match="weights 'softmax' are not known; allowed: uniform, similarity"):
        largest_weight("softmax")
    for sharpness in (-1.0, math.inf, math.nan):
        with pytest.raises(InputError, match="sharpness"):
            edge_weights("kernel", rows(), pairs(), sharpness=sharpness)
    with pytest.raises(InputError, match="attention was not trained"):
        edge_weights("attention", rows(), pairs())
    weights, w_max = edge_weights("attention", rows(), pairs(), attention=lambda x, e: torch.full((e.shape[1],), 2.0))
    assert weights is not None and torch.equal(weights, torch.ones(200)) and w_max == 1.0


@pytest.mark.parametrize("kind", ["similarity", *KERNELS])
def test_other_edges_change_no_bit_of_a_weight(kind: str) -> None:
    """Weights fall on a grid afterwards: a last bit that depends on an edge's place could move another edge's step."""
    x, edges = rows(400), pairs(400).repeat(1, 3)
    whole, _ = edge_weights(kind, x, edges, sharpness=3.0)
    for start in range(70):
        part, _ = edge_weights(kind, x, edges[:, start:], sharpness=3.0)
        assert torch.equal(part, whole[start:])
