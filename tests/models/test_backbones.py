"""Backbones against the same layers over a dense matrix of edges; the graph has isolated nodes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn.functional import selu

from graphveil.aggregation import build_inputs
from graphveil.errors import InputError
from graphveil.models import BACKBONES, build_backbone, first_width, structure_for
from tests.training.dense import layer

N, D, HIDDEN, CLASSES = 30, 7, 5, 3
ISOLATED = (28, 29)


def edges(*, directed: bool = False) -> Tensor:
    source, target = np.random.default_rng(0).integers(0, ISOLATED[0], (2, 60))
    keep = source != target
    pairs = np.stack([source[keep], target[keep]])
    if not directed:
        pairs = np.concatenate([pairs, pairs[::-1]], axis=1)
    return torch.from_numpy(np.unique(pairs, axis=1))


def features() -> Tensor:
    return torch.randn(N, D, generator=torch.Generator().manual_seed(1))


def backbone(name: str) -> Any:
    """A backbone whose biases are not zero, so that a lost bias shows."""
    generator = torch.Generator().manual_seed(2)
    model = build_backbone(name, D, HIDDEN, CLASSES, 0.5, generator=generator)
    with torch.no_grad():
        for parameter in (model.bias1, model.bias2):
            parameter.copy_(torch.randn(parameter.shape, generator=generator))
    return model.eval()


@pytest.mark.parametrize("name", BACKBONES)
def test_initial_weights_come_from_the_generator_alone(name: str) -> None:
    def built(seed: int) -> Tensor:
        torch.manual_seed(torch.randint(1000, (1,)).item())
        return build_backbone(name, D, HIDDEN, CLASSES, 0.5, generator=torch.Generator().manual_seed(seed)).weight1

    with pytest.raises(InputError, match="model 'gin' is not known; allowed: sage, gcn, gat, mlp"):
        build_backbone("gin", D, HIDDEN, CLASSES, 0.5, generator=torch.Generator())
    assert torch.equal(built(0), built(0))
    assert not torch.equal(built(0), built(1))


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
    assert model.weight1.shape == (D, first_width(name, HIDDEN))
    a = torch.zeros(N, N)
    a[edge_index[1], edge_index[0]] = weights if weighted else 1.0
    structure = structure_for(name, edge_index, N, weights=weights if weighted else None)
    first = model.first(build_inputs(features(), None, 0, width=1), structure)
    hidden = dense_layer(name, model, a, features(), 1)
    found, expected = model.rest(first, structure), dense_layer(name, model, a, selu(hidden), 2)
    assert torch.allclose(first, hidden, atol=1e-5) and torch.allclose(found, expected, atol=1e-5)
    slopes = [torch.autograd.grad(one.square().sum(), list(model.parameters())) for one in (found, expected)]
    assert all(torch.allclose(mine, theirs, rtol=1e-4, atol=1e-3) for mine, theirs in zip(*slopes, strict=True))


def test_attention_over_tiny_weights_and_huge_scores_does_not_overflow() -> None:
    model, edge_index = backbone("gat"), edges()
    structure = structure_for("gat", edge_index, N, weights=torch.full((edge_index.shape[1],), 1e-30))
    first = model.first(build_inputs(features() * 1e6, None, 0, width=1), structure)
    assert bool(first.isfinite().all())
