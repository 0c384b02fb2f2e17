"""Features and noisy sums joined in one hidden layer."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from graphveil.aggregation import build_inputs
from graphveil.models.class_reader import ClassReader
from graphveil.models.fusion import Fusion

N, D, K, H, C = 30, 12, 4, 8, 3


def drawn(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def fusion(beside: int = K, dropout: float = 0.5, seed: int = 0) -> Fusion:
    return Fusion(D, beside, H, C, dropout, generator=torch.Generator().manual_seed(seed))


def logits(model: Fusion, x: Tensor, z: Tensor) -> Tensor:
    return model.rest(model.first(build_inputs(x, None, 0, width=H), z), z)


def test_it_is_the_formula_of_the_docstring() -> None:
    model, x, z = fusion().eval(), drawn(N, D), drawn(N, K, seed=1)
    hidden = functional.selu(torch.cat([x, z], dim=1) @ torch.cat([model.weight1, model.beside]) + model.bias1)
    assert torch.allclose(logits(model, x, z), hidden @ model.weight2 + model.bias2, atol=1e-5)
    assert torch.equal(fusion().weight1, model.weight1) and not torch.equal(fusion(seed=1).weight1, model.weight1)
    alone = fusion(beside=0).eval()
    expected = functional.selu(x @ alone.weight1 + alone.bias1) @ alone.weight2 + alone.bias2
    assert torch.allclose(logits(alone, x, torch.zeros(N, 0)), expected, atol=1e-5)


def test_a_large_layer_in_parts_is_the_same_layer() -> None:
    x, z = drawn(70_001, D, seed=1), drawn(70_001, K, seed=2)
    found, slopes = [], []
    for whole in (1 << 24, 1 << 10):
        model = fusion()
        model.whole, model.dropout = whole, 0.0
        out = logits(model.train(), x, z)
        out.square().mean().backward()
        found.append(out.detach())
        slopes.append([weight.grad for weight in model.parameters()])
    torch.testing.assert_close(found[0], found[1], rtol=1e-6, atol=1e-6)
    for one, other in zip(*slopes, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-7)


def test_slopes_of_a_large_layer_are_those_of_what_dropout_left() -> None:
    """Against a small step both ways under the same seed, of the rows and of the weights."""
    model, none = fusion().double().train(), drawn(70_001, 0)
    model.whole, step = 1, 1e-6
    first, way = (drawn(70_001, H, seed=seed).double() for seed in (4, 5))
    first.requires_grad_()

    def loss(rows: Tensor) -> Tensor:
        torch.manual_seed(3)
        return model.rest(rows, none).square().mean()

    loss(first).backward()
    slope, learned = float((first.grad * way).sum()), float(model.weight2.grad.sum())
    with torch.no_grad():
        moved = float(loss(first + step * way) - loss(first - step * way)) / (2 * step)
        model.weight2 += step
        above = loss(first)
        model.weight2 -= 2 * step
        changed = float(above - loss(first)) / (2 * step)
    assert moved == pytest.approx(slope, rel=1e-4) and changed == pytest.approx(learned, rel=1e-4)
    # Every part has dropout of its own.
    dropped = model.rest(torch.ones_like(first), none)
    assert not torch.equal(dropped[:1000], dropped[1 << 16 :][:1000])


# ---- a network that reads all classes alike ----


NODES, CLASSES, OWN, COMMON = 20, 5, 4, 3
RENAMED = torch.tensor([3, 0, 4, 1, 2])


def reader(hidden: int = 8) -> ClassReader:
    """With a head that is not 0, as before any training."""
    network = ClassReader(OWN, COMMON, hidden, generator=torch.Generator().manual_seed(0))
    network.head.data = drawn(hidden, seed=1)
    return network


def test_classes_renamed_are_scores_renamed() -> None:
    own, common = drawn(NODES, CLASSES, OWN), drawn(NODES, COMMON, seed=2)
    network = reader()
    found, first = network(own, common), torch.eye(CLASSES)[0]
    assert torch.allclose(network(own[:, RENAMED], common), found[:, RENAMED], atol=1e-5)
    # Weights that know the place of a class are noticed: here the first has a score of its own.
    assert not torch.allclose(network(own[:, RENAMED], common) + first, (found + first)[:, RENAMED])
    other = own.clone()
    other[:, 0] += 1  # classes hear of each other, and of the node
    assert not torch.allclose(network(other, common)[:, 1:], found[:, 1:])
    assert not torch.allclose(network(own, common + 1), found)


def test_any_number_of_classes_and_an_untrained_reader_scores_by_the_mean() -> None:
    network = reader()
    own, common = drawn(NODES, 2, 9, OWN), drawn(NODES, 2, COMMON)
    together = network(own, common)
    assert together.shape == (NODES, 2, 9)
    assert torch.allclose(together[:, 1], network(own[:, 1], common[:, 1]), atol=1e-6)
    own = drawn(NODES, CLASSES, OWN)
    network = ClassReader(OWN, COMMON, 8, generator=torch.Generator().manual_seed(0))
    assert torch.allclose(network(own, drawn(NODES, COMMON)), own.mean(dim=2), atol=1e-6)
