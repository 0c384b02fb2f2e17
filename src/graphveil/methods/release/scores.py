"""Which share of a feature budget each feature gets: importance and sensitivity, from what may be known for them.

    alpha_i = |SHAP_i| / sum |SHAP|                        importance, `methods.release.importance`            (eq. 6)
    beta_i  = |z_i - z^_i| / sum |z - z^|,  z^ with the sensitive input masked                                (eq. 5)
    theta_i = gamma alpha_i + (1 - gamma) (beta_min + beta_max - beta_i),  divided by their sum      (eq. 7 and Alg. 1)

Without the division of Algorithm 1 the budgets would not add up to epsilon.  One vector serves all users and is fixed,
with a stamp, before anybody's report is made: a vector of a user's own data would cost that user more than epsilon.  It
comes from a declared public part, from a declared vector, or from a private estimate that is paid for.

Source: Tran et al., "Heterogeneous Randomized Response for Differential Privacy in Graph Neural Networks", IEEE BigData
2022, section III-A and Algorithm 1.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from graphveil.errors import InputError
from graphveil.graphs import Graph, GraphSchema
from graphveil.late import torch
from graphveil.methods.base.score_mean import central_mean
from graphveil.methods.release.importance import importance
from graphveil.privacy import Guarantee, Ledger, Randomness, Spend
from graphveil.privacy.printed import rounded_up

if TYPE_CHECKING:
    from torch import Tensor


PUBLIC, DECLARED, ESTIMATED = SOURCES = ("public data", "a declared vector", "a private estimate")
GAMMA: Final = 0.5
#: Shares below this become 0.
# A report at a millionth of the budget says nothing, and costs as many bytes as any other.
LEAST: Final = 1e-6
_OFF: Final = 1e-6


@dataclass(frozen=True)
class Scores:
    """One vector of budget shares for all users, fixed before collection.

    Attributes:
        shares: [d], at least 0, adding up to 1; feature i gets epsilon shares[i].
        source: one of `SOURCES`; note: what exactly they were made of.
        spends: what the estimate cost, for the release's ledger; empty for the other sources.
        guarantee: what the estimate protects; None for the other sources.
    """

    shares: tuple[float, ...]
    source: str
    note: str
    spends: tuple[Spend, ...] = ()
    guarantee: Guarantee | None = None

    def __post_init__(self) -> None:
        if self.source not in SOURCES:
            raise InputError(f"scores come from {self.source!r}", where="scores", allowed=", ".join(SOURCES))
        # An estimate without a price would be private data in a public parameter of every mechanism after it.
        if (self.source == ESTIMATED) != bool(self.spends and self.guarantee):
            raise InputError("a price belongs to an estimate from private data, and to nothing else", where="scores")
        if not self.shares or not all(math.isfinite(share) and share >= 0 for share in self.shares):
            raise InputError("a share is negative or not a number", where="scores", allowed="numbers of at least 0")
        if abs(math.fsum(self.shares) - 1) > _OFF:
            raise InputError(f"the shares add up to {math.fsum(self.shares):g}", where="scores", allowed="1")

    @property
    def stamp(self) -> str:
        """The SHA-256 of the source and the shares: what a collection states before it begins."""
        # As little-endian float64: the stamp must be the same on every machine.
        content = self.source.encode() + b"\n" + np.array(self.shares, dtype="<f8").tobytes()
        return hashlib.sha256(content).hexdigest()


@dataclass(frozen=True)
class PublicPart:
    """Features [p, d] and labels ([p] or [p, c]) of nodes whose data is declared public."""

    x: Tensor
    y: Tensor
    schema: GraphSchema
    nodes: int


def public_part(graph: Graph, public: Tensor | None) -> PublicPart:
    """Return the features and labels of the nodes that are declared public: a bool mask [n].

    Raises:
        InputError: no mask, a mask of another form, or one that declares nobody public, or everybody while the schema
            calls the features private: scores are never read off private data for nothing.
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
    rows = graph.x[public] if graph.x.layout == torch.strided else _dense_rows(graph.x, public)
    return PublicPart(rows, graph.y[public], schema, int(graph.num_nodes))


def public_share_of(graph: Graph, share: float | None, seed: int) -> Tensor:
    """Return who is declared public, bool [n]: everybody, or a random share for experiments.

    Args:
        graph: only the number of its nodes is read.
        share: in (0, 1); None: everybody, which `public_part` refuses where features are private.
        seed: fixes the draw.

    Raises:
        InputError: no such share.
    """
    nodes = int(graph.num_nodes)
    if share is None:
        return torch.ones(nodes, dtype=torch.bool)
    if not 0 < share < 1:
        raise InputError(f"a share of {share!r}", where="public nodes", allowed="a number in (0, 1)")
    chosen = torch.zeros(nodes, dtype=torch.bool)
    chosen[torch.from_numpy(np.random.default_rng(seed).permutation(nodes)[: round(share * nodes)])] = True
    return chosen


def masked_columns(part: PublicPart, columns: Sequence[int]) -> Tensor:
    """Return the part's features [p, d] with some columns at their lowest declared value: the sensitive input masked.

    Raises:
        InputError: a column that there is not.
    """
    wrong = [column for column in columns if not 0 <= column < part.x.shape[1]]
    if wrong:
        raise InputError(f"column {wrong[0]}", where="sensitive", allowed=f"0 to {part.x.shape[1] - 1}")
    masked = part.x.clone()
    masked[:, list(columns)] = part.schema.low
    return masked


