"""Mode "shared-linear": z = S^K X W on shares, opened to the server alone, with every holder's noise inside.

    P = S^K X on shares, once (see `propagation`)             W = sum of the holders' shares, trained by descent
    z + sum_k noise_k   -> server:   h = unit( tanh( z V ) ), hidden layers, the label holder
                        each holder sends its share with its noise and a mask; all masks add up to zero (`masks`)
    dz                  shared out by the server: rows in the clear would show the labels, of which equal ones cluster
    dW = P^T dz         on shares, truncated by all together

Nothing is opened between holders.  The server deals the masks of what holders exchange; what it receives is masked by
keys that it never sees, so it reads only the sum.  Each holder adds all the noise that its own guarantee needs, down
to the lowest bit, and rows of P and W stay within public bounds for any data (`dither`): where embeddings are noisy the
server shortens each step,  |dW| <= sqrt(n) |dz|, since rows of P have length at most 1.
Source: ours; the opened first layer of Chen et al., IJCAI 2022, gives features away.
Shapes: P [n, d], W [d, h], z [n, h].
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import torch
from torch import Tensor, nn

from graphveil.federation.core import states
from graphveil.federation.core.networks import Combination, apart
from graphveil.federation.core.publisher import Publisher
from graphveil.federation.core.setting import Setting
from graphveil.federation.crypto import ring
from graphveil.federation.crypto.commitments import Commitment, name_publication
from graphveil.federation.crypto.masks import MaskKey, ZeroSum, agree_on_masks
from graphveil.federation.crypto.products import Dealer, LeftMatrix, Masked, Product, multiply, products_with, set_up
from graphveil.federation.crypto.sharing import reconstruct, secret_numbers, share
from graphveil.federation.crypto.truncation import Scale, deal_truncation, truncate_shared
from graphveil.federation.effects import Checkpoint, Program, Receive, Send
from graphveil.federation.modes import propagation
from graphveil.federation.modes.holder import Holding, take_steps
from graphveil.federation.modes.labels import LabelHead
from graphveil.models.networks.layers import glorot

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
    """Return the products of every share of P with every other holder's share, in the order that all take.

    Args:
        nodes: n, rows that all holders share.
        transposed: those of dW = P^T dz in place of those of z = P W.
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
        p: its share of P = S^K X, int64 [n, d]; never changes.
        w: its share of W, int64 [d, h].
        commitment: to both.
        publisher: counts publications and draws noise.
        head: the label holder's alone.
    """

    p: Tensor
    w: Tensor
    commitment: Commitment
    publisher: Publisher
    head: LabelHead | None

    def state(self) -> dict[str, Tensor]:
        head_state = self.head.state() if self.head is not None else {}
        return {
            "p": self.p,
            "w": self.w,
            **self.commitment.state(),
            **states.publisher_state(self.publisher),
            **head_state,
        }


def linear_holder(run: states.RunContext, holding: Holding) -> Program[LinearHolder]:
    """The program of one holder in mode "shared-linear": return its shares, publisher and predictions.

    Args:
        run: its run; the randomness is that of its shares, of the noise's key and of the keys of masks.
        holding: its features and edges, and the labels at the label holder.
    """
    setting, roster, head, nodes = run.setting, run.roster, holding.head, holding.nodes
    keys = yield from propagation.receive_keys(roster)
    # In every session, also a resumed one: a round that runs again may have used the masks of an earlier session.
    zero = yield from agree_on_masks(roster, randomness=run.randomness)
    publisher = Publisher(setting.publication, MaskKey.fresh(run.randomness))
    if run.state is None:
        party = yield from _initial(run, holding, zero, keys, publisher)
    else:
        states.load_publisher(publisher, run.state)
        if head is not None:
            head.load(run.state)
        commitment = Commitment.of(run.state["p"], salt=run.state["seal/salt"])
        party = LinearHolder(run.state["p"], run.state["w"], commitment, publisher, head)
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

    run: states.RunContext
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


def _descent(
    exchange: _Exchange, party: LinearHolder, keys: propagation.PropagationKeys, round: int
) -> Program[Tensor]:
    """Return this holder's share of the step dW = P^T dz, int64 [d, h]."""
    setting = exchange.run.setting
    dz = yield Receive(setting.server, "gradient-share", (exchange.nodes, setting.model.width))
    crossed = yield from exchange.multiplied(dz, f"backward {round}", transposed=True)
    step = reconstruct([ring.matmul(exchange.transposed, dz), *crossed])
    return (yield from truncate_shared(exchange.zero, step, keys.truncation, scale_of(setting), f"step {round}"))


def _initial(
    run: states.RunContext, holding: Holding, zero: ZeroSum, keys: propagation.PropagationKeys, publisher: Publisher
) -> Program[LinearHolder]:
    """Draw a share of W, and propagate the features together with all other holders."""
    setting = run.setting
    drawn = secret_numbers((setting.columns, setting.model.width), randomness=run.randomness)
    # Drawn from the secret source and not the seeded one: knowing W one could solve z = P W for the features.
    w = ring.encode(drawn * start_scale(setting), setting.protocol.bits)
    # Other holders' columns are zeros here: the shares X_1, ..., X_I add up to X side by side.
    blocks = [
        propagation.scaled_rows(holding.features, len(setting.members), setting.bounds.rows)
        if member.name == run.me
        else torch.zeros(holding.nodes, member.columns, dtype=torch.float64)
        for member in setting.members
    ]
    # Rounded once, before anything is shared: all parties compute exactly from here on.
    share = ring.encode(torch.cat(blocks, dim=1), setting.protocol.bits)
    s = propagation.transition_matrix(holding.edge_index, holding.nodes)
    p = yield from propagation.propagate_shares(zero, keys, s, share, setting.model.hops, scale_of(setting))
    return LinearHolder(p, w, Commitment.of(p, randomness=run.randomness), publisher, holding.head)


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


def linear_server(run: states.RunContext, nodes: int, rows: int) -> Program[LinearNetwork]:
    """The server's program in mode "shared-linear": return its network.

    Args:
        run: its run; the generator draws initial weights, the randomness keys of masks and shares of gradients.
        nodes: n, rows that all holders share.
        rows: how many train; -1 where only the label holder knows.
    """
    setting = run.setting
    # Every holder adds all of its own noise.
    noise = setting.publication.noise * math.sqrt(len(setting.names))
    network = LinearNetwork(setting, generator=run.generator, noise=noise)
    optimiser = setting.training.optimiser(network.parameters())
    keys = yield from propagation.deal_keys(setting.names, randomness=run.randomness)
    truncation = {name: key.truncation for name, key in keys.items()}
    # Momentum is kept here, where z's gradient is in the clear: on shares it would need another truncation each round.
    velocity = torch.zeros(nodes, setting.model.width)
    if run.state is not None:
        states.load_network(network, optimiser, run.state)
        velocity = run.state["pull"]
    else:
        yield from propagation.deal_propagation(keys, nodes, setting.columns, setting.model.hops, setting.protocol.bits)
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
    parts = []
    for name in setting.names:
        parts.append((yield Receive(name, "noisy-share", (nodes, setting.model.width))))
    return ring.decode(reconstruct(parts), 2 * setting.protocol.bits).requires_grad_()


def _bounded(step: Tensor, setting: Setting, nodes: int) -> Tensor:
    """Return the step as ring elements, shortened so that |W| never passes C', where anything is protected; rounded
    towards zero: rounding to the nearest would lengthen it by up to sqrt(n h) / 2 units.
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
    return states.network_state(network, optimiser) | {"pull": velocity}
