"""Private set intersection of node ids among 2 to 5 holders, by commuting secret multiples of hashed ids on a curve.

    point(id) = RFC 9380's hash of the id to Curve25519             [k] point    the scalar multiple by the secret k
    every holder's points go round all others, each multiplies by its own secret:   [k_1 k_2 ... k_I] point(id)
    an id that all have gives the same point at all; rows are put in the order of those points

A holder sends its points in random order, and its finished set sorted: the position of an id in its files is not shown.
Nobody sees another holder's ids, or can test a guess without all secrets.  Every holder learns how many ids each holder
has, how many any of them share, and which of its own ids each other holder has too.  Semi-honest; points that are no
hash, or that come twice, are refused all the same, as is a finished set other than the one sent home.  With two holders
a row is hashed once, multiplied twice and checked once, at about the price of four multiplications.

Ids are texts: two that are canonically equivalent in Unicode (composed and decomposed accents) count as one.  Nothing
else is made equal: capitals, spaces and leading zeros are for the holders to unify.

SPU's RR22 is far cheaper, and is no extra here: the only release beside NumPy 2 is a pre-release that pins JAX; it
takes two parties, opens sockets of its own beside the pinned streams, which no transcript sees, and writes ids in the
clear to temporary files.
Source: Meadows, IEEE S&P 1986; Huberman, Franklin, Hogg, EC 1999; X25519: Langley, Hamburg, Turner, RFC 7748.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from graphveil.errors import DataError, InputError
from graphveil.federation.crypto import curve
from graphveil.federation.effects import PeerError, Program, Receive, Roster, Send
from graphveil.privacy import Randomness

MAX_IDS = 1_000_000


def align(roster: Roster, ids: Sequence[str], *, randomness: Randomness) -> Program[Tensor]:
    """Intersect the holders' ids.

    Args:
        roster: all holders; blinded ids go round in their order.
        ids: of this holder's rows, as text.
        randomness: of the secret and of the order in which points are sent.

    Returns:
        The rows of this holder's nodes that all holders have, in the order that all share, int64 [n].

    Raises:
        DataError: an id twice, no ids, or no id that all have. InputError: too many ids.
        PeerError: another holder sent what no honest one sends.
    """
    texts = _texts(roster.me, ids)
    # New in every run: with an old secret, points of two runs could be compared and ids followed from one to the next.
    secret = randomness.bytes(curve.POINT)
    # A new random order in every run: the position of an id in the files is not shown.
    order = np.argsort(randomness.uint64(len(ids)), kind="stable")
    me, names = roster.me, roster.holders
    place, count = names.index(me), len(names)
    after, before = names[(place + 1) % count], names[place - 1]
    going = _tensor(curve.multiplied(secret, curve.hashed([texts[row] for row in order])))
    for _ in range(count - 1):  # every set passes through all holders and comes home
        yield Send(after, "blinded-ids", going)
        arrived = yield Receive(before, "blinded-ids", (-1, curve.POINT))
        going = _multiplied(secret, arrived, before)
    # The last lap brings each set home: it is the next holder's own, with everybody's secret on it.
    yield Send(after, "blinded-ids", going)
    mine = yield Receive(before, "blinded-ids", (len(ids), curve.POINT))
    points = _different(mine, before)
    finished = _in_order(points)
    for name in roster.other_holders:
        yield Send(name, "blinded-set", finished)
    # Sorted sets say nothing of anybody's order; only membership is compared.
    common = set(points)
    for name in roster.other_holders:
        theirs = yield Receive(name, "blinded-set", (-1, curve.POINT))
        # This holder finished the next holder's set, and so knows what that one must publish.
        if name == after and not torch.equal(theirs, _in_order(_rows(going))):
            raise PeerError("it returned another set of blinded ids than it was sent", where=name)
        common &= set(_different(theirs, name))
    if not common:
        raise DataError("the holders share no node id", where=me, remedy="check that all write ids the same way")
    row_of = dict(zip(points, order.tolist(), strict=True))
    # Sorted by points, which no holder chose: the common order tells nothing of anybody's files.
    return torch.tensor([row_of[point] for point in sorted(common)])


def _texts(me: str, ids: Sequence[str]) -> list[bytes]:
    """Return the bytes that are hashed for every id."""
    if not ids:
        raise DataError("has no rows", where=me)
    if len(ids) > MAX_IDS:
        raise InputError(f"{len(ids)} ids", where=me, allowed=f"at most {MAX_IDS}")
    texts = [unicodedata.normalize("NFC", text).encode("utf-8", "surrogatepass") for text in ids]
    # An id in two rows has no single place in the common order, and other holders refuse a set with equal points.
    if len(set(texts)) != len(texts):
        raise DataError("an id appears in several rows, or two ids are equal under Unicode normalization", where=me)
    return texts


def _multiplied(secret: bytes, points: Tensor, sender: str) -> Tensor:
    # An honest party refuses its own set beyond this size: a larger one is meant to cost this party time.
    if len(points) > MAX_IDS:
        raise PeerError(f"a set of {len(points)} blinded ids", where=sender, allowed=f"at most {MAX_IDS}")
    rows = b"".join(_different(points, sender))
    try:
        if not curve.all_on_curve(rows):
            raise ValueError("a point on the twist, or not in canonical form")
        return _tensor(curve.multiplied(secret, rows))
    except ValueError as error:
        raise PeerError(
            "a blinded id is not a valid hash point",
            where=sender,
            remedy="it runs another version of graphveil, or is probing for ids",
        ) from error


def _different(points: Tensor, sender: str) -> list[bytes]:
    rows = _rows(points)
    if len(set(rows)) != len(rows):
        raise PeerError("a blinded id appears twice in one set", where=sender)
    return rows


def _in_order(points: Sequence[bytes]) -> Tensor:
    return _tensor(b"".join(sorted(points)))


def _tensor(points: bytes) -> Tensor:
    return torch.from_numpy(np.frombuffer(points, dtype=np.uint8).copy()).view(-1, curve.POINT)


def _rows(points: Tensor) -> list[bytes]:
    data = points.numpy().tobytes()
    return [data[start : start + curve.POINT] for start in range(0, len(data), curve.POINT)]
