"""Several questions about one person under one budget, which is split over all of them, or over a random few.

Answers to different questions are independent given the data, so a report is as likely as the product of its answers,
and epsilons add up. Drawing m of the J questions says nothing of the person, and leaves epsilon / m for each that is
drawn; estimates are then multiplied by J / m. What has less variance is chosen from public facts alone.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from graphveil.errors import InputError
from graphveil.mechanisms.base.reports import require_pairs
from graphveil.mechanisms.base.values import FloatArray, Values
from graphveil.mechanisms.labels.choice import best_category
from graphveil.mechanisms.question import Question
from graphveil.mechanisms.samplers.subsets import draw_subsets, log_subsets
from graphveil.privacy import Guarantee, Randomness, share_out
from graphveil.runtime.checks import require_whole
from graphveil.runtime.late import torch

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True, eq=False)
class MixedReports:
    """What users answer: which questions each was asked, and the answers to each question in the users' order.

    Args:
        assigned: bool [n, J].
        answers: for each question the reports of the people who were asked it; None: nobody was.
    """

    assigned: Tensor
    answers: tuple[Any, ...]

    def __post_init__(self) -> None:
        counts = [0 if answers is None else len(answers) for answers in self.answers]
        # A surplus answer would be attributed to another person.
        if self.assigned.ndim != 2 or self.assigned.sum(dim=0).tolist() != counts:
            raise InputError(f"{counts} answers for {tuple(self.assigned.shape)} questions", where="reports")

    def __len__(self) -> int:
        return len(self.assigned)

    def to_tensors(self) -> dict[str, Tensor]:
        tensors = {
            f"{number}.{key}": part
            for number, reports in enumerate(self.answers)
            if reports is not None
            for key, part in reports.to_tensors().items()
        }
        return {"asked": self.assigned, **tensors}


@dataclass(frozen=True, kw_only=True)
class Mixed:
    """Randomizes the answers to several questions about one person. Raises InputError for no question, questions about
    different vectors, or weights and samples that do not fit.

    Formal guarantees: epsilon-local privacy of the whole vector under replacement: the epsilons of the answers that one
    report holds add up to at most epsilon, and which questions are asked is drawn without looking at the data.

    Args:
        epsilon: finite and positive, for all answers of one person together.
        questions: what is asked, about one kind of encoded vectors; their own epsilons do not count.
        weights: the published importance of each question: all are asked, each at its share of epsilon. None: evenly.
        sampled: how many of the questions each person is asked, at equal parts of epsilon; None: the number with the
            least variance of all estimates together, or all of them where weights are given.
    """

    epsilon: float
    questions: tuple[Question, ...]
    weights: tuple[float, ...] | None = None
    sampled: int | None = None

    def __post_init__(self) -> None:
        if not self.questions or len({question.domain for question in self.questions}) != 1:
            raise InputError("no questions, or about different vectors", where="Mixed", allowed="one kind of vectors")
        if self.weights is not None and (len(self.weights) != len(self.questions) or self.sampled is not None):
            raise InputError("weights do not fit", where="Mixed", allowed="one for each question, and no sample")
        if self.sampled is not None:
            require_whole(1, len(self.questions), "Mixed", sampled=self.sampled)
        _ = self.parts

    @property
    def drawn(self) -> int:
        """m: how many questions each person is asked."""
        if self.weights is not None:
            return len(self.questions)
        return self.sampled or best_sample(self.epsilon, tuple(len(question.answers) for question in self.questions))

    @property
    def parts(self) -> tuple[Question, ...]:
        """The questions at the epsilon that each has where it is asked."""
        count = len(self.questions)
        weights = (1.0,) * self.drawn if self.weights is None else self.weights
        # Over the questions that are asked, not all of them: the rest cost nothing.
        shares = share_out(self.epsilon, weights)
        each = (shares[0],) * count if self.weights is None else shares
        return tuple(replace(question, epsilon=share) for question, share in zip(self.questions, each, strict=True))

    @property
    def total_variance(self) -> float:
        """The largest variance of all estimates of one person together."""
        scale = len(self.questions) / self.drawn
        # A one-hot truth has length 1, and is 0 with probability 1 - m/J where the question is not asked.
        return sum(scale * part.mechanism.law.total_variance + scale - 1 for part in self.parts)

    @property
    def report_bytes(self) -> float:
        """Bytes of one report, of the largest questions that may be asked together."""
        # What may be sent at most: a report may not grow with what it holds.
        return sum(sorted(part.report_bytes for part in self.parts)[-self.drawn :])

    @property
    def guarantee(self) -> Guarantee:
        return self.questions[0].domain.guarantee(self.epsilon)

    def randomize(self, values: Values, *, randomness: Randomness) -> MixedReports:
        """What the devices send. Raises InputError for a block that encodes no answer; the row is named, and nothing is
        encoded.

        Args:
            values: encoded vectors [n, d].
        """
        # All blocks are read and checked before the first draw: a refusal says nothing of the rows before it.
        truths = [part.truth(values) for part in self.parts]
        assigned = np.zeros((len(truths[0]), len(truths)), np.bool_)
        np.put_along_axis(assigned, draw_subsets(*assigned.shape, self.drawn, randomness), True, axis=1)
        answers = (
            part.mechanism.randomize(true[people], randomness=randomness) if people.any() else None
            for part, true, people in zip(self.parts, truths, assigned.T, strict=True)
        )
        return MixedReports(torch.from_numpy(assigned), tuple(answers))

    def evidence(self, reports: MixedReports) -> tuple[FloatArray, ...]:
        """log Pr[answer sent | answer] of each question, float64 [n, k]; zeros for those who were not asked it."""
        evidence = []
        for part, answers, people in zip(self.parts, reports.answers, reports.assigned.numpy().T, strict=True):
            # Zeros for all answers are no evidence: they leave a posterior as it is.
            each = np.zeros((len(reports), len(part.answers)))
            if answers is not None:
                each[people] = part.mechanism.evidence(answers)
            evidence.append(each)
        return tuple(evidence)

    def estimate(self, reports: MixedReports) -> tuple[FloatArray, ...]:
        """The unbiased estimate of the one-hot answer to each question, float64 [n, k]."""
        estimates = []
        for part, answers, people in zip(self.parts, reports.answers, reports.assigned.numpy().T, strict=True):
            each = np.zeros((len(reports), len(part.answers)))
            if answers is not None:
                each[people] = part.mechanism.estimate(answers).double().numpy() * (len(self.parts) / self.drawn)
            estimates.append(each)
        return tuple(estimates)

    def log_likelihood(self, reports: MixedReports, values: Values) -> Tensor:
        """log Pr[report | value] for each row, float64 [n].

        Args:
            values: encoded vectors [n, d], what each was made from.
        """
        truths = [part.truth(values) for part in self.parts]
        require_pairs(len(reports), len(truths[0]))
        rows = np.arange(len(reports))
        total = sum(each[rows, true] for each, true in zip(self.evidence(reports), truths, strict=True))
        return torch.from_numpy(np.asarray(total) - log_subsets(len(self.parts), self.drawn))

    def variance(self, values: Values) -> tuple[FloatArray, ...]:
        """The variance of the estimate of each question's answer, float64 [n, k], for encoded vectors [n, d]."""
        scale, variances = len(self.parts) / self.drawn, []
        for part in self.parts:
            true = part.truth(values)
            hot = true[:, None] == np.arange(len(part.answers))
            variances.append(scale * part.mechanism.variance(true).numpy() + (scale - 1) * hot)
        return tuple(variances)


@lru_cache(maxsize=64)
def best_sample(epsilon: float, answers: tuple[int, ...]) -> int:
    """How many questions to ask each person for the least variance of all estimates together."""
    # Every number is tried: questions are few, and totals may have several minima.
    return min(range(1, len(answers) + 1), key=lambda drawn: sampled_variance(epsilon, answers, drawn))


def sampled_variance(epsilon: float, answers: tuple[int, ...], drawn: int) -> float:
    """The largest variance of all estimates of one person together.

    Args:
        drawn: how many of the questions each person is asked, at equal parts of epsilon.
    """
    scale = len(answers) / drawn
    return sum(scale * best_category(epsilon / drawn, k).law.total_variance + scale - 1 for k in answers)
