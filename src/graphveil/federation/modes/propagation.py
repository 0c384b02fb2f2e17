"""P = S^K X on shares, S = (1/I) sum_i S_i: features propagated over everybody's edges, seen by nobody.

    S_i = D_i^-1 (A_i + I)   row-stochastic, at holder i        X_k   rows of length at most 1 / sqrt(I), at holder k
    one hop   P' = (1/I) sum_i S_i sum_k P_k,   for i != k and each block b of rows:
              E_b = S_b - U_b  i -> k,    F = P_k - V  k -> i,    Z_b = U_b V - r_b  dealer -> k
              S_b F + r_b at i,    E_b V + Z_b at k
              then truncated by all together (see `truncation`)

Features travel over the union of all holders' edges: more than any holder's own graph gives.  U is the same
in all hops, as S_i is; V and r are new.  Rows of P have length at most 1 whatever the data: the bound that publication
leans on.  Memory is a block of rows and n x d shares; n^2 words cross the wire in each hop and direction.
Shapes: S_i [n, n] sparse, X_k [n, d_k], P [n, d].
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import scipy.sparse
import torch
from torch import Tensor

from graphveil.federation.crypto import ring
from graphveil.federation.crypto.masks import KEY_BYTES, MaskKey, ZeroSum, packed, unpacked
from graphveil.federation.crypto.truncation import Scale, TruncationKeys, deal_truncation, truncate_shared
from graphveil.federation.effects import Program, Receive, Roster, Send
from graphveil.privacy import Randomness

#: Features of one holder, float [n, d]: dense, or scipy CSR.
Features: TypeAlias = Tensor | np.ndarray | scipy.sparse.csr_array
#: Words of a block that crosses the wire.
_WORDS = 1 << 21


def row_blocks(nodes: int) -> list[slice]:
    """Return the blocks of rows in which S_i is multiplied."""
    rows = max(1, _WORDS // nodes)
    return [slice(start, min(start + rows, nodes)) for start in range(0, nodes, rows)]


def transition_matrix(edge_index: Tensor, nodes: int) -> scipy.sparse.csr_array:
    """Return S_i = D^-1 (A + I), float64 CSR [n, n]: row v averages v and those who send to v.

    Args:
        edge_index: sender and receiver of each edge, int64 [2, E]; an edge that comes twice counts once.
        nodes: n.
    """
    weights = np.ones(edge_index.shape[1])
    a = scipy.sparse.csr_array((weights, (edge_index[1].numpy(), edge_index[0].numpy())), shape=(nodes, nodes))
    # Self-loops make every row's sum at least 1: nobody is divided by zero, and nobody's own row is lost.
    a = (a > 0).astype(float) + scipy.sparse.eye_array(nodes, format="csr")
    return (scipy.sparse.diags_array(1.0 / a.sum(axis=1)) @ a).tocsr()


def scaled_rows(features: Features, holders: int, length: float = 1 - 2.0**-20) -> Tensor:
    """Return rows of length `length` / sqrt(I), dense float64 [n, d_i]; rows of zeros stay.

    Args:
        features: floats [n, d_i].
        holders: I.
        length: of a person's rows at all holders together, in (0, 1).
    """
    rows = torch.as_tensor(features if isinstance(features, Tensor | np.ndarray) else features.toarray())
    # In float64, whose rounding is what `dither.Bounds` keeps 2^-20 back for.
    lengths = torch.linalg.vector_norm(rows.double(), dim=1, keepdim=True)
    scale: Tensor = lengths.clamp_min(1e-12).reciprocal() * (length / math.sqrt(holders))
    return rows.double() * scale


@dataclass(frozen=True)
class PropagationKeys:
    """One holder's keys: U of its matrix, V of its shares, r for each other holder, and of truncations."""

    left: MaskKey
    right: MaskKey
    blind: dict[str, MaskKey]
    truncation: TruncationKeys

    @staticmethod
    def fresh(me: str, names: Sequence[str], *, randomness: Randomness) -> PropagationKeys:
        blind = {name: MaskKey.fresh(randomness) for name in names if name != me}
        left, right = MaskKey.fresh(randomness), MaskKey.fresh(randomness)
        return PropagationKeys(left, right, blind, TruncationKeys.fresh(randomness))

    def message(self) -> Tensor:
        return packed([self.left, self.right, *self.blind.values(), self.truncation.mask, self.truncation.cut])

    @staticmethod
    def of(message: Tensor, me: str, names: Sequence[str]) -> PropagationKeys:
        """Return the keys in a message, uint8 [keys, 32], to the holder `me` of all holders `names`."""
        # In the order of `message`: the two must change together.
        left, right, *blind, mask, cut = unpacked(message)
        other_holders = [name for name in names if name != me]
        return PropagationKeys(left, right, dict(zip(other_holders, blind, strict=True)), TruncationKeys(mask, cut))


