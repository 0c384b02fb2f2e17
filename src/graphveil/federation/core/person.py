"""What one person at one holder costs in mode "guesses", where the unit is the person: private training, or one guess.

    who trains      W by private gradient descent on their features and labels   (epsilon, delta)   all they change
    everybody else  one randomized guess of their class by W                     (epsilon, 0)       all they change

With a degree bound D, noisy votes H come before: each person who trains tells their label to the first D names of their
own list at the holder, and W also reads the votes that a person was given,

    H_v = sum over u who train and list v of the row of u's label + N(0, sigma^2)      descent and votes: one account

Who trains is public, and nobody is in both rows: a person who trains is sent no guess of, since the reader knows the
label.  So the two prices do not add up, and each may be the whole epsilon.  The proof, for one holder, all others
colluding: let the record of person p at this holder (features, own list, and label if p trains) be replaced by another.

1. p trains.  Votes: D rows of length 1 are taken back and D others given; rows of labels are orthogonal or equal, so H
   moves by sqrt(2 D) at most.  Given H, the noisy gradients, and so W: one sample's clipped gradient is replaced in
   Poisson batches (`privacy.accounting.changed_samples`, one sample).  Together (epsilon, delta), by one product of
   their loss distributions.  All that leaves are guesses of others, computed from H, W, their own features and fresh
   noise: post-processing.
2. p does not train.  p's list is not read, and p tells no label: H and W have the same law.  Given both, p's features
   decide nothing but p's own guess, which randomized response hides with epsilon; all other guesses are independent
   of p.

Without a degree bound no connection is read, and a person's connections at the holder change nothing at all.  Others'
lists that name p are others' records.  The label holder deals the roles and labels and may choose them as it likes:
both steps hold for any.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from graphveil.aggregation import PerturbedSum
from graphveil.errors import InputError
from graphveil.federation.core.publication import PaidOnce
from graphveil.privacy import ChangedSamples, Hops, calibrate_pipeline, pipeline_epsilon, require_budget
from graphveil.privacy.accounting.budget_split import CalibratedPipeline
from graphveil.privacy.accounting.printed import rounded_up
from graphveil.runtime.checks import require_number, require_whole
from graphveil.training.noisy_updates import PrivateSchedule

#: Noisy gradients of one training, the chance with which each person is in one of them, and the learning rate of plain
#: descent times the noise multiplier: steps are shorter where noise is larger.  Chosen by validation labels alone
#: (splits 100 to 102 of digits, Cora, CiteSeer and Caltech36, 2 and 5 holders, epsilon 2 and 8).
STEPS, SAMPLING_RATE, STEP_TIMES_NOISE = 100, 0.25, 20.0
#: The part of the budget (of mu^2) of somebody who trains that goes to the votes, where there are any.
SHARE_OF_VOTES = 0.5
# The parts of epsilon and delta that are reserved for the rounding of noise tables, which is checked afterwards, and
# the factor by which more is reserved than its estimate.
_RESERVE, _MARGIN = (1e-7, 1e-5), 1.1
#: The name of the votes in the account of both, and the largest degree bound.
_VOTES, _MAX_DEGREE = "votes", 10_000


@dataclass(frozen=True)
class PersonPrice(PaidOnce):
    """The price and the noise of one person at one holder; public, agreed before the run.

    Attributes:
        epsilon, delta: what it costs one person, whether they train or are guessed about (who pays no delta).
        classes: c.
        columns: the most feature columns of a holder that guesses.
        degree_bound: D, to how many others each who trains tells their label; 0: connections are not read.

    Raises:
        InputError: for a value outside its range, or an epsilon that no noise reaches.
    """

    epsilon: float
    delta: float
    classes: int
    columns: int
    degree_bound: int = 0

    def __post_init__(self) -> None:
        require_budget("epsilon", self.epsilon, "no privacy")
        if self.public:
            raise InputError(
                "unit person at epsilon inf protects nobody", allowed="a finite epsilon", remedy="unit publication"
            )
        require_number("(0, 1)", delta=self.delta)
        require_whole(0, _MAX_DEGREE, degree_bound=self.degree_bound)
        # The accountant has the last word, on the noise that will be drawn: never above what was declared.
        epsilon, delta = self.trained_price
        if epsilon > self.epsilon or delta > self.delta:
            what = f"no noise reaches epsilon {rounded_up(self.epsilon)}, delta {rounded_up(self.delta)}"
            raise InputError(what, remedy="raise delta, or lower epsilon")

    @property
    def training(self) -> ChangedSamples:
        """The training as the accountant sees it: a person's one sample is replaced."""
        return ChangedSamples(steps=STEPS, rate=SAMPLING_RATE, samples=1)

    @property
    def multiplier(self) -> float:
        """The noise of each gradient's sum over the clip."""
        return self._calibrated.sigmas(self.training.name)[0]

    @property
    def votes(self) -> PerturbedSum | None:
        """The noisy sums of labels over lists; None where connections are not read."""
        return self._sums(self._calibrated.sigmas(_VOTES)[0]) if self.degree_bound else None

    @property
    def facts(self) -> dict[str, float | int]:
        """The parameters of the noise that protects somebody who trains, for ledgers and plans."""
        descent = {"steps": self.training.steps, "rate": self.training.rate, "multiplier": self.multiplier}
        votes = self.votes
        return descent if votes is None else {**descent, "degree_bound": self.degree_bound, "votes": votes.sigmas[0]}

    @cached_property
    def trained_price(self) -> tuple[float, float]:
        """The epsilon and delta of a person who trains, the noise tables' rounding included."""
        # Read a little below delta: what is left pays for the noise tables, whose rounding is charged here.
        below = self.delta * (1 - _RESERVE[1] / 2)
        pipeline = self._calibrated
        votes = pipeline.sigmas(_VOTES)[0] if self.degree_bound else 1.0
        return self._rounded(pipeline_epsilon(pipeline.parts, pipeline.noise, below), below, self.multiplier, votes)

    @cached_property
    def _calibrated(self) -> CalibratedPipeline:
        # Priced at noise of 1 first: what the rounding of tables costs hardly depends on it, and is set aside.
        epsilon, delta = self._rounded(self.epsilon, self.delta, 1.0, 1.0)
        target = self.epsilon * (1 - _RESERVE[0]) - _MARGIN * (epsilon - self.epsilon)
        reserved = self.delta * _RESERVE[1] + _MARGIN * (delta - self.delta)
        if target <= 0 or reserved >= self.delta:
            raise InputError(f"delta {rounded_up(self.delta)} is below the noise's cut tails", remedy="raise delta")
        if not self.degree_bound:
            return calibrate_pipeline(target, self.delta, [self.training], reserved=reserved)
        parts = (self.training, Hops(count=1, sensitivity=self._sums(1.0).sensitivity, name=_VOTES))
        split = {self.training.name: 1 - SHARE_OF_VOTES, _VOTES: SHARE_OF_VOTES}
        return calibrate_pipeline(target, self.delta, parts, split=split, reserved=reserved)

    def _rounded(self, epsilon: float, delta: float, multiplier: float, votes: float) -> tuple[float, float]:
        """Return the price of noise from tables where exact normal noise would cost (epsilon, delta).

        Args:
            multiplier, votes: the noise of gradients over the clip, and sigma of the votes.
        """
        # Of the widest holder: all holders that guess add the same noise, and none pays more than was agreed.
        parameters = (self.columns + (self.classes if self.degree_bound else 0) + 1) * self.classes
        epsilon, delta = self.schedule(1, multiplier).price(epsilon, delta, parameters)
        return self._sums(votes).price(epsilon, delta, self.classes) if self.degree_bound else (epsilon, delta)

    def _sums(self, sigma: float) -> PerturbedSum:
        # Replaced is removed and added: D rows of a sum each, which the sums know as one node of 2 D receivers.
        return PerturbedSum(unit="node", degree=2 * self.degree_bound, sigmas=(sigma,))

    def schedule(self, people: int, multiplier: float | None = None) -> PrivateSchedule:
        """Return the schedule of a training on some people, whose number is public.

        Args:
            people: how many.
            multiplier: of the noise; default: the one that is paid for.
        """
        # Gradients are divided by the expected batch, from the public number, never by a batch's own private size.
        noise = self.multiplier if multiplier is None else multiplier
        return PrivateSchedule(
            steps=STEPS,
            rate=SAMPLING_RATE,
            expected_batch=SAMPLING_RATE * people,
            noise_multiplier=noise,
            learning_rate=STEP_TIMES_NOISE / noise,
            optimiser="sgd",
        )
