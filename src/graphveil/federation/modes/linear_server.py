"""The server's part in mode "shared-linear": it deals masks, opens z and shares out its gradient.

The server never sends a gradient row in the clear: equal labels make rows that cluster.  Where embeddings are noisy it
keeps W inside its bound C', step by step:  |dW| <= sqrt(n) |dz|, since rows of P have length at most 1 (see `bounds`).
It receives shares under masks of keys that it never sees, and so learns nothing of z but the noisy sum.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial

import torch
from torch import Tensor, nn

from graphveil.federation.core.context import RunContext
from graphveil.federation.core.networks import Combination, apart
from graphveil.federation.core.setting import Setting
from graphveil.federation.core.states import load_network, network_state
from graphveil.federation.crypto import ring
from graphveil.federation.crypto.products import Dealer
from graphveil.federation.crypto.sharing import reconstruct, share
from graphveil.federation.crypto.truncation import deal_truncation
from graphveil.federation.effects import Checkpoint, Program, Receive, Send
from graphveil.federation.modes.linear import linear_lefts, linear_products
from graphveil.federation.modes.propagation import deal_keys, deal_propagation
from graphveil.federation.modes.server import take_steps
from graphveil.models.networks.initial import glorot


class LinearNetwork(nn.Module):
    """h = tanh(apart(z) V), then hidden layers; `noise` is the length of the noise in a row of z."""

    def __init__(self, setting: Setting, *, generator: torch.Generator, noise: float = 0.0) -> None:
        super().__init__()
        self.noise = noise
        width = setting.model.width
        self.mixing = glorot((width, width), generator)
        self.rest = Combination("mean", 1, width, setting.model.layers, setting.model.dropout, generator=generator)

    def forward(self, opened: Sequence[Tensor]) -> Tensor:
        """Return z_L [n, h]; `opened` holds z alone."""
        (z,) = opened
        combined: Tensor = self.rest([torch.tanh(apart(z, 1.0, self.noise) @ self.mixing)])
        return combined


def linear_server(run: RunContext, nodes: int, rows: int) -> Program[LinearNetwork]:
    """The server's program in mode "shared-linear".

    Args:
        run: its run; the generator draws initial weights, the randomness keys of masks and shares of gradients.
        nodes: n, rows that all holders share.
        rows: how many nodes train; -1 where only the label holder knows.

    Returns:
        Its network.
    """
    setting = run.setting
    # Every holder adds all of its own noise.
    noise = setting.publication.noise * math.sqrt(len(setting.names))
    network = LinearNetwork(setting, generator=run.generator, noise=noise)
    optimiser = setting.training.optimiser(network.parameters())
    keys = yield from deal_keys(setting.names, randomness=run.randomness)
    truncation = {name: key.truncation for name, key in keys.items()}
    # Momentum is kept here, where z's gradient is in the clear: on shares it would need another truncation each round.
    velocity = torch.zeros(nodes, setting.model.width)
    if run.state is not None:
        load_network(network, optimiser, run.state)
        velocity = run.state["pull"]
    else:
        yield from deal_propagation(keys, nodes, setting.columns, setting.model.hops, setting.protocol.bits)
    dealer = Dealer(linear_lefts(setting, nodes), randomness=run.randomness)
    yield from dealer.deal(setting.names)
    train = yield Receive(setting.label_holder, "labelled-rows", (rows,))
    if run.state is None:
        yield Checkpoint(0, partial(_snapshot, network, optimiser, velocity))
    for round in run.rounds_left:
        yield from dealer.correct(linear_products(setting, nodes), f"forward {round}")
        z = yield from _open(setting, nodes)
        yield from take_steps(network, optimiser, setting, [z], train, setting.steps(round))
        # Computed from the noisy opening and from labels as reported, so it costs nothing more.
        velocity = setting.training.momentum * velocity + (z.grad if z.grad is not None else torch.zeros_like(z))
        step = _bounded(setting.training.shared_rate * velocity, setting, nodes)
        # Rows of equal labels are alike: each holder gets a share, which is uniform.
        for name, part in zip(setting.names, share(step, len(setting.names), randomness=run.randomness), strict=True):
            yield Send(name, "gradient-share", part)
        yield from dealer.correct(linear_products(setting, nodes, transposed=True), f"backward {round}")
        shape = (setting.columns, setting.model.width)
        yield from deal_truncation(truncation, shape, setting.protocol.bits, f"step {round}")
        yield Checkpoint(round, partial(_snapshot, network, optimiser, velocity))
    return network


def _open(setting: Setting, nodes: int) -> Program[Tensor]:
    """Return the noisy z of all nodes, as a leaf."""
    parts = []
    for name in setting.names:
        parts.append((yield Receive(name, "noisy-share", (nodes, setting.model.width))))
    return ring.decode(reconstruct(parts), 2 * setting.protocol.bits).requires_grad_()


def _bounded(step: Tensor, setting: Setting, nodes: int) -> Tensor:
    """Return the step as ring elements, shortened so that |W| never passes C'; at full length if nothing is protected.

    Rounded towards zero: rounding to the nearest would lengthen it by up to sqrt(n h) / 2 units.
    """
    if setting.publication.public:
        return ring.encode(step, setting.protocol.bits)
    # float64 and a margin of 2^-30: the bound must hold after rounding, or W could pass C'.
    exact = step.double()
    # |P^T dz| <= sqrt(n) |dz| by Cauchy and Schwarz, the rows of P being no longer than 1.
    longest = setting.bounds.step * (1 - 2.0**-30) / math.sqrt(nodes)
    short = exact * min(1.0, longest / max(float(exact.norm()), 1e-300))
    return torch.trunc(short * 2.0**setting.protocol.bits).long()


def _snapshot(network: nn.Module, optimiser: torch.optim.Optimizer, velocity: Tensor) -> dict[str, Tensor]:
    return network_state(network, optimiser) | {"pull": velocity}
