"""Points of Curve25519, v^2 = u^3 + 486662 u^2 + u, by their u alone: hashes of texts, secret multiples, and a check.

    hash   SHA-512 expands tag and text to two numbers; Elligator 2 maps each to a point; u of eight times their sum
    check  u^3 + 486662 u^2 + u is a square modulo 2^255 - 19, u is below that and no point of small order

A hash to a bare u-coordinate would not do: half of all u lie on the curve and half on its twist, and a multiple stays
on the side of its u, so that one bit of every text would survive every secret.  After Elligator 2 all lie on the curve.
Clamped secrets are multiples of 8: a point's component of order 2, 4 or 8 is gone after the first multiplication.

Secrets go only through OpenSSL's ladder, in constant time.  Hashing branches on its input, at the party that holds it;
other parties see only when a whole set leaves, which shows the number of texts, and that is revealed anyway.
Hashing a text costs about 1.6 times as much as multiplying a point, checking a point 0.4 times.

Source: RFC 9380, suite curve25519_XMD:SHA-512_ELL2_RO_; Bernstein, Hamburg, Krasnova, Lange, CCS 2013; RFC 7748.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from itertools import chain

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey

from graphveil.federation.crypto.field import PRIME, inverses, powers

POINT = 32
TAG = b"graphveil-psi-V02-with-curve25519_XMD:SHA-512_ELL2_RO_"
_A = 486662
_ROOT = pow(2, (PRIME - 1) // 4, PRIME)  # of -1
_BLOCK = 128  # bytes of SHA-512's block
_WIDE = 48  # bytes that become one number of the field: far enough above its size to be uniform
_AT_ONCE = 4096


def hashed(texts: Sequence[bytes], *, tag: bytes = TAG) -> bytes:
    """Return a point of the curve for every text, 32 bytes each, as if drawn at random from those of prime order.

    Args:
        tag: what the hash is for; other tags give unrelated points.
    """
    parts = (texts[first : first + _AT_ONCE] for first in range(0, len(texts), _AT_ONCE))
    return b"".join(u.to_bytes(POINT, "little") for part in parts for u in _hashed(part, tag))


def multiplied(secret: bytes, points: bytes) -> bytes:
    """Return every point times the secret, clamped as X25519 does, 32 bytes each.

    Args:
        secret: 32 bytes. points: u-coordinates, 32 bytes each.

    Raises:
        ValueError: a point of small order, which no hash of a text is.
    """
    key = X25519PrivateKey.from_private_bytes(secret)
    return b"".join(key.exchange(X25519PublicKey.from_public_bytes(row)) for row in _rows(points))


def all_on_curve(points: bytes) -> bool:
    """Whether every point is on the curve, not its twist, and its u below 2^255 - 19; the order is not looked at."""
    rows = _rows(points)
    return all(_on_curve(rows[first : first + _AT_ONCE]) for first in range(0, len(rows), _AT_ONCE))


def _rows(points: bytes) -> list[bytes]:
    return [points[start : start + POINT] for start in range(0, len(points), POINT)]


def _on_curve(rows: Sequence[bytes]) -> bool:
    numbers = [int.from_bytes(row, "little") for row in rows]
    in_range = all(u < PRIME for u in numbers)
    # Euler's criterion: 1 for a square, 0 for u = 0. A point of the twist stays on the twist under every secret, and
    # so would mark its row until the end.
    return in_range and all(symbol <= 1 for symbol in powers([_height(u % PRIME) for u in numbers], (PRIME - 1) // 2))


def _height(u: int) -> int:
    """Return v^2."""
    return u * (u * (u + _A) + 1) % PRIME


def _hashed(texts: Sequence[bytes], tag: bytes) -> list[int]:
    pairs = [_numbers_of(text, tag) for text in texts]
    mapped = _mapped(list(chain.from_iterable(pairs)))
    tops, bottoms = [], []
    # The sum of two points by the addition law of a Montgomery curve, as a fraction; then times 8, which clears the
    # cofactor (RFC 9380, section 7). One inversion serves all points.
    for (u1, v1), (u2, v2) in zip(mapped[::2], mapped[1::2], strict=True):
        bottom = (u2 - u1) ** 2 % PRIME  # 0 for one pair in 2^254
        top = ((v2 - v1) ** 2 - (_A + u1 + u2) * bottom) % PRIME
        for _ in range(3):
            top, bottom = _doubled(top, bottom)
        tops.append(top)
        bottoms.append(bottom)
    return [top * inverse % PRIME for top, inverse in zip(tops, inverses(bottoms), strict=True)]


def _doubled(top: int, bottom: int) -> tuple[int, int]:
    """Return u of twice a point, as a fraction."""
    a, b, ab = top * top % PRIME, bottom * bottom % PRIME, top * bottom % PRIME
    return (a - b) ** 2 % PRIME, 4 * ab * (a + _A * ab + b) % PRIME


def _mapped(numbers: Sequence[int]) -> list[tuple[int, int]]:
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
        # The sign of v is RFC 9380's: other signs would give another point, and holders of another version no common
        # id.
        v = root if root % 2 == on_curve else -root % PRIME
        points.append((u if on_curve else (-_A - u) % PRIME, v))
    return points


def _numbers_of(text: bytes, tag: bytes) -> tuple[int, int]:
    """Return two numbers of the field: 96 bytes of `expand_message_xmd`, halved."""
    # RFC 9380, section 5.3.1; its SHA-512 blocks are named b_0, b_1, b_2 there.
    ending = tag + bytes([len(tag)])
    seed = hashlib.sha512(bytes(_BLOCK) + text + (2 * _WIDE).to_bytes(2, "big") + b"\0" + ending).digest()
    first = hashlib.sha512(seed + b"\1" + ending).digest()
    second = hashlib.sha512(bytes(a ^ b for a, b in zip(seed, first, strict=True)) + b"\2" + ending).digest()
    wide = (first + second)[: 2 * _WIDE]
    return int.from_bytes(wide[:_WIDE], "big") % PRIME, int.from_bytes(wide[_WIDE:], "big") % PRIME
