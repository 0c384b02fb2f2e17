"""Products of private matrices with other parties' matrices, as conversations: who sends what, in which order.

    once        server -> holders  mask-keys;      owner -> others  masked-left  E = X - U
    each step   other -> owner     masked-right    F = w - V;       server -> other  correction  Z = U V - r

All parties hold the same list of `Left` (who owns which private matrix) and of `Product` (which of them is multiplied
with whose matrix); everybody sends all first and then receives in the list's order, so nobody waits in a circle.
The arithmetic and its source are in `sharing`.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import scipy.sparse
import torch
from torch import Tensor

from graphveil.federation.core.messages import Receive, Send
from graphveil.federation.crypto.masks import KEY_BYTES, MaskKey, packed, unpacked
from graphveil.federation.crypto.sharing import (
    DealtKeys,
    OwnerKeys,
    correction,
    left_mask,
    masked_left,
    masked_right,
    other_share,
    owner_share,
)
from graphveil.privacy import Randomness

#: A part of a program: yields effects, is sent what it received, returns what it found.
Talk = Generator[Any, Any, Any]


@dataclass(frozen=True)
class Left:
    """A private matrix [rows, columns] of one holder, and the holders whose matrices it is multiplied with."""

    name: str
    owner: str
    others: tuple[str, ...]
    rows: int
    columns: int


@dataclass(frozen=True)
class Product:
    """X w for the left matrix X and the matrix w [., width] of `other`; X^T w where transposed."""

    left: Left
    other: str
    width: int
    transposed: bool = False

    @property
    def inner(self) -> int:
        """Rows of w."""
        return self.left.rows if self.transposed else self.left.columns

    @property
    def outer(self) -> int:
        """Rows of the product."""
        return self.left.columns if self.transposed else self.left.rows


def products_with(lefts: Sequence[Left], width: int, *, transposed: bool = False) -> tuple[Product, ...]:
    """Return every private matrix times the matrix of each of its others: all products of one round, one way."""
    return tuple(Product(left, other, width, transposed) for left in lefts for other in left.others)


class Dealer:
    """The server's part: keys of masks, and corrections; it never sees what the masks hide."""

    def __init__(self, lefts: Sequence[Left], *, randomness: Randomness) -> None:
        self._lefts = tuple(lefts)
        self._masks: dict[tuple[str, bool], Tensor] = {}
        u = {left.name: MaskKey.fresh(randomness) for left in lefts}
        self._keys = {
            (left.name, other): DealtKeys(u[left.name], MaskKey.fresh(randomness), MaskKey.fresh(randomness))
            for left in lefts
            for other in left.others
        }

    def deal(self, holders: Sequence[str]) -> Talk:
        """Send every holder the keys of its masks."""
        for holder in holders:
            keys = [key for left in self._lefts for key in self._of(left, holder)]
            yield Send(holder, "mask-keys", packed(keys))

    def correct(self, products: Sequence[Product], step: str) -> Talk:
        """Send the other party of every product its correction."""
        for product in products:
            left = product.left
            keys, label = self._keys[left.name, product.other], mask_label(product, step)
            z = correction(keys, label, self._mask(left, transposed=product.transposed), product.width)
            yield Send(product.other, "correction", z)

    def _mask(self, left: Left, *, transposed: bool) -> Tensor:
        """Return U or U^T, kept: drawing it takes longer than multiplying it."""
        found = self._masks.get((left.name, transposed))
        if found is None:
            key = self._keys[left.name, left.others[0]].left
            u = left_mask(key, left.rows, left.columns)
            found = self._masks[left.name, transposed] = u.T.contiguous() if transposed else u
        return found

    def _of(self, left: Left, holder: str) -> list[MaskKey]:
        dealt = [self._keys[left.name, other] for other in left.others]
        if holder == left.owner:
            return [dealt[0].left, *(keys.blind for keys in dealt)] if dealt else []
        return [self._keys[left.name, holder].right] if holder in left.others else []


