"""The node number of each id of an edge, found block by block: a long table may be larger than memory.

Whole numbers close together are looked up in an array over all numbers between them, other ids by hashes: comparing
texts would wait for memory.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Final, Protocol

import numpy as np

from graphveil.engine import LOCAL, Block, Blocks, Engine
from graphveil.graphs.tables.tables import Table, without_point
from graphveil.runtime.late import polars

# Whole row groups of a parquet file, as polars and Arrow write them by default: none is unpacked twice.
_BLOCK: Final = 1 << 20
# Ids of a block that fits the processor's cache.
_CACHE_BLOCK: Final = 1 << 18
# An array over all numbers between the ids may have this many entries a person; hashes take as much memory.
_SPREAD: Final = 4
_NOBODY, _MISSING = -1, -2


class IdLookup(Protocol):
    def find(self, ids: polars.Series) -> np.ndarray:
        """Return the node number of each id [m], -1 for an id that no node has; ids have the type of the nodes' ids."""
        ...


@dataclass(frozen=True, eq=False)
class PeopleIds:
    """The ids of n nodes, each once: Int64 or texts, as `plain_ids` returns them."""

    ids: polars.Series

    def __len__(self) -> int:
        return len(self.ids)

    @cached_property
    def texts(self) -> polars.Series:
        return self.ids.cast(polars.String)

    @cached_property
    def number_lookup(self) -> IdLookup | None:
        """Finds whole numbers; None where the ids are texts."""
        if not self.ids.dtype.is_integer():
            return None
        return NumberLookup.of(self.ids.to_numpy()) or HashLookup.of(self.ids)

    @cached_property
    def text_lookup(self) -> IdLookup:
        """Finds ids written as texts."""
        return HashLookup.of(self.texts)


def find_nodes(table: Table, column: str, people: PeopleIds, engine: Engine = LOCAL) -> np.ndarray:
    """Return the node number [rows] of each id in a column.

    Args:
        table, column: where the ids are.
        people: the ids of all nodes.

    Raises:
        DataError: an id is missing, or no node has it; names the row.
    """
    blocks, number_lookup = Blocks(table.rows, _BLOCK), people.number_lookup
    are_numbers = holds_numbers(table, column)
    lookup = number_lookup if number_lookup is not None and are_numbers else people.text_lookup
    nodes = np.empty(table.rows, np.min_scalar_type(-len(people) - 1))
    find = _FindNodes(table, column, lookup, are_numbers, as_numbers=lookup is number_lookup)
    engine.gather(engine.map_blocks(find, blocks), blocks, nodes)
    if nodes.size and nodes.min() < 0:
        missing = nodes == _MISSING
        if missing.any():
            raise table.fault(int(missing.argmax()), "{column} is missing", column, "an id in every row")
        allowed = "ids written as they are there, with every capital, zero, space and point"
        row = int((nodes == _NOBODY).argmax())
        raise table.fault(row, "{column} {value} is not an id in the nodes file", column, allowed)
    return nodes


@dataclass(frozen=True, eq=False)
class _FindNodes:
    """Looks up a block of ids: node numbers, _NOBODY or _MISSING."""

    table: Table
    column: str
    lookup: IdLookup
    are_numbers: bool  # whether the column holds whole numbers
    as_numbers: bool  # whether they are looked up as numbers, and not as texts

    def __call__(self, block: Block) -> np.ndarray:
        ids = plain_ids(self.table.part(self.column, block), numbers=self.are_numbers)
        ids = ids if self.as_numbers else ids.cast(polars.String)
        absent = ids.is_null() if ids.has_nulls() else None
        nodes = self.lookup.find(ids if absent is None else ids.fill_null(0 if self.as_numbers else ""))
        if absent is not None:
            nodes[absent.to_numpy()] = _MISSING
        if not self.as_numbers and nodes.size and nodes.min() == _NOBODY:
            nodes[(ids == "").fill_null(True).to_numpy()] = _MISSING
            # Pandas writes whole numbers as 12.0 in a column with missing ones, which may be one of the two tables.
            unknown = nodes == _NOBODY
            if unknown.any():
                nodes[unknown] = self.lookup.find(without_point(ids.filter(polars.Series(unknown))))
        return nodes


def holds_numbers(table: Table, column: str) -> bool:
    """Return whether a column holds whole numbers that Int64 can hold, of whatever type."""
    kind = table.part(column, Block(0, 0, 0)).dtype
    if kind.is_float():
        # All rows decide: 2.0 means the number 2 only where no row has a fraction.
        return all(_all_whole(table.part(column, block)) for block in Blocks(table.rows, _BLOCK))
    signed = (polars.Int8, polars.Int16, polars.Int32, polars.Int64)
    return kind in (*signed, polars.UInt8, polars.UInt16, polars.UInt32)


