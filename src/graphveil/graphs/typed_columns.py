"""Columns of a table of nodes made into blocks of numbers in [0, 1], as their declared kinds say."""

from __future__ import annotations

from functools import singledispatch
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

from graphveil.columns import Category, Column, Integer, Number, Ordinal, Tags, YesNo, blocks_of, width_of
from graphveil.graphs.tables import Table

if TYPE_CHECKING:
    import polars

    from graphveil.columns import Kind

#: Between the tags of a cell.
SEPARATOR: Final = ";"
Block: TypeAlias = np.ndarray
_YES, _NO = ("yes", "true", "1"), ("no", "false", "0")


def encode_columns(nodes: Table, columns: tuple[Column, ...], *, clip: bool) -> tuple[np.ndarray, int]:
    """Return the encoded columns, float32 [n, width], and how many numbers were moved into their range.

    Args:
        nodes: the table, one row a node.
        columns: its feature columns and what they may hold.
        clip: whether numbers outside their range are moved to the nearer end; else they are refused.

    Raises:
        DataError: a cell holds something else than was declared; names the table, the line and the column.
    """
    encoded = np.zeros((nodes.rows, width_of(columns)), np.float32)
    moved = 0
    # In the declared order, whatever the order in the table: mechanisms find a column by its place.
    for column, block in zip(columns, blocks_of(columns), strict=True):
        if isinstance(column.kind, Number | Integer):
            encoded[:, block], changed = _place(nodes, column.name, column.kind, clip)
            moved += changed
        else:
            encoded[:, block] = _block(column.kind, nodes, column.name)
    return encoded, moved


def in_range(
    table: Table, name: str, numbers: polars.Series, bounds: tuple[float, float], *, clip: bool
) -> tuple[np.ndarray, int]:
    """Return a column's numbers within bounds, and how many were moved there.

    Args:
        table, name: the column, for the refusal.
        numbers: its values.
        bounds: the declared range.
        clip: whether values outside are moved to the nearer end; else they are refused with DataError.
    """
    import polars

    low, high = bounds
    values = numbers.to_numpy()
    # Features are kept as float32, so the bounds are compared as float32 too: a value written as the bound
    # itself is inside.
    with np.errstate(over="ignore"):
        stored = values.astype(np.float32)
    outside = polars.Series((stored < np.float32(low)) | (stored > np.float32(high)))
    if not clip:
        table.refuse(outside, "{column} is {value}", name, f"the declared range {low:g} to {high:g}")
    return np.clip(values, low, high), int(outside.sum())


def _place(nodes: Table, name: str, kind: Number | Integer, clip: bool) -> tuple[Block, int]:
    numbers = nodes.numbers(name)
    if isinstance(kind, Integer):
        nodes.refuse(numbers.round(0) != numbers, "{column} is {value}, not a whole number", name)
    values, changed = in_range(nodes, name, numbers, (kind.low, kind.high), clip=clip)
    return ((values - kind.low) / (kind.high - kind.low))[:, None], changed


@singledispatch
def _block(kind: Kind, nodes: Table, name: str) -> Block:
    raise TypeError(kind)


@_block.register
def _(kind: YesNo, nodes: Table, name: str) -> Block:
    text = nodes.text(name).fill_null("").str.strip_chars().str.to_lowercase()
    nodes.refuse(~text.is_in([*_YES, *_NO]), "{column} is {value}, neither yes nor no", name, "yes, no, true, false")
    return text.is_in(_YES).to_numpy()[:, None].astype(np.float32)


@_block.register
def _(kind: Category, nodes: Table, name: str) -> Block:
    return _one_hot(_codes(nodes, name, kind.values, empty=kind.empty), len(kind.values))


@_block.register
def _(kind: Ordinal, nodes: Table, name: str) -> Block:
    codes = _codes(nodes, name, kind.levels, empty=False)
    return (codes / (len(kind.levels) - 1))[:, None]


@_block.register
def _(kind: Tags, nodes: Table, name: str) -> Block:
    import polars

    lists = nodes.text(name).fill_null("").str.split(SEPARATOR)
    listed = polars.DataFrame({"row": np.arange(len(lists)), "word": lists}).explode("word")
    listed = listed.with_columns(polars.col("word").str.strip_chars()).filter(polars.col("word") != "")
    codes = listed["word"].cast(polars.Enum(kind.vocabulary), strict=False)
    rows, unknown = listed["row"].to_numpy(), codes.is_null().to_numpy()
    wrong = np.zeros(len(lists), bool)
    wrong[rows[unknown]] = True
    nodes.refuse(
        polars.Series(wrong), "{column} is {value}, not all of it in the vocabulary", name, _some(kind.vocabulary)
    )
    block = np.zeros((len(lists), len(kind.vocabulary)), np.float32)
    # Set and not added: a tag that stands twice in a cell is held once.
    block[rows, codes.to_physical().to_numpy().astype(int)] = 1
    many = polars.Series(block.sum(axis=1) > kind.most)
    nodes.refuse(many, "{column} is {value}, more than was declared", name, f"at most {kind.most}")
    return block


def _codes(nodes: Table, name: str, values: tuple[str, ...], *, empty: bool) -> np.ndarray:
    """The place of each cell's text among the values, -1 for an empty cell where that is allowed."""
    import polars

    text = nodes.text(name)
    text = text.set(text == "", None)
    codes = text.cast(polars.Enum(values), strict=False)
    unknown = codes.is_null() & text.is_not_null() if empty else codes.is_null()
    nodes.refuse(unknown, "{column} is {value}, not a declared value", name, _some(values))
    places: np.ndarray = codes.to_physical().cast(polars.Int64).fill_null(-1).to_numpy()
    return places


def _one_hot(codes: np.ndarray, width: int) -> Block:
    # -1 is no place, so the block of an empty cell stays zeros.
    hot: Block = (codes[:, None] == np.arange(width)).astype(np.float32)
    return hot


def _some(values: tuple[str, ...]) -> str:
    return ", ".join(values[:8]) + (", ..." if len(values) > 8 else "")
