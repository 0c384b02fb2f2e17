"""The log-linear pool: what it weighs down, what it leaves out, and when more opinions are worth having."""

from __future__ import annotations

import torch
from torch import Tensor

from graphveil.models.pool import held_out, pool_weights, surely_better

NODES, CLASSES = 4_000, 3


def told() -> tuple[Tensor, Tensor]:
    """Log-scores that are right as they are, and labels drawn from them as log Pr[y' | class]."""
    generator = torch.Generator().manual_seed(1)
    scores = torch.randn(NODES, CLASSES, generator=generator)
    labels = torch.multinomial(torch.softmax(scores, dim=1), 1, generator=generator)[:, 0]
    return scores, torch.where(torch.nn.functional.one_hot(labels, CLASSES).bool(), 0.0, -20.0)


def noise() -> Tensor:
    return torch.randn(NODES, CLASSES, generator=torch.Generator().manual_seed(2))


def test_opinions_too_sure_are_set_right_and_those_that_say_nothing_weigh_nothing() -> None:
    """20 times too sure, as beliefs after loops are: the weight is a twentieth, to a tenth of it."""
    scores, heard = told()
    (weight,) = pool_weights(20 * scores[None], heard, torch.tensor([0.1]))
    assert abs(20 * float(weight) - 1) < 0.1
    right, wrong = pool_weights(torch.stack([scores, noise()]), heard, torch.tensor([0.5, 0.5]))
    assert abs(float(right) - 1) < 0.1
    assert abs(float(wrong)) < 0.15


def test_more_opinions_are_taken_for_what_they_say_alone() -> None:
    scores, heard = told()
    good = held_out(torch.stack([noise(), scores]), heard, torch.tensor([0.5, 0.5]))
    alone = held_out(noise()[None], heard, torch.tensor([1.0]))
    more = held_out(torch.stack([noise(), noise().roll(1, dims=0)]), heard, torch.tensor([0.5, 0.5]))
    assert surely_better(good, alone)
    assert not surely_better(alone, good)
    assert not surely_better(more, alone)
    assert not surely_better(alone, alone)


def test_no_label_is_judged_by_weights_it_chose() -> None:
    """One label in the last fold is turned round: the others' likelihoods in that fold stay what they were."""
    scores, heard = told()
    opinions, first = scores[None, :100], torch.tensor([0.5])
    changed = heard[:100].clone()
    changed[4] = changed[4].roll(1)
    before, after = held_out(opinions, heard[:100], first), held_out(opinions, changed, first)
    fold = torch.arange(100) % 5 == 4
    fold[4] = False
    assert torch.allclose(before[fold], after[fold], atol=1e-6)
    assert not torch.allclose(before[~fold], after[~fold], atol=1e-6)
