"""Products of private matrices as conversations: exact for any holders, and refused where a part is missing."""

from __future__ import annotations

from collections.abc import Mapping

import scipy.sparse
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from graphveil.federation.core.messages import Transcript, simulate
from graphveil.federation.crypto import products
from graphveil.federation.crypto.products import Dealer, LeftMatrix, Product, products_with
from graphveil.federation.crypto.ring import RingMatrix
from graphveil.federation.crypto.sharing import uniform
from graphveil.federation.effects import Program, Roster
from graphveil.privacy import SeededRandomness

NAMES = ("a", "b", "c")


def drawn(rows: int, columns: int, seed: int) -> Tensor:
    return uniform((rows, columns), randomness=SeededRandomness(seed))


def dealt(lefts: tuple[LeftMatrix, ...], listed: tuple[Product, ...], holders: tuple[str, ...]) -> Program[None]:
    dealer = Dealer(lefts, randomness=SeededRandomness(99))
    yield from dealer.deal(holders)
    yield from dealer.correct(listed, "1")


def holder_program(
    me: str,
    holders: tuple[str, ...],
    lefts: tuple[LeftMatrix, ...],
    own: Mapping[str, RingMatrix],
    listed: tuple[Product, ...],
    rights: Mapping[Product, Tensor],
) -> Program[dict[Product, Tensor]]:
    masked = yield from products.set_up(Roster(me, holders), lefts, own)
    shares: dict[Product, Tensor] = yield from products.multiply(masked, listed, rights, "1")
    return shares


def multiplied(
    lefts: tuple[LeftMatrix, ...],
    matrices: Mapping[str, RingMatrix],
    listed: tuple[Product, ...],
    rights: Mapping[Product, Tensor],
    *,
    holders: tuple[str, ...] = NAMES,
) -> tuple[dict[Product, Tensor], Transcript]:
    """What the two shares of every product add up to, and what crossed the wire."""
    programs: dict[str, Program[object]] = {"server": dealt(lefts, listed, holders)}
    for me in holders:
        own = {left.name: matrices[left.name] for left in lefts if left.owner == me}
        mine = {product: right for product, right in rights.items() if product.other == me}
        programs[me] = holder_program(me, holders, lefts, own, listed, mine)
    results, transcript = simulate(programs)
    totals: dict[Product, Tensor] = {}
    for me in holders:
        for product, share in results[me].items():
            assert me in (product.left.owner, product.other), "who takes no part has no share"
            totals[product] = totals.get(product, torch.zeros_like(share)) + share
    return totals, transcript


@settings(max_examples=25, deadline=None)
@given(st.integers(1, 5), st.integers(1, 4), st.integers(1, 3), st.integers(0, 999), st.booleans())
def test_every_product_is_exact_in_the_ring(rows: int, columns: int, width: int, seed: int, sparse: bool) -> None:
    """Three holders, each with a matrix of its own; both ways round, whatever the words."""
    lefts = tuple(
        LeftMatrix(f"X{me}", me, tuple(name for name in NAMES if name != me), rows, columns + place)
        for place, me in enumerate(NAMES)
    )
    plain = {left.name: drawn(left.rows, left.columns, seed + place) for place, left in enumerate(lefts)}
    listed = (*products_with(lefts, width), *products_with(lefts, width, transposed=True))
    rights = {product: drawn(product.inner, width, seed + 50 + place) for place, product in enumerate(listed)}
    given_as = {name: scipy.sparse.csr_array(x.numpy()) if sparse else x for name, x in plain.items()}
    totals, _ = multiplied(lefts, given_as, listed, rights)
    assert set(totals) == set(listed)
    for product, total in totals.items():
        x = plain[product.left.name]
        assert torch.equal(total, (x.T if product.transposed else x) @ rights[product])
        assert total.shape == (product.outer, width)


def test_no_plain_matrix_is_on_the_wire_and_only_listed_kinds_are() -> None:
    left = LeftMatrix("X", "a", ("b",), 4, 3)
    x, listed = torch.full((4, 3), 7), products_with((left,), 2)
    totals, transcript = multiplied((left,), {"X": x}, listed, {listed[0]: torch.full((3, 2), 5)}, holders=("a", "b"))
    assert totals[listed[0]].tolist() == [[105, 105]] * 4
    rows = {(entry.sender, entry.receiver, entry.kind) for entry in transcript.entries}
    assert rows == {
        ("server", "a", "mask-keys"),
        ("server", "b", "mask-keys"),
        ("server", "b", "correction"),
        ("a", "b", "masked-left"),
        ("b", "a", "masked-right"),
    }
