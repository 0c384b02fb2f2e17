"""Shares and products on the ring: exact, uniform, and nothing that a single party sees depends on a secret."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from graphveil.errors import InputError
from graphveil.federation.crypto import ring
from graphveil.federation.crypto.masks import MaskKey
from graphveil.federation.crypto.ring import ROOM_BITS, encode, require_room
from graphveil.federation.crypto.sharing import (
    DealerKeys,
    correction,
    left_mask,
    masked_left,
    masked_right,
    other_share,
    owner_share,
    reconstruct,
    share,
    truncate,
    uniform,
)
from graphveil.privacy import SeededRandomness
from tests.federation.views import is_uniform


def fresh(randomness: SeededRandomness) -> DealerKeys:
    return DealerKeys(*(MaskKey.fresh(randomness) for _ in range(3)))


def product(x: Tensor, w: Tensor, *, transposed: bool = False, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Both parties' shares of X w (or X^T w), each computed from what that party has."""
    keys = fresh(SeededRandomness(seed))
    e, f = masked_left(x, keys.left), masked_right(w, keys.right, "step 1")
    u = left_mask(keys.left, *x.shape)
    z = correction(keys, "step 1", u.T.contiguous() if transposed else u, w.shape[1])
    mine = owner_share(x.T.contiguous() if transposed else x, f, keys.blind, "step 1")
    theirs = other_share(e.T.contiguous() if transposed else e, keys.right, z, "step 1")
    return mine, theirs


@settings(max_examples=40, deadline=None)
@given(st.integers(2, 5), st.integers(0, 2**32), st.integers(1, 40))
def test_shares_add_up_to_the_secret(parties: int, seed: int, size: int) -> None:
    secret = uniform((size, 3), randomness=SeededRandomness(seed))
    shares = share(secret, parties, randomness=SeededRandomness(seed + 1))
    assert len(shares) == parties
    assert torch.equal(reconstruct(shares), secret)
    for number in (1, 6):
        with pytest.raises(InputError, match="2 to 5"):
            share(secret, number, randomness=SeededRandomness(0))


def test_all_but_one_share_are_uniform_whatever_the_secret_and_a_short_mask_is_noticed() -> None:
    secret = torch.zeros(200_000, dtype=torch.int64)
    shares = share(secret, 3, randomness=SeededRandomness(5))
    assert all(is_uniform(part) for part in shares)
    assert is_uniform(shares[0] + shares[1])
    assert not is_uniform(shares[0] & ((1 << 62) - 1))  # a mask two bits short


def test_what_crosses_the_wire_of_a_product_is_uniform_though_the_secrets_are_all_zero() -> None:
    """E, F, Z and each party's own share; the dealer's Z is uniform to the other party because r is."""
    x, w = torch.zeros(400, 300, dtype=torch.int64), torch.zeros(300, 200, dtype=torch.int64)
    keys = fresh(SeededRandomness(3))
    e, f = masked_left(x, keys.left), masked_right(w, keys.right, "1")
    z = correction(keys, "1", left_mask(keys.left, 400, 300), 200)
    assert all(is_uniform(t) for t in (e, f, z, owner_share(x, f, keys.blind, "1"), other_share(e, keys.right, z, "1")))
    assert not is_uniform(x)


def test_masks_of_different_steps_and_keys_never_agree() -> None:
    keys = fresh(SeededRandomness(4))
    w = torch.zeros(50, 4, dtype=torch.int64)
    sent = [masked_right(w, keys.right, f"{step}") for step in range(20)] + [masked_right(w, keys.left, "0")]
    assert len({tuple(f.flatten().tolist()) for f in sent}) == len(sent)


@pytest.mark.parametrize("d", [5, 700, 2500])
def test_real_products_stay_within_the_proven_error(d: int) -> None:
    """|error| <= 2^-(f+1) sum (|x| + |w|) + d 2^-(2f+2), by the rounding of the encodings alone."""
    generator = torch.Generator().manual_seed(d)
    x, w = torch.randn(20, d, generator=generator), torch.randn(d, 6, generator=generator)
    f = ring.FRACTION_BITS
    mine, theirs = product(ring.encode(x), ring.encode(w))
    result = (mine + theirs).double() * 2.0 ** (-2 * f)
    bound = 2.0 ** -(f + 1) * (x.abs().double().sum(1, keepdim=True) + w.abs().double().sum(0)) + d * 2.0 ** -(
        2 * f + 2
    )
    error = (result - x.double() @ w.double()).abs()
    assert bool((error <= bound).all())
    assert not bool((error <= bound * 1e-3).all())  # the bound is not empty


def test_truncation_of_two_shares_is_off_by_one_at_most() -> None:
    """Values below 2^36 fail with chance 2^-27 an element: 20,000 of them fail at all with chance 1.5e-4."""
    values = torch.randint(-(1 << 36), 1 << 36, (20_000,), generator=torch.Generator().manual_seed(1))
    first, second = share(values, 2, randomness=SeededRandomness(8))
    cut = truncate(first, 18, first=True) + truncate(second, 18, first=False)
    assert int((cut - (values >> 18)).abs().max()) <= 1


@settings(max_examples=200, deadline=None)
@given(st.floats(-1000, 1000), st.integers(0, 40))
def test_a_value_is_rounded_once_to_the_nearest_step(value: float, bits: int) -> None:
    steps = int(encode(torch.tensor([value], dtype=torch.float64), bits))
    assert abs(steps - value * 2.0**bits) <= 0.5
    assert steps % 2 == 0 or abs(steps - value * 2.0**bits) < 0.5, "a half goes to the even neighbour"


@pytest.mark.parametrize("bits", [0, 18, 40])
def test_the_largest_numbers_fit_and_the_next_are_refused(bits: int) -> None:
    edge = 2.0 ** (ROOM_BITS - bits)
    inside = torch.tensor([math.nextafter(edge, 0), -math.nextafter(edge, 0)], dtype=torch.float64)
    assert encode(inside, bits).abs().max() < 1 << ROOM_BITS
    for outside in (edge, -edge):
        with pytest.raises(InputError, match=rf"fixed point: a value reaches .* less than 2\^{ROOM_BITS - bits} with"):
            encode(torch.tensor([outside], dtype=torch.float64), bits)
    for bad in (math.nan, math.inf, -math.inf):
        with pytest.raises(InputError, match="fixed point: a value is not finite; allowed: finite numbers"):
            encode(torch.tensor([1.0, bad]))


@settings(max_examples=150, deadline=None)
@given(st.floats(1e-3, 1e4), st.floats(1e-3, 1e4), st.integers(1, 10**6), st.integers(0, 40))
def test_a_product_is_refused_exactly_when_its_sum_could_leave_the_room(
    left: float, right: float, terms: int, bits: int
) -> None:
    exponent = math.log2(left * right * terms) + 2 * bits
    if abs(exponent - ROOM_BITS) < 1e-9:
        return
    if exponent < ROOM_BITS:
        require_room(left, right, terms, bits)
        return
    with pytest.raises(InputError, match=f"{bits} fraction bits overflow: {terms} products") as refusal:
        require_room(left, right, terms, bits)
    advised = int(str(refusal.value).split("at most ")[1].split(" ")[0])
    if advised >= 0:
        require_room(left, right, terms, advised)  # the remedy helps
