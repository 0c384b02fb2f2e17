"""Mode "shared-linear": z = S^K X W on shares, opened to the server alone, with every holder's noise inside.

    P_o = S^K X, rows o that train (t) or validate, once (see `propagation`)        W = W_0 + P_t^T A
    G = P_o P_t^T,  Z_0 = P_o W_0   once        E_P = P_o - U, E_G = G - U' known to all holders; U, U' to the server
    round    A -> holders, in shares that are uniform: its rows in the clear would show the labels
             Z_0 + E_G A + noise -> server,  which adds U' A:  z = P_o W, of those who train, in some rounds of others
             h = unit( tanh( z V ) ), hidden layers, the label holder;   A <- A - rate dz, |A| bounded (see `dither`)
    end      W = W_0 + E_P^T A + U^T A,  X W,  S^K (X W), for the rows that were never opened

The weights move by A alone, which the server computes itself: products of what it knows it takes alone, and the size of
what a round sends does not depend on d.  Nothing is opened between holders.  The server deals the masks of what holders
exchange; what it receives is masked by keys that it never sees, so it reads only the sum.  Each holder adds all the
noise that its own guarantee needs, down to the lowest bit, and rows of P, G and W stay within public bounds for any
data.  With epsilon inf the server can solve z = Z_0 + G A for G: how similar those who train are to each other.
Source: ours; the opened first layer of Chen et al., IJCAI 2022, gives features away.  Multiplied by what the dealer
knows: Beaver, CRYPTO 1991; weights as sums of rows: the representer theorem.
Shapes: X [n, d], P_o [m, d], G [m, t], W [d, h], A [t, h], z [n, h].
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

from graphveil.federation.core import states
from graphveil.federation.core.publisher import Publisher
from graphveil.federation.core.rows import REST, TRAIN, PublishesRows, Rows, publishers_of, receive_rows
from graphveil.federation.core.setting import Setting
from graphveil.federation.crypto import ring
from graphveil.federation.crypto.commitments import SALT, Commitment, name_publication
from graphveil.federation.crypto.masks import MaskKey, ZeroSum, agree_on_masks, as_message
from graphveil.federation.crypto.sharing import secret_numbers
from graphveil.federation.crypto.truncation import Scale, truncate_shared
from graphveil.federation.effects import Checkpoint, Program, Receive, Send
from graphveil.federation.modes import propagation
from graphveil.federation.modes.holder import Holding
from graphveil.federation.modes.labels import LabelHead
from graphveil.federation.modes.propagation import Walk, Walker

#: The least bound B of products before truncation: of rows of length 1, and of weights where epsilon is inf.
# The chance that a result is 0 in place of its value grows with B: it is B 2^-63 an element.
_REACH, _REACH_UNPROTECTED = 4.0, 64.0


def _scale_of(setting: Setting, *, weights: bool = False) -> Scale:
    """Return the bits to cut off products, and the products' bound; where epsilon is inf nothing else bounds W."""
    least = _REACH_UNPROTECTED if weights and setting.publication.public else _REACH
    return Scale(setting.protocol.bits, math.ceil(max(least, setting.privacy.clip)) << (2 * setting.protocol.bits))


def hops_of(setting: Setting, rows: Rows) -> list[Walk]:
    """Return the products of P_o = S^K X; the first begins with every holder's own columns, the last gives rows o.

    Args:
        rows: who trains and who validates.
    """
    last = setting.model.hops - 1
    return [
        Walk(f"hop {hop}", setting.columns, rows.train_val if hop == last else None, None if hop else setting.blocks)
        for hop in range(setting.model.hops)
    ]


def last_hops_of(setting: Setting, rows: Rows) -> list[Walk]:
    """Return the products of S^K (X W), for the rows that were never opened.

    Args:
        rows: who trains and who validates.
    """
    last = setting.model.hops - 1
    return [
        Walk(f"last hop {hop}", setting.model.width, rows.rest if hop == last else None)
        for hop in range(setting.model.hops)
    ]


@dataclass(frozen=True)
class Final:
    """A holder's shares for the rows that never trained: S^(K-1) X W before the last hop [n, h], and W [d, h]."""

    y: Tensor
    weights: Tensor


