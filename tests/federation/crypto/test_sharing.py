"""Shares and products on the ring: exact, uniform, and nothing that a single party sees depends on a secret."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.sparse
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chi2
from torch import Tensor

from graphveil.errors import InputError
from graphveil.federation.crypto import ring
from graphveil.federation.crypto.masks import MaskKey
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

FALSE_ALARM = 1e-6


def is_uniform(words: Tensor) -> bool:
    """Chi-square of the top and of the bottom byte, 256 cells each; rejects uniform words with chance 2e-6."""
    for shift in (0, 56):
        counts = torch.bincount(((words.flatten() >> shift) & 255), minlength=256).double()
        expected = counts.sum() / 256
        if float(((counts - expected) ** 2 / expected).sum()) > chi2.isf(FALSE_ALARM, 255):
            return False
    return True


def product(x: Tensor, w: Tensor, *, transposed: bool = False, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Both parties' shares of X w (or X^T w), each computed from what that party has."""
    keys = DealerKeys.fresh(SeededRandomness(seed))
    e, f = masked_left(x, keys.owner), masked_right(w, keys.right, "step 1")
    u = left_mask(keys.left, *x.shape)
    z = correction(keys, "step 1", u.T.contiguous() if transposed else u, w.shape[1])
    mine = owner_share(x.T.contiguous() if transposed else x, f, keys.owner, "step 1")
    theirs = other_share(e.T.contiguous() if transposed else e, keys.right, z, "step 1")
    return mine, theirs


@settings(max_examples=40, deadline=None)
@given(st.integers(2, 5), st.integers(0, 2**32), st.integers(1, 40))
def test_shares_add_up_to_the_secret(parties: int, seed: int, size: int) -> None:
    secret = uniform((size, 3), randomness=SeededRandomness(seed))
    shares = share(secret, parties, randomness=SeededRandomness(seed + 1))
    assert len(shares) == parties
    assert torch.equal(reconstruct(shares), secret)


@pytest.mark.parametrize("parties", [1, 6])
def test_other_numbers_of_parties_are_refused(parties: int) -> None:
    with pytest.raises(InputError, match="2 to 5"):
        share(torch.zeros(2, dtype=torch.int64), parties, randomness=SeededRandomness(0))


def test_all_but_one_share_are_uniform_whatever_the_secret_and_a_short_mask_is_noticed() -> None:
    secret = torch.zeros(200_000, dtype=torch.int64)
    shares = share(secret, 3, randomness=SeededRandomness(5))
    assert all(is_uniform(part) for part in shares)
    assert is_uniform(shares[0] + shares[1])
    assert not is_uniform(shares[0] & ((1 << 62) - 1))  # a mask two bits short


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("shape", [(1, 1, 1), (7, 5, 3), (40, 300, 8)])
def test_a_product_of_a_private_matrix_is_exact_in_the_ring(shape: tuple[int, int, int], transposed: bool) -> None:
    n, d, h = shape
    x = uniform((n, d), randomness=SeededRandomness(1))
    w = uniform((n if transposed else d, h), randomness=SeededRandomness(2))
    mine, theirs = product(x, w, transposed=transposed)
    want = (x.T if transposed else x).numpy().astype(object) @ w.numpy().astype(object)
    wrapped = np.array([[int(v) & (2**64 - 1) for v in row] for row in want], dtype=np.uint64).view(np.int64)
    assert torch.equal(mine + theirs, torch.from_numpy(wrapped))


def test_what_crosses_the_wire_of_a_product_is_uniform_though_the_secrets_are_all_zero() -> None:
    """E, F, Z and each party's own share; the dealer's Z is uniform to the other party because r is."""
    x, w = torch.zeros(400, 300, dtype=torch.int64), torch.zeros(300, 200, dtype=torch.int64)
    keys = DealerKeys.fresh(SeededRandomness(3))
    e, f = masked_left(x, keys.owner), masked_right(w, keys.right, "1")
    z = correction(keys, "1", left_mask(keys.left, 400, 300), 200)
    assert all(is_uniform(t) for t in (e, f, z, owner_share(x, f, keys.owner, "1"), other_share(e, keys.right, z, "1")))
    assert not is_uniform(x)


def test_masks_of_different_steps_and_keys_never_agree() -> None:
    keys = DealerKeys.fresh(SeededRandomness(4))
    w = torch.zeros(50, 4, dtype=torch.int64)
    sent = [masked_right(w, keys.right, f"{step}") for step in range(20)] + [masked_right(w, keys.left, "0")]
    assert len({tuple(f.flatten().tolist()) for f in sent}) == len(sent)


