"""SecureML's arithmetic in the clear: what shares of the same numbers come to, and the slopes of what it computes."""

from __future__ import annotations

from dataclasses import replace

import pytest
import scipy.sparse
import torch
from torch import Tensor

from graphveil.aggregation.sparse import from_scipy
from graphveil.errors import InputError
from graphveil.federation.core.networks import Combination, Propagation, holder_structure
from graphveil.federation.crypto.ring import FRACTION_BITS, decode, encode
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
)
from graphveil.federation.vertical import vertical_partition
from graphveil.graphs import random_split, social_graph
from graphveil.privacy import SeededRandomness
from graphveil.reproduction import clear, secureml

UNIT = 2.0**-FRACTION_BITS
Shares = tuple[Tensor, Tensor]


def drawn(*shape: int, seed: int = 0) -> Tensor:
    """Normal numbers on the grid of the fixed point, so that encoding them rounds nothing."""
    values = torch.randn(shape, generator=torch.Generator().manual_seed(seed))
    return torch.round(values / UNIT) * UNIT


def crossed(owned: Tensor, other: Tensor, seed: int) -> Shares:
    """Shares of one party's matrix times the other's, by dealt masks."""
    keys = DealerKeys.fresh(SeededRandomness(seed))
    e, f = masked_left(owned, keys.owner), masked_right(other, keys.right, "one")
    z = correction(keys, "one", left_mask(keys.left, *owned.shape), other.shape[1])
    return owner_share(owned, f, keys.owner, "one"), other_share(e, keys.right, z, "one")


def cut(shares: Shares) -> Shares:
    """Both shares at the scale of one encoding again."""
    return truncate(shares[0], FRACTION_BITS, first=True), truncate(shares[1], FRACTION_BITS, first=False)


def multiplied(a: Shares, b: Shares) -> Shares:
    """Shares of A B, of which nobody has a factor: two products at home, two between the parties."""
    here, there = crossed(a[0], b[1], 1), crossed(a[1], b[0], 2)
    return cut((a[0] @ b[0] + here[0] + there[1], a[1] @ b[1] + here[1] + there[0]))


def entrywise(a: Shares, b: Shares) -> Shares:
    """Shares of A * B: the product of a diagonal matrix, as the core multiplies matrices alone."""
    diagonal = torch.diag(a[0].flatten()), torch.diag(a[1].flatten())
    one, two = multiplied(diagonal, (b[0].reshape(-1, 1), b[1].reshape(-1, 1)))
    return one.reshape(a[0].shape), two.reshape(a[0].shape)


def scaled(x: Shares, number: float) -> Shares:
    """Shares of a public number times x."""
    factor = int(encode(torch.tensor([number])))
    return cut((x[0] * factor, x[1] * factor))


def shared(values: Tensor, seed: int) -> Shares:
    """Two shares of an encoding."""
    one, two = share(encode(values), 2, randomness=SeededRandomness(seed))
    return one, two


def opened(x: Shares) -> Tensor:
    """What two shares stand for."""
    return decode(reconstruct(x))


def test_a_layer_is_what_two_parties_compute_on_shares() -> None:
    """tanh(A B) and sigmoid(A B), by dealt masks alone, within the units that truncations may be off by."""
    a, b = drawn(5, 6), drawn(6, 4, seed=1) / 4
    b = torch.round(b / UNIT) * UNIT
    product = multiplied(shared(a, 3), shared(b, 4))
    plain = secureml.product(a, b)
    assert float((opened(product) - plain).abs().max()) <= 2 * UNIT
    cube = entrywise(entrywise(product, product), product)
    third = scaled(cube, 1 / 3)
    curved = opened((product[0] - third[0], product[1] - third[1]))
    # |x| stays below 4: a unit of x is 3 x^2 < 48 of its cube, and the constant 1/3 is off by half a unit.
    assert float(plain.abs().max()) < 4
    near = 80 * UNIT
    assert float((curved - secureml.tanh(plain)).abs().max()) <= near
    quarter, small = scaled(product, 1 / 4), scaled(cube, 1 / 48)
    bent = 0.5 + opened((quarter[0] - small[0], quarter[1] - small[1]))
    assert float((bent - secureml.sigmoid(plain)).abs().max()) <= near
    # Weakened copies: floating point would do, but the true functions and a polynomial of degree 1 would not.
    for other in (torch.tanh(plain), plain):
        assert float((curved - other).abs().max()) > 100 * near


