"""What a holder publishes, and what it costs: embeddings with Gaussian noise over all rounds, or one guess a node.

    x~ = clip(x, C) + N(0, sigma^2 I)                sigma in units of C, rows on an integer grid, noise in whole steps
    one row replaced moves it by at most 2 C         R publications: mu = 2 sqrt(R) / sigma, epsilon(delta) exactly
    shrunk = max(0, 1 - (d - 2) sigma^2 C^2 / |x~|^2) x~    James-Stein, positive part: post-processing

Every publication of every round counts: all nodes take part in each, so sampling amplifies nothing.  The unit is one
embedding row of one holder; a person who changes also changes the rows of neighbours up to K hops away.

A guess is one of c classes, published once through randomized response, or as a set of classes where that tells more:
epsilon, and no delta (`Guessing`).
Sources: Chen et al., "Vertically Federated Graph Neural Network", IJCAI 2022, arXiv 2005.11903, Algorithm 1, with the
sensitivity 2 C of replacement and the exact privacy curve (Balle, Wang, ICML 2018) in place of its bound for small
epsilon; James, Stein, 1961; Baranchik, 1970 (positive part).  Shapes: x [n, d].
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from graphveil.aggregation.grid import quantise
from graphveil.errors import BudgetError, InputError
from graphveil.federation.core.numbered_sets import NumberedSets, size_of_sets
from graphveil.federation.crypto.masks import MaskKey
from graphveil.mechanisms import RandomizedResponse
from graphveil.mechanisms.samplers.rounded_normal import RoundedNormal
from graphveil.privacy import gaussian_epsilon, require_budget
from graphveil.privacy.accounting.gaussian import analytic_gaussian_sigma
from graphveil.privacy.accounting.limits import LARGEST_EPSILON
from graphveil.privacy.accounting.printed import rounded_up

if TYPE_CHECKING:
    from graphveil.federation.core.dither import Dither

# Finer grids change a row by less than its noise does, while the noise's table grows with sigma in steps.
_FINEST, _MAX_STEPS = 10, 1 << 17
# What is kept back of epsilon and delta for the rounding of the noise table, which is checked afterwards.
_KEPT = (1e-7, 1e-5)


@dataclass(frozen=True)
class Publication:
    """The price and the noise of a holder's publications; all public, all agreed before the run.

    Attributes:
        epsilon: what all publications together cost one row; inf publishes in the clear.
        delta: declared.
        rounds: R, how often the holder publishes.
        columns: d.
        clip: C.

    Raises:
        InputError: for a value outside its range, or an epsilon that no noise reaches.
    """

    epsilon: float
    delta: float
    rounds: int
    columns: int
    clip: float = 1.0

    def __post_init__(self) -> None:
        _require_epsilon(self.epsilon)
        if not 0 < self.delta < 1:
            raise InputError(f"delta = {self.delta!r}", allowed="a number in (0, 1)")
        if self.rounds < 1 or self.columns < 1 or not 0 < self.clip < math.inf:
            raise InputError(
                f"rounds {self.rounds}, columns {self.columns}, clip {self.clip}", allowed="numbers above 0"
            )
        if LARGEST_EPSILON < self.epsilon < math.inf:
            raise InputError(
                f"epsilon = {rounded_up(self.epsilon)} over {self.rounds} publications hides nothing",
                allowed=f"at most {LARGEST_EPSILON:g}, or inf",
                remedy="publish less often: raise republish",
            )
        # Calibration is checked by the accountant and not believed: the search may end on the wrong side of the
        # target.
        if not self.public and self.total > self.epsilon:
            raise InputError(
                f"no noise reaches epsilon {rounded_up(self.epsilon)}, delta {rounded_up(self.delta)}",
                remedy="raise them",
            )

    @property
    def public(self) -> bool:
        """Whether rows are published without noise."""
        return math.isinf(self.epsilon)

    @cached_property
    def sigma(self) -> float:
        """The noise's standard deviation in units of the clip, 0 without noise."""
        if self.public:
            return 0.0
        epsilon, delta = self.epsilon * (1 - _KEPT[0]), self.delta * (1 - _KEPT[1])
        # 2 C: a row of length C may be replaced by the opposite one. R releases of one row are one Gaussian, sqrt(R)
        # as far.
        return analytic_gaussian_sigma(epsilon, delta, 2.0 * math.sqrt(self.rounds))

    @property
    def noise(self) -> float:
        """The root-mean-square length of the noise in one row."""
        return self.sigma * self.clip * math.sqrt(self.columns)

    @property
    def total(self) -> float:
        """The exact epsilon of all publications at `delta`, the noise table's rounding included."""
        return self._price(self.rounds)

    @property
    def per_round(self) -> float:
        """The epsilon of one publication at `delta`, which is not what a person pays."""
        return self._price(1)

    def spent(self, rounds: int) -> float:
        """The epsilon of the first `rounds` publications."""
        return self._price(rounds) if rounds else 0.0

    def _price(self, rounds: int) -> float:
        if self.public:
            return math.inf
        # The exact curve is read a little below delta; the rest pays for the rounded table, which is charged here.
        below = self.delta * (1 - _KEPT[1] / 2)
        exact = gaussian_epsilon(self.sigma, below, 2.0 * math.sqrt(rounds))
        epsilon, delta = RoundedNormal(1.0, self.cut).price(exact, below, rounds * self.columns)
        # Never a delta above the declared one, not even by rounding: then there is no price at all.
        return epsilon if delta <= self.delta else math.inf

    @property
    def cut(self) -> int:
        """Where the noise ends, in standard deviations: what is cut off weighs e^-30 delta at most, and is charged."""
        # A tail event counts e^epsilon times in the worst case, and once for each number of a row in each round.
        weight = self.epsilon + math.log(self.rounds * self.columns / self.delta)
        return math.ceil(math.sqrt(2 * (weight + 30)))

    @property
    def bits(self) -> int:
        """A row of length C is 2^bits steps long; depends on the noise alone."""
        return max(1, min(_FINEST, math.floor(math.log2(_MAX_STEPS / self.sigma)))) if self.sigma else _FINEST


