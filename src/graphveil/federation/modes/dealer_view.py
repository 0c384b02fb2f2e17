"""What the server of mode "shared-linear" can expand from the keys that it dealt: one a holder, for all masks of a run.

    V_k of walks, U_k of P_o, V'_k of W_0, U'_k of G, "weights of X"       of what holders exchange
    r_k and r'_k of truncations, of all holders but the first               a_k of A, of all holders but the second

    share of z at k         Z_k + E_G a_k + mask of zero sum + noise     E_G = G - U';  a_2 = A - sum of all other a_k
    without the mask        moved by E_G a_k from the first round on: for known a_k, linear in unknown words E_G

Shapes: P_o [m, d], W_0 [d, h], G [m, t], Z_k [m, h], A [t, h].
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import torch
from torch import Tensor

from graphveil.federation.core.rows import Rows
from graphveil.federation.core.setting import Setting
from graphveil.federation.crypto import ring
from graphveil.federation.crypto.masks import MaskKey, unpacked


@dataclass(frozen=True)
class DealerView:
    """The key of each holder, and the rows that were announced."""

    setting: Setting
    rows: Rows
    keys: Mapping[str, MaskKey] = field(repr=False)

    @staticmethod
    def read(setting: Setting, nodes: int, messages: Iterable[tuple[str, str, Tensor]]) -> DealerView:
        """Read keys and rows off messages; of several sessions, those of the last.

        Args:
            messages: (receiver, kind, body) in the order in which they were sent.
        """
        keys, rows = {}, {}
        for to, kind, body in messages:
            if kind == "mask-keys":
                keys[to] = unpacked(body)[0]
            elif kind in ("labelled-rows", "validation-rows"):
                rows[kind] = body
        return DealerView(setting, Rows(nodes, rows["labelled-rows"], rows["validation-rows"]), keys)

    @property
    def sizes(self) -> dict[str, tuple[int, int]]:
        """The shape of each mask that is dealt for what holders exchange once, by label."""
        d, h = self.setting.columns, self.setting.model.width
        m, t = len(self.rows.some), len(self.rows.train)
        return {"P": (m, d), "W": (d, h), "G": (m, t), "weights of X": (d, h)}

    def mask(self, name: str, label: str) -> Tensor:
        """Return a holder's mask, int64.

        Args:
            label: one of `sizes`.
        """
        return self.keys[name].expand(label, self.sizes[label])

    def summed(self, label: str) -> Tensor:
        """Return the sum of all holders' masks: U of P_o for "P", V of W_0 for "W", U' of G for "G", int64."""
        return torch.stack([self.mask(name, label) for name in self.setting.names]).sum(dim=0)

    def share_of_a(self, name: str, round: int) -> Tensor:
        """Return a_k, the share that a holder but the second expands of the A that is made in a round, int64 [t, h].

        Args:
            round: from 1.
        """
        return self.keys[name].expand(f"A {round}", (len(self.rows.train), self.setting.model.width))

    def share_of_z(self, z: Tensor, gram: Mapping[str, Tensor], a: Tensor) -> Tensor:
        """Recompute a holder's share of z, int64 [m, h], without noise or anything else added.

        Args:
            z: its share of Z_0, int64 [m, h].
            gram: shares of G by holder, int64 [m, t].
            a: its share of A, int64 [t, h].
        """
        return z + ring.matmul(torch.stack(list(gram.values())).sum(dim=0) - self.summed("G"), a)

    @property
    def part(self) -> Tensor:
        """U V, the server's part of Z_0, int64 [m, h]."""
        return ring.matmul(self.summed("P"), self.summed("W"))
