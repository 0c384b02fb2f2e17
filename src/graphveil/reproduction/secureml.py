"""VFGNN's network as SecureML computes it: fixed point, polynomials for activations, plain descent, all on shares.

    h^0 = sum_j X_j W_j,   h_i^k = tanh( [h_i^{k-1}, S_i h_i^{k-1}] W_i^k + b_i^k ),   z = sigmoid( mean_i h_i^K W + b )
    tanh x      x - x^3 / 3                            Taylor polynomials of degree 3 at 0, as the VFGNN paper takes
    sigmoid x   1/2 + x/4 - x^3 / 48
    product     A B  ->  a b 2^-f                      encodings with f fraction bits, exact modulo 2^64, then cut
    step        W <- W - 2^r dW                        a power of two: the cut of the gradient takes it along

The label holder alone sees z: it drops entries out, trains the last layer and its loss in floating point, and gives the
slopes of z back.  What shares cannot do cheaply is left out: rows are not scaled to length 1, and nothing is divided as
Adam would.  Holders, the dealer of their masks and a run in the clear are one program, with an `Arithmetic` each.
Sources: Mohassel, Zhang, "SecureML", IEEE S&P 2017, section 4; Chen et al., IJCAI 2022, arXiv 2005.11903.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import scipy.sparse
import torch
from torch import Tensor
from torch.nn import functional

from graphveil.errors import InputError
from graphveil.federation.core.messages import simulate
from graphveil.federation.core.networks import Combination, OutputLayer, Propagation
from graphveil.federation.crypto.products import transpose
from graphveil.federation.crypto.ring import FRACTION_BITS, RingMatrix, decode, encode, matmul
from graphveil.federation.crypto.truncation import Scale
from graphveil.federation.effects import Program
from graphveil.federation.modes.holder import ring_matrix
from graphveil.graphs import Split
from graphveil.models import structure_for
from graphveil.models.networks.layers import glorot
from graphveil.reproduction.clear import Outcome, Part, Plan

#: Of slopes: a node's share of the loss is far below 2^-18, and the room above is not needed.
SLOPE_BITS = 30
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


class Arithmetic(Protocol):
    """What a party does with ring elements of which it has a share, or, in the clear, all."""

    def public(self, values: Tensor) -> Tensor:
        """Return this party's share of ring elements that everybody knows."""

    def masked(self, share: Tensor) -> Program[Masked]:
        """Make a factor of products."""

    def product(self, a: Masked, b: Masked, multiply: Multiply) -> Program[Tensor]:
        """Return a share of a b, at the sum of their scales; `multiply` is of matrices, or of entries."""

    def by_constant(self, name: str, right: Tensor, *, transposed: bool = False) -> Program[Tensor]:
        """Return a share of A b, or A^T b, for a holder's own matrix of that name."""

    def cut(self, share: Tensor, scale: Scale) -> Program[Tensor]:
        """Return a share of x 2^-bits, to within a unit."""

    def answered(self, share: Tensor) -> Program[Tensor]:
        """Show the label holder z, and return a share of its slopes."""


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


class _Layer:
    """activation(a W + b) of shares, and its descent."""

    def __init__(self, weight: Tensor, bias: Tensor, activation: _Activation, rate: int) -> None:
        self._weight, self._bias, self._activation, self._rate = weight, bias, activation, rate

    def forward(self, party: Arithmetic, a: Tensor) -> Program[Tensor]:
        """Return a share [n, out] for one of a [n, in]."""
        shape = self._activation
        self._input = yield from party.masked(a)
        self._factor = yield from party.masked(self._weight)
        z = yield from party.cut((yield from party.product(self._input, self._factor, matmul)), VALUES)
        x = yield from party.masked(z + self._bias)
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
        """Step down, and return a share of the slope of the input."""
        # Factors of the way forward are as they were: the masks that hid them then serve here too.
        g = yield from party.masked(slope)
        bent = yield from party.product(self._slope, g, torch.mul)
        bits = FRACTION_BITS + self._activation.bits
        g = yield from party.masked((yield from party.cut(bent, Scale(bits, SLOPE_REACH))))
        back = yield from party.product(g, self._factor.transposed, matmul)
        pull = yield from party.product(self._input.transposed, g, matmul)
        self._weight = self._weight - (yield from party.cut(pull, step_of(self._rate)))
        shift = Scale(SLOPE_BITS - FRACTION_BITS - self._rate, 1 << SLOPE_BITS)
        self._bias = self._bias - (yield from party.cut(g.share.sum(dim=0, keepdim=True), shift))
        return (yield from party.cut(back, SLOPES))


