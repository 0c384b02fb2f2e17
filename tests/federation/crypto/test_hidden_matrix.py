"""A sparse matrix shared as keys: both shares add up to it, whatever its shape, and neither says anything alone."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse
import torch
from torch import Tensor

from graphveil.errors import InputError
from graphveil.federation.crypto.hidden_matrix import TABLES, HiddenMatrix, Shape, hide
from graphveil.federation.crypto.masks import MaskKey
from graphveil.privacy import SeededRandomness
from tests.federation.views import is_uniform

UNIT = 1 << 18


def keys_of(seed: int = 1) -> tuple[MaskKey, MaskKey]:
    source = SeededRandomness(seed)
    return MaskKey.fresh(source), MaskKey.fresh(source)


def walk(nodes: int, rows: list[int], columns: list[int]) -> scipy.sparse.csr_array:
    """Entries at these places and on the diagonal, all different, some of them negative."""
    matrix = scipy.sparse.coo_array((np.ones(len(rows)), (rows, columns)), shape=(nodes, nodes)).tocsr()
    matrix = (matrix + scipy.sparse.eye_array(nodes, format="csr")).tocsr()
    matrix.data = np.arange(1, matrix.nnz + 1) * UNIT * (-1) ** np.arange(matrix.nnz)
    return matrix.astype(np.int64)


def random_walk(nodes: int, entries: int) -> scipy.sparse.csr_array:
    drawn = np.random.default_rng(nodes).integers(0, nodes, (2, nodes * (entries - 1)))
    return walk(nodes, *drawn.tolist())


def expanded(hidden: HiddenMatrix) -> Tensor:
    rows = list(hidden.blocks())
    assert [part.start for part, _ in rows] == [0, *(part.stop for part, _ in rows[:-1])]
    return torch.cat([block for _, block in rows])


def shares(matrix: scipy.sparse.csr_array, shape: Shape, keys: tuple[MaskKey, MaskKey]) -> list[Tensor]:
    corrections = hide(matrix, shape, keys)
    assert corrections.shape == shape.corrections and corrections.dtype == torch.int64
    return [expanded(HiddenMatrix(shape, reader, key, corrections)) for reader, key in enumerate(keys)]


MATRICES = {
    **{f"{nodes} nodes": random_walk(nodes, 3) for nodes in (1, 2, 5, 7, 8, 9, 64, 100, 257, 600)},
    "nothing": scipy.sparse.csr_array((20, 20), dtype=np.int64),
    "a star": walk(90, [0] * 89 + list(range(1, 90)), list(range(1, 90)) + [0] * 89),
    "a full row": walk(40, [3] * 40, list(range(40))),
    "a full column": walk(40, list(range(40)), [3] * 40),
    "dense rows": walk(50, [row for row in range(3) for _ in range(50)], list(range(50)) * 3),
}


@pytest.mark.parametrize("name", MATRICES)
def test_both_shares_add_up_to_the_matrix(name: str) -> None:
    matrix = MATRICES[name]
    first, second = shares(matrix, Shape.of(matrix.shape[0], -(-matrix.nnz // matrix.shape[0]) + 1), keys_of())
    assert torch.equal(first + second, torch.from_numpy(matrix.toarray()))


def ring_of(nodes: int, steps: int) -> scipy.sparse.csr_array:
    """Rows of so many entries, side by side."""
    rows, columns = np.divmod(np.arange(nodes * steps), steps)
    return walk(nodes, rows.tolist(), ((rows + columns) % nodes).tolist())


def test_a_matrix_that_fills_its_room_is_shared_and_a_fuller_one_is_refused() -> None:
    shape, full = Shape.of(24, 7), ring_of(24, 7)
    assert shape.tables == 8 and full.nnz == shape.room and Shape.of(24, 1).tables == TABLES
    first, second = shares(full, shape, keys_of())
    assert torch.equal(first + second, torch.from_numpy(full.toarray()))
    with pytest.raises(InputError, match=r"192 connections.*at most 168.*entries"):
        hide(ring_of(24, 8), shape, keys_of())


@pytest.mark.parametrize("reader", [0, 1])
@pytest.mark.parametrize("name", ["nothing", "a star", "dense rows", "100 nodes"])
def test_what_one_reader_has_looks_random(name: str, reader: int) -> None:
    """False-alarm rate 1e-6 each, seed fixed: leaf corrections, and the share itself, also at the entries alone."""
    matrix = MATRICES[name]
    shape, keys = Shape.of(matrix.shape[0], 8), keys_of(2)
    corrections = hide(matrix, shape, keys)
    share = expanded(HiddenMatrix(shape, reader, keys[reader], corrections))
    entries = share[torch.from_numpy(matrix.toarray()) != 0]
    assert is_uniform(corrections[:, -8:], 3) and is_uniform(share, 3)
    assert len(entries) < 160 or is_uniform(entries, 3)


@pytest.mark.parametrize("reader", [0, 1])
def test_other_keys_of_one_reader_give_no_entry(reader: int) -> None:
    """Whoever has the one key, and guesses the other, has random numbers: at no entry the right one."""
    matrix, keys = MATRICES["a star"], keys_of()
    shape = Shape.of(90, 3)
    corrections = hide(matrix, shape, keys)
    wrong = [*keys]
    wrong[reader] = keys_of(9)[reader]
    first, second = (expanded(HiddenMatrix(shape, n, key, corrections)) for n, key in enumerate(wrong))
    right = torch.from_numpy(matrix.toarray())
    assert not bool((first + second == right).any()) and is_uniform(first + second)
    assert keys[0].secret.hex() not in repr(HiddenMatrix(shape, 0, keys[0], corrections))


def test_corrections_have_the_size_of_the_room_and_not_of_the_matrix() -> None:
    """And the bits that are always 0: of the seeds' flags, and of the levels that are not there."""
    shape = Shape.of(90, 3)
    assert shape.corrections == (90 * TABLES, 2 * 4 + 1 + 8) and Shape.of(7, 3).corrections == (28, 9)
    for matrix in (MATRICES["a star"], scipy.sparse.csr_array((90, 90), dtype=np.int64)):
        corrections = hide(matrix, shape, keys_of())
        assert not bool((corrections[:, 0:8:2] & 1).any()) and not bool((corrections[:, 8] >> 8).any())
