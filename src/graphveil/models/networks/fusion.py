"""A perceptron on features and, beside them, what noisy sums over neighbours say: one hidden layer, joined in it.

    h = selu( X W + Z V + b ),      logits = h W' + b'

Features X [n, d] stay sparse; Z [n, k] is small and dense.  Both are learned together, so that a feature which only
tells training nodes apart does not drown what neighbours say.  Shapes: h [n, hidden], logits [n, c].
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import torch
from torch import Tensor, nn
from torch.nn import functional

from graphveil.aggregation import Inputs
from graphveil.models.networks.layers import dropout, glorot

#: Rows of a large hidden layer that are worked on at once.
_ROWS: Final = 1 << 16


def beside(sums: Sequence[Tensor], scale: float) -> Tensor:
    """Return Z [n, 2 c times sums]: how much of each class each sum holds, and in which proportion, standardised.

    Args:
        sums: H [n, c] each, released; scale: the noise of an entry; below 1 counts as 1.
    """
    # Below one deviation a count is mostly noise: asinh is linear there, and logarithmic in what stands out.
    scale = max(scale, 1.0)
    columns = [part for h in sums for part in (torch.asinh(h / scale), h / (h.norm(dim=1, keepdim=True) + 1e-6))]
    # Of the released sums and not of the true ones: standardising is post-processing.
    return standardised(torch.cat(columns, dim=1))


def standardised(z: Tensor) -> Tensor:
    """Return columns with mean 0 and deviation 1 over the nodes."""
    standard: Tensor = (z - z.mean(dim=0)) / (z.std(dim=0, correction=0) + 1e-6)
    return standard


class Fusion(nn.Module):
    """One hidden layer; in `train` the "structure" is Z [n, k], which may have no columns.

    Attributes:
        whole: values of a hidden layer up to which all nodes are worked on at once: 262,144 nodes at 64 columns.
    """

    whole = 1 << 24

    def __init__(
        self, dimension: int, beside: int, hidden: int, classes: int, dropout: float, *, generator: torch.Generator
    ) -> None:
        super().__init__()
        self.dropout = dropout
        self.weight1 = glorot((dimension, hidden), generator)
        self.beside = glorot((max(beside, 1), hidden), generator)
        self.bias1 = nn.Parameter(torch.zeros(hidden))
        self.weight2 = glorot((hidden, classes), generator)
        self.bias2 = nn.Parameter(torch.zeros(classes))

    def first(self, inputs: Inputs, z: Tensor) -> Tensor:
        """Return the hidden layer before its activation [n, hidden].

        Args:
            z: [n, k] what stands beside the features, k from 0.
        """
        # In place: the hidden layer of all nodes is the largest array here, and each further copy of it costs.
        joined = inputs.linear(self.weight1).add_(self.bias1)
        return joined if z.shape[1] == 0 else joined.addmm_(z, self.beside)

    def rest(self, first: Tensor, z: Tensor) -> Tensor:
        """Return the logits [n, classes].

        Args:
            first: [n, hidden], what `first` gave; z: not read.
        """
        if first.numel() <= self.whole:
            return self._scores(first)
        scored: Tensor = _ByParts.apply(self._scores, first, self.weight2, self.bias2)  # type: ignore[no-untyped-call]
        return scored

    def _scores(self, first: Tensor) -> Tensor:
        h = dropout(functional.selu(first), self.dropout, self.training)
        return h @ self.weight2 + self.bias2


class _ByParts(torch.autograd.Function):
    """A function of rows that do not read each other, part by part: what a part needs for its slope is made again when
    that is asked for, with the same dropout, and is not kept.
    """

    @staticmethod
    def forward(ctx: Any, function: Callable[[Tensor], Tensor], rows: Tensor, *weights: Tensor) -> Tensor:
        """Return function(rows) [n, c] for `rows` [n, h]; `weights` are what else it reads and learns."""
        ctx.function, ctx.seed = function, int(torch.randint(1 << 62, ()))
        ctx.save_for_backward(rows, *weights)
        parts = [_with_dropout_of(ctx.seed + part.start, function, rows[part]) for part in _parts(rows)]
        return torch.cat(parts)

    @staticmethod
    def backward(ctx: Any, *slopes: Tensor) -> tuple[Tensor | None, ...]:
        rows, *weights = ctx.saved_tensors
        to_rows, to_weights = torch.empty_like(rows), [torch.zeros_like(weight) for weight in weights]
        for part in _parts(rows):
            some = rows[part].detach().requires_grad_()
            with torch.enable_grad():
                scored = _with_dropout_of(ctx.seed + part.start, ctx.function, some)
            to_rows[part], *own = torch.autograd.grad(scored, (some, *weights), slopes[0][part])
            for total, slope in zip(to_weights, own, strict=True):
                total += slope
        return None, to_rows, *to_weights


def _parts(rows: Tensor) -> list[slice]:
    return [slice(start, start + _ROWS) for start in range(0, len(rows), _ROWS)]


def _with_dropout_of(seed: int, function: Callable[[Tensor], Tensor], rows: Tensor) -> Tensor:
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return function(rows)
