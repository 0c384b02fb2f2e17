"""What a run folder remembers of a run: everything of a result except the trained model."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

import graphveil
from graphveil.errors import InputError
from graphveil.methods.runs.intervals import Interval
from graphveil.privacy import Guarantee, Ledger

if TYPE_CHECKING:
    from graphveil.methods.runs.experiment import Result


_MOST_NOTES = 10_000


def interval_from_dict(content: Mapping[str, Any]) -> Interval:
    """The inverse of ``Interval.to_dict``.

    Raises:
        InputError: a number is missing or no number.
    """
    try:
        mean, low, high = (float(content[key]) for key in ("mean", "low", "high"))
        return Interval(mean, low, high, tuple(float(run) for run in content["runs"]))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InputError(f"no interval: {content!r}", allowed="mean, low, high, runs as numbers") from error


@dataclass(frozen=True)
class RunRecord:
    """One finished training run, as printed, saved and reported.

    Accuracies are fractions of the test nodes. ``history`` holds one list of epoch rows per repeat. ``seconds``
    counts everything, ``seconds_method`` one fit. ``options`` are the choices of the run that are no setting of the
    method: seed, repeats, device. ``rivals`` are other methods at the same privacy price; ``epsilon_relationship`` is
    what one relationship costs where connections are protected, else None.
    """

    method: str
    data: str
    settings: Mapping[str, Any]
    options: Mapping[str, Any]
    accuracy: Interval
    controls: Mapping[str, Interval]
    ceiling: Interval | None
    best_control: str | None
    lift: Interval | None
    guarantee: Guarantee
    ledger: Ledger
    history: Sequence[Sequence[Mapping[str, Any]]]
    seconds: float
    seconds_method: float
    peak_memory_mb: float
    notes: tuple[str, ...] = ()
    created: str = ""
    version: str = ""
    run: str | None = None
    rivals: Mapping[str, Interval] = field(default_factory=dict)
    best_rival: str | None = None
    epsilon_relationship: float | None = None

    @classmethod
    def from_result(cls, result: Result, *, options: Mapping[str, Any]) -> RunRecord:
        """The record of ``result``, ended now."""
        return cls(
            method=result.method,
            data=result.data,
            settings=dict(result.settings),
            options=dict(options),
            accuracy=result.accuracy,
            controls=dict(result.controls),
            ceiling=result.ceiling,
            best_control=result.best_control,
            lift=result.lift,
            guarantee=result.guarantee,
            ledger=result.ledger,
            history=result.history,
            seconds=result.seconds,
            seconds_method=result.seconds_method,
            peak_memory_mb=result.peak_memory_mb,
            notes=tuple(result.notes),
            created=datetime.now().astimezone().isoformat(timespec="seconds"),
            version=graphveil.__version__,
            rivals=dict(result.rivals),
            best_rival=result.best_rival,
            epsilon_relationship=result.epsilon_relationship,
        )

    def in_folder(self, folder: str) -> RunRecord:
        """The same record, saying which folder it lies in."""
        return replace(self, run=folder)

    def to_dict(self) -> dict[str, Any]:
        """The one object ``--json`` prints and ``result.json`` holds (``metrics.jsonl`` has the epochs)."""
        return {
            "method": self.method,
            "data": self.data,
            "accuracy": self.accuracy.to_dict(),
            "controls": {name: score.to_dict() for name, score in self.controls.items()},
            "best_control": self.best_control,
            "ceiling": None if self.ceiling is None else self.ceiling.to_dict(),
            "lift": None if self.lift is None else self.lift.to_dict(),
            "rivals": {name: score.to_dict() for name, score in self.rivals.items()},
            "best_rival": self.best_rival,
            "epsilon_relationship": self.epsilon_relationship,
            "guarantee": self.guarantee.to_dict(),
            "guarantee_sentence": self.guarantee.sentence(),
            "ledger": self.ledger.to_dict(),
            "settings": dict(self.settings),
            "options": dict(self.options),
            "notes": list(self.notes),
            "seconds": self.seconds,
            "seconds_method": self.seconds_method,
            "peak_memory_mb": self.peak_memory_mb,
            "created": self.created,
            "version": self.version,
            "run": self.run,
        }

    @classmethod
    def from_dict(cls, content: Mapping[str, Any], *, history: Sequence[Sequence[Mapping[str, Any]]] = ()) -> RunRecord:
        """The inverse of :meth:`to_dict`, with the epochs given apart.

        Raises:
            InputError: a field is missing or has another kind of value.
        """

        def score(value: Any) -> Interval | None:
            return None if value is None else interval_from_dict(value)

        try:
            for best, among in (("best_control", "controls"), ("best_rival", "rivals")):
                if content.get(best) is not None and content[best] not in content.get(among, {}):
                    raise ValueError(f"{best} is none of the {among}")
            return cls(
                method=str(content["method"]),
                data=str(content["data"]),
                settings={str(key): number_of(value) for key, value in content["settings"].items()},
                options=dict(content["options"]),
                accuracy=interval_from_dict(content["accuracy"]),
                controls={str(name): interval_from_dict(item) for name, item in content["controls"].items()},
                ceiling=score(content["ceiling"]),
                best_control=content["best_control"],
                lift=score(content["lift"]),
                guarantee=Guarantee.from_dict(content["guarantee"]),
                ledger=Ledger.from_dict(content["ledger"]),
                history=history,
                seconds=float(content["seconds"]),
                seconds_method=float(content["seconds_method"]),
                peak_memory_mb=float(content["peak_memory_mb"]),
                notes=_notes(content["notes"]),
                created=str(content["created"]),
                version=str(content["version"]),
                run=content.get("run"),
                rivals={str(name): interval_from_dict(item) for name, item in content.get("rivals", {}).items()},
                best_rival=content.get("best_rival"),
                epsilon_relationship=_epsilon(content.get("epsilon_relationship")),
            )
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise InputError(f"not the record of a run ({type(error).__name__}: {error})") from error


def _notes(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list) or len(value) > _MOST_NOTES or not all(isinstance(note, str) for note in value):
        raise ValueError(f"notes are no list of at most {_MOST_NOTES:,} texts")
    return tuple(value)


def _epsilon(value: Any) -> float | None:
    return None if value is None else float(value)


def number_of(value: Any) -> Any:
    """Turns the word ``"inf"`` back into the number it stood for."""
    return {"inf": math.inf, "-inf": -math.inf}.get(value, value) if isinstance(value, str) else value
