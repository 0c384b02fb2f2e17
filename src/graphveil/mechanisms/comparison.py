"""Mechanisms side by side: of features by error, size and speed; of a category in closed form."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, Final, TypeVar

import numpy as np
import numpy.typing as npt

from graphveil.errors import InputError
from graphveil.mechanisms.base import _validate
from graphveil.mechanisms.base.mechanism import Reports
from graphveil.mechanisms.base.values import FloatArray, blocks
from graphveil.mechanisms.catalogue import MechanismInfo, catalogue
from graphveil.mechanisms.labels.choice import best_category
from graphveil.mechanisms.mixed import best_sample, sampled_variance
from graphveil.privacy import Randomness, require_budget
from graphveil.runtime.checks import require_whole
from graphveil.runtime.progress import Progress, ProgressCallback

# The work of a comparison by default: seconds, and tens of megabytes.
_USERS: Final = 10_000
_NUMBERS: Final = 5_000_000
# Speed is that of the quickest of at most so many trials, which together take about so many seconds at most.
_MOST_TRIALS, _MOST_SECONDS = 5, 0.2


R = TypeVar("R", bound=Reports)


@dataclass(frozen=True)
class Measurement:
    """One mechanism at one epsilon. Squared errors are those of one coordinate, in the squared unit of the values.

    Args:
        epsilon, delta: for one user's whole vector.
        worst_mse: mean squared error of one user's estimate at the worst input, in closed form.
        mse: the same, measured on the synthetic input.
        mean_mse: mean squared error of the average over all users, measured on the synthetic input.
    """

    mechanism: str
    epsilon: float
    delta: float
    worst_mse: float
    mse: float
    mean_mse: float
    report_bytes: float
    users_per_second: float


@dataclass(frozen=True)
class Refusal:
    """A mechanism that refuses the question, and why."""

    mechanism: str
    epsilon: float
    reason: str


@dataclass(frozen=True)
class Question:
    """What mechanisms are compared on. Raises InputError where a parameter is outside its range, an epsilon is given
    twice, or users x dimension exceeds 50,000,000.

    Args:
        epsilons: for one user's whole vector, each finite and positive.
        users: number of synthetic vectors; default: 10,000, fewer where that exceeds 5,000,000 numbers.
        delta: of the mechanisms that need one; they refuse 0.
    """

    epsilons: tuple[float, ...]
    dimension: int
    users: int | None = None
    low: float = 0.0
    high: float = 1.0
    delta: float = 1e-10

    def __post_init__(self) -> None:
        # The same epsilon twice would show two rows that differ by chance alone.
        if not self.epsilons or len(set(self.epsilons)) != len(self.epsilons):
            raise InputError(f"epsilons are {list(self.epsilons)}", allowed="one or more, each once")
        for epsilon in self.epsilons:
            _validate.require_epsilon(epsilon)
            require_budget("epsilon", epsilon, "data declared public, which need no mechanism")
        require_whole(1, dimension=self.dimension)
        if self.users is not None:
            require_whole(1, users=self.users)
        _validate.require_range(low=self.low, high=self.high)
        _validate.require_delta(0.0, delta=self.delta)
        _validate.require_dense_size(self.count, self.dimension, "the synthetic input", most=_validate.WORK_LIMIT)

    @property
    def count(self) -> int:
        return self.users or min(_USERS, max(1, _NUMBERS // self.dimension))

    @property
    def input(self) -> str:
        """The synthetic input in one sentence."""
        if self.dimension == 1:
            shape = "1 coordinate", "uniform on its lower half"
        else:
            moves = "from the lower half at the first coordinate to the upper half at the last"
            shape = f"{self.dimension:,} coordinates", f"each uniform on half of the range, which moves {moves}"
        return f"{self.count:,} users, {shape[0]} in [{self.low:g}, {self.high:g}], {shape[1]}"

    def values(self) -> FloatArray:
        """The synthetic input [users, dimension], always the same and nobody's data."""
        # Half of the range, shifted: at one value for all, mechanisms that favour the middle would look best.
        shift = np.linspace(0.0, 0.5, self.dimension)
        # A fixed generator is right here: the input is made up, and the same for every mechanism that is compared.
        shares = np.random.default_rng(0).random((self.count, self.dimension)) / 2 + shift
        return np.clip(self.low + (self.high - self.low) * shares, self.low, self.high)


def compare(
    question: Question, *, randomness: Randomness, progress: ProgressCallback | None = None
) -> list[Measurement | Refusal]:
    """Every feature mechanism of the catalogue at every epsilon, the least worst-case error first at each."""
    values, mechanisms = question.values(), [info for info in catalogue() if info.kind == "features"]
    results: list[Measurement | Refusal] = []
    for index, epsilon in enumerate(question.epsilons):
        rows = []
        for number, info in enumerate(mechanisms):
            if progress:
                total = len(question.epsilons) * len(mechanisms)
                progress(Progress(index * len(mechanisms) + number, total, "measuring mechanisms"))
            rows.append(_measure(info, epsilon, question, values, randomness))
        results += sorted(rows, key=lambda row: row.worst_mse if isinstance(row, Measurement) else np.inf)
    return results


