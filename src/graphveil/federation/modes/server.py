"""The server's part in modes "individual" and "paper": it deals masks, combines embeddings and trains its own layers.

    round    embeddings of all holders -> (shrink) -> combine -> steps with the label holder -> gradient to every holder

It follows the protocol and colludes with no holder.  It never sees a masked matrix: those pass between holders.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import torch
from torch import Tensor, nn

from graphveil.federation.core.messages import Receive, Send
from graphveil.federation.core.networks import Combination
from graphveil.federation.core.programs import Checkpoint
from graphveil.federation.core.publication import james_stein
from graphveil.federation.core.setting import Setting
from graphveil.federation.core.states import State, load_network, network_state
from graphveil.federation.crypto.products import Dealer, Talk
from graphveil.federation.modes.holder import lefts_of, products_of
from graphveil.privacy import Randomness


def server(
    setting: Setting,
    nodes: int,
    rows: int,
    *,
    randomness: Randomness,
    generator: torch.Generator,
    done: int = 0,
    state: State | None = None,
) -> Talk:
    """The server's program; returns its network.

    Args:
        rows: how many nodes train; -1 where only the label holder knows.
        done: rounds that are finished; state: as of then, of a checkpoint.
    """
    network = Combination(
        setting.combine, len(setting.names), setting.width, setting.layers, setting.dropout, generator=generator
    )
    optimiser = torch.optim.Adam(network.parameters(), lr=setting.learning_rate, weight_decay=setting.weight_decay)
    if state is not None:
        load_network(network, optimiser, state)
    dealer = Dealer(lefts_of(setting, nodes), randomness=randomness)
    if setting.mode == "paper":
        yield from dealer.deal(setting.names)
    train = yield Receive(setting.label_holder, "labelled-rows", (rows,))
    kept = partial(network_state, network, optimiser)
    if state is None:
        yield Checkpoint(0, kept)
    for round in range(done + 1, setting.publications + 1):
        yield from dealer.correct(products_of(setting, nodes), f"forward {round}")
        leaves = []
        for name in setting.names:
            seen = yield Receive(name, "embeddings", (nodes, setting.width))
            leaves.append((james_stein(seen, setting.publication) if setting.shrink else seen).requires_grad_())
        yield from take_steps(network, optimiser, setting, leaves, train, setting.steps(round))
        for name, leaf in zip(setting.names, leaves, strict=True):
            yield Send(name, "embedding-gradient", leaf.grad if leaf.grad is not None else torch.zeros_like(leaf))
        yield from dealer.correct(products_of(setting, nodes, transposed=True), f"backward {round}")
        yield Checkpoint(round, kept)
    return network


def take_steps(
    network: nn.Module,
    optimiser: torch.optim.Optimizer,
    setting: Setting,
    leaves: Sequence[Tensor],
    train: Tensor,
    steps: int,
) -> Talk:
    """Take the steps of one publication with the label holder, then show it all nodes; gradients stay on `leaves`."""
    for _ in range(steps):
        for leaf in leaves:
            leaf.grad = None
        network.train()
        hidden = network(leaves)[train]
        yield Send(setting.label_holder, "hidden", hidden.detach())
        slope = yield Receive(setting.label_holder, "hidden-gradient", (len(train), setting.width))
        optimiser.zero_grad()
        hidden.backward(slope)
        optimiser.step()
    network.eval()
    with torch.no_grad():
        yield Send(setting.label_holder, "hidden", network(leaves))
