"""Mode "shared-linear": z = S^K X W on shares, opened to the server alone, with every holder's noise inside.

    P = S^K X on shares, once (see `propagation`)             W = sum of the holders' shares, trained by descent
    z + sum_k noise_k   -> server:   h = unit( tanh( z V ) ), hidden layers, the label holder
                        each holder sends its share with its noise and a mask; all masks add up to zero (`zero_sum`)
    dz                  shared out by the server (its rows in the clear would show the labels)
    dW = P^T dz         on shares, truncated by all together

Nothing is opened between holders.  The server deals the masks of what holders exchange; what it receives is masked by
keys that it never sees, so it reads only the sum.  Each holder adds all the noise that its own guarantee needs, down
to the lowest bit (`dither`), and rows of P and W stay within public bounds for any data (`bounds`).
Source: ours; the opened first layer of Chen et al., IJCAI 2022, gives features away.
Shapes: P [n, d], W [d, h], z [n, h].
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from graphveil.federation.core.context import RunContext
from graphveil.federation.core.publisher import Publisher
from graphveil.federation.core.setting import Setting
from graphveil.federation.core.states import State, load_publisher, publisher_state
from graphveil.federation.crypto import ring
from graphveil.federation.crypto.commitments import Commitment, name_publication
from graphveil.federation.crypto.masks import MaskKey
from graphveil.federation.crypto.products import LeftMatrix, Masked, Product, multiply, products_with, set_up
from graphveil.federation.crypto.sharing import reconstruct, secret_numbers
from graphveil.federation.crypto.truncation import Scale, truncate_shared
from graphveil.federation.crypto.zero_sum import ZeroSum, agree_on_masks
from graphveil.federation.effects import Checkpoint, Program, Receive, Send
from graphveil.federation.modes.holder import Holding
from graphveil.federation.modes.labels import LabelHead
from graphveil.federation.modes.propagation import (
    PropagationKeys,
    propagate_shares,
    receive_keys,
    scaled_rows,
    transition_matrix,
)

#: The least bound of products before truncation.
# The chance that a result is 0 in place of its value grows with this number: B 2^-63 an element.
_REACH = 4.0


def linear_lefts(setting: Setting, nodes: int) -> list[LeftMatrix]:
    """Return every holder's share of P, a private matrix of n = `nodes` rows."""
    return [
        LeftMatrix(name, name, tuple(other for other in setting.names if other != name), nodes, setting.columns)
        for name in setting.names
    ]


def linear_products(setting: Setting, nodes: int, *, transposed: bool = False) -> tuple[Product, ...]:
    """Return the products of z = P W, or of dW = P^T dz, in the order in which all parties take them.

    They are those of every share of P with every other holder's share.

    Args:
        nodes: n, rows that all holders share. transposed: those of dW in place of those of z.
    """
    return products_with(linear_lefts(setting, nodes), setting.model.width, transposed=transposed)


def start_scale(setting: Setting) -> float:
    """Return the largest entry of a holder's initial share of W."""
    return setting.bounds.start


def scale_of(setting: Setting) -> Scale:
    """Return the bits to cut off products, and the products' bound: a row of P has length 1, a row of z C."""
    return Scale(setting.protocol.bits, math.ceil(max(_REACH, setting.privacy.clip)) << (2 * setting.protocol.bits))


@dataclass(frozen=True)
class LinearHolder:
    """A holder's state in a run, which its program returns.

    Attributes:
        p: its share of P = S^K X, int64 [n, d]; never changes. w: its share of W, int64 [d, h].
        commitment: to both. publisher: counts publications and draws noise.
        head: the label holder's last layer; None at the others.
    """

    p: Tensor
    w: Tensor
    commitment: Commitment
    publisher: Publisher
    head: LabelHead | None

    def state(self) -> dict[str, Tensor]:
        """Return the state for a checkpoint."""
        head_state = self.head.state() if self.head is not None else {}
        return {"p": self.p, "w": self.w, **self.commitment.state(), **publisher_state(self.publisher), **head_state}


