"""The record of a run in its folder: everything of a result except the trained model."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

import graphveil
from graphveil.errors import InputError
from graphveil.methods.runs.intervals import Interval, over_runs
from graphveil.methods.runs.result import Cost, RunPrivacy, Scores
from graphveil.privacy import Guarantee, Ledger

if TYPE_CHECKING:
    from graphveil.methods.runs.result import Result

_MOST_NOTES = 10_000


def interval_from_dict(content: Mapping[str, Any]) -> Interval:
    """The inverse of ``Interval.to_dict``; InputError where a number is missing or no number."""
    try:
        mean, low, high = (float(content[key]) for key in ("mean", "low", "high"))
        return Interval(mean, low, high, tuple(float(run) for run in content["runs"]), str(content.get("kind", "")))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InputError(f"no interval: {content!r}", allowed="mean, low, high, runs as numbers") from error


@dataclass(frozen=True)
class Standing:
    """One accuracy of a run."""

    name: str
    kind: str  # "own", "rival", "control" or "ceiling"
    score: Interval
    best: bool = False  # whether it is the best of its kind


@dataclass(frozen=True)
class RunRecord:
    """One finished training run, as printed, saved and reported; scores, privacy and cost as in `Result`."""

    method: str
    data: str
    settings: Mapping[str, Any]
    options: Mapping[str, Any]  # choices that are no settings of the method: seed, repeats, device
    scores: Scores
    privacy: RunPrivacy
    cost: Cost
    history: Sequence[Sequence[Mapping[str, Any]]]  # repeat -> epochs
    notes: tuple[str, ...] = ()  # remarks for readers
    created: str = ""
    version: str = ""
    run: str | None = None  # its folder
    built: str = ""  # the method that was actually trained

    @property
    def lead(self) -> Interval | None:
        """The accuracy minus that of the best rival at the same privacy cost; None where no rival was trained."""
        scores = self.scores
        return None if scores.best_rival is None else difference(scores.accuracy, scores.rivals[scores.best_rival])

    @property
    def standings(self) -> Iterator[Standing]:
        """Every accuracy: the run's own, rivals and controls from the best down, and the ceiling."""
        scores = self.scores
        yield Standing(self.method, "own", scores.accuracy)
        for kind, best, group in (
            ("rival", scores.best_rival, scores.rivals),
            ("control", scores.best_control, scores.controls),
        ):
            for name, score in sorted(group.items(), key=lambda item: -item[1].mean):
                yield Standing(name, kind, score, name == best)
        if scores.ceiling is not None:
            yield Standing("not private (ceiling)", "ceiling", scores.ceiling)

    @classmethod
    def from_result(cls, result: Result, *, options: Mapping[str, Any]) -> RunRecord:
        """The record of a result, created now.

        Args:
            options: choices that are no settings of the method, such as seed and split.
        """
        return cls(
            method=result.method,
            data=result.data,
            settings=dict(result.settings),
            options=dict(options),
            scores=result.scores,
            privacy=result.privacy,
            cost=result.cost,
            history=result.history,
            notes=tuple(result.notes),
            created=datetime.now().astimezone().isoformat(timespec="seconds"),
            version=graphveil.__version__,
            built=result.built,
        )

    def in_folder(self, folder: str) -> RunRecord:
        """The same record with its folder."""
        return replace(self, run=folder)

    def to_dict(self) -> dict[str, Any]:
        """The object of ``--json`` and ``result.json`` (epochs are in ``metrics.jsonl``)."""
        scores, privacy, cost = self.scores, self.privacy, self.cost
        return {
            "method": self.method,
            "built": self.built,
            "data": self.data,
            "accuracy": scores.accuracy.to_dict(),
            "controls": {name: score.to_dict() for name, score in scores.controls.items()},
            "best_control": scores.best_control,
            "ceiling": None if scores.ceiling is None else scores.ceiling.to_dict(),
            "lift": None if scores.lift is None else scores.lift.to_dict(),
            "rivals": {name: score.to_dict() for name, score in scores.rivals.items()},
            "best_rival": scores.best_rival,
            "epsilon_relationship": privacy.epsilon_relationship,
            "guarantee": privacy.guarantee.to_dict(),
            "guarantee_sentence": privacy.guarantee.sentence(),
            "ledger": privacy.ledger.to_dict(),
            "settings": dict(self.settings),
            "options": dict(self.options),
            "notes": list(self.notes),
            "seconds": cost.seconds,
            "seconds_method": cost.seconds_method,
            "peak_memory_mb": cost.peak_memory_mb,
            "created": self.created,
            "version": self.version,
            "run": self.run,
        }

    @classmethod
    def from_dict(cls, content: Mapping[str, Any], *, history: Sequence[Sequence[Mapping[str, Any]]] = ()) -> RunRecord:
        """The inverse of :meth:`to_dict`; InputError where a field is missing or has another type.

        Args:
            content: as read from a file, which may have been edited.
            history: repeat -> epochs, from `metrics.jsonl`.
        """
        try:
            relationship = content.get("epsilon_relationship")
            return cls(
                method=str(content["method"]),
                data=str(content["data"]),
                settings={str(key): number_of(value) for key, value in content["settings"].items()},
                options=dict(content["options"]),
                scores=_scores(content),
                privacy=RunPrivacy(
                    Guarantee.from_dict(content["guarantee"]),
                    Ledger.from_dict(content["ledger"]),
                    None if relationship is None else float(relationship),
                ),
                cost=Cost(*(float(content[key]) for key in ("seconds", "seconds_method", "peak_memory_mb"))),
                history=history,
                notes=_notes(content["notes"]),
                created=str(content["created"]),
                version=str(content["version"]),
                run=content.get("run"),
                built=str(content["built"]),
            )
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise InputError(f"not the record of a run ({type(error).__name__}: {error})") from error