def test_polynomials_are_taylors_near_zero() -> None:
    x = torch.linspace(-0.3, 0.3, 31)
    assert torch.allclose(secureml.tanh(x), torch.tanh(x), atol=2 / 15 * 0.3**5 + 4 * UNIT)
    assert torch.allclose(secureml.sigmoid(x), torch.sigmoid(x), atol=0.3**5 / 480 + 4 * UNIT)


def test_a_cut_goes_to_the_nearest_unit() -> None:
    half = 1 << (FRACTION_BITS - 1)
    products = torch.tensor([half - 1, half, -half, -half - 1, 3 * half])
    assert secureml.cut(products).tolist() == [0, 1, 0, -1, 2]


def test_slopes_are_those_of_floating_point_to_within_rounding() -> None:
    def slopes(*, fixed: bool) -> list[Tensor]:
        a, b = drawn(7, 5).requires_grad_(), (drawn(5, 3, seed=1) / 4).requires_grad_()
        z = secureml.product(a, b) if fixed else a @ b
        y = secureml.tanh(z) if fixed else z - z**3 / 3
        (y * drawn(7, 3, seed=2)).sum().backward()  # type: ignore[no-untyped-call]
        assert a.grad is not None and b.grad is not None
        return [a.grad, b.grad]

    for mine, true in zip(slopes(fixed=True), slopes(fixed=False), strict=True):
        assert torch.allclose(mine, true, atol=2e-3, rtol=1e-3) and float(true.abs().max()) > 0.5


def test_a_constant_factor_is_multiplied_both_ways() -> None:
    matrix = scipy.sparse.random_array((6, 5), density=0.5, rng=1, format="csr")
    b = drawn(5, 3).requires_grad_()
    product = secureml.by_constant(secureml.encode_matrix(from_scipy(matrix)), b)
    product.sum().backward()  # type: ignore[no-untyped-call]
    dense = torch.from_numpy(matrix.toarray()).float()
    assert b.grad is not None and torch.allclose(product, dense @ b, atol=8 * UNIT)
    assert torch.allclose(b.grad, dense.T @ torch.ones(6, 3), atol=8 * UNIT)


def test_layers_are_those_of_the_secure_run_where_polynomials_are_close() -> None:
    """Small inputs: Taylor's polynomial is tanh there, and what is left is rounding."""
    graph = social_graph(60, average_degree=6, dimension=20, classes=3, seed=2)
    draws = torch.Generator().manual_seed(4)
    structure = holder_structure("sage", graph.edge_index, graph.num_nodes)
    own, inner = Propagation("sage", 8, 2, generator=draws), Combination("mean", 2, 8, 1, 0.5, generator=draws)
    h = 0.05 * drawn(60, 8)
    fixed = secureml.propagate(own, h, secureml.encode_matrix(structure))
    assert torch.allclose(fixed, own(h, structure), atol=2e-2)
    network = secureml.FixedCombination(inner).eval()
    assert torch.allclose(network([fixed, -fixed]), inner.eval()([fixed, -fixed]), atol=1e-3)


def test_a_run_repeats_itself_and_other_ways_to_combine_are_refused() -> None:
    graph = social_graph(120, average_degree=8, dimension=20, classes=3, seed=6)
    parts, split = vertical_partition(graph, (1, 1), seed=0), random_split(graph, 1)
    plan = clear.Plan("secureml", width=8, hops=1, epochs=6)
    first, again = (clear.run(plan, parts, graph.y, split, 0) for _ in range(2))
    assert first == again != clear.run(replace(plan, mode="paper"), parts, graph.y, split, 0)
    with pytest.raises(InputError, match="concat"):
        clear.run(replace(plan, combine="concat"), parts, graph.y, split, 0)
