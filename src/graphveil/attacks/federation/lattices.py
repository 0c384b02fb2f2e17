"""Linear equations modulo 2^64 with small unknowns, by lattice reduction.

    exact    x = a^-1 b mod 2^64: inverse mod 2 by elimination, then doubled bit by bit, x <- x (2 - a x)
    small    the point of { c [I R] + 2^64 [0 c'] } that is nearest to a target: LLL, then nearest planes

Everything is a matrix of signed 64-bit words that wrap.  Source: Lenstra, Lenstra, Lovasz, Math. Annalen 261, 1982
(flint's implementation); Babai, Combinatorica 6, 1986 (nearest planes).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from graphveil.errors import InputError, MissingExtraError

_DOUBLINGS = 6  # 2^6 = 64 bits
_PASSES = 4


def odd_columns(a: np.ndarray) -> np.ndarray:
    """Return r columns of a [r, c] whose square matrix has an inverse modulo 2^64: an odd determinant.

    Raises:
        InputError: there are none.
    """
    # A determinant is odd exactly where the matrix has an inverse modulo 2, so elimination over bits is enough.
    m = (a & 1).astype(np.uint8)
    independent: list[int] = []
    for column in range(a.shape[1]):
        row = len(independent)
        pivots = np.flatnonzero(m[row:, column])
        if len(pivots):
            m[[row, row + pivots[0]]] = m[[row + pivots[0], row]]
            nonzero = np.flatnonzero(m[:, column])
            m[nonzero[nonzero != row]] ^= m[row]
            independent.append(column)
        if len(independent) == len(m):
            return np.array(independent)
    raise InputError(
        "the equations are dependent modulo 2",
        where="attack",
        allowed="as many people of different features as columns, or more",
    )


def inverse(a: np.ndarray) -> np.ndarray:
    """Return the inverse modulo 2^64 of a square matrix of words with an odd determinant."""
    size = len(a)
    identity = np.eye(size, dtype=np.int64)
    # Modulo 2 first: an integer matrix has an inverse modulo 2^64 exactly where its low bits have one.
    m = np.concatenate([a & 1, identity], axis=1).astype(np.uint8)
    for column in range(size):
        row = column + np.flatnonzero(m[column:, column])[0]
        m[[column, row]] = m[[row, column]]
        nonzero = np.flatnonzero(m[:, column])
        m[nonzero[nonzero != column]] ^= m[column]
    x: np.ndarray = m[:, size:].astype(np.int64)
    for _ in range(_DOUBLINGS):
        # Newton's step doubles the right low bits each time; int64 wraps around, which is arithmetic modulo 2^64.
        x = x @ (2 * identity - a @ x)
    return x


def reduced(left: int, right: np.ndarray) -> np.ndarray:
    """Return a reduced basis, one vector a row, of the lattice spanned by the rows of [left I, right] and [0, 2^64 I].

    Args:
        left: weight of the first numbers against the others. right: [r, c] words.

    Raises:
        MissingExtraError: the package python-flint is not installed.
    """
    fmpz_mat = _flint().fmpz_mat
    rows, columns = right.shape
    size = rows + columns
    basis = [[0] * size for _ in range(size)]
    for row in range(rows):
        basis[row][row] = left
        basis[row][rows:] = right[row].tolist()
    for place in range(rows, size):
        # These rows stand for the wrap-around of 64-bit words.
        basis[place][place] = 1 << 64
    # Exact integers: floating-point reduction loses the low bits, which are what the equations are about.
    short = fmpz_mat(basis).lll()
    return np.array([[int(short[i, j]) for j in range(size)] for i in range(size)], dtype=np.int64)


def from_nearest(targets: np.ndarray, basis: np.ndarray) -> np.ndarray:
    """Return each target minus a near point of the lattice, words [t, size]: what is small, where it is small enough.

    Args:
        targets: [t, size] words. basis: of `reduced`.
    """
    q, triangle = np.linalg.qr(basis.T.astype(np.float64))
    rest = targets.copy()
    for _ in range(_PASSES):  # each pass is as exact as floats of the rest: the next one mends its rounding
        turned = rest.astype(np.float64) @ q
        steps = np.zeros(rest.shape)
        for place in reversed(range(len(basis))):
            steps[:, place] = np.rint(turned[:, place] / triangle[place, place])
            turned -= steps[:, place, None] * triangle[:, place]
        # Subtracted in wrapping integers: only the choice of the lattice point is made in floats, never what is left
        # over.
        rest = rest - steps.astype(np.int64) @ basis
    return rest


def _flint() -> Any:
    try:
        import flint
    except ImportError as error:
        raise MissingExtraError(
            "the package python-flint is not installed",
            where="attack lattice",
            remedy="run: pip install 'graphveil[lattice]'",
        ) from error
    return flint