def test_a_sparse_owner_computes_the_same_share() -> None:
    dense = torch.randint(-5, 6, (30, 60)) * (torch.rand(30, 60, generator=torch.Generator().manual_seed(0)) < 0.1)
    f = uniform((60, 7), randomness=SeededRandomness(6))
    keys = DealerKeys.fresh(SeededRandomness(7)).owner
    sparse = scipy.sparse.csr_array(dense.numpy())
    assert torch.equal(owner_share(sparse, f, keys, "1"), owner_share(dense, f, keys, "1"))


@pytest.mark.parametrize("d", [5, 700, 2500])
def test_real_products_stay_within_the_proven_error(d: int) -> None:
    """|error| <= 2^-(f+1) sum (|x| + |w|) + d 2^-(2f+2), by the rounding of the encodings alone."""
    generator = torch.Generator().manual_seed(d)
    x, w = torch.randn(20, d, generator=generator), torch.randn(d, 6, generator=generator)
    f = ring.FRACTION_BITS
    mine, theirs = product(ring.encode(x), ring.encode(w))
    found = (mine + theirs).double() * 2.0 ** (-2 * f)
    bound = 2.0 ** -(f + 1) * (x.abs().double().sum(1, keepdim=True) + w.abs().double().sum(0)) + d * 2.0 ** -(
        2 * f + 2
    )
    error = (found - x.double() @ w.double()).abs()
    assert bool((error <= bound).all())
    assert not bool((error <= bound * 1e-3).all())  # the bound is not empty


def test_truncation_of_two_shares_is_off_by_one_at_most() -> None:
    """Values below 2^36 fail with chance 2^-27 an element: 20,000 of them fail at all with chance 1.5e-4."""
    values = torch.randint(-(1 << 36), 1 << 36, (20_000,), generator=torch.Generator().manual_seed(1))
    first, second = share(values, 2, randomness=SeededRandomness(8))
    cut = truncate(first, 18, first=True) + truncate(second, 18, first=False)
    assert int((cut - (values >> 18)).abs().max()) <= 1


def test_truncation_fails_as_often_as_stated_where_values_are_huge() -> None:
    """At |x| = 2^58 an element is destroyed with chance 2^-5: 62.5 of 2,000, sd 7.8; 20..110 has false alarm 1e-7."""
    values = torch.full((2_000,), 1 << 58)
    first, second = share(values, 2, randomness=SeededRandomness(9))
    cut = truncate(first, 18, first=True) + truncate(second, 18, first=False)
    assert 20 <= int(((cut - (values >> 18)).abs() > 1).sum()) <= 110


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 9), st.integers(1, 2100), st.integers(1, 5), st.integers(0, 2**32))
def test_limbs_multiply_exactly(n: int, d: int, h: int, seed: int) -> None:
    a, b = (uniform(shape, randomness=SeededRandomness(seed + i)) for i, shape in enumerate([(n, d), (d, h)]))
    assert torch.equal(ring.by_limbs(a, b), a @ b)


def test_extreme_words_multiply_exactly_by_limbs() -> None:
    a = torch.tensor([[-(2**63), 2**63 - 1, -1, 2**62]] * 3).repeat(1, 700)
    assert torch.equal(ring.by_limbs(a, a.T.contiguous()), a @ a.T)


def test_encoding_goes_there_and_back_and_refuses_what_does_not_fit() -> None:
    values = torch.tensor([0.0, -1.5, 3.25, 2.0**30])
    assert torch.equal(ring.decode(ring.encode(values)), values)
    for bad in (math.nan, math.inf, 2.0**44):
        with pytest.raises(InputError):
            ring.encode(torch.tensor([bad]))


def test_a_product_that_could_overflow_is_refused_with_the_bits_that_would_do() -> None:
    ring.require_room(1.0, 64.0, 1433, 18)
    with pytest.raises(InputError, match="at most 15 fraction bits"):  # 2^30.5 may not reach 2^62
        ring.require_room(1e3, 1e3, 1433, 26)


def test_a_key_shows_nothing_and_has_its_length() -> None:
    key = MaskKey.fresh(SeededRandomness(1))
    assert key.secret.hex() not in repr(key)
    with pytest.raises(InputError, match="32 bytes"):
        MaskKey(b"short")
