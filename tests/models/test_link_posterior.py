"""The posterior of every pair, its prior and soft links, against all pairs side by side on small graphs."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from graphveil.errors import InputError
from graphveil.models.blocks.group_background import SoftLinks, soft_links
from graphveil.models.blocks.link_posterior import LinkPosterior, degree_prior, link_posterior, pair_cells
from tests.sizes import LargestTensor

N = 40


@dataclass(frozen=True)
class Reports:
    """What the server holds, and the same as an array [N, N]."""

    source: Tensor
    target: Tensor
    ratio: Tensor
    background: float
    dense: Tensor


def reports(mode: str, epsilon: float = 1.5, seed: int = 0, share: float = 0.2) -> Reports:
    """Reports of a random graph: one list a pair (lower), both lists (both), ordered pairs (directed), or none."""
    generator = torch.Generator().manual_seed(seed)
    bits = (torch.rand(N, N, generator=generator) < share).double().fill_diagonal_(0)
    if mode == "lower":
        bits = bits.triu(1)
    heard = bits if mode == "directed" else bits + bits.T
    ratio, background = (2 * heard - 1) * epsilon, -epsilon
    if mode == "both":
        ratio, background = 2 * (heard - 1) * epsilon, -2 * epsilon
    if mode == "none":
        heard, ratio = torch.zeros(N, N), torch.full((N, N), background, dtype=torch.float64)
    source, target = (heard if mode == "directed" else heard.triu(1)).nonzero().T
    if mode == "both":  # either order of a pair will do
        swap = torch.rand(len(source), generator=generator) < 0.5
        source, target = torch.where(swap, target, source), torch.where(swap, source, target)
    return Reports(source, target, ratio[source, target], background, ratio)


def posterior_of(lists: Reports, degrees: Tensor, *, directed: bool = False) -> LinkPosterior:
    prior = degree_prior(degrees, directed=directed)
    return link_posterior(lists.source, lists.target, lists.ratio, lists.background, prior)


def dense_posterior(lists: Reports, degrees: Tensor, *, directed: bool = False) -> Tensor:
    """Bayes' rule for every pair [N, N] (source, target)."""
    prior = degree_prior(degrees, directed=directed)
    pi = torch.sigmoid(prior.logits()[prior.group][:, prior.group])
    odds = pi / (1 - pi) * lists.dense.exp()
    return (odds / (1 + odds)).fill_diagonal_(0)


#: Each mode with degrees and epsilons of every kind.
POSTERIORS = [
    *(("lower", "mixed", 0.3), ("lower", "one huge", 8.0), ("lower", "half huge", 0.0), ("lower", "equal", 1.5)),
    *(("both", "real", 1.5), ("both", "zeros", 8.0), ("both", "half huge", 0.3), ("both", "mixed", 8.0)),
    *(("directed", "mixed", 1.5), ("directed", "negative", 0.3), ("directed", "huge", 8.0), ("directed", "equal", 0.0)),
    *(("none", "mixed", 1.5), ("none", "one huge", 0.3), ("none", "zeros", 8.0)),
]


@pytest.mark.parametrize(("mode", "name", "epsilon"), POSTERIORS)
def test_posterior_sum_hard_and_hybrid_are_those_of_all_pairs(mode: str, name: str, epsilon: float) -> None:
    """Hybrid keeps k of the pairs: all above the k-th greatest posterior, none below, ties between."""
    sent, directed = reports(mode, epsilon), mode == "directed"
    posterior = posterior_of(sent, CASES[name], directed=directed)
    p = dense_posterior(sent, CASES[name], directed=directed)
    assert torch.allclose(posterior.probability, p[sent.source, sent.target], atol=1e-12, rtol=1e-9)
    spread = posterior.background_probability[posterior.prior.group][:, posterior.prior.group].fill_diagonal_(0)
    spread[sent.source, sent.target] = posterior.probability
    if not directed:
        spread[sent.target, sent.source] = posterior.probability
    assert torch.allclose(spread, p, atol=1e-12, rtol=1e-9)
    total = float(p.sum()) / (1 if directed else 2)
    assert math.isclose(posterior.expected_edges, total, rel_tol=1e-9)
    check_hard(posterior, p)
    check_hybrid(posterior, p, int(posterior.expected_edges * (1 + 1e-9)) * (1 if directed else 2), directed)


