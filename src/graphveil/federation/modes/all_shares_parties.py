"""How each party of mode "all-shares" computes: holders on their shares, the dealer on masks, a plan on sizes alone.

    masked     holder k -> others   x_k - u_k                    once a step, for all products of x
    product    a b = E F + E v + u F + w     E = a - u, F = b - v opened;  w = u v: the dealer sends the first its share
    constant   a holder's own matrix times shares, by masks that last a session (see `products`)
    cut        with the dealer's mask (see `truncation`): if each holder cut its own share, some of millions of entries
               would be destroyed

The dealer runs the same program on empty tensors: it knows every shape and each mask, and no share.  Keys are of one
session: a run that resumes is dealt new keys, and no mask hides two messages.
Sources: Beaver, CRYPTO 1991; Mohassel, Zhang, "SecureML", IEEE S&P 2017, section 4.  Semi-honest, nobody colludes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import scipy.sparse
import torch
from torch import Tensor

from graphveil.federation.crypto.masks import KEY_BYTES, MaskKey, ZeroSum, agree_on_masks, pack_keys, unpack_keys
from graphveil.federation.crypto.products import Dealer, LeftMatrix, MaskedMatrices, Product, set_up, transpose
from graphveil.federation.crypto.products import multiply as multiply_constant
from graphveil.federation.crypto.ring import FRACTION_BITS, RingMatrix, encode, matmul
from graphveil.federation.crypto.truncation import Scale, deal_truncation, truncate_shared
from graphveil.federation.effects import Program, Receive, Roster, Send
from graphveil.federation.modes.all_shares_arithmetic import Masked, Multiply, features_of, means_of
from graphveil.federation.modes.holder import ring_matrix
from graphveil.federation.modes.propagation import Features
from graphveil.models import structure_for
from graphveil.privacy import Randomness

#: Bytes of a ring element.
_WORD = 8
#: How many keys of its own each holder is dealt, see `_Keys`.
KEYS_OF_HOLDER = 3


@dataclass(frozen=True)
class LeftMatrices:
    """Public sizes of all holders' own matrices.

    Attributes:
        by_name: name of the matrix -> its sizes.
    """

    by_name: Mapping[str, LeftMatrix]

    @classmethod
    def of(cls, names: Sequence[str], nodes: int, columns: Sequence[int]) -> LeftMatrices:
        """Return the features and the means of every holder.

        Args:
            columns: of each holder's features.
        """
        matrices = {}
        for holder, (owner, width) in enumerate(zip(names, columns, strict=True)):
            partners = tuple(name for name in names if name != owner)
            for name, size in ((features_of(holder), width), (means_of(holder), nodes)):
                matrices[name] = LeftMatrix(name, owner, partners, nodes, size)
        return cls(matrices)

    @property
    def all(self) -> list[LeftMatrix]:
        return list(self.by_name.values())

    def products(self, name: str, width: int, *, transposed: bool) -> tuple[Product, ...]:
        left = self.by_name[name]
        return tuple(Product(left, other, width, transposed) for other in left.partners)


def matrices_of(holder: int, features: Features, edges: Tensor) -> dict[str, RingMatrix]:
    """Return what a holder multiplies with, by name: its features, and the means over its neighbours.

    Args:
        holder: its number, from 0.
        features: [n, d_i].
    """
    rows = structure_for("sage", edges, int(features.shape[0])).forward
    shape = (int(features.shape[0]),) * 2
    parts = (encode(rows.values).numpy(), rows.indices.numpy(), rows.starts.numpy())
    # Zeros encode as zeros, so the pattern stays: the owner's own products are sparse, and only masks are not.
    means = scipy.sparse.csr_array(parts, shape=shape)
    return {features_of(holder): ring_matrix(features, FRACTION_BITS), means_of(holder): means}


@dataclass(frozen=True)
class _Keys:
    """Keys of one holder's parts: of the masks u, of the products w, and of cuts."""

    factor: MaskKey
    product: MaskKey
    cut: MaskKey


class _MaskLabels:
    """Labels of masks, the same at all parties, which run one program; none is given twice."""

    def __init__(self) -> None:
        self._number = 0

    def next(self) -> str:
        self._number += 1
        return str(self._number)