@dataclass(frozen=True)
class Guessing:
    """The price and the noise of one guess of every node, published once; public, agreed before the run.

    Attributes:
        epsilon: what it costs one guess; inf publishes guesses as they are.
        classes: c, of which a guess is one.
        size: k, how many classes a report names; 1 is randomized response.

    Raises:
        InputError: for an epsilon outside its range.
    """

    epsilon: float
    classes: int
    size: int = 1

    @staticmethod
    def best(epsilon: float, classes: int) -> Guessing:
        """Return the guess whose report tells most at this price."""
        return Guessing(epsilon, classes, size_of_sets(epsilon, classes) if epsilon > 0 else 1)

    def __post_init__(self) -> None:
        require_budget("epsilon", self.epsilon, "no privacy")
        _ = self.response

    @property
    def public(self) -> bool:
        """Whether guesses are published as they are."""
        return math.isinf(self.epsilon)

    @property
    def response(self) -> RandomizedResponse | NumberedSets | None:
        """The mechanism; None where guesses are published as they are."""
        if self.public:
            return None
        if self.size > 1:
            return NumberedSets(self.epsilon, self.classes, self.size)
        return RandomizedResponse(epsilon=self.epsilon, classes=self.classes)

    @property
    def channel(self) -> Tensor:
        """Pr[report = column | guess = row], float64 [c, reports]: as many reports as classes, or as sets of them."""
        response = self.response
        return torch.eye(self.classes, dtype=torch.float64) if response is None else response.transition()

    @property
    def keep(self) -> float:
        """The probability that what is sent is the guess, or holds it."""
        response = self.response
        return 1.0 if response is None else response.keep

    @property
    def rounds(self) -> int:
        """How often a holder publishes: once."""
        return 1

    @property
    def per_round(self) -> float:
        """The epsilon of one publication, which here is all."""
        return self.epsilon

    def spent(self, rounds: int) -> float:
        """The epsilon of the first `rounds` publications."""
        return self.epsilon if rounds else 0.0


def _require_epsilon(epsilon: float) -> None:
    if not epsilon > 0:
        raise InputError(f"epsilon = {epsilon!r}", allowed="a number above 0, or inf for no privacy")


def clip_rows(x: Tensor, clip: float) -> Tensor:
    """Return rows [n, d] shortened to length `clip` where they are longer.

    Args:
        x: float [n, d]. clip: C, above 0.

    Returns:
        Rows of length C at most, float [n, d]; shorter ones as they were.
    """
    lengths = torch.linalg.vector_norm(x, dim=1, keepdim=True)
    # Right to within float32 alone: for rows that carry no noise. Where noise is added, `quantise` holds the bound
    # exactly.
    scale: Tensor = lengths.clamp_min(clip).reciprocal() * clip
    return x * scale


