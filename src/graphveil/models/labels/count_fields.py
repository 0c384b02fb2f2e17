"""The evidence of noisy counts of neighbours by group on everyone's class, by their exact likelihood.

    N_vg ~ Poisson(t_v L_ag) + Z,   Pr[Z = z] ~ e^(-rate |z|)      private neighbours of group g, where v is of class a
    P_vg ~ Poisson(t_v K_ag)                                       public ones
    phi_v(a) = sum_g log Pr[N_vg | a] + log Pr[P_vg | a]

K is the mean public row of the training nodes of a class; L is that of the private rows, shrunk towards the proportions
of K by its noise; t is the degree over the mean, shrunk towards 1 by its noise and rounded to levels.
The channel is the known one of `mechanisms.ClassCounts`; the block model: Karrer, Newman, "Stochastic blockmodels and
community structure in networks", Phys. Rev. E 83, 2011.  Shapes: counts N, P [n, c], fields [n, c].
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from graphveil.runtime.late import Tensor, torch

#: The range of degrees relative to their mean, and the width of a level in the logarithm.
DEGREE_RANGE, LEVEL_WIDTH = (0.15, 8.0), 0.25
#: The least neighbours of a group, as a share of the mean row over the groups: none is ruled out by the training nodes.
LEAST_SHARE = 0.02
#: The least mean number of neighbours in a row.
FEWEST_NEIGHBOURS = 0.1
#: How many deviations beyond its mean a Poisson count is summed over.
POISSON_REACH = 6.0
#: How many pairs of a noisy and a true count are evaluated at once.
_PAIRS_AT_ONCE = 1 << 24


@dataclass(frozen=True)
class CountedNeighbours:
    """Rows that say how many neighbours of each group everybody has."""

    private: Tensor  # [n, c] whole numbers behind noise
    public: Tensor  # [n, c] exact
    rate: float  # of the noise, Pr[z] ~ e^(-rate |z|)

    @property
    def variance(self) -> float:
        return 0.5 / math.sinh(self.rate / 2) ** 2


def count_fields(counts: CountedNeighbours, labels: Tensor, train: Tensor, *, at_once: int = _PAIRS_AT_ONCE) -> Tensor:
    """Return phi [n, c].

    Args:
        labels: int64 [n], of which those that train are read.
        train: int64 numbers of the nodes that train.
        at_once: pairs of a noisy and a true count that are evaluated at once; fields do not depend on it.
    """
    private, public = (rows.double() for rows in (counts.private, counts.public))
    private_means, public_means = _mean_rows(private, public, labels[train], train, counts.variance)
    rows = private + public
    degree, noise = rows.sum(dim=1), counts.variance * rows.shape[1]
    mean_degree = degree.mean().clamp_min(FEWEST_NEIGHBOURS)
    spread = (degree.var(correction=0) - noise - mean_degree).clamp_min(0)
    shrunk = mean_degree + (degree - mean_degree) * spread / (spread + noise + mean_degree)
    # Everyone's: the logarithm of its degree over the mean, in steps of WIDTH.
    level = ((shrunk / mean_degree).clamp(*DEGREE_RANGE).log() / LEVEL_WIDTH).round()
    field = torch.zeros_like(private)
    for step in torch.unique(level):
        rows_of_level = (level == step).nonzero()[:, 0]
        factor = float((step * LEVEL_WIDTH).exp())
        exact = _log_poisson(public[rows_of_level][:, None, :], public_means * factor).sum(dim=2)
        field[rows_of_level] = (
            _noisy_field(private[rows_of_level], private_means * factor, counts.rate, at_once) + exact
        )
    return field.to(counts.public)


def _mean_rows(
    private: Tensor, public: Tensor, labels: Tensor, train: Tensor, variance: float
) -> tuple[Tensor, Tensor]:
    classes = private.shape[1]
    members = torch.nn.functional.one_hot(labels, classes).double()
    size = members.sum(dim=0)[:, None].clamp_min(1.0)
    observed, public_means = members.T @ private[train] / size, members.T @ public[train] / size
    expected = (
        public_means
        / public_means.sum(dim=1, keepdim=True).clamp_min(1e-9)
        * observed.sum(dim=1, keepdim=True).clamp_min(0)
    )
    noise = variance / size
    beyond = ((observed - expected).square() - noise).clamp_min(0).mean()
    trust = beyond / (beyond + noise)
    least = LEAST_SHARE / classes * private.sum(dim=1).mean().clamp_min(FEWEST_NEIGHBOURS)
    # Nobody has more neighbours than there are people, whatever the noise.
    private_means = (expected + (observed - expected) * trust).clamp(float(least), max(float(least), len(private)))
    return private_means, public_means.clamp_min(
        LEAST_SHARE / classes * float(public.sum(dim=1).mean().clamp_min(FEWEST_NEIGHBOURS))
    )


def _noisy_field(rows: Tensor, expected: Tensor, rate: float, at_once: int) -> Tensor:
    """Return sum_g log Pr[row_g | class] up to a constant [m, classes], the noise summed over every true count."""
    most = float(expected.max())
    true = torch.arange(math.ceil(most + POISSON_REACH * math.sqrt(most) + POISSON_REACH) + 1, dtype=torch.float64)
    chances = _log_poisson(true[:, None, None], expected).exp()
    values, index_of_value = torch.unique(rows, return_inverse=True)
    parts = []
    for values_at_once in values.split(max(1, at_once // len(true))):
        # The largest term is factored out: far from all true counts every term would underflow to 0.
        distance = (values_at_once[:, None] - true).abs()
        nearest = distance.min(dim=1, keepdim=True).values
        parts.append(torch.tensordot(torch.exp(-rate * (distance - nearest)), chances, dims=1).clamp_min(1e-300).log())
    groups = torch.arange(rows.shape[1])
    field: Tensor = torch.cat(parts)[index_of_value, :, groups].sum(dim=1)
    return field


def _log_poisson(counts: Tensor, expected: Tensor) -> Tensor:
    return counts * expected.log() - expected - torch.lgamma(counts + 1)
