"""Fixed point in the ring: numbers come back to the last bit, and what does not fit is refused before it wraps."""

from __future__ import annotations

import math

import pytest
import scipy.sparse
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from graphveil.errors import InputError
from graphveil.federation.crypto.ring import ROOM_BITS, decode, encode, matmul, require_room
from graphveil.federation.crypto.sharing import uniform
from graphveil.privacy import SeededRandomness


@settings(max_examples=200, deadline=None)
@given(st.floats(-1000, 1000), st.integers(0, 40))
def test_a_value_is_rounded_once_to_the_nearest_step(value: float, bits: int) -> None:
    steps = int(encode(torch.tensor([value], dtype=torch.float64), bits))
    assert abs(steps - value * 2.0**bits) <= 0.5
    assert steps % 2 == 0 or abs(steps - value * 2.0**bits) < 0.5, "a half goes to the even neighbour"


@settings(max_examples=100, deadline=None)
@given(st.integers(-(2**23), 2**23), st.integers(0, 30))
def test_multiples_of_the_step_come_back_as_they_are(steps: int, bits: int) -> None:
    values = torch.tensor([steps * 2.0**-bits])
    assert torch.equal(decode(encode(values, bits), bits), values)


@pytest.mark.parametrize("bits", [0, 18, 40])
def test_the_largest_numbers_fit_and_the_next_are_refused(bits: int) -> None:
    edge = 2.0 ** (ROOM_BITS - bits)
    inside = torch.tensor([math.nextafter(edge, 0), -math.nextafter(edge, 0)], dtype=torch.float64)
    assert encode(inside, bits).abs().max() < 1 << ROOM_BITS
    for outside in (edge, -edge):
        with pytest.raises(InputError, match=rf"fixed point: a value reaches .* less than 2\^{ROOM_BITS - bits} with"):
            encode(torch.tensor([outside], dtype=torch.float64), bits)


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_what_is_no_number_is_refused(bad: float) -> None:
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
    with pytest.raises(InputError, match=f"{bits} fraction bits overflow: {terms} products") as found:
        require_room(left, right, terms, bits)
    advised = int(str(found.value).split("at most ")[1].split(" ")[0])
    if advised >= 0:
        require_room(left, right, terms, advised)  # the remedy helps


@pytest.mark.parametrize("seed", range(3))
def test_dense_and_sparse_products_wrap_alike(seed: int) -> None:
    a, b = (uniform(shape, randomness=SeededRandomness(seed)) for shape in ((6, 5), (5, 4)))
    a[:, 2] = 0
    by_hand = [
        [sum(int(x) * int(y) for x, y in zip(row, column, strict=True)) % 2**64 for column in b.T.tolist()]
        for row in a.tolist()
    ]
    for form in (a, scipy.sparse.csr_array(a.numpy())):
        assert [[value % 2**64 for value in row] for row in matmul(form, b).tolist()] == by_hand
