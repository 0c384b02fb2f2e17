"""P_i = S_i^K X on shares, once: holder i's propagation matrix times every other holder's features, in blocks of rows.

    S_i = D^-1 (A_i + I)   row-stochastic, at holder i         X_j   rows of length at most 1 / sqrt(I), at holder j
    for each block b of rows of S_i^K:   E_b = S_b - U_b to j;   A_b = S_b F + r_b at i,   B_b = E_b V + Z_b at j
    A + B = S_i^K X_j at scale 2^32, truncated to the run's scale by the pair

F = X_j - V is sent once: V hides the same X_j in every block, each U_b is new.  Rows of P_i have length at most 1
whatever the data: the public bound that publication leans on.  Memory is a block of rows; n^2 words cross the wire.
Shapes: S_i^K [n, n] (never held whole), X_j [n, d_j].
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import scipy.sparse
import torch
from torch import Tensor

from graphveil.federation import ring
from graphveil.federation.masks import KEY_BYTES, MaskKey, packed, unpacked
from graphveil.federation.messages import Receive, Send
from graphveil.federation.products import Talk
from graphveil.federation.sharing import DealtKeys, truncate
from graphveil.privacy import Randomness

#: Fraction bits of both factors; their product has twice as many.
ONCE_BITS = 16
#: Words of a block that crosses the wire.
_WORDS = 1 << 21


def row_blocks(nodes: int) -> list[slice]:
    """Return the blocks of rows in which S_i^K is multiplied."""
    rows = max(1, _WORDS // nodes)
    return [slice(start, min(start + rows, nodes)) for start in range(0, nodes, rows)]


def propagation_rows(edge_index: Tensor, nodes: int, hops: int) -> Iterator[Tensor]:
    """Yield S^K in blocks of rows, float64 [b, n]."""
    ones = np.ones(edge_index.shape[1])
    a = scipy.sparse.csr_array((ones, (edge_index[1].numpy(), edge_index[0].numpy())), shape=(nodes, nodes))
    a = (a > 0).astype(float) + scipy.sparse.eye_array(nodes, format="csr")
    s = (scipy.sparse.diags_array(1.0 / a.sum(axis=1)) @ a).T.tocsr()
    for rows in row_blocks(nodes):
        block = np.zeros((nodes, rows.stop - rows.start))
        block[np.arange(rows.start, rows.stop), np.arange(block.shape[1])] = 1.0
        for _ in range(hops):
            block = s @ block
        yield torch.from_numpy(np.ascontiguousarray(block.T))


def short_rows(features: Any, holders: int) -> Tensor:
    """Return feature rows, dense float64, shortened to length 1 / sqrt(I) where they are longer."""
    rows = torch.from_numpy(features.toarray()) if scipy.sparse.issparse(features) else torch.as_tensor(features)
    most = 1 / math.sqrt(holders)
    lengths = torch.linalg.vector_norm(rows.double(), dim=1, keepdim=True)
    return torch.mul(rows.double(), most / lengths.clamp_min(most))


def deal_once(names: Sequence[str], columns: dict[str, int], nodes: int, *, randomness: Randomness) -> Talk:
    """The dealer's part."""
    keys: dict[tuple[str, str], DealtKeys] = {}
    for i in names:
        left = MaskKey.fresh(randomness)
        for j in names:
            if i != j:
                keys[i, j] = DealtKeys(left, MaskKey.fresh(randomness), MaskKey.fresh(randomness))
    for me in names:
        mine = [keys[me, j] for j in names if j != me]
        parts = [mine[0].left, *(key.blind for key in mine), *(keys[i, me].right for i in names if i != me)]
        yield Send(me, "mask-keys", packed(parts))
    for number, rows in enumerate(row_blocks(nodes)):
        size = rows.stop - rows.start
        for (_, j), dealt in keys.items():
            u, v = dealt.left.expand(f"U {number}", (size, nodes)), dealt.right.expand("V", (nodes, columns[j]))
            yield Send(j, "correction", ring.matmul(u, v) - dealt.blind.expand(f"r {number}", (size, columns[j])))


def propagate_once(
    me: str,
    server: str,
    names: Sequence[str],
    columns: dict[str, int],
    edge_index: Tensor,
    x: Tensor,
    hops: int,
    bits: int,
) -> Talk:
    """Return ({j: A_ij}, {i: B_ij}) for this holder as i and as j, ring elements; at j = i the product itself.

    Args:
        x: this holder's features, rows of bounded length [n, d_i].
    """
    nodes, others = len(x), [name for name in names if name != me]
    dealt = yield Receive(server, "mask-keys", (1 + 2 * len(others), KEY_BYTES))
    u, *rest = unpacked(dealt)
    blind, right = dict(zip(others, rest, strict=False)), dict(zip(others, rest[len(others) :], strict=True))
    plain = ring.encode(x, ONCE_BITS)
    v = {i: right[i].expand("V", tuple(x.shape)) for i in others}
    for i in others:
        yield Send(i, "masked-right", plain - v[i])
    f = {}
    for j in others:
        f[j] = yield Receive(j, "masked-right", (nodes, columns[j]))
    own: list[Tensor] = []
    mine: dict[str, list[Tensor]] = {j: [] for j in others}
    theirs: dict[str, list[Tensor]] = {i: [] for i in others}
    for number, rows in enumerate(propagation_rows(edge_index, nodes, hops)):
        s = ring.encode(rows, ONCE_BITS)
        own.append(rows @ x)
        e = s - u.expand(f"U {number}", tuple(s.shape))
        for j in others:
            yield Send(j, "masked-left", e)
            r = blind[j].expand(f"r {number}", (len(s), columns[j]))
            mine[j].append(truncate(ring.matmul(s, f[j]) + r, 2 * ONCE_BITS - bits, first=True))
        for i in others:  # a block at a time, so that nobody is more than one ahead
            masked = yield Receive(i, "masked-left", tuple(s.shape))
            z = yield Receive(server, "correction", (len(s), columns[me]))
            theirs[i].append(truncate(ring.matmul(masked, v[i]) + z, 2 * ONCE_BITS - bits, first=False))
    found = {j: torch.cat(parts) for j, parts in mine.items()} | {me: ring.encode(torch.cat(own), bits)}
    return found, {i: torch.cat(parts) for i, parts in theirs.items()}
