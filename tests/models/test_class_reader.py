"""A network that reads all classes alike."""

from __future__ import annotations

import torch
from torch import Tensor

from graphveil.models.class_reader import ClassReader

N, C, P, Q = 20, 5, 4, 3
RENAMED = torch.tensor([3, 0, 4, 1, 2])


def drawn(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def reader(hidden: int = 8) -> ClassReader:
    """With a head that is not 0, as before any training."""
    network = ClassReader(P, Q, hidden, generator=torch.Generator().manual_seed(0))
    network.head.data = drawn(hidden, seed=1)
    return network


def test_classes_renamed_are_scores_renamed() -> None:
    own, common = drawn(N, C, P), drawn(N, Q, seed=2)
    network = reader()
    found, first = network(own, common), torch.eye(C)[0]
    assert torch.allclose(network(own[:, RENAMED], common), found[:, RENAMED], atol=1e-5)
    # Weights that know the place of a class are noticed: here the first has a score of its own.
    assert not torch.allclose(network(own[:, RENAMED], common) + first, (found + first)[:, RENAMED])
    other = own.clone()
    other[:, 0] += 1  # classes hear of each other, and of the node
    assert not torch.allclose(network(other, common)[:, 1:], found[:, 1:])
    assert not torch.allclose(network(own, common + 1), found)


def test_any_number_of_classes_and_an_untrained_reader_scores_by_the_mean() -> None:
    network = reader()
    own, common = drawn(N, 2, 9, P), drawn(N, 2, Q)
    together = network(own, common)
    assert together.shape == (N, 2, 9)
    assert torch.allclose(together[:, 1], network(own[:, 1], common[:, 1]), atol=1e-6)
    own = drawn(N, C, P)
    network = ClassReader(P, Q, 8, generator=torch.Generator().manual_seed(0))
    assert torch.allclose(network(own, drawn(N, Q)), own.mean(dim=2), atol=1e-6)
