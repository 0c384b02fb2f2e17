"""What a run protects, as one frozen value that anybody can read, store and compare.

The value states, `accountant.py` judges, and the functions at the end put it into English, or flat fields for hubs and
registries that read no prose. A guarantee is built from public facts only, so it may be published.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from graphveil.errors import InputError
from graphveil.files.serial import number_to_json
from graphveil.privacy.accounting.printed import rounded_up, rounded_up_to
from graphveil.privacy.statement.assumption import Assumption
from graphveil.privacy.statement.observer import Observer
from graphveil.privacy.statement.texts import assumption_of, observer_of, unit_of
from graphveil.privacy.statement.unit import ProtectedUnit
from graphveil.runtime.checks import is_number

RELATIONS: Final = ("replace", "add/remove")
MODELS: Final = ("local", "central", "vertical")

#: Fields of a stored guarantee that repeat its texts as codes.
_CODES: Final = ("unit_code", "against_code", "assumes_codes")

#: What hides the unit, for each model.
_HIDING_PARTY: Final = {"local": "each report", "central": "everything released", "vertical": "every exchange"}


@dataclass(frozen=True, kw_only=True)
class Guarantee:
    """What is protected, how strongly, from whom, and under which assumptions.

    Args:
        unit: what one change is that is hidden.
        relation: "replace" (the unit takes another value) or "add/remove" (it is there or not).
        model: who adds the noise: "local" (each person), "central" (a curator) or "vertical" (each data holder).
        epsilon: the privacy loss, at least 0; infinity says that the unit is not protected.
        delta: by how much the probability of a set of results may exceed the factor e^epsilon, in [0, 1).
        against: who may look at what was released.
        assumes: the public facts that the guarantee relies on, in the order in which they are stated.
        void: why the guarantee does not hold for this run, or None.
        parts: the guarantees that this one is composed of.

    Raises:
        InputError: a field is empty, of the wrong kind or outside its range.

    >>> from graphveil.mechanisms import RandomizedResponse
    >>> guarantee = RandomizedResponse(epsilon=2.0, classes=3).guarantee
    >>> guarantee.epsilon, guarantee.delta, str(guarantee.unit), guarantee.void
    (2.0, 0.0, "one user's label", None)
    """

    unit: ProtectedUnit
    relation: str
    model: str
    epsilon: float
    delta: float
    against: Observer
    assumes: tuple[Assumption, ...]
    void: str | None = None
    parts: tuple[Guarantee, ...] = ()

    def __post_init__(self) -> None:
        # Checked however it is built, from a file too: people would rely on a guarantee that was built wrong.
        if not isinstance(self.unit, ProtectedUnit):
            raise _invalid("unit", self.unit, "a ProtectedUnit")
        if not isinstance(self.against, Observer):
            raise _invalid("against", self.against, "an Observer")
        _require_one_of("relation", self.relation, RELATIONS)
        _require_one_of("model", self.model, MODELS)
        # A comparison with NaN is false, so NaN does not pass; `True`, which Python counts as 1, is no number here.
        if not (is_number(self.epsilon) and self.epsilon >= 0.0):
            raise _invalid("epsilon", self.epsilon, "a number of at least 0, or inf")
        if not (is_number(self.delta) and 0.0 <= self.delta < 1.0):
            raise _invalid("delta", self.delta, "a number in [0, 1)")
        if not isinstance(self.assumes, tuple) or not all(isinstance(fact, Assumption) for fact in self.assumes):
            raise _invalid("assumes", self.assumes, "a tuple of Assumptions, possibly empty")
        if self.void is not None:
            _require_text("void", self.void)
        if not isinstance(self.parts, tuple) or not all(isinstance(part, Guarantee) for part in self.parts):
            raise _invalid("parts", self.parts, "a tuple of guarantees")

    @property
    def protects(self) -> bool:
        """Whether anything is protected at all: epsilon is finite and nothing voids it."""
        return self.void is None and math.isfinite(self.epsilon)

    @property
    def unprotected(self) -> bool:
        """Whether nothing at all is hidden, by choice: every epsilon is infinite, and no label was randomized."""
        return all(math.isinf(part.epsilon) for part in self.parts or (self,)) and not self.assumption(
            "labels-randomized"
        )

    def sentence(self) -> str:
        """The guarantee as one paragraph for a reader who is no specialist."""
        return paragraph(self)

    def assumption(self, code: str) -> Assumption | None:
        """Return the assumption with this code, or None where the guarantee does not make it."""
        return next((fact for fact in self.assumes if fact.code == code), None)

    def to_dict(self) -> dict[str, Any]:
        """All fields as JSON values; infinity becomes the string "inf". Texts are for people, codes for programs."""
        return {
            "unit": self.unit.text,
            "relation": self.relation,
            "model": self.model,
            "epsilon": number_to_json(self.epsilon),
            "delta": self.delta,
            "against": self.against.text,
            "assumes": [fact.sentence for fact in self.assumes],
            "void": self.void,
            "parts": [part.to_dict() for part in self.parts],
            "unit_code": self.unit.code,
            "against_code": self.against.code,
            "assumes_codes": [fact.code for fact in self.assumes],
        }

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> Guarantee:
        """The inverse of `to_dict`; InputError where a field is missing, unknown or invalid, or a code contradicts the
        text beside it."""
        require_fields("guarantee", fields, {*cls.__dataclass_fields__, *_CODES})
        # Python iterates over a text by letters: taken for a list, each letter would become an assumption.
        assumes, parts = fields["assumes"], fields["parts"]
        if not isinstance(assumes, list | tuple):
            raise _invalid("assumes", assumes, "a list of sentences")
        if not isinstance(parts, list | tuple):
            raise _invalid("parts", parts, "a list of guarantees")
        for name, text in (
            ("unit", fields["unit"]),
            ("against", fields["against"]),
            *(("assumes", sentence) for sentence in assumes),
        ):
            _require_text(name, text)
        guarantee = cls(
            **{name: fields[name] for name in ("relation", "model", "delta", "void")},
            unit=unit_of(fields["unit"]),
            against=observer_of(fields["against"]),
            epsilon=epsilon_from_json(fields["epsilon"]),
            assumes=tuple(assumption_of(sentence) for sentence in assumes),
            parts=tuple(cls.from_dict(part) for part in parts),
        )
        # Texts and codes may not disagree: an edit of only one of them is noticed.
        codes = (guarantee.unit.code, guarantee.against.code, [fact.code for fact in guarantee.assumes])
        for name, code in zip(_CODES, codes, strict=True):
            if fields[name] != code:
                raise _invalid(name, fields[name], f"{code!r}, which the text beside it says")
        return guarantee


def epsilon_from_json(value: object) -> float:
    """Read what `number_to_json` wrote; InputError for another value."""
    if value == "inf":
        return math.inf
    if is_number(value):
        return float(value)
    raise _invalid("epsilon", value, 'a number or "inf"')


def require_fields(kind: str, fields: Mapping[str, object], names: set[str]) -> None:
    """Refuse a mapping whose keys are not exactly `names`, naming the difference.

    Args:
        kind: the value that is read, for the error.
        fields: as found in a file.
        names: exactly the keys that it must have.

    Raises:
        InputError: it is no mapping, or a key is missing or unknown.
    """
    if not isinstance(fields, Mapping):
        raise InputError(f"{kind} is {type(fields).__name__}, not a mapping of fields")
    missing, unknown = sorted(names - set(fields)), sorted(set(fields) - names)
    if missing or unknown:
        problem = "fields missing: " if missing else "unknown fields: "
        problem += ", ".join(missing or unknown)
        raise InputError(problem, where=kind, allowed=", ".join(sorted(names)))


def _invalid(name: str, value: object, allowed: str) -> InputError:
    return InputError(f"{name} is {value!r}", where="guarantee", allowed=allowed)


def _require_text(name: str, value: object) -> None:
    if not isinstance(value, str) or not value.strip():
        raise _invalid(name, value, "a text that is not empty")


def _require_one_of(name: str, value: str, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise _invalid(name, value, ", ".join(choices))


def paragraph(guarantee: Guarantee) -> str:
    """Return everything a guarantee says, as one paragraph for a reader who is no specialist."""
    return claim(guarantee) + _assumptions_text(guarantee)


def claim(guarantee: Guarantee) -> str:
    """Return the paragraph without the assumptions, for pages that list them."""
    # First: whoever quotes only the first sentence must quote that nothing holds.
    text = f"NO GUARANTEE: {guarantee.void}. Without that it would read: " if guarantee.void else ""
    text += " ".join((*less_than_a_person(guarantee), _promise(guarantee)))
    if guarantee.parts:
        text += " It is made of: " + "; ".join(_part_text(part) for part in guarantee.parts) + "."
    return text


def less_than_a_person(guarantee: Guarantee) -> tuple[str, ...]:
    """Return the sentence that must come first where less than a person is protected, else an empty tuple."""
    # An infinite epsilon is stated in stronger words, which this sentence would weaken.
    if guarantee.unit.is_person or math.isinf(guarantee.epsilon):
        return ()
    return (not_a_person(guarantee.unit),)


def not_a_person(unit: ProtectedUnit) -> str:
    """Return what a unit protects, and what of a person it leaves out."""
    return f"This protects {unit.text}, not a person: {unit.less}."


def _promise(guarantee: Guarantee) -> str:
    unit, against, epsilon, delta = guarantee.unit.text, guarantee.against.text, guarantee.epsilon, guarantee.delta
    if math.isinf(epsilon):
        return f"NOT PROTECTED: {unit}; {against} may learn it exactly (epsilon = inf)."
    change = "replacing it" if guarantee.relation == "replace" else "adding or removing it"
    result = "report" if guarantee.model == "local" else "result"
    # With a delta the factor bounds sets of results, up to an excess of delta, and no single result.
    result, excess = (f"set of {result}s", f", plus at most {rounded_up(delta)}") if delta else (result, "")
    exponent = rounded_up_to(epsilon) if 0.01 <= epsilon < 1000 else rounded_up(epsilon, 3)
    return (
        f"Against {against}, {_HIDING_PARTY[guarantee.model]} hides {unit}: {change} changes the "
        f"probability of any {result} by a factor of at most e^{exponent}{excess} "
        f"(epsilon = {rounded_up(epsilon)}, delta = {rounded_up(delta)}, {guarantee.model})."
    )


def _assumptions_text(guarantee: Guarantee) -> str:
    if not guarantee.assumes:
        return ""
    return " Assumes: " + "; ".join(fact.sentence for fact in guarantee.assumes) + "."


def _part_text(part: Guarantee) -> str:
    if math.isinf(part.epsilon):
        return f"{part.unit.text} (not protected)"
    return f"{part.unit.text} (epsilon = {rounded_up(part.epsilon)}, delta = {rounded_up(part.delta)})"


def privacy_fields(guarantee: Guarantee) -> dict[str, Any]:
    """Return a guarantee as plain fields, what voids it first; epsilon and delta are rounded up as on cards."""
    return {
        "void": guarantee.void,
        **_price_fields(guarantee),
        "against": guarantee.against.text,
        "assumes": [fact.sentence for fact in guarantee.assumes],
        **({"parts": [_price_fields(part) for part in guarantee.parts]} if guarantee.parts else {}),
    }


def _price_fields(part: Guarantee) -> dict[str, Any]:
    return {
        "epsilon": number_to_json(float(rounded_up(part.epsilon))),
        "delta": float(rounded_up(part.delta)),
        "unit": part.unit.text,
        "unit_code": part.unit.code,
        "relation": part.relation,
        "trust_model": part.model,
    }