def public_scores(
    part: PublicPart, *, masked: Tensor | None = None, gamma: float = GAMMA, seed: int = 0, hidden: int = 64
) -> Scores:
    """Return shares from a public part alone.

    Args:
        masked: the part's features [p, d] with the sensitive input masked; None: no sensitivity, and gamma is 1.
        gamma: weight of importance against sensitivity, in [0, 1]; 0 trains no model.
        seed, hidden: of the model whose importance is measured.

    Raises:
        InputError: gamma outside its range, or other shapes.
        MissingExtraError: importance is asked for and the package shap is not installed.
    """
    gamma = 1.0 if masked is None else gamma
    alpha = importance(part.x, part.y, len(part.schema.classes), seed=seed, hidden=hidden) if gamma > 0 else None
    beta = None if masked is None else sensitivity(part.x, masked)
    theta = combine(alpha, beta, gamma)
    made = f"{len(part.x)} of {part.nodes} nodes whose features and labels are declared public, gamma {gamma:g}"
    return Scores(_tuple(theta), PUBLIC, made)


def declared_scores(values: Sequence[float] | Tensor, *, note: str = "declared by the curator") -> Scores:
    """Return shares proportional to declared numbers of at least 0; the declarer vouches that they are public.

    Raises:
        InputError: no numbers, a negative one, or all 0.
    """
    return Scores(_tuple(_normalised(torch.as_tensor(values, dtype=torch.float64), "declared scores")), DECLARED, note)


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
    """Return shares from every user's private score, averaged by the analytic Gaussian mechanism, and the ledger.

    The average stands for the sensitivity beta. The ledger is asked before anything is read.

    Args:
        per_user: [n, d], at least 0, such as |z - z^| of each user; a row longer than 1 is scaled to 1.
        alpha: importance [d] from public data, where gamma > 0.

    Raises:
        BudgetError: the ledger cannot pay.
        InputError: see `central_mean` and `combine`.
    """
    mechanism = central_mean(per_user.shape[1], len(per_user), epsilon=epsilon, delta=delta)
    cost = {"users": len(per_user), "dimension": per_user.shape[1], "sigma": mechanism.sigma}
    spend = Spend("budget shares of the features", unit, "analytic gaussian mean", cost, epsilon, delta)
    # Paid before `randomize` reads the first score.
    paid = ledger.spend(spend)
    # Clipping a noisy mean is post-processing: the true one has no negative entries.
    mean = mechanism.randomize(per_user, randomness=randomness).clamp_min(0)
    if not bool((mean > 0).any()):  # drowned in noise: what is left says nothing, and an even split is what it says
        mean = torch.ones_like(mean)
    theta = combine(alpha, _normalised(mean, "the estimate"), gamma)
    guarantee = mechanism.guarantee(randomness.void)
    price = f"({rounded_up(epsilon)}, {rounded_up(delta)})"
    note = f"the mean of {len(per_user)} users' clipped scores, {price}-private, gamma {gamma:g}"
    return Scores(_tuple(theta), ESTIMATED, note, (spend,), guarantee), paid


def sensitivity(rows: Tensor, masked: Tensor) -> Tensor:
    """Return beta [d] (eq. 5), the mean over public rows [p, d] of |z - z^|, divided by its sum.

    Raises:
        InputError: two shapes, or a mask that changes nothing.
    """
    if rows.shape != masked.shape:
        raise InputError(f"rows {tuple(rows.shape)} and {tuple(masked.shape)} masked", where="sensitivity")
    return _normalised((rows.double() - masked.double()).abs().mean(dim=0), "sensitivity")


def combine(alpha: Tensor | None, beta: Tensor | None, gamma: float) -> Tensor:
    """Return theta [d] (eq. 7), divided by its sum (Alg. 1, line 5).

    Args:
        alpha, beta: scores [d]; each may be absent where its weight is 0.

    Raises:
        InputError: gamma outside [0, 1], or a score that has weight and is absent, of another length, or negative.
    """
    if not 0 <= gamma <= 1:
        raise InputError(f"gamma is {gamma!r}", allowed="a number in [0, 1]")
    if (gamma > 0 and alpha is None) or (gamma < 1 and beta is None):
        raise InputError(f"gamma {gamma:g} weighs a score that is absent", allowed="importance: 1, sensitivity: 0")
    parts = []
    if alpha is not None and gamma > 0:
        parts.append(gamma * _normalised(alpha.double(), "importance"))
    if beta is not None and gamma < 1:
        share = _normalised(beta.double(), "sensitivity")
        # Mirrored: the more a feature tells of the sensitive input, the less budget it gets (equation 7).
        parts.append((1 - gamma) * (share.amin() + share.amax() - share))
    if len({len(part) for part in parts}) != 1:
        raise InputError(f"{len(parts[0])} and {len(parts[1])} scores", where="eq. 7", allowed="one a feature")
    return _normalised(torch.stack(parts).sum(dim=0), "theta")


def _normalised(values: Tensor, what: str) -> Tensor:
    total = float(values.sum())
    if values.dim() != 1 or not bool((values >= 0).all()) or not 0 < total < math.inf:
        raise InputError(f"{what}: no numbers of at least 0 with a sum above 0", where="scores")
    return values / total


def _tuple(values: Tensor) -> tuple[float, ...]:
    """The shares, those too small for a randomizer to honour set to 0: the feature is not sent at all."""
    # Divided by their sum once more, so that what was cut off is not lost from the budget.
    kept = torch.where(values < LEAST, 0.0, values)
    return tuple(float(value) for value in kept / kept.sum())


def _dense_rows(x: Tensor, chosen: Tensor) -> Tensor:
    from graphveil.methods.base.network import as_matrix

    matrix: Any = as_matrix(x)
    return torch.from_numpy(matrix[chosen.numpy()].toarray())
