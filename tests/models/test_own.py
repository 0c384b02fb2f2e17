"""Networks: a module of a user's own where a backbone stands, the curator's perceptrons, and the backbones."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, cast

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from torch import Tensor, nn
from torch.nn import functional

from graphveil.aggregation import Inputs, build_inputs, from_scipy, normalised, standardise
from graphveil.errors import InputError
from graphveil.models import BACKBONES, build_backbone, first_width, structure_for
from graphveil.models.networks.layers import dropout
from graphveil.models.networks.own import (
    Links,
    OwnBackbone,
    as_rows,
    edge_arguments_of,
    require_scores,
    require_weights,
)
from graphveil.models.networks.perceptrons import selu, unit
from tests.training.dense import layer

EDGES = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
N, D, C = 4, 5, 3


class Watching(nn.Module):
    """Keeps what it was called with."""

    def __init__(self) -> None:
        super().__init__()
        self.last = nn.Linear(D, C)

    def forward(self, x: Tensor, edge_index: Tensor, edge_weight: Tensor) -> Tensor:
        self.seen = (x, edge_index, edge_weight)
        return self.last(x)


class OnlyWeights(nn.Module):
    def forward(self, x: Tensor, *, edge_weight: Tensor) -> Tensor:
        return x * edge_weight.sum()


def rows(seed: int = 0) -> Tensor:
    return torch.randn(N, D, generator=torch.Generator().manual_seed(seed))


def dense(values: Tensor) -> Inputs:
    return build_inputs(values, None, 0, width=1)


def test_a_module_is_handed_what_its_forward_names() -> None:
    assert edge_arguments_of(nn.Linear(D, C)) == ()
    assert edge_arguments_of(Watching()) == ("edge_index", "edge_weight")
    assert edge_arguments_of(OnlyWeights()) == ("edge_weight",)
    own = OwnBackbone(Watching())
    module: Any = own.module
    first = own.first(dense(rows()), Links(EDGES))
    own.rest(first, Links(EDGES))
    x, edge_index, weights = module.seen
    assert torch.equal(x, rows()) and torch.equal(edge_index, EDGES)
    assert torch.equal(weights, torch.ones(4)) and weights.dtype == first.dtype
    halves = torch.full((4,), 0.5)
    own.rest(first, Links(EDGES, halves))
    assert torch.equal(module.seen[2], halves)


@pytest.mark.parametrize("stored", ["dense", "sparse"])
def test_rows_are_what_the_linear_map_reads(stored: str) -> None:
    """Propagated, shifted and scaled features, against the operator itself; and the same again from the rows."""
    values = np.random.default_rng(0).random((N, D)) * (np.random.default_rng(1).random((N, D)) < 0.5)
    matrix: Any = values.astype(np.float32) if stored == "dense" else sp.csr_matrix(values, dtype=np.float32)
    inputs = build_inputs(matrix, normalised(EDGES, N), 2, width=1, offset=0.5)
    inputs = standardise(inputs, generator=torch.Generator().manual_seed(0))
    rows, weight = as_rows(inputs), torch.randn(D, 2, generator=torch.Generator().manual_seed(3))
    assert isinstance(rows.matrix, Tensor) and (rows.p, rows.hops, rows.offset, rows.mean) == (None, 0, None, None)
    assert torch.allclose(rows.linear(weight), inputs.linear(weight), atol=1e-5)
    assert torch.equal(OwnBackbone(nn.Linear(D, C)).first(rows, Links(EDGES)), rows.matrix)


def test_rows_that_would_fill_the_memory_are_refused_before_they_are_made() -> None:
    wide = from_scipy(sp.csr_matrix((1_000_001, 500), dtype=np.float32))
    inputs = Inputs(wide, None, 0, torch.ones(1, 1).expand(1_000_001, 1))
    with pytest.raises(InputError, match="use a named model"):
        as_rows(inputs)
    ready = build_inputs(np.ones((N, D), np.float32), None, 0, width=1)
    assert torch.equal(cast(Tensor, as_rows(ready, most=0).matrix), torch.ones(N, D))


REFUSED = {
    "edges that are private": (Watching(), D, C, False, "forward names edge_index, edge_weight"),
    "no weights": (nn.Identity(), C, C, True, "no weights to train"),
    "frozen weights": (nn.Linear(D, C).requires_grad_(False), D, C, True, "no weights to train"),
    "another width": (nn.Linear(D + 1, C), D, C, True, "cannot read rows of 5 numbers"),
    "too many classes": (nn.Linear(D, C + 1), D, C, True, r"2 rows gave scores (2, 4); allowed: (2, 3)"),
    "no tensor": (nn.GRU(D, C), D, C, True, "2 rows gave scores tuple"),
    "an argument that nobody gives": (nn.Bilinear(D, D, C), D, C, True, "cannot read rows"),
    "pictures": (nn.Conv2d(1, 1, 3), D, C, True, "cannot read rows"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_gives_no_score_for_each_class_is_refused(case: str) -> None:
    module, dimension, classes, edges, message = REFUSED[case]
    with pytest.raises(InputError, match=f"backbone: .*{re.escape(message)}"):
        require_scores(module, dimension, classes, edges=edges)


class Noisy(nn.Linear):
    """Draws from torch's own generator in every mode."""

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x + torch.rand_like(x))


