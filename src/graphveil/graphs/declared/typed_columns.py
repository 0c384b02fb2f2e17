"""Columns of a table of nodes made into blocks of numbers in [0, 1], as their declared kinds say, and back."""

from __future__ import annotations

from collections.abc import Mapping
from functools import singledispatch
from types import MappingProxyType
from typing import Final, TypeAlias

import numpy as np

from graphveil.errors import InputError
from graphveil.files.columns import Category, Column, Integer, Kind, Number, Ordinal, Tags, YesNo, blocks_of, width_of
from graphveil.graphs.declared.column_declaration import YES_NO, column_remedy, filled_notes
from graphveil.graphs.tables.tables import Table, some, whole_texts
from graphveil.graphs.value.schema import OWN_CATEGORY
from graphveil.runtime.late import polars, sparse
from graphveil.runtime.words import count_of

#: Between the tags of a cell.
SEPARATOR: Final = ";"
Block: TypeAlias = np.ndarray
_YES, _NO = ("yes", "true", "1"), ("no", "false", "0")


def encode_columns(
    nodes: Table,
    columns: tuple[Column, ...],
    missing: Mapping[str, float | str] = MappingProxyType({}),
    *,
    clip: bool,
    in_file: bool = True,
) -> tuple[np.ndarray, tuple[str, ...]]:
    """Return the encoded columns, float32 [n, width], and notes on what was changed.

    Args:
        nodes: the table, one row a node.
        columns: its feature columns and what they may hold.
        missing: column -> what stands for a missing value.
        clip: whether numbers outside their range are moved to the nearer end; else they are refused.
        in_file: whether columns are declared in a file, else in Python.

    Raises:
        DataError: a cell holds something else than was declared; names the table, the line and the column.
    """
    encoded = np.zeros((nodes.rows, width_of(columns)), np.float32)
    moved, filled = 0, []
    # In the declared order, whatever the order in the table: mechanisms find a column by its place.
    for column, block in zip(columns, blocks_of(columns), strict=True):
        stand, remedy = missing.get(column.name), column_remedy(column, in_file=in_file)
        name, kind = column.name, column.kind
        if isinstance(kind, Number | Integer):
            numbers, absent = nodes.filled_numbers(name, None if stand is None else float(stand), remedy)
            if isinstance(kind, Integer):
                nodes.refuse(numbers.round(0) != numbers, "{column} is {value}, not a whole number", name)
            values, changed = in_range(nodes, name, numbers, (kind.low, kind.high), clip=clip)
            encoded[:, block] = ((values - kind.low) / (kind.high - kind.low))[:, None]
            moved += changed
        else:
            cells, absent = _filled(nodes, column, stand, remedy)
            encoded[:, block] = _block(kind, nodes, name, cells)
        filled += [] if stand is None else [(name, absent, stand)]
    return encoded, (*filled_notes(filled), *clipped_note(moved))


def clipped_note(count: int) -> tuple[str, ...]:
    """Return a note of so many clipped values, if there are any."""
    return (f"clipped {count_of(count, 'feature value')} to the declared range",) if count else ()


def _filled(nodes: Table, column: Column, stand: float | str | None, remedy: str) -> tuple[polars.Series, int]:
    """The cells of a column as text, with what stands for missing ones in their place, and how many were missing."""
    cells = nodes.text(column.name)
    # Apart from missing ones: spaces around a value are refused with what stands there.
    cells = cells.set(cells.str.strip_chars() == "", None)
    answer = isinstance(column.kind, Tags) or (isinstance(column.kind, Category) and column.kind.empty)
    absent = int(cells.null_count())
    if stand is not None and stand != OWN_CATEGORY:
        cells = cells.fill_null(str(stand))
    elif not answer:
        nodes.refuse(cells.is_null(), "{column} is missing", column.name, "a value in every row", remedy)
    return cells.cast(polars.String), absent


def in_range(
    table: Table, name: str, numbers: polars.Series, bounds: tuple[float, float], *, clip: bool
) -> tuple[np.ndarray, int]:
    """Return a column's numbers within bounds, and how many were moved there.

    Args:
        table, name: the column, for the refusal.
        clip: whether values outside are moved to the nearer end; else they are refused with DataError.
    """
    low, high = bounds
    values = numbers.to_numpy()
    # As float32, which features are kept as: a value written as the bound itself is inside.
    with np.errstate(over="ignore"):
        stored = values.astype(np.float32)
    outside = polars.Series((stored < np.float32(low)) | (stored > np.float32(high)))
    if not clip:
        table.refuse(outside, "{column} is {value}", name, f"the declared range {low:g} to {high:g}")
    return np.clip(values, low, high), int(outside.sum())


@singledispatch
def _block(kind: Kind, nodes: Table, name: str, cells: polars.Series) -> Block:
    raise TypeError(kind)


@_block.register(YesNo)
def _(kind: YesNo, nodes: Table, name: str, cells: polars.Series) -> Block:
    yes = _yes_no(nodes, name, cells) == YES_NO[1]
    return yes.to_numpy()[:, None].astype(np.float32)


