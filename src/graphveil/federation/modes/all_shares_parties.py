"""How each party of mode "all-shares" computes: holders on their shares, the dealer on masks, a plan on sizes alone.

    masked     holder k -> others   x_k - u_k                    once a step, for all products of x
    product    a b = E F + E v + u F + w     E = a - u, F = b - v opened;  w = u v: the dealer tells the first its share
    constant   a holder's own matrix times shares, by masks that last a session (see `products`)
    cut        with the dealer's mask (see `truncation`): each holder's own cut would destroy entries, of millions

The dealer runs the same program on empty tensors: it knows every shape and each mask, and no share.  Keys are of one
session: one that goes on after an interruption is dealt new keys, and no mask hides two messages.
Sources: Beaver, CRYPTO 1991; Mohassel, Zhang, "SecureML", IEEE S&P 2017, section 4.  Semi-honest, nobody colludes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import scipy.sparse
import torch
from torch import Tensor

from graphveil.federation.crypto.masks import KEY_BYTES, MaskKey, ZeroSum, agree_on_masks, packed, unpacked
from graphveil.federation.crypto.products import Dealer, LeftMatrix, Product, set_up, transpose
from graphveil.federation.crypto.products import Masked as MaskedMatrices
from graphveil.federation.crypto.products import multiply as multiply_constant
from graphveil.federation.crypto.ring import FRACTION_BITS, RingMatrix, encode, matmul
from graphveil.federation.crypto.truncation import Scale, deal_truncation, truncate_shared
from graphveil.federation.effects import Program, Receive, Roster, Send
from graphveil.federation.modes.all_shares_arithmetic import Masked, Multiply, features_of, means_of
from graphveil.federation.modes.holder import ring_matrix
from graphveil.federation.modes.propagation import Features
from graphveil.models import structure_for
from graphveil.privacy import Randomness

_WORD, _KEYS = 8, 3


@dataclass(frozen=True)
class Lefts:
    """All holders' own matrices, by name; public sizes alone."""

    named: Mapping[str, LeftMatrix]

    @classmethod
    def of(cls, names: Sequence[str], nodes: int, columns: Sequence[int]) -> Lefts:
        """Return the features and the means of every holder.

        Args:
            columns: of each holder's features.
        """
        matrices = {}
        for place, (owner, wide) in enumerate(zip(names, columns, strict=True)):
            partners = tuple(name for name in names if name != owner)
            for called, size in ((features_of(place), wide), (means_of(place), nodes)):
                matrices[called] = LeftMatrix(called, owner, partners, nodes, size)
        return cls(matrices)

    @property
    def all(self) -> list[LeftMatrix]:
        return list(self.named.values())

    def products(self, name: str, width: int, *, transposed: bool) -> tuple[Product, ...]:
        left = self.named[name]
        return tuple(Product(left, other, width, transposed) for other in left.partners)


def matrices_of(place: int, features: Features, edges: Tensor) -> dict[str, RingMatrix]:
    """Return what a holder multiplies with, by name: its features, and the means over its neighbours.

    Args:
        place: the holder's number, from 0.
        features: [n, d_i].
    """
    rows = structure_for("sage", edges, int(features.shape[0])).forward
    shape = (int(features.shape[0]),) * 2
    parts = (encode(rows.values).numpy(), rows.indices.numpy(), rows.starts.numpy())
    # Zeros encode as zeros, so the pattern stays: the owner's own products are sparse, and only masks are not.
    means = scipy.sparse.csr_array(parts, shape=shape)
    return {features_of(place): ring_matrix(features, FRACTION_BITS), means_of(place): means}


@dataclass(frozen=True)
class _Keys:
    """Keys of one holder's parts: of the masks u, of the products w, and of cuts."""

    factor: MaskKey
    product: MaskKey
    cut: MaskKey


class _Names:
    """Labels of masks, in the order in which all parties ask for them: none is used twice."""

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
        lefts: Lefts,
        label_holder: str,
    ) -> None:
        self._zero, self._keys, self._constants, self._lefts = zero, keys, constants, lefts
        self._own = {(name, False): matrix for name, matrix in own.items()}
        # Turned round once and not in each step.
        self._own |= {(name, True): transpose(matrix) for name, matrix in own.items()}
        self._names, self._roster, self._label_holder = _Names(), zero.roster, label_holder
        self._first = zero.roster.me == zero.roster.holders[0]

    def public(self, values: Tensor) -> Tensor:
        return values if self._first else torch.zeros_like(values)

    def masked(self, share: Tensor) -> Program[Masked]:
        mask = self._keys.factor.expand(self._names.next(), tuple(share.shape))
        opened = share - mask
        for name in self._roster.other_holders:
            yield Send(name, "masked-left", share - mask)
        for name in self._roster.other_holders:
            opened = opened + (yield Receive(name, "masked-left", tuple(share.shape)))
        return Masked(share, opened, mask)

    def product(self, a: Masked, b: Masked, multiply: Multiply) -> Program[Tensor]:
        label = self._names.next()
        # E F belongs to one holder alone: it enters the sum once.
        right = b.mask + b.opened if self._first else b.mask
        crossed = multiply(a.opened, right) + multiply(a.mask, b.opened)
        if self._first:
            return crossed + (yield Receive(self._roster.server, "correction", tuple(crossed.shape)))
        return crossed + self._keys.product.expand(label, tuple(crossed.shape))

    def by_constant(self, name: str, right: Tensor, *, transposed: bool = False) -> Program[Tensor]:
        products = self._lefts.products(name, right.shape[1], transposed=transposed)
        rights = dict.fromkeys(products, right)
        shares = list((yield from multiply_constant(self._constants, products, rights, self._names.next())).values())
        # Its owner multiplies its own share at home: whoever has both factors needs no mask.
        if (name, transposed) in self._own:
            shares.append(matmul(self._own[name, transposed], right))
        return torch.stack(shares).sum(dim=0)

    def cut(self, share: Tensor, scale: Scale) -> Program[Tensor]:
        return (yield from truncate_shared(self._zero, share, self._keys.cut, scale, self._names.next()))

    def opened(self, share: Tensor) -> Program[Tensor | None]:
        # Shares of z come from a cut, which masked them anew: the label holder learns their sum and no more.
        if self._roster.me != self._label_holder:
            yield Send(self._label_holder, "hidden-share", share)
            return None
        for name in self._roster.other_holders:
            share = share + (yield Receive(name, "hidden-share", tuple(share.shape)))
        return share


