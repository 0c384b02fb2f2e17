"""Private set intersection of node ids among 2 to 5 holders, by commuting secret multiples of hashed ids on a curve.

    point(id) = RFC 9380's hash of the id to Curve25519             [k] point    the scalar multiple by the secret k
    every holder's points go round all others, each multiplies by its own secret:   [k_1 k_2 ... k_I] point(id)
    an id that all have gives the same point at all; rows are put in the order of those points

A holder sends its points in random order, and its finished set sorted: the position of an id in its files is not shown.
Nobody sees another holder's ids, or can test a guess without all secrets.  Every holder learns how many ids each holder
has, how many any of them share, and which of its own ids each other holder has too.  Semi-honest; points that are no
hash, or that come twice, are refused all the same, as is a finished set other than the one sent home.

Points of v^2 = u^3 + 486662 u^2 + u are known by their u:

    hash   SHA-512 expands tag and text to two numbers; Elligator 2 maps each to a point; u of eight times their sum
    check  u^3 + 486662 u^2 + u is a square modulo 2^255 - 19, u is below that and no point of small order

A hash to a bare u-coordinate would not do: half of all u lie on the curve and half on its twist, and a multiple stays
on the side of its u, so that one bit of every text would survive every secret.  Clamped secrets are multiples of 8: a
component of order 2, 4 or 8 is gone after the first.  Secrets go only through OpenSSL's ladder, in constant time;
hashing branches on its input, at the party that holds it, and others see only when a whole set leaves.

Ids are texts: two that are canonically equivalent in Unicode (composed and decomposed accents) count as one.  What else
counts as equal, such as capitals and spaces, the agreement says (`core.id_forms`).
A million ids take minutes: finished blocks of points go to a memory, which a caller may keep on disk.  Started again
with it and the same ids, a holder takes the same secret and order, sends the same blinded set and computes only what
is missing.  Other ids, or another memory, get another secret.
SPU's RR22 is far cheaper, and is no extra here: the only release beside NumPy 2 is a pre-release that pins JAX; it
takes two parties, opens sockets that no transcript sees, and writes ids in the clear to temporary files.
Source: Meadows, IEEE S&P 1986; Huberman, Franklin, Hogg, EC 1999; RFC 9380, suite curve25519_XMD:SHA-512_ELL2_RO_;
Bernstein, Hamburg, Krasnova, Lange, CCS 2013; RFC 7748.
"""

from __future__ import annotations

import hashlib
import unicodedata
from collections.abc import MutableMapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TypeAlias

import numpy as np
import torch
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from numpy.typing import NDArray
from torch import Tensor

from graphveil.errors import DataError, InputError
from graphveil.federation.crypto.field import PRIME, inverses, powers
from graphveil.federation.crypto.masks import as_message
from graphveil.federation.effects import PeerError, Program, Receive, Roster, Send
from graphveil.privacy import Randomness
from graphveil.runtime.progress import Progress, ProgressCallback

