"""What a run protects, as one frozen value that anybody can read, store and compare.

The value states; `accountant.py` judges. A guarantee is built from public facts only, so it may be published.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from graphveil.errors import InputError
from graphveil.privacy.printed import rounded_up, rounded_up_to

RELATIONS: Final = ("replace", "add/remove")
MODELS: Final = ("local", "central", "vertical")

_TEXT_FIELDS: Final = ("unit", "relation", "model", "against")
_RELEASE: Final = {"local": "each report", "central": "everything released", "vertical": "every exchange"}


@dataclass(frozen=True, kw_only=True)
class Guarantee:
    """What is protected, how strongly, from whom, and what that leans on.

    Args:
        unit: what one person's change may be, in plain words ("one user's label", "one edge").
        relation: "replace" (the unit takes another value) or "add/remove" (it is there or not).
        model: who adds the noise: "local" (each person), "central" (a curator) or "vertical"
            (each data holder).
        epsilon: the privacy loss, at least 0; infinity says that the unit is not protected.
        delta: the probability with which the loss may be larger, in [0, 1).
        against: who may look at what was released.
        assumes: the public facts it leans on.
        void: why the guarantee does not hold for this run, or None.
        parts: the guarantees this one was composed of.

    Raises:
        InputError: a field is empty, of the wrong kind or outside its range.
    """

    unit: str
    relation: str
    model: str
    epsilon: float
    delta: float
    against: str
    assumes: tuple[str, ...]
    void: str | None = None
    parts: tuple[Guarantee, ...] = ()

    def __post_init__(self) -> None:
        for name in _TEXT_FIELDS:
            _require_text(name, getattr(self, name))
        _require_one_of("relation", self.relation, RELATIONS)
        _require_one_of("model", self.model, MODELS)
        if not (_is_number(self.epsilon) and self.epsilon >= 0.0):
            raise _bad("epsilon", self.epsilon, "a number of at least 0, or inf")
        if not (_is_number(self.delta) and 0.0 <= self.delta < 1.0):
            raise _bad("delta", self.delta, "a number in [0, 1)")
        if not isinstance(self.assumes, tuple):
            raise _bad("assumes", self.assumes, "a tuple of sentences, possibly empty")
        for sentence in self.assumes:
            _require_text("assumes", sentence)
        if self.void is not None:
            _require_text("void", self.void)
        if not isinstance(self.parts, tuple) or not all(isinstance(part, Guarantee) for part in self.parts):
            raise _bad("parts", self.parts, "a tuple of guarantees")

    @property
    def protects(self) -> bool:
        """Whether anything is protected at all: epsilon is finite and nothing voids it."""
        return self.void is None and math.isfinite(self.epsilon)

    def sentence(self) -> str:
        """The guarantee as one paragraph for a reader who is no specialist."""
        text = f"NO GUARANTEE: {self.void}. Without that it would read: " if self.void else ""
        text += self._claim()
        if self.parts:
            text += " It is made of: " + "; ".join(_price(part) for part in self.parts) + "."
        if self.assumes:
            text += " Assumes: " + "; ".join(self.assumes) + "."
        return text

    def to_dict(self) -> dict[str, Any]:
        """All fields as JSON values; infinity becomes the string "inf"."""
        return {
            "unit": self.unit,
            "relation": self.relation,
            "model": self.model,
            "epsilon": number_to_json(self.epsilon),
            "delta": self.delta,
            "against": self.against,
            "assumes": list(self.assumes),
            "void": self.void,
            "parts": [part.to_dict() for part in self.parts],
        }

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> Guarantee:
        """The inverse of `to_dict`.

        Raises:
            InputError: a field is missing, unknown or invalid.
        """
        names = set(cls.__dataclass_fields__)
        require_fields("guarantee", fields, names)
        assumes, parts = fields["assumes"], fields["parts"]
        if not isinstance(assumes, list | tuple):
            raise _bad("assumes", assumes, "a list of sentences")
        if not isinstance(parts, list | tuple):
            raise _bad("parts", parts, "a list of guarantees")
        plain = {name: fields[name] for name in ("unit", "relation", "model", "delta", "against", "void")}
        return cls(
            **plain,
            epsilon=number_from_json("epsilon", fields["epsilon"]),
            assumes=tuple(assumes),
            parts=tuple(cls.from_dict(part) for part in parts),
        )

    def _claim(self) -> str:
        if math.isinf(self.epsilon):
            return f"NOT PROTECTED: {self.unit}; {self.against} may learn it exactly (epsilon = inf)."
        change = "replacing it" if self.relation == "replace" else "adding or removing it"
        result = "report" if self.model == "local" else "result"
        slip = f", except with probability at most {rounded_up(self.delta)}" if self.delta else ""
        return (
            f"Against {self.against}, {_RELEASE[self.model]} hides {self.unit}: {change} changes the "
            f"probability of any {result} by a factor of at most e^{_power(self.epsilon)}{slip} "
            f"(epsilon = {rounded_up(self.epsilon)}, delta = {rounded_up(self.delta)}, {self.model})."
        )


def number_to_json(value: float) -> float | str:
    """A number that JSON can hold: infinity becomes "inf"."""
    return "inf" if math.isinf(value) else value


def number_from_json(name: str, value: object) -> float:
    """The inverse of `number_to_json`; raises InputError naming `name` for anything else."""
    if value == "inf":
        return math.inf
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    raise _bad(name, value, 'a number or "inf"')


def require_fields(what: str, fields: Mapping[str, Any], names: set[str]) -> None:
    """Refuse a mapping whose keys are not exactly `names`, naming the difference."""
    if not isinstance(fields, Mapping):
        raise InputError(f"{what} is {type(fields).__name__}, not a mapping of fields")
    missing, unknown = sorted(names - set(fields)), sorted(set(fields) - names)
    if missing or unknown:
        problem = "fields missing: " if missing else "unknown fields: "
        problem += ", ".join(missing or unknown)
        raise InputError(problem, where=what, allowed=", ".join(sorted(names)))


def _power(epsilon: float) -> str:
    return rounded_up_to(epsilon) if 0.01 <= epsilon < 1000 else rounded_up(epsilon, 3)


def _price(part: Guarantee) -> str:
    if math.isinf(part.epsilon):
        return f"{part.unit} (not protected)"
    return f"{part.unit} (epsilon = {rounded_up(part.epsilon)}, delta = {rounded_up(part.delta)})"


def _bad(name: str, value: object, allowed: str) -> InputError:
    return InputError(f"{name} is {value!r}", where="guarantee", allowed=allowed)


def _require_text(name: str, value: object) -> None:
    if not isinstance(value, str) or not value.strip():
        raise _bad(name, value, "a text that is not empty")


def _require_one_of(name: str, value: str, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise _bad(name, value, ", ".join(choices))


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