def plain_ids(ids: polars.Series, *, numbers: bool) -> polars.Series:
    """Return ids as Int64 or texts, null where missing."""
    return ids.cast(polars.Int64, strict=False) if numbers else ids.cast(polars.String)


def _all_whole(numbers: polars.Series) -> bool:
    present = numbers.drop_nulls().drop_nans()
    return bool((present == present.round()).all())


@dataclass(frozen=True, eq=False)
class NumberLookup:
    """The ids of n nodes that are whole numbers close together."""

    low: int  # the lowest id
    count: int  # of all whole numbers from the lowest id to the highest
    nodes: np.ndarray | None  # [count], the node of each number, -1 where it is no id; None where ids ascend by one

    @classmethod
    def of(cls, ids: np.ndarray) -> NumberLookup | None:
        """Return the lookup of distinct ids int64 [n], or None where they are too far apart."""
        low, count = int(ids.min()), int(ids.max()) - int(ids.min()) + 1
        if count > _SPREAD * len(ids):
            return None
        if count == len(ids) and bool((ids[1:] > ids[:-1]).all()):
            return cls(low, count, None)
        nodes = np.full(count, _NOBODY, np.min_scalar_type(-len(ids) - 1))
        nodes[ids - low] = np.arange(len(ids))
        return cls(low, count, nodes)

    def find(self, ids: polars.Series) -> np.ndarray:
        # As unsigned numbers, negative and overflowing differences are larger than any count.
        offsets = (ids.to_numpy() - np.int64(self.low)).view(np.uint64)
        inside = offsets < np.uint64(self.count)
        kind = np.min_scalar_type(-self.count - 1) if self.nodes is None else self.nodes.dtype
        nodes = offsets.astype(kind) if self.nodes is None else self.nodes[np.where(inside, offsets, np.uint64(0))]
        if not inside.all():
            nodes[~inside] = _NOBODY
        return nodes


@dataclass(frozen=True, eq=False)
class HashLookup:
    """The ids of n nodes in a hash table: each bucket is a linked list of nodes.

    A text is compared by 128 bits of two hashes: one that no node has passes for a node's with a probability of
    n / 2^128. Numbers are compared exactly.
    """

    heads: np.ndarray  # [2^k], the first node of each bucket; n: none
    following: np.ndarray  # [n + 1], the next node in the same bucket; n: none
    marks: tuple[np.ndarray, ...]  # uint64 [n + 1] each, which are compared; the last entry is of no node

    @classmethod
    def of(cls, ids: polars.Series) -> HashLookup:
        n = len(ids)
        # The smallest type, so that the arrays fit the processor's cache.
        kind = np.min_scalar_type(-n - 1)
        heads, following = np.full(2 << n.bit_length(), n, kind), np.full(n + 1, n, kind)
        buckets, remaining = _hash(ids, 0) >> _shift(heads), np.arange(n, dtype=kind)
        heads[buckets] = remaining
        last = heads.copy()
        while (remaining := remaining[last[buckets[remaining]] != remaining]).size:
            # Appends to each bucket one of its remaining nodes, the one that is written last.
            before = last[buckets[remaining]]
            following[before] = remaining
            last[buckets[remaining]] = following[before]
        return cls(heads, following, tuple(np.append(mark, np.uint64(0)) for mark in _marks(ids)))

    def find(self, ids: polars.Series) -> np.ndarray:
        nodes, nobody = np.empty(len(ids), self.heads.dtype), len(self.following) - 1
        for block in Blocks(len(ids), _CACHE_BLOCK):
            part = ids[block.rows]
            marks = _marks(part)
            candidates: np.ndarray = self.heads[_hash(part, 0) >> _shift(self.heads)]
            unresolved = np.flatnonzero(self._differ(candidates, marks))
            while unresolved.size:
                candidates[unresolved] = self.following[candidates[unresolved]]
                unresolved = unresolved[self._differ(candidates[unresolved], tuple(mark[unresolved] for mark in marks))]
            candidates[candidates == nobody] = _NOBODY
            nodes[block.rows] = candidates
        return nodes

    def _differ(self, candidates: np.ndarray, marks: tuple[np.ndarray, ...]) -> np.ndarray:
        differ: np.ndarray = self.marks[0][candidates] != marks[0]
        for stored, searched in zip(self.marks[1:], marks[1:], strict=True):
            differ |= stored[candidates] != searched
        differ &= candidates != len(self.following) - 1
        return differ


def _shift(heads: np.ndarray) -> np.uint64:
    return np.uint64(65 - len(heads).bit_length())


def _hash(ids: polars.Series, number: int) -> np.ndarray:
    hashes: np.ndarray = ids.hash(number).to_numpy()
    return hashes


def _marks(ids: polars.Series) -> tuple[np.ndarray, ...]:
    return (ids.to_numpy().view(np.uint64),) if ids.dtype.is_integer() else (_hash(ids, 0), _hash(ids, 1))
