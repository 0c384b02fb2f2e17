"""The key `columns` by itself: every form that it may have, whoever writes it."""

from __future__ import annotations

from typing import Any

import pytest

from graphveil.columns import Category, Column, Integer, Kind, Number, Ordinal, Tags, YesNo
from graphveil.errors import DataError
from graphveil.graphs.column_declaration import parse_columns

FORMS: dict[str, tuple[Any, Kind]] = {
    "number": ({"number": [0.5, 2]}, Number(0.5, 2)),
    "integer": ({"integer": [-2, 2]}, Integer(-2, 2)),
    "yes or no": ("yes-no", YesNo()),
    "category": ({"category": ["a", "b"]}, Category(("a", "b"))),
    "category that may be empty": ({"category": ["a", "b"], "empty": True}, Category(("a", "b"), empty=True)),
    "ordinal": ({"ordinal": ["a", "b"]}, Ordinal(("a", "b"))),
    "tags": ({"tags": ["a", "b"], "most": 1}, Tags(("a", "b"), 1)),
    "tags without a limit": ({"tags": ["a", "b"]}, Tags(("a", "b"), 2)),
    "a value": (Ordinal(("a", "b")), Ordinal(("a", "b"))),
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_is_read(form: str) -> None:
    said, kind = FORMS[form]
    assert parse_columns({"x": said}, "here") == (Column("x", kind),)


def test_columns_keep_their_order() -> None:
    columns = parse_columns({name: said for name, (said, _) in FORMS.items()}, "here")
    assert [column.name for column in columns] == list(FORMS)
    assert [column.kind for column in columns] == [kind for _, kind in FORMS.values()]


@pytest.mark.parametrize(
    "said",
    [
        None,
        3,
        "number",
        [],
        ["yes-no"],
        {},
        {"age": [0, 1]},
        {"number": [0, 1, 2]},
        {"number": ["a", "b"]},
        {"integer": "0-1"},
        {"category": "ab"},
        {"category": ["a", "b"], "most": 1},
        {"ordinal": ["a", "b"], "empty": True},
        {"tags": ["a", "b"], "most": "all"},
        {"number": [0, 1], "integer": [0, 1]},
    ],
)
def test_anything_else_is_refused_with_the_column_in_one_line(said: object) -> None:
    with pytest.raises(DataError, match="the column 'x'") as refused:
        parse_columns({"x": said}, "here")
    assert str(refused.value).startswith("here: ") and "\n" not in str(refused.value)
