"""The share of each feature in the budget of features, from importance and sensitivity.

    alpha_i = |SHAP_i| / sum |SHAP|                        importance, `methods.release.importance`            (eq. 6)
    beta_i  = |z_i - z^_i| / sum |z - z^|,  z^ with the sensitive input masked                                (eq. 5)
    theta_i = gamma alpha_i + (1 - gamma) (beta_min + beta_max - beta_i),  divided by their sum      (eq. 7 and Alg. 1)

Without the division of Algorithm 1 the budgets would not add up to epsilon.  One vector serves all users and is fixed,
with a stamp, before any report: a vector from a user's own data would cost that user more than epsilon.  It comes from
declared public nodes, from a declared vector, or from a private estimate that is paid for.

Source: Tran et al., "Heterogeneous Randomized Response for Differential Privacy in Graph Neural Networks", IEEE BigData
2022, section III-A and Algorithm 1.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from graphveil.aggregation import quantise
from graphveil.errors import InputError
from graphveil.graphs import Graph, GraphSchema
from graphveil.mechanisms.samplers.rounded_normal import RELATIVE_ERROR, RoundedNormal
from graphveil.methods.release.importance import importance
from graphveil.privacy import Guarantee, Ledger, Randomness, Spend, analytic_gaussian_sigma, assume
from graphveil.privacy.accounting.printed import rounded_up
from graphveil.privacy.statement.observer import ALL_BUT_CURATOR_OF_SCORES
from graphveil.privacy.statement.unit import USER_FEATURES
from graphveil.runtime.checks import require_number, require_whole
from graphveil.runtime.late import Tensor, special, torch

# The mean of users' score vectors under central differential privacy, on an integer grid.
#
#     S = sum over users of trunc(2^b s_v),   |s_v| <= 1, s_v >= 0          mean = (S + Z) / (n 2^b)
#
# Two rows without negative entries and of length at most 1 are at most sqrt(2) apart, so that replacing a user's moves
# S by at most 2^b sqrt(2) steps; Z is rounded normal noise for that (Balle and Wang 2018, Algorithm 1).  Sums are whole
# numbers: no rounding depends on who else is there.


# The share of delta for cutting the noise's tails.
_TAIL: Final = 1e-3
# The finest grid in bits, and the widest noise in its steps: more would only slow the table down.
_FINEST: Final = 14
_WIDEST: Final = 1 << 14


@dataclass(frozen=True)
class CentralMean:
    """A mean of `users` rows of `dimension` scores at (epsilon, delta)."""

    users: int
    dimension: int
    epsilon: float
    delta: float
    bits: int
    noise: RoundedNormal

    @property
    def sigma(self) -> float:
        """The standard deviation of the noise in one coordinate of the mean."""
        return self.noise.sigma * 2.0**-self.bits / self.users

    def randomize(self, rows: Tensor, *, randomness: Randomness) -> Tensor:
        """Return the noisy mean [d] float64 of rows [n, d], without a negative entry."""
        if tuple(rows.shape) != (self.users, self.dimension):
            raise InputError(f"scores are {tuple(rows.shape)}", allowed=f"[{self.users}, {self.dimension}]")
        # sqrt(2) holds for rows in the positive orthant alone; with negative entries two rows can be 2 apart.
        if not bool((rows >= 0).all()) or not bool(torch.isfinite(rows).all()):
            raise InputError("a score is negative or not a number", where="scores of the users", allowed="at least 0")
        total = quantise(rows.float(), bits=self.bits, normalise=False).values.long().sum(dim=0)
        # Whole numbers before any scaling: the output is a grid point whatever the rows are.
        noisy = total + torch.from_numpy(self.noise.draw(self.dimension, randomness))
        return noisy.double() * 2.0**-self.bits / self.users

    def guarantee(self, void: str | None) -> Guarantee:
        return Guarantee(
            unit=USER_FEATURES,
            relation="replace",
            model="central",
            epsilon=self.epsilon,
            delta=self.delta,
            against=ALL_BUT_CURATOR_OF_SCORES,
            assumes=(assume("users-counted-public", users=self.users), assume("one-row-of-scores")),
            void=void,
        )


def central_mean(dimension: int, users: int, *, epsilon: float, delta: float) -> CentralMean:
    """Return the mechanism whose noise costs at most (epsilon, delta), including the price of its table."""
    require_number("(0, inf)", "private scores", epsilon=epsilon)
    require_number("(0, 1)", "private scores", delta=delta)
    require_whole(1, None, "private scores", dimension=dimension, users=users)
    # The table's probabilities are off by a relative error each: paid for in epsilon and delta before noise is
    # calibrated.
    table_error = 4 * dimension * RELATIVE_ERROR
    target_delta = delta * (1 - 2 * _TAIL - table_error)
    multiplier = analytic_gaussian_sigma(epsilon - table_error, target_delta, math.sqrt(2))
    cut = _cut(epsilon, delta, dimension)
    bits = min(_FINEST, math.floor(math.log2(_WIDEST / multiplier)))
    # Up by a few units in the last place: scaling must not round below the noise that was paid for.
    sigma = multiplier * 2.0**bits * (1 + 1e-15)
    if bits < 1 or sigma < 10:
        raise InputError(f"epsilon is {rounded_up(epsilon)}", where="private scores", allowed="about 0.001 to 100")
    noise = RoundedNormal(sigma, math.ceil(sigma * cut))
    return CentralMean(users, dimension, epsilon, delta, bits, noise)


def _cut(epsilon: float, delta: float, dimension: int) -> float:
    """Return the number of standard deviations beyond which the tails of all coordinates cost at most their share of
    delta.
    """
    allowed = math.log(_TAIL * delta / dimension) - math.log1p(math.exp(min(epsilon, 700.0)))
    # Upwards in steps of a quarter: the search ends with a tail no heavier than allowed.
    cut = 7.0
    while math.log(2) + float(special.log_ndtr(-cut)) > allowed:
        cut += 0.25
    return cut


PUBLIC, DECLARED, ESTIMATED = SOURCES = ("public data", "a declared vector", "a private estimate")
GAMMA: Final = 0.5
#: Shares below this become 0.
# A report at a millionth of the budget is useless, and takes as many bytes as any other.
LEAST: Final = 1e-6
_OFF: Final = 1e-6


@dataclass(frozen=True)
class Scores:
    """One vector of budget shares for all users, fixed before collection.

    Attributes:
        shares: [d], at least 0, adding up to 1; feature i gets epsilon shares[i].
        source, note: one of `SOURCES`, and details for people.
        spends, guarantee: the price of an estimate, for the release's ledger, and its guarantee; none for other
            sources.
    """

    shares: tuple[float, ...]
    source: str
    note: str
    spends: tuple[Spend, ...] = ()
    guarantee: Guarantee | None = None

    def __post_init__(self) -> None:
        if self.source not in SOURCES:
            raise InputError(f"scores come from {self.source!r}", where="scores", allowed=", ".join(SOURCES))
        # An estimate without a price would put private data into a public parameter of mechanisms.
        if (self.source == ESTIMATED) != bool(self.spends and self.guarantee):
            raise InputError("a price belongs to an estimate from private data, and to nothing else", where="scores")
        if not self.shares or not all(math.isfinite(share) and share >= 0 for share in self.shares):
            raise InputError("a share is negative or not a number", where="scores", allowed="numbers of at least 0")
        if abs(math.fsum(self.shares) - 1) > _OFF:
            raise InputError(f"the shares add up to {math.fsum(self.shares):g}", where="scores", allowed="1")

    @property
    def stamp(self) -> str:
        """The SHA-256 of the source and the shares, which a collection states before it begins."""
        # As little-endian float64: the stamp must be the same on every machine.
        content = self.source.encode() + b"\n" + np.array(self.shares, dtype="<f8").tobytes()
        return hashlib.sha256(content).hexdigest()


@dataclass(frozen=True)
class PublicNodes:
    """Features [p, d] and labels ([p] or [p, c]) of nodes whose data is declared public."""

    x: Tensor
    y: Tensor
    schema: GraphSchema
    nodes: int


def public_part(graph: Graph, public: Tensor | None) -> PublicNodes:
    """Return the features and labels of the nodes that a mask [n] declares public. Raises InputError for no mask, one
    of another form, an empty one, or a full one while the schema declares features private: scores from private data
    must be paid for.
    """
    schema: GraphSchema = graph.schema
    if public is None:
        raise InputError(
            "scores from private features must be paid for",
            where=schema.name,
            allowed="a declared public part of the nodes, a declared vector, or a private estimate",
            remedy="name the public nodes, or pay for an estimate with `estimated_scores`",
        )
    if public.dtype != torch.bool or tuple(public.shape) != (int(graph.num_nodes),):
        raise InputError("public nodes are not a mask", where=schema.name, allowed=f"bool [{int(graph.num_nodes)}]")
    count = int(public.sum())
    if count == 0 or (count == len(public) and "features" in schema.private):
        who = "nobody is" if count == 0 else "everybody is"
        raise InputError(
            f"{who} declared public, but the features are private", where=schema.name, allowed="a part of the nodes"
        )
    if graph.x.layout == torch.strided:
        rows = graph.x[public]
    else:
        from graphveil.methods.base.network.network import as_matrix

        matrix: Any = as_matrix(graph.x)
        rows = torch.from_numpy(matrix[public.numpy()].toarray())
    return PublicNodes(rows, graph.y[public], schema, int(graph.num_nodes))


def public_share_of(graph: Graph, share: float | None, seed: int) -> Tensor:
    """Return who is declared public, bool [n]: everybody, or a random share for experiments.

    Args:
        graph: only the number of its nodes is read.
        share, seed: in (0, 1), None: everybody, which `public_part` refuses where features are private; fixes the
            draw.
    """
    nodes = int(graph.num_nodes)
    if share is None:
        return torch.ones(nodes, dtype=torch.bool)
    require_number("(0, 1)", "public nodes", share=share)
    public = torch.zeros(nodes, dtype=torch.bool)
    public[torch.from_numpy(np.random.default_rng(seed).permutation(nodes)[: round(share * nodes)])] = True
    return public


def masked_columns(part: PublicNodes, columns: Sequence[int]) -> Tensor:
    """Return the part's features [p, d] with some columns at their lowest value: the sensitive input masked."""
    wrong = [column for column in columns if not 0 <= column < part.x.shape[1]]
    if wrong:
        raise InputError(f"column {wrong[0]}", where="sensitive", allowed=f"0 to {part.x.shape[1] - 1}")
    masked = part.x.clone()
    masked[:, list(columns)] = part.schema.low
    return masked