def keys_for(lefts: Sequence[Left], holder: str) -> int:
    """Return how many keys a holder is dealt."""
    own = sum(1 + len(left.others) for left in lefts if left.owner == holder and left.others)
    return own + sum(holder in left.others for left in lefts)


@dataclass(frozen=True)
class _Own:
    matrix: Any
    transposed: Any
    keys: Mapping[str, OwnerKeys]


@dataclass(frozen=True)
class _Foreign:
    masked: Tensor
    transposed: Any
    key: MaskKey


@dataclass(frozen=True)
class Masked:
    """What one holder has after the set-up: its own matrices with their keys, and the others' masked ones."""

    own: Mapping[str, _Own]
    foreign: Mapping[str, _Foreign]


def set_up(me: str, server: str, lefts: Sequence[Left], matrices: Mapping[str, Any], *, transposes: bool) -> Talk:
    """Receive keys, exchange masked matrices, and return `Masked`.

    Args:
        matrices: left name -> this holder's own ring elements, int64 dense or scipy CSR.
        transposes: keep transposed copies too, for products X^T w.
    """
    dealt = yield Receive(server, "mask-keys", (keys_for(lefts, me), KEY_BYTES))
    left_keys = iter(unpacked(dealt))
    own: dict[str, _Own] = {}
    rights: dict[str, MaskKey] = {}
    for left in lefts:
        if left.owner == me and left.others:
            u = next(left_keys)
            keys = {other: OwnerKeys(u, next(left_keys)) for other in left.others}
            matrix = matrices[left.name]
            e = masked_left(_dense(matrix), next(iter(keys.values())))
            for other in left.others:
                yield Send(other, "masked-left", e)
            own[left.name] = _Own(matrix, _turned(matrix) if transposes else None, keys)
        elif me in left.others:
            rights[left.name] = next(left_keys)
    foreign: dict[str, _Foreign] = {}
    for left in lefts:
        if left.name in rights:
            e = yield Receive(left.owner, "masked-left", (left.rows, left.columns))
            foreign[left.name] = _Foreign(e, e.T.contiguous() if transposes else None, rights[left.name])
    return Masked(own, foreign)


def multiply(
    me: str, server: str, masked: Masked, products: Sequence[Product], rights: Mapping[Product, Tensor], step: str
) -> Talk:
    """Return product -> this holder's share of it, for the products that this holder takes part in.

    Args:
        rights: product -> this holder's matrix w, for the products in which it is the other party.
        step: names this call; never used again in a run.
    """
    for product in products:
        if product.other == me:
            key = masked.foreign[product.left.name].key
            f = masked_right(rights[product], key, mask_label(product, step))
            yield Send(product.left.owner, "masked-right", f)
    shares: dict[Product, Tensor] = {}
    for product in products:
        label = mask_label(product, step)
        if product.left.owner == me:
            f = yield Receive(product.other, "masked-right", (product.inner, product.width))
            mine = masked.own[product.left.name]
            x = mine.transposed if product.transposed else mine.matrix
            shares[product] = owner_share(x, f, mine.keys[product.other], label)
        elif product.other == me:
            z = yield Receive(server, "correction", (product.outer, product.width))
            theirs = masked.foreign[product.left.name]
            e = theirs.transposed if product.transposed else theirs.masked
            shares[product] = other_share(e, theirs.key, z, label)
    return shares


def mask_label(product: Product, step: str) -> str:
    """Return what names the masks of a product in one step."""
    return f"{step} {product.left.name} {product.other} {'T' if product.transposed else 'N'}"


def _dense(matrix: Any) -> Tensor:
    return torch.from_numpy(matrix.toarray()) if scipy.sparse.issparse(matrix) else matrix


def _turned(matrix: Any) -> Any:
    return matrix.T.tocsr() if scipy.sparse.issparse(matrix) else matrix.T.contiguous()