class HolderArithmetic:
    """A holder's arithmetic in one session; made by `join`."""

    def __init__(
        self,
        zero: ZeroSum,
        keys: _Keys,
        constants: MaskedMatrices,
        own: Mapping[str, RingMatrix],
        lefts: LeftMatrices,
        label_holder: str,
    ) -> None:
        self._zero, self._keys, self._constants, self._lefts = zero, keys, constants, lefts
        self._own = {(name, False): matrix for name, matrix in own.items()}
        # Transposed once and not in each step.
        self._own |= {(name, True): transpose(matrix) for name, matrix in own.items()}
        self._labels, self._roster, self._label_holder = _MaskLabels(), zero.roster, label_holder
        self._first = zero.roster.me == zero.roster.holders[0]

    def public(self, values: Tensor) -> Tensor:
        return values if self._first else torch.zeros_like(values)

    def mask(self, share: Tensor) -> Program[Masked]:
        mask = self._keys.factor.expand(self._labels.next(), tuple(share.shape))
        opened = share - mask
        for name in self._roster.other_holders:
            yield Send(name, "masked-left", share - mask)
        for name in self._roster.other_holders:
            opened = opened + (yield Receive(name, "masked-left", tuple(share.shape)))
        return Masked(share, opened, mask)

    def product(self, a: Masked, b: Masked, multiply: Multiply) -> Program[Tensor]:
        label = self._labels.next()
        # E F belongs to one holder alone: it enters the sum once.
        right = b.mask + b.opened if self._first else b.mask
        share = multiply(a.opened, right) + multiply(a.mask, b.opened)
        if self._first:
            return share + (yield Receive(self._roster.server, "correction", tuple(share.shape)))
        return share + self._keys.product.expand(label, tuple(share.shape))

    def by_constant(self, name: str, right: Tensor, *, transposed: bool = False) -> Program[Tensor]:
        products = self._lefts.products(name, right.shape[1], transposed=transposed)
        rights = dict.fromkeys(products, right)
        shares = list((yield from multiply_constant(self._constants, products, rights, self._labels.next())).values())
        # The matrix's owner multiplies its own share by itself: it has both factors, and needs no mask.
        if (name, transposed) in self._own:
            shares.append(matmul(self._own[name, transposed], right))
        return torch.stack(shares).sum(dim=0)

    def cut(self, share: Tensor, scale: Scale) -> Program[Tensor]:
        return (yield from truncate_shared(self._zero, share, self._keys.cut, scale, self._labels.next()))

    def open(self, share: Tensor) -> Program[Tensor | None]:
        # Shares of z come from a cut, which masked them anew: the label holder learns their sum and no more.
        if self._roster.me != self._label_holder:
            yield Send(self._label_holder, "hidden-share", share)
            return None
        for name in self._roster.other_holders:
            share = share + (yield Receive(name, "hidden-share", tuple(share.shape)))
        return share


def join(
    roster: Roster, lefts: LeftMatrices, own: Mapping[str, RingMatrix], label_holder: str, *, randomness: Randomness
) -> Program[HolderArithmetic]:
    """Agree on masks, exchange masked matrices and receive keys; return a holder's arithmetic.

    Args:
        lefts: of all holders, the same at all parties.
        own: its matrices by name, of `matrices_of`.
        label_holder: to whom z is opened.
        randomness: of its keys.
    """
    zero = yield from agree_on_masks(roster, randomness=randomness)
    constants = yield from set_up(roster, lefts.all, own)
    keys = _Keys(*unpack_keys((yield Receive(roster.server, "mask-keys", (KEYS_OF_HOLDER, KEY_BYTES)))))
    return HolderArithmetic(zero, keys, constants, own, lefts, label_holder)


