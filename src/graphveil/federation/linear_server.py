"""The server's part in mode "shared-linear": it deals masks, opens z_i and shares out their gradients.

The server never sends a gradient row in the clear: equal labels make rows that cluster.  Where embeddings are noisy it
keeps W inside the publication's bound C, step by step:  |dW| <= sqrt(n) |dz_i|, since P_i's rows have length at most 1.
"""

from __future__ import annotations

import math
from functools import partial

import torch
from torch import Tensor, nn
from torch.nn import functional

from graphveil.federation import ring
from graphveil.federation.linear import backward_products, forward_products, linear_lefts, start_scale
from graphveil.federation.messages import Receive, Send
from graphveil.federation.networks import Combination
from graphveil.federation.onceonly import deal_once
from graphveil.federation.products import Dealer, Talk
from graphveil.federation.programs import Checkpoint
from graphveil.federation.setting import Setting
from graphveil.federation.sharing import reconstruct, share
from graphveil.federation.states import State, adam_state, load_adam, load_module, module_state
from graphveil.models.initial import glorot
from graphveil.privacy import Randomness


class LinearCombination(nn.Module):
    """h_i = unit(tanh(z_i V_i)) for every holder, then `Combination`."""

    def __init__(self, setting: Setting, *, generator: torch.Generator) -> None:
        super().__init__()
        width, holders = setting.width, len(setting.names)
        self.mixing = nn.ParameterList([glorot((width, width), generator) for _ in range(holders)])
        self.rest = Combination(setting.combine, holders, width, setting.layers, setting.dropout, generator=generator)

    def forward(self, z: list[Tensor]) -> Tensor:
        """Return z_L [n, h]."""
        found = [functional.normalize(torch.tanh(zi @ mix), dim=1) for zi, mix in zip(z, self.mixing, strict=True)]
        combined: Tensor = self.rest(found)
        return combined


def linear_server(
    setting: Setting,
    nodes: int,
    rows: int,
    *,
    randomness: Randomness,
    generator: torch.Generator,
    done: int = 0,
    state: State | None = None,
) -> Talk:
    """The server's program; returns its network. Arguments as of `server`."""
    network = LinearCombination(setting, generator=generator)
    optimiser = torch.optim.Adam(network.parameters(), lr=setting.learning_rate, weight_decay=setting.weight_decay)
    sizes = {member.name: member.columns for member in setting.members}
    if state is not None:
        load_module("network", network, state)
        load_adam("adam", optimiser, state)
    else:
        yield from deal_once(setting.names, sizes, nodes, randomness=randomness)
    dealer = Dealer(list(linear_lefts(setting, nodes).values()), randomness=randomness)
    yield from dealer.deal(setting.names)
    train = yield Receive(setting.label_holder, "labelled-rows", (rows,))
    steps = [torch.zeros(nodes, setting.width) for _ in setting.names]
    if state is not None:
        steps = list(state["steps"])
    for round in range(done + 1, setting.publications + 1):
        yield from dealer.correct(forward_products(setting, nodes), f"forward {round}")
        leaves = yield from _open(setting, nodes)
        yield from _train(network, optimiser, setting, leaves, train)
        for number, leaf in enumerate(leaves):
            slope = leaf.grad if leaf.grad is not None else torch.zeros_like(leaf)
            steps[number] = setting.momentum * steps[number] + slope
        moved = _bounded([setting.shared_rate * step for step in steps], setting, nodes)
        yield from _share_out(setting, moved, randomness)
        yield from dealer.correct(backward_products(setting, nodes), f"backward {round}")
        yield Checkpoint(round, partial(_snapshot, network, optimiser, steps))
    return network


def _snapshot(network: nn.Module, optimiser: torch.optim.Optimizer, steps: list[Tensor]) -> dict[str, Tensor]:
    return module_state("network", network) | adam_state("adam", optimiser) | {"steps": torch.stack(steps)}


def _open(setting: Setting, nodes: int) -> Talk:
    """Return the noisy z_i of all holders, as leaves."""
    parts: dict[str, list[Tensor]] = {name: [] for name in setting.names}
    for holder in setting.names:
        for i in setting.names:
            parts[i].append((yield Receive(holder, "noisy-share", (nodes, setting.width))))
    return [ring.decode(reconstruct(shares), 2 * setting.bits).requires_grad_() for shares in parts.values()]


def _train(
    network: nn.Module, optimiser: torch.optim.Optimizer, setting: Setting, leaves: list[Tensor], train: Tensor
) -> Talk:
    """Take the steps of one publication with the label holder."""
    for _ in range(setting.republish):
        for leaf in leaves:
            leaf.grad = None
        network.train()
        z = network(leaves)[train]
        yield Send(setting.label_holder, "hidden", z.detach())
        slope = yield Receive(setting.label_holder, "hidden-gradient", (len(train), setting.width))
        optimiser.zero_grad()
        z.backward(slope)
        optimiser.step()
    network.eval()
    with torch.no_grad():
        yield Send(setting.label_holder, "hidden", network(leaves))


def _bounded(moved: list[Tensor], setting: Setting, nodes: int) -> list[Tensor]:
    """Return the steps shortened so that |W| can never pass C; unchanged where nothing is protected."""
    if setting.publication.public:
        return moved
    entries = sum(member.columns for member in setting.members) * setting.width
    start = len(setting.names) * start_scale(setting) * math.sqrt(entries)
    rounding = 2.0 ** (1 - setting.bits) * math.sqrt(entries) * len(setting.names) * setting.publications
    room = max(setting.clip - start - rounding, 0.0) / setting.publications
    reach = math.sqrt(nodes) * sum(float(step.norm()) for step in moved)
    return [step * min(1.0, room / max(reach, 1e-30)) for step in moved]


def _share_out(setting: Setting, steps: list[Tensor], randomness: Randomness) -> Talk:
    """Send dz_i to i and j in two shares, a fresh pair for every j."""
    for i, step in zip(setting.names, steps, strict=True):
        secret = ring.encode(step, setting.bits)
        for j in setting.names:
            if i != j:
                first, second = share(secret, 2, randomness=randomness)
                yield Send(i, "gradient-share", first)
                yield Send(j, "gradient-share", second)
