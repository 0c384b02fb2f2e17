"""Truncation of shares of any number of holders, with a mask that the dealer knows and what it hides nobody.

    dealer           r = sum_k r_k uniform,   r' = r >> s = sum_k r'_k
    holder k         c_k = x_k + r_k  -> first holder:   c = sum_k c_k = x + r mod 2^64, uniform
    first holder     x'_1 = (c >> s) - r'_1              others  x'_k = -r'_k          sum x'_k = (x >> s) + {0, 1}

Wrong by 2^(64 - s) where x + r leaves the ring's half, with probability |x| 2^-63 an element.  The masks come from
keys; the dealer sends r'_1 alone.  Source: Escudero, Ghosh, Keller, Rachuri, Scholl, CRYPTO 2020, section 5
(probabilistic truncation), with a dealer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from graphveil.federation.masks import MaskKey
from graphveil.federation.messages import Receive, Send
from graphveil.federation.products import Talk
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


def deal_cut(keys: Mapping[str, CutKeys], shape: tuple[int, ...], bits: int, step: str) -> Talk:
    """The dealer's part: send the first holder its part of r'."""
    first, *others = keys
    r = torch.stack([key.mask.expand(f"r {step}", shape) for key in keys.values()]).sum(dim=0)
    rest = torch.stack([keys[name].cut.expand(f"r' {step}", shape) for name in others]).sum(dim=0)
    yield Send(first, "correction", (r >> bits) - rest)


def cut(me: str, names: Sequence[str], server: str, share: Tensor, keys: CutKeys, bits: int, step: str) -> Talk:
    """Return this holder's share of x >> bits, to within 1, from its share of x; `step` is never used again."""
    first, *others = names
    shape = tuple(share.shape)
    masked = share + keys.mask.expand(f"r {step}", shape)
    if me != first:
        yield Send(first, "masked-sum", masked)
        return -keys.cut.expand(f"r' {step}", shape)
    for name in others:
        masked = masked + (yield Receive(name, "masked-sum", shape))
    correction: Tensor = yield Receive(server, "correction", shape)
    return (masked >> bits) - correction
