"""Truncation of shares of any number of holders, with a mask that the dealer knows and a masked value that it does not.

    dealer           r = sum_k r_k uniform,   r' = r >> s = sum_k r'_k
    holder k         c_k = x_k + r_k  -> first holder:   c = sum_k c_k = x + r mod 2^64, uniform
    first holder     b = [ -2^63 + B <= c < 2^63 - B ]  -> others, a bit an element;   B >= |x| is public
                     b ((c >> s) - r'_1) + m_1           others  -b r'_k + m_k         sum  b ((x >> s) + {0, 1})

x + r can leave the ring's half only where b = 0; there the result is 0 instead of a value that is off by 2^(64 - s),
with chance B 2^-63 an element, and so no result is ever longer than x implies.  c is uniform to every holder, and b
follows from it.  The masks r and r' come from keys; the dealer sends only r'_1, and the m_k add up to zero (see
`masks`): without them the share of every holder but the first would be a number that the dealer drew.
Source: Escudero, Ghosh, Keller, Rachuri, Scholl, CRYPTO 2020, section 5 (probabilistic truncation), with a dealer.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from graphveil.federation.crypto.masks import MaskKey, ZeroSum
from graphveil.federation.effects import Program, Receive, Send
from graphveil.privacy import Randomness


@dataclass(frozen=True)
class TruncationKeys:
    """A holder's keys: of its part of r, and of its part of r' (which the first holder is sent instead)."""

    mask: MaskKey
    cut: MaskKey

    @staticmethod
    def fresh(randomness: Randomness) -> TruncationKeys:
        return TruncationKeys(MaskKey.fresh(randomness), MaskKey.fresh(randomness))


@dataclass(frozen=True)
class Scale:
    """Fixed point as two public numbers: s, the bits that are cut off, and B, above every |x| before truncation."""

    bits: int
    reach: int


def deal_truncation(keys: Mapping[str, TruncationKeys], shape: tuple[int, ...], bits: int, step: str) -> Program[None]:
    """The dealer's part: send the first holder its part of r'.

    Args:
        keys: of every holder, in the agreement's order.
        shape: of what is truncated.
        bits: s, how many are cut off.
        step: names this truncation; never used again in a run.
    """
    first, *other_holders = keys
    r = torch.stack([key.mask.expand(f"r {step}", shape) for key in keys.values()]).sum(dim=0)
    # The first holder's part is the remainder, so it is sent; the other holders expand theirs from keys.
    rest = torch.stack([keys[name].cut.expand(f"r' {step}", shape) for name in other_holders]).sum(dim=0)
    yield Send(first, "correction", (r >> bits) - rest)


def truncate_shared(zero: ZeroSum, share: Tensor, keys: TruncationKeys, scale: Scale, step: str) -> Program[Tensor]:
    """Return this holder's share of x >> s, to within 1, or of 0 where x + r left the ring's half.

    Args:
        zero: this holder's masks that add up to zero.
        share: of x, int64 of any shape; |x| < `scale.reach`.
        keys: this holder's, of its parts of r and r'.
        scale: how many bits are cut off.
        step: names this truncation; never used again in a run.
    """
    first, *other_holders = zero.roster.holders
    shape = tuple(share.shape)
    # Its own part of r hides the share from the first holder, whatever that one knows of other parts.
    masked = share + keys.mask.expand(f"r {step}", shape)
    if zero.roster.me != first:
        yield Send(first, "masked-sum", masked)
        safe = yield Receive(first, "safe-bits", (-(-share.numel() // 8),))
        # Without the mask of `zero` this share would be a number that the dealer drew.
        mine = -keys.cut.expand(f"r' {step}", shape)
        inside = torch.from_numpy(np.unpackbits(safe.numpy(), count=math.prod(shape))).view(shape).bool()
        return mine * inside + zero.mask(f"cut {step}", shape)
    for name in other_holders:
        masked = masked + (yield Receive(name, "masked-sum", shape))
    # c is x + r modulo 2^64: between these bounds x + r has not wrapped, so c >> s is (x + r) >> s.
    inside = (masked >= scale.reach - (1 << 63)) & (masked < (1 << 63) - scale.reach)
    bits = torch.from_numpy(np.packbits(inside.numpy().ravel()))
    for name in other_holders:
        yield Send(name, "safe-bits", bits)
    correction: Tensor = yield Receive(zero.roster.server, "correction", shape)
    return ((masked >> scale.bits) - correction) * inside + zero.mask(f"cut {step}", shape)
