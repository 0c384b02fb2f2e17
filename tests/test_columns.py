"""What a column may hold, as a declared value."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest

from graphveil.errors import InputError
from graphveil.files.columns import (
    Category,
    Column,
    Integer,
    Kind,
    Number,
    Ordinal,
    Tags,
    YesNo,
    blocks_of,
    column_facts,
    column_from,
    require_columns,
    width_of,
)

EVERY: tuple[Kind, ...] = (
    Number(0, 120),
    Integer(-3, 3),
    YesNo(),
    Category(("red", "blue", "green"), empty=True),
    Ordinal(("low", "middle", "high")),
    Tags(("chess", "go"), 1),
)
COLUMNS = tuple(Column(kind.word, kind) for kind in EVERY)


def test_blocks_stand_side_by_side_and_an_empty_category_has_one_answer_more() -> None:
    assert [block.stop - block.start for block in blocks_of(COLUMNS)] == [1, 1, 1, 3, 1, 2]
    assert [block.start for block in blocks_of(COLUMNS)] == [0, 1, 2, 3, 6, 7]
    assert width_of(COLUMNS) == 9 and blocks_of(()) == ()
    assert (Category(("a", "b")).answers, Category(("a", "b"), empty=True).answers) == (2, 3)
    assert Category(("a", "b"), empty=True).width == 2


@pytest.mark.parametrize("column", COLUMNS, ids=lambda column: column.name)
def test_a_column_is_stored_and_read_back(column: Column) -> None:
    assert column_from(json.loads(json.dumps(column_facts(column)))) == column


@pytest.mark.parametrize(
    ("build", "what"),
    [
        (lambda: Number(1, 1), "number is"),
        (lambda: Number(0, math.inf), "number is"),
        (lambda: Number(math.nan, 1), "number is"),
        (lambda: Number(0, True), "number is"),
        (lambda: Integer(0, 1.5), "integer is"),  # type: ignore[arg-type]
        (lambda: Integer(4, 2), "integer is"),
        (lambda: Integer(0, 2**40), "integer is"),
        (lambda: Category(("a",)), "category is"),
        (lambda: Category(("a", "a")), "category is"),
        (lambda: Category(("a", "")), "category is"),
        (lambda: Category(("a", 2)), "category is"),  # type: ignore[arg-type]
        (lambda: Category(tuple(map(str, range(4097)))), "category is"),
        (lambda: Category(("a", "b"), empty=1), "empty is 1"),  # type: ignore[arg-type]
        (lambda: Ordinal(("a",)), "ordinal is"),
        (lambda: Tags((), 1), "tags is"),
        (lambda: Tags(("a", "b"), 3), "most is 3"),
        (lambda: Tags(("a", "b"), 0), "most is 0"),
        (lambda: Column(" ", YesNo()), "the name of a column is"),
        (lambda: Column("a", "yes-no"), "a is 'yes-no'"),  # type: ignore[arg-type]
        (lambda: require_columns([Column("a", YesNo()), Column("a", YesNo())]), "'a' is declared twice"),
    ],
)
def test_what_is_no_column_is_refused_in_one_line(build: Any, what: str) -> None:
    with pytest.raises(InputError, match=what) as refused:
        build()
    assert "\n" not in str(refused.value)
    assert len(str(refused.value)) < 300
