"""Products of private matrices with other parties' matrices, as conversations: who sends what, in which order.

    once        server -> holders  mask-keys;      owner -> others  masked-left  E = X - U
    each step   other -> owner     masked-right    F = w - V;       server -> other  correction  Z = U V - r

All parties hold the same list of `LeftMatrix` and of `Product`; everybody sends all first and then receives in the
list's order, so no parties wait for each other.  The arithmetic and its source are in `sharing`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import torch
from torch import Tensor

from graphveil.federation.crypto.masks import KEY_BYTES, MaskKey, pack_keys, unpack_keys
from graphveil.federation.crypto.ring import RingMatrix
from graphveil.federation.crypto.sharing import (
    DealerKeys,
    correction,
    left_mask,
    masked_left,
    masked_right,
    other_share,
    owner_share,
)
from graphveil.federation.effects import Program, Receive, Roster, Send
from graphveil.privacy import Randomness

M = TypeVar("M")


@dataclass(frozen=True)
class LeftMatrix:
    """A private matrix X [rows, columns], the left factor of products; its name is unique in a run.

    Attributes:
        owner: the holder that has it.
        partners: the holders whose matrices it is multiplied with.
    """

    name: str
    owner: str
    partners: tuple[str, ...]
    rows: int
    columns: int


@dataclass(frozen=True)
class Product:
    """X w for the left matrix X and the matrix w [., width] of `other`; X^T w where transposed."""

    left: LeftMatrix
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


def products_with(lefts: Sequence[LeftMatrix], width: int, *, transposed: bool = False) -> tuple[Product, ...]:
    """List every private matrix times the matrix of each of its partners, in the order in which all parties take them.

    Args:
        lefts: the private matrices.
        width: columns of the right factors.
        transposed: X^T w in place of X w.
    """
    return tuple(Product(left, other, width, transposed) for left in lefts for other in left.partners)


class Dealer:
    """The server's part: keys of masks, and corrections; it never sees what the masks hide."""

    def __init__(self, lefts: Sequence[LeftMatrix], *, randomness: Randomness) -> None:
        self._lefts = tuple(lefts)
        self._masks: dict[tuple[str, bool], Tensor] = {}
        u = {left.name: MaskKey.fresh(randomness) for left in lefts}
        self._keys = {
            (left.name, other): DealerKeys(u[left.name], MaskKey.fresh(randomness), MaskKey.fresh(randomness))
            for left in lefts
            for other in left.partners
        }

    def deal(self, holders: Sequence[str]) -> Program[None]:
        """Send every holder the keys of its masks."""
        for holder in holders:
            keys = [key for left in self._lefts for key in self._keys_of(left, holder)]
            yield Send(holder, "mask-keys", pack_keys(keys))

    def correct(self, products: Sequence[Product], step: str) -> Program[None]:
        """Send the other party of every product its correction Z.

        Args:
            step: names the call of `multiply` that this is for; never used again in a run.
        """
        for product in products:
            left = product.left
            keys, label = self._keys[left.name, product.other], _mask_label(product, step)
            z = correction(keys, label, self._mask(left, transposed=product.transposed), product.width)
            yield Send(product.other, "correction", z)

    def _mask(self, left: LeftMatrix, *, transposed: bool) -> Tensor:
        """Return U or U^T; cached, because drawing it takes longer than multiplying it."""
        mask = self._masks.get((left.name, transposed))
        if mask is None:
            # All pairs of one left matrix hold the same U, so any of them will do.
            key = self._keys[left.name, left.partners[0]].left
            u = left_mask(key, left.rows, left.columns)
            mask = self._masks[left.name, transposed] = u.T.contiguous() if transposed else u
        return mask

    def _keys_of(self, left: LeftMatrix, holder: str) -> list[MaskKey]:
        # The owner is given U and r but never V, the other party V alone: each lacks the mask of what it is sent.
        dealt = [self._keys[left.name, other] for other in left.partners]
        if holder == left.owner:
            return [dealt[0].left, *(keys.blind for keys in dealt)] if dealt else []
        return [self._keys[left.name, holder].right] if holder in left.partners else []


@dataclass(frozen=True)
class _OwnMatrix:
    """X [n, d] and X^T of its owner, and the key of r for each other party."""

    matrix: RingMatrix
    transposed: RingMatrix
    blinds: Mapping[str, MaskKey]


