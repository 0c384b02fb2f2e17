"""Tables that a caller hands over: every kind of column as polars keeps it, missing values, and what is no table."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphveil.errors import DataError, InputError
from graphveil.graphs.frames import as_table, columns_table


def column(values: Any) -> list[Any]:
    """What a column of these values holds as a table."""
    found: list[Any] = columns_table({"a": values}, "people").column("a").to_list()
    return found


class NAType:
    """What pandas calls missing, by the name of its type alone."""


class Column:
    """A pandas column, as far as it is asked."""

    def __init__(self, values: Sequence[Any]) -> None:
        self.values = values

    def to_numpy(self) -> np.ndarray:
        return np.array(self.values, dtype=object)


class Places:
    """`frame.iloc`."""

    def __init__(self, columns: Sequence[Column]) -> None:
        self.columns = columns

    def __getitem__(self, place: tuple[slice, int]) -> Column:
        return self.columns[place[1]]


class Pandas:
    """A pandas frame, as far as it is asked; two columns may have one name."""

    def __init__(self, *columns: tuple[str, Sequence[Any]]) -> None:
        self.columns = [name for name, _ in columns]
        self.iloc = Places([Column(values) for _, values in columns])


@pytest.mark.parametrize(
    ("values", "wanted"),
    [
        ([1, 2, None], [1, 2, None]),
        ([1, 2.5, float("nan")], [1.0, 2.5, None]),
        ([True, None, False], [True, None, False]),
        (["x", 1, True, None], ["x", "1", "True", None]),
        ([True, 2], ["True", "2"]),
        ([None, NAType()], [None, None]),
        ((np.int64(3), np.float32(0.5)), [3.0, 0.5]),
        (np.array([1, 2], dtype=np.uint8), [1, 2]),
        (np.array([0.5, np.nan]), [0.5, None]),
        (np.array([0.5, np.nan], dtype=np.float16), [0.5, None]),
        (np.array([True, False]), [True, False]),
        (np.array(["a", "b"]), ["a", "b"]),
        (np.array(["a", None, float("nan")], dtype=object), ["a", None, None]),
        (polars.Series("other name", [1, None]), [1, None]),
    ],
)
def test_a_column_keeps_its_kind_and_what_is_missing_is_null(values: Any, wanted: list[Any]) -> None:
    found = column(values)
    assert found == wanted
    assert [type(one) for one in found] == [type(one) for one in wanted]


@settings(max_examples=40, deadline=None)
@given(
    st.one_of(
        st.lists(st.none() | st.integers(-(2**62), 2**62), min_size=1),
        st.lists(st.none() | st.floats(allow_nan=False), min_size=1),
        st.lists(st.none() | st.text(), min_size=1),
        st.lists(st.none() | st.booleans(), min_size=1),
    )
)
def test_values_of_one_kind_come_back_as_they_are(values: list[Any]) -> None:
    assert column(values) == values
    if any(value is not None for value in values):
        assert column(np.array(values, dtype=object)) == values


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ([[1], [2]], "people: column 'a' holds a list; allowed: text, numbers, true or false"),
        ([datetime.date(2020, 1, 1)], "column 'a' holds a date"),
        ([b"x", "y"], "column 'a' holds a bytes"),
        ([0.5, 10**400], "column 'a' holds numbers that are too large"),
        (np.zeros((2, 2)), r"column 'a' has shape \(2, 2\); allowed: one value a row"),
        (np.array([1 + 2j]), "column 'a' holds complex128"),
        (np.array(["2020-01-01"], dtype="datetime64[D]"), "column 'a' holds datetime64"),
    ],
)
def test_a_column_of_anything_else_is_refused_by_name(values: Any, said: str) -> None:
    with pytest.raises(DataError, match=said):
        column(values)


def test_columns_must_be_equally_long() -> None:
    with pytest.raises(DataError, match="people: has columns of different lengths"):
        columns_table({"a": [1, 2], "b": [1]}, "people")


def test_every_kind_of_frame_is_the_same_table(tmp_path: Path) -> None:
    columns = {"id": [1, 2], "team": ["x", "y"]}
    frame = polars.DataFrame(columns)
    frame.write_csv(tmp_path / "people.csv")
    frame.write_parquet(tmp_path / "people.parquet")
    for handed in (columns, frame, frame.lazy(), Pandas(*columns.items()), tmp_path / "people.parquet"):
        assert as_table(handed, "nodes").frame.to_dict(as_series=False) == columns
    from_text = as_table(str(tmp_path / "people.csv"), "nodes").frame
    assert [str(value) for value in from_text["id"]] == ["1", "2"]
    assert from_text["team"].to_list() == ["x", "y"]


def test_a_column_that_stands_twice_would_be_lost_and_is_refused() -> None:
    with pytest.raises(DataError, match="nodes: has two columns 'a'"):
        as_table(Pandas(("a", [1]), ("b", [2]), ("a", [3])), "nodes")


@pytest.mark.parametrize("nothing", [None, 3, [1, 2], {1, 2}, object()])
def test_what_is_no_frame_is_refused_with_what_would_be_one(nothing: Any) -> None:
    with pytest.raises(InputError, match=f"nodes: is a {type(nothing).__name__}; allowed: a polars or pandas frame"):
        as_table(nothing, "nodes")


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"nodes: no file '.*absent\.csv'"):
        as_table(tmp_path / "absent.csv", "nodes")
