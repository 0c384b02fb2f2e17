"""The network of mode "all-shares" as SecureML computes it: fixed point, polynomials for activations, plain descent.

    h^0 = sum_j X_j W_j,   h_i^k = tanh( [h_i^{k-1}, S_i h_i^{k-1}] W_i^k + b_i^k ),   z = sigmoid( mean_i h_i^K W + b )
    tanh x      x - x^3 / 3                            Taylor polynomials of degree 3 at 0, as the VFGNN paper takes
    sigmoid x   1/2 + x/4 - x^3 / 48
    product     A B  ->  a b 2^-f                      encodings with f fraction bits, exact modulo 2^64, then cut
    step        W <- W - m 2^r dW                      m = 1, 3, 5 or 7: the cut of the gradient takes it along

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
    """Ring elements that are about to be multiplied, with what hides them; used in all products of one step."""

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

    def masked(self, share: Tensor) -> Program[Masked]:
        """Make a factor of products."""

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
            scale: bits to cut off, and the bound of x.
        """

    def opened(self, share: Tensor) -> Program[Tensor | None]:
        """Show the label holder z, and return it there, int64; None at all others."""


@dataclass(frozen=True)
class _Activation:
    """c + a x - b x^3, whose slope is (d - x^2) 2^-bits."""

    constant: float
    linear: float
    cubic: float
    top: float
    bits: int


TANH = _Activation(0.0, 1.0, 1 / 3, 1.0, 0)
SIGMOID = _Activation(0.5, 1 / 4, 1 / 48, 4.0, 4)


def _step_of(party: Arithmetic, slope: Tensor, rate: Rate, bits: int) -> Program[Tensor]:
    """Return a share of the step along a shared slope, whose scale lies `bits` above that of values."""
    reach = rate.factor << (FRACTION_BITS + bits)
    return (yield from party.cut(slope * rate.factor, Scale(bits - rate.power, reach)))


class _Layer:
    """activation(a W + b) of shares, and its descent; `shares` are those of all layers."""

    def __init__(self, shares: dict[str, Tensor], name: str, activation: _Activation, rate: Rate) -> None:
        self._shares, self._weight, self._bias = shares, f"{name} weight", f"{name} bias"
        self._activation, self._rate = activation, rate

    def forward(self, party: Arithmetic, a: Tensor) -> Program[Tensor]:
        """Return a share [n, out] for one of a [n, in]."""
        shape = self._activation
        self._input = yield from party.masked(a)
        self._factor = yield from party.masked(self._shares[self._weight])
        z = yield from party.cut((yield from party.product(self._input, self._factor, matmul)), VALUES)
        x = yield from party.masked(z + self._shares[self._bias])
        square = yield from party.cut((yield from party.product(x, x, torch.mul)), VALUES)
        top = party.public(encode(torch.full(square.shape, shape.top)))
        # Masked as d - x^2 and not as x^2: the way back multiplies by the slope, and is one opening cheaper.
        self._slope = yield from party.masked(top - square)
        bent = yield from party.cut((yield from party.product(self._slope, x, torch.mul)), VALUES)
        # (d - x^2) x in place of x^3: one product serves both ways.
        linear = shape.linear - shape.top * shape.cubic
        polynomial = _times(linear, x.share) + _times(shape.cubic, bent)
        start = party.public(encode(torch.full(square.shape, shape.constant)))
        return (yield from party.cut(polynomial, VALUES)) + start

    def backward(self, party: Arithmetic, slope: Tensor) -> Program[Tensor]:
        """Step down, from a share of the slope of the first rows, and return that of the slope of their input."""
        # Factors of the way forward are as they were: the masks that hid them then serve here too.
        g, rows = (yield from party.masked(slope)), len(slope)
        bent = yield from party.product(self._slope.first(rows), g, torch.mul)
        bits = FRACTION_BITS + self._activation.bits
        g = yield from party.masked((yield from party.cut(bent, Scale(bits, SLOPE_REACH))))
        back = yield from party.product(g, self._factor.transposed, matmul)
        pull = yield from party.product(self._input.first(rows).transposed, g, matmul)
        shares, total = self._shares, g.share.sum(dim=0, keepdim=True)
        # New tensors, never in place: whoever keeps the shares of a round keeps what they were.
        for name, part, over in ((self._weight, pull, SLOPE_BITS), (self._bias, total, SLOPE_BITS - FRACTION_BITS)):
            shares[name] = shares[name] - (yield from _step_of(party, part, self._rate, over))
        return (yield from party.cut(back, SLOPES))


