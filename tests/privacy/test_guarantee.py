"""Guarantees: what must be stated, how it reads, how it is stored and composed."""

from __future__ import annotations

import dataclasses
import json
import math
from typing import Any

import pytest

from graphveil.errors import InputError
from graphveil.privacy import Guarantee, compose

FIELDS: dict[str, Any] = {
    "unit": "one user's label",
    "relation": "replace",
    "model": "local",
    "epsilon": 1.0,
    "delta": 0.0,
    "against": "the server and everybody it shares with",
    "assumes": ("the classes are public",),
}
REQUIRED = tuple(FIELDS)


def guarantee(**changes: Any) -> Guarantee:
    return Guarantee(**(FIELDS | changes))


@pytest.mark.parametrize("name", REQUIRED)
def test_item_1_no_field_can_be_left_out(name: str) -> None:
    """Checklist item 1: unit and relation are declared. A guarantee with any field deleted is refused."""
    with pytest.raises(TypeError, match=name):
        Guarantee(**{key: value for key, value in FIELDS.items() if key != name})
    for stored in (*REQUIRED, "void", "parts"):
        fields = guarantee().to_dict()
        del fields[stored]
        with pytest.raises(InputError, match=f"fields missing: {stored}"):
            Guarantee.from_dict(fields)


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("unit", ("", "  ", None, 3)),
        ("relation", ("", "swap", None)),
        ("model", ("", "shuffled", None)),
        ("epsilon", (-1.0, math.nan, "1", None, True)),
        ("delta", (-1e-9, 1.0, 2.0, math.nan, math.inf, None, "0")),
        ("against", ("", None)),
        ("assumes", ("one string", ["a list"], None, ("",), (3,))),
        ("void", ("", 3)),
        ("parts", (None, ("text",))),
    ],
)
def test_item_1_invalid_fields_are_refused(name: str, values: tuple[Any, ...]) -> None:
    """Checklist item 1: what a field may not be is refused, and the message names the field."""
    for value in values:
        with pytest.raises(InputError, match=name):
            guarantee(**{name: value})


def test_sentence_of_a_local_guarantee() -> None:
    assert guarantee().sentence() == (
        "Against the server and everybody it shares with, each report hides one user's label: replacing it changes "
        "the probability of any report by a factor of at most e^1.00 (epsilon = 1, delta = 0, local). "
        "Assumes: the classes are public."
    )


def test_sentence_names_delta_relation_and_model() -> None:
    text = guarantee(model="central", relation="add/remove", unit="one edge", delta=1e-6, epsilon=4).sentence()
    assert "everything released hides one edge: adding or removing it changes the probability of any result" in text
    assert "e^4.00, except with probability at most 1e-06 (epsilon = 4, delta = 1e-06, central)" in text


def test_sentence_says_plainly_what_is_not_protected() -> None:
    text = guarantee(epsilon=math.inf, assumes=()).sentence()
    assert text == (
        "NOT PROTECTED: one user's label; the server and everybody it shares with may learn it exactly (epsilon = inf)."
    )
    assert not guarantee(epsilon=math.inf).protects


def test_sentence_of_a_void_guarantee_starts_with_it() -> None:
    void = guarantee(void="noise was reproducible (seed 3)")
    assert void.sentence().startswith("NO GUARANTEE: noise was reproducible (seed 3). Without that")
    assert not void.protects
    assert guarantee().protects


@pytest.mark.parametrize("epsilon", [0.0, 1e-9, 0.5, 12345.0, math.inf])
def test_round_trip_through_json(epsilon: float) -> None:
    part = guarantee(epsilon=epsilon, void="because")
    whole = guarantee(epsilon=epsilon, delta=0.25, parts=(part, guarantee()))
    stored = json.dumps(whole.to_dict(), allow_nan=False)
    assert Guarantee.from_dict(json.loads(stored)) == whole


@pytest.mark.parametrize(
    "change", [{"epsilon": "many"}, {"epsilon": True}, {"assumes": "text"}, {"parts": "text"}, {"extra": 1}]
)
def test_damaged_storage_is_refused(change: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        Guarantee.from_dict(guarantee().to_dict() | change)
    with pytest.raises(InputError):
        Guarantee.from_dict([])  # type: ignore[arg-type]


def test_nothing_can_be_changed_afterwards() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        guarantee().epsilon = 0.1  # type: ignore[misc]


def test_compose_adds_up_and_keeps_everything() -> None:
    features = guarantee(unit="one user's features", epsilon=0.1, delta=1e-6, assumes=("a", "b"))
    label = guarantee(epsilon=0.2, delta=1e-7, assumes=("b", "c"))
    both = compose([features, label])
    assert both.unit == "one user's features and one user's label"
    assert both.epsilon == pytest.approx(0.3)
    assert both.delta == pytest.approx(1.1e-6)
    assert both.assumes == ("a", "b", "c")
    assert both.parts == (features, label)
    assert "made of: one user's features (epsilon = 0.1, delta = 1e-06); one user's label" in both.sentence()
    assert compose([features, label], unit="one user").unit == "one user"


def test_compose_passes_void_and_infinity_on() -> None:
    both = compose([guarantee(void="x"), guarantee(epsilon=math.inf), guarantee(void="x"), guarantee(void="y")])
    assert both.void == "x; y"
    assert math.isinf(both.epsilon)
    assert "not protected" in both.sentence()


def test_compose_with_a_delta_of_one_or_more_protects_nothing() -> None:
    assert math.isinf(compose([guarantee(delta=0.5), guarantee(delta=0.5)]).epsilon)


@pytest.mark.parametrize("change", [{"relation": "add/remove"}, {"model": "central"}, {"against": "others"}])
def test_compose_refuses_what_does_not_belong_together(change: dict[str, str]) -> None:
    with pytest.raises(InputError, match=next(iter(change))):
        compose([guarantee(), guarantee(**change)])
    with pytest.raises(InputError, match="nothing to compose"):
        compose([])
