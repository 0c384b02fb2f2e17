"""The network of mode "all-shares" as SecureML computes it: fixed point, polynomials for activations, plain descent.

    h^0 = sum_j X_j W_j,   h_i^k = tanh( [h_i^{k-1}, S_i h_i^{k-1}] W_i^k + b_i^k ),   z = sigmoid( mean_i h_i^K W + b )
    tanh x      x - x^3 / 3                            Taylor polynomials of degree 3 at 0, as the VFGNN paper takes
    sigmoid x   1/2 + x/4 - x^3 / 48
    product     A B  ->  a b 2^-f                      encodings with f fraction bits, exact modulo 2^64, then cut
    step        W <- W - m 2^r dW                      m = 1, 3, 5 or 7: the gradient is multiplied as it is cut

Left out is what shares cannot do cheaply: rows are not scaled to length 1, and nothing is divided as Adam would.
Holders, the dealer of their masks, a run in the clear and a plan are one program, with an `Arithmetic` each.
Sources: Mohassel, Zhang, "SecureML", IEEE S&P 2017, section 4; Chen et al., IJCAI 2022, arXiv 2005.11903.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from graphveil.federation.core.rate import SLOPE_BITS, Rate
from graphveil.federation.crypto.ring import FRACTION_BITS, encode, matmul
from graphveil.federation.crypto.truncation import Scale
from graphveil.federation.effects import Program

#: Public bounds of what is cut: 2^8 for products of values, 1 for products with slopes. The nearer, the rarer the
#: entries that a cut on shares loses (see `truncation`): one in 2^19 and one in 2^15.
VALUE_REACH, SLOPE_REACH = 1 << (2 * FRACTION_BITS + 8), 1 << (SLOPE_BITS + FRACTION_BITS)
VALUES, SLOPES = Scale(FRACTION_BITS, VALUE_REACH), Scale(FRACTION_BITS, SLOPE_REACH)
Multiply = Callable[[Tensor, Tensor], Tensor]


@dataclass(frozen=True)
class Masked:
    """A factor x of products, ring elements, with its mask u; the same in all products of one step."""

    share: Tensor  # of x
    opened: Tensor  # x - u, which all holders see
    mask: Tensor  # a share of u, at the dealer u itself

    @property
    def transposed(self) -> Masked:
        return Masked(*(part.T.contiguous() for part in (self.share, self.opened, self.mask)))

    def first(self, rows: int) -> Masked:
        """Return the first rows alone."""
        return Masked(self.share[:rows], self.opened[:rows], self.mask[:rows])


class Arithmetic(Protocol):
    """What a party does with ring elements of which it has a share, or, in the clear, all."""

    def public(self, values: Tensor) -> Tensor:
        """Return this party's share of ring elements that everybody knows."""

    def mask(self, share: Tensor) -> Program[Masked]:
        """Mask x, of which this party has a share, as a factor of products."""

    def product(self, a: Masked, b: Masked, multiply: Multiply) -> Program[Tensor]:
        """Return a share of a b, at the sum of their scales.

        Args:
            a, b: the factors, masked.
            multiply: of matrices, or of entries.
        """

    def by_constant(self, name: str, right: Tensor, *, transposed: bool = False) -> Program[Tensor]:
        """Return a share of A b, or A^T b, for a holder's own matrix A.

        Args:
            right: this party's share of b, int64 [n, .].
            transposed: whether it is A^T b.
        """

    def cut(self, share: Tensor, scale: Scale) -> Program[Tensor]:
        """Return a share of x 2^-bits, to within a unit.

        Args:
            share: of x, int64.
            scale: the bits that are cut off, and the bound of x.
        """

    def open(self, share: Tensor) -> Program[Tensor | None]:
        """Open z to the label holder; return it there, int64, and None at all others."""