def test_trying_a_module_changes_neither_it_nor_torchs_random_numbers() -> None:
    theirs = nn.Sequential(Noisy(D, C), nn.BatchNorm1d(C), nn.Dropout(0.5))
    before = {name: value.clone() for name, value in theirs.state_dict().items()}
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    require_scores(theirs, D, C, edges=False)
    assert torch.equal(torch.rand(3), expected)
    assert theirs.training and all(torch.equal(before[name], value) for name, value in theirs.state_dict().items())


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda weights: weights.pop("bias"), "bias is None"),
        (lambda weights: weights.update(more=torch.zeros(1)), r"more is \(\(1,\), torch.float32\); allowed: None"),
        (lambda weights: weights.update(bias=torch.zeros(C + 1)), r"bias is \(\(4,\)"),
        (
            lambda weights: weights.update(bias=torch.zeros(C, dtype=torch.float64)),
            r"bias is \(\(3,\), torch.float64\)",
        ),
        (lambda weights: weights["weight"][0].fill_(torch.nan), "weight holds what is not a number"),
        (lambda weights: weights["bias"].fill_(torch.inf), "bias holds what is not a number"),
    ],
)
def test_weights_of_another_module_are_refused_by_name(change: Any, message: str) -> None:
    module, weights = nn.Linear(D, C), dict(nn.Linear(D, C).state_dict())
    require_weights(module, weights)
    change(weights)
    with pytest.raises(InputError, match=f"backbone: {message}"):
        require_weights(module, weights)


# ---- the curator's perceptrons, and dropout ----


