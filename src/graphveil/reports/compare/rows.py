"""The rows of a comparison: one method at one setting, over all seeds, or one finished run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from graphveil.methods.registry import METHODS
from graphveil.methods.runs.intervals import Interval, over_runs
from graphveil.privacy import Guarantee, Ledger
from graphveil.reports.base import trust, words
from graphveil.reports.base.record import RunRecord
from graphveil.reports.compare.cells import Comparison

if TYPE_CHECKING:
    from graphveil.attacks import AttackResult


@dataclass(frozen=True)
class AttackScores:
    """The scores of one attack on a method."""

    auc: Interval
    tpr: Interval  # at 1% false positives
    plain: float | None  # the AUC on a plain network; None: not attacked
    limit: float | None  # the true positive rate that epsilon allows; None: no limit
    beats_limit: bool

    @classmethod
    def of(cls, result: AttackResult, plain: AttackResult | None) -> AttackScores:
        """The scores of a result.

        Args:
            plain: of the same attack on a network without protection; None where it was not attacked.
        """
        plain_auc = None if plain is None else plain.auc.mean
        return cls(result.auc, result.tpr_at_1_fpr, plain_auc, result.limit, result.beats_limit)

    def to_dict(self) -> dict[str, Any]:
        return {
            "auc": self.auc.to_dict(),
            "tpr_at_1_fpr": self.tpr.to_dict(),
            "auc_without_protection": self.plain,
            "limit": self.limit,
            "beats_limit": self.beats_limit,
        }


@dataclass(frozen=True)
class Row:
    """One line of a comparison."""

    method: str
    axes: Mapping[str, Any]  # the settings that were varied, or that distinguish runs
    data: str
    guarantee: Guarantee
    protects: Mapping[str, str]  # aspect of `trust.ASPECTS` -> yes, partly, no, unused
    exposed: tuple[str, ...]  # what is not protected, as cards list it
    collected: str  # how often data are read, in words
    accuracy: Interval | None  # None where nothing was trained (a release) or scored (a party without labels)
    best_control: str | None = None
    control: Interval | None = None  # the accuracy of the best control
    lift: Interval | None = None  # accuracy minus that of the best control
    best_rival: str | None = None
    lead: Interval | None = None  # accuracy minus that of the best rival
    epsilon_relationship: float | None = None
    seconds: float | None = None
    score: str = "accuracy"  # the name of the accuracy
    folder: str | None = None
    attacks: Mapping[str, AttackScores] = field(default_factory=dict)  # by attack

    @property
    def promise(self) -> trust.Promise:
        """What rows must share for their epsilons to be comparable."""
        return trust.Promise.of(self.guarantee)

    @property
    def parts(self) -> tuple[Guarantee, ...]:
        """The guarantees whose epsilons are shown each by itself; none where nothing is protected."""
        return trust.parts_of(self.guarantee) if self.promise.parts else ()

    @property
    def void(self) -> str | None:
        """Why nobody is protected; None where the guarantee holds."""
        return self.guarantee.void

    @property
    def caution(self) -> str | None:
        """What nobody may overlook about the guarantee, or None."""
        return words.asymptotic(self.guarantee)

    @property
    def other_units(self) -> tuple[dict[str, Any], ...]:
        return trust.conversions(self.guarantee, self.epsilon_relationship) if self.promise.parts else ()

    @property
    def open_aspects(self) -> tuple[str, ...]:
        return tuple(aspect for aspect, state in self.protects.items() if state == "no")

    def to_dict(self) -> dict[str, Any]:
        return {
            "method": self.method,
            "data": self.data,
            "folder": self.folder,
            "settings": dict(self.axes),
            "trust": self.promise.trust,
            "unit": self.guarantee.unit.text,
            "unit_code": self.guarantee.unit.code,
            "relation": self.guarantee.relation,
            "against": self.guarantee.against.text,
            "against_code": self.guarantee.against.code,
            "epsilon": self.guarantee.epsilon,
            "delta": self.guarantee.delta,
            "epsilons": [
                {
                    "unit": part.unit.text,
                    "unit_code": part.unit.code,
                    "relation": part.relation,
                    "epsilon": part.epsilon,
                    "delta": part.delta,
                }
                for part in self.parts
            ],
            "other_units": list(self.other_units),
            "protects": dict(self.protects),
            "collected": self.collected,
            "score": self.score,
            "accuracy": _interval_facts(self.accuracy),
            "best_control": self.best_control,
            "control": _interval_facts(self.control),
            "lift": _interval_facts(self.lift),
            "best_rival": self.best_rival,
            "lead": _interval_facts(self.lead),
            "epsilon_relationship": self.epsilon_relationship,
            "seconds": self.seconds,
            "void": self.void,
            "caution": self.caution,
            "attacks": {name: attacked.to_dict() for name, attacked in self.attacks.items()},
        }


def _interval_facts(score: Interval | None) -> dict[str, Any] | None:
    return None if score is None else score.to_dict()


def facts(method: str, guarantee: Guarantee, ledger: Ledger, settings: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a row that follow from guarantee and ledger: guarantee, protects, exposed and collected.

    Args:
        method: says what is read of a person; an unregistered method counts as reading everything.
        settings: epsilon_x is None where features are not collected.
    """
    reads = METHODS[method].reads if method in METHODS else trust.ASPECTS
    return {
        "guarantee": guarantee,
        "protects": trust.protection(guarantee, reads, settings),
        "exposed": words.not_protected(guarantee, settings),
        "collected": trust.collection_count(ledger, trust.Promise.of(guarantee)),
    }