class _First:
    """sum_j X_j W_j of each holder's own features, and its descent."""

    def __init__(self, weights: Sequence[Tensor], rate: int) -> None:
        self._weights, self._rate = list(weights), rate

    def forward(self, party: Arithmetic) -> Program[Tensor]:
        """Return a share of h^0 [n, d]."""
        parts = []
        for place, weight in enumerate(self._weights):
            parts.append((yield from party.by_constant(features_of(place), weight)))
        return (yield from party.cut(sum(parts[1:], parts[0]), VALUES))

    def backward(self, party: Arithmetic, slope: Tensor) -> Program[None]:
        for place, weight in enumerate(self._weights):
            pull = yield from party.by_constant(features_of(place), slope, transposed=True)
            self._weights[place] = weight - (yield from party.cut(pull, step_of(self._rate)))


class _Branch:
    """A holder's rounds: a layer of each node's row and its neighbours' mean."""

    def __init__(self, place: int, layers: Sequence[_Layer], width: int) -> None:
        self._name, self._layers, self._width = means_of(place), layers, width

    def forward(self, party: Arithmetic, h: Tensor) -> Program[Tensor]:
        """Return a share of h^K [n, d]."""
        for layer in self._layers:
            neighbour_mean = yield from party.cut((yield from party.by_constant(self._name, h)), VALUES)
            h = yield from layer.forward(party, torch.cat([h, neighbour_mean], dim=1))
        return h

    def backward(self, party: Arithmetic, slope: Tensor) -> Program[Tensor]:
        """Step down, and return a share of the slope of h^0."""
        for layer in reversed(self._layers):
            slopes = yield from layer.backward(party, slope)
            neighbour_slope = slopes[:, self._width :].contiguous()
            back = yield from party.by_constant(self._name, neighbour_slope, transposed=True)
            slope = slopes[:, : self._width] + (yield from party.cut(back, SLOPES))
        return slope


class _Network:
    """All shared layers: one first layer, a branch for each holder, their mean, and the hidden layer."""

    def __init__(self, party: Arithmetic, start: Start, rate: int) -> None:
        def layer(weight: Tensor, bias: Tensor, activation: _Activation) -> _Layer:
            shares = [party.public(encode(number.detach())) for number in (weight, bias[None])]
            return _Layer(shares[0], shares[1], activation, rate)

        self._first = _First([party.public(encode(weight.detach())) for weight in start.first], rate)
        self._branches = []
        for place, inner in enumerate(start.propagations):
            pairs = zip(inner.weights, inner.biases, strict=True)
            width = inner.biases[0].shape[0]
            self._branches.append(_Branch(place, [layer(*pair, TANH) for pair in pairs], width))
        self._hidden = layer(start.combination.weights[0], start.combination.biases[0], SIGMOID)

    def forward(self, party: Arithmetic) -> Program[Tensor]:
        """Return a share of z [n, d]."""
        h = yield from self._first.forward(party)
        outputs = []
        for branch in self._branches:
            outputs.append((yield from branch.forward(party, h)))
        mean = yield from party.cut(_times(1 / len(outputs), sum(outputs[1:], outputs[0])), VALUES)
        return (yield from self._hidden.forward(party, mean))

    def backward(self, party: Arithmetic, slope: Tensor) -> Program[None]:
        """Step down, from a share of the slope of z."""
        whole = yield from self._hidden.backward(party, slope)
        slope = yield from party.cut(_times(1 / len(self._branches), whole), SLOPES)
        slopes = []
        for branch in self._branches:
            slopes.append((yield from branch.backward(party, slope)))
        yield from self._first.backward(party, sum(slopes[1:], slopes[0]))