def public_scores(part: PublicNodes, *, masked: Tensor | None = None, gamma: float = GAMMA, seed: int = 0) -> Scores:
    """Return shares from a public part alone.

    Args:
        masked: the part's features [p, d] with the sensitive input masked; None: no sensitivity, and gamma is 1.
        gamma: weight of importance against sensitivity, in [0, 1]; 0 trains no model.
    """
    gamma = 1.0 if masked is None else gamma
    alpha = importance(part.x, part.y, len(part.schema.classes), seed=seed) if gamma > 0 else None
    beta = None if masked is None else sensitivity(part.x, masked)
    theta = combine(alpha, beta, gamma)
    note = f"{len(part.x)} of {part.nodes} nodes whose features and labels are declared public, gamma {gamma:g}"
    return Scores(_shares(theta), PUBLIC, note)


def declared_scores(values: Sequence[float] | Tensor) -> Scores:
    """Return shares proportional to declared numbers of at least 0, not all 0, which the declarer vouches to be
    public.
    """
    return Scores(
        _shares(_normalised(torch.as_tensor(values, dtype=torch.float64), "declared scores")),
        DECLARED,
        "declared by the curator",
    )


def estimated_scores(
    per_user: Tensor,
    ledger: Ledger,
    *,
    epsilon: float,
    delta: float,
    randomness: Randomness,
    unit: str = "features",
    alpha: Tensor | None = None,
    gamma: float = 0.0,
) -> tuple[Scores, Ledger]:
    """Return shares from every user's private scores, averaged by the analytic Gaussian mechanism, and the ledger. The
    average takes the place of the sensitivity beta. Raises BudgetError, before anything is read, if the ledger cannot
    pay.

    Args:
        per_user: [n, d], at least 0, such as |z - z^| of each user; a row longer than 1 is scaled to 1.
        alpha: importance [d] from public data, where gamma > 0.
    """
    mechanism = central_mean(per_user.shape[1], len(per_user), epsilon=epsilon, delta=delta)
    cost = {"users": len(per_user), "dimension": per_user.shape[1], "sigma": mechanism.sigma}
    spend = Spend("budget shares of the features", unit, "analytic gaussian mean", cost, epsilon, delta)
    # Paid before `randomize` reads the first score.
    paid = ledger.spend(spend)
    # Clipping a noisy mean is post-processing: the true one has no negative entries.
    mean = mechanism.randomize(per_user, randomness=randomness).clamp_min(0)
    if not bool((mean > 0).any()):  # nothing but noise: an even split
        mean = torch.ones_like(mean)
    theta = combine(alpha, _normalised(mean, "the estimate"), gamma)
    guarantee = mechanism.guarantee(randomness.void)
    price = f"({rounded_up(epsilon)}, {rounded_up(delta)})"
    note = f"the mean of {len(per_user)} users' clipped scores, {price}-private, gamma {gamma:g}"
    return Scores(_shares(theta), ESTIMATED, note, (spend,), guarantee), paid


