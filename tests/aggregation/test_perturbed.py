"""Noisy sums: what one unit changes (record and replay), the noise that covers it, the price, the mutants."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from graphveil.aggregation import PerturbedSum, ReceiverRows, grid, perturbed, propagate_privately, quantise, unit_rows
from graphveil.engine import LOCAL, LocalEngine
from graphveil.errors import InputError
from graphveil.graphs import keep_lists, require_degree
from graphveil.mechanisms.samplers.rounded_normal import RoundedNormal
from graphveil.privacy import BlockNoise, SecureRandomness, SeededRandomness, analytic_gaussian_sigma, epsilon_of
from tests.aggregation.replay import allowed, moved, record, same_flow, toggled, undirected

COLUMNS = 3
W_MAX = 0.731


@st.composite
def cases(draw: st.DrawFn) -> tuple[Tensor, Tensor]:
    """A graph (loops and duplicates are in the drawn pairs) and rows, all equal (the worst case) or not."""
    nodes = draw(st.integers(2, 6))
    end = st.integers(0, nodes - 1)
    index = undirected(draw(st.lists(st.tuples(end, end), max_size=25)))
    x = torch.randn(nodes, COLUMNS, generator=torch.Generator().manual_seed(draw(st.integers(0, 99))))
    return index, torch.ones_like(x) if draw(st.booleans()) else x


def rows_for(index: Tensor, x: Tensor, weighted: bool) -> ReceiverRows:
    """Weights from features alone, the largest of them exactly w_max."""
    if not weighted:
        return ReceiverRows.of(index, len(x))
    clean = unit_rows(x)
    weights = torch.sigmoid((clean[index[0]] * clean[index[1]]).sum(dim=1)) if index.numel() else torch.zeros(0)
    return ReceiverRows.of(index, len(x), weights=weights, w_max=W_MAX)


def worst_of_edges(index: Tensor, x: Tensor, hidden: PerturbedSum, weighted: bool) -> float:
    """The largest change when any one unit comes or goes, over the declared one (both squared)."""
    nodes, worst = len(x), 0.0
    rows = rows_for(index, x, weighted)
    first = record(hidden, rows, x)
    for i in range(nodes):
        for j in range(nodes):
            if i == j or (hidden.unit == "edge" and j < i):
                continue
            pairs = [(i, j), (j, i)] if hidden.unit == "edge" else [(i, j)]
            other = rows_for(toggled(index, pairs), x, weighted)
            second = record(hidden, other, x, frozen=first)
            assert same_flow(first, second)
            assert torch.equal(first.outputs[0], second.outputs[0])
            worst = max(worst, moved(first, second) / allowed(hidden, rows))
    return worst


@pytest.mark.slow  # large graphs
@settings(deadline=None, max_examples=5)  # 3 CPU s: every pair of every drawn graph is toggled
@given(cases(), st.sampled_from(["edge", "directed-edge"]), st.booleans())
def test_one_edge_changes_no_more_than_declared(case: tuple[Tensor, Tensor], unit: Any, weighted: bool) -> None:
    """Checklist items 2, 3, 4, 8: every pair of every graph, two hops, the answers of the first graph frozen."""
    hidden = PerturbedSum(unit=unit, sigmas=(1.0, 2.0), w_max=W_MAX if weighted else 1.0, bits=7)
    assert worst_of_edges(*case, hidden, weighted) <= 1.0


def named_graphs() -> Iterator[tuple[Tensor, Tensor]]:
    """A star, a complete graph, one edge, none; rows that all point the same way."""
    same = torch.zeros(7, COLUMNS)
    same[:, 0] = 1.0
    yield undirected([(0, j) for j in range(1, 7)]), same
    yield undirected([(i, j) for i in range(7) for j in range(i)]), same
    yield undirected([(0, 1)]), same
    yield undirected([]), same


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("unit", ["edge", "directed-edge"])
def test_the_bound_is_reached(unit: Any, weighted: bool) -> None:
    """No noise is wasted: the worst edge changes what is declared, but for the rounding of weights and lengths."""
    hidden = PerturbedSum(unit=unit, sigmas=(1.0,), w_max=W_MAX if weighted else 1.0, bits=7)
    for index, x in named_graphs():
        assert 0.95 < worst_of_edges(index, x, hidden, weighted) <= 1.0


def test_weights_above_the_declared_one_are_found() -> None:
    index, x = next(named_graphs())
    hidden = PerturbedSum(sigmas=(1.0,), w_max=W_MAX)
    heavy = ReceiverRows.of(index, len(x), weights=torch.ones(index.shape[1]), w_max=1.0)
    with pytest.raises(InputError, match="the declared w_max"):
        hidden.perturb(heavy, x, 1, SeededRandomness(0))


@settings(deadline=None, max_examples=24)
@given(cases(), st.integers(1, 3), st.booleans())
def test_one_person_changes_no_more_than_declared(case: tuple[Tensor, Tensor], degree: int, cut: bool) -> None:
    """Checklist items 2, 3, 9, 10 at node level: features and list of any node emptied where lists are cut.

    Under a declared degree the whole node goes: its own row may change by more, and is left out.
    """
    index, x = case
    nodes = len(x)
    degree = degree if cut else max(1, int(torch.bincount(index[0], minlength=nodes).max()))
    hidden = PerturbedSum(unit="node", sigmas=(10.0, 20.0), bits=7, degree=degree)

    def rows(edges: Tensor) -> ReceiverRows:
        return ReceiverRows.of((keep_lists if cut else require_degree)(edges, nodes, degree), nodes)

    first = record(hidden, rows(index), x)
    for node in range(nodes):
        gone = x.clone()
        gone[node] = 0.0
        less = index[:, index[0] != node] if cut else index[:, (index != node).all(dim=0)]
        second = record(hidden, rows(less), gone, frozen=first)
        assert same_flow(first, second)
        assert moved(first, second, leave_out=None if cut else node) <= allowed(hidden, rows(index))


def test_node_level_needs_bounded_edges() -> None:
    index, x = next(named_graphs())
    hidden = PerturbedSum(unit="node", sigmas=(1.0,), degree=2)
    for edges in (index, keep_lists(index, 7, 3)):
        with pytest.raises(InputError, match="edges bounded by 2"):
            hidden.perturb(ReceiverRows.of(edges, 7), x, 1, SeededRandomness(0))
    hidden.perturb(ReceiverRows.of(keep_lists(index, 7, 2), 7), x, 1, SeededRandomness(0))


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_a_bad_row_sends_nothing_and_nothing_else_breaks(bad: float) -> None:
    """Checklist item 16."""
    index, x = next(named_graphs())
    x[0, 1] = bad
    rows = ReceiverRows.of(index, 7)
    layers = propagate_privately(PerturbedSum(sigmas=(1.0, 1.0)), rows, x, SeededRandomness(0), normalise=False)
    assert all(bool(part.isfinite().all()) for part in layers)


def noise_of(hidden: PerturbedSum, *, hub: bool = False, seed: int = 0, nodes: int = 6_000) -> np.ndarray:
    """(Y - S) / step of one hop, from a graph without edges or one in which everybody sends to node 0."""
    x = torch.ones(nodes, 10)
    star = torch.stack([torch.arange(1, nodes), torch.zeros(nodes - 1, dtype=torch.int64)])
    rows = ReceiverRows.of(star if hub else star[:, :0], nodes)
    bits = hidden.row_bits()
    out = hidden.perturb(rows, x, 1, SeededRandomness(seed)).double() * 2**bits
    out[0] -= (nodes - 1) * quantise(x, bits=bits).values[0].double() if hub else 0.0
    return np.asarray(out.numpy())


def test_the_noise_released_is_the_noise_declared() -> None:
    """Checklist item 18, end to end: the very draws of the table, whose law has its own test."""
    noise = noise_of(PerturbedSum(sigmas=(1.5,), bits=10), nodes=300)
    stream = next(BlockNoise(SeededRandomness(0)).keys(1, 1)).stream()
    assert np.array_equal(noise.ravel(), RoundedNormal(1536.0, 12 * 1536).draw(3000, stream))


def test_long_rows_get_the_same_noise() -> None:
    """A sum beyond float32's whole numbers: 5,999 rows of 2^12 steps, released to float32's precision."""
    hidden = PerturbedSum(sigmas=(5.0,), bits=12)
    hub, plain = noise_of(hidden, hub=True), noise_of(hidden)
    assert np.array_equal(hub[1:], plain[1:])
    assert abs(hub[0] - plain[0]).max() <= 2**3
    assert abs(plain[0]).max() > 2**10


@pytest.mark.parametrize("epsilon", [0.5, 8.0])
def test_the_price_is_exact_and_errs_to_the_safe_side(epsilon: float) -> None:
    """Checklist item 14: the analytic curve, and PLD to 1e-3; an edge costs sqrt(2) times what an entry costs."""
    sigma = analytic_gaussian_sigma(epsilon, 1e-5, math.sqrt(2))
    hidden = PerturbedSum(sigmas=(math.sqrt(3) * sigma,) * 3)
    assert epsilon <= hidden.epsilon(1e-5, 64) < epsilon * (1 + 1e-5)
    assert epsilon_of(hidden.event(), 1e-5) == pytest.approx(epsilon, rel=1e-3)
    entry = PerturbedSum(unit="directed-edge", sigmas=hidden.sigmas)
    assert hidden.mu == pytest.approx(math.sqrt(2) * entry.mu)
    assert hidden.mu >= math.sqrt(2) / sigma
    unequal = PerturbedSum(unit="directed-edge", sigmas=(2.0, 1.0))
    assert unequal.mu == pytest.approx(math.sqrt(1.25))
    assert perturbed.sensitivity_of("node", 0.5, 100) == pytest.approx(5.0)


def test_the_price_counts_the_cut_tails_and_no_noise_hides_nothing() -> None:
    hidden = PerturbedSum(unit="node", sigmas=(10.0,), degree=400)
    epsilon, delta = hidden.price(8.0, 1e-6, 64)
    assert 8.0 < epsilon < 8.0 + 1e-6 and 1e-6 < delta < 1e-6 * (1 + 1e-6)
    assert PerturbedSum(sigmas=(0.05,)).epsilon(1e-5, 64) == math.inf
    assert 30 < PerturbedSum(sigmas=(0.25,)).epsilon(1e-5, 64) < 45
    index, x = next(named_graphs())
    bare = PerturbedSum(sigmas=(0.0, 1.0))
    assert bare.mu == bare.epsilon(1e-5, 3) == epsilon_of(bare.event(), 1e-5) == math.inf
    exact = propagate_privately(bare, ReceiverRows.of(index, 7), x, SeededRandomness(0), normalise=False)[1]
    assert torch.allclose(exact[0], torch.tensor([6.0, 0.0, 0.0]), atol=0.01)


def test_the_price_counts_the_rounding_of_every_hop_column_and_entry() -> None:
    """Rounding weighs 2e-12 of epsilon for each number that one unit can change."""
    for unit, degree, entries in (("directed-edge", None, 1), ("edge", None, 2), ("node", 9, 9)):
        for hops in (1, 3):
            hidden = PerturbedSum(unit=unit, sigmas=(10.0,) * hops, degree=degree)
            epsilon, _ = hidden.price(0.0, 1e-6, 100_000)
            assert epsilon == pytest.approx(2e-12 * entries * hops * 100_000)


def test_hops_follow_each_other_with_fresh_noise_in_every_call() -> None:
    index, x = next(named_graphs())
    rows, hidden = ReceiverRows.of(index, 7), PerturbedSum(sigmas=(1.0, 1.5))
    gap = propagate_privately(hidden, rows, x, SeededRandomness(4))
    raw = propagate_privately(hidden, rows, x, SeededRandomness(4), normalise=False)
    assert len(gap) == len(raw) == 3
    for normal, plain in zip(gap, raw, strict=True):
        assert torch.allclose(normal, unit_rows(plain), atol=1e-6)
        assert normal.dtype == torch.float32
    source = SeededRandomness(4)
    assert torch.equal(raw[1], hidden.perturb(rows, x, 1, source))
    assert torch.allclose(raw[2], hidden.perturb(rows, raw[1], 2, source), atol=1e-2)
    fresh = SecureRandomness()
    assert not torch.equal(hidden.perturb(rows, x, 1, fresh), hidden.perturb(rows, x, 1, fresh))


@pytest.mark.parametrize("normalise", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_large_graphs_get_the_bits_of_small_ones(
    monkeypatch: pytest.MonkeyPatch, normalise: bool, weighted: bool
) -> None:
    """By compiled loops rows are added up, scaled and put on the grid block by block, in threads, from hop to hop."""
    nodes, columns = 9000, 33
    index = undirected([(i, (i * i + j) % nodes) for i in range(nodes) for j in range(3)])
    x = torch.randn(nodes, columns, generator=torch.Generator().manual_seed(0))
    rows = rows_for(index, x, weighted)
    hidden = PerturbedSum(sigmas=(1.0, 1.5, 3.0), w_max=rows.w_max)
    small = propagate_privately(hidden, rows, x, SeededRandomness(1), normalise=normalise)
    monkeypatch.setattr(grid, "LOOP_PAYS_FROM", -1)
    for engine in (LOCAL, LocalEngine(3)):
        large = propagate_privately(hidden, rows, x, SeededRandomness(1), normalise=normalise, engine=engine)
        assert all(torch.equal(*pair) for pair in zip(small, large, strict=True))


def test_the_noise_has_the_declared_size_and_reach() -> None:
    index, x = next(named_graphs())
    trace = record(PerturbedSum(sigmas=(1.5, 3.0)), ReceiverRows.of(index, 7), x)
    assert trace.noise == [(1.5 * 2**10, 12 * 1536, 21), (3.0 * 2**10, 12 * 3072, 21)]
    weighted = record(PerturbedSum(sigmas=(1.5,), w_max=W_MAX, bits=7), rows_for(index, x, True), x)
    assert weighted.noise == [(1.5 * 2**14, 12 * 1.5 * 2**14, 21)]
    assert RoundedNormal(1.5 * 2**10, 12 * 1536).variance == pytest.approx(1536**2, rel=1e-6)


@pytest.mark.parametrize(
    "settings",
    [
        *({"sigmas": sigmas} for sigmas in ((), (-1.0,), (math.nan,), (math.inf,))),
        *({"w_max": w_max} for w_max in (0.0, math.nan)),
        *({"unit": "k-edges", "relationships": k} for k in (None, 0, True, 2.0)),
        *({"unit": "node", "degree": degree} for degree in (None, 0)),
        *({"unit": unit, "degree": 3, "relationships": k} for unit, k in (("edge", None), ("k-edges", 2))),
        *({"unit": "edge", "relationships": 2}, {"unit": "person"}, {"bits": 0}),
    ],
)
def test_bad_settings_are_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        PerturbedSum(**({"sigmas": (1.0,)} | settings))


def test_what_the_grid_cannot_hold_is_refused() -> None:
    index, x = next(named_graphs())
    rows = ReceiverRows.of(index, 7)
    with pytest.raises(InputError, match="too few; allowed: 10 to"):
        PerturbedSum(sigmas=(0.001,)).perturb(rows, x, 1, SeededRandomness(0))
    with pytest.raises(InputError, match="too many; allowed: 10 to"):
        PerturbedSum(sigmas=(200.0,), bits=10).perturb(rows, x, 1, SeededRandomness(0))
    for hop in (0, 2):
        with pytest.raises(InputError, match="1 to 1"):
            PerturbedSum(sigmas=(1.0,)).perturb(rows, x, hop, SeededRandomness(0))
    finest = {(1.0,): 10, (1.0, 20.0): 9, (1.0, 200.0): 8, (1000.0,): 7, (0.0,): 10}
    assert {sigmas: PerturbedSum(sigmas=sigmas).row_bits() for sigmas in finest} == finest
    assert (PerturbedSum(sigmas=(3.8,)).row_bits(7), PerturbedSum(sigmas=(3.8,), bits=5).row_bits(7)) == (8, 5)