def join(
    roster: Roster, lefts: Lefts, own: Mapping[str, RingMatrix], label_holder: str, *, randomness: Randomness
) -> Program[HolderArithmetic]:
    """Agree on masks, exchange masked matrices and receive keys; return a holder's arithmetic.

    Args:
        lefts: the same at all parties.
        own: its matrices by name, of `matrices_of`.
        label_holder: who is shown z.
        randomness: of its keys.
    """
    zero = yield from agree_on_masks(roster, randomness=randomness)
    constants = yield from set_up(roster, lefts.all, own)
    keys = _Keys(*unpacked((yield Receive(roster.server, "mask-keys", (_KEYS, KEY_BYTES)))))
    return HolderArithmetic(zero, keys, constants, own, lefts, label_holder)


class DealerArithmetic:
    """The dealer's arithmetic in one session: shapes, and the masks of all holders; made by `deal`."""

    def __init__(self, constants: Dealer, keys: Mapping[str, _Keys], lefts: Lefts) -> None:
        self._constants, self._keys, self._lefts = constants, keys, lefts
        self._cuts = {name: own.cut for name, own in keys.items()}
        self._names = _Names()

    def public(self, values: Tensor) -> Tensor:
        return values.to("meta")

    def masked(self, share: Tensor) -> Program[Masked]:
        yield from ()
        label = self._names.next()
        # What is opened stays empty here: with x - u the dealer, who has u, would know x.
        parts = [keys.factor.expand(label, tuple(share.shape)) for keys in self._keys.values()]
        return Masked(share, share, torch.stack(parts).sum(dim=0))

    def product(self, a: Masked, b: Masked, multiply: Multiply) -> Program[Tensor]:
        label, whole = self._names.next(), multiply(a.mask, b.mask)
        first, *other_holders = self._keys
        for name in other_holders:
            whole = whole - self._keys[name].product.expand(label, tuple(whole.shape))
        yield Send(first, "correction", whole)
        return whole.to("meta")

    def by_constant(self, name: str, right: Tensor, *, transposed: bool = False) -> Program[Tensor]:
        products = self._lefts.products(name, right.shape[1], transposed=transposed)
        yield from self._constants.correct(products, self._names.next())
        return _empty(products[0].outer, right.shape[1])

    def cut(self, share: Tensor, scale: Scale) -> Program[Tensor]:
        # The dealer has no part of what is cut.
        nothing = torch.zeros(tuple(share.shape), dtype=torch.int64)
        yield from deal_truncation(self._cuts, nothing, scale.bits, self._names.next())
        return share

    def opened(self, share: Tensor) -> Program[Tensor | None]:
        yield from ()
        return None


def deal(names: Sequence[str], lefts: Lefts, *, randomness: Randomness) -> Program[DealerArithmetic]:
    """Deal all holders their keys; return the dealer's arithmetic.

    Args:
        lefts: the same at all parties.
        randomness: of all keys.
    """
    constants = Dealer(lefts.all, randomness=randomness)
    yield from constants.deal(names)
    keys = {}
    for name in names:
        drawn = [MaskKey.fresh(randomness) for _ in range(_KEYS)]
        keys[name] = _Keys(*drawn)
        # Sent to its holder alone: with another's keys a holder could take the masks off what it is sent.
        yield Send(name, "mask-keys", packed(drawn))
    return DealerArithmetic(constants, keys, lefts)


@dataclass(frozen=True)
class SizeArithmetic:
    """A plan's arithmetic: public sizes alone, of which it counts what parties would send, and wait for.

    Attributes:
        sent: (kind, sender, receiver) -> bytes.
        trips: one entry for each message that another one waits for, one way.
    """

    names: tuple[str, ...]
    server: str
    label_holder: str
    lefts: Lefts
    sent: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    trips: list[str] = field(default_factory=list)

    def public(self, values: Tensor) -> Tensor:
        return values.to("meta")

    def masked(self, share: Tensor) -> Program[Masked]:
        yield from ()
        for name in self.names:
            for other in self.names:
                if other != name:
                    self.sent["masked-left", name, other] += share.numel() * _WORD
        self.trips.append("masked-left")
        return Masked(share, share, share)

    def product(self, a: Masked, b: Masked, multiply: Multiply) -> Program[Tensor]:
        yield from ()
        whole = multiply(a.mask, b.mask)
        self.sent["correction", self.server, self.names[0]] += whole.numel() * _WORD
        return whole

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

    def opened(self, share: Tensor) -> Program[Tensor | None]:
        yield from ()
        for name in self.names:
            if name != self.label_holder:
                self.sent["hidden-share", name, self.label_holder] += share.numel() * _WORD
        self.trips.append("hidden-share")
        return None


def _empty(*shape: int) -> Tensor:
    return torch.empty(shape, dtype=torch.int64, device="meta")