@dataclass(frozen=True)
class Start:
    """What a run begins from: drawn from its seed, and known to everybody."""

    first: Sequence[Tensor]
    propagations: Sequence[Propagation]
    combination: Combination
    head: OutputLayer

    @classmethod
    def of(cls, plan: Plan, columns: Sequence[int], classes: int, seed: int) -> Start:
        """Draw the weights; InputError for a plan that shares have no arithmetic for.

        Args:
            plan, classes, seed: of the run.
            columns: of each holder's features.
        """
        if (plan.combine, plan.layers) != ("mean", 1):
            raise InputError(f"{plan.combine}, {plan.layers} hidden layers", allowed="mean, one hidden layer")
        # Everybody may know where training starts: of what is computed from private data, z alone is opened.
        generator = torch.Generator().manual_seed(seed)
        head = OutputLayer(plan.width, classes, generator=generator)
        combination = Combination("mean", len(columns), plan.width, 1, plan.dropout, generator=generator)
        propagations = [Propagation("sage", plan.width, plan.hops, generator=generator) for _ in columns]
        # Drawn for all columns at once: the variance is that of one matrix, however many holders have parts of it.
        whole, ends = glorot((sum(columns), plan.width), generator).detach(), itertools.accumulate(columns)
        first = [whole[end - wide : end] for wide, end in zip(columns, ends, strict=True)]
        return cls(first, propagations, combination, head)


class LabelHolder:
    """The last layer and the loss, in floating point at the one who has the labels.

    `best` is what the epoch that validates best reached, `z` that of the last epoch, float32 [n, d].
    """

    def __init__(self, plan: Plan, head: OutputLayer, labels: Tensor, split: Split, seed: int) -> None:
        self._head, self._labels, self._split, self._rate = head, labels, split, plan.dropout
        self._adam = torch.optim.Adam(head.parameters(), lr=plan.learning_rate, weight_decay=plan.weight_decay)
        self._rows = split.train.nonzero().squeeze(1)
        self._generator = torch.Generator().manual_seed(seed)
        self._epoch, self._least = 0, 0.0
        self.best, self.z = Outcome(-1.0, 0.0, 0), torch.empty(0)

    def slopes(self, z: Tensor) -> Tensor:
        """Learn from z [n, d], keep the epoch that validates best, and return the slopes of the loss [n, d]."""
        self._epoch, self.z = self._epoch + 1, z
        # Judged before the step, so that z and the last layer are of one and the same epoch.
        self._keep(z)
        leaf = z[self._rows].requires_grad_()
        # Dropped out here, where z is known: on shares it would be a product more.
        survives = torch.rand(leaf.shape, generator=self._generator) >= self._rate
        logits = self._head(leaf * survives / (1 - self._rate))
        self._adam.zero_grad()
        loss = functional.cross_entropy(logits, self._labels[self._rows])
        loss.backward()  # type: ignore[no-untyped-call]
        self._adam.step()
        if leaf.grad is None:
            raise RuntimeError("the loss does not depend on z")
        return torch.zeros_like(z).index_copy(0, self._rows, leaf.grad)

    @torch.no_grad()
    def _keep(self, z: Tensor) -> None:
        logits, split = self._head(z), self._split
        hit = logits.argmax(dim=1) == self._labels
        val, test = (float(hit[mask].float().mean()) for mask in (split.val, split.test))
        error = float(functional.cross_entropy(logits[split.val], self._labels[split.val]))
        if (val, -error) > (self.best.val, -self._least):
            self.best, self._least = Outcome(val, test, self._epoch), error


def train(party: Arithmetic, start: Start, plan: Plan) -> Program[None]:
    """Train the shared layers: what every party runs.

    Args:
        party: its arithmetic.
        start, plan: the same at all parties.
    """
    network = _Network(party, start, rate_bits(plan))
    for _ in range(plan.epochs):
        z = yield from network.forward(party)
        yield from network.backward(party, (yield from party.answered(z)))


