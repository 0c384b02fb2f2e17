"""Guarantees: what must be stated, how it reads, how it is stored and composed."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest

from graphveil.errors import InputError
from graphveil.privacy import Guarantee, assume, compose
from graphveil.privacy.statement import unit as units
from graphveil.privacy.statement.assumption import other_assumption
from graphveil.privacy.statement.observer import ALL_BUT_CURATOR, SERVER
from graphveil.privacy.statement.unit import RELATIONSHIP, UNDIRECTED_EDGE, USER_FEATURES, USER_LABEL

CLASSES = assume("classes-public", classes=3)
ONCE, TAKING_PART = assume("reports-once"), assume("participation-public")
FIELDS: dict[str, Any] = {
    "unit": USER_LABEL,
    "relation": "replace",
    "model": "local",
    "epsilon": 1.0,
    "delta": 0.0,
    "against": SERVER,
    "assumes": (CLASSES,),
}
REQUIRED = tuple(FIELDS)
CODES = ("unit_code", "against_code", "assumes_codes")
LESS = (
    "This protects one user's label, not a person: this epsilon does not cover that person's features and connections. "
)


def guarantee(**changes: Any) -> Guarantee:
    return Guarantee(**(FIELDS | changes))


def test_item_1_no_field_can_be_left_out() -> None:
    """Checklist item 1: unit and relation are declared. A guarantee with any field deleted is refused."""
    for name in REQUIRED:
        with pytest.raises(TypeError, match=name):
            Guarantee(**{key: value for key, value in FIELDS.items() if key != name})
    for stored in (*REQUIRED, "void", "parts", *CODES):
        fields = guarantee().to_dict()
        del fields[stored]
        with pytest.raises(InputError, match=f"fields missing: {stored}"):
            Guarantee.from_dict(fields)


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("unit", ("", "one user's label", None, 3)),
        ("relation", ("", "swap", None)),
        ("model", ("", "shuffled", None)),
        ("epsilon", (-1.0, math.nan, "1", None, True)),
        ("delta", (-1e-9, 1.0, 2.0, math.nan, math.inf, None, "0")),
        ("against", ("", "the server", None)),
        ("assumes", ("one string", [CLASSES], None, ("reports-once",), (3,))),
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
        LESS
        + "Against the server and everybody it shares with, each report hides one user's label: replacing it changes "
        "the probability of any report by a factor of at most e^1.00 (epsilon = 1, delta = 0, local). "
        "Assumes: the list of the 3 classes is public."
    )


def test_sentence_names_delta_relation_and_model() -> None:
    edge = {"unit": UNDIRECTED_EDGE, "against": ALL_BUT_CURATOR}
    text = guarantee(model="central", relation="add/remove", delta=1e-6, epsilon=4, **edge).sentence()
    assert (
        "everything released hides one undirected edge: adding or removing it changes the probability of any set of "
        "results by a factor" in text
    )
    assert "e^4.00, plus at most 1e-06 (epsilon = 4, delta = 1e-06, central)" in text


def test_sentence_says_plainly_what_is_not_protected() -> None:
    nothing, void = guarantee(epsilon=math.inf, assumes=()), guarantee(void="noise was reproducible (seed 3)")
    assert nothing.sentence() == (
        "NOT PROTECTED: one user's label; the server and everybody it shares with may learn it exactly (epsilon = inf)."
    )
    start = "NO GUARANTEE: noise was reproducible (seed 3). Without that it would read: " + LESS
    assert void.sentence().startswith(start)
    assert guarantee().protects and not nothing.protects and not void.protects


@pytest.mark.parametrize("epsilon", [0.0, 1e-9, math.inf])
def test_round_trip_through_json(epsilon: float) -> None:
    part = guarantee(epsilon=epsilon, void="because")
    whole = guarantee(epsilon=epsilon, delta=0.25, parts=(part, guarantee()))
    stored = json.dumps(whole.to_dict(), allow_nan=False)
    assert Guarantee.from_dict(json.loads(stored)) == whole


def test_codes_stand_beside_texts() -> None:
    whole = compose([guarantee(unit=USER_FEATURES), guarantee(assumes=(ONCE, other_assumption("the moon is full")))])
    fields = whole.to_dict()
    assert fields["unit"] == "one user's whole feature vector and one user's label"
    codes = ["classes-public", "reports-once", "other"]
    assert [fields[name] for name in CODES] == ["one-user-features+one-user-label", "server", codes]


def test_a_text_that_nobody_knows_is_kept() -> None:
    texts = {"unit": "one dog", "against": "all cats", "assumes": ["it rains"]}
    fields = guarantee().to_dict() | texts | dict(zip(CODES, ("other", "other", ["other"]), strict=True))
    assert Guarantee.from_dict(fields).to_dict() == fields


CONTRADICTIONS: list[dict[str, Any]] = [
    *({"unit_code": code} for code in ("one-relationship", "other")),
    *({"unit": text} for text in ("one relationship", "one dog")),
    {"against_code": "release-readers"},
    {"against": "all cats"},
    *({"assumes_codes": codes} for codes in (["reports-once"], [], "classes-public")),
    {"assumes": ["every user reports once"]},
]
DAMAGED: list[dict[str, Any]] = [
    *({"epsilon": wrong} for wrong in ("many", True)),
    *({"assumes": wrong} for wrong in ("text", [3])),
    {"parts": "text"},
    {"extra": 1},
    *({"unit": wrong} for wrong in (3, ["one relationship"])),
    {"against": ""},
]


@pytest.mark.parametrize("change", CONTRADICTIONS)
def test_codes_and_texts_that_contradict_each_other_are_refused(change: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="the text beside it says"):
        Guarantee.from_dict(guarantee().to_dict() | change)
    with pytest.raises(InputError, match="the text beside it says"):
        Guarantee.from_dict(compose([guarantee()]).to_dict() | {"parts": [guarantee().to_dict() | change]})


@pytest.mark.parametrize("change", DAMAGED)
def test_damaged_storage_is_refused(change: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        Guarantee.from_dict(guarantee().to_dict() | change)
    with pytest.raises(InputError):
        Guarantee.from_dict([])  # type: ignore[arg-type]


def test_compose_adds_up_and_keeps_everything() -> None:
    features = guarantee(unit=USER_FEATURES, epsilon=0.1, delta=1e-6, assumes=(CLASSES, ONCE))
    label = guarantee(epsilon=0.2, delta=1e-7, assumes=(ONCE, TAKING_PART))
    both = compose([features, label])
    assert both.unit.text == "one user's whole feature vector and one user's label"
    assert both.epsilon == pytest.approx(0.3)
    assert both.delta == pytest.approx(1.1e-6)
    assert both.assumes == (CLASSES, ONCE, TAKING_PART)
    assert both.parts == (features, label)
    assert both.assumption("reports-once") == ONCE and label.assumption("classes-public") is None
    made_of = "made of: one user's whole feature vector (epsilon = 0.1, delta = 1e-06); one user's label"
    assert made_of in both.sentence()
    assert compose([features, label], unit=units.USER_FEATURES_AND_LABEL).unit == units.USER_FEATURES_AND_LABEL
    # A unit is named once.
    assert compose([label, label]).unit == USER_LABEL
    codes = [part.code for part in compose([both, guarantee(unit=RELATIONSHIP.existence())]).unit.parts]
    assert codes == ["one-user-features", "one-user-label", "whether-one-relationship"]


def test_compose_passes_void_and_infinity_on() -> None:
    both = compose([guarantee(void="x"), guarantee(epsilon=math.inf), guarantee(void="x"), guarantee(void="y")])
    assert both.void == "x; y"
    assert math.isinf(both.epsilon)
    assert "not protected" in both.sentence()
    # A delta of one or more protects nothing.
    assert math.isinf(compose([guarantee(delta=0.5), guarantee(delta=0.5)]).epsilon)


@pytest.mark.parametrize("change", [{"relation": "add/remove"}, {"model": "central"}, {"against": ALL_BUT_CURATOR}])
def test_compose_refuses_what_does_not_belong_together(change: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=next(iter(change))):
        compose([guarantee(), guarantee(**change)])
    with pytest.raises(InputError, match="nothing to compose"):
        compose([])