@dataclass(frozen=True)
class LinearHolder(PublishesRows):
    """A holder's state in a run, which its program returns.

    Attributes:
        p, gram, z: its shares of P_o [m, d], G [m, t] and Z_0 [m, h], int64; they never change.
        w: its share of W_0, int64 [d, h].
        a: its share of A, int64 [t, h].
        salt: of its commitments, secret.
        final: None before the round that computes it.
        head: at the label holder alone.
    """

    p: Tensor
    gram: Tensor
    z: Tensor
    w: Tensor
    a: Tensor
    salt: bytes = field(repr=False)
    publishers: Mapping[str, Publisher]
    head: LabelHead | None
    final: Final | None = None

    def state(self) -> dict[str, Tensor]:
        shares = {"p": self.p, "gram": self.gram, "z": self.z, "w": self.w, "a": self.a}
        if self.final is not None:
            shares |= {"y": self.final.y, "weights": self.final.weights}
        shares["seal/salt"] = as_message(self.salt)
        shares |= states.publishers_state(self.publishers)
        return shares | (self.head.state() if self.head is not None else {})


def linear_holder(run: states.RunContext, holding: Holding) -> Program[LinearHolder]:
    """The program of one holder in mode "shared-linear": return its shares, publishers and predictions.

    Args:
        run: its run; the randomness is that of its shares, of the noise's key and of the keys of masks.
    """
    setting, head = run.setting, holding.head
    publishers = publishers_of(setting, MaskKey.fresh(run.randomness))
    if run.state is not None:
        states.load_publishers(publishers, run.state)
        if head is not None:
            head.load(run.state)
    announced = head.announce_rows(setting) if head is not None else receive_rows(setting, holding.nodes)
    exchange = yield from open_exchange(run, holding, announced, propagates=run.state is None)
    p = run.state["p"] if run.state is not None else (yield from _propagate_features(exchange))
    e = yield from exchange.open("masked-left", p, "P")
    if run.state is None:
        party = yield from _initial(exchange, p, e, publishers, head)
    else:
        shares = {name: run.state[name] for name in ("p", "gram", "z", "w", "a")}
        salt = run.state["seal/salt"].numpy().tobytes()
        final = Final(run.state["y"], run.state["weights"]) if "y" in run.state else None
        party = LinearHolder(**shares, salt=salt, publishers=publishers, head=head, final=final)
    masked = yield from _masked_products(exchange, party, e)
    if run.state is None:  # so that a first round that runs again has the same key, shares and randomized labels
        yield Checkpoint(0, party.state)
    for round in run.rounds_left:
        yield from _publish(exchange, masked, party, round)
        if head is not None:
            yield from head.answer_steps(setting, round)
        party = replace(party, a=(yield from _receive_share(exchange, f"A {round}")))
        yield Checkpoint(round, party.state, party.spent)
    if (final := party.final) is None:
        step = ring.matmul(masked.e_p.T.contiguous(), party.a)
        scale = _scale_of(setting, weights=True)
        step = yield from truncate_shared(exchange.zero, step, exchange.key, scale, "weights")
        weights = party.w + step
        final = Final((yield from multiply_inputs(exchange, weights)), weights)
        party = replace(party, final=final)
        # Saved before it is opened: computed again it would round otherwise, and open another sum under the same noise.
        yield Checkpoint(setting.publications + 1, party.state, party.spent)
    if run.done < setting.rounds:
        yield from publish_rest(exchange, masked.commitment, final.y, party.publishers[REST], setting.rounds)
        if head is not None:
            yield from head.finish(setting)
        yield Checkpoint(setting.rounds, party.state, party.spent)
    return party


@dataclass(frozen=True)
class Exchange:
    """What a holder holds in one session.

    Attributes:
        zero: its masks that add up to zero.
        key: of its masks, dealt by the server.
        x: its features as ring elements, int64 [n, d_i].
        inner: the masked features of all other holders, int64 [n, d], zeros in its own columns.
    """

    run: states.RunContext
    rows: Rows
    zero: ZeroSum
    key: MaskKey = field(repr=False)
    walker: Walker
    x: Tensor
    inner: Tensor

    def open(self, kind: str, share: Tensor, label: str) -> Program[Tensor]:
        """Exchange masked shares with all holders; return x - U of the sum x, int64, the same at all.

        Args:
            share: this holder's of x.
            label: names the mask; never used again in a session.
        """
        masked = share - self.key.expand(label, tuple(share.shape))
        for name in self.run.roster.other_holders:
            yield Send(name, kind, masked)
        total = masked.clone()
        for name in self.run.roster.other_holders:
            total += yield Receive(name, kind, tuple(share.shape))
        return total


