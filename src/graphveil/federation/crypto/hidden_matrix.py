"""A sparse matrix shared between two readers as short keys: neither learns an entry, nor how many a row or column has.

    S [n, n] with at most one entry on each of T n diagonals,    v = row, u = column, pi_a a public permutation
    diagonal (a, c) of table a = 1..T holds the cells with pi_a(u) = v + c mod n
    each diagonal is a point function on the rows, x at v and 0 elsewhere, shared as two keys of a tree:
              reader b's sum over all diagonals is S_b,   S_0 + S_1 = S  mod 2^64

    seed of a node   16 bytes, the lowest bit a flag;  children H_1(s), H_2(s),  H_k(s) = AES_k(s) + s bitwise
    level of a tree  one correction for both readers, added where the flag is set: off the path both are then equal
    leaf             8 rows at a time: H_3(s + 0..3 bitwise), 64 bytes, and a correction that holds x

Entries are placed by a perfect matching with their T diagonals, which exists for nearly every graph up to 7 T n / 8
entries.  Bytes: T n (16 log2(n / 8) + 72 or so) to each reader, where a masked matrix is 8 n^2.  Work: T n^2 words.
Sources: Boyle, Gilboa, Ishai, "Function Secret Sharing: Improvements and Extensions", CCS 2016, section 3.2 (keys,
early leaves); Guo, Katz, Wang, Yu, IEEE S&P 2020 (AES under fixed keys as a hash).  Readers do not collude.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import scipy.sparse
import torch
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from numpy.typing import NDArray
from scipy.sparse.csgraph import maximum_bipartite_matching
from torch import Tensor

from graphveil.errors import InputError
from graphveil.federation.crypto.masks import MaskKey

Seeds = NDArray[np.uint64]
#: At most this many of 8 diagonals get an entry.
_FILL = 7
#: Tables at least: with fewer choices an entry may find all of its diagonals taken.
TABLES = 4
_LEAF = 8
#: The bit of a seed's first word that is its flag.
_FLAG = np.uint64(1)
#: Rows of S that are expanded at once, a power of two; and trees of them.
_ROWS, _TREES = 256, 1 << 10


@dataclass(frozen=True)
class Shape:
    """Public sizes of a hidden matrix; `nodes`: n rows and columns, `tables`: T."""

    nodes: int
    tables: int

    @staticmethod
    def of(nodes: int, entries: int) -> Shape:
        """Return the shape with room for `entries` entries a node.

        Args:
            entries: the mean over rows, at most.
        """
        return Shape(nodes, max(TABLES, -(-8 * entries // _FILL)))

    @property
    def room(self) -> int:
        """How many entries fit."""
        return self.nodes * self.tables * _FILL // 8

    @property
    def trees(self) -> int:
        """T n."""
        return self.nodes * self.tables

    @property
    def depth(self) -> int:
        """Levels of a tree above its leaves of 8 rows."""
        return max(0, math.ceil(math.log2(-(-self.nodes // _LEAF))))

    @property
    def corrections(self) -> tuple[int, int]:
        """The shape of the corrections, in words; of each tree two for each level, one for all flags, and a leaf."""
        return self.trees, 2 * self.depth + 1 + _LEAF

    def permutation(self, table: int) -> NDArray[np.int64]:
        """Return pi_a, public: the position of each column."""
        # Any fixed permutations will do: they spread entries, and hide nothing.
        return np.random.Generator(np.random.PCG64([table, self.nodes])).permutation(self.nodes)


def hide(matrix: scipy.sparse.csr_array, shape: Shape, keys: tuple[MaskKey, MaskKey]) -> Tensor:
    """Return the corrections for both readers, int64 `shape.corrections`; uniform to a reader without the other's key.

    Args:
        matrix: S, int64 CSR [n, n].
        keys: of the readers, fresh: one key hides one matrix.

    Raises:
        InputError: for more entries than there is room for.
    """
    tree, row, value = _match_diagonals(matrix, shape)
    seeds = [_roots(key, shape, reader) for reader, key in enumerate(keys)]
    corrections = np.zeros(shape.corrections, dtype=np.uint64)
    row_of = np.zeros(shape.trees, dtype=np.int64)
    row_of[tree] = row
    for level in range(shape.depth):
        right = ((row_of // _LEAF >> (shape.depth - 1 - level)) & 1).astype(bool)
        children = [(_hash_seeds(s, 1), _hash_seeds(s, 2)) for s in seeds]
        flags = [[child[:, 0] & _FLAG for child in pair] for pair in children]
        # The side that is left: equal seeds there, whatever the flags of both readers.
        lost = [np.where(right[:, None], pair[0], pair[1]) for pair in children]
        fix = _without_flags(np.bitwise_xor(lost[0], lost[1]))
        turn = [flags[0][0] ^ flags[1][0] ^ right ^ _FLAG, flags[0][1] ^ flags[1][1] ^ right]
        corrections[:, 2 * level : 2 * level + 2] = fix
        corrections[:, 2 * shape.depth] |= (turn[0] | turn[1] << _FLAG) << np.uint64(2 * level)
        path_turn = turn[0] ^ (turn[0] ^ turn[1]) * right
        seeds = [
            _correct_children(np.where(right[:, None], pair[1], pair[0]), s[:, 0] & _FLAG, fix, path_turn)
            for pair, s in zip(children, seeds, strict=True)
        ]
    target = np.zeros((len(seeds[0]), _LEAF), dtype=np.uint64)
    target[tree, row % _LEAF] = value.astype(np.int64).view(np.uint64)
    leaves = [_leaves(s) for s in seeds]
    last: Seeds = target - leaves[0] + leaves[1]
    # The reader whose flag is set adds it; where that is the second, whose leaves count negative, it is negated.
    second = (seeds[1][:, :1] & _FLAG).astype(bool)
    corrections[:, 2 * shape.depth + 1 :] = np.where(second, np.uint64(0) - last, last)
    # The bits of flags of levels that do not exist stay 0, which is public.
    return torch.from_numpy(corrections.view(np.int64))


def _match_diagonals(matrix: scipy.sparse.csr_array, shape: Shape) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return each entry's tree, row and value; no two entries have one tree."""
    entries = matrix.tocoo()
    if entries.nnz > shape.room:
        raise InputError(
            f"{entries.nnz:,} connections, each node to itself counted",
            allowed=f"at most {shape.room:,}, for which the agreement has room",
            remedy="agree on more entries for this holder",
        )
    n = shape.nodes
    diagonals = [a * n + (shape.permutation(a)[entries.col] - entries.row) % n for a in range(shape.tables)]
    choices = np.stack(diagonals, axis=1)
    start = np.arange(0, choices.size + 1, shape.tables)
    graph = scipy.sparse.csr_array((np.ones(choices.size, np.int8), choices.ravel(), start), (entries.nnz, shape.trees))
    tree = maximum_bipartite_matching(graph, perm_type="column")
    if (tree < 0).any():
        raise InputError("the connections do not fit", remedy="agree on more entries for this holder")
    return tree, entries.row, entries.data