def _scores(content: Mapping[str, Any]) -> Scores:
    """Return the scores of a stored record; raises KeyError, TypeError or ValueError for anything else."""
    for best, names in (("best_control", "controls"), ("best_rival", "rivals")):
        if content[best] is not None and content[best] not in content[names]:
            raise ValueError(f"{best} is none of the {names}")
    ceiling, lift = (None if content[key] is None else interval_from_dict(content[key]) for key in ("ceiling", "lift"))
    return Scores(
        accuracy=interval_from_dict(content["accuracy"]),
        controls={str(name): interval_from_dict(item) for name, item in content["controls"].items()},
        ceiling=ceiling,
        best_control=content["best_control"],
        lift=lift,
        rivals={str(name): interval_from_dict(item) for name, item in content["rivals"].items()},
        best_rival=content["best_rival"],
    )


def _notes(value: object) -> tuple[str, ...]:
    if not isinstance(value, list) or len(value) > _MOST_NOTES or not all(isinstance(note, str) for note in value):
        raise ValueError(f"notes are no list of at most {_MOST_NOTES:,} texts")
    return tuple(value)


def number_of(value: object) -> Any:
    """The number of a text ``"inf"`` or ``"-inf"``; any other value unchanged."""
    return {"inf": math.inf, "-inf": -math.inf}.get(value, value) if isinstance(value, str) else value


def difference(own_score: Interval, rival_score: Interval) -> Interval:
    """One score minus another with a 95% interval; several runs are paired. For one run, or equal differences, the two
    intervals are combined as if independent: too wide where both err on the same nodes, never too narrow.

    Args:
        own_score: one number for each run.
        rival_score: of the same runs in the same order, or of as many nodes.
    """
    if len(own_score.runs) == len(rival_score.runs) > 1:
        leads = [own - rival for own, rival in zip(own_score.runs, rival_score.runs, strict=True)]
        # The spread of equal differences would be an interval of width 0.
        if len(set(leads)) > 1:
            return over_runs([Interval(gap, gap, gap, (gap,)) for gap in leads], difference=True)
    mean = own_score.mean - rival_score.mean
    # Newcombe's square-and-add: each end of the difference takes the two ends that are farthest apart.
    low = math.hypot(own_score.mean - own_score.low, rival_score.high - rival_score.mean)
    high = math.hypot(own_score.high - own_score.mean, rival_score.mean - rival_score.low)
    return Interval(mean, mean - low, mean + high, (mean,), "added")
