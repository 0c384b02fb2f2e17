"""Mode "shared-linear": z = S^K X W on shares, opened to the server alone, with every holder's noise inside.

    P = S^K X on shares, once (see `spread`)             W = sum of the holders' shares, trained by descent
    z + sum_k noise_k   -> server:   h = unit( tanh( z V ) ), hidden layers, the label holder
                        each holder sends its share with its noise and a mask; all masks add up to zero (`zero_sum`)
    dz                  shared out by the server (its rows in the clear would show the labels)
    dW = P^T dz         on shares, truncated by all together

Nothing is opened between holders.  The server deals the masks of what holders exchange; what it receives is masked by
keys that it never sees, so it reads the sum alone.  Each holder adds all the noise that its own guarantee needs, down
to the lowest bit (`dither`), and rows of P and W stay within public bounds whatever the data (`bounds`).
Source: ours; the opened first layer of Chen et al., IJCAI 2022, gives features away.
Shapes: P [n, d], W [d, h], z [n, h].
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial

import torch
from torch import Tensor

from graphveil.errors import InputError
from graphveil.federation.core.messages import Receive, Send
from graphveil.federation.core.programs import Checkpoint
from graphveil.federation.core.publication import Publisher
from graphveil.federation.core.setting import Setting
from graphveil.federation.core.states import State, load_publisher, publisher_state
from graphveil.federation.crypto import ring
from graphveil.federation.crypto.masks import MaskKey
from graphveil.federation.crypto.products import Left, Product, Talk, multiply, products_with, set_up
from graphveil.federation.crypto.seals import Sealer, name_publication
from graphveil.federation.crypto.sharing import reconstruct, secret_numbers
from graphveil.federation.crypto.truncation import Scale, cut
from graphveil.federation.crypto.zero_sum import ZeroSum, agree_on_masks
from graphveil.federation.modes.holder import Holding
from graphveil.federation.modes.labels import LabelDesk
from graphveil.federation.modes.spread import SpreadKeys, receive_keys, short_rows, spread, walk_matrix
from graphveil.privacy import Randomness

#: What products stay below before they are cut, where no bound of theirs is larger.
_REACH = 4.0


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
    """Return the largest entry of a holder's initial share of W."""
    return setting.bounds.start


def scale_of(setting: Setting) -> Scale:
    """Return what is cut off products, and what they stay below."""
    return Scale(setting.bits, math.ceil(max(_REACH, setting.clip)) << (2 * setting.bits))


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

    Raises:
        InputError: a checkpoint of a version whose server could tell the features.
    """
    nodes, desk, scale = holding.nodes, holding.desk, scale_of(setting)
    keys: SpreadKeys = yield from receive_keys(me, setting.server, setting.names)
    zero: ZeroSum = yield from agree_on_masks(me, setting.names, randomness=randomness)
    publisher = Publisher(setting.publication, MaskKey.fresh(randomness))
    if state is None:
        drawn = secret_numbers((setting.columns, setting.width), randomness=randomness)
        w = ring.encode(drawn * start_scale(setting), setting.bits)
        p = yield from _propagated(zero, setting, holding, keys)
        sealer = Sealer.of(p, randomness=randomness)
    else:
        p, w, sealer = _restored(publisher, desk, state)
    masked = yield from set_up(me, setting.server, linear_lefts(setting, nodes), {me: p}, transposes=True)
    turned = p.T.contiguous()
    if desk is not None:
        yield from desk.announce(setting)
    if state is None:  # so that a first round that runs again has the same key, shares and randomized labels
        yield Checkpoint(0, partial(_snapshot, p, w, sealer, publisher, desk))
    forward, backward = linear_products(setting, nodes), linear_products(setting, nodes, transposed=True)
    for round in range(done + 1, setting.publications + 1):
        name = yield from name_publication(me, setting.names, round, sealer.seal(w))
        found = yield from multiply(me, setting.server, masked, forward, dict.fromkeys(forward, w), f"forward {round}")
        publisher.count(name)
        z = [ring.matmul(p, w), *found.values()]
        yield Send(setting.server, "noisy-share", _opened(z, zero, setting, publisher, round, name), name)
        if desk is not None:
            yield from desk.steps(setting, nodes, round)
        slope: Tensor = yield Receive(setting.server, "gradient-share", (nodes, setting.width))
        rights: dict[Product, Tensor] = dict.fromkeys(backward, slope)
        found = yield from multiply(me, setting.server, masked, backward, rights, f"backward {round}")
        step = reconstruct([ring.matmul(turned, slope), *found.values()])
        w = w - (yield from cut(zero, setting.server, step, keys.cuts, scale, f"step {round}"))
        yield Checkpoint(round, partial(_snapshot, p, w, sealer, publisher, desk), publisher.spent)
    return {"share": w, "publisher": publisher, "desk": desk}


def _opened(
    z: Sequence[Tensor], zero: ZeroSum, setting: Setting, publisher: Publisher, round: int, name: str
) -> Tensor:
    """Return this holder's share of z with its noise, masked so that only the sum of all holders' tells anything."""
    shape = (len(z[0]), setting.width)
    parts = [*z, zero.mask(f"open {round}", shape)]
    if (dither := setting.dither) is not None:
        parts.append(publisher.noise_for(str(round), name, shape, dither))
    return reconstruct(parts)


def _propagated(zero: ZeroSum, setting: Setting, holding: Holding, keys: SpreadKeys) -> Talk:
    """Return this holder's share of P, ring elements [n, d]."""
    blocks = [
        short_rows(holding.features, len(setting.members), setting.bounds.rows)
        if member.name == zero.me
        else torch.zeros(holding.nodes, member.columns, dtype=torch.float64)
        for member in setting.members
    ]
    share = ring.encode(torch.cat(blocks, dim=1), setting.bits)
    s = walk_matrix(holding.edge_index, holding.nodes)
    p: Tensor = yield from spread(zero, setting.server, keys, s, share, setting.hops, scale_of(setting))
    return p


def _snapshot(p: Tensor, w: Tensor, sealer: Sealer, publisher: Publisher, desk: LabelDesk | None) -> dict[str, Tensor]:
    kept = desk.state() if desk is not None else {}
    return {"p": p, "w": w, **sealer.state(), **publisher_state(publisher), **kept}


def _restored(publisher: Publisher, desk: LabelDesk | None, state: State) -> tuple[Tensor, Tensor, Sealer]:
    """Set publisher and desk from a checkpoint; return the shares of P and W, and what seals them."""
    if "seal/salt" not in state:
        raise InputError(
            "this run was begun by a version whose server could tell the features",
            where="checkpoint",
            remedy="make a new agreement for a new run",
        )
    load_publisher(publisher, state)
    if desk is not None:
        desk.load(state)
    return state["p"], state["w"], Sealer.of(state["p"], salt=state["seal/salt"])