X = torch.randn(7, 5, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


@pytest.mark.parametrize("function", [selu, unit])
def test_slopes_equal_finite_differences(function: Callable[[Tensor], Tensor]) -> None:
    assert torch.autograd.gradcheck(function, X.clone().requires_grad_())


def test_selu_and_its_slope_are_those_of_torch_also_for_slices_of_a_gradient() -> None:
    both = []
    for law in (selu, functional.selu):
        x = (4 * X).requires_grad_()
        torch.cat([law(x), x * x], dim=1).square().sum().backward()
        both.append((law(x).detach(), x.grad))
    (value, slope), (value2, slope2) = both
    assert torch.equal(value, value2)
    assert slope is not None and slope2 is not None
    assert torch.allclose(slope, slope2, rtol=1e-12)


DRAWS = 200_000


@pytest.mark.parametrize("rate", [0.25, 0.9])
def test_entries_are_dropped_at_the_rate_and_the_rest_is_scaled_up(rate: float) -> None:
    """The share dropped is within five deviations of the rounded rate (false alarm 6e-7); 1.1 times the rate is not."""
    torch.manual_seed(0)
    rounded = round(rate * 256) / 256
    out = dropout(torch.ones(DRAWS), rate, True)
    share = float((out == 0).float().mean())
    error = 5 * (rounded * (1 - rounded) / DRAWS) ** 0.5
    assert abs(share - rounded) < error
    assert abs(share - 1.1 * rounded) > error
    assert torch.allclose(out[out != 0], torch.tensor(1 / (1 - rounded)))


def test_the_generator_decides_and_shapes_and_gradients_are_kept() -> None:
    x = torch.randn(5, 3, requires_grad=True)
    outs = []
    for seed in (0, 0, 1):
        torch.manual_seed(seed)
        outs.append(dropout(x, 0.5, True))
    assert torch.equal(outs[0], outs[1])
    assert not torch.equal(outs[0], outs[2])
    assert dropout(x, 0.5, False) is x and dropout(x, 0.0, True) is x
    assert all(bool(dropout(torch.ones(1000), rate, True).isfinite().all()) for rate in (0.001, 0.997, 0.9999))
    outs[0].sum().backward()
    assert torch.allclose(x.grad, (outs[0] != 0) * 2.0)


# ---- backbones, against the same layers over a dense matrix of edges ----


PEOPLE, COLUMNS, HIDDEN, CLASSES = 30, 7, 5, 3
ISOLATED = (28, 29)


def edges(*, directed: bool = False) -> Tensor:
    source, target = np.random.default_rng(0).integers(0, ISOLATED[0], (2, 60))
    keep = source != target
    pairs = np.stack([source[keep], target[keep]])
    if not directed:
        pairs = np.concatenate([pairs, pairs[::-1]], axis=1)
    return torch.from_numpy(np.unique(pairs, axis=1))


def features() -> Tensor:
    return torch.randn(PEOPLE, COLUMNS, generator=torch.Generator().manual_seed(1))


def backbone(name: str) -> Any:
    """A backbone whose biases are not zero, so that a lost bias shows."""
    generator = torch.Generator().manual_seed(2)
    model = build_backbone(name, COLUMNS, HIDDEN, CLASSES, 0.5, generator=generator)
    with torch.no_grad():
        for parameter in (model.bias1, model.bias2):
            parameter.copy_(torch.randn(parameter.shape, generator=generator))
    return model.eval()


def dense_layer(name: str, model: Any, a: Tensor, x: Tensor, number: int) -> Tensor:
    """Of the perceptron too, which reads no edges."""
    if name == "mlp":
        return x @ getattr(model, f"weight{number}") + getattr(model, f"bias{number}")
    return layer(name, model, a, x, number)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("name", BACKBONES)
def test_layers_and_gradients_equal_the_dense_computation(name: str, directed: bool, weighted: bool) -> None:
    """GCN: Q = D_in^{-1/2} (A + I) D_out^{-1/2}, the degree of each end; a weight of 0 is no edge."""
    model, edge_index = backbone(name), edges(directed=directed)
    weights = torch.rand(edge_index.shape[1], generator=torch.Generator().manual_seed(5))
    weights[::5] = 0.0
    assert model.weight1.shape == (COLUMNS, first_width(name, HIDDEN))
    a = torch.zeros(PEOPLE, PEOPLE)
    a[edge_index[1], edge_index[0]] = weights if weighted else 1.0
    structure = structure_for(name, edge_index, PEOPLE, weights=weights if weighted else None)
    first = model.first(build_inputs(features(), None, 0, width=1), structure)
    hidden = dense_layer(name, model, a, features(), 1)
    logits, expected = model.rest(first, structure), dense_layer(name, model, a, functional.selu(hidden), 2)
    assert torch.allclose(first, hidden, atol=1e-5) and torch.allclose(logits, expected, atol=1e-5)
    slopes = [torch.autograd.grad(layer.square().sum(), list(model.parameters())) for layer in (logits, expected)]
    assert all(torch.allclose(mine, theirs, rtol=1e-4, atol=1e-3) for mine, theirs in zip(*slopes, strict=True))


def test_attention_over_tiny_weights_and_huge_scores_does_not_overflow() -> None:
    model, edge_index = backbone("gat"), edges()
    structure = structure_for("gat", edge_index, PEOPLE, weights=torch.full((edge_index.shape[1],), 1e-30))
    first = model.first(build_inputs(features() * 1e6, None, 0, width=1), structure)
    assert bool(first.isfinite().all())
