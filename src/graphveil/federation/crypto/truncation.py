"""Truncation of a number that all holders and the dealer share, with a mask of which nobody knows all of r and x + r.

    x = x_0 + sum_k x_k     x_0 at the dealer, such as its part of a product; x_k at holder k
    holder k but the first  c_k = x_k + r_k                                                     -> first holder
    first holder            c = x_1 + r_1 + sum_k c_k = x + r mod 2^64, uniform;   r = sum_k r_k - x_0
                            b = [ -2^63 + B <= c < 2^63 - B ]  -> others, a bit an element;   B >= |x| is public
                            b ((c >> s) - r'_1) + m_1        others  -b r'_k + m_k       sum  b ((x >> s) + {0, 1})
    dealer                  r' = r >> s = sum_k r'_k,  r'_1 what the others' keys leave         -> first holder

x + r can leave the ring's half only where b = 0; there the result is 0 instead of a value that is off by 2^(64 - s),
with chance B 2^-63 an element, and so no result is ever longer than x implies.  The dealer takes its part of x off the
mask in place of sending it.  c is uniform to every holder, and b follows from it: no holder knows another's r_k, and
the first is sent r'_1 alone, under the others' r'_k.  All r_k, and r'_k but the first's, come from dealt keys; the m_k
add up to zero (see `masks`): without them the share of every holder but the first would be a number that the dealer
drew.
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


@dataclass(frozen=True)
class Scale:
    """Fixed point as two public numbers: s, the bits that are cut off, and B, above every |x| before truncation."""

    bits: int
    reach: int


def deal_truncation(keys: Mapping[str, MaskKey], part: Tensor, bits: int, step: str) -> Program[None]:
    """The dealer's side: send the first holder its part of r'.

    Args:
        keys: of every holder, in the agreement's order.
        part: x_0, int64 of the shape of x.
        bits: s, how many are cut off.
        step: names this truncation; never used again in a run.
    """
    shape = tuple(part.shape)
    first, *other_holders = keys
    r = torch.stack([key.expand(f"r {step}", shape) for key in keys.values()]).sum(dim=0) - part
    rest = torch.stack([keys[name].expand(f"r' {step}", shape) for name in other_holders]).sum(dim=0)
    # The first holder's part is the remainder, so it is sent; the other holders expand theirs from keys.
    yield Send(first, "correction", (r >> bits) - rest)


def truncate_shared(zero: ZeroSum, share: Tensor, key: MaskKey, scale: Scale, step: str) -> Program[Tensor]:
    """Return this holder's share of x >> s, to within 1, or of 0 where x + r left the ring's half.

    Args:
        zero: this holder's masks that add up to zero.
        share: of x, int64 of any shape; |x| < `scale.reach`.
        key: this holder's, dealt by the server.
        scale: how many bits are cut off, and the bound of x.
        step: names this truncation; never used again in a run.
    """
    first, *other_holders = zero.roster.holders
    shape = tuple(share.shape)
    masked = share + key.expand(f"r {step}", shape)
    if zero.roster.me != first:
        yield Send(first, "masked-sum", masked)
        safe = yield Receive(first, "safe-bits", (-(-share.numel() // 8),))
        # Without the mask of `zero` this share would be a number that the dealer drew.
        part = -key.expand(f"r' {step}", shape)
        inside = torch.from_numpy(np.unpackbits(safe.numpy(), count=math.prod(shape))).view(shape).bool()
        return part * inside + zero.mask(f"cut {step}", shape)
    for name in other_holders:
        masked = masked + (yield Receive(name, "masked-sum", shape))
    # c is x + r modulo 2^64: between these bounds x + r has not wrapped, so c >> s is (x + r) >> s.
    inside = (masked >= scale.reach - (1 << 63)) & (masked < (1 << 63) - scale.reach)
    bits = torch.from_numpy(np.packbits(inside.numpy().ravel()))
    for name in other_holders:
        yield Send(name, "safe-bits", bits)
    cut: Tensor = yield Receive(zero.roster.server, "correction", shape)
    return ((masked >> scale.bits) - cut) * inside + zero.mask(f"cut {step}", shape)
