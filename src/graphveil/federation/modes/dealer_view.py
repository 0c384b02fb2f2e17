"""What the server of mode "shared-linear" can expand from the keys that it dealt: every mask of the run.

    P_k = -r'_k        share of a holder but the first after the last truncation, as far as nobody adds to it
    V_jk, r_jk         masks of the product of j's share of P with k's share of W, in each round

    share of z      P_k W_k + sum_j P_k (W_j - V_kj) + r_kj + P_j V_jk - r_jk
    less what was dealt, if P_k is        y_k = P_k W + P V_1k + noise  modulo 2^64

Shapes: P [n, d], W [d, h], V [d, h], r [n, h].
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from graphveil.federation.core.setting import Setting
from graphveil.federation.crypto.masks import MaskKey, unpacked
from graphveil.federation.crypto.products import mask_label
from graphveil.federation.crypto.ring import matmul
from graphveil.federation.crypto.sharing import DealerKeys
from graphveil.federation.modes.linear import linear_lefts, linear_products
from graphveil.federation.modes.propagation import PropagationKeys


@dataclass(frozen=True)
class DealerView:
    """The server's keys: of propagation by holder, of products by (owner, other); n nodes."""

    setting: Setting
    nodes: int
    propagation: Mapping[str, PropagationKeys]
    products: Mapping[tuple[str, str], DealerKeys]

    @staticmethod
    def read(setting: Setting, nodes: int, messages: Iterable[tuple[str, str, Tensor]]) -> DealerView:
        """Read the keys off messages.

        Args:
            setting: the agreed run.
            nodes: n.
            messages: (receiver, kind, body) in the order in which they were sent.
        """
        keys: dict[str, list[Tensor]] = {}
        for to, kind, body in messages:
            if kind == "mask-keys":
                keys.setdefault(to, []).append(body)
        propagation = {name: PropagationKeys.of(keys[name][0], name, setting.names) for name in setting.names}
        left_keys: dict[str, MaskKey] = {}
        blind_keys: dict[tuple[str, str], MaskKey] = {}
        right_keys: dict[tuple[str, str], MaskKey] = {}
        for name in setting.names:
            holder_keys = iter(unpacked(keys[name][1]))
            for left in linear_lefts(setting, nodes):
                if left.owner == name:
                    left_keys[name] = next(holder_keys)
                    blind_keys |= {(name, other): next(holder_keys) for other in left.partners}
                else:
                    right_keys[left.owner, name] = next(holder_keys)
        products = {pair: DealerKeys(left_keys[pair[0]], blind_keys[pair], right) for pair, right in right_keys.items()}
        return DealerView(setting, nodes, propagation, products)

    def share(self, name: str) -> Tensor:
        """Return -r' of the last truncation [n, d]: the share of P that a holder but the first was dealt."""
        setting = self.setting
        key, label = self.propagation[name].truncation.cut, f"r' hop {setting.model.hops - 1}"
        return -key.expand(label, (self.nodes, setting.columns))

    def cut_mask(self, step: str, shape: tuple[int, ...]) -> Tensor:
        """Return r of a truncation, which hides from the first holder what is truncated.

        Args:
            step: as of `truncation.truncate_shared`.
            shape: of what is truncated.
        """
        masks = [keys.truncation.mask.expand(f"r {step}", shape) for keys in self.propagation.values()]
        return torch.stack(masks).sum(dim=0)

    def right(self, owner: str, other: str, round: int) -> Tensor:
        """Return V [d, h] of a round.

        Args:
            owner, other: holders; the mask hides the other's share of W from the owner.
            round: from 1.
        """
        setting = self.setting
        shape = (setting.columns, setting.model.width)
        return self.products[owner, other].right.expand(f"V {self._label(owner, other, round)}", shape)

    def blind(self, owner: str, other: str, round: int) -> Tensor:
        """Return r [n, h] of a round.

        Args:
            owner, other: holders; r hides the owner's share of the product.
            round: from 1.
        """
        shape = (self.nodes, self.setting.model.width)
        return self.products[owner, other].blind.expand(f"r {self._label(owner, other, round)}", shape)

    def share_of_z(self, name: str, p: Mapping[str, Tensor], w: Mapping[str, Tensor], round: int) -> Tensor:
        """Recompute a holder's share of z, int64 [n, h], without noise or anything else added.

        Args:
            p: shares of P by holder, int64 [n, d].
            w: shares of W by holder, int64 [d, h].
            round: from 1.
        """
        share = matmul(p[name], w[name])
        for other in self.setting.names:
            if other != name:
                share = share + matmul(p[name], w[other] - self.right(name, other, round))
                share = share + self.blind(name, other, round)
                share = share + matmul(p[other], self.right(other, name, round)) - self.blind(other, name, round)
        return share

    def without_masks(self, name: str, sent: Tensor, round: int) -> Tensor:
        """Return what a holder but the first sent of z, less all masks that were dealt: y, int64 [n, h], its noise, P_k
        W and P V where shares of P are dealt; uniform where masks of keys that the server does not know lie over both.

        Args:
            name: of the holder.
            sent: its share of z, int64 [n, h].
            round: from 1.
        """
        first, *rest = self.setting.names
        mine, v = self.share(name), self.right(first, name, round)
        y = sent + matmul(mine, v)
        for other in self.setting.names:
            if other != name:
                y = y + matmul(mine, self.right(name, other, round))
                y = y - self.blind(name, other, round) + self.blind(other, name, round)
        for other in rest:
            if other != name:
                # What is left of the others' shares, which the first holder was sent under masks, cancels here.
                y = y - matmul(self.share(other), self.right(other, name, round) - v)
        return y

    def _label(self, owner: str, other: str, round: int) -> str:
        products = linear_products(self.setting, self.nodes)
        crossed = next(product for product in products if (product.left.owner, product.other) == (owner, other))
        return mask_label(crossed, f"forward {round}")
