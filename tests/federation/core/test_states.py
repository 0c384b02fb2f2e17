"""What a party needs to go on: networks, Adam and the publisher's key come back so that nothing differs afterwards."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor, nn

from graphveil.errors import BudgetError, InputError
from graphveil.federation.core import states
from graphveil.federation.core.networks import AGGREGATORS, COMBINES, Combination, OutputLayer, Propagation, standardise
from graphveil.federation.core.publication import Publication
from graphveil.federation.core.publisher import Publisher
from graphveil.federation.core.rows import TRAIN
from graphveil.federation.crypto.masks import MaskKey
from graphveil.federation.estimator import VFGNN
from graphveil.graphs import random_split, social_graph
from graphveil.models import structure_for
from graphveil.privacy import SeededRandomness

RING = torch.tensor([[0, 1, 1, 2, 2, 3, 3, 0], [1, 0, 2, 1, 3, 2, 0, 3]])
TRAINED = [*(("holder", kind) for kind in AGGREGATORS), *(("server", kind) for kind in COMBINES)]


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def network(role: str, kind: str, seed: int = 0) -> nn.Module:
    if role == "holder":
        return Propagation(kind, 3, 2, generator=seeded(seed))
    return Combination(kind, 2, 3, 2, 0.0, generator=seeded(seed))


def rows_of(model: nn.Module, h: Tensor) -> Tensor:
    if isinstance(model, Propagation):
        rows: Tensor = model(h, structure_for(model.kind, RING, 4))
    else:
        rows = model([h, h.flip(0)])
    return rows


def step(model: nn.Module, optimiser: torch.optim.Optimizer, h: Tensor) -> None:
    optimiser.zero_grad()
    (rows_of(model, h) ** 2 * torch.arange(12.0).view(4, 3)).sum().backward()
    optimiser.step()


@pytest.mark.parametrize(("role", "kind"), TRAINED)
def test_training_goes_on_as_if_it_had_never_stopped(role: str, kind: str) -> None:
    h = torch.randn(4, 3, generator=seeded(5))
    model = network(role, kind)
    optimiser = torch.optim.Adam(model.parameters(), lr=0.05)
    for _ in range(3):
        step(model, optimiser, h)
    state = states.network_state(model, optimiser)
    step(model, optimiser, h)
    again = network(role, kind, seed=8)
    assert not torch.equal(rows_of(again, h), rows_of(model, h))
    resumed = torch.optim.Adam(again.parameters(), lr=0.05)
    states.load_network(again, resumed, state)
    step(again, resumed, h)
    assert torch.equal(rows_of(again, h), rows_of(model, h))
    forgetful = network(role, kind, seed=8)  # parameters alone are not enough: the moments of Adam are kept too
    states.load_module("network", forgetful, state)
    step(forgetful, torch.optim.Adam(forgetful.parameters(), lr=0.05), h)
    assert not torch.equal(rows_of(forgetful, h), rows_of(model, h))


def test_a_checkpoint_of_another_network_is_refused() -> None:
    state = states.module_state("network", network("holder", "sage"))
    for other in (network("holder", "gcn"), network("server", "concat"), OutputLayer(3, 2, generator=seeded())):
        with pytest.raises(InputError, match="network: this checkpoint belongs to another network; start a new run"):
            states.load_module("network", other, state)


def test_a_publisher_that_comes_back_sends_the_same_bytes_and_charges_nothing_twice() -> None:
    """Two of three publications are made before the stop; afterwards one is made again, one anew, and no further."""
    price, rows = Publication(8.0, 1e-4, 3, 2, 1.0), torch.ones(4, 2)
    publisher = Publisher(price, MaskKey.fresh(SeededRandomness(1)))
    sent = [publisher.publish(rows, str(round), TRAIN) for round in (1, 2)]
    again = Publisher(price, MaskKey.fresh(SeededRandomness(2)))
    states.load_publisher(again, states.publisher_state(publisher))
    assert again.spent == publisher.spent > 0
    assert torch.equal(again.publish(rows, "2", TRAIN), sent[1]) and not torch.equal(*sent)
    assert again.spent == publisher.spent
    again.publish(rows, "3", TRAIN)
    with pytest.raises(BudgetError):
        again.publish(rows, "4", TRAIN)
    assert torch.equal(again.publish(rows, "1", TRAIN), sent[0])


@pytest.mark.parametrize("kind", AGGREGATORS)
def test_rows_of_a_holder_have_length_1(kind: str) -> None:
    """Clipping to C = 1 cuts nothing, and one holder weighs as much as another."""
    rows = rows_of(network("holder", kind), 100 * torch.randn(4, 3, generator=seeded(2)))
    assert torch.linalg.vector_norm(rows, dim=1).tolist() == pytest.approx([1.0] * 4, abs=1e-5)


# ---- what the server makes of rows before it trains on them, and that a dense graph teaches every mode ----


@pytest.mark.parametrize("length", [1.0, 4.0])
def test_rows_lose_what_they_share_and_keep_their_lengths_beside_each_other(length: float) -> None:
    own = torch.randn(500, 8, generator=torch.Generator().manual_seed(0))
    own = own - own.mean(dim=0)
    rows = standardise(100.0 + 0.01 * own, length)
    assert torch.allclose(rows, own * (length / own.square().sum(dim=1).mean().sqrt()), atol=1e-2)


def test_noise_does_not_count_as_length() -> None:
    """Signal of length 1 under noise of length 8: after all, the signal has the length that was asked for."""
    generator = torch.Generator().manual_seed(1)
    own = torch.nn.functional.normalize(torch.randn(4000, 16, generator=generator), dim=1)
    noise = 2.0 * torch.randn(4000, 16, generator=generator)
    factor = standardise(own + noise, 4.0, noise=2.0 * math.sqrt(16)).norm() / (own + noise).norm()
    assert float(factor) == pytest.approx(4.0, rel=0.2)
    assert bool(standardise(noise, 4.0, noise=100.0).isfinite().all())


def test_gradients_pass_by_one_factor() -> None:
    rows = torch.randn(50, 4, generator=torch.Generator().manual_seed(2)).requires_grad_()
    slope = torch.randn(50, 4, generator=torch.Generator().manual_seed(3))
    standardise(rows, 1.0).backward(slope)  # type: ignore[no-untyped-call]
    assert rows.grad is not None
    centred = slope - slope.mean(dim=0)
    assert torch.allclose(rows.grad / rows.grad.norm(), centred / centred.norm(), atol=1e-5)


@pytest.mark.parametrize("mode", ["shared-linear", "individual", "guesses"])
def test_a_dense_graph_teaches_every_mode_as_it_is_first_typed(mode: str) -> None:
    """Two hops make all rows nearly alike: with what they share left in, shared-linear names one class for all."""
    # Three classes of people who know 45 of 200 each, most of them of their own class.
    graph = social_graph(200, 45, 40, 3, apps=8, seed=5)
    split = random_split(graph, 0)
    model = VFGNN(epsilon=math.inf, mode=mode, epochs=60, width=16).fit(
        graph, split=split, randomness=SeededRandomness(0)
    )
    assert model.score(graph, split.test) > 0.8
