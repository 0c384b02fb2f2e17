"""Private set intersection of node ids among 2 to 5 holders, by commuting secret multiples of hashed ids on a curve.

    point(id) = SHA-256 of the id as a u-coordinate of X25519       [k] point    the scalar multiple by the secret k
    every holder's points go round all others, each multiplies by its own secret:   [k_1 k_2 ... k_I] point(id)
    an id that all have gives the same point at all; rows are put in the order of those points

Nobody sees another's ids, or can test a guess without all secrets.  What is revealed: how many ids each holder has, and
which of its own ids all others have too.  Semi-honest; 31 microseconds a multiplication, so up to 100,000 ids.
Source: Meadows, IEEE S&P 1986; Huberman, Franklin, Hogg, EC 1999; X25519: Langley, Hamburg, Turner, RFC 7748.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np
import torch
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from torch import Tensor

from graphveil.errors import DataError, InputError
from graphveil.federation.messages import Receive, Send
from graphveil.federation.products import Talk
from graphveil.privacy import Randomness

MOST_IDS = 100_000
_POINT = 32


def align(me: str, names: Sequence[str], ids: Sequence[str], *, randomness: Randomness) -> Talk:
    """Return the rows of this holder's nodes that all holders have, in the order that all share, int64 [n].

    Args:
        names: all holders in the agreement's order. ids: of this holder's rows, as text.

    Raises:
        DataError: an id twice, or no id that all have. InputError: too many ids.
    """
    if len(set(ids)) != len(ids):
        raise DataError("an id stands in several rows", where=me)
    if len(ids) > MOST_IDS:
        raise InputError(
            f"{len(ids)} ids", where=me, allowed=f"at most {MOST_IDS}", remedy='install "graphveil[psi]" for more'
        )
    secret = X25519PrivateKey.from_private_bytes(randomness.bytes(32))
    place, count = list(names).index(me), len(names)
    after, before = names[(place + 1) % count], names[place - 1]
    going = multiplied(secret, hashed(ids))
    for _ in range(count - 1):  # every set passes through all holders and comes home
        yield Send(after, "blinded-ids", going)
        arrived = yield Receive(before, "blinded-ids", (-1, _POINT))
        going = multiplied(secret, arrived)
    yield Send(after, "blinded-ids", going)
    mine = yield Receive(before, "blinded-ids", (len(ids), _POINT))
    others = [name for name in names if name != me]
    for name in others:
        yield Send(name, "blinded-set", mine[_sorted(mine)])
    points = [row.tobytes() for row in mine.numpy()]
    common = set(points)
    for name in others:
        theirs = yield Receive(name, "blinded-set", (-1, _POINT))
        common &= {row.tobytes() for row in theirs.numpy()}
    if not common:
        raise DataError("the holders share no node id", where=me, remedy="check that all write ids the same way")
    row_of = {point: row for row, point in enumerate(points)}
    return torch.tensor([row_of[point] for point in sorted(common)])


def hashed(ids: Sequence[str]) -> Tensor:
    """Return a point for every id, uint8 [ids, 32]."""
    data = b"".join(hashlib.sha256(b"graphveil/psi/1" + text.encode()).digest() for text in ids)
    return torch.from_numpy(np.frombuffer(data, dtype=np.uint8).copy()).view(-1, _POINT)


def multiplied(secret: X25519PrivateKey, points: Tensor) -> Tensor:
    """Return every point times the secret.

    Raises:
        DataError: a point of small order, which no hash of an id is.
    """
    try:
        data = b"".join(secret.exchange(X25519PublicKey.from_public_bytes(row.tobytes())) for row in points.numpy())
    except ValueError as error:
        raise DataError("a blinded id is no point", where="alignment") from error
    return torch.from_numpy(np.frombuffer(data, dtype=np.uint8).copy()).view(-1, _POINT)


def _sorted(points: Tensor) -> Tensor:
    """The order of rows as bytes: what is sent says nothing of the order in which ids are kept."""
    order = np.lexsort(points.numpy().T[::-1])
    return torch.from_numpy(order)
