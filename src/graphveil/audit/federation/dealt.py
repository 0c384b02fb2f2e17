"""What the server of mode "shared-linear" knows after a run: keys, parts of products, and sums of shares.

    share of z     Z_k + E_G a_k + mask + noise       E_G = G - U' is what holders opened among themselves
    opened         sum of the shares + U V + U' A     of rows that train or validate;  + sum_i S_i^1 V of the rest

Shapes: as of `linear`.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import torch
from torch import Tensor

from graphveil.audit.federation.replay import NODES, Run, small_holdings
from graphveil.federation.core.rows import REST, TRAIN, Rows
from graphveil.federation.core.setting import Setting
from graphveil.federation.crypto import ring
from graphveil.federation.crypto.masks import MaskKey, unpack_keys
from graphveil.federation.effects import Program, Receive, advance
from graphveil.federation.modes.linear import hops_of, last_hops_of
from graphveil.federation.modes.propagation import scaled_rows, serve_walks, transition_matrix


@dataclass(frozen=True)
class Dealt:
    """A session as its server sees it; `parts`: name of a product with the holders' matrices -> the server's part."""

    run: Run
    setting: Setting
    rows: Rows
    keys: Mapping[str, MaskKey] = field(repr=False)
    parts: Mapping[str, Tensor] = field(repr=False)

    @staticmethod
    def read(run: Run, setting: Setting) -> Dealt:
        """Return what the server of a run knows, from the run's messages."""
        keys = {sent.to: unpack_keys(sent.body)[0] for _, _, sent in run.messages if sent.kind == "mask-keys"}
        announced = {sent.kind: sent.body for _, _, sent in run.messages if sent.to == setting.server}
        rows = Rows(NODES, announced["labelled-rows"], announced["validation-rows"])
        walks = [*hops_of(setting, rows), *last_hops_of(setting, rows)]
        serving = serve_walks(setting.names, keys, setting.entries, walks, NODES)
        return Dealt(run, setting, rows, keys, _replay_receiver(serving, run, setting.server))

    def summed(self, label: str, shape: tuple[int, ...]) -> Tensor:
        """Return the sum of all holders' masks of a label, int64 of this shape."""
        return torch.stack([key.expand(label, shape) for key in self.keys.values()]).sum(dim=0)

    def shares(self) -> Iterator[tuple[str, int, str, Tensor]]:
        """Yield holder, round, group of rows and share for all that was sent to be opened."""
        for number in range(min(self.run.states) + 1, self.setting.rounds + 1):
            last = number == self.setting.rounds
            groups = (REST,) if last else self.rows.groups(self.setting, number)
            for (sender, _, _), bodies in self.run.bodies(number, "noisy-share").items():
                yield from ((sender, number, group, body) for group, body in zip(groups, bodies, strict=True))

    def added(self) -> dict[tuple[str, int, str], Tensor]:
        """Return mask and noise by holder, round and group, but of the rest: its share less what it has to contain."""
        shape = (len(self.rows.train_val), len(self.rows.train))
        masked = {who: s.body for _, who, s in self.run.messages if s.kind == "masked-left" and s.body.shape == shape}
        e_gram, parts = torch.stack(list(masked.values())).sum(dim=0), {}
        for name, number, group, share in self.shares():
            if group != REST:
                state, positions = self.run.states[number - 1][name], self.rows.slice_of(group)
                z = state["z"][positions] + ring.matmul(e_gram[positions], state["a"])
                parts[name, number, group] = share - z
        return parts

    def opened(self) -> dict[tuple[int, str], Tensor]:
        """Return z with its noise by round and group, int64 at scale 2^(2 f)."""
        sums: dict[tuple[int, str], Tensor] = {}
        for _, number, group, share in self.shares():
            sums[number, group] = sums.get((number, group), torch.zeros_like(share)) + share
        u = self.summed("G", (len(self.rows.train_val), len(self.rows.train)))
        for number, group in sums:
            if group == REST:
                sums[number, group] += self.parts[f"last hop {self.setting.model.hops - 1}"]
                continue
            state, positions = self.run.states[number - 1][self.setting.server], self.rows.slice_of(group)
            units = ring.encode(state["memory/a"], self.setting.protocol.bits)
            sums[number, group] += state["memory/part"][positions] + ring.matmul(u[positions], units)
        return sums

    def rest(self) -> Tensor:
        """Return S^K X W of all who neither train nor validate, in the clear, float64 [n - m, h]."""
        holdings, count = small_holdings(self.setting).values(), len(self.setting.names)
        length = self.setting.bounds.row_length
        x = torch.cat([scaled_rows(holding.features, count, length) for holding in holdings], dim=1)
        walks = [torch.from_numpy(transition_matrix(holding.edge_index, NODES).toarray()) for holding in holdings]
        s = torch.stack(walks).mean(dim=0)
        states = self.run.states[min(self.run.states)]
        shares = {part: torch.stack([states[name][part] for name in self.setting.names]) for part in ("p", "w")}
        p, w_0 = (ring.decode(stack.sum(dim=0), self.setting.protocol.bits).double() for stack in shares.values())
        best = self.run.states[self.setting.rounds][self.setting.server]["memory/best"]
        w = w_0 + p[self.rows.slice_of(TRAIN)].T @ best
        z: Tensor = torch.linalg.matrix_power(s, self.setting.model.hops) @ x @ w
        return z[self.rows.rest]


def _replay_receiver(program: Program[dict[str, Tensor]], run: Run, to: str) -> dict[str, Tensor]:
    """Run a part of a party's program, which only receives, on what the party was sent in a run; return its result."""
    mail: dict[tuple[str, str], deque[Tensor]] = defaultdict(deque)
    for _, sender, sent in run.messages:
        if sent.to == to:
            mail[sender, sent.kind].append(sent.body)
    body = None
    while True:
        try:
            effect = advance(program, body)
        except StopIteration as stop:
            return dict(stop.value)
        assert isinstance(effect, Receive)
        body = mail[effect.sender, effect.kind].popleft()
