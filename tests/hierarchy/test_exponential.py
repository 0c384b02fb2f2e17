"""What a tree drawn in proportion to exp(c L) tells about one edge, by brute force over all trees and all graphs.

The figures are those that the published mechanism was refuted with: its factor epsilon / Delta costs up to 1.6 epsilon,
its printed Delta (eq. 15) up to 2.2 epsilon; half the factor in one joint law stays below epsilon.
"""

from __future__ import annotations

import functools
import itertools
import math

import numpy as np
import numpy.typing as npt
import pytest

from graphveil.hierarchy.likelihood import likelihood_sensitivity
from graphveil.hierarchy.markov import private_weight
from tests.hierarchy.trees import all_trees, below

Array = npt.NDArray[np.float64]
Masks = npt.NDArray[np.uint32]

EPSILONS = (0.1, 1.0, 2.0, 4.0, 8.0, 16.0)


@functools.cache
def pairs(nodes: int) -> list[tuple[int, int]]:
    return list(itertools.combinations(range(nodes), 2))


def graphs_without_the_first_pair(nodes: int) -> Masks:
    """Every graph without the edge {0, 1}, one of each class that swaps of {0, 1} and of the other nodes make."""
    number = {pair: bit for bit, pair in enumerate(pairs(nodes))}
    graphs = np.arange(0, 1 << len(number), 2, dtype=np.uint32)
    least = graphs.copy()
    for ends in ((0, 1), (1, 0)):
        for rest in itertools.permutations(range(2, nodes)):
            to = (*ends, *rest)
            moved = np.zeros_like(graphs)
            for (u, v), bit in number.items():
                moved |= (graphs >> np.uint32(bit) & np.uint32(1)) << np.uint32(
                    number[min(to[u], to[v]), max(to[u], to[v])]
                )
            least = np.minimum(least, moved)
    return np.unique(least)


def likelihoods(nodes: int, graphs: Masks) -> Array:
    """L of every tree [trees, graphs]; bit b of a graph is pair b."""
    rows = []
    for tree in all_trees(nodes):
        total = np.zeros(len(graphs))
        for row in range(nodes - 1):
            one, other = below(tree, int(tree.left[row])), below(tree, int(tree.right[row]))
            crossing = sum(
                1 << bit
                for bit, (u, v) in enumerate(pairs(nodes))
                if (u in one) != (v in one) and {u, v} <= {*one, *other}
            )
            total += score(len(one) * len(other))[np.bitwise_count(graphs & np.uint32(crossing))]
        rows.append(total)
    return np.array(rows)


@functools.cache
def score(many: int) -> Array:
    """N chi(e / N) for e = 0..N."""
    shares = np.arange(1, many) / many
    inside = many * (shares * np.log(shares) + (1 - shares) * np.log(1 - shares))
    return np.concatenate([[0.0], inside, [0.0]])


@functools.cache
def without_and_with(nodes: int) -> tuple[Array, Array]:
    """L of every tree without and with the edge {0, 1}, on every graph that differs from the others."""
    graphs = graphs_without_the_first_pair(nodes)
    return likelihoods(nodes, graphs), likelihoods(nodes, graphs | np.uint32(1))


def log_law(scores: Array) -> Array:
    """log of exp(scores) over its sum, along the first axis."""
    top = scores.max(0)
    return scores - top - np.log(np.exp(scores - top).sum(0))


def worst_ratio(nodes: int, weight: float) -> float:
    """The largest |log Pr[tree | graph] - log Pr[tree | graph with one edge more]|."""
    without, with_it = without_and_with(nodes)
    return float(np.abs(log_law(weight * without) - log_law(weight * with_it)).max())


def printed_delta(nodes: int) -> float:
    """Eq. 15, which lost the exponent N - 1 of Lemma 4."""
    most = nodes**2 // 4
    return math.log(most) + math.log(most / (most - 1))


@pytest.mark.parametrize(
    ("factor", "figures"),
    [
        pytest.param(1.0, (0.991, 0.965, 1.166, 1.440, 1.567, 1.596), id="epsilon / Delta"),
        pytest.param(0.5, (0.496, 0.490, 0.483, 0.583, 0.720, 0.783), id="epsilon / 2 Delta"),
        pytest.param(None, (1.343, 1.419, 1.721, 2.065, 2.147, 2.173), id="epsilon / printed Delta"),
    ],
)
def test_worst_ratios_of_six_nodes_are_the_figures_known(factor: float | None, figures: tuple[float, ...]) -> None:
    scale = 1 / printed_delta(6) if factor is None else factor / likelihood_sensitivity(6)
    found = [worst_ratio(6, scale * epsilon) / epsilon for epsilon in EPSILONS]
    assert found == pytest.approx(figures, abs=6e-4)


@pytest.mark.parametrize("nodes", [3, 4, 5, 6])
def test_our_weight_costs_at_most_epsilon(nodes: int) -> None:
    for epsilon in EPSILONS:
        assert worst_ratio(nodes, private_weight(epsilon, nodes)) <= epsilon


@functools.cache
def public_and_private(nodes: int) -> tuple[Array, Array, list[tuple[int, int]]]:
    """Both layers' likelihoods [trees, graphs] when each pair is public, private or no edge, and the neighbours."""
    kinds = np.array(list(itertools.product(range(3), repeat=len(pairs(nodes)))))
    bits = 1 << np.arange(len(pairs(nodes)))
    public, private = (((kinds == kind) * bits).sum(1).astype(np.uint32) for kind in (1, 2))
    number = {key: place for place, key in enumerate(zip(public.tolist(), private.tolist(), strict=True))}
    # By symmetry the edge {0, 1} stands for every edge.
    near = [(place, number[p, q | 1]) for (p, q), place in number.items() if not (p | q) & 1]
    return likelihoods(nodes, public), likelihoods(nodes, private), near


def worst_of(laws: Array, near: list[tuple[int, int]]) -> float:
    without, with_it = np.array(near).T
    return float(np.abs(np.log(laws[:, without]) - np.log(laws[:, with_it])).max())


@pytest.mark.parametrize(("epsilon", "most"), [(0.1, 0.775), (0.5, 0.775), (1.0, 0.775), (4.0, 0.775), (16.0, 1.0)])
def test_one_joint_law_costs_at_most_epsilon(epsilon: float, most: float) -> None:
    public, private, near = public_and_private(4)
    laws = np.exp(log_law(public + private_weight(epsilon, 4) * private))
    assert worst_of(laws, near) / epsilon <= most