@dataclass(frozen=True)
class HiddenMatrix:
    """One reader's share of S.

    Attributes:
        reader: 0 or 1.
        key: of this reader, which the owner of S drew.
        corrections: of `hide`, int64.
    """

    shape: Shape
    reader: int
    key: MaskKey = field(repr=False)
    corrections: Tensor = field(repr=False)

    def blocks(self) -> Iterator[tuple[slice, Tensor]]:
        """Yield rows and this reader's share of them, int64 [rows, n], block by block."""
        from graphveil.federation.crypto.hidden_loops import add_diagonals

        n, tables = self.shape.nodes, self.shape.tables
        words = np.ascontiguousarray(self.corrections.numpy()).view(np.uint64)
        roots = _roots(self.key, self.shape, self.reader)
        columns_of = [np.tile(np.argsort(self.shape.permutation(a)).astype(np.uint32), 2) for a in range(tables)]
        size = min(_ROWS, _LEAF << self.shape.depth)
        for start in range(0, n, size):
            stop = min(start + size, n)
            block = np.zeros((stop - start, n), dtype=np.uint64)
            for table, first in itertools.product(range(tables), range(0, n, _TREES)):
                trees = slice(table * n + first, table * n + min(first + _TREES, n))
                leaves = self._expand_block(roots[trees], words[trees], start // size, size)
                add_diagonals(leaves, first, start, columns_of[table], block)
            # The second reader's share counts negative: what both expand alike, off the entries, cancels.
            share = block if self.reader == 0 else np.uint64(0) - block
            yield slice(start, stop), torch.from_numpy(share.view(np.int64))

    def _expand_block(self, seeds: Seeds, words: Seeds, block: int, size: int) -> Seeds:
        """Return the leaves of one block of rows of some trees, [rows, trees].

        Args:
            seeds, words: roots and corrections of the trees.
            block, size: the block's number, and its rows.
        """
        from graphveil.federation.crypto.hidden_loops import correct, correct_leaves

        depth = self.shape.depth
        inside = (size // _LEAF).bit_length() - 1
        for level in range(depth - inside):
            side = block >> (depth - inside - 1 - level) & 1
            child = _hash_seeds(seeds, 1 + side)
            correct(child, seeds, words, 2 * level, 2 * depth, 2 * level + side)
            seeds = child
        seeds = seeds[:, None]
        for level in range(depth - inside, depth):
            wide = np.empty((len(words), 2 * seeds.shape[1], 2), dtype=np.uint64)
            for side in (0, 1):
                child = _hash_seeds(seeds.reshape(-1, 2), 1 + side)
                correct(child, seeds.reshape(-1, 2), words, 2 * level, 2 * depth, 2 * level + side)
                wide[:, side::2] = child.reshape(seeds.shape)
            seeds = wide
        flat = np.ascontiguousarray(seeds.reshape(-1, 2))
        leaves = _leaves(flat)
        correct_leaves(leaves, flat, words, 2 * depth + 1)
        return np.ascontiguousarray(leaves.reshape(len(words), -1).T)


def _roots(key: MaskKey, shape: Shape, reader: int) -> Seeds:
    seeds = key.expand("roots", (shape.trees, 2)).numpy().view(np.uint64)
    return _without_flags(seeds) | np.array([reader, 0], dtype=np.uint64)


def _without_flags(seeds: Seeds) -> Seeds:
    """Return seeds without their flags, a copy."""
    bare = np.array(seeds, order="C")
    bare[..., 0] &= ~_FLAG
    return bare


def _correct_children(child: Seeds, flag: Seeds, fix: Seeds, turn: Seeds) -> Seeds:
    corrected = child ^ fix * flag[:, None]
    corrected[:, 0] ^= turn * flag
    return corrected


def _hash_seeds(seeds: Seeds, number: int) -> Seeds:
    """Return H_k of seeds without their flags, [m, 2]."""
    return _encrypt_seeds(_without_flags(seeds), number)


def _encrypt_seeds(bare: Seeds, number: int) -> Seeds:
    out = np.empty(len(bare) * 16 + 16, dtype=np.uint8)
    _CIPHERS[number].encryptor().update_into(bare.data.cast("B"), out.data)
    hashed = out[:-16].view(np.uint64).reshape(-1, 2)
    hashed ^= bare
    return hashed


def _leaves(seeds: Seeds) -> Seeds:
    """Return 8 words of each seed, [m, 8]."""
    blocks = np.empty((len(seeds), 4, 2), dtype=np.uint64)
    for number in range(4):
        blocks[:, number, 0] = seeds[:, 0] & ~_FLAG
        blocks[:, number, 1] = seeds[:, 1] ^ np.uint64(number)
    return _encrypt_seeds(blocks.reshape(-1, 2), 3).reshape(-1, _LEAF)


#: Public keys: what hides is the seed.
_CIPHERS = {number: Cipher(algorithms.AES(bytes([number]) * 16), modes.ECB()) for number in (1, 2, 3)}
