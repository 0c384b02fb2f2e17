"""Label propagation."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from graphveil.aggregation import normalised
from graphveil.methods import LabelPropagation
from graphveil.methods.base.drop import label_matrix
from graphveil.methods.local.label_propagation import (
    ALPHAS,
    HOPS,
    STEPS,
    all_spread,
    propagate_labels,
    shares_to_probabilities,
    spread,
    variants,
)
from graphveil.privacy import SeededRandomness
from tests.methods import made

# A path 0 - 1 - 2 - 3, a pair 4 - 5 and the isolated node 6.
EDGES = torch.tensor([[0, 1, 1, 2, 2, 3, 4, 5], [1, 0, 2, 1, 3, 2, 5, 4]])
LABELS = torch.tensor([0, 1, -1, 1, 0, -1, -1])
LABELLED = LABELS >= 0


def dense_p() -> Tensor:
    a = torch.zeros(7, 7)
    a[EDGES[1], EDGES[0]] = 1
    root = a.sum(1).clamp_min(1).rsqrt()
    return root[:, None] * a * root[None, :]


def seeds() -> Tensor:
    return label_matrix(LABELS, LABELLED, 2)


@pytest.mark.parametrize("alpha", ALPHAS)
def test_spreading_equals_the_dense_formula(alpha: float) -> None:
    """Z_t = alpha P Z + (1 - alpha) Y' unrolled: (1 - alpha) sum_k (alpha P)^k Y' + (alpha P)^t Y'."""
    p = alpha * dense_p().double()
    y = seeds().double()
    powers = [torch.linalg.matrix_power(p, k) @ y for k in range(STEPS + 1)]
    expected = (1 - alpha) * sum(powers[:-1], torch.zeros_like(y)) + powers[-1]
    assert torch.allclose(spread(normalised(EDGES, 7), seeds(), alpha).double(), expected, atol=1e-6)


def test_one_chain_of_products_gives_every_variant() -> None:
    p, nodes = normalised(EDGES, 7), torch.tensor([6, 0, 3])
    found = dict(all_spread(p, seeds(), nodes))
    expected = {name: run(seeds())[nodes] for name, run in variants(p).items()}
    assert found.keys() == expected.keys()
    assert all(torch.allclose(found[name], z, atol=1e-6) for name, z in expected.items())


def long_form(train: Tensor, val: Tensor) -> tuple[Tensor, str]:
    """Every candidate as a dense matrix; the first of the best on validation labels, run with all labels."""
    p, eye = dense_p().double(), torch.eye(7).double()
    candidates: dict[str, Tensor] = {}
    for alpha in ALPHAS:
        z = eye
        for _ in range(STEPS):
            z = alpha * p @ z + (1 - alpha) * eye
        candidates[f"alpha={alpha}"] = z
    candidates |= {f"hops={hops}": torch.linalg.matrix_power(p, hops) for hops in HOPS}
    y = label_matrix(LABELS, train, 2).double()
    hits = {name: int(((m @ y)[val].argmax(1) == LABELS[val]).sum()) for name, m in candidates.items()}
    best = max(hits, key=lambda name: hits[name])
    return candidates[best] @ label_matrix(LABELS, train | val, 2).double(), best


@pytest.mark.parametrize("val_nodes", [[0, 3], [1], [4], [0, 1, 3, 4]])
def test_the_variant_is_the_best_on_validation_labels_when_training_labels_are_spread(val_nodes: list[int]) -> None:
    val = torch.zeros(7, dtype=torch.bool)
    val[val_nodes] = True
    train = LABELLED & ~val
    mass, variant = long_form(train, val)
    found, chosen = propagate_labels(normalised(EDGES, 7), LABELS, train, val, classes=2, keep=1.0, flip=0.0)
    assert chosen == variant
    total = mass.sum(1, keepdim=True)
    expected = torch.where(total > 0, mass / total.clamp_min(1e-30), torch.full_like(mass, 0.5))
    assert torch.allclose(found.double(), expected, atol=1e-5)


def test_the_channel_of_randomized_response_is_inverted() -> None:
    """Shares 0.6 : 0.3 : 0.1 behind keep 0.5 and flip 0.25 come from (1.4, 0.2, -0.6), clipped and normalised."""
    found = shares_to_probabilities(torch.tensor([[6.0, 3.0, 1.0]]), 0.5, 0.25)
    assert torch.allclose(found, torch.tensor([[1.4 / 1.6, 0.2 / 1.6, 0.0]]), atol=1e-5)
    assert bool((found > 0).all())


def test_the_chosen_variant_is_reported_and_saved(tmp_path: Any) -> None:
    method = LabelPropagation(epsilon_y=2.0).fit(made.graph(), randomness=SeededRandomness(1))
    assert method.variant in {f"alpha={a}" for a in ALPHAS} | {f"hops={h}" for h in HOPS}
    method.save(tmp_path)
    assert LabelPropagation.load(tmp_path).variant == method.variant
