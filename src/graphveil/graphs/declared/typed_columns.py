"""Columns of a table of nodes encoded as blocks of numbers in [0, 1], as their declared kinds say, and decoded."""

from __future__ import annotations

from collections.abc import Mapping
from functools import singledispatch
from types import MappingProxyType
from typing import Final, TypeAlias

import numpy as np

from graphveil.errors import InputError
from graphveil.files.columns import Category, Column, Integer, Kind, Number, Ordinal, Tags, YesNo, blocks_of, width_of
from graphveil.graphs.declared.column_declaration import YES_NO, column_remedy, filling_notes
from graphveil.graphs.tables.tables import Table, first_names, whole_texts
from graphveil.graphs.value.schema import OWN_CATEGORY
from graphveil.runtime.late import polars, sparse
from graphveil.runtime.words import count_of

#: Between the tags of a cell.
SEPARATOR: Final = ";"
Encoded: TypeAlias = np.ndarray
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
        missing: column -> fill value.
        clip: whether numbers outside their range are clipped; else they are refused.
        in_file: whether columns are declared in a file, else in Python.

    Raises:
        DataError: a cell is not as declared; names the table, the line and the column.
    """
    encoded = np.zeros((nodes.rows, width_of(columns)), np.float32)
    clipped, filled = 0, []
    # In the declared order, whatever the order in the table: mechanisms find a column by its position.
    for column, block in zip(columns, blocks_of(columns), strict=True):
        fill_value, remedy = missing.get(column.name), column_remedy(column, in_file=in_file)
        name, kind = column.name, column.kind
        if isinstance(kind, Number | Integer):
            numbers, absent = nodes.read_numbers(name, None if fill_value is None else float(fill_value), remedy)
            if isinstance(kind, Integer):
                nodes.refuse(numbers.round(0) != numbers, "{column} is {value}, not a whole number", name)
            values, changed = clip_or_refuse(nodes, name, numbers, (kind.low, kind.high), clip=clip)
            encoded[:, block] = ((values - kind.low) / (kind.high - kind.low))[:, None]
            clipped += changed
        else:
            cells, absent = _filled_cells(nodes, column, fill_value, remedy)
            encoded[:, block] = _encode(kind, nodes, name, cells)
        filled += [] if fill_value is None else [(name, absent, fill_value)]
    return encoded, (*filling_notes(filled), *clipping_notes(clipped))


def clipping_notes(count: int) -> tuple[str, ...]:
    """Return a note on `count` clipped values; none for 0."""
    return (f"clipped {count_of(count, 'feature value')} to the declared range",) if count else ()


def _filled_cells(
    nodes: Table, column: Column, fill_value: float | str | None, remedy: str
) -> tuple[polars.Series, int]:
    """The cells of a column as text, missing ones replaced by the fill value, and how many were missing."""
    cells = nodes.text(column.name)
    # Only blank cells are missing: spaces around a value are refused later, with the value.
    cells = cells.set(cells.str.strip_chars() == "", None)
    empty_allowed = isinstance(column.kind, Tags) or (isinstance(column.kind, Category) and column.kind.empty)
    missing_count = int(cells.null_count())
    if fill_value is not None and fill_value != OWN_CATEGORY:
        cells = cells.fill_null(str(fill_value))
    elif not empty_allowed:
        nodes.refuse(cells.is_null(), "{column} is missing", column.name, "a value in every row", remedy)
    return cells.cast(polars.String), missing_count


def clip_or_refuse(
    table: Table, name: str, numbers: polars.Series, bounds: tuple[float, float], *, clip: bool
) -> tuple[np.ndarray, int]:
    """Return a column's numbers within bounds, and how many were clipped.

    Args:
        table, name: the column, for the refusal.
        clip: whether values outside are clipped; else they are refused with DataError.
    """
    low, high = bounds
    values = numbers.to_numpy()
    # Compared as float32, the type of features: a value equal to the bound as written is inside.
    with np.errstate(over="ignore"):
        stored = values.astype(np.float32)
    outside = polars.Series((stored < np.float32(low)) | (stored > np.float32(high)))
    if not clip:
        table.refuse(outside, "{column} is {value}", name, f"the declared range {low:g} to {high:g}")
    return np.clip(values, low, high), int(outside.sum())


@singledispatch
def _encode(kind: Kind, nodes: Table, name: str, cells: polars.Series) -> Encoded:
    raise TypeError(kind)


@_encode.register(YesNo)
def _(kind: YesNo, nodes: Table, name: str, cells: polars.Series) -> Encoded:
    yes = _yes_no(nodes, name, cells) == YES_NO[1]
    return yes.to_numpy()[:, None].astype(np.float32)


@_encode.register(Category)
def _(kind: Category, nodes: Table, name: str, cells: polars.Series) -> Encoded:
    # A yes-no column with "own category" is a Category of yes and no: true, false, 1 and 0 are allowed there too.
    cells = _yes_no(nodes, name, cells) if set(kind.values) == set(YES_NO) else cells
    # The code of an empty cell is -1, so that its block stays zeros.
    hot: Encoded = (_codes(nodes, name, cells, kind.values)[:, None] == np.arange(len(kind.values))).astype(np.float32)
    return hot


@_encode.register(Ordinal)
def _(kind: Ordinal, nodes: Table, name: str, cells: polars.Series) -> Encoded:
    codes = _codes(nodes, name, cells, kind.levels)
    return (codes / (len(kind.levels) - 1))[:, None]


@_encode.register(Tags)
def _(kind: Tags, nodes: Table, name: str, cells: polars.Series) -> Encoded:
    words = cells.fill_null("").str.split(SEPARATOR).list.eval(polars.element().str.strip_chars())
    block = multi_hot(nodes, name, words, kind.vocabulary, "not all of it in the vocabulary")
    too_many = polars.Series(block.sum(axis=1) > kind.most)
    nodes.refuse(too_many, "{column} is {value}, more than was declared", name, f"at most {kind.most}")
    return block


def multi_hot(nodes: Table, name: str, lists: polars.Series, words: tuple[str, ...], what: str) -> Encoded:
    """Return lists of words as float32 0/1 [n, len(words)]; empty words are ignored.

    Args:
        nodes, name: the column, for the refusal of a list with another word.
        lists: [n].
        words: the declared words.
        what: the message about a list with another word.
    """
    entries = polars.DataFrame({"row": np.arange(len(lists)), "word": lists}).explode("word")
    entries = entries.filter(polars.col("word") != "")
    codes = entries["word"].cast(polars.Enum(words), strict=False)
    rows = entries["row"].to_numpy()
    wrong = np.zeros(len(lists), bool)
    wrong[rows[codes.is_null().to_numpy()]] = True
    nodes.refuse(polars.Series(wrong), f"{{column}} is {{value}}, {what}", name, first_names(words))
    block = np.zeros((len(lists), len(words)), np.float32)
    # Set and not added: a repeated word in a cell counts once.
    block[rows, codes.to_physical().to_numpy().astype(int)] = 1
    return block


def _yes_no(nodes: Table, name: str, cells: polars.Series) -> polars.Series:
    text = whole_texts(cells.str.strip_chars()).str.to_lowercase()
    wrong = ~text.is_in([*_YES, *_NO]) & text.is_not_null()
    nodes.refuse(wrong, "{column} is {value}, neither yes nor no", name, "yes, no, true, false")
    return text.replace({**dict.fromkeys(_YES, YES_NO[1]), **dict.fromkeys(_NO, YES_NO[0])})


def _codes(nodes: Table, name: str, cells: polars.Series, values: tuple[str, ...]) -> np.ndarray:
    """The index of each cell among the values, -1 for an empty one."""
    codes = nodes.codes_of(cells, name, values, "not a declared value")
    indices: np.ndarray = codes.to_physical().cast(polars.Int64).fill_null(-1).to_numpy()
    return indices


def decode_columns(x: np.ndarray | sparse.csr_matrix, columns: tuple[Column, ...]) -> list[polars.Series]:
    """Return the cells that `encode_columns` reads back as the same numbers.

    Args:
        x: encoded columns [n, width], dense or sparse rows.
        columns: what they hold; InputError names a column whose block encodes no value of it.
    """
    decoded = []
    for column, block_slice in zip(columns, blocks_of(columns), strict=True):
        block = x[:, block_slice] if isinstance(x, np.ndarray) else x[:, block_slice].toarray()
        cells = _cells(column.kind, np.asarray(block, np.float64))
        if cells is None:
            what = f"the features of the column {column.name!r} encode no {column.kind.word}"
            raise InputError(what, where="columns", allowed="what a table with these columns is read as")
        decoded.append(polars.Series(column.name, cells))
    return decoded


def _cells(kind: Kind, block: Encoded) -> Encoded | list[str | None] | None:
    """The cells of an encoded block [n, w]; None where it encodes something else."""
    if isinstance(kind, Number):
        numbers: Encoded = kind.low + block[:, 0] * (kind.high - kind.low)
        return numbers
    if isinstance(kind, Integer):
        integers: Encoded = np.rint(kind.low + block[:, 0] * (kind.high - kind.low)).astype(np.int64)
        return integers
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
    return [kind.values[index] if count else None for index, count in zip(block.argmax(axis=1), counts, strict=True)]
