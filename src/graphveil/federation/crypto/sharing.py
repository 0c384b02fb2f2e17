"""Additive shares of ring elements, and products of a private matrix with another party's, by dealt masks.

    share       x = x_1 + ... + x_I mod 2^64, all but one of them uniform
    product     owner of X [n, d] and holder of w [d, h] get c_X + c_w = X w; the dealer knows U, V and r, never E or F

        E = X - U       owner -> other     once a run (X never changes, U hides the same X every time)
        F = w - V       other -> owner     each step, V is new
        Z = U V - r     dealer -> other    each step, r is new and the owner's by key
        c_X = X F + r   c_w = E V + Z      so c_X + c_w = X(w - V) + (X - U)V + U V = X w

    transposed  X^T g for g [n, h] of the other party, with the same E and U:  c_X = X^T F' + r',  c_g = E^T V' + Z'
    truncation  x_1 >> f and -((-x_2) >> f): off by at most 1, except with probability |x| 2^-63 an element

The parties send E and F to each other directly: a dealer that relayed them would know X = E + U.
Sources: Beaver, "Efficient multiparty protocols using circuit randomization", CRYPTO 1991; Mohassel, Zhang, "SecureML",
IEEE S&P 2017, section 4.1 and theorem 1.  Semi-honest; the dealer colludes with nobody.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from graphveil.errors import InputError
from graphveil.federation.crypto.masks import MaskKey
from graphveil.federation.crypto.ring import RingMatrix, matmul
from graphveil.privacy import Randomness

PARTIES = (2, 5)


def share(secret: Tensor, parties: int, *, randomness: Randomness) -> tuple[Tensor, ...]:
    """Share ring elements additively: int64 shares that add up to the secret modulo 2^64. The last is the secret less
    uniform words, so any `parties` - 1 of them are uniform for any secret.

    Args:
        secret: int64 of any shape.
        randomness: of all shares but the last.

    Raises:
        InputError: for parties outside 2..5.

    Example:
        >>> from graphveil.privacy import SecureRandomness
        >>> one, two, three = share(torch.tensor([7, -1]), 3, randomness=SecureRandomness())
        >>> reconstruct([one, two, three])
        tensor([ 7, -1])
    """
    least, most = PARTIES
    if not least <= parties <= most:
        raise InputError(f"{parties} parties", where="secret sharing", allowed=f"{least} to {most}")
    drawn = tuple(uniform(tuple(secret.shape), randomness=randomness) for _ in range(parties - 1))
    # int64 wraps, and must: modulo 2^64 the last share is uniform too, if one of the other shares is unknown.
    return (*drawn, secret - sum(drawn))


def uniform(shape: tuple[int, ...], *, randomness: Randomness) -> Tensor:
    """Draw uniform ring elements, int64 of this shape."""
    return torch.from_numpy(randomness.uint64(int(np.prod(shape, dtype=np.int64))).view(np.int64)).reshape(shape)


def secret_numbers(shape: tuple[int, int], *, randomness: Randomness) -> Tensor:
    """Draw secret numbers of a shape, float64, uniform on the multiples of 2^-52 in [-1, 1): initial weights, with
    which a server could open the features.

    Args:
        randomness: the source of secrets, not of seeds.
    """
    # 53 bits of each word: all of them fit into float64, so the numbers are exactly uniform.
    words = randomness.uint64(shape[0] * shape[1])
    return torch.from_numpy((words >> 11).astype("float64") * 2.0**-52 - 1.0).reshape(shape)


def reconstruct(shares: Sequence[Tensor]) -> Tensor:
    return torch.stack(list(shares)).sum(dim=0)


@dataclass(frozen=True)
class DealerKeys:
    """The keys for one ordered pair: the owner is dealt those of U, for the run, and r, the other party that of V."""

    left: MaskKey
    blind: MaskKey
    right: MaskKey


def masked_left(x: Tensor, left: MaskKey) -> Tensor:
    """Return E = X - U, int64 [n, d], which the owner sends to the other party once; uniform to whoever lacks U's key.

    Args:
        x: X, int64 [n, d].
        left: the key of U.
    """
    return x - left_mask(left, *x.shape)


def left_mask(key: MaskKey, rows: int, columns: int) -> Tensor:
    """Expand U, int64 [rows, columns], which hides X in all products of a run."""
    return key.expand("U", (rows, columns))


def masked_right(w: Tensor, right: MaskKey, step: str) -> Tensor:
    """Return F = w - V, int64 [d, h], which the other party sends to the owner.

    Args:
        w: int64 [d, h].
        right: the key of V.
        step: names this one product; never used again, so that V is new in each.
    """
    return w - right.expand(f"V {step}", tuple(w.shape))


def correction(keys: DealerKeys, step: str, u: Tensor, width: int) -> Tensor:
    """Return the dealer's Z = U V - r, int64 [n, h], for the other party, to whom r makes it uniform.

    Args:
        keys: the dealer's of this ordered pair.
        width: h.
        u: U [n, d], see `left_mask`; its transpose (contiguous) for the transposed product.
    """
    v = keys.right.expand(f"V {step}", (u.shape[1], width))
    # One label for V and r alike: both are new in each product, and neither party can name another's.
    return matmul(u, v) - keys.blind.expand(f"r {step}", (u.shape[0], width))


def owner_share(x: RingMatrix, f: Tensor, blind: MaskKey, step: str) -> Tensor:
    """Return the owner's share of a product, X F + r, int64 [n, h].

    Args:
        x: X, int64 [n, d], dense or scipy CSR; X^T for the transposed product.
        f: F, int64 [d, h].
        blind: the key of r.
    """
    product = matmul(x, f)
    return product + blind.expand(f"r {step}", tuple(product.shape))


def other_share(e: Tensor, right: MaskKey, z: Tensor, step: str) -> Tensor:
    """Return the other party's share of a product, E V + Z, int64 [n, h].

    Args:
        e: E, int64 [n, d]; E^T (contiguous) for the transposed product.
        right: the key of V.
        z: Z, int64 [n, h].
    """
    return matmul(e, right.expand(f"V {step}", (e.shape[1], z.shape[1]))) + z


def truncate(share: Tensor, bits: int, *, first: bool) -> Tensor:
    """Return a share of x 2^-bits to within 1, without a word between the two parties that share x; see the module.

    Wrong by 2^(64 - bits) with probability |x| 2^-63 an element: keep |x| small, never truncate what is opened.

    Args:
        share: one of exactly two, int64 of any shape.
        bits: how many are cut off.
        first: whether it is the first.
    """
    return share >> bits if first else -((-share) >> bits)