class DealerArithmetic:
    """The dealer's arithmetic in one session: shapes, and the masks of all holders; made by `deal`."""

    def __init__(self, constants: Dealer, keys: Mapping[str, _Keys], lefts: LeftMatrices) -> None:
        self._constants, self._keys, self._lefts = constants, keys, lefts
        self._cuts = {name: own.cut for name, own in keys.items()}
        self._labels = _MaskLabels()

    def public(self, values: Tensor) -> Tensor:
        return values.to("meta")

    def mask(self, share: Tensor) -> Program[Masked]:
        yield from ()
        label = self._labels.next()
        # x - u stays empty here: with it the dealer, who has u, would know x.
        masks = [keys.factor.expand(label, tuple(share.shape)) for keys in self._keys.values()]
        return Masked(share, share, torch.stack(masks).sum(dim=0))

    def product(self, a: Masked, b: Masked, multiply: Multiply) -> Program[Tensor]:
        label, share = self._labels.next(), multiply(a.mask, b.mask)
        first, *other_holders = self._keys
        for name in other_holders:
            share = share - self._keys[name].product.expand(label, tuple(share.shape))
        yield Send(first, "correction", share)
        return share.to("meta")

    def by_constant(self, name: str, right: Tensor, *, transposed: bool = False) -> Program[Tensor]:
        products = self._lefts.products(name, right.shape[1], transposed=transposed)
        yield from self._constants.correct(products, self._labels.next())
        return _empty(products[0].outer, right.shape[1])

    def cut(self, share: Tensor, scale: Scale) -> Program[Tensor]:
        # The dealer has no part of what is cut.
        part = torch.zeros(tuple(share.shape), dtype=torch.int64)
        yield from deal_truncation(self._cuts, part, scale.bits, self._labels.next())
        return share

    def open(self, share: Tensor) -> Program[Tensor | None]:
        yield from ()
        return None


def deal(names: Sequence[str], lefts: LeftMatrices, *, randomness: Randomness) -> Program[DealerArithmetic]:
    """Deal all holders their keys; return the dealer's arithmetic.

    Args:
        lefts: of all holders, the same at all parties.
        randomness: of all keys.
    """
    constants = Dealer(lefts.all, randomness=randomness)
    yield from constants.deal(names)
    keys = {}
    for name in names:
        drawn = [MaskKey.fresh(randomness) for _ in range(KEYS_OF_HOLDER)]
        keys[name] = _Keys(*drawn)
        # Sent to its holder alone: with another's keys a holder could take the masks off what it is sent.
        yield Send(name, "mask-keys", pack_keys(drawn))
    return DealerArithmetic(constants, keys, lefts)


@dataclass(frozen=True)
class SizeArithmetic:
    """A plan's arithmetic: from public sizes alone it counts what the parties would send and wait for.

    Attributes:
        sent: (kind, sender, receiver) -> bytes.
        trips: kinds of the messages that wait for each other, one entry a message.
    """

    names: tuple[str, ...]
    server: str
    label_holder: str
    lefts: LeftMatrices
    sent: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    trips: list[str] = field(default_factory=list)

    def public(self, values: Tensor) -> Tensor:
        return values.to("meta")

    def mask(self, share: Tensor) -> Program[Masked]:
        yield from ()
        for name in self.names:
            for other in self.names:
                if other != name:
                    self.sent["masked-left", name, other] += share.numel() * _WORD
        self.trips.append("masked-left")
        return Masked(share, share, share)

    def product(self, a: Masked, b: Masked, multiply: Multiply) -> Program[Tensor]:
        yield from ()
        product = multiply(a.mask, b.mask)
        self.sent["correction", self.server, self.names[0]] += product.numel() * _WORD
        return product

    def by_constant(self, name: str, right: Tensor, *, transposed: bool = False) -> Program[Tensor]:
        yield from ()
        products, width = self.lefts.products(name, right.shape[1], transposed=transposed), right.shape[1]
        for product in products:
            self.sent["masked-right", product.other, product.left.owner] += product.inner * width * _WORD
            self.sent["correction", self.server, product.other] += product.outer * width * _WORD
        self.trips.append("masked-right")
        return _empty(products[0].outer, width)

    def cut(self, share: Tensor, scale: Scale) -> Program[Tensor]:
        yield from ()
        first, *other_holders = self.names
        self.sent["correction", self.server, first] += share.numel() * _WORD
        for name in other_holders:
            self.sent["masked-sum", name, first] += share.numel() * _WORD
            self.sent["safe-bits", first, name] += -(-share.numel() // 8)
        self.trips.extend(("masked-sum", "safe-bits"))
        return share

    def open(self, share: Tensor) -> Program[Tensor | None]:
        yield from ()
        for name in self.names:
            if name != self.label_holder:
                self.sent["hidden-share", name, self.label_holder] += share.numel() * _WORD
        self.trips.append("hidden-share")
        return None


def _empty(*shape: int) -> Tensor:
    return torch.empty(shape, dtype=torch.int64, device="meta")