def check_hard(posterior: LinkPosterior, p: Tensor) -> None:
    edges = posterior.hard()
    mine = torch.zeros(N, N).index_put_(tuple(edges), torch.tensor(1.0), accumulate=True)
    clear = (p - 0.5).abs() > 1e-9
    assert torch.equal(mine[clear], (p > 0.5).float()[clear])
    assert mine.max() <= 1


def check_hybrid(posterior: LinkPosterior, p: Tensor, k: int, directed: bool) -> None:
    edges, weights = posterior.hybrid()
    assert edges.shape[1] == k == len(weights)
    assert len({tuple(edge) for edge in edges.T.tolist()}) == k
    if k == 0:
        return
    assert torch.allclose(weights.double(), p[edges[0], edges[1]], rtol=1e-6, atol=1e-7)
    greatest = p[~torch.eye(N, dtype=torch.bool)].sort(descending=True).values
    mine = p[edges[0], edges[1]].sort(descending=True).values
    assert torch.allclose(mine, greatest[:k], rtol=1e-9, atol=1e-12)
    if not directed:
        assert {tuple(edge) for edge in edges.T.tolist()} == {tuple(edge) for edge in edges.flip(0).T.tolist()}


def test_ties_are_drawn_uniformly_and_by_the_seed() -> None:
    """700 draws of 3 from 21 equal pairs; every pair within 5 standard deviations: a false alarm in 80,000 runs."""
    prior = degree_prior(torch.ones(7, dtype=torch.int64))
    none = torch.empty(0, dtype=torch.int64)
    posterior = link_posterior(torch.tensor([2]), torch.tensor([0]), torch.zeros(1), 0.0, prior)
    assert int(posterior.expected_edges * (1 + 1e-9)) == 3
    counts = torch.zeros(7, 7)
    for seed in range(700):
        edges, _ = posterior.hybrid(seed=seed)
        counts.index_put_(tuple(edges[:, edges[0] < edges[1]]), torch.tensor(1.0), accumulate=True)
    counts = counts[tuple(torch.triu_indices(7, 7, 1))]
    assert counts.sum() == 2100
    share = 3 / 21
    assert ((counts - 700 * share).abs() < 5 * math.sqrt(700 * share * (1 - share))).all()
    assert torch.equal(posterior.hybrid(seed=5)[0], posterior.hybrid(seed=5)[0])
    empty = link_posterior(none, none, torch.empty(0), -60.0, prior)
    assert empty.hard().shape == empty.hybrid()[0].shape == (2, 0)


@pytest.mark.parametrize(
    ("mode", "name"),
    [("lower", "mixed"), ("both", "half huge"), ("directed", "equal"), ("none", "zeros"), ("directed", "mixed")],
)
def test_soft_links_are_the_posteriors_of_all_pairs(mode: str, name: str) -> None:
    sent_reports, directed = reports(mode), mode == "directed"
    soft = posterior_of(sent_reports, CASES[name], directed=directed).soft()
    p = dense_posterior(sent_reports, CASES[name], directed=directed)
    received, sent = soft.degrees()
    assert torch.allclose(received, p.sum(dim=0), rtol=1e-9)
    assert torch.allclose(sent, p.sum(dim=1), rtol=1e-9)
    means = soft.normalised("mean") @ torch.eye(N)
    assert torch.allclose(means, (p.T / p.sum(dim=0)[:, None]).float(), rtol=1e-4, atol=1e-5)