class Publisher:
    """Publishes a holder's rows: the one place where they leave.

    The noise is a pseudorandom function of the secret key, the round and the rows: a round that is run again after an
    interruption with the same rows sends the same bytes, and costs nothing more; other rows are another publication.

    Args:
        key: of the noise, fresh from the operating system; kept with the holder's own checkpoints.
        seen: digests of what was published before, see `seen`.

    Attributes:
        latest: the digest of what was published last, "" without noise.
    """

    def __init__(self, publication: Publication, key: MaskKey, seen: tuple[str, ...] = ()) -> None:
        self.publication, self.key, self.seen, self.latest = publication, key, seen, ""

    def publish(self, x: Tensor, round: int) -> Tensor:
        """Return clipped noisy rows float32 [n, d].

        Args:
            x: embeddings, float32 [n, d]. round: its number, from 1.

        Returns:
            float32 [n, d] on the grid; the same bytes for the same rows, round and key.

        Raises:
            BudgetError: more publications than were paid for, before anything is sent.
        """
        if self.publication.public:
            return clip_rows(x.detach(), self.publication.clip)
        to = self.publication
        # Noise is drawn for rows on the grid, in whole steps: sums of floats would leak in their lowest bits.
        grid = quantise(x.detach(), cap=to.clip, bits=to.bits, normalise=False).values
        digest = hashlib.sha256(f"{round} ".encode() + grid.numpy().tobytes()).hexdigest()
        # Counted before the noise is drawn: a refusal here has read nothing that leaves.
        self._count(digest)
        return self._scaled(grid + self._noise(digest, tuple(grid.shape)))

    def noise_for(self, label: str, state: str, shape: tuple[int, int], dither: Dither) -> Tensor:
        """Return noise alone, ring elements [n, d], for rows that nobody holds: the same for the same label and state.

        Args:
            state: a name of all that the rows depend on, at all holders (see `commitments`).
        """
        return dither.draw(shape, _Keyed(self.key, f"{label} {state}"))

    def count(self, name: str) -> None:
        """Count the publication of rows that nobody holds, before it is made.

        Raises:
            BudgetError: more publications than were paid for.
        """
        self._count(name)

    def _scaled(self, steps: Tensor) -> Tensor:
        scaled: Tensor = steps * (self.publication.clip * 2.0**-self.publication.bits)
        return scaled

    @property
    def spent(self) -> float:
        """The epsilon of all publications so far."""
        return self.publication.spent(len(self.seen))

    def _count(self, digest: str) -> None:
        self.latest = digest
        # The same rows in the same round have the same noise: sending them again tells nothing more.
        if digest in self.seen:
            return
        if len(self.seen) >= self.publication.rounds:
            raise BudgetError(
                f"publication {len(self.seen) + 1} of {self.publication.rounds}",
                where="embeddings",
                remedy="agree on more rounds before the next run",
            )
        # Digests and not a number: after a restart only they tell a repetition from a new publication.
        self.seen = (*self.seen, digest)

    def _noise(self, label: str, shape: tuple[int, ...]) -> Tensor:
        """Return noise in steps of the grid."""
        sigma = self.publication.sigma * 2.0**self.publication.bits
        if sigma == 0.0:
            return torch.zeros(shape)
        drawn = RoundedNormal(sigma, math.ceil(self.publication.cut * sigma)).draw(
            math.prod(shape), _Keyed(self.key, label)
        )
        return torch.from_numpy(drawn).view(shape).float()


class _Keyed:
    """Words that only the key's holder can tell from random ones, the same again for the same label."""

    void = None

    def __init__(self, key: MaskKey, label: str) -> None:
        self._key, self._label, self._calls = key, label, 0

    def uint64(self, count: int) -> np.ndarray:
        self._calls += 1
        # The call's number is in the label: a sampler that asks twice must not be given the same words twice.
        return self._key.expand(f"{self._label} {self._calls}", (count,)).numpy().view(np.uint64)

    def bytes(self, count: int) -> bytes:
        return self.uint64(-(-count // 8)).tobytes()[:count]


def james_stein(x: Tensor, publication: Publication) -> Tensor:
    """Return noisy rows [n, d] shrunk towards zero by the positive-part James-Stein factor; without noise unchanged.

    Args:
        x: noisy rows, float32 [n, d]. publication: whose noise it is.

    Returns:
        float32 [n, d]; rows as they were without noise or with d below 3, where nothing is gained.
    """
    # Negative below three columns, where James and Stein's factor would lengthen rows instead.
    scale = (publication.columns - 2) * (publication.sigma * publication.clip) ** 2
    if scale <= 0:
        return x
    # A row of zeros would divide by zero; it is shrunk to zero all the same.
    return x * (1 - scale / x.square().sum(dim=1, keepdim=True).clamp_min(1e-30)).clamp_min(0)
