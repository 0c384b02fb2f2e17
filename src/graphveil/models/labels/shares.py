"""Softmax of rows that hold a few numbers each, for which torch's own, looping along a row, is several times slower."""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphveil.runtime.late import torch

if TYPE_CHECKING:
    from torch import Tensor


def shares_of(scores: Tensor) -> Tensor:
    """Return softmax(scores) [n, c]; for numbers that need no gradient."""
    weights = (scores - scores.amax(dim=1, keepdim=True)).exp_()
    return weights.div_(weights.sum(dim=1, keepdim=True))


def log_shares_of(scores: Tensor) -> Tensor:
    """Return log softmax(scores) [n, c]."""
    return scores - torch.logsumexp(scores, dim=1, keepdim=True)


def class_softmax(logits: Tensor) -> Tensor:
    """Return softmax over the classes of logits [n, c], with classes as rows while it is taken; differentiable."""
    return torch.nn.functional.softmax(logits.T.contiguous(), dim=0).T