@_block.register(Category)
def _(kind: Category, nodes: Table, name: str, cells: polars.Series) -> Block:
    # Also where a missing answer is a third one: the cells are those of a column of yes and no.
    cells = _yes_no(nodes, name, cells) if set(kind.values) == set(YES_NO) else cells
    # -1 is no place, so the block of an empty cell stays zeros.
    hot: Block = (_codes(nodes, name, cells, kind.values)[:, None] == np.arange(len(kind.values))).astype(np.float32)
    return hot


@_block.register(Ordinal)
def _(kind: Ordinal, nodes: Table, name: str, cells: polars.Series) -> Block:
    codes = _codes(nodes, name, cells, kind.levels)
    return (codes / (len(kind.levels) - 1))[:, None]


@_block.register(Tags)
def _(kind: Tags, nodes: Table, name: str, cells: polars.Series) -> Block:
    words = cells.fill_null("").str.split(SEPARATOR).list.eval(polars.element().str.strip_chars())
    block = multi_hot(nodes, name, words, kind.vocabulary, "not all of it in the vocabulary")
    too_many = polars.Series(block.sum(axis=1) > kind.most)
    nodes.refuse(too_many, "{column} is {value}, more than was declared", name, f"at most {kind.most}")
    return block


def multi_hot(nodes: Table, name: str, lists: polars.Series, words: tuple[str, ...], what: str) -> Block:
    """Return lists of words as float32 0/1 [n, len(words)]; an empty word is none.

    Args:
        nodes, name: the column, for the refusal of a list that is `what`.
        lists: [n].
    """
    listed = polars.DataFrame({"row": np.arange(len(lists)), "word": lists}).explode("word")
    listed = listed.filter(polars.col("word") != "")
    codes = listed["word"].cast(polars.Enum(words), strict=False)
    rows = listed["row"].to_numpy()
    wrong = np.zeros(len(lists), bool)
    wrong[rows[codes.is_null().to_numpy()]] = True
    nodes.refuse(polars.Series(wrong), f"{{column}} is {{value}}, {what}", name, some(words))
    block = np.zeros((len(lists), len(words)), np.float32)
    # Set and not added: a word that stands twice in a cell counts once.
    block[rows, codes.to_physical().to_numpy().astype(int)] = 1
    return block


def _yes_no(nodes: Table, name: str, cells: polars.Series) -> polars.Series:
    text = whole_texts(cells.str.strip_chars()).str.to_lowercase()
    wrong = ~text.is_in([*_YES, *_NO]) & text.is_not_null()
    nodes.refuse(wrong, "{column} is {value}, neither yes nor no", name, "yes, no, true, false")
    return text.replace({**dict.fromkeys(_YES, YES_NO[1]), **dict.fromkeys(_NO, YES_NO[0])})


def _codes(nodes: Table, name: str, cells: polars.Series, values: tuple[str, ...]) -> np.ndarray:
    """The place of each cell among the values, -1 for an empty one."""
    codes = nodes.codes_of(cells, name, values, "not a declared value")
    places: np.ndarray = codes.to_physical().cast(polars.Int64).fill_null(-1).to_numpy()
    return places


def decode_columns(x: np.ndarray | sparse.csr_matrix, columns: tuple[Column, ...]) -> list[polars.Series]:
    """Return the cells that `encode_columns` reads back as the same numbers.

    Args:
        x: encoded columns [n, width], dense or sparse rows.
        columns: what they hold; InputError names one whose block encodes nothing that it may hold.
    """
    decoded = []
    for column, place in zip(columns, blocks_of(columns), strict=True):
        block = x[:, place] if isinstance(x, np.ndarray) else x[:, place].toarray()
        cells = _cells(column.kind, np.asarray(block, np.float64))
        if cells is None:
            what = f"the features of the column {column.name!r} encode no {column.kind.word}"
            raise InputError(what, where="columns", allowed="what a table with these columns is read as")
        decoded.append(polars.Series(column.name, cells))
    return decoded


def _cells(kind: Kind, block: Block) -> Block | list[str | None] | None:
    """The cells of an encoded block [n, w]; None where it encodes something else."""
    if isinstance(kind, Number):
        numbers: Block = kind.low + block[:, 0] * (kind.high - kind.low)
        return numbers
    if isinstance(kind, Integer):
        whole: Block = np.rint(kind.low + block[:, 0] * (kind.high - kind.low)).astype(np.int64)
        return whole
    if isinstance(kind, Ordinal):
        return [kind.levels[step] for step in np.rint(block[:, 0] * (len(kind.levels) - 1)).astype(int)]
    if not np.isin(block, (0, 1)).all():
        return None
    if isinstance(kind, YesNo):
        return [_YES[0] if yes else _NO[0] for yes in block[:, 0]]
    if isinstance(kind, Tags):
        words = np.array(kind.vocabulary, object)
        return [SEPARATOR.join(words[row > 0]) for row in block]
    counts = block.sum(axis=1)
    if (counts > 1).any() or (not kind.empty and (counts < 1).any()):
        return None
    return [kind.values[place] if count else None for place, count in zip(block.argmax(axis=1), counts, strict=True)]
