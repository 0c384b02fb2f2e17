"""S Y on shares, S = (1/I) sum_i S_i: rows averaged over everybody's edges, seen by nobody.

    S_i = D_i^-1 (A_i + I)   row-stochastic, at holder i        Y = sum_k Y_k, a share at each holder k
    set-up   S_i -> other holders and server, as keys of point functions:  S_i = S_i^0 + S_i^1 (see `hidden_matrix`)
    product  F_k = Y_k - V_k   k -> others, V_k from a key that k and the server know
             at i            S_i (Y_i + sum_{k != i} F_k)  +  sum_{j != i} S_j^0 V_i
             at the server   sum_i S_i^1 sum_{k != i} V_k                                      altogether  sum_i S_i Y

Features travel over the union of all holders' edges, more than any holder has alone.  V is new in each product.
Products of the V_k are computed beforehand, in one pass over the rows of S that the keys expand to: a block of rows in
memory, T n^2 words of work, n d words on the line.
Shapes: S_i [n, n] sparse, Y [n, d].
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
import scipy.sparse
import torch
from torch import Tensor

from graphveil.federation.crypto import ring
from graphveil.federation.crypto.hidden_matrix import HiddenMatrix, Shape, hide
from graphveil.federation.crypto.masks import KEY_BYTES, MaskKey, pack_keys, unpack_keys
from graphveil.federation.effects import Program, Receive, Roster, Send
from graphveil.privacy import Randomness

#: Features of one holder, float [n, d]: dense, or scipy CSR.
Features: TypeAlias = Tensor | np.ndarray | scipy.sparse.csr_array


def transition_matrix(edge_index: Tensor, nodes: int) -> scipy.sparse.csr_array:
    """Return S_i = D^-1 (A + I), float64 CSR [n, n]: row v averages v and those who send to v.

    Args:
        edge_index: sender and receiver of each edge, int64 [2, E]; an edge that comes twice counts once.
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


def rounded_down(s: scipy.sparse.csr_array, holders: int, bits: int) -> scipy.sparse.csr_array:
    """Return S_i / I in units of 2^-bits, int64 CSR [n, n].

    Args:
        s: S_i, float64 CSR.
        holders: I.
    """
    # Down, never to the nearest: rows of all holders' matrices together must not add up to more than 1.
    values = np.floor(s.data / holders * 2.0**bits).astype(np.int64)
    return scipy.sparse.csr_array((values, s.indices, s.indptr), shape=s.shape)


@dataclass(frozen=True)
class Walk:
    """One product with S, by public facts.

    Attributes:
        name: never used again in a run.
        columns: d.
        rows: which rows of the result are needed, int64; None: all.
        split: holder -> its columns, where its share is zero in all other columns; None: shares have all columns.
    """

    name: str
    columns: int
    rows: Tensor | None = None
    split: Mapping[str, slice] | None = None

    def mask(self, key: MaskKey, nodes: int, holder: str) -> Tensor:
        """Return V of a holder, int64 [n, d], zero outside its columns."""
        own = self.columns_of(holder)
        return self.in_all_columns(key.expand(f"V {self.name}", (nodes, own.stop - own.start)), holder)

    def in_all_columns(self, numbers: Tensor, holder: str) -> Tensor:
        """Return a holder's columns among all columns, zeros elsewhere, int64 [n, d].

        Args:
            numbers: of its columns, int64 [n, d_i].
        """
        widened = torch.zeros(len(numbers), self.columns, dtype=torch.int64)
        widened[:, self.columns_of(holder)] = numbers
        return widened

    def columns_of(self, holder: str) -> slice:
        """Return a holder's columns, all of them where nothing is split."""
        return slice(0, self.columns) if self.split is None else self.split[holder]

    def empty(self, nodes: int) -> Tensor:
        return torch.zeros(nodes if self.rows is None else len(self.rows), self.columns, dtype=torch.int64)


@dataclass(frozen=True)
class Walker:
    """A holder's side of products with S.

    Attributes:
        key: of its masks, dealt by the server.
        matrix: S_i in units.
        of_masks: name of a product -> what its masks contribute, with its shares of the other holders' matrices.
    """

    roster: Roster
    key: MaskKey = field(repr=False)
    matrix: scipy.sparse.csr_array
    of_masks: Mapping[str, Tensor] = field(repr=False)

    def masked(self, walk: Walk, share: Tensor) -> Program[Tensor]:
        """Exchange masked shares; return the sum of those of the other holders, int64 [n, d].

        Args:
            share: this holder's, int64 [n, d].
        """
        f = (share - walk.mask(self.key, len(share), self.roster.me))[:, walk.columns_of(self.roster.me)].contiguous()
        for name in self.roster.other_holders:
            # One masked share for all: what they see together is no more than F.
            yield Send(name, "masked-right", f)
        inner = torch.zeros_like(share)
        for name in self.roster.other_holders:
            columns = walk.columns_of(name)
            inner[:, columns] += yield Receive(name, "masked-right", (len(share), columns.stop - columns.start))
        return inner

    def product(self, walk: Walk, share: Tensor) -> Program[Tensor]:
        """Return this holder's part of S Y, int64 [rows, d], at the scale of Y times 2^f; the server has the rest."""
        inner = yield from self.masked(walk, share)
        return self.local(walk, share, inner)

    def local(self, walk: Walk, share: Tensor, inner: Tensor) -> Tensor:
        """Return what `product` returns, from masked shares that were exchanged before.

        Args:
            share: this holder's, int64 [n, d].
            inner: as `masked` returns it.
        """
        matrix = self.matrix if walk.rows is None else self.matrix[walk.rows.numpy()]
        # The masks in F come off in the parts of all others, by their shares of S_i: this sum is uniform to its holder.
        return ring.matmul(matrix, share + inner) + self.of_masks[walk.name]


