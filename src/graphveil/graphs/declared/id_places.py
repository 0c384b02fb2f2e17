"""The place of each id of an edge among the people, block by block: a long table may be larger than memory.

Whole numbers close together are looked up in a table of all numbers between them, other ids by hashes: comparing texts
would wait for memory.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Final, Protocol

import numpy as np

from graphveil.engine import LOCAL, Block, Blocks, Engine
from graphveil.graphs.tables.tables import Table, without_point
from graphveil.runtime.late import polars

# Whole groups of rows of a parquet file, as polars and Arrow write them by default: none is unpacked twice.
_ROWS: Final = 1 << 20
# Ids looked up at once, which stay near the processor.
_STEP: Final = 1 << 18
# A table of all numbers between the ids may have this many entries a person; hashes take as much memory.
_SPREAD: Final = 4
_NOBODY, _MISSING = -1, -2


class Places(Protocol):
    def find(self, ids: polars.Series) -> np.ndarray:
        """Return the place of each id [m] among people; -1 for one that nobody has. Of the kind of the people's ids."""
        ...


@dataclass(frozen=True, eq=False)
class KnownIds:
    """The ids of n people, each once: Int64 or texts, as `plain_ids` returns them."""

    ids: polars.Series

    def __len__(self) -> int:
        return len(self.ids)

    @cached_property
    def texts(self) -> polars.Series:
        return self.ids.cast(polars.String)

    @cached_property
    def numbers(self) -> Places | None:
        """Where ids that are whole numbers stand; None where they are texts."""
        if not self.ids.dtype.is_integer():
            return None
        return NumberPlaces.of(self.ids.to_numpy()) or IdPlaces.of(self.ids)

    @cached_property
    def words(self) -> Places:
        """Where the ids stand, written as texts."""
        return IdPlaces.of(self.texts)


def find_places(table: Table, column: str, people: KnownIds, engine: Engine = LOCAL) -> np.ndarray:
    """Return the place [rows] of each id of a column among the people.

    Args:
        table, column: where the ids stand.
        people: whose they are.

    Raises:
        DataError: an id is missing or nobody's; names the row.
    """
    blocks, numbers = Blocks(table.rows, _ROWS), people.numbers
    whole = holds_numbers(table, column)
    lookup = numbers if numbers is not None and whole else people.words
    places = np.empty(table.rows, np.min_scalar_type(-len(people) - 1))
    engine.gather(engine.map_blocks(_Find(table, column, lookup, whole, lookup is numbers), blocks), blocks, places)
    if places.size and places.min() < 0:
        missing = places == _MISSING
        if missing.any():
            raise table.fault(int(missing.argmax()), "{column} is missing", column, "an id in every row")
        alike = "ids written as they are there, with every capital, zero, space and point"
        row = int((places == _NOBODY).argmax())
        raise table.fault(row, "{column} {value} is not an id in the nodes file", column, alike)
    return places


@dataclass(frozen=True, eq=False)
class _Find:
    """Find a block of ids: their places, _NOBODY or _MISSING."""

    table: Table
    column: str
    places: Places
    whole: bool
    as_numbers: bool

    def __call__(self, block: Block) -> np.ndarray:
        ids = plain_ids(self.table.part(self.column, block), numbers=self.whole)
        ids = ids if self.as_numbers else ids.cast(polars.String)
        absent = ids.is_null() if ids.has_nulls() else None
        places = self.places.find(ids if absent is None else ids.fill_null(0 if self.as_numbers else ""))
        if absent is not None:
            places[absent.to_numpy()] = _MISSING
        if not self.as_numbers and places.size and places.min() == _NOBODY:
            places[(ids == "").fill_null(True).to_numpy()] = _MISSING
            # As pandas writes whole numbers beside missing ones, in one of two tables.
            unknown = places == _NOBODY
            if unknown.any():
                places[unknown] = self.places.find(without_point(ids.filter(polars.Series(unknown))))
        return places


def holds_numbers(table: Table, column: str) -> bool:
    """Return whether a column holds whole numbers that Int64 can hold, of whatever type."""
    kind = table.part(column, Block(0, 0, 0)).dtype
    if kind.is_float():
        # Of all rows: as text, 2.0 is the number 2 where no other row has a part of one.
        return all(_whole(table.part(column, block)) for block in Blocks(table.rows, _ROWS))
    signed = (polars.Int8, polars.Int16, polars.Int32, polars.Int64)
    return kind in (*signed, polars.UInt8, polars.UInt16, polars.UInt32)


def plain_ids(ids: polars.Series, *, numbers: bool) -> polars.Series:
    """Return ids as Int64 or texts, null where missing; equal ids are equal texts, whichever they are."""
    return ids.cast(polars.Int64, strict=False) if numbers else ids.cast(polars.String)


