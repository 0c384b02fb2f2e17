"""Truncation of shares of any number of holders, with a mask that the dealer knows and what it hides nobody.

    dealer           r = sum_k r_k uniform,   r' = r >> s = sum_k r'_k
    holder k         c_k = x_k + r_k  -> first holder:   c = sum_k c_k = x + r mod 2^64, uniform
    first holder     b = [ -2^63 + B <= c < 2^63 - B ]  -> others, a bit an element;   B >= |x| is public
                     b ((c >> s) - r'_1) + m_1           others  -b r'_k + m_k         sum  b ((x >> s) + {0, 1})

x + r can leave the ring's half only where b = 0; there the result is 0 in place of one that is off by 2^(64 - s), with
chance B 2^-63 an element, and so no result is ever longer than x says.  c is uniform to every holder, and b follows
from it.  The masks r and r' come from keys; the dealer sends r'_1 alone, and m_k adds up to zero (see `zero_sum`):
without it the share of every holder but the first would be a number that the dealer drew.
Source: Escudero, Ghosh, Keller, Rachuri, Scholl, CRYPTO 2020, section 5 (probabilistic truncation), with a dealer.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from graphveil.federation.core.messages import Receive, Send
from graphveil.federation.crypto.masks import MaskKey
from graphveil.federation.crypto.products import Talk
from graphveil.federation.crypto.zero_sum import ZeroSum
from graphveil.privacy import Randomness


@dataclass(frozen=True)
class CutKeys:
    """A holder's keys: of its part of r, and of its part of r' (which the first holder is sent instead)."""

    mask: MaskKey
    cut: MaskKey

    @staticmethod
    def fresh(randomness: Randomness) -> CutKeys:
        """Return two new keys."""
        return CutKeys(MaskKey.fresh(randomness), MaskKey.fresh(randomness))


@dataclass(frozen=True)
class Scale:
    """Fixed point as two public numbers: s, the bits that are cut, and B, which no |x| reaches before it is cut."""

    bits: int
    reach: int


def deal_cut(keys: Mapping[str, CutKeys], shape: tuple[int, ...], bits: int, step: str) -> Talk:
    """The dealer's part: send the first holder its part of r'."""
    first, *others = keys
    r = torch.stack([key.mask.expand(f"r {step}", shape) for key in keys.values()]).sum(dim=0)
    rest = torch.stack([keys[name].cut.expand(f"r' {step}", shape) for name in others]).sum(dim=0)
    yield Send(first, "correction", (r >> bits) - rest)


def cut(zero: ZeroSum, server: str, share: Tensor, keys: CutKeys, scale: Scale, step: str) -> Talk:
    """Return this holder's share of x >> s, to within 1, from its share of x; `step` is never used again."""
    first, *others = zero.names
    shape = tuple(share.shape)
    masked = share + keys.mask.expand(f"r {step}", shape)
    if zero.me != first:
        yield Send(first, "masked-sum", masked)
        safe = yield Receive(first, "safe-bits", (-(-share.numel() // 8),))
        mine = -keys.cut.expand(f"r' {step}", shape)
        return mine * _unpacked(safe, shape) + zero.mask(f"cut {step}", shape)
    for name in others:
        masked = masked + (yield Receive(name, "masked-sum", shape))
    inside = (masked >= scale.reach - (1 << 63)) & (masked < (1 << 63) - scale.reach)
    for name in others:
        yield Send(name, "safe-bits", _packed(inside))
    correction: Tensor = yield Receive(server, "correction", shape)
    return ((masked >> scale.bits) - correction) * inside + zero.mask(f"cut {step}", shape)


def _packed(inside: Tensor) -> Tensor:
    return torch.from_numpy(np.packbits(inside.numpy().ravel()))


def _unpacked(bits: Tensor, shape: tuple[int, ...]) -> Tensor:
    found = np.unpackbits(bits.numpy(), count=math.prod(shape))
    return torch.from_numpy(found).view(shape).bool()
