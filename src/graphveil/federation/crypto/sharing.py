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
from graphveil.federation.crypto.ring import matmul
from graphveil.privacy import Randomness

PARTIES = (2, 5)


def share(secret: Tensor, parties: int, *, randomness: Randomness) -> tuple[Tensor, ...]:
    """Return `parties` shares of int64 ring elements; any `parties` - 1 of them are uniform.

    Raises:
        InputError: for a number of parties outside 2..5.
    """
    least, most = PARTIES
    if not least <= parties <= most:
        raise InputError(f"{parties} parties", where="secret sharing", allowed=f"{least} to {most}")
    drawn = tuple(uniform(tuple(secret.shape), randomness=randomness) for _ in range(parties - 1))
    return (*drawn, secret - sum(drawn))


def uniform(shape: tuple[int, ...], *, randomness: Randomness) -> Tensor:
    """Return uniform ring elements int64 of this shape."""
    return torch.from_numpy(randomness.uint64(int(np.prod(shape, dtype=np.int64))).view(np.int64)).reshape(shape)


def secret_numbers(shape: tuple[int, int], *, randomness: Randomness) -> Tensor:
    """Return numbers in [-1, 1), from the source of secrets: initial weights that are known would open the features."""
    words = randomness.uint64(shape[0] * shape[1])
    return torch.from_numpy((words >> 11).astype("float64") * 2.0**-52 - 1.0).reshape(shape)


def reconstruct(shares: Sequence[Tensor]) -> Tensor:
    """Return the sum of all shares."""
    return torch.stack(list(shares)).sum(dim=0)


@dataclass(frozen=True)
class OwnerKeys:
    """What the dealer gives the owner of X: U for the run, and r for each step."""

    left: MaskKey
    blind: MaskKey


@dataclass(frozen=True)
class DealerKeys:
    """What the dealer keeps of one ordered pair (owner, other); the other party's is `right` alone."""

    left: MaskKey
    blind: MaskKey
    right: MaskKey

    @staticmethod
    def fresh(randomness: Randomness) -> DealerKeys:
        """Return three new keys."""
        return DealerKeys(*(MaskKey.fresh(randomness) for _ in range(3)))

    @property
    def owner(self) -> OwnerKeys:
        """The owner's part."""
        return OwnerKeys(self.left, self.blind)


def masked_left(x: Tensor, keys: OwnerKeys) -> Tensor:
    """E = X - U, sent by the owner to the other party once."""
    return x - left_mask(keys.left, *x.shape)


def left_mask(key: MaskKey, rows: int, columns: int) -> Tensor:
    """U [n, d], which hides X in all products of a run."""
    return key.expand("U", (rows, columns))


def masked_right(w: Tensor, right: MaskKey, step: str) -> Tensor:
    """F = w - V, sent by the other party to the owner; `step` names this one product and is never used again."""
    return w - right.expand(f"V {step}", tuple(w.shape))


def correction(keys: DealerKeys, step: str, u: Tensor, width: int) -> Tensor:
    """Z = U V - r [n, h], made by the dealer for the other party.

    Args:
        u: U [n, d], see `left_mask`; its transpose (contiguous) for the transposed product. width: h.
    """
    v = keys.right.expand(f"V {step}", (u.shape[1], width))
    return matmul(u, v) - keys.blind.expand(f"r {step}", (u.shape[0], width))


def owner_share(x: Tensor, f: Tensor, keys: OwnerKeys, step: str) -> Tensor:
    """X F + r [n, h]: give X^T for the transposed product; X may be a scipy CSR of int64."""
    product = matmul(x, f)
    return product + keys.blind.expand(f"r {step}", tuple(product.shape))


def other_share(e: Tensor, right: MaskKey, z: Tensor, step: str) -> Tensor:
    """E V + Z [n, h]: give E^T (contiguous) for the transposed product."""
    return matmul(e, right.expand(f"V {step}", (e.shape[1], z.shape[1]))) + z


def truncate(share: Tensor, bits: int, *, first: bool) -> Tensor:
    """Return a share of x 2^-bits from one of exactly two shares of x, to within 1.

    Wrong by 2^(64 - bits) with probability |x| 2^-63 an element: keep |x| small, never truncate what is opened.
    """
    return share >> bits if first else -((-share) >> bits)
