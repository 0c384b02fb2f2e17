"""EdgeRand: exhaustive audits on four nodes, the law of the sparse sampler, what it refuses."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from graphveil.errors import InputError
from graphveil.mechanisms import AdjacencyRR, ClassCounts, EdgeRand, LapGraph, NoisyCounts, PairDomain, catalogue
from graphveil.privacy import SecureRandomness, SeededRandomness
from graphveil.privacy.source.derived import SECRET_BYTES
from graphveil.privacy.statement.unit import PRIVATE_EDGE
from tests.mechanisms import pair_cases
from tests.mechanisms.made import Untouched
from tests.methods.made import Counted


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [0.1, 8.0])
def test_audit_accepts_the_stated_epsilon_and_rejects_half_the_noise(epsilon: float) -> None:
    pair_cases.check_audit(lambda budget: EdgeRand(epsilon=budget, domain=pair_cases.tiny()), epsilon, 0.999999)


def test_sparse_sampler_has_the_law_of_one_coin_for_each_pair() -> None:
    """Four chi-square tests with 600 releases each way, false-alarm rate 1e-6 each."""
    (domain, pairs), source = pair_cases.fifty(), SeededRandomness(1)
    mechanism = EdgeRand(epsilon=2.0, domain=domain)
    sparse = pair_cases.releases(lambda: domain.rank(mechanism.randomize(pairs, randomness=source)), domain.size)
    pair_cases.check_coins(sparse, domain.rank(pairs), 2.0)


@pytest.mark.parametrize("kind", [EdgeRand, LapGraph])
def test_a_release_holds_protected_pairs_once_in_order(kind: Any) -> None:
    domain, pairs = pair_cases.fifty()
    released = kind(epsilon=0.5, domain=domain).randomize(pairs.flip(1), randomness=SecureRandomness())
    assert bool((domain.rank(released).diff() > 0).all()) and released.dtype == torch.int64
    certain = kind(epsilon=1e6, domain=domain)
    assert torch.equal(certain.randomize(torch.cat([pairs, pairs], 1), randomness=SecureRandomness()), pairs)
    nothing, triangle = torch.zeros(2, 0, dtype=torch.int64), torch.tensor([[0, 0, 1], [1, 2, 2]])
    for small in (PairDomain(1), PairDomain(2), PairDomain(5), PairDomain(3, None, triangle)):
        mechanism = kind(epsilon=0.1, domain=small)
        synthetic = mechanism.randomize(nothing, randomness=SecureRandomness())
        assert bool(mechanism.log_likelihood(synthetic, nothing).isfinite()) and (small.size or not synthetic.numel())


def test_the_number_of_edges_is_estimated_with_the_stated_variance() -> None:
    """Exactly, over all releases of all graphs of four nodes; LapGraph publishes its number."""
    tiny = EdgeRand(epsilon=1.0, domain=pair_cases.tiny())
    laws, outputs = pair_cases.table(tiny), pair_cases.all_sets(tiny.domain)
    counts = np.array([tiny.estimate(out).total for out in outputs])
    assert laws @ counts == pytest.approx([out.shape[1] for out in outputs])
    assert (laws @ counts**2 - (laws @ counts) ** 2) == pytest.approx(tiny.domain.size * tiny.variance)
    estimate = LapGraph(epsilon=1.0, domain=tiny.domain).estimate(outputs[-1])
    assert (estimate.named, estimate.unnamed, estimate.total) == (1.0, 0.0, outputs[-1].shape[1])


@pytest.mark.parametrize(
    "mechanism",
    [EdgeRand(epsilon=1.0, domain=PairDomain(30)), AdjacencyRR(epsilon=1.0, nodes=30, mode="directed")],
    ids=lambda mechanism: type(mechanism).__name__,
)
def test_the_source_is_asked_for_one_secret(mechanism: Any) -> None:
    """Checklist item 3: all noise comes from keys of blocks, which public facts alone number."""
    for related in (0, 20):
        source = Counted(1)
        pairs = torch.stack([torch.arange(related), torch.arange(related) + 1])
        mechanism.randomize(pairs, randomness=source)
        assert source.counts == [SECRET_BYTES]


def test_a_warning_says_how_many_false_edges_come() -> None:
    small, large = (EdgeRand(epsilon=1.0, domain=PairDomain(nodes)) for nodes in (50, 100_000))
    assert small.warning is None and "lap-graph" in str(large.warning)


CURATORS = {info.class_name: info.mechanism for info in catalogue() if info.trust == "curator" and info.audit is None}


@pytest.mark.parametrize("kind", CURATORS.values(), ids=CURATORS)
def test_what_curators_release_protects_one_private_edge_and_needs_an_epsilon(kind: Any) -> None:
    domain = pair_cases.tiny()
    groups = {"groups": torch.zeros(4, dtype=torch.int64), "classes": 1} if kind is ClassCounts else {}
    settings = {} if kind is NoisyCounts else {"domain": domain, **groups}
    stated = kind(epsilon=0.5, **settings).guarantee
    assert (stated.unit, stated.relation, stated.model, stated.epsilon) == (PRIVATE_EDGE, "add/remove", "central", 0.5)
    with pytest.raises(InputError, match="epsilon"):
        kind(epsilon=0.0, **settings)
    if kind is not NoisyCounts:
        with pytest.raises(InputError, match="public edge"):
            kind(epsilon=1.0, **settings).randomize(domain.public, randomness=Untouched())
