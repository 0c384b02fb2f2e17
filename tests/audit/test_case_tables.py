"""The tables and scores that audits judge, beside closed forms: a wrong table would prove the wrong claim."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.special import logsumexp

from graphveil.audit import worst_ratio
from graphveil.audit.edge_cases import all_graphs, edge_cases
from graphveil.audit.exact import subset_neighbours, worst_of_independent
from graphveil.audit.tree_cases import block_case, tree_cases
from graphveil.audit.tree_laws import pairs_of
from graphveil.hierarchy import public_tree
from graphveil.privacy import SeededRandomness

CASES = {case.name: case for case in (*edge_cases(), block_case())}
TREES = {case.name: case for case in tree_cases()}
EPSILONS = (0.3, 1.0, 2.5)
BITS = np.array([g.bit_count() for g in range(64)])


def differing(graphs: int) -> np.ndarray:
    """In how many pairs two graphs differ, [graphs, graphs]."""
    numbers = np.arange(graphs)
    return BITS[numbers[:, None] ^ numbers]


def table_of(name: str, epsilon: float) -> np.ndarray:
    case = CASES[name]
    found: np.ndarray = case.table(case.small(epsilon))
    return found


def geometric(steps: np.ndarray, epsilon: float) -> np.ndarray:
    """The log-probability of two-sided geometric noise."""
    return np.log(np.tanh(epsilon / 2)) - epsilon * np.abs(steps)


# ---- tables of edges ----


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_a_released_pair_is_flipped_with_the_chance_of_randomized_response(epsilon: float) -> None:
    """log Pr = -log(1 + e^epsilon) for each wrong pair, and epsilon more for each right one; five pairs."""
    wrong = differing(32)
    whole = (5 - wrong) * epsilon - 5 * math.log1p(math.exp(epsilon))
    np.testing.assert_allclose(table_of("edge-rand", epsilon), whole, rtol=1e-9)


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_lists_of_lower_ids_say_each_pair_once_and_of_both_ends_twice(epsilon: float) -> None:
    once, twice = table_of("adjacency-rr", epsilon), table_of("adjacency-rr, both ends", epsilon)
    near = CASES["adjacency-rr"].neighbours
    assert near is not None
    chances = np.sort((3 - BITS[:8]) * epsilon - 3 * math.log1p(math.exp(epsilon)))
    for row in once:
        np.testing.assert_allclose(np.sort(row), chances, rtol=1e-9)
    assert worst_ratio(once, near(None)) == pytest.approx(epsilon)
    assert worst_ratio(twice, near(None)) == pytest.approx(2 * epsilon)
    assert worst_ratio(once) == pytest.approx(3 * epsilon), "any two graphs differ in three pairs at most"


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_noisy_counts_have_two_sided_geometric_noise(epsilon: float) -> None:
    levels, counts = np.arange(-40, 44), np.arange(4)
    expected = geometric(levels - counts[:, None], epsilon)
    np.testing.assert_allclose(table_of("noisy-counts", epsilon), expected, rtol=1e-9)


@pytest.mark.parametrize("epsilon", [1.0, 2.5])
def test_noisy_degrees_are_geometric_inside_and_their_ends_take_what_lies_beyond(epsilon: float) -> None:
    table = table_of("noisy-degree", epsilon)
    lowest, highest = CASES["noisy-degree"].small(epsilon).ends
    levels = np.arange(lowest, highest + 1)
    assert table.shape == (8, len(levels), 3)
    np.testing.assert_allclose(logsumexp(table, axis=1), 0.0, atol=1e-9)
    for number, edges in enumerate(all_graphs()):
        # The lower end of a pair has it in its list.
        degrees = np.bincount(edges.min(dim=0).values.numpy(), minlength=3) // 2
        inside = geometric(levels[1:-1, None] - degrees, epsilon)
        np.testing.assert_allclose(table[number, 1:-1], inside, rtol=1e-9)
        beyond = logsumexp(geometric(lowest - np.arange(60)[:, None] - degrees, epsilon), axis=0)
        np.testing.assert_allclose(table[number, 0], beyond, rtol=1e-9)


@pytest.mark.slow  # many runs
def test_levels_with_lists_are_whole_for_each_user_as_often_as_its_lists_repeat() -> None:
    """Users with 4, 2 and 1 possible lists: four lists are gone through for each level."""
    case = CASES["degree-preserving-rr"]  # 2 s: every level with four lists
    table = table_of(case.name, case.epsilon)
    assert case.neighbours is not None
    assert 0.97 * case.epsilon < worst_of_independent(table, case.neighbours(None)) <= case.epsilon * (1 + 1e-9)
    np.testing.assert_allclose(np.exp(table).sum(axis=1), np.tile([1.0, 2.0, 4.0], (8, 1)), rtol=1e-9)
    assert (table[:, :, 2] == table[0, :, 2]).all(), "the last user's list is empty whatever the graph is"


@pytest.mark.slow  # many runs
@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_whole_releases_with_a_noisy_number_of_edges_cost_no_more_than_is_said(epsilon: float) -> None:
    table = table_of("lap-graph", epsilon)
    np.testing.assert_allclose(logsumexp(table, axis=1), 0.0, atol=1e-9)
    assert worst_ratio(table, subset_neighbours(32)) <= epsilon * (1 + 1e-9)
    assert table[31].argmax() == 31, "where every pair is an edge all noise can do is leave some out"


def test_one_edge_moves_one_block_by_one() -> None:
    """Of neighbours exactly one block's law differs, and by epsilon at every level far from both counts."""
    case = CASES["edge-rr, block counts"]
    table = table_of(case.name, 1.0)
    assert case.neighbours is not None
    for first, second in case.neighbours(None):
        change = np.abs(table[first] - table[second]).max(axis=0)
        assert sorted(change) == pytest.approx([0.0] * (len(change) - 1) + [1.0], abs=1e-9)


