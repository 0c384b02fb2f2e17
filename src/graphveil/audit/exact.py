"""Exact audits: every input and every output of a mechanism is enumerated, so there is no false alarm.

    epsilon >= max over outputs o and neighbours x, x' of log Pr[o | x] - log Pr[o | x']                 (delta = 0)
    epsilon >= the least e with  sum_o max(Pr[o | x] - e^e Pr[o | x'], 0) <= delta                       (delta > 0)

What is enumerated comes from `log_likelihood`, which mechanisms compute from the very integers of their samplers; that
samplers follow it is for `sampled` to doubt. That nothing is left out is checked: probabilities of all outputs add up
to 1 for every input.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Sequence, Sized
from typing import Final, Protocol, TypeVar

import numpy as np
import numpy.typing as npt
from scipy.special import logsumexp
from torch import Tensor

from graphveil.audit.verdict import Audit, judge
from graphveil.privacy import Guarantee
from graphveil.runtime.checks import require_number
from graphveil.runtime.words import count_of

Table = npt.NDArray[np.float64]
Pair = tuple[int, int]
#: A mechanism's output, and its input.
A = TypeVar("A")
V = TypeVar("V")
Rows = TypeVar("Rows", bound=Sized)
A_contra = TypeVar("A_contra", contravariant=True)
V_contra = TypeVar("V_contra", contravariant=True)

# What the probabilities of all outputs may differ from 1 by: the rounding of sums of logarithms.
_WHOLE: Final = 1e-6
_LARGEST: Final = 1e4


class Likely(Protocol[A_contra, V_contra]):
    """A mechanism with a guarantee and the likelihood of each output."""

    @property
    def guarantee(self) -> Guarantee: ...

    def log_likelihood(self, reports: A_contra, values: V_contra, /) -> Tensor: ...


def row_table(mechanism: Likely[Rows, Tensor], inputs: Tensor, outputs: Rows) -> Table:
    """Return log Pr[output | input] of a mechanism of single users, [inputs, outputs].

    Args:
        inputs: one input a row: vectors [k, d] or labels [k].
        outputs: every report there is, a user for each.
    """
    count = len(outputs)
    rows = [mechanism.log_likelihood(outputs, row[None].expand(count, *row.shape).contiguous()) for row in inputs]
    return np.stack([row.numpy() for row in rows])


def graph_table(log_likelihood: Callable[[A, V], Tensor], graphs: Sequence[V], outputs: Sequence[A]) -> Table:
    """Return log Pr[output | graph], [graphs, outputs], or [graphs, outputs, users] where users report apart, in nats.

    Args:
        log_likelihood: of an output and a graph.
    """
    return np.array([[log_likelihood(sent, graph).numpy() for sent in outputs] for graph in graphs])


def subset_neighbours(subsets: int) -> list[Pair]:
    """Return which of 2^k subsets, numbered by their bits, differ in one element, in both orders."""
    bits = [1 << k for k in range(subsets.bit_length() - 1)]
    return [(g, g ^ bit) for g, bit in itertools.product(range(subsets), bits)]


def worst_ratio(table: Table, neighbours: Iterable[Pair] | None = None) -> float:
    """Return the largest log ratio of any output for any two neighbours; infinite if one of them rules it out.

    Args:
        table: [inputs, outputs].
        neighbours: pairs of inputs; None: any two are neighbours.
    """
    if neighbours is None:
        possible = np.isfinite(table).any(axis=0)
        return float((table[:, possible].max(axis=0) - table[:, possible].min(axis=0)).max())
    return max(float(np.abs(_change(table, g, h)).max()) for g, h in neighbours)


def worst_of_independent(table: Table, neighbours: Iterable[Pair]) -> float:
    """As `worst_ratio` of all users together, each sending any of its outputs whatever the others send.

    Args:
        table: [inputs, outputs, users].
    """
    worst = 0.0
    for g, h in neighbours:
        change = _change(table, g, h)
        # Independent users: the worst joint output is the worst of each, so no product of their outputs need be listed.
        worst = max(worst, float(change.max(axis=0).sum()), float(-change.min(axis=0).sum()))
    return worst


def least_epsilon(table: Table, delta: float, neighbours: Iterable[Pair] | None = None) -> float:
    """Return the least epsilon at which every two neighbours are (epsilon, delta)-close, by the hockey-stick sum.

    Args:
        table: log Pr[output | input].
        delta: in (0, 1).
        neighbours: pairs of inputs. None: every two.

    Raises:
        InputError: delta is not in (0, 1).
    """
    require_number("(0, 1)", delta=delta)
    pairs = list(itertools.permutations(range(len(table)), 2)) if neighbours is None else list(neighbours)

    first, second = (table[list(part)] for part in zip(*pairs, strict=True))
    chances = np.exp(first)

    def spent(epsilon: float) -> float:
        with np.errstate(over="ignore"):
            return float(np.maximum(chances - np.exp(epsilon + second), 0.0).sum(axis=1).max())

    low, high = 0.0, 1.0
    if spent(0.0) <= delta:
        return 0.0
    # The spent delta falls with epsilon, so doubling brackets the least one and halving finds it.
    while spent(high) > delta:
        low, high = high, 2 * high
        if high > _LARGEST:
            return math.inf
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if spent(middle) > delta else (low, middle)
    # The end that is proven not to be enough.
    return low


def audit_table(
    target: str,
    guarantee: Guarantee,
    table: Table,
    *,
    neighbours: Iterable[Pair] | None = None,
    independent: bool = False,
    complete: bool = True,
) -> Audit:
    """Audit the probabilities of a mechanism.

    Args:
        table: [inputs, outputs], or [inputs, outputs, users] if `independent`.
        neighbours: see `worst_ratio`.
        independent: users choose their outputs independently of each other.
        complete: the table holds every output; then its probabilities have to add up to 1.
    """
    pairs = None if neighbours is None else list(neighbours)
    if independent:
        bound = worst_of_independent(table, pairs or list(itertools.permutations(range(len(table)), 2)))
    elif guarantee.delta > 0.0:
        bound = least_epsilon(table, guarantee.delta, pairs)
    else:
        bound = worst_ratio(table, pairs)
    # Where a row does not add up to 1 an output is missing, and that one may be the one that reveals most.
    off = float(np.abs(np.expm1(logsumexp(table, axis=1))).max()) if complete else 0.0
    findings = (f"the probabilities of all outputs differ from 1 by {off:.3g}: some are missing, or wrong",)
    extent = f"{count_of(table.shape[0], 'input')} with {count_of(table.shape[1], 'output')} enumerated"
    return judge(
        f"{target} (exact)",
        guarantee.epsilon,
        guarantee.delta,
        bound,
        0.0,
        notes=(extent,),
        findings=findings if off > _WHOLE else (),
    )


def _change(table: Table, g: int, h: int) -> Table:
    """log Pr[. | g] - log Pr[. | h]; 0 where both are impossible."""
    with np.errstate(invalid="ignore"):
        change: Table = table[g] - table[h]
    # An output that neither graph can give tells nothing; computed, inf - inf would be NaN and win every maximum.
    return np.where(np.isneginf(table[g]) & np.isneginf(table[h]), 0.0, change)
