"""Backbones against PyG's layers (and torch's own, for the perceptron) with the same weights.

The graph has isolated nodes; GAT's first layer has four heads, its second one.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import selu

from graphveil.aggregation import build_inputs
from graphveil.errors import InputError
from graphveil.graphs.quiet import quiet
from graphveil.models import BACKBONES, build_backbone, first_width, structure_for
from graphveil.models.gat import HEADS
from tests.training.dense import layer

N, D, HIDDEN, CLASSES = 30, 7, 5, 3
ISOLATED = (28, 29)


@pytest.fixture(scope="module")
def layers() -> Any:
    with quiet():
        from torch_geometric import nn as layers
    return layers


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


def run(name: str, edge_index: Tensor) -> tuple[Tensor, Tensor]:
    """The first layer and the logits of our backbone."""
    model, structure = backbone(name), structure_for(name, edge_index, N)
    first = model.first(build_inputs(features(), None, 0, width=1), structure)
    return first, model.rest(first, structure)


def copy(layer: nn.Module, weights: dict[str, Tensor]) -> nn.Module:
    assert set(dict(layer.named_parameters())) == set(weights)
    layer.load_state_dict(weights)
    return layer


def sage(layers: Any, model: Any, number: int) -> nn.Module:
    weight, bias = getattr(model, f"weight{number}"), getattr(model, f"bias{number}")
    out = weight.shape[1] // 2
    parts = {"lin_l.weight": weight[:, :out].T, "lin_l.bias": bias, "lin_r.weight": weight[:, out:].T}
    return copy(layers.SAGEConv(weight.shape[0], out), parts)


def gcn(layers: Any, model: Any, number: int) -> nn.Module:
    weight, bias = getattr(model, f"weight{number}"), getattr(model, f"bias{number}")
    return copy(layers.GCNConv(*weight.shape), {"lin.weight": weight.T, "bias": bias})


def gat(layers: Any, model: Any, number: int) -> nn.Module:
    weight, bias = getattr(model, f"weight{number}"), getattr(model, f"bias{number}")
    attention = getattr(model, f"attention{number}")
    heads, out = attention.shape[1:]
    parts = {"lin.weight": weight.T, "bias": bias, "att_src": attention[:1], "att_dst": attention[1:]}
    return copy(layers.GATConv(weight.shape[0], out, heads=heads), parts)


def test_the_perceptron_equals_torchs_own_layers() -> None:
    model = backbone("mlp")
    own = nn.Sequential(nn.Linear(D, HIDDEN), nn.SELU(), nn.Linear(HIDDEN, CLASSES))
    weights = {"0.weight": model.weight1.T, "0.bias": model.bias1, "2.weight": model.weight2.T, "2.bias": model.bias2}
    _, logits = run("mlp", edges())
    assert torch.allclose(logits, copy(own, weights)(features()), atol=1e-6)


@pytest.mark.parametrize("name", ["sage", "gcn", "gat"])
def test_layers_and_gradients_equal_pygs(layers: Any, name: str) -> None:
    """Undirected: on directed graphs PyG's GCN normalises both ends by the in-degree."""
    build = {"sage": sage, "gcn": gcn, "gat": gat}[name]
    model, edge_index = backbone(name), edges()
    one, two = build(layers, model, 1), build(layers, model, 2)
    hidden = one(features(), edge_index)
    expected = two(selu(hidden), edge_index)
    expected.square().sum().backward()
    structure = structure_for(name, edge_index, N)
    first = model.first(build_inputs(features(), None, 0, width=1), structure)
    logits = model.rest(first, structure)
    logits.square().sum().backward()
    assert torch.allclose(first, hidden, atol=1e-5) and torch.allclose(logits, expected, atol=1e-5)
    for number, theirs in ((1, one), (2, two)):
        bias = theirs.lin_l.bias if name == "sage" else theirs.bias
        assert torch.allclose(getattr(model, f"bias{number}").grad, bias.grad, rtol=1e-4, atol=1e-4)
        mine = getattr(model, f"weight{number}").grad
        if name == "sage":
            expected = torch.cat([theirs.lin_l.weight.grad, theirs.lin_r.weight.grad]).T
        else:
            expected = theirs.lin.weight.grad.T
        assert torch.allclose(mine, expected, rtol=1e-4, atol=1e-3)
    if name == "gat":
        expected = torch.cat([one.att_src.grad, one.att_dst.grad])
        assert torch.allclose(model.attention1.grad, expected, rtol=1e-4, atol=1e-4)
        assert model.attention1.shape == (2, HEADS, HIDDEN) and model.attention2.shape == (2, 1, CLASSES)


@pytest.mark.parametrize("name", BACKBONES)
def test_initial_weights_come_from_the_generator_alone(name: str) -> None:
    def built(seed: int) -> Tensor:
        torch.manual_seed(torch.randint(1000, (1,)).item())
        return build_backbone(name, D, HIDDEN, CLASSES, 0.5, generator=torch.Generator().manual_seed(seed)).weight1

    with pytest.raises(InputError, match="model 'gin' is not known; allowed: sage, gcn, gat, mlp"):
        build_backbone("gin", D, HIDDEN, CLASSES, 0.5, generator=torch.Generator())
    assert torch.equal(built(0), built(0))
    assert not torch.equal(built(0), built(1))


def weighted(edge_index: Tensor) -> tuple[Tensor, Tensor]:
    """A weight in (0, 1) for every edge, and the same as a matrix [receiver, sender]."""
    weights = torch.rand(edge_index.shape[1], generator=torch.Generator().manual_seed(5))
    a = torch.zeros(N, N)
    a[edge_index[1], edge_index[0]] = weights
    return weights, a


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("name", ["sage", "gcn", "gat"])
def test_weighted_layers_equal_the_dense_computation(name: str, directed: bool) -> None:
    """GCN: Q = D_in^{-1/2} (A + I) D_out^{-1/2}, the degree of each end."""
    model, edge_index = backbone(name), edges(directed=directed)
    weights, a = weighted(edge_index)
    weights[::5], a[edge_index[1, ::5], edge_index[0, ::5]] = 0.0, 0.0  # is no edge
    assert model.weight1.shape == (D, first_width(name, HIDDEN))
    structure = structure_for(name, edge_index, N, weights=weights)
    first = model.first(build_inputs(features(), None, 0, width=1), structure)
    assert torch.allclose(first, layer(name, model, a, features(), 1), atol=1e-5)
    expected = layer(name, model, a, selu(first), 2)
    assert torch.allclose(model.rest(first, structure), expected, atol=1e-5)


def test_attention_over_tiny_weights_and_huge_scores_does_not_overflow() -> None:
    model, edge_index = backbone("gat"), edges()
    structure = structure_for("gat", edge_index, N, weights=torch.full((edge_index.shape[1],), 1e-30))
    first = model.first(build_inputs(features() * 1e6, None, 0, width=1), structure)
    assert bool(first.isfinite().all())
