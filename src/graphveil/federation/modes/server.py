"""The server's part in modes "individual" and "paper": it deals masks, combines embeddings and trains its own layers.

    round    embeddings of all holders -> (shrink) -> apart -> combine -> steps with the label holder
             -> gradient to every holder

It follows the protocol and colludes with no holder.  It never sees a masked matrix: those pass between holders.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import torch
from torch import Tensor, nn

from graphveil.federation.core.context import RunContext
from graphveil.federation.core.networks import LENGTH, Combination, apart
from graphveil.federation.core.publisher import james_stein
from graphveil.federation.core.setting import Setting
from graphveil.federation.core.states import load_network, network_state
from graphveil.federation.crypto.products import Dealer
from graphveil.federation.effects import Checkpoint, Program, Receive, Send
from graphveil.federation.modes.holder import lefts_of, products_of


def server(run: RunContext, nodes: int, rows: int) -> Program[Combination]:
    """The server's program in modes "individual" and "paper".

    Args:
        run: its run; the generator draws initial weights, the randomness keys of masks.
        nodes: n, rows that all holders share.
        rows: how many nodes train; -1 where only the label holder knows.

    Returns:
        Its network.
    """
    setting = run.setting
    model = setting.model
    network = Combination(
        model.combine, len(setting.names), model.width, model.layers, model.dropout, generator=run.generator
    )
    optimiser = setting.training.optimiser(network.parameters())
    if run.state is not None:
        load_network(network, optimiser, run.state)
    dealer = Dealer(lefts_of(setting, nodes), randomness=run.randomness)
    if setting.protocol.mode == "paper":
        yield from dealer.deal(setting.names)
    train = yield Receive(setting.label_holder, "labelled-rows", (rows,))
    state = partial(network_state, network, optimiser)
    if run.state is None:
        yield Checkpoint(0, state)
    for round in run.rounds_left:
        yield from dealer.correct(products_of(setting, nodes), f"forward {round}")
        leaves = []
        for name in setting.names:
            published = yield Receive(name, "embeddings", (nodes, setting.model.width))
            leaves.append(_as_combined(published, setting).requires_grad_())
        yield from take_steps(network, optimiser, setting, leaves, train, setting.steps(round))
        for name, leaf in zip(setting.names, leaves, strict=True):
            # Of the last step alone: earlier steps of a publication moved the server's own layers.
            yield Send(name, "embedding-gradient", leaf.grad if leaf.grad is not None else torch.zeros_like(leaf))
        yield from dealer.correct(products_of(setting, nodes, transposed=True), f"backward {round}")
        yield Checkpoint(round, state)
    return network


def _as_combined(published: Tensor, setting: Setting) -> Tensor:
    """Return a holder's published rows [n, h] as the server combines them: post-processing, and so free."""
    if setting.privacy.shrink:
        return apart(james_stein(published, setting.publication), LENGTH)
    return apart(published, LENGTH, setting.publication.noise)


def take_steps(
    network: nn.Module,
    optimiser: torch.optim.Optimizer,
    setting: Setting,
    leaves: Sequence[Tensor],
    train: Tensor,
    steps: int,
) -> Program[None]:
    """Take the steps of one publication with the label holder, then send it the last hidden layer of all nodes.

    Args:
        network: from `leaves` to the last hidden layer [n, h]. optimiser: of the network.
        leaves: what was published, float32 [n, h] each; their gradients of the last step stay on them.
        train: the nodes that train, int64 [m]. steps: how many to take.
    """
    for _ in range(steps):
        for leaf in leaves:
            leaf.grad = None
        network.train()
        hidden = network(leaves)[train]
        yield Send(setting.label_holder, "hidden", hidden.detach())
        gradient = yield Receive(setting.label_holder, "hidden-gradient", (len(train), setting.model.width))
        optimiser.zero_grad()
        hidden.backward(gradient)
        optimiser.step()
    # Without dropout: validation should not depend on which units happened to be dropped.
    network.eval()
    with torch.no_grad():
        yield Send(setting.label_holder, "hidden", network(leaves))