def linear_holder(run: RunContext, holding: Holding) -> Program[LinearHolder]:
    """The program of one holder in mode "shared-linear".

    Args:
        run: its run; the randomness is that of its shares, of the noise's key and of the keys of masks.
        holding: its features and edges, and the labels at the label holder.

    Returns:
        Its shares, its publisher, and at the label holder the predictions.
    """
    setting, roster, head, nodes = run.setting, run.roster, holding.head, holding.nodes
    keys = yield from receive_keys(roster)
    # In every session, also a resumed one: a round that runs again may have used the masks of an earlier session.
    zero = yield from agree_on_masks(roster, randomness=run.randomness)
    publisher = Publisher(setting.publication, MaskKey.fresh(run.randomness))
    if run.state is None:
        party = yield from _initial(run, holding, zero, keys, publisher)
    else:
        party = _restored(publisher, head, run.state)
    # P never changes, so it is masked and sent once a session.
    masked = yield from set_up(roster, linear_lefts(setting, nodes), {run.me: party.p}, transposes=True)
    if head is not None:
        yield from head.announce(setting)
    if run.state is None:  # so that a first round that runs again has the same key, shares and randomized labels
        yield Checkpoint(0, party.state)
    exchange = _Exchange(run, nodes, masked, zero, party.p.T.contiguous())
    for round in run.rounds_left:
        yield from _publish(exchange, party, round)
        if head is not None:
            yield from head.steps(setting, nodes, round)
        step = yield from _descent(exchange, party, keys, round)
        party = replace(party, w=party.w - step)
        yield Checkpoint(round, party.state, publisher.spent)
    return party


@dataclass(frozen=True)
class _Exchange:
    """What all rounds of a holder share: masks of products, masks that add up to zero, and P^T."""

    run: RunContext
    nodes: int
    masked: Masked
    zero: ZeroSum
    transposed: Tensor

    def multiplied(self, right: Tensor, step: str, *, transposed: bool) -> Program[list[Tensor]]:
        """Return this holder's shares of all products of P (or P^T) with another holder's share of the right side."""
        products = linear_products(self.run.setting, self.nodes, transposed=transposed)
        shares = yield from multiply(self.masked, products, dict.fromkeys(products, right), step)
        return list(shares.values())


def _publish(exchange: _Exchange, party: LinearHolder, round: int) -> Program[None]:
    """Send the server this holder's noisy share of z = P W, masked so that only the sum of all shares is readable."""
    run, setting, publisher = exchange.run, exchange.run.setting, party.publisher
    # The name comes first: noise, count and note on disk all follow from it.
    name = yield from name_publication(run.roster, round, party.commitment.to(party.w))
    crossed = yield from exchange.multiplied(party.w, f"forward {round}", transposed=False)
    # Counted before anything leaves: a spent budget refuses here.
    publisher.count(name)
    shape = (exchange.nodes, setting.model.width)
    parts = [ring.matmul(party.p, party.w), *crossed, exchange.zero.mask(f"open {round}", shape)]
    if (dither := setting.dither) is not None:
        parts.append(publisher.noise_for(str(round), name, shape, dither))
    yield Send(setting.server, "noisy-share", reconstruct(parts), name)


def _descent(exchange: _Exchange, party: LinearHolder, keys: PropagationKeys, round: int) -> Program[Tensor]:
    """Return this holder's share of the step dW = P^T dz, int64 [d, h]."""
    setting = exchange.run.setting
    dz = yield Receive(setting.server, "gradient-share", (exchange.nodes, setting.model.width))
    crossed = yield from exchange.multiplied(dz, f"backward {round}", transposed=True)
    step = reconstruct([ring.matmul(exchange.transposed, dz), *crossed])
    return (yield from truncate_shared(exchange.zero, step, keys.truncation, scale_of(setting), f"step {round}"))


def _initial(
    run: RunContext, holding: Holding, zero: ZeroSum, keys: PropagationKeys, publisher: Publisher
) -> Program[LinearHolder]:
    """Draw a share of W, and propagate the features together with all other holders."""
    setting = run.setting
    drawn = secret_numbers((setting.columns, setting.model.width), randomness=run.randomness)
    # Drawn from the secret source and not the seeded one: knowing W one could solve z = P W for the features.
    w = ring.encode(drawn * start_scale(setting), setting.protocol.bits)
    # Other holders' columns are zeros here: the shares X_1, ..., X_I add up to X side by side.
    blocks = [
        scaled_rows(holding.features, len(setting.members), setting.bounds.rows)
        if member.name == run.me
        else torch.zeros(holding.nodes, member.columns, dtype=torch.float64)
        for member in setting.members
    ]
    # Rounded once, before anything is shared: all parties compute exactly from here on.
    share = ring.encode(torch.cat(blocks, dim=1), setting.protocol.bits)
    s = transition_matrix(holding.edge_index, holding.nodes)
    p = yield from propagate_shares(zero, keys, s, share, setting.model.hops, scale_of(setting))
    return LinearHolder(p, w, Commitment.of(p, randomness=run.randomness), publisher, holding.head)


def _restored(publisher: Publisher, head: LabelHead | None, state: State) -> LinearHolder:
    """Set publisher and head from a checkpoint."""
    load_publisher(publisher, state)
    if head is not None:
        head.load(state)
    commitment = Commitment.of(state["p"], salt=state["seal/salt"])
    return LinearHolder(state["p"], state["w"], commitment, publisher, head)
