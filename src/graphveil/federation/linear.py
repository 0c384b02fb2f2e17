"""Mode "shared-linear": z = S^K X W on shares, opened to the server alone, with every holder's noise inside.

    P = S^K X on shares, once (see `spread`)             W = sum of the holders' shares, trained by descent
    z + sum_k noise_k   -> server:   h = unit( tanh( z V ) ), hidden layers, the label holder
    dz                  shared out by the server (its rows in the clear would show the labels)
    dW = P^T dz         on shares, truncated by all together

Nothing is opened between holders.  Each holder adds all the noise that its own guarantee needs.  Source: ours; the
opened first layer of Chen et al., IJCAI 2022, gives features away.  Shapes: P [n, d], W [d, h], z [n, h].
"""

from __future__ import annotations

from functools import partial

import torch
from torch import Tensor

from graphveil.federation import ring
from graphveil.federation.holder import Holding
from graphveil.federation.labels import LabelDesk
from graphveil.federation.masks import MaskKey
from graphveil.federation.messages import Receive, Send
from graphveil.federation.products import Left, Product, Talk, multiply, products_with, set_up
from graphveil.federation.programs import Checkpoint
from graphveil.federation.publication import Publisher
from graphveil.federation.setting import Setting
from graphveil.federation.sharing import reconstruct, secret_numbers
from graphveil.federation.spread import SpreadKeys, receive_keys, short_rows, spread, walk_matrix
from graphveil.federation.states import State, load_publisher, publisher_state
from graphveil.federation.truncation import cut
from graphveil.privacy import Randomness


def linear_lefts(setting: Setting, nodes: int) -> list[Left]:
    """Return every holder's share of P."""
    return [
        Left(name, name, tuple(other for other in setting.names if other != name), nodes, setting.columns)
        for name in setting.names
    ]


def linear_products(setting: Setting, nodes: int, *, transposed: bool = False) -> tuple[Product, ...]:
    """Return the products of z = P W, or of dW = P^T dz: every share of P with every other holder's share."""
    return products_with(linear_lefts(setting, nodes), setting.width, transposed=transposed)


def start_scale(setting: Setting) -> float:
    """Return the largest entry of a holder's initial share of W: the sum's Frobenius norm is at most C / 2."""
    holders = len(setting.members)
    free = (6.0 / (setting.columns + setting.width)) ** 0.5 / holders**0.5
    bound = setting.clip / 2 / (setting.columns * setting.width) ** 0.5 / holders
    return float(free if setting.publication.public else min(free, bound))


def linear_holder(
    me: str,
    setting: Setting,
    holding: Holding,
    *,
    randomness: Randomness,
    done: int = 0,
    state: State | None = None,
) -> Talk:
    """The program of one holder; returns its share of W, its publisher, and at the label holder the predictions.

    Args:
        done: rounds that are finished; state: as of then, of a checkpoint.
    """
    nodes, desk = holding.nodes, holding.desk
    keys: SpreadKeys = yield from receive_keys(me, setting.server, setting.names)
    drawn = secret_numbers((setting.columns, setting.width), randomness=randomness)
    w = ring.encode(drawn * start_scale(setting), setting.bits)
    publisher = Publisher(setting.publication, MaskKey.fresh(randomness))
    if state is None:
        p = yield from _propagated(me, setting, holding, keys)
    else:
        p, w = state["p"], state["w"]
        load_publisher(publisher, state)
        if desk is not None:
            desk.load(state)
    masked = yield from set_up(me, setting.server, linear_lefts(setting, nodes), {me: p}, transposes=True)
    turned = p.T.contiguous()
    if desk is not None:
        yield from desk.announce(setting)
    if state is None:  # so that a first round that runs again has the same key, shares and randomized labels
        yield Checkpoint(0, partial(_snapshot, p, w, publisher, desk))
    forward, backward = linear_products(setting, nodes), linear_products(setting, nodes, transposed=True)
    for round in range(done + 1, setting.publications + 1):
        found = yield from multiply(me, setting.server, masked, forward, dict.fromkeys(forward, w), f"forward {round}")
        publisher.count(round, w)
        noise = ring.encode(publisher.noise_for(str(round), w, (nodes, setting.width)), 2 * setting.bits)
        yield Send(setting.server, "noisy-share", reconstruct([ring.matmul(p, w), *found.values(), noise]))
        if desk is not None:
            yield from desk.steps(setting, nodes, round)
        slope: Tensor = yield Receive(setting.server, "gradient-share", (nodes, setting.width))
        rights: dict[Product, Tensor] = dict.fromkeys(backward, slope)
        found = yield from multiply(me, setting.server, masked, backward, rights, f"backward {round}")
        step = reconstruct([ring.matmul(turned, slope), *found.values()])
        w = w - (yield from cut(me, setting.names, setting.server, step, keys.cuts, setting.bits, f"step {round}"))
        yield Checkpoint(round, partial(_snapshot, p, w, publisher, desk), publisher.spent)
    return {"share": w, "publisher": publisher, "desk": desk}


def _propagated(me: str, setting: Setting, holding: Holding, keys: SpreadKeys) -> Talk:
    """Return this holder's share of P, ring elements [n, d]."""
    blocks = [
        short_rows(holding.features, len(setting.members))
        if member.name == me
        else torch.zeros(holding.nodes, member.columns, dtype=torch.float64)
        for member in setting.members
    ]
    share = ring.encode(torch.cat(blocks, dim=1), setting.bits)
    s = walk_matrix(holding.edge_index, holding.nodes)
    p: Tensor = yield from spread(me, setting.server, setting.names, keys, s, share, setting.hops, setting.bits)
    return p


def _snapshot(p: Tensor, w: Tensor, publisher: Publisher, desk: LabelDesk | None) -> dict[str, Tensor]:
    return {"p": p, "w": w, **publisher_state(publisher), **(desk.state() if desk is not None else {})}