# ---- scores of samples ----


@pytest.mark.parametrize(
    ("name", "sizes"),
    [("adjacency-rr", (1.0,)), ("adjacency-rr, both ends", (0.0, 2.0)), ("edge-rand", (0.0, 1.0))],
)
def test_scores_take_the_values_that_one_relationship_can_show(name: str, sizes: tuple[float, ...]) -> None:
    case = CASES[name]
    draw = case.draw(case.large(1.0))
    first, second = (draw(is_first, 300, SeededRandomness(3)) for is_first in (True, False))
    assert first.shape == second.shape == (300,)
    assert {round(abs(float(score)), 9) for score in (*first, *second)} == set(sizes)
    # The means of 300 scores lie eleven standard deviations apart.
    assert first.mean() > second.mean()


# ---- trees ----


@pytest.mark.parametrize("name", TREES)
def test_neighbours_of_a_world_differ_in_one_private_edge_and_in_nothing_public(name: str) -> None:
    world = TREES[name].world
    first, second = np.array(world.neighbours).T
    assert (world.private[first] ^ world.private[second]).sum(axis=1).tolist() == [1] * len(first)
    assert np.array_equal(world.public[first], world.public[second])
    assert not (world.public & world.private).any(), "no pair is public and private"
    assert all(world.starts[g] is world.starts[h] for g, h in world.neighbours), "a start would tell what it is made of"


def test_all_graphs_with_public_edges_are_there_and_start_at_the_tree_of_those() -> None:
    case = TREES["edge-rr, mcmc"]
    world, pairs = case.world, np.array(pairs_of(case.nodes))
    kinds = world.public + 2 * world.private
    assert len(np.unique(kinds, axis=0)) == len(kinds) == 3 ** len(pairs)
    assert len(world.neighbours) == 6 * 3**5, "six pairs, whatever the other five are"
    for public, known, start in zip(world.public[::7], world.known[::7], world.starts[::7], strict=True):
        assert set(np.flatnonzero(known)) == set(pairs[public].ravel())
        assert (start is None) == (not public.any())
        if start is not None:
            same = public_tree(case.nodes, pairs[public].T)
            assert np.array_equal(start.left, same.left) and np.array_equal(start.right, same.right)


def test_the_weight_of_private_edges_is_proportional_to_epsilon() -> None:
    private, mixed = TREES["priv-hrg"], TREES["edge-rr, mcmc"]
    np.testing.assert_allclose(private.scores(3.0), 1.5 * private.scores(2.0), rtol=1e-12)
    public = 2 * mixed.scores(1.0) - mixed.scores(2.0)  # what is left at epsilon 0
    np.testing.assert_allclose(mixed.scores(3.0) - public, 3 * (mixed.scores(1.0) - public), rtol=1e-9, atol=1e-12)
    np.testing.assert_array_equal(private.scores(), private.scores(private.epsilon))