@dataclass(frozen=True)
class _Activation:
    """c + a x - b x^3, whose slope is (d - x^2) 2^-bits; `constant`, `linear`, `cubic`, `top`: c, a, b, d."""

    constant: float
    linear: float
    cubic: float
    top: float
    bits: int


TANH = _Activation(0.0, 1.0, 1 / 3, 1.0, 0)
SIGMOID = _Activation(0.5, 1 / 4, 1 / 48, 4.0, 4)


def _step_of(party: Arithmetic, gradient: Tensor, rate: Rate, bits: int) -> Program[Tensor]:
    """Return a share of rate times a shared gradient, whose scale is 2^bits times that of values."""
    reach = rate.factor << (FRACTION_BITS + bits)
    return (yield from party.cut(gradient * rate.factor, Scale(bits - rate.power, reach)))


class _Layer:
    """activation(a W + b) of shares, and its descent; `shares` are those of all layers."""

    def __init__(self, shares: dict[str, Tensor], name: str, activation: _Activation, rate: Rate) -> None:
        self._shares, self._weight, self._bias = shares, f"{name} weight", f"{name} bias"
        self._activation, self._rate = activation, rate

    def forward(self, party: Arithmetic, a: Tensor) -> Program[Tensor]:
        """Return a share [n, out] for one of a [n, in]."""
        shape = self._activation
        self._input = yield from party.mask(a)
        self._factor = yield from party.mask(self._shares[self._weight])
        z = yield from party.cut((yield from party.product(self._input, self._factor, matmul)), VALUES)
        x = yield from party.mask(z + self._shares[self._bias])
        square = yield from party.cut((yield from party.product(x, x, torch.mul)), VALUES)
        top = party.public(encode(torch.full(square.shape, shape.top)))
        # Masked as d - x^2 and not as x^2: the way back multiplies by the slope, and is one opening cheaper.
        self._slope = yield from party.mask(top - square)
        slope_x = yield from party.cut((yield from party.product(self._slope, x, torch.mul)), VALUES)
        # (d - x^2) x in place of x^3: one product serves both ways.
        linear = shape.linear - shape.top * shape.cubic
        polynomial = _times(linear, x.share) + _times(shape.cubic, slope_x)
        constant = party.public(encode(torch.full(square.shape, shape.constant)))
        return (yield from party.cut(polynomial, VALUES)) + constant

    def backward(self, party: Arithmetic, slope: Tensor) -> Program[Tensor]:
        """Take a step of descent; return a share of the slope of the input of some rows.

        Args:
            slope: a share of the slope of the first rows of the output.
        """
        # Factors of `forward` have not changed: the masks that hid them then serve here too.
        g, rows = (yield from party.mask(slope)), len(slope)
        product = yield from party.product(self._slope.first(rows), g, torch.mul)
        scale = Scale(FRACTION_BITS + self._activation.bits, SLOPE_REACH)
        g = yield from party.mask((yield from party.cut(product, scale)))
        of_input = yield from party.product(g, self._factor.transposed, matmul)
        of_weight = yield from party.product(self._input.first(rows).transposed, g, matmul)
        of_bias = g.share.sum(dim=0, keepdim=True)
        # New tensors, never in place: whoever keeps the shares of a round keeps what they were.
        for name, gradient, bits in (
            (self._weight, of_weight, SLOPE_BITS),
            (self._bias, of_bias, SLOPE_BITS - FRACTION_BITS),
        ):
            step = yield from _step_of(party, gradient, self._rate, bits)
            self._shares[name] = self._shares[name] - step
        return (yield from party.cut(of_input, SLOPES))


def shapes_of(columns: tuple[int, ...], width: int, hops: int) -> dict[str, tuple[int, int]]:
    """Return the shape of every shared weight and bias, by name.

    Args:
        columns: of each holder's features.
        width: h.
        hops: K.
    """
    shapes = {features_of(holder): (count, width) for holder, count in enumerate(columns)}
    for holder in range(len(columns)):
        for hop in range(hops):
            layer = layer_of(holder, hop)
            shapes |= {f"{layer} weight": (2 * width, width), f"{layer} bias": (1, width)}
    return shapes | {f"{HIDDEN} weight": (width, width), f"{HIDDEN} bias": (1, width)}