def deal_keys(names: Sequence[str], *, randomness: Randomness) -> Program[dict[str, MaskKey]]:
    """The server's side: send every holder a new key; return all of them.

    Args:
        names: the holders in order.
    """
    keys = {name: MaskKey.fresh(randomness) for name in names}
    for name in names:
        yield Send(name, "mask-keys", pack_keys([keys[name]]))
    return keys


def receive_key(roster: Roster) -> Program[MaskKey]:
    return unpack_keys((yield Receive(roster.server, "mask-keys", (1, KEY_BYTES))))[0]


def open_walker(
    roster: Roster,
    key: MaskKey,
    matrix: scipy.sparse.csr_array,
    entries: Mapping[str, int],
    walks: Sequence[Walk],
    *,
    randomness: Randomness,
) -> Program[Walker]:
    """A holder's set-up: share S_i with all others, and multiply its masks with its shares of their matrices.

    Args:
        key: of its masks, dealt by the server.
        matrix: S_i in units, int64 CSR [n, n].
        entries: holder -> for how many entries a node its matrix has room; public.
        walks: all products of this session.
        randomness: of the keys that hide S_i.
    """
    nodes = matrix.shape[0]
    keys = MaskKey.fresh(randomness), MaskKey.fresh(randomness)
    corrections = hide(matrix, Shape.of(nodes, entries[roster.me]), keys)
    for name in (*roster.other_holders, roster.server):
        # Holders read the one share and the server the other: together they would know S_i.
        yield Send(name, "matrix-key", pack_keys([keys[name == roster.server]]))
        yield Send(name, "hidden-matrix", corrections)
    hidden = []
    for name in roster.other_holders:
        hidden.append((yield from _receive(name, Shape.of(nodes, entries[name]), 0)))
    masks = [walk.mask(key, nodes, roster.me) for walk in walks]
    return Walker(roster, key, matrix, _multiply_masks([(hidden, masks)], walks, nodes))


def serve_walks(
    names: Sequence[str], keys: Mapping[str, MaskKey], entries: Mapping[str, int], walks: Sequence[Walk], nodes: int
) -> Program[dict[str, Tensor]]:
    """The server's set-up: return its part of each product, int64 [rows, d], by name.

    Args:
        entries: holder -> for how many entries a node its matrix has room.
        walks: all products of this session.
    """
    hidden = []
    for name in names:
        hidden.append((yield from _receive(name, Shape.of(nodes, entries[name]), 1)))
    # S_i meets the masks of all holders but i, who multiplies its own share in the clear.
    pairs = (
        ([matrix], [torch.stack([walk.mask(keys[k], nodes, k) for k in names if k != i]).sum(dim=0) for walk in walks])
        for i, matrix in zip(names, hidden, strict=True)
    )
    return _multiply_masks(pairs, walks, nodes)


def _receive(name: str, shape: Shape, reader: int) -> Program[HiddenMatrix]:
    key = yield Receive(name, "matrix-key", (1, KEY_BYTES))
    corrections = yield Receive(name, "hidden-matrix", shape.corrections)
    return HiddenMatrix(shape, reader, unpack_keys(key)[0], corrections)


def _multiply_masks(
    pairs: Iterable[tuple[Sequence[HiddenMatrix], Sequence[Tensor]]], walks: Sequence[Walk], nodes: int
) -> dict[str, Tensor]:
    """Return the sum over pairs of (the sum of shares of matrices) times the mask of each walk, by the walk's name."""
    products = {walk.name: walk.empty(nodes) for walk in walks}
    for matrices, masks in pairs:
        nonzero = [mask.any(dim=0).nonzero().squeeze(1) for mask in masks]
        narrow = [mask[:, columns].contiguous() for mask, columns in zip(masks, nonzero, strict=True)]
        # Matrices that meet the same masks are added first: a block is multiplied once.
        for blocks in zip(*(matrix.blocks() for matrix in matrices), strict=True):
            rows, block = blocks[0][0], torch.stack([share for _, share in blocks]).sum(dim=0)
            for walk, mask, columns in zip(walks, narrow, nonzero, strict=True):
                if walk.rows is None:
                    products[walk.name][rows, columns] += ring.matmul(block, mask)
                    continue
                inside = ((walk.rows >= rows.start) & (walk.rows < rows.stop)).nonzero().squeeze(1)
                # Rows that nobody needs are not multiplied; which rows these are is public.
                product = ring.matmul(block[walk.rows[inside] - rows.start], mask)
                products[walk.name][inside[:, None], columns] += product
    return products
