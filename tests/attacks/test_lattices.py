"""Words modulo 2^64: exact inverses, near points of lattices, and what is said where the package is missing."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from graphveil.attacks.lattices import from_nearest, inverse, odd_columns, reduced
from graphveil.errors import InputError, MissingExtraError


def words(*shape: int, seed: int = 0) -> np.ndarray:
    """Uniform words."""
    return np.random.default_rng(seed).integers(-(2**63), 2**63, size=shape, dtype=np.int64)


@pytest.mark.parametrize("size", [1, 2, 9, 40])
def test_an_odd_square_has_an_inverse_modulo_two_to_the_64(size: int) -> None:
    a = words(size, 3 * size + 8, seed=size)
    square = a[:, odd_columns(a)]
    assert (square @ inverse(square) == np.eye(size, dtype=np.int64)).all()


def test_dependent_equations_are_refused() -> None:
    with pytest.raises(InputError, match="dependent"):
        odd_columns(2 * words(3, 9))


def test_small_solutions_are_found_where_they_are_the_only_ones() -> None:
    """x R for ten small x, up to a small error: the error and x come back."""
    rng = np.random.default_rng(1)
    small, error = rng.integers(-(2**17), 2**17, (10, 8)), rng.integers(-(2**20), 2**20, (10, 16))
    right = words(8, 16)
    targets = np.concatenate([np.zeros((10, 8), dtype=np.int64), small @ right + error], axis=1)
    rest = from_nearest(targets, reduced(8, right))
    assert (rest[:, :8] == -8 * small).all() and (rest[:, 8:] == error).all()


def test_without_the_package_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "flint", None)
    with pytest.raises(MissingExtraError, match=r"python-flint.*\n?.*graphveil\[lattice\]"):
        reduced(1, words(2, 4))
