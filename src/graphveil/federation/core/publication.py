"""Price and noise of what a holder publishes: embeddings with Gaussian noise over all rounds, or one guess a node.

    x~ = clip(x, C) + N(0, sigma^2 I)                sigma in units of C, rows on an integer grid, noise in whole steps
    one row replaced moves it by at most 2 C         R publications: mu = 2 sqrt(R) / sigma, epsilon(delta) exactly

Every publication of a row counts: nobody is drawn at random, so sampling amplifies nothing.  The unit is one
embedding row of one holder; a person who changes also changes the rows of neighbours up to K hops away.
A guess is one of c classes, published once through randomized response, or as a set of classes where that tells more:
epsilon, and no delta (`Guessing`).
Sources: Chen et al., "Vertically Federated Graph Neural Network", IJCAI 2022, arXiv 2005.11903, Algorithm 1, with the
sensitivity 2 C of replacement and the exact privacy curve (Balle, Wang, ICML 2018) in place of its bound for small
epsilon.  Shapes: x [n, d].
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache

import torch
from torch import Tensor

from graphveil.errors import InputError
from graphveil.mechanisms import RandomizedResponse, SubsetSelection
from graphveil.mechanisms.labels.subset_selection import best_size
from graphveil.mechanisms.samplers.rounded_normal import RoundedNormal
from graphveil.privacy import Randomness, gaussian_epsilon, require_budget
from graphveil.privacy.accounting.gaussian import analytic_gaussian_sigma
from graphveil.privacy.accounting.limits import LARGEST_EPSILON
from graphveil.privacy.accounting.printed import rounded_up
from graphveil.runtime.checks import require_number, require_whole

# Finer grids change a row by less than its noise does, while the noise's table grows with sigma in steps.
_MAX_BITS, _MAX_SIGMA_STEPS = 10, 1 << 17
# The parts of epsilon and delta that are reserved for the rounding of the noise table, which is checked afterwards.
_RESERVE = (1e-7, 1e-5)


#: The most sets of classes that a report distinguishes; beyond it, sets of fewer classes are sent.
MOST_SETS = 4_000


@dataclass(frozen=True)
class NumberedSets:
    """Sends the number of a random set of k classes that holds the guess more often than chance: subset selection whose
    report is one whole number, as a guess's is.

        number      index of the set among all sets of k of the c classes, in the order of `itertools.combinations`

    With little epsilon and many classes a set of several classes tells its reader more than one class does.

    Args:
        epsilon: finite and positive.
        classes: c.
        size: k, from 2 to c - 1.
    """

    epsilon: float
    classes: int
    size: int

    @property
    def selection(self) -> SubsetSelection:
        """The mechanism, whose law and price are those of the number."""
        return SubsetSelection(epsilon=self.epsilon, classes=self.classes, size=self.size)

    def transition(self) -> Tensor:
        """Pr[number = column | guess = row], float64 [c, sets]; exact: it uses the sampler's own integers."""
        return _transition(self)

    def randomize(self, guesses: Tensor, *, randomness: Randomness) -> Tensor:
        """Return the number that is sent for each guess, int64 [n]; guesses: int64 [n], each in 0..c-1."""
        # A number tells what the set tells: the order of all sets is public.
        keys = _set_keys(self.selection.every_report().members, self.classes)
        reports = self.selection.randomize(guesses, randomness=randomness)
        return torch.searchsorted(keys, _set_keys(reports.members, self.classes))

    @property
    def keep(self) -> float:
        """The probability that the set holds the guess."""
        return self.selection.law.keep


def size_of_sets(epsilon: float, classes: int) -> int:
    """Return how many classes a report names: k by least variance of the estimate, small enough to be numbered.

    Args:
        epsilon: of a guess, above 0; inf names the guess alone.
    """
    size = 1 if math.isinf(epsilon) else best_size(epsilon, classes)
    # Fewer classes than would be best tell a little less, and are as private.
    while size > 1 and math.comb(classes, size) > MOST_SETS:
        size -= 1
    return size


@lru_cache(maxsize=64)
def _transition(sets: NumberedSets) -> Tensor:
    # Depends on public numbers alone, so that a cache tells nothing.
    selection = sets.selection
    return torch.from_numpy(selection.evidence(selection.every_report())).T.exp()


def _set_keys(members: Tensor, classes: int) -> Tensor:
    """Return one number for each ascending row [n, k], which rises in the order of combinations."""
    weights = classes ** torch.arange(members.shape[1] - 1, -1, -1)
    return (members.long() * weights).sum(dim=1)


@dataclass(frozen=True)
class Publication:
    """The price and the noise of a holder's publications; all public, all agreed before the run.

    Attributes:
        epsilon, delta: what all publications together cost one row; inf publishes in the clear.
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
        require_number("(0, inf]", epsilon=self.epsilon)
        require_number("(0, 1)", delta=self.delta)
        require_number("(0, inf)", clip=self.clip)
        require_whole(1, rounds=self.rounds, columns=self.columns)
        if LARGEST_EPSILON < self.epsilon < math.inf:
            raise InputError(
                f"epsilon {rounded_up(self.epsilon)} over {self.rounds} publications hides nothing",
                allowed=f"at most {LARGEST_EPSILON:g}, or inf",
                remedy="publish less often: raise republish",
            )
        # Checked by the accountant: the search of calibration may end on the wrong side of the target.
        if not self.public and self.total > self.epsilon:
            what = f"no noise reaches epsilon {rounded_up(self.epsilon)}, delta {rounded_up(self.delta)}"
            raise InputError(what, remedy="raise them")

    @property
    def public(self) -> bool:
        return math.isinf(self.epsilon)

    @cached_property
    def sigma(self) -> float:
        """The noise's standard deviation in units of the clip, 0 without noise."""
        if self.public:
            return 0.0
        epsilon, delta = self.epsilon * (1 - _RESERVE[0]), self.delta * (1 - _RESERVE[1])
        # 2 C: a row of length C can become its opposite. R releases of a row are one Gaussian, sqrt(R) times as far.
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
        below = self.delta * (1 - _RESERVE[1] / 2)
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
        if not self.sigma:
            return _MAX_BITS
        return max(1, min(_MAX_BITS, math.floor(math.log2(_MAX_SIGMA_STEPS / self.sigma))))


class PaidOnce:
    """The price of what is published once, for the whole epsilon."""

    epsilon: float
    rounds = 1

    @property
    def public(self) -> bool:
        """Whether nothing is protected."""
        return math.isinf(self.epsilon)

    @property
    def per_round(self) -> float:
        """The epsilon of one publication, which is the whole epsilon."""
        return self.epsilon

    def spent(self, rounds: int) -> float:
        """The epsilon of the first `rounds` publications."""
        return self.epsilon if rounds else 0.0


@dataclass(frozen=True)
class Guessing(PaidOnce):
    """The price and the noise of one guess of every node, published once; public, agreed before the run.

    Attributes:
        epsilon: what it costs one guess; inf publishes guesses as they are; raises InputError outside its range.
        classes: c, of which a guess is one.
        size: k, how many classes a report names; 1 is randomized response.
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
        """The probability that the report is the guess, or a set that holds it."""
        response = self.response
        return 1.0 if response is None else response.keep