def _measure(
    info: MechanismInfo, epsilon: float, question: Question, values: FloatArray, randomness: Randomness
) -> Measurement | Refusal:
    """The measurement of one mechanism, or its refusal: each mechanism has bounds of its own."""
    settings: dict[str, Any] = {"dimension": question.dimension, "low": question.low, "high": question.high}
    if info.takes("delta"):
        settings["delta"] = question.delta
    # A mechanism may refuse an epsilon or dimension that others accept: that is a result too.
    try:
        mechanism = info.mechanism(epsilon=epsilon, **settings)
    except InputError as error:
        return Refusal(info.name, epsilon, str(error))
    mechanism.randomize(values[:1], randomness=randomness)  # tables that are made once do not count
    seconds: list[float] = []
    while sum(seconds) < _MOST_SECONDS and len(seconds) < _MOST_TRIALS:
        start = time.perf_counter()
        reports = mechanism.randomize(values, randomness=randomness)
        seconds.append(time.perf_counter() - start)
    user_mse, mean_mse = _errors(mechanism.estimate(reports).numpy(), values)
    guarantee = mechanism.guarantee
    return Measurement(
        mechanism=info.name,
        epsilon=guarantee.epsilon,
        delta=guarantee.delta,
        worst_mse=mechanism.worst_variance,
        mse=user_mse,
        mean_mse=mean_mse,
        report_bytes=mechanism.report_bytes,
        # The quickest trial: other work on the machine can only slow a trial down.
        users_per_second=len(values) / min(seconds),
    )


def _errors(estimate: npt.NDArray[np.float32], values: FloatArray) -> tuple[float, float]:
    """Mean squared errors per coordinate: of one user's estimate, and of the average over all users."""
    squares, sums = 0.0, np.zeros(values.shape[1])
    for start, stop in blocks(*values.shape):
        error = estimate[start:stop] - values[start:stop]
        squares += float((error**2).sum())
        sums += error.sum(axis=0)
    return squares / values.size, float(((sums / len(values)) ** 2).mean())


def measurements_of(results: Sequence[Measurement | Refusal]) -> list[Measurement]:
    return [result for result in results if isinstance(result, Measurement)]


def refusals_of(results: Sequence[Measurement | Refusal]) -> list[Refusal]:
    return [result for result in results if isinstance(result, Refusal)]


@dataclass(frozen=True)
class CategoryRow:
    """One mechanism at one epsilon and number of answers.

    Args:
        total_variance: of all coordinates of the one-hot estimate together.
        best: whether this mechanism is used for questions with so many answers.
    """

    mechanism: str
    epsilon: float
    answers: int
    total_variance: float
    report_bytes: float
    best: bool


@dataclass(frozen=True)
class TogetherRow:
    """All questions under one epsilon (see `mixed`).

    Args:
        drawn: how many of them each person is asked, for the least variance.
        total_variance: of all estimates of one person together.
    """

    epsilon: float
    questions: int
    drawn: int
    epsilon_each: float
    total_variance: float


def compare_categories(epsilons: Sequence[float], answers: Sequence[int]) -> list[CategoryRow]:
    """Every mechanism of a category, the least variance first at each epsilon and number of answers.

    Args:
        answers: how many answers a question has, each 2 to 4096.

    >>> [row.mechanism for row in compare_categories((1.0,), (8,)) if row.best]
    ['subset-selection']
    """
    rows: list[CategoryRow] = []
    for epsilon, count in product(epsilons, answers):
        best, ranked = type(best_category(epsilon, count)), []
        for info in catalogue():
            if info.kind == "labels":
                built = info.mechanism(epsilon=epsilon, classes=count)
                facts = epsilon, count, built.law.total_variance, built.report_bytes
                ranked.append(CategoryRow(info.name, *facts, isinstance(built, best)))
        # The chosen mechanism comes before those that are equal up to rounding.
        rows += sorted(ranked, key=lambda row: (not row.best, row.total_variance))
    return rows


def compare_together(epsilons: Sequence[float], answers: Sequence[int]) -> list[TogetherRow]:
    """What the questions cost under one budget; nothing where there is one."""
    rows = []
    for epsilon in epsilons if len(answers) > 1 else ():
        drawn = best_sample(epsilon, tuple(answers))
        variance = sampled_variance(epsilon, tuple(answers), drawn)
        rows.append(TogetherRow(epsilon, len(answers), drawn, epsilon / drawn, variance))
    return rows