def sensitivity(rows: Tensor, masked: Tensor) -> Tensor:
    """Return beta [d] (eq. 5), the mean over public rows [p, d] of |z - z^|, divided by its sum; a mask that changes
    nothing is refused.
    """
    if rows.shape != masked.shape:
        raise InputError(f"rows {tuple(rows.shape)} and {tuple(masked.shape)} masked", where="sensitivity")
    return _normalised((rows.double() - masked.double()).abs().mean(dim=0), "sensitivity")


def combine(alpha: Tensor | None, beta: Tensor | None, gamma: float) -> Tensor:
    """Return theta [d] (eq. 7), divided by its sum (Alg. 1, line 5).

    Args:
        alpha, beta, gamma: scores [d], each may be None if its weight is 0; in [0, 1].
    """
    require_number("[0, 1]", gamma=gamma)
    if (gamma > 0 and alpha is None) or (gamma < 1 and beta is None):
        raise InputError(f"gamma {gamma:g} weighs a score that is absent", allowed="importance: 1, sensitivity: 0")
    parts = []
    if alpha is not None and gamma > 0:
        parts.append(gamma * _normalised(alpha.double(), "importance"))
    if beta is not None and gamma < 1:
        share = _normalised(beta.double(), "sensitivity")
        # Mirrored: the more a feature reveals of the sensitive input, the less budget it gets (equation 7).
        parts.append((1 - gamma) * (share.amin() + share.amax() - share))
    if len({len(part) for part in parts}) != 1:
        raise InputError(f"{len(parts[0])} and {len(parts[1])} scores", where="eq. 7", allowed="one a feature")
    return _normalised(torch.stack(parts).sum(dim=0), "theta")


def _normalised(values: Tensor, what: str) -> Tensor:
    total = float(values.sum())
    if values.dim() != 1 or not bool((values >= 0).all()) or not 0 < total < math.inf:
        raise InputError(f"{what}: no numbers of at least 0 with a sum above 0", where="scores")
    return values / total


def _shares(values: Tensor) -> tuple[float, ...]:
    """Return the shares, with those below `LEAST` set to 0: such features are not sent."""
    # Divided by their sum once more, so that the whole budget is used.
    shares = torch.where(values < LEAST, 0.0, values)
    return tuple(float(value) for value in shares / shares.sum())
