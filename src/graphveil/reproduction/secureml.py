"""The network of a federation in the arithmetic of SecureML: fixed point, and polynomials for activations.

    product     A B  ->  (a b + 2^(f-1)) >> f          a, b: encodings with f fraction bits, exact modulo 2^64
    tanh x      x - x^3 / 3                            Taylor polynomials of degree 3 at 0, as the VFGNN paper takes
    sigmoid x   1/2 + x/4 - x^3 / 48

This is no protocol: one process has every number, and it says what the arithmetic costs in accuracy, not in time or
bytes.  Forward and backward products, also those within activations, are the ring's.  The loss and the optimiser
compute in floating point, as does the scaling of embeddings to length 1, which shares would need a division for.
Sources: Mohassel, Zhang, "SecureML", IEEE S&P 2017, section 4.1; Chen et al., IJCAI 2022, arXiv 2005.11903.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import scipy.sparse
import torch
from torch import Tensor, nn
from torch.nn import functional

from graphveil.aggregation.sparse import SparseMatrix
from graphveil.errors import InputError
from graphveil.federation.core.networks import Combination, Propagation
from graphveil.federation.crypto.products import transpose
from graphveil.federation.crypto.ring import FRACTION_BITS, RingMatrix, decode, encode, matmul
from graphveil.models.dropout import dropout

#: Of slopes: a node's share of the loss is far below 2^-18, and the room above is not needed.
SLOPE_BITS = 30


def cut(product: Tensor) -> Tensor:
    """Return the nearest x 2^-f: shares are cut to within one unit of it, up or down, without a bias.

    Args:
        product: x, at scale 2^2f, int64 of any shape.
    """
    return (product + (1 << (FRACTION_BITS - 1))) >> FRACTION_BITS


def encode_matrix(matrix: SparseMatrix) -> RingMatrix:
    """Return a constant matrix as ring elements, CSR."""
    rows = matrix.forward
    parts = (encode(rows.values).numpy(), rows.indices.numpy(), rows.starts.numpy())
    return scipy.sparse.csr_array(parts, shape=matrix.shape)


class _Pair(Protocol):
    factors: tuple[Tensor, Tensor]


class _Squared(Protocol):
    square: Tensor


class _Fixed(Protocol):
    constant: RingMatrix


class _Product(torch.autograd.Function):
    """A B of two trained factors."""

    @staticmethod
    def forward(ctx: _Pair, a: Tensor, b: Tensor) -> Tensor:
        ctx.factors = encode(a), encode(b)
        return decode(cut(matmul(*ctx.factors)))

    @staticmethod
    def backward(ctx: _Pair, slope: Tensor) -> tuple[Tensor, Tensor]:
        left, right = ctx.factors
        g = encode(slope, SLOPE_BITS)
        to_left, to_right = matmul(g, right.T.contiguous()), matmul(left.T.contiguous(), g)
        return decode(cut(to_left), SLOPE_BITS), decode(cut(to_right), SLOPE_BITS)


class _Cube(torch.autograd.Function):
    """x^3 entry by entry, as two products of shares; its slope 3 x^2 g is a third and a public number."""

    @staticmethod
    def forward(ctx: _Squared, x: Tensor) -> Tensor:
        ring = encode(x)
        ctx.square = cut(ring * ring)
        return decode(cut(ctx.square * ring))

    @staticmethod
    def backward(ctx: _Squared, slope: Tensor) -> Tensor:
        return decode(cut(3 * ctx.square * encode(slope, SLOPE_BITS)), SLOPE_BITS)


class _ByConstant(torch.autograd.Function):
    """A B of a constant A, which takes no slope."""

    @staticmethod
    def forward(ctx: _Fixed, constant: RingMatrix, b: Tensor) -> Tensor:
        ctx.constant = constant
        return decode(cut(matmul(constant, encode(b))))

    @staticmethod
    def backward(ctx: _Fixed, slope: Tensor) -> tuple[None, Tensor]:
        return None, decode(cut(matmul(transpose(ctx.constant), encode(slope, SLOPE_BITS))), SLOPE_BITS)


def product(a: Tensor, b: Tensor) -> Tensor:
    """Return a b [n, h] for a [n, d] and b [d, h], in fixed point forwards and backwards."""
    found: Tensor = _Product.apply(a, b)  # type: ignore[no-untyped-call]
    return found


def by_constant(constant: RingMatrix, b: Tensor) -> Tensor:
    """Return constant b [n, h] for a CSR constant [n, d] and b [d, h]."""
    found: Tensor = _ByConstant.apply(constant, b)  # type: ignore[no-untyped-call]
    return found


def _cube(x: Tensor) -> Tensor:
    found: Tensor = _Cube.apply(x)  # type: ignore[no-untyped-call]
    return found


def tanh(x: Tensor) -> Tensor:
    """Return x - x^3 / 3, rounded to fixed point where it enters the next product."""
    return x - _cube(x) / 3


def sigmoid(x: Tensor) -> Tensor:
    """Return 1/2 + x/4 - x^3 / 48."""
    return 0.5 + x / 4 - _cube(x) / 48


def propagate(propagation: Propagation, h: Tensor, structure: RingMatrix) -> Tensor:
    """Return h^K [n, d] of a network's weights for "sage", as its own forward does with tanh.

    Args:
        h: h^0, float32 [n, d]. structure: means over neighbours, CSR [n, n].
    """
    for weight, bias in zip(propagation.weights, propagation.biases, strict=True):
        h = tanh(product(torch.cat([h, by_constant(structure, h)], dim=1), weight) + bias)
    return functional.normalize(h, dim=1)


class FixedCombination(nn.Module):
    """The mean of the holders' embeddings and the hidden layers of a combination, on its weights."""

    def __init__(self, inner: Combination) -> None:
        super().__init__()
        if inner.kind != "mean":
            raise InputError(f"combination {inner.kind!r} in fixed point", allowed="mean")
        self.inner = inner

    def forward(self, embeddings: Sequence[Tensor]) -> Tensor:
        """Return z_L [n, d]."""
        z = torch.stack(list(embeddings)).mean(dim=0)
        for weight, bias in zip(self.inner.weights, self.inner.biases, strict=True):
            z = dropout(sigmoid(product(z, weight) + bias), self.inner.dropout, self.training)
        return z
