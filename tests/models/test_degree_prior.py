"""The prior of noisy degrees: the same numbers as one beta a person gives."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from graphveil.errors import InputError
from graphveil.models.degree_prior import degree_prior


def dense_prior(degrees: Tensor, rounds: int = 200) -> Tensor:
    """The prior [n, n] by one beta a person, all pairs side by side."""
    d = degrees.double().clamp(1, len(degrees) - 2)
    beta, limit = torch.zeros_like(d), 2 * math.log(len(d))
    for _ in range(rounds):
        terms = 1 / (beta.exp()[:, None] + (-beta).exp())
        beta = (d.log() - terms.fill_diagonal_(0).sum(dim=1).log()).clamp(-limit, limit)
    return torch.sigmoid(beta[:, None] + beta).fill_diagonal_(0)


def spread(degrees: Tensor) -> Tensor:
    """The grouped prior [n, n]."""
    prior = degree_prior(degrees)
    return torch.sigmoid(prior.logits()[prior.group][:, prior.group]).fill_diagonal_(0)


CASES = {
    "mixed": torch.randint(-3, 20, (40,), generator=torch.Generator().manual_seed(0)),
    "real": 4 * torch.randn(40, generator=torch.Generator().manual_seed(1)).double() + 5,
    "equal": torch.full((40,), 7),
    "zeros": torch.zeros(40, dtype=torch.int64),
    "negative": torch.full((40,), -5),
    "huge": torch.full((40,), 10**12),
    "one huge": torch.tensor([10**12] + [0] * 39),
    "half huge": torch.tensor([10**12] * 20 + [-4] * 20),
    "three": torch.tensor([0, 1, 9]),
}


@pytest.mark.parametrize("degrees", CASES.values(), ids=CASES)
def test_groups_give_what_one_beta_a_person_gives(degrees: Tensor) -> None:
    found = spread(degrees)
    assert torch.isfinite(found).all()
    assert torch.allclose(found, dense_prior(degrees), atol=1e-12, rtol=1e-9)


def test_directed_links_depend_on_the_sender_alone() -> None:
    degrees = torch.tensor([-2, 1, 5, 5, 300, 2])
    prior = degree_prior(degrees, directed=True)
    chances = torch.sigmoid(prior.logits()[prior.group][:, prior.group])
    assert torch.allclose(chances, (degrees.clamp(1, 4).double() / 5)[:, None].expand(6, 6))


@pytest.mark.parametrize(
    "degrees", [torch.ones(2), torch.ones(3, 3), torch.tensor([1.0, float("nan"), 2.0]), torch.full((4,), torch.inf)]
)
def test_what_is_no_list_of_degrees_is_refused(degrees: Tensor) -> None:
    with pytest.raises(InputError):
        degree_prior(degrees)