#: Points, 32 bytes each, uint8 [n, 32].
Points: TypeAlias = NDArray[np.uint8]
#: What an alignment has finished, by name.
Memory: TypeAlias = MutableMapping[str, Tensor]
MAX_IDS = 1_000_000
#: How many points are computed and remembered together: some seconds of work.
POINTS_A_BLOCK = 1 << 15
STAGE = "align"
POINT = 32
TAG = b"graphveil-psi-V02-with-curve25519_XMD:SHA-512_ELL2_RO_"
_A = 486662  # of the curve
_ROOT = pow(2, (PRIME - 1) // 4, PRIME)  # of -1
_SHA512_BLOCK = 128  # bytes
_NUMBER_BYTES = 48  # bytes that become one number of the field: far enough above its size to be uniform
_AT_ONCE = 4096  # texts or points that are computed together


def hash_to_curve(texts: Sequence[bytes], *, tag: bytes = TAG) -> bytes:
    """Return a point of the curve for every text, 32 bytes each, as if drawn at random from those of prime order.

    Args:
        tag: what the hash is for; other tags give unrelated points.
    """
    parts = (texts[first : first + _AT_ONCE] for first in range(0, len(texts), _AT_ONCE))
    return b"".join(u.to_bytes(POINT, "little") for part in parts for u in _hash_to_curve(part, tag))


def multiply_points(secret: bytes, points: bytes) -> bytes:
    """Return every point times the secret, clamped as X25519 does; ValueError for one of small order.

    Args:
        secret: 32 bytes.
        points: u-coordinates, 32 bytes each.
    """
    key = X25519PrivateKey.from_private_bytes(secret)
    return b"".join(key.exchange(X25519PublicKey.from_public_bytes(row)) for row in _split(points))


def all_on_curve(points: bytes) -> bool:
    """Return whether every point is on the curve, not its twist, and its u below 2^255 - 19; any order will do."""
    rows = _split(points)
    for first in range(0, len(rows), _AT_ONCE):
        numbers = [int.from_bytes(row, "little") for row in rows[first : first + _AT_ONCE]]
        if any(u >= PRIME for u in numbers):
            return False
        # Euler's criterion: 1 for a square, 0 for u = 0. A point of the twist would mark its row under every secret.
        if any(symbol > 1 for symbol in powers([_height(u) for u in numbers], (PRIME - 1) // 2)):
            return False
    return True


def _split(points: bytes) -> list[bytes]:
    return [points[start : start + POINT] for start in range(0, len(points), POINT)]


def _height(u: int) -> int:
    """Return v^2."""
    return u * (u * (u + _A) + 1) % PRIME


def _hash_to_curve(texts: Sequence[bytes], tag: bytes) -> list[int]:
    pairs = [_hash_to_field(text, tag) for text in texts]
    mapped = _map_to_curve(list(chain.from_iterable(pairs)))
    tops, bottoms = [], []
    # The sum by the addition law of a Montgomery curve, then times 8, which clears the cofactor (RFC 9380, section 7).
    for (u1, v1), (u2, v2) in zip(mapped[::2], mapped[1::2], strict=True):
        bottom = (u2 - u1) ** 2 % PRIME  # 0 for one pair in 2^254
        top = ((v2 - v1) ** 2 - (_A + u1 + u2) * bottom) % PRIME
        for _ in range(3):
            a, b, ab = top * top % PRIME, bottom * bottom % PRIME, top * bottom % PRIME
            top, bottom = (a - b) ** 2 % PRIME, 4 * ab * (a + _A * ab + b) % PRIME
        tops.append(top)
        bottoms.append(bottom)
    return [top * inverse % PRIME for top, inverse in zip(tops, inverses(bottoms), strict=True)]


def _map_to_curve(numbers: Sequence[int]) -> list[tuple[int, int]]:
    """Return Elligator 2's point (u, v) of every number r: u = -A / (1 + 2 r^2) or -A - u, whichever is on the curve.
    With w = v^2 at the first u and t = w^((p - 5) / 8), w t^2 is one of the four roots of 1: where it is 1 or -1 the
    first u is on the curve, and v is w t times a root of it; else v of the second is r w t times a root of +-2i.
    """
    first = [-_A * inverse % PRIME for inverse in inverses([(1 + 2 * r * r) % PRIME for r in numbers])]
    heights = [_height(u) for u in first]
    points = []
    for r, u, w, t in zip(numbers, first, heights, powers(heights, (PRIME - 5) // 8), strict=True):
        root, character = w * t % PRIME, w * t * t % PRIME
        on_curve = character in (1, PRIME - 1)
        if character == PRIME - 1:
            root = root * _ROOT % PRIME
        elif not on_curve:
            root = root * r * (1 - _ROOT if character == _ROOT else 1 + _ROOT) % PRIME
        # The sign of v is RFC 9380's: with other signs holders of another version would have no common id.
        v = root if root % 2 == on_curve else -root % PRIME
        points.append((u if on_curve else (-_A - u) % PRIME, v))
    return points


def _hash_to_field(text: bytes, tag: bytes) -> tuple[int, int]:
    """Return two numbers of the field: 96 bytes of `expand_message_xmd`, halved."""
    # RFC 9380, section 5.3.1; its SHA-512 blocks are named b_0, b_1, b_2 there.
    ending = tag + bytes([len(tag)])
    seed = hashlib.sha512(
        bytes(_SHA512_BLOCK) + text + (2 * _NUMBER_BYTES).to_bytes(2, "big") + b"\0" + ending
    ).digest()
    first = hashlib.sha512(seed + b"\1" + ending).digest()
    second = hashlib.sha512(bytes(a ^ b for a, b in zip(seed, first, strict=True)) + b"\2" + ending).digest()
    wide = (first + second)[: 2 * _NUMBER_BYTES]
    return int.from_bytes(wide[:_NUMBER_BYTES], "big") % PRIME, int.from_bytes(wide[_NUMBER_BYTES:], "big") % PRIME


def alignment_bytes(holders: int, ids: int) -> tuple[int, int]:
    """Return the bytes of an alignment: of all parties together, and of the busiest direction of a link.

    Args:
        holders: I.
        ids: of each holder.
    """
    # To the next holder: I laps and the finished set; to each other holder the finished set alone.
    busiest = (holders + 1) * POINT * ids
    return holders * (busiest + (holders - 2) * POINT * ids), busiest


def alignment_trips(holders: int) -> int:
    """Return how many messages of an alignment wait for each other."""
    return holders + 1


def align(
    roster: Roster,
    ids: Sequence[str],
    *,
    randomness: Randomness,
    memory: Memory | None = None,
    progress: ProgressCallback = lambda step: None,
) -> Program[Tensor]:
    """Intersect the holders' ids; return the rows of this holder's nodes that all have, in one order, int64 [n].

    Args:
        roster: all holders; blinded ids go round in their order.
        ids: of this holder's rows, as text.
        randomness: of the secret and of the order in which points are sent.
        memory: finished blocks and the secret, of this agreement alone; None forgets them.
        progress: called after each block, in points of all laps, where other holders have as many ids.

    Raises:
        DataError: for an id twice, no ids, or none in common.
        InputError: for too many ids.
        PeerError: for what no honest holder sends.
    """
    texts = _texts(roster.me, ids)
    me, names = roster.me, roster.holders
    position, count = names.index(me), len(names)
    after, before = names[(position + 1) % count], names[position - 1]
    blinding, order = _start(texts, randomness, {} if memory is None else memory, progress, count * len(texts))
    passing = blinding.own([texts[row] for row in order])
    del texts  # a million of them outweigh all points
    for _ in range(count - 1):  # every set passes through all holders and returns to its own
        yield Send(after, "blinded-ids", torch.from_numpy(passing))
        received = yield Receive(before, "blinded-ids", (-1, POINT))
        passing = blinding.of_peer(_points(received), before)
    # The last lap returns each set: what leaves is the next holder's own, multiplied by all secrets.
    yield Send(after, "blinded-ids", torch.from_numpy(passing))
    own = _points((yield Receive(before, "blinded-ids", (len(ids), POINT))))
    rank = _distinct_order(own, before)
    finished = own[rank]
    for name in roster.other_holders:
        yield Send(name, "blinded-set", torch.from_numpy(finished))
    # Sorted sets say nothing of anybody's order; only membership is compared.
    common = np.ones(len(ids), dtype=bool)
    for name in roster.other_holders:
        other_set = _points((yield Receive(name, "blinded-set", (-1, POINT))))
        # This holder was the last to multiply the next holder's set, and so knows what that holder must publish.
        if name == after and not np.array_equal(other_set, passing[_distinct_order(passing, name)]):
            raise PeerError("it returned other blinded ids than it was sent", where=name)
        common &= _which_are_in(finished, other_set, name)
    if not common.any():
        raise DataError("the holders share no node id", where=me, remedy="check that all write ids the same way")
    # Sorted by points, which no holder chose: the common order tells nothing of anybody's files.
    return torch.from_numpy(order[rank[common]])


@dataclass
class _Blinding:
    """Multiplies points by a holder's secret, block by block; blocks in `memory` are not computed again.

    Attributes:
        total, done: how many points there are to compute, for progress, and how many are finished.
    """

    secret: bytes
    memory: Memory
    progress: ProgressCallback
    total: int
    done: int = 0

    def own(self, texts: Sequence[bytes]) -> Points:
        """Return this holder's own points, blinded, in the order of the texts."""
        parts = []
        for first in range(0, len(texts), POINTS_A_BLOCK):
            name = f"own-{POINTS_A_BLOCK}-{first}"
            if name not in self.memory:
                self._keep(name, multiply_points(self.secret, hash_to_curve(texts[first : first + POINTS_A_BLOCK])))
            parts.append(self._block(name))
        return np.concatenate(parts)

    def of_peer(self, points: Points, sender: str) -> Points:
        """Return a set that another holder sent, multiplied by the secret."""
        # An honest party refuses its own set beyond this size: a larger one is meant to cost this party time.
        if len(points) > MAX_IDS:
            raise PeerError(f"a set of {len(points)} blinded ids", where=sender, allowed=f"at most {MAX_IDS}")
        _distinct_order(points, sender)
        parts = [np.empty((0, POINT), dtype=np.uint8)]
        for first in range(0, len(points), POINTS_A_BLOCK):
            block = points[first : first + POINTS_A_BLOCK].tobytes()
            # Named by its content: a holder that has lost its own memory sends another set, which is computed anew.
            name = hashlib.sha256(block).hexdigest()
            if name not in self.memory:
                self._keep(name, _of_peer(self.secret, block, sender))
            parts.append(self._block(name))
        return np.concatenate(parts)

    def _keep(self, name: str, points: bytes) -> None:
        self.memory[name] = as_message(points).view(-1, POINT)

    def _block(self, name: str) -> Points:
        block: Points = self.memory[name].numpy()
        self.done += len(block)
        self.progress(Progress(self.done, self.total, STAGE))
        return block


def _start(
    texts: Sequence[bytes], randomness: Randomness, memory: Memory, progress: ProgressCallback, total: int
) -> tuple[_Blinding, NDArray[np.int64]]:
    """Return the secret and the order in which points are sent; those in the memory, if it began with the same ids."""
    hasher = hashlib.sha256(TAG)
    for text in texts:
        hasher.update(hashlib.sha256(text).digest())
    digest = hasher.digest()
    start = memory.get("start")
    if start is None or start[POINT:].numpy().tobytes() != digest:
        memory.clear()
        # New in every agreement and for other ids: with an old secret, points of two runs could be compared and ids
        # followed from one to the next.
        start = as_message(randomness.bytes(POINT) + digest)
        # A random order: the position of an id in the files is not shown.
        memory["order"] = torch.from_numpy(np.argsort(randomness.uint64(len(texts)), kind="stable"))
        memory["start"] = start
    secret = start[:POINT].numpy().tobytes()
    return _Blinding(secret, memory, progress, total), memory["order"].numpy()


def _texts(me: str, ids: Sequence[str]) -> list[bytes]:
    if not ids:
        raise DataError("has no rows", where=me)
    if len(ids) > MAX_IDS:
        raise InputError(f"{len(ids)} ids", where=me, allowed=f"at most {MAX_IDS}")
    texts = [unicodedata.normalize("NFC", text).encode("utf-8", "surrogatepass") for text in ids]
    # An id in two rows has no single position in the common order, and other holders refuse a set with equal points.
    if len(set(texts)) != len(texts):
        raise DataError("an id appears in several rows, or two ids are equal under Unicode normalization", where=me)
    return texts


def _of_peer(secret: bytes, points: bytes, sender: str) -> bytes:
    try:
        if not all_on_curve(points):
            raise ValueError("a point on the twist, or not in canonical form")
        return multiply_points(secret, points)
    except ValueError as error:
        remedy = "it runs another version of graphveil, or is probing for ids"
        raise PeerError("a blinded id is not a valid hash point", where=sender, remedy=remedy) from error


def _distinct_order(points: Points, sender: str) -> NDArray[np.intp]:
    """Return the order of points by their bytes; refuse a set in which one comes twice."""
    rank, equal = _order(points)
    if equal.any():
        raise PeerError("a blinded id appears twice in one set", where=sender)
    return rank


def _order(points: Points) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
    """Return the stable order of points by their bytes, and in it whether each but the last equals the next."""
    # By words, a column at a time: rows of a million points in another order would take their memory again.
    words = np.ascontiguousarray(points).view(">u8").T
    rank = np.lexsort(words[::-1])
    equal = np.ones(max(len(rank) - 1, 0), dtype=bool)
    for column in words:
        ordered = column[rank]
        equal &= ordered[1:] == ordered[:-1]
    return rank, equal


def _which_are_in(own: Points, other: Points, sender: str) -> NDArray[np.bool_]:
    """Return which of this holder's points another holder has too."""
    _distinct_order(other, sender)
    rank, equal = _order(np.concatenate([own, other]))
    common = np.zeros(len(rank), dtype=bool)
    common[rank[:-1][equal]] = True  # of two equal points this holder's comes first
    return common[: len(own)]


def _points(message: Tensor) -> Points:
    points: Points = message.numpy()
    return points