class Network:
    """All shared layers: one first layer, K rounds over each holder's edges, their mean, and the hidden layer.

    Args:
        shares: a party's shares of weights and biases, by the names of `shapes_of`; replaced as the network trains.
        hops: K.
        first, rate: the rates of descent of the first layer and of all others.
    """

    def __init__(self, shares: Mapping[str, Tensor], holders: int, hops: int, *, first: Rate, rate: Rate) -> None:
        self.shares, self._first = dict(shares), first
        self._layers = [
            [_Layer(self.shares, layer_of(holder, hop), TANH, rate) for hop in range(hops)] for holder in range(holders)
        ]
        self._hidden = _Layer(self.shares, HIDDEN, SIGMOID, rate)

    def forward(self, party: Arithmetic, rows: Tensor) -> Program[Tensor]:
        """Return a share of z of some nodes, int64 [m, h].

        Args:
            rows: their numbers, int64 [m]; `backward` takes slopes of the first of them.
        """
        parts = []
        for holder in range(len(self._layers)):
            name = features_of(holder)
            parts.append((yield from party.by_constant(name, self.shares[name])))
        h = yield from party.cut(_sum(parts), VALUES)
        self._rows, self._nodes = rows, len(h)
        outputs = []
        for holder, layers in enumerate(self._layers):
            branch = h
            for layer in layers:
                near = yield from party.cut((yield from party.by_constant(means_of(holder), branch)), VALUES)
                pair = torch.cat([branch, near], dim=1)
                # The last layer works on each row by itself: only the rows of the result need be computed.
                branch = yield from layer.forward(party, pair[self._rows] if layer is layers[-1] else pair)
            outputs.append(branch)
        mean = yield from party.cut(_times(1 / len(outputs), _sum(outputs)), VALUES)
        return (yield from self._hidden.forward(party, mean))

    def backward(self, party: Arithmetic, slope: Tensor) -> Program[None]:
        """Take a step of descent in all layers.

        Args:
            slope: a share of the slope of z of the first rows, int64 [t, h].
        """
        of_mean = yield from self._hidden.backward(party, slope)
        slope = yield from party.cut(_times(1 / len(self._layers), of_mean), SLOPES)
        slopes = []
        for holder, layers in enumerate(self._layers):
            branch, width = slope, slope.shape[1]
            for layer in reversed(layers):
                of_pair = yield from layer.backward(party, branch)
                if layer is layers[-1]:
                    of_all = of_pair.new_zeros((self._nodes, 2 * width))
                    of_all[self._rows[: len(branch)]] = of_pair
                    of_pair = of_all
                near = of_pair[:, width:].contiguous()
                back = yield from party.by_constant(means_of(holder), near, transposed=True)
                branch = of_pair[:, :width] + (yield from party.cut(back, SLOPES))
            slopes.append(branch)
        slope = _sum(slopes)
        for holder in range(len(self._layers)):
            name = features_of(holder)
            gradient = yield from party.by_constant(name, slope, transposed=True)
            self.shares[name] = self.shares[name] - (yield from _step_of(party, gradient, self._first, SLOPE_BITS))


#: The name of the hidden layer; below, names of a holder's matrices and layers, by its number from 0.
HIDDEN = "hidden"


def features_of(holder: int) -> str:
    return f"features {holder}"


def means_of(holder: int) -> str:
    return f"means {holder}"


def layer_of(holder: int, hop: int) -> str:
    return f"layer {holder} {hop}"


def _sum(parts: list[Tensor]) -> Tensor:
    return sum(parts[1:], parts[0])


def _times(number: float, share: Tensor) -> Tensor:
    scaled: Tensor = share * round(number * 2**FRACTION_BITS)
    return scaled
