"""What noisy counts of neighbours by group say of everyone's class, by their exact likelihood.

    N_vg ~ Poisson(t_v L_ag) + Z,   Pr[Z = z] ~ e^(-rate |z|)      private neighbours of group g, where v is of class a
    P_vg ~ Poisson(t_v K_ag)                                       public ones
    phi_v(a) = sum_g log Pr[N_vg | a] + log Pr[P_vg | a]

K is the mean public row of the class's training nodes; L that of the private rows, drawn to K's proportions as far as
its noise demands; t the degree over the mean, drawn to 1 by its noise and sorted into levels.
The channel is the known one of `mechanisms.ClassCounts`; the block model: Karrer, Newman, "Stochastic blockmodels and
community structure in networks", Phys. Rev. E 83, 2011.  Shapes: counts N, P [n, c], fields [n, c].
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from graphveil.runtime.late import Tensor, torch

#: Degrees are kept inside this range of their mean, in levels of this width in logarithms.
SPAN, WIDTH = (0.15, 8.0), 0.25
#: The least neighbours of a group, as a share of the mean row over the groups: none is ruled out by the training nodes.
LEAST = 0.02
#: Mean rows are not thought to be emptier than this.
FEWEST = 0.1
#: How many deviations beyond its mean a Poisson count is followed.
REACH = 6.0
#: Pairs of a noisy and a true count that are weighed at once.
_AT_ONCE = 1 << 24


@dataclass(frozen=True)
class CountedNeighbours:
    """Rows that say how many neighbours of each group everybody has."""

    private: Tensor  # [n, c] whole numbers behind noise
    public: Tensor  # [n, c] exact
    rate: float  # of the noise, Pr[z] ~ e^(-rate |z|)

    @property
    def variance(self) -> float:
        return 0.5 / math.sinh(self.rate / 2) ** 2


def count_fields(counts: CountedNeighbours, labels: Tensor, train: Tensor, *, at_once: int = _AT_ONCE) -> Tensor:
    """Return phi [n, c].

    Args:
        labels: int64 [n], of which those that train are read.
        train: int64 numbers of the nodes that train.
        at_once: pairs of a noisy and a true count that are weighed at once; no field depends on it.
    """
    private, public = (rows.double() for rows in (counts.private, counts.public))
    private_means, public_means = _mean_rows(private, public, labels[train], train, counts.variance)
    rows = private + public
    degree, noise = rows.sum(dim=1), counts.variance * rows.shape[1]
    usual = degree.mean().clamp_min(FEWEST)
    spread = (degree.var(correction=0) - noise - usual).clamp_min(0)
    shrunk = usual + (degree - usual) * spread / (spread + noise + usual)
    # Everyone's: the logarithm of its degree over the mean, in steps of WIDTH.
    level = ((shrunk / usual).clamp(*SPAN).log() / WIDTH).round()
    field = torch.zeros_like(private)
    for step in torch.unique(level):
        here = (level == step).nonzero()[:, 0]
        times = float((step * WIDTH).exp())
        exact = _log_poisson(public[here][:, None, :], public_means * times).sum(dim=2)
        field[here] = _noisy(private[here], private_means * times, counts.rate, at_once) + exact
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
    least = LEAST / classes * private.sum(dim=1).mean().clamp_min(FEWEST)
    # Nobody has more neighbours than there are people, whatever the noise says.
    private_means = (expected + (observed - expected) * trust).clamp(float(least), max(float(least), len(private)))
    return private_means, public_means.clamp_min(LEAST / classes * float(public.sum(dim=1).mean().clamp_min(FEWEST)))


def _noisy(rows: Tensor, expected: Tensor, rate: float, at_once: int) -> Tensor:
    """Return sum_g log Pr[row_g | class] up to a constant [m, classes], the noise summed over every true count."""
    most = float(expected.max())
    true = torch.arange(math.ceil(most + REACH * math.sqrt(most) + REACH) + 1, dtype=torch.float64)
    chances = _log_poisson(true[:, None, None], expected).exp()
    values, place = torch.unique(rows, return_inverse=True)
    parts = []
    for some in values.split(max(1, at_once // len(true))):
        # What all true counts share is taken out first: far from all of them each term alone would be 0.
        away = (some[:, None] - true).abs()
        nearest = away.min(dim=1, keepdim=True).values
        parts.append(torch.tensordot(torch.exp(-rate * (away - nearest)), chances, dims=1).clamp_min(1e-300).log())
    groups = torch.arange(rows.shape[1])
    field: Tensor = torch.cat(parts)[place, :, groups].sum(dim=1)
    return field


def _log_poisson(counts: Tensor, expected: Tensor) -> Tensor:
    return counts * expected.log() - expected - torch.lgamma(counts + 1)