def shapes_of(columns: tuple[int, ...], width: int, hops: int) -> dict[str, tuple[int, int]]:
    """Return the shape of every shared weight and bias, by name.

    Args:
        columns: of each holder's features.
        width: h.
        hops: K.
    """
    shapes = {features_of(place): (wide, width) for place, wide in enumerate(columns)}
    for place in range(len(columns)):
        for hop in range(hops):
            layer = layer_of(place, hop)
            shapes |= {f"{layer} weight": (2 * width, width), f"{layer} bias": (1, width)}
    return shapes | {f"{HIDDEN} weight": (width, width), f"{HIDDEN} bias": (1, width)}


class Network:
    """All shared layers: one first layer, K rounds over each holder's edges, their mean, and the hidden layer.

    Args:
        shares: a party's shares of weights and biases, by the names of `shapes_of`; they are replaced as it trains.
        hops: K.
        first, rate: of descent, of the first layer and of all others.
    """

    def __init__(self, shares: Mapping[str, Tensor], holders: int, hops: int, *, first: Rate, rate: Rate) -> None:
        self.shares, self._first = dict(shares), first
        self._layers = [
            [_Layer(self.shares, layer_of(place, hop), TANH, rate) for hop in range(hops)] for place in range(holders)
        ]
        self._hidden = _Layer(self.shares, HIDDEN, SIGMOID, rate)

    def forward(self, party: Arithmetic, rows: Tensor) -> Program[Tensor]:
        """Return a share of z of some nodes, int64 [m, h].

        Args:
            rows: their numbers, int64 [m]; the first may be gone back from.
        """
        parts = []
        for place in range(len(self._layers)):
            name = features_of(place)
            parts.append((yield from party.by_constant(name, self.shares[name])))
        h = yield from party.cut(_sum(parts), VALUES)
        self._rows, self._nodes = rows, len(h)
        outputs = []
        for place in range(len(self._layers)):
            layers, branch = self._layers[place], h
            for layer in layers:
                near = yield from party.cut((yield from party.by_constant(means_of(place), branch)), VALUES)
                pair = torch.cat([branch, near], dim=1)
                # The last layer works on each row by itself: of rows that nobody looks at it need not be computed.
                branch = yield from layer.forward(party, pair[self._rows] if layer is layers[-1] else pair)
            outputs.append(branch)
        mean = yield from party.cut(_times(1 / len(outputs), _sum(outputs)), VALUES)
        return (yield from self._hidden.forward(party, mean))

    def backward(self, party: Arithmetic, slope: Tensor) -> Program[None]:
        """Step down.

        Args:
            slope: its share of the slope of z of the first rows, int64 [t, h].
        """
        whole = yield from self._hidden.backward(party, slope)
        slope = yield from party.cut(_times(1 / len(self._layers), whole), SLOPES)
        slopes = []
        for place in range(len(self._layers)):
            layers, branch, width = self._layers[place], slope, slope.shape[1]
            for layer in reversed(layers):
                wide = yield from layer.backward(party, branch)
                if layer is layers[-1]:
                    of_all = wide.new_zeros((self._nodes, 2 * width))
                    of_all[self._rows[: len(branch)]] = wide
                    wide = of_all
                back = yield from party.by_constant(means_of(place), wide[:, width:].contiguous(), transposed=True)
                branch = wide[:, :width] + (yield from party.cut(back, SLOPES))
            slopes.append(branch)
        slope = _sum(slopes)
        for place in range(len(self._layers)):
            name = features_of(place)
            pull = yield from party.by_constant(name, slope, transposed=True)
            self.shares[name] = self.shares[name] - (yield from _step_of(party, pull, self._first, SLOPE_BITS))


def features_of(place: int) -> str:
    return f"features {place}"


def means_of(place: int) -> str:
    return f"means {place}"


HIDDEN = "hidden"


def layer_of(place: int, hop: int) -> str:
    return f"layer {place} {hop}"


def _sum(parts: list[Tensor]) -> Tensor:
    return sum(parts[1:], parts[0])


def _times(number: float, share: Tensor) -> Tensor:
    scaled: Tensor = share * round(number * 2**FRACTION_BITS)
    return scaled