def deal_keys(names: Sequence[str], *, randomness: Randomness) -> Program[dict[str, PropagationKeys]]:
    """The dealer's set-up: send every holder new keys; return all keys, by holder."""
    keys = {name: PropagationKeys.fresh(name, names, randomness=randomness) for name in names}
    for name in names:
        yield Send(name, "mask-keys", keys[name].message())
    return keys


def receive_keys(roster: Roster) -> Program[PropagationKeys]:
    message = yield Receive(roster.server, "mask-keys", (len(roster.holders) + 3, KEY_BYTES))
    return PropagationKeys.of(message, roster.me, roster.holders)


def deal_propagation(keys: dict[str, PropagationKeys], nodes: int, columns: int, hops: int, bits: int) -> Program[None]:
    """The dealer's part of K hops: corrections of all products, and of truncations.

    Args:
        keys: of every holder.
        nodes: n.
        columns: d.
        hops: K.
        bits: s, how many are cut off after each hop.
    """
    truncation = {name: key.truncation for name, key in keys.items()}
    for hop in range(hops):
        # New in each hop: P changes, and one V over two values would show their difference to all who own a matrix.
        v = {name: key.right.expand(f"V {hop}", (nodes, columns)) for name, key in keys.items()}
        for number, rows in enumerate(row_blocks(nodes)):
            size = rows.stop - rows.start
            for key in keys.values():
                # The same in all hops, since it hides the same rows of S: a new one would have them sent again.
                u = key.left.expand(f"U {number}", (size, nodes))
                for k, blind in key.blind.items():
                    r = blind.expand(f"r {hop} {number}", (size, columns))
                    yield Send(k, "correction", ring.matmul(u, v[k]) - r)
        yield from deal_truncation(truncation, (nodes, columns), bits, f"hop {hop}")


def propagate_shares(
    zero: ZeroSum, keys: PropagationKeys, s: scipy.sparse.csr_array, share: Tensor, hops: int, scale: Scale
) -> Program[Tensor]:
    """Return this holder's share of S^K X, int64 [n, d], propagated together with all other holders and the dealer.

    Args:
        zero: this holder's masks that add up to zero.
        keys: those it was dealt.
        s: S_i, float64 CSR [n, n].
        share: X_i in its own columns and zeros elsewhere, ring elements int64 [n, d].
        hops: K.
        scale: how many bits are cut off after each hop.
    """
    nodes, columns = share.shape
    mine = _rounded_down(s, len(zero.roster.holders), scale.bits)
    # X_i stands in the clear in its share; with this mask any I - 1 shares of X are uniform.
    share = share + zero.mask("spread", (nodes, columns))
    for hop in range(hops):
        product = yield from _one_hop(zero.roster, keys, mine, share, hop)
        share = yield from truncate_shared(zero, product, keys.truncation, scale, f"hop {hop}")
    return share


def _one_hop(
    roster: Roster, keys: PropagationKeys, mine: scipy.sparse.csr_array, share: Tensor, hop: int
) -> Program[Tensor]:
    """Return this holder's share of (1/I) sum_i S_i P [n, d], not yet truncated, from its share of P."""
    nodes, columns = share.shape
    v = keys.right.expand(f"V {hop}", (nodes, columns))
    for name in roster.other_holders:
        # One masked share for all owners: they see the same F, so what they see together is no more than F.
        yield Send(name, "masked-right", share - v)
    arrived = []
    for name in roster.other_holders:
        arrived.append((yield Receive(name, "masked-right", (nodes, columns))))
    # The masks V in F are taken off by the corrections, not here: this sum is uniform to its holder.
    inner = share + torch.stack(arrived).sum(dim=0)  # own share and everybody's F meet S_i in one product
    parts = []
    for number, rows in enumerate(row_blocks(nodes)):
        size = rows.stop - rows.start
        here = mine[rows]
        # Dense on the wire, zeros too: a sparse one would show how many neighbours each person has.
        e = torch.from_numpy(here.toarray()) - keys.left.expand(f"U {number}", (size, nodes))
        part = ring.matmul(here, inner)
        for name in roster.other_holders:
            yield Send(name, "masked-left", e)
            part += keys.blind[name].expand(f"r {hop} {number}", (size, columns))
        for name in roster.other_holders:  # a block at a time, so that nobody is more than one ahead
            masked = yield Receive(name, "masked-left", (size, nodes))
            z = yield Receive(roster.server, "correction", (size, columns))
            part += ring.matmul(masked, v) + z
        parts.append(part)
    return torch.cat(parts)


def _rounded_down(s: scipy.sparse.csr_array, holders: int, bits: int) -> scipy.sparse.csr_array:
    # Down, never to the nearest: rows of all holders' matrices together must not add up to more than 1.
    values = np.floor(s.data / holders * 2.0**bits).astype(np.int64)
    return scipy.sparse.csr_array((values, s.indices, s.indptr), shape=s.shape)