def tabulate(comparison: Comparison, records: Sequence[RunRecord]) -> list[Row]:
    """One row for each method and setting; its score is over the seeds.

    Args:
        records: one for each of its cells, in their order.
    """
    groups: dict[tuple[str, tuple[tuple[str, Any], ...]], list[RunRecord]] = {}
    for cell, record in zip(comparison.cells(), records, strict=True):
        axes = tuple((axis, cell.settings[axis]) for axis in comparison.takes[cell.method])
        groups.setdefault((cell.method, axes), []).append(record)
    return [row_of(method, dict(axes), group) for (method, axes), group in groups.items()]


def row_of(method: str, axes: Mapping[str, Any], group: Sequence[RunRecord]) -> Row:
    """The row of at least one record; the records differ only in their seeds.

    Args:
        axes: setting -> value, as varied in the comparison.
    """
    first = group[0]
    best, control, lift = _best(group, "control")
    rival, _, lead = _best(group, "rival")
    return Row(
        method=method,
        axes=axes,
        data=first.data,
        **facts(method, first.privacy.guarantee, first.privacy.ledger, first.settings),
        accuracy=over_runs([record.scores.accuracy for record in group]),
        best_control=best,
        control=control,
        lift=lift,
        best_rival=rival,
        lead=lead,
        epsilon_relationship=first.privacy.epsilon_relationship,
        seconds=sum(record.cost.seconds for record in group),
        score=words.score_name(first),
    )


def _best(group: Sequence[RunRecord], kind: str) -> tuple[str | None, Interval | None, Interval | None]:
    """The control or rival with the best mean over the seeds, its score, and the difference, paired seed by seed."""
    first = group[0]
    scores = [record.scores.controls if kind == "control" else record.scores.rivals for record in group]
    if len(group) == 1:
        of_control, of_rival = (first.scores.best_control, first.scores.lift), (first.scores.best_rival, first.lead)
        best, lead = of_control if kind == "control" else of_rival
        return best, None if best is None else scores[0][best], lead
    best = max(scores[0], key=lambda name: sum(by_name[name].mean for by_name in scores), default=None)
    if best is None:
        return None, None, None
    best_scores = [by_name[best] for by_name in scores]
    leads = [_one_lead(record, best, other, kind) for record, other in zip(group, best_scores, strict=True)]
    return best, over_runs(best_scores), over_runs(leads, difference=True)


def _one_lead(record: RunRecord, best: str, best_score: Interval, kind: str) -> Interval:
    """One run's difference, with its interval over the nodes if it was measured against the same control."""
    mean, lift = record.scores.accuracy.mean - best_score.mean, record.scores.lift
    if kind == "control" and best == record.scores.best_control and lift is not None:
        return Interval(mean, mean + lift.low - lift.mean, mean + lift.high - lift.mean, (mean,), lift.kind)
    return Interval(mean, mean, mean, (mean,))
