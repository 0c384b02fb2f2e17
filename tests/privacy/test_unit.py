"""Protected units: codes, texts, what they cover, and what is less than a person."""

from __future__ import annotations

import pytest

from graphveil.errors import InputError
from graphveil.privacy.statement import unit
from graphveil.privacy.statement.guarantee import not_a_person
from graphveil.privacy.statement.texts import unit_of
from graphveil.privacy.statement.unit import SIMPLE_UNITS, UNIT_CODES, ProtectedUnit, other_unit, together

#: The texts that files of earlier versions hold; they never change.
TEXTS = {
    "one-user-features": "one user's whole feature vector",
    "one-node-features": "one node's whole feature vector",
    "one-user-label": "one user's label",
    "one-node-label": "one node's label",
    "one-user-features-and-label": "one user's features and label",
    "one-list-entry": "one bit of one neighbour list",
    "one-relationship": "one relationship",
    "one-relationship-of-a-person": "one relationship of one person",
    "one-directed-link": "one directed link",
    "one-private-edge": "one private undirected edge",
    "one-undirected-edge": "one undirected edge",
    "one-directed-edge": "one directed edge",
    "one-edge-entry": "one directed edge (one of the two entries of an undirected edge)",
    "one-node": "one node with its features, label and all its edges",
    "one-node-own-list": "one node's features, label and own list of neighbours (not that others list it)",
    "one-node-without-edges": "one node's features and label",
    "one-node-declared-public": "one node's features, label and edges",
    "one-embedding-row": "one published embedding row of one holder",
    "one-hidden-row": "one row of the opened last hidden layer, of all holders together",
    "one-guess": "one published guess of a node's class by one holder",
    "one-person-at-one-holder": "one person's features and label at one holder",
    "one-person-and-list-at-one-holder": "one person's features, label and own list of neighbours at one holder",
}
PERSONS = {"one-node", "one-node-without-edges", "one-node-declared-public"}
BOTH = together([unit.USER_FEATURES, unit.USER_LABEL])
WITH_LINK = together([BOTH, unit.RELATIONSHIP.existence()])
RELEASED = together([unit.USER_FEATURES.of("node"), unit.USER_LABEL.of("node"), unit.PRIVATE_EDGE.existence()])
MADE = (
    (BOTH, "one-user-features+one-user-label", "one user's whole feature vector and one user's label"),
    (
        WITH_LINK,
        "one-user-features+one-user-label+whether-one-relationship",
        "one user's whole feature vector and one user's label, and whether one relationship of that user exists",
    ),
    (
        RELEASED,
        "one-node-features+one-node-label+whether-one-private-edge",
        "one node's whole feature vector and one node's label and whether one private undirected edge exists",
    ),
    (unit.DIRECTED_LINK.existence(), "whether-one-directed-link", "whether one directed link exists"),
    (unit.UNDIRECTED_EDGE.times(10), "10*one-undirected-edge", "10 at once of: one undirected edge"),
    (
        unit.RELATIONSHIP_OF_ONE.times(5),
        "5*one-relationship-of-a-person",
        "any set of up to 5 relationships of one person",
    ),
    (
        BOTH.times(2),
        "2*(one-user-features+one-user-label)",
        "2 at once of: one user's whole feature vector and one user's label",
    ),
)


def test_every_unit_keeps_its_code_and_its_text() -> None:
    assert {simple.code: simple.text for simple in SIMPLE_UNITS} == TEXTS
    assert set(UNIT_CODES) == set(TEXTS)
    for simple in SIMPLE_UNITS:
        assert unit_of(simple.text) == simple and unit_of(f"{simple.text} ") == other_unit(f"{simple.text} ")


@pytest.mark.parametrize(("unit", "code", "text"), MADE)
def test_units_that_are_made_of_others(unit: ProtectedUnit, code: str, text: str) -> None:
    assert (unit.code, unit.text, str(unit)) == (code, text, text)
    assert unit_of(text) == unit


@pytest.mark.parametrize(
    "text",
    ["a person", "0 at once of: one relationship", "02 at once of: one relationship", "one relationship and"]
    + [f"any set of up to {count} relationships of one person" for count in ("0", "1", "05")],
)
def test_an_unknown_text_is_kept_and_nothing_is_concluded_from_it(text: str) -> None:
    parsed = unit_of(text)
    assert (parsed.kind, parsed.code, parsed.text, parsed.heading) == ("other", "other", text, text)
    assert not parsed.is_person and not parsed.covers and not parsed.is_node
    assert parsed.less == "nothing says that it covers everything one person contributed"


def test_a_text_of_any_length_is_read_in_no_time() -> None:
    assert unit_of(" and ".join(["one user's label"] * 1_000)).kind == "other"
    assert unit_of("1 at once of: " * 100 + "one relationship").kind == "other"


def test_only_a_unit_that_covers_everything_is_a_person() -> None:
    assert {simple.code for simple in SIMPLE_UNITS if simple.is_person} == PERSONS
    assert not any(composed.is_person for composed, _, _ in MADE)
    assert together([unit.NODE, unit.USER_LABEL.of("node")]).is_person
    for simple in SIMPLE_UNITS:
        assert (simple.less == "") == simple.is_person, simple


@pytest.mark.parametrize(
    ("unit", "less"),
    [
        (unit.UNDIRECTED_EDGE, "this epsilon does not cover that person's features, label and other connections"),
        (
            unit.RELATIONSHIP_OF_ONE.times(3),
            "this epsilon does not cover that person's features, label and other connections",
        ),
        (unit.USER_FEATURES, "this epsilon does not cover that person's label and connections"),
        (BOTH, "this epsilon does not cover that person's connections"),
        (WITH_LINK, "this epsilon does not cover that person's other connections"),
        (unit.NODE_AND_OWN_LIST, "that others list that person is not covered"),
        (
            unit.EMBEDDING_ROW,
            "somebody who trains also moves weights, and with them everybody's rows; neighbours' rows, and other "
            "holders' rows of the same person, are units of their own",
        ),
    ],
)
def test_what_is_less_than_a_person_says_by_what(unit: ProtectedUnit, less: str) -> None:
    assert not_a_person(unit) == f"This protects {unit.text}, not a person: {less}."


def test_units_at_once_multiply_and_some_are_of_somebody_else() -> None:
    assert unit.USER_FEATURES.of("node") == ProtectedUnit(kind="features", whose="node")
    with pytest.raises(InputError, match="is unknown"):
        unit.RELATIONSHIP.of("node")
    assert unit.RELATIONSHIP.times(1) == unit.RELATIONSHIP and unit.RELATIONSHIP.times(2).times(3).count == 6
    with pytest.raises(InputError, match="count is 0"):
        unit.RELATIONSHIP.times(0)


def test_what_is_no_unit_is_refused() -> None:
    for wrong in (
        {"kind": "relationship", "whose": "user"},
        {"kind": "other"},
        {"kind": "other", "words": " "},
        {"kind": "together", "parts": (unit.NODE,)},
        {"kind": "nothing"},
        {"kind": "label", "whose": "user", "words": "a label"},
    ):
        with pytest.raises(InputError, match="is unknown"):
            ProtectedUnit(**wrong)  # type: ignore[arg-type]