def open_exchange(
    run: states.RunContext, holding: Holding, announced: Program[Rows], *, propagates: bool
) -> Program[Exchange]:
    """Receive keys, agree on masks, share the matrix, and exchange masked features: anew in every session.

    Args:
        announced: a program that sends or receives which rows are published when.
        propagates: whether P is still to be computed.
    """
    setting, roster = run.setting, run.roster
    key = yield from propagation.receive_key(roster)
    # In every session, also a resumed one: a round that runs again may have used the masks of an earlier session.
    zero = yield from agree_on_masks(roster, randomness=run.randomness)
    rows = yield from announced
    matrix = propagation.rounded_down(
        propagation.transition_matrix(holding.edge_index, holding.nodes), len(setting.members), setting.protocol.bits
    )
    hops = hops_of(setting, rows)
    walks = [*(hops if propagates else []), *last_hops_of(setting, rows)]
    walker = yield from propagation.open_walker(roster, key, matrix, setting.entries, walks, randomness=run.randomness)
    # Rounded once, before anything is shared: all parties compute exactly from here on.
    x = ring.encode(
        propagation.scaled_rows(holding.features, len(setting.members), setting.bounds.row_length),
        setting.protocol.bits,
    )
    inner = yield from walker.masked(hops[0], hops[0].in_all_columns(x, run.me))
    return Exchange(run, rows, zero, key, walker, x, inner)


def _propagate_features(exchange: Exchange) -> Program[Tensor]:
    """Propagate the features together with all other holders; return this holder's share of P_o, int64 [m, d]."""
    run, walker, zero, key = exchange.run, exchange.walker, exchange.zero, exchange.key
    first, *hops = hops_of(run.setting, exchange.rows)
    # The masked features were exchanged already: they serve the first hop, and X W in the end.
    p = walker.local(first, first.in_all_columns(exchange.x, run.me), exchange.inner)
    p = yield from truncate_shared(zero, p, key, _scale_of(run.setting), first.name)
    for walk in hops:
        p = yield from walker.product(walk, p)
        p = yield from truncate_shared(zero, p, key, _scale_of(run.setting), walk.name)
    return p


def _initial(
    exchange: Exchange, p: Tensor, e: Tensor, publishers: Mapping[str, Publisher], head: LabelHead | None
) -> Program[LinearHolder]:
    """Draw a share of W_0, and multiply what never changes: G and Z_0, from P = E + U."""
    run, t = exchange.run, exchange.rows.slice_of(TRAIN)
    setting, u = run.setting, exchange.key.expand("P", tuple(p.shape))
    # (E + U)(E + U)^T less U U^T, which the server knows; E E^T is the first holder's to add.
    gram = ring.matmul(e, u[t].T) + ring.matmul(u, e[t].T)
    if run.me == setting.names[0]:
        gram += ring.matmul(e, e[t].T)
    gram = yield from truncate_shared(exchange.zero, gram, exchange.key, _scale_of(setting), "gram")
    # Drawn from the secret source and not the seeded one: knowing W one could solve z = P W for the features.
    drawn = secret_numbers((setting.columns, setting.model.width), randomness=run.randomness)
    w = ring.encode(drawn * setting.bounds.start_entry, setting.protocol.bits)
    f = yield from exchange.open("masked-right", w, "W")
    # E W_0 + U F; the server knows U V.
    z = ring.matmul(e, w) + ring.matmul(u, f)
    a = torch.zeros(len(exchange.rows.train), setting.model.width, dtype=torch.int64)
    return LinearHolder(p, gram, z, w, a, run.randomness.bytes(SALT), publishers, head)


@dataclass(frozen=True)
class _MaskedProducts:
    """E_P of those who train [t, d] and E_G [m, t] of this session, and the commitment to all that never changes."""

    e_p: Tensor
    e_gram: Tensor
    commitment: Commitment