class _Clear:
    """The arithmetic of one party that has every number: what shares add up to."""

    def __init__(self, matrices: Mapping[str, RingMatrix], labels: LabelHolder) -> None:
        self._matrices, self._labels = dict(matrices), labels
        # Turned round once and not in each step.
        self._transposed = {name: transpose(matrix) for name, matrix in matrices.items()}

    def public(self, values: Tensor) -> Tensor:
        return values

    def masked(self, share: Tensor) -> Program[Masked]:
        yield from ()
        return Masked(share, share, share)

    def product(self, a: Masked, b: Masked, multiply: Multiply) -> Program[Tensor]:
        yield from ()
        return multiply(a.share, b.share)

    def by_constant(self, name: str, right: Tensor, *, transposed: bool = False) -> Program[Tensor]:
        yield from ()
        return matmul((self._transposed if transposed else self._matrices)[name], right)

    def cut(self, share: Tensor, scale: Scale) -> Program[Tensor]:
        yield from ()
        if int(share.abs().max()) >= scale.reach:
            raise InputError("training leaves the room of the fixed point", remedy="lower shared_rate")
        # To the nearest unit: on shares a cut goes up or down by chance, and is right in the mean.
        return (share + (1 << (scale.bits - 1))) >> scale.bits

    def answered(self, share: Tensor) -> Program[Tensor]:
        yield from ()
        return encode(self._labels.slopes(decode(share)), SLOPE_BITS)


def run_in_clear(plan: Plan, parts: Sequence[Part], labels: Tensor, split: Split, seed: int) -> LabelHolder:
    """Train with every number in one place, for the accuracy that shares reach; return the label holder.

    Args:
        plan: `shared_rate` is the rate of all shared layers, a power of two.
        parts: features and edges of each holder.
        labels: int64 [n].
        split: who trains, validates and tests.
        seed: of weights and dropout.
    """
    start = Start.of(plan, [features.shape[1] for features, _ in parts], int(labels.max()) + 1, seed)
    own = LabelHolder(plan, start.head, labels, split, seed)
    matrices = [matrices_of(place, part) for place, part in enumerate(parts)]
    party = _Clear({name: matrix for each in matrices for name, matrix in each.items()}, own)
    simulate({"everything": train(party, start, plan)})
    return own


def matrices_of(place: int, part: Part) -> dict[str, RingMatrix]:
    """Return what a holder multiplies with, by name: its features, and the means over its neighbours.

    Args:
        place: the holder's number, from 0.
        part: features and edges.
    """
    features, edges = part
    rows = structure_for("sage", edges, features.shape[0]).forward
    shape = (features.shape[0],) * 2
    parts = (encode(rows.values).numpy(), rows.indices.numpy(), rows.starts.numpy())
    # Zeros encode as zeros, so the pattern stays: the owner's own products are sparse, and only masks are not.
    means = scipy.sparse.csr_array(parts, shape=shape)
    return {features_of(place): ring_matrix(features, FRACTION_BITS), means_of(place): means}


def features_of(place: int) -> str:
    return f"features {place}"


def means_of(place: int) -> str:
    return f"means {place}"


def rate_bits(plan: Plan) -> int:
    """Return r of the rate 2^r; InputError for a rate that is no power of two, or too large to be cut."""
    bits = round(math.log2(plan.shared_rate))
    if 2.0**bits != plan.shared_rate or bits >= SLOPE_BITS - FRACTION_BITS:
        raise InputError(f"shared_rate = {plan.shared_rate:g}", allowed="a power of two below 4096")
    return bits


def step_of(rate: int) -> Scale:
    """Return the cut that takes a product with slopes to a step of a weight, 2^rate times as long."""
    return Scale(SLOPE_BITS - rate, SLOPE_REACH)


def _times(number: float, share: Tensor) -> Tensor:
    scaled: Tensor = share * round(number * 2**FRACTION_BITS)
    return scaled
