"""The result of an attack, as one frozen value: how well it tells members from others, and what epsilon allows.

AUC        the chance that a random member scores above a random other (ties count half)
advantage  TPR - FPR at a threshold that was chosen on the other half of the pairs, so that luck does not count
TPR at 1%  of false alarms: who a careful adversary is sure of (Carlini et al., "Membership inference attacks from
           first principles", IEEE S&P 2022, section III)
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

import numpy as np

from graphveil.attacks.limits import Limit
from graphveil.errors import InputError
from graphveil.files.serial import number_to_json
from graphveil.methods.runs.intervals import Interval
from graphveil.runtime.checks import is_number
from graphveil.runtime.words import count_of

FALSE_ALARMS = 0.01
_DRAWS = 400
_CURVE = 200


@dataclass(frozen=True)
class Samples:
    """Images of some people beside what an attack made of them, [k, rows, columns] each, 0..1, and their classes [k].
    For the picture alone: true images of people are never written as numbers.
    """

    classes: tuple[str, ...]
    original: np.ndarray
    reconstructed: np.ndarray


@dataclass(frozen=True)
class AttackResult:
    """One attack on one method.

    Attributes:
        name: the attack, such as "linkteller"; target: what was attacked, in words.
        auc, advantage, tpr_at_1_fpr: each with its 95% interval, see the module; 0.5, 0 and 0.01 are chance.
        limit: the largest TPR at 1% false alarms that the method's own epsilon allows; None where epsilon is infinite
            or the secret is not what the method protects.
        advantage_limit: the largest advantage that it allows, or None.
        limit_note: where the limit comes from, or why there is none.
        epsilon, delta: what the limit was computed from.
        baseline: AUC of the same attack without the protected thing (such as the graph without its edges), or None;
            what was there anyway is no leak of the method. baseline_note: what that was.
        baseline_high: where several trainings were compared: the AUC that one more without the secret stays below, but
            for a false alarm in 1,000; or None.
        roc: (FPR, TPR) of a curve with at most 200 corners, for the picture.
        positives, negatives: how many members and others were told apart.
        figures: further numbers of this attack by name, such as F1 at a density belief.
        notes: what a reader must know. samples: images, of attacks that reconstruct some; not part of `to_dict`.
    """

    name: str
    target: str
    auc: Interval
    advantage: Interval
    tpr_at_1_fpr: Interval
    limit: float | None
    advantage_limit: float | None
    limit_note: str
    epsilon: float
    delta: float
    baseline: float | None
    baseline_note: str
    roc: tuple[tuple[float, float], ...]
    positives: int
    negatives: int
    figures: Mapping[str, float] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    baseline_high: float | None = None
    samples: Samples | None = field(default=None, compare=False, repr=False)

    @property
    def beats_limit(self) -> bool:
        """Whether the TPR or the advantage lies, with its whole interval, above what epsilon allows. Not where the AUC
        is no better than its baseline's: what was there without the secret did not leak.
        """
        baseline = self.baseline if self.baseline_high is None else self.baseline_high
        # The interval's low end: a result that may lie at its baseline accuses no method.
        if baseline is not None and self.auc.low <= baseline:
            return False
        over_tpr = self.limit is not None and self.tpr_at_1_fpr.low > self.limit
        return over_tpr or (self.advantage_limit is not None and self.advantage.low > self.advantage_limit)

    def to_dict(self) -> dict[str, Any]:
        """Return the value as JSON types; infinity is the string "inf"."""
        scores = {name: getattr(self, name).to_dict() for name in ("auc", "advantage", "tpr_at_1_fpr")}
        epsilon = number_to_json(self.epsilon)
        plain = {key: value for key, value in asdict(self).items() if key not in (*scores, "samples")}
        return {
            **plain,
            **scores,
            "epsilon": epsilon,
            "roc": [list(corner) for corner in self.roc],
            "figures": dict(self.figures),
            "notes": list(self.notes),
        }

    @classmethod
    def from_dict(cls, facts: Mapping[str, Any]) -> AttackResult:
        """The inverse of `to_dict`; KeyError, TypeError or ValueError for anything else."""
        scores = {
            name: Interval(**{**facts[name], "runs": tuple(facts[name]["runs"])})
            for name in ("auc", "advantage", "tpr_at_1_fpr")
        }
        roc = tuple((float(false), float(true)) for false, true in facts["roc"])
        parsed = {"epsilon": float(facts["epsilon"]), "roc": roc, "notes": tuple(facts["notes"])}
        result = cls(**{**facts, **scores, **parsed})
        intervals = (result.auc, result.advantage, result.tpr_at_1_fpr)
        numbers = [result.delta, result.positives, result.negatives, *result.figures.values()]
        optional = (result.limit, result.advantage_limit, result.baseline, result.baseline_high)
        numbers += [number for number in optional if number is not None]
        numbers += [number for interval in intervals for number in (interval.mean, interval.low, interval.high)]
        numbers += [number for interval in intervals for number in interval.runs]
        texts = [result.name, result.target, result.limit_note, result.baseline_note, *result.notes, *result.figures]
        is_valid = all(map(is_number, numbers)) and all(isinstance(text, str) for text in texts)
        if not is_valid or result.samples is not None:
            raise TypeError("a field holds no number, or no text")
        return result


def judge(
    name: str,
    target: str,
    members: np.ndarray,
    non_members: np.ndarray,
    *,
    limit: Limit,
    seed: int = 0,
    baseline: float | None = None,
    baseline_note: str = "",
    baseline_high: float | None = None,
    figures: Mapping[str, float] | None = None,
    notes: tuple[str, ...] = (),
) -> AttackResult:
    """Return how well scores [p] of members and [q] of others tell the two apart; higher means member.

    Intervals hold for members and others drawn on their own: pairs that share a node make them somewhat wider in
    truth.  The AUC's is a stratified bootstrap, the advantage's Newcombe's, and the TPR's the wider of a bootstrap and
    Clopper and Pearson's.

    Args:
        members, non_members: scores [p] and [q].
        limit: what epsilon allows this attack, or why nothing is known.
        seed: fixes bootstrap draws and the halves that thresholds are chosen on. All others: fields of the result.

    Raises:
        InputError: when there are fewer than two of either, or a score is not a number.
    """
    members, non_members = np.asarray(members, dtype=np.float64), np.asarray(non_members, dtype=np.float64)
    if min(len(members), len(non_members)) < 2:
        raise InputError(
            f"{count_of(len(members), 'member')} and {count_of(len(non_members), 'other')}",
            where=name,
            allowed="at least two of each",
        )
    # NaN would sort to one end and count as a member or as none there: a broken score must not pass for a finding.
    if not (np.isfinite(members).all() and np.isfinite(non_members).all()):
        raise InputError("a score is not a finite number", where=name)
    table = _Table.of(members, non_members)
    rng = np.random.default_rng([seed, 0xA77])
    if len(non_members) < 1 / FALSE_ALARMS:
        notes = (*notes, f"{len(non_members)} others are too few to see 1% of false alarms: the TPR is interpolated")
    # All draws follow from the seed, so that the same scores always give the same intervals.
    auc, tpr = _bootstrapped(table, rng)
    return AttackResult(
        name,
        target,
        auc,
        _advantage(members, non_members, rng),
        tpr,
        limit.tpr(FALSE_ALARMS),
        limit.advantage,
        limit.note,
        limit.epsilon,
        limit.delta,
        baseline,
        baseline_note,
        table.corners(),
        len(members),
        len(non_members),
        dict(figures or {}),
        notes,
        baseline_high,
    )


def auc_of(members: np.ndarray, non_members: np.ndarray) -> float:
    """The chance that a member scores above an other, ties half.

    Args:
        members, non_members: scores [p] and [q], at least one of each.
    """
    from sklearn.metrics import roc_auc_score

    # Rounded because sums of steps differ in the last digits by machine.
    return round(float(roc_auc_score(*_labelled(members, non_members))), 12)


def sample_of(scores: np.ndarray, most: int, rng: np.random.Generator) -> np.ndarray:
    """Return the scores, or so many of them drawn at random where there are more."""
    return scores if len(scores) <= most else rng.choice(scores, most, replace=False)


def _labelled(members: np.ndarray, non_members: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """1 or 0 for each score, and the scores, as scikit-learn takes them."""
    scores = np.concatenate([np.asarray(members, np.float64), np.asarray(non_members, np.float64)])
    return np.arange(len(scores)) < len(members), scores


@dataclass(frozen=True)
class _Table:
    """Scores from the highest down: for each distinct one how many members and others have it, and whose they are. One
    order serves every draw of a bootstrap; scikit-learn's functions would sort the scores again for each.
    """

    places: np.ndarray
    member: np.ndarray
    levels: int

    @classmethod
    def of(cls, members: np.ndarray, non_members: np.ndarray) -> _Table:
        # Equal scores share one level, so that ties count half in the AUC whatever their order.
        values, places = np.unique(-np.concatenate([members, non_members]), return_inverse=True)
        return cls(places, np.arange(len(places)) < len(members), len(values))

    def curve(self, weights: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
        """Return FPR and TPR [levels + 1] at every threshold, of reweighted rows where weights are given."""
        sides = []
        for side in (~self.member, self.member):
            chosen = None if weights is None else weights[side]
            passed = np.cumsum(np.bincount(self.places[side], chosen, minlength=self.levels))
            sides.append(np.concatenate([[0.0], passed / passed[-1]]))
        return sides[0], sides[1]

    def scores(self, weights: np.ndarray | None) -> tuple[float, float]:
        false, true = self.curve(weights)
        return round(float(np.trapezoid(true, false)), 12), float(_tpr_at(false, true, FALSE_ALARMS))

    def corners(self) -> tuple[tuple[float, float], ...]:
        """Return at most 200 points of the curve, close together where false alarms are few."""
        false, true = self.curve(None)
        # Half the points on a log scale: the region of few false alarms is what matters.
        grid = np.unique(np.concatenate([np.geomspace(1e-4, 1.0, _CURVE // 2), np.linspace(0, 1, _CURVE // 2)]))
        places = np.unique(np.searchsorted(false, grid, side="right") - 1)
        corners = np.union1d(places, [0, len(false) - 1])
        return tuple((float(false[place]), float(true[place])) for place in corners)


def _tpr_at(false: np.ndarray, true: np.ndarray, rate: float) -> float:
    """Return the TPR at a rate of false alarms; between two thresholds one flips a coin."""
    after = int(np.searchsorted(false, rate, side="right"))
    if after == len(false):
        return float(true[-1])
    # Between two thresholds the curve is a straight line, which a biased coin reaches.
    share = (rate - false[after - 1]) / (false[after] - false[after - 1])
    return float(true[after - 1] + share * (true[after] - true[after - 1]))


def _bootstrapped(table: _Table, rng: np.random.Generator) -> tuple[Interval, Interval]:
    scores = table.scores(None)
    p, q = int(table.member.sum()), int((~table.member).sum())
    draws = np.empty((_DRAWS, 2))
    for row in draws:
        # Members and others are drawn apart, so that each draw has as many of both as the attack had.
        weights = np.empty(p + q)
        weights[:p] = np.bincount(rng.integers(p, size=p), minlength=p)
        weights[p:] = np.bincount(rng.integers(q, size=q), minlength=q)
        row[:] = table.scores(weights)
    low, high = np.quantile(draws, [0.025, 0.975], axis=0)
    if scores[0] in (0.0, 1.0):  # nothing varies in a bootstrap of a perfect separation
        # Exact instead: at p^n = 0.025 lies the smallest chance under which n successes of n are no surprise.
        surely = 0.025 ** (1 / min(p, q))
        low[0], high[0] = (surely, 1.0) if scores[0] == 1.0 else (0.0, 1 - surely)
    share = _share_interval(round(scores[1] * p), p, "exact")
    # A bootstrap of few positives is too narrow; the exact interval is a floor for its width.
    low[1], high[1] = min(low[1], float(share.low)), max(high[1], float(share.high))
    auc, tpr = (
        Interval(value, min(float(low[i]), value), max(float(high[i]), value), (value,))
        for i, value in enumerate(scores)
    )
    return auc, tpr


def _share_interval(hits: int, tries: int, method: Literal["exact", "wilson"]) -> Any:
    """The 95% interval of a share, with `low` and `high`."""
    from scipy import stats  # slow to import, and a stored result needs none of it

    return stats.binomtest(hits, tries).proportion_ci(0.95, method)


def _advantage(members: np.ndarray, non_members: np.ndarray, rng: np.random.Generator) -> Interval:
    """Choose a threshold on one half, use it on the other, and the other way round."""
    from sklearn.metrics import roc_curve

    shuffled_members, shuffled_others = rng.permutation(members), rng.permutation(non_members)
    halves = [(shuffled_members[i::2], shuffled_others[i::2]) for i in (0, 1)]
    hits = alarms = 0
    for chosen, used in ((halves[0], halves[1]), (halves[1], halves[0])):
        # A threshold chosen on the scores it is judged by would find an advantage in pure noise.
        false, true, thresholds = roc_curve(*_labelled(*chosen), drop_intermediate=False)
        threshold = float(thresholds[np.argmax(true - false)])
        hits += int((used[0] >= threshold).sum())
        alarms += int((used[1] >= threshold).sum())
    p, q = len(members), len(non_members)
    true, false = hits / p, alarms / q
    up, down = _share_interval(hits, p, "wilson"), _share_interval(alarms, q, "wilson")
    value = true - false
    # Newcombe's: Wilson's limits of both rates, added as squares, hold at rates near 0 and 1 where normal ones do not.
    low = value - math.hypot(true - up.low, down.high - false)
    high = value + math.hypot(up.high - true, false - down.low)
    return Interval(value, max(low, -1.0), min(high, 1.0), (value,))