def _whole(numbers: polars.Series) -> bool:
    there = numbers.drop_nulls().drop_nans()
    return bool((there == there.round()).all())


@dataclass(frozen=True, eq=False)
class NumberPlaces:
    """The ids of n people that are whole numbers close together.

    Attributes:
        low: the lowest id; count: how many numbers there are from the lowest id to the highest.
        table: [count], the place of each number among the people, -1 for what is no id; None where ids ascend by one.
    """

    low: int
    count: int
    table: np.ndarray | None

    @classmethod
    def of(cls, ids: np.ndarray) -> NumberPlaces | None:
        """Return the table of distinct ids int64 [n], or None where they are too far apart."""
        low, count = int(ids.min()), int(ids.max()) - int(ids.min()) + 1
        if count > _SPREAD * len(ids):
            return None
        if count == len(ids) and bool((ids[1:] > ids[:-1]).all()):
            return cls(low, count, None)
        table = np.full(count, _NOBODY, np.min_scalar_type(-len(ids) - 1))
        table[ids - low] = np.arange(len(ids))
        return cls(low, count, table)

    def find(self, ids: polars.Series) -> np.ndarray:
        # Differences that wrap around are larger than any count, as are those below 0.
        offsets = (ids.to_numpy() - np.int64(self.low)).view(np.uint64)
        there = offsets < np.uint64(self.count)
        kind = np.min_scalar_type(-self.count - 1) if self.table is None else self.table.dtype
        places = offsets.astype(kind) if self.table is None else self.table[np.where(there, offsets, np.uint64(0))]
        if not there.all():
            places[~there] = _NOBODY
        return places


@dataclass(frozen=True, eq=False)
class IdPlaces:
    """The ids of n people, to be looked up by hashes.

    A text is known again by 128 bits of two hashes: one that is nobody's is taken for somebody's with a probability of
    n / 2^128. A number is known again by itself.

    Attributes:
        heads: [2^k], one person of those whose hash has these leading bits; n: nobody.
        following: [n + 1], another person with the same leading bits; n: no other one.
        marks: uint64 [n + 1] each, by which a person is known again; the last is nobody's.
    """

    heads: np.ndarray
    following: np.ndarray
    marks: tuple[np.ndarray, ...]

    @classmethod
    def of(cls, ids: polars.Series) -> IdPlaces:
        n = len(ids)
        # Small whole numbers, so that the tables stay near the processor.
        kind = np.min_scalar_type(-n - 1)
        heads, following = np.full(2 << n.bit_length(), n, kind), np.full(n + 1, n, kind)
        buckets, left = _hash(ids, 0) >> _shift(heads), np.arange(n, dtype=kind)
        heads[buckets] = left
        last = heads.copy()
        while (left := left[last[buckets[left]] != left]).size:
            # Of each bucket one of those who are left, whichever is written last, comes behind the last one.
            before = last[buckets[left]]
            following[before] = left
            last[buckets[left]] = following[before]
        return cls(heads, following, tuple(np.append(mark, np.uint64(0)) for mark in _marks(ids)))

    def find(self, ids: polars.Series) -> np.ndarray:
        places, nobody = np.empty(len(ids), self.heads.dtype), len(self.following) - 1
        for block in Blocks(len(ids), _STEP):
            part = ids[block.rows]
            marks = _marks(part)
            at: np.ndarray = self.heads[_hash(part, 0) >> _shift(self.heads)]
            other = np.flatnonzero(self._differ(at, marks))
            while other.size:
                at[other] = self.following[at[other]]
                other = other[self._differ(at[other], tuple(mark[other] for mark in marks))]
            at[at == nobody] = _NOBODY
            places[block.rows] = at
        return places

    def _differ(self, at: np.ndarray, marks: tuple[np.ndarray, ...]) -> np.ndarray:
        differ: np.ndarray = self.marks[0][at] != marks[0]
        for stored, searched in zip(self.marks[1:], marks[1:], strict=True):
            differ |= stored[at] != searched
        differ &= at != len(self.following) - 1
        return differ


def _shift(heads: np.ndarray) -> np.uint64:
    return np.uint64(65 - len(heads).bit_length())


def _hash(ids: polars.Series, number: int) -> np.ndarray:
    hashes: np.ndarray = ids.hash(number).to_numpy()
    return hashes


def _marks(ids: polars.Series) -> tuple[np.ndarray, ...]:
    return (ids.to_numpy().view(np.uint64),) if ids.dtype.is_integer() else (_hash(ids, 0), _hash(ids, 1))
