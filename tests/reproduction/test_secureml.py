"""SecureML's arithmetic: on shares it is that in the clear, and in the clear it is that of the formulas."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
import torch
from torch import Tensor

from graphveil.aggregation import from_scipy
from graphveil.errors import InputError
from graphveil.federation.core.rate import Rate
from graphveil.federation.crypto.ring import FRACTION_BITS
from graphveil.federation.modes.all_shares_arithmetic import SIGMOID, TANH
from graphveil.federation.simulation import vertical_partition
from graphveil.graphs import random_split, social_graph
from graphveil.models import structure_for
from graphveil.privacy import SeededRandomness
from graphveil.reproduction.clear import Part, Plan
from graphveil.reproduction.federated import LabelHolder, Start, run_in_clear, run_on_shares

UNIT = 2.0**-FRACTION_BITS
GRAPH = social_graph(60, average_degree=6, dimension=20, classes=3, seed=6)
SPLIT = random_split(GRAPH, 1)
PLAN = Plan("secureml", width=8, hops=2, epochs=4, shared_rate=4.0)
#: Each cut is off by at most a unit, which later layers, the loss and the steps pass on: of 40 seeds, 2 to 200 units in
#: 37, up to 1,400 in three, of which the test takes none.
ERROR = 256 * UNIT


def parts(holders: int) -> list[Part]:
    """What each holder has; rows are short, as polynomials need."""
    return [(0.2 * features, edges) for features, edges in vertical_partition(GRAPH, (1,) * holders, seed=0)]


def in_clear(plan: Plan = PLAN, holders: int = 2) -> LabelHolder:
    """A run with every number in one place."""
    return run_in_clear(plan, parts(holders), GRAPH.y, SPLIT, 0)


@pytest.mark.parametrize("holders", [2, 3])
def test_training_on_shares_is_that_in_the_clear(holders: int) -> None:
    """No false alarm: masks are seeded. Training moves z by far more than the error that is allowed."""
    arguments = (parts(holders), GRAPH.y, SPLIT, 0)
    shared = run_on_shares(PLAN, *arguments, randomness=SeededRandomness(1))
    clear, untrained = in_clear(PLAN, holders), in_clear(replace(PLAN, epochs=1), holders)
    assert float((shared.head.z - clear.z).abs().max()) <= ERROR
    assert float((untrained.z - clear.z).abs().max()) > 10 * ERROR
    assert shared.head.best == clear.best
    if holders == 2:  # only rounding depends on masks, and a run with the same ones repeats itself to the bit
        again, other = (run_on_shares(PLAN, *arguments, randomness=SeededRandomness(seed)).head.z for seed in (1, 0))
        assert torch.equal(shared.head.z, again)
        assert 0 < float((again - other).abs().max()) <= ERROR
    longer = run_on_shares(replace(PLAN, epochs=5), *arguments, randomness=SeededRandomness(1))
    once = shared.transcript.bytes - PLAN.epochs * (longer.transcript.bytes - shared.transcript.bytes)
    # Features and means of each holder go to every other one as whole masked matrices, once.
    dense = 8 * (holders - 1) * GRAPH.num_nodes * (GRAPH.schema.dimension + holders * GRAPH.num_nodes)
    assert dense < once < dense + 2000 * holders


@pytest.mark.slow  # seconds
def test_the_dealer_is_sent_nothing_and_the_label_holder_alone_opens_z() -> None:
    shared = run_on_shares(PLAN, parts(3), GRAPH.y, SPLIT, 0, randomness=SeededRandomness(0))
    entries = shared.transcript.entries
    assert {entry.receiver for entry in entries} == {"holder1", "holder2", "holder3"}
    opened = [entry for entry in entries if entry.kind == "hidden-share"]
    assert {entry.receiver for entry in opened} == {"holder1"}
    assert len(opened) == 2 * PLAN.epochs and {entry.shape for entry in opened} == {(GRAPH.num_nodes, PLAN.width)}
    # All else is keys, and words that somebody's mask hides from the reader.
    kinds = {entry.kind for entry in entries if entry.kind != "hidden-share"}
    keys = {"mask-keys", "holder-key"}
    assert kinds == keys | {"masked-left", "masked-right", "correction", "masked-sum", "safe-bits"}
    assert {entry.sender for entry in entries if entry.kind in ("mask-keys", "correction")} >= {"server"}


def test_polynomials_are_taylors_near_zero() -> None:
    """c + a x - b x^3, and the slope (d - x^2) 2^-bits that belongs to it, at most a term of degree 5 away."""
    x = torch.linspace(-0.3, 0.3, 31, dtype=torch.float64)
    functions = ((TANH, torch.tanh, 2 / 15), (SIGMOID, torch.sigmoid, 1 / 480))
    for shape, function, fifth in functions:
        polynomial = shape.constant + shape.linear * x - shape.cubic * x**3
        assert torch.allclose(polynomial, function(x), rtol=0, atol=fifth * 0.3**5)
        slope = shape.linear - 3 * shape.cubic * x**2
        assert torch.allclose(slope, (shape.top - x**2) * 2.0**-shape.bits, rtol=0, atol=1e-12)
        # Weakened copy: a polynomial of degree 1 is told apart.
        assert not torch.allclose(shape.constant + shape.linear * x, function(x), rtol=0, atol=fifth * 0.3**5)


def floating(holders: Sequence[Part], plan: Plan) -> Tensor:
    """z of the last epoch by autograd, in floating point and with the same polynomials."""
    start = Start.of(plan, [features.shape[1] for features, _ in holders], 3, 0)
    own = LabelHolder(plan, start.head, GRAPH.y, SPLIT, 0)
    first = [weight.detach().requires_grad_() for weight in start.first]
    shared = [*first, *(p for inner in (*start.propagations, start.combination) for p in inner.parameters())]
    means = [structure_for("sage", edges, GRAPH.num_nodes) for _, edges in holders]
    descent = torch.optim.SGD(shared, lr=plan.shared_rate)
    z = torch.empty(0)
    for _ in range(plan.epochs):
        h0 = torch.stack([from_scipy(x) @ w for (x, _), w in zip(holders, first, strict=True)]).sum(dim=0)
        states = []
        for inner, mean in zip(start.propagations, means, strict=True):
            h = h0
            for weight, bias in zip(inner.weights, inner.biases, strict=True):
                a = torch.cat([h, mean @ h], dim=1) @ weight + bias
                h = a - a**3 / 3
            states.append(h)
        a = torch.stack(states).mean(dim=0) @ start.combination.weights[0] + start.combination.biases[0]
        z = 0.5 + a / 4 - a**3 / 48
        descent.zero_grad()
        z.backward(own.slopes(z.detach()))  # type: ignore[no-untyped-call]
        descent.step()
    return z.detach()


def test_the_clear_run_descends_along_the_slopes_of_its_polynomials() -> None:
    """Means over three holders are no power of two: their cut is a product with a rounded third."""
    for holders in (2, 3):
        assert float((in_clear(holders=holders).z - floating(parts(holders), PLAN)).abs().max()) <= ERROR
    # Weakened copies: another rate, or another network, is told apart.
    for other in (replace(PLAN, shared_rate=8.0), replace(PLAN, hops=1)):
        assert float((in_clear(other).z - floating(parts(2), PLAN)).abs().max()) > 2 * ERROR


def test_what_shares_cannot_do_is_refused() -> None:
    for wrong, words in (
        ({"combine": "concat"}, "concat"),
        ({"layers": 2}, "2 hidden layers"),
        ({"shared_rate": 9.0}, "power of two"),
        ({"shared_rate": 2.0**12}, "below 4096"),
        ({"shared_rate": 2.0**11}, "lower shared_rate"),
    ):
        with pytest.raises(InputError, match=words):
            in_clear(replace(PLAN, **wrong))  # type: ignore[arg-type]
    assert [Rate.of(rate) for rate in (0.5, 20.0)] == [Rate(1, -1), Rate(5, 2)]