def test_nothing_of_all_pairs_is_built() -> None:
    """30,000 people, 5 * 10^8 pairs: no tensor has more than 6 numbers a person."""
    n, generator = 30_000, torch.Generator().manual_seed(0)
    degrees = (torch.randn(n, generator=generator) * 4).round().long() + 3
    ends = torch.randint(n // 2, (2, n), generator=generator)
    number = torch.unique(ends[0] * n + ends[1] + n // 2)
    source, target = number // n, number % n
    with LargestTensor() as watch:
        posterior = link_posterior(source, target, torch.full((len(source),), 9.0), -9.0, degree_prior(degrees))
        edges, _ = posterior.hybrid()
        posterior.hard()
        posterior.soft().normalised("gcn", self_loops=True) @ torch.ones(n, 2)
    assert edges.shape[1] > n // 10
    assert watch.numbers < 6 * n


def test_a_pair_that_cannot_be_is_refused() -> None:
    prior = degree_prior(torch.arange(5))
    for source, target, ratio, background, what in (
        ([0], [0], [1.0], -1.0, "does not exist"),
        ([0], [5], [1.0], -1.0, "does not exist"),
        ([-1], [2], [1.0], -1.0, "does not exist"),
        ([0, 1], [1, 0], [1.0, 1.0], -1.0, "listed twice"),
        ([0], [1], [1.0, 2.0], -1.0, "ratios"),
        ([0], [1], [math.inf], -1.0, "finite"),
        ([0], [1], [1.0], math.nan, "finite"),
    ):
        with pytest.raises(InputError, match=what):
            link_posterior(torch.tensor(source), torch.tensor(target), torch.tensor(ratio), background, prior)
    ordered = degree_prior(torch.arange(5), directed=True)
    link_posterior(torch.tensor([0, 1]), torch.tensor([1, 0]), torch.ones(2), -1.0, ordered)
    soft = link_posterior(torch.tensor([0]), torch.tensor([1]), torch.ones(1), -1.0, prior).soft()
    with pytest.raises(InputError, match="gat"):
        soft.structure("gat")


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("sizes", [[5], [6], [1, 1, 1], [1, 4, 2, 7], [2, 1, 3]])
def test_every_pair_has_a_number_of_its_own(sizes: list[int], directed: bool) -> None:
    counts = torch.tensor(sizes)
    n = int(counts.sum())
    group = torch.repeat_interleave(torch.arange(len(sizes)), counts)
    group = group[torch.randperm(n, generator=torch.Generator().manual_seed(0))]
    cells = pair_cells(group, counts, directed=directed)
    source, target = torch.cartesian_prod(torch.arange(n), torch.arange(n)).T
    source, target = (ends[source != target] for ends in (source, target))
    numbers = cells.number(source, target)
    total = n * (n - 1) // (1 if directed else 2)
    assert int(cells.starts[-1]) == total
    assert numbers.unique().tolist() == list(range(total))
    block = cells.block(source, target)
    assert ((cells.starts[block] <= numbers) & (numbers < cells.starts[block + 1])).all()
    back = torch.stack(cells.pairs(numbers))
    pairs = torch.stack([source, target])
    if directed:
        assert torch.equal(back, pairs)
    else:
        assert torch.equal(back.sort(dim=0).values, pairs.sort(dim=0).values)


# ---- the prior of noisy degrees: the same numbers as one beta a person gives ----


def dense_prior(degrees: Tensor, rounds: int = 200) -> Tensor:
    """The prior [n, n] by one beta a person, all pairs side by side."""
    d = degrees.double().clamp(1, len(degrees) - 2)
    beta, limit = torch.zeros_like(d), 2 * math.log(len(d))
    for _ in range(rounds):
        terms = 1 / (beta.exp()[:, None] + (-beta).exp())
        beta = (d.log() - terms.fill_diagonal_(0).sum(dim=1).log()).clamp(-limit, limit)
    return torch.sigmoid(beta[:, None] + beta).fill_diagonal_(0)


CASES = {
    "mixed": torch.randint(-3, 20, (40,), generator=torch.Generator().manual_seed(0)),
    "real": 4 * torch.randn(40, generator=torch.Generator().manual_seed(1)).double() + 5,
    "equal": torch.full((40,), 7),
    "zeros": torch.zeros(40, dtype=torch.int64),
    "negative": torch.full((40,), -5),
    "huge": torch.full((40,), 10**12),
    "one huge": torch.tensor([10**12] + [0] * 39),
    "half huge": torch.tensor([10**12] * 20 + [-4] * 20),
    "three": torch.tensor([0, 1, 9]),
}


@pytest.mark.parametrize("degrees", CASES.values(), ids=CASES)
def test_groups_give_what_one_beta_a_person_gives(degrees: Tensor) -> None:
    prior = degree_prior(degrees)
    probabilities = torch.sigmoid(prior.logits()[prior.group][:, prior.group]).fill_diagonal_(0)
    assert torch.isfinite(probabilities).all()
    assert torch.allclose(probabilities, dense_prior(degrees), atol=1e-12, rtol=1e-9)


def test_directed_links_depend_on_the_sender_alone() -> None:
    degrees = torch.tensor([-2, 1, 5, 5, 300, 2])
    prior = degree_prior(degrees, directed=True)
    chances = torch.sigmoid(prior.logits()[prior.group][:, prior.group])
    assert torch.allclose(chances, (degrees.clamp(1, 4).double() / 5)[:, None].expand(6, 6))


@pytest.mark.parametrize(
    "degrees", [torch.ones(2), torch.ones(3, 3), torch.tensor([1.0, float("nan"), 2.0]), torch.full((4,), torch.inf)]
)
def test_what_is_no_list_of_degrees_is_refused(degrees: Tensor) -> None:
    with pytest.raises(InputError):
        degree_prior(degrees)


# ---- a weight on every pair, as a few single ones and groups ----


GROUPS = 3


@dataclass(frozen=True)
class MadeLinks:
    """Drawn links of a few people, and the dense matrix A[target, source] that they stand for."""

    links: SoftLinks
    dense: np.ndarray

    @property
    def n(self) -> int:
        return len(self.dense)


def made_links(n: int, *, directed: bool, seed: int) -> MadeLinks:
    rng = np.random.default_rng(seed)
    background = rng.random((GROUPS, GROUPS))
    if not directed:
        background = (background + background.T) / 2
    group = rng.integers(0, GROUPS, n)
    dense = background.T[group][:, group]
    np.fill_diagonal(dense, 0)
    source, target = np.triu_indices(n, 1) if not directed else np.nonzero(~np.eye(n, dtype=bool))
    named = rng.permutation(len(source))[: n // 2 + 1]
    source, target, weights = source[named], target[named], rng.random(len(named[: len(source)]))
    dense[target, source] = weights
    if not directed:
        dense[source, target] = weights
    sizes = torch.from_numpy(np.bincount(group, minlength=GROUPS))
    parts = (torch.from_numpy(part) for part in (source, target, weights, background, group))
    return MadeLinks(soft_links(*parts, sizes, directed=directed), dense)


drawn_links = st.builds(
    lambda n, directed, seed: made_links(n, directed=directed, seed=seed),
    st.integers(2, 12),
    st.booleans(),
    st.integers(0, 999),
)


def times(matrix: object, n: int) -> np.ndarray:
    """All entries of an operator, by its product with the identity."""
    return (matrix @ torch.eye(n)).numpy()


@settings(max_examples=60, deadline=None)
@given(drawn_links)
def test_degrees_are_those_of_the_dense_matrix(case: MadeLinks) -> None:
    received, sent = case.links.degrees()
    assert received.numpy() == pytest.approx(case.dense.sum(axis=1))
    assert sent.numpy() == pytest.approx(case.dense.sum(axis=0))


@settings(max_examples=60, deadline=None)
@given(drawn_links, st.booleans(), st.sampled_from(["gcn", "mean"]))
def test_the_normalised_matrix_is_the_dense_one(case: MadeLinks, loops: bool, how: str) -> None:
    a = case.dense + loops * np.eye(case.n)
    received, sent = a.sum(axis=1), a.sum(axis=0)
    wanted = a / received[:, None] if how == "mean" else a / np.sqrt(received)[:, None] / np.sqrt(sent)
    matrix = case.links.normalised(how, self_loops=loops)
    assert matrix.shape == (case.n, case.n)
    assert times(matrix, case.n) == pytest.approx(wanted, abs=1e-4)


def test_slopes_go_through_the_product() -> None:
    links = made_links(6, directed=True, seed=4)
    matrix = links.links.normalised("mean")
    x = torch.randn(6, 2, generator=torch.Generator().manual_seed(1), requires_grad=True)
    seed = torch.arange(12.0).view(6, 2)
    (matrix @ x).backward(seed)
    wanted = torch.from_numpy(links.dense / links.dense.sum(axis=1, keepdims=True)).float().T @ seed
    assert torch.allclose(x.grad, wanted, atol=1e-4)


def test_backbones_read_what_they_read_of_edges_and_who_receives_nothing_gets_zeros() -> None:
    empty, zero = torch.zeros(0, dtype=torch.int64), torch.zeros(1, 1, dtype=torch.float64)
    group, sizes = torch.zeros(4, dtype=torch.int64), torch.tensor([4])
    nothing = soft_links(empty, empty, empty.double(), zero, group, sizes, directed=False)
    assert not times(nothing.normalised("gcn"), 4).any()
    assert times(nothing.normalised("gcn", self_loops=True), 4).tolist() == np.eye(4).tolist()
    links = made_links(4, directed=False, seed=0).links
    assert links.structure("mlp") is None
    with pytest.raises(InputError, match="model gat cannot read a weight on every pair; allowed: sage, gcn, mlp"):
        links.structure("gat")
    with pytest.raises(InputError):
        links.normalised() @ torch.ones(3, 2)
    for model, matrix in (("sage", links.normalised("mean")), ("gcn", links.normalised("gcn", self_loops=True))):
        assert np.array_equal(times(links.structure(model), 4), times(matrix, 4))