def _masked_products(exchange: Exchange, party: LinearHolder, e: Tensor) -> Program[_MaskedProducts]:
    e_gram = yield from exchange.open("masked-left", party.gram, "G")
    matrix = exchange.walker.matrix
    fixed = [party.p, party.gram, party.z, party.w, exchange.x, matrix.data, matrix.indices, matrix.indptr]
    commitment = Commitment.of([*fixed, exchange.rows.train_val], party.salt)
    # Of those who train alone: weights move along no other rows.
    return _MaskedProducts(e[exchange.rows.slice_of(TRAIN)], e_gram, commitment)


def _publish(exchange: Exchange, masked: _MaskedProducts, party: LinearHolder, round: int) -> Program[None]:
    """Send the server this holder's noisy share of z, masked so that only the sum of all shares is readable."""
    run, rows = exchange.run, exchange.rows
    # The name comes first: noise, count and note on disk all follow from it.
    name = yield from name_publication(run.roster, round, masked.commitment.to(party.a))
    for group in rows.groups(run.setting, round):
        positions = rows.slice_of(group)
        z = party.z[positions] + ring.matmul(masked.e_gram[positions], party.a)
        noisy = _noisy(exchange, party.publishers[group], f"{group} {round}", name, z)
        yield Send(run.setting.server, "noisy-share", noisy, name)


def _noisy(exchange: Exchange, publisher: Publisher, label: str, name: str, z: Tensor) -> Tensor:
    """Return a share of rows of z with this holder's noise and mask.

    Args:
        label: group of rows and round.
        name: of the publication.
        z: this holder's share, int64 [rows, h].
    """
    shape = (len(z), z.shape[1])
    # Counted before anything leaves: a publication beyond the budget is refused here.
    publisher.count(name)
    z = z + exchange.zero.mask(f"open {label}", shape)
    dither = exchange.run.setting.dither_of(publisher.publication)
    return z if dither is None else z + publisher.noise_for(label, name, shape, dither)


def _receive_share(exchange: Exchange, label: str) -> Program[Tensor]:
    """Return this holder's share of A, int64 [t, h]: the second holder receives its share, all others expand theirs."""
    setting, shape = exchange.run.setting, (len(exchange.rows.train), exchange.run.setting.model.width)
    if exchange.run.me != setting.names[1]:
        return exchange.key.expand(label, shape)
    share: Tensor = yield Receive(setting.server, "gradient-share", shape)
    return share


def multiply_inputs(exchange: Exchange, weights: Tensor) -> Program[Tensor]:
    """Return this holder's share of S^(K-1) X W, int64 [n, h].

    Args:
        weights: this holder's share of W, int64 [d, h].
    """
    run, zero, key, walker = exchange.run, exchange.zero, exchange.key, exchange.walker
    setting, blocks = run.setting, run.setting.blocks
    scale = _scale_of(setting, weights=True)
    mask = key.expand("weights of X", tuple(weights.shape))
    f = weights - mask
    for name in run.roster.other_holders:
        yield Send(name, "masked-right", f[blocks[name]].contiguous())
    total = weights[blocks[run.me]].clone()
    for name in run.roster.other_holders:
        total += yield Receive(name, "masked-right", tuple(total.shape))
    mask[blocks[run.me]] = 0
    # X_k (W_k + sum F) of its own columns, and E V of the others'; the server knows their masks and multiplies U V.
    y = ring.matmul(exchange.x, total) + ring.matmul(exchange.inner, mask)
    y = yield from truncate_shared(zero, y, key, scale, "inputs")
    for walk in last_hops_of(setting, exchange.rows)[:-1]:
        y = yield from walker.product(walk, y)
        y = yield from truncate_shared(zero, y, key, scale, walk.name)
    return y


def publish_rest(
    exchange: Exchange, commitment: Commitment, y: Tensor, publisher: Publisher, round: int
) -> Program[None]:
    """Send the server noisy shares of S^K X W, of the rows that were never opened: an exact product, like z.

    Args:
        commitment: to all that never changes.
        y: this holder's share of S^(K-1) X W, int64 [n, h].
    """
    setting = exchange.run.setting
    name = yield from name_publication(exchange.run.roster, round, commitment.to(y))
    z = yield from exchange.walker.product(last_hops_of(setting, exchange.rows)[-1], y)
    yield Send(setting.server, "noisy-share", _noisy(exchange, publisher, f"{REST} {round}", name, z), name)