@dataclass(frozen=True)
class _MaskedMatrix:
    """E = X - U [n, d] and E^T of another owner, and the key of V."""

    masked: Tensor
    transposed: Tensor
    key: MaskKey


@dataclass(frozen=True)
class MaskedMatrices:
    """What a holder has after the set-up: its own matrices with their keys, and the masked ones of others, by name."""

    roster: Roster
    own: Mapping[str, _OwnMatrix]
    foreign: Mapping[str, _MaskedMatrix]


def set_up(roster: Roster, lefts: Sequence[LeftMatrix], matrices: Mapping[str, RingMatrix]) -> Program[MaskedMatrices]:
    """Receive keys and exchange masked matrices; return what `multiply` needs.

    Args:
        lefts: all private matrices of the run, the same list at all parties.
        matrices: left name -> this holder's own ring elements, int64 dense or scipy CSR [rows, columns].
    """
    owned = sum(1 + len(left.partners) for left in lefts if left.owner == roster.me and left.partners)
    count = owned + sum(roster.me in left.partners for left in lefts)
    dealt = yield Receive(roster.server, "mask-keys", (count, KEY_BYTES))
    left_keys = iter(unpack_keys(dealt))
    own: dict[str, _OwnMatrix] = {}
    rights: dict[str, MaskKey] = {}
    for left in lefts:
        if left.owner == roster.me and left.partners:
            u = next(left_keys)
            blinds = {other: next(left_keys) for other in left.partners}
            matrix = matrices[left.name]
            # One U hides X from all others: each sees the same E, so what they see together is no more than E.
            e = masked_left(matrix if isinstance(matrix, Tensor) else torch.from_numpy(matrix.toarray()), u)
            for other in left.partners:
                yield Send(other, "masked-left", e)
            own[left.name] = _OwnMatrix(matrix, transpose(matrix), blinds)
        elif roster.me in left.partners:
            rights[left.name] = next(left_keys)
    foreign: dict[str, _MaskedMatrix] = {}
    for left in lefts:
        if left.name in rights:
            e = yield Receive(left.owner, "masked-left", (left.rows, left.columns))
            foreign[left.name] = _MaskedMatrix(e, e.T.contiguous(), rights[left.name])
    return MaskedMatrices(roster, own, foreign)


def multiply(
    masked: MaskedMatrices, products: Sequence[Product], rights: Mapping[Product, Tensor], step: str
) -> Program[dict[Product, Tensor]]:
    """Multiply private matrices with other holders' matrices; return product -> this holder's share [outer, width].

    Args:
        masked: of the set-up.
        products: those of one round, the same list at all parties.
        rights: product -> this holder's matrix w [inner, width], for the products in which it is the other party.
        step: names this call; never used again in a run.
    """
    me = masked.roster.me
    for product in products:
        if product.other == me:
            key = masked.foreign[product.left.name].key
            f = masked_right(rights[product], key, _mask_label(product, step))
            yield Send(product.left.owner, "masked-right", f)
    shares: dict[Product, Tensor] = {}
    for product in products:
        label = _mask_label(product, step)
        if product.left.owner == me:
            f = yield Receive(product.other, "masked-right", (product.inner, product.width))
            own = masked.own[product.left.name]
            x = own.transposed if product.transposed else own.matrix
            shares[product] = owner_share(x, f, own.blinds[product.other], label)
        elif product.other == me:
            # Z is U V less the owner's r: without r the other party could solve U from a few steps, and read X off E.
            z = yield Receive(masked.roster.server, "correction", (product.outer, product.width))
            foreign = masked.foreign[product.left.name]
            e = foreign.transposed if product.transposed else foreign.masked
            shares[product] = other_share(e, foreign.key, z, label)
    return shares


def _mask_label(product: Product, step: str) -> str:
    """Return the label of a product's masks in one call of `multiply`: no two products of a run share one."""
    return f"{step} {product.left.name} {product.other} {'T' if product.transposed else 'N'}"


def transpose(matrix: RingMatrix) -> RingMatrix:
    """Return X^T, laid out for products."""
    return matrix.T.contiguous() if isinstance(matrix, Tensor) else matrix.T.tocsr()
