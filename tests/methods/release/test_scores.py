"""Budget shares: the formulas by hand, sources that are refused, what an estimate costs, and the noise it has."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from graphveil.aggregation import quantise
from graphveil.errors import BudgetError, DataError, InputError
from graphveil.files.reading import read_scores
from graphveil.methods import HeteroRR, load_method
from graphveil.methods.registry import build_method, plan
from graphveil.methods.release.extractor import Extractor, embedded, masked_rows
from graphveil.methods.release.scores import (
    ESTIMATED,
    PUBLIC,
    Scores,
    central_mean,
    combine,
    estimated_scores,
    public_part,
    public_scores,
    sensitivity,
)
from graphveil.privacy import Ledger, SecureRandomness, SeededRandomness, assume, gaussian_delta
from graphveil.runtime.late import quiet
from tests.methods import made

LEDGER = Ledger.open({"features": (1.0, 1e-6)})


def test_the_shares_are_those_of_equation_7_divided_by_their_sum() -> None:
    alpha, beta = torch.tensor([3.0, 1.0]), torch.tensor([0.1, 0.3])
    a, b = np.array([0.75, 0.25]), np.array([0.25, 0.75])
    theta = 0.4 * a + 0.6 * (b.min() + b.max() - b)
    assert combine(alpha, beta, 0.4).numpy() == pytest.approx(theta / theta.sum())
    assert combine(None, beta, 0.0).numpy() == pytest.approx([0.75, 0.25])  # the more sensitive gets less
    assert combine(alpha, None, 1.0).numpy() == pytest.approx(a)


def test_sensitivity_is_the_mean_change_by_masking() -> None:
    rows = torch.tensor([[1.0, 2.0, 3.0], [1.0, 0.0, 0.0]])
    masked = torch.tensor([[0.0, 2.0, 0.0], [1.0, 0.0, 0.0]])
    assert sensitivity(rows, masked).tolist() == [0.25, 0.0, 0.75]


EVERYBODY = torch.ones(60, dtype=torch.bool)


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: public_part(made.graph(20), None), "private features must be paid for"),
        (lambda: public_part(made.graph(20), ~EVERYBODY), "nobody"),
        (lambda: public_part(made.graph(20), EVERYBODY), "everybody"),
        (lambda: public_part(made.graph(20), EVERYBODY[:5]), "not a mask"),
        (lambda: sensitivity(torch.ones(2, 3), torch.ones(2, 3)), "sum above 0"),
        (lambda: Scores((0.5, 0.5), ESTIMATED, "free"), "a price belongs to an estimate"),
        (lambda: Scores((1.0, 1.0), PUBLIC, "too much"), "add up to 2"),
    ],
)
def test_private_features_give_no_scores_for_nothing(call: Callable[[], object], says: str) -> None:
    """An estimate cannot be free, and nothing else has a price."""
    with pytest.raises(InputError, match=says):
        call()


@pytest.mark.parametrize("dimension", [20, 100])
def test_nobody_but_the_public_part_is_read(dimension: int) -> None:
    graph = made.graph(dimension)
    public = torch.arange(60) < 30
    first = public_part(graph, public)
    assert np.array_equal(first.x.numpy(), made.dense(graph.x)[:30])
    second = public_part(made.neighbour(graph, person=40), public)
    assert torch.equal(first.x, second.x)
    assert torch.equal(first.y, second.y)
    shares = public_scores(first, masked=first.x * (torch.arange(dimension) > 3), gamma=0.0)
    assert shares.source == PUBLIC
    assert shares.stamp == public_scores(second, masked=second.x * (torch.arange(dimension) > 3), gamma=0.0).stamp


def test_an_estimate_is_paid_for_before_anything_is_read() -> None:
    class Unread:
        shape = (10, 2)

        def __len__(self) -> int:
            return 10

    with pytest.raises(BudgetError):
        estimated_scores(Unread(), LEDGER, epsilon=2.0, delta=1e-6, randomness=SeededRandomness(0))  # type: ignore[arg-type]


def test_an_estimate_costs_what_the_ledger_says_and_finds_the_sensitive_feature() -> None:
    rows = torch.rand(2_000, 5, generator=torch.Generator().manual_seed(1)) * torch.tensor([4.0, 1, 1, 1, 1])
    scores, paid = estimated_scores(rows, LEDGER, epsilon=0.5, delta=1e-6, randomness=SeededRandomness(2))
    assert paid.total("features") == (0.5, pytest.approx(1e-6))
    assert LEDGER.total("features") == (0.0, 0.0)
    assert np.argmin(scores.shares) == 0
    assert math.fsum(scores.shares) == pytest.approx(1)
    assert (scores.guarantee.model, scores.guarantee.epsilon) == ("central", 0.5)
    assert "reproducible" in str(scores.guarantee.void)
    assert scores.spends == paid.spends


@pytest.mark.parametrize("epsilon", [0.01, 0.5, 1.0, 8.0])
@pytest.mark.parametrize("dimension", [1, 50, 2_048])
def test_the_noise_is_enough_for_the_sensitivity(epsilon: float, dimension: int) -> None:
    """A sensitivity of 1 in place of sqrt(2) would be another price."""
    mean = central_mean(dimension, 100, epsilon=epsilon, delta=1e-6)
    multiplier = mean.sigma * 100
    honest = gaussian_delta(multiplier, epsilon, math.sqrt(2))
    assert mean.noise.price(epsilon, honest, dimension)[1] <= 1e-6
    assert gaussian_delta(multiplier / math.sqrt(2), epsilon, math.sqrt(2)) > 1e-6


def test_one_user_moves_the_sum_by_no_more_than_declared() -> None:
    generator = torch.Generator().manual_seed(3)
    mean = central_mean(6, 2, epsilon=1.0, delta=1e-6)
    for _ in range(200):
        rows = torch.rand(2, 6, generator=generator) ** 8 * 5
        steps = quantise(rows, bits=mean.bits, normalise=False).values.double()
        assert float((steps[0] - steps[1]).norm()) <= math.sqrt(2) * 2**mean.bits


@pytest.mark.parametrize("bad", [-0.1, math.nan, math.inf])
def test_scores_of_users_are_checked(bad: float) -> None:
    rows = torch.full((2, 3), 0.1)
    rows[1, 1] = bad
    with pytest.raises(InputError, match="negative or not a number"):
        central_mean(3, 2, epsilon=1.0, delta=1e-6).randomize(rows, randomness=SeededRandomness(0))


def test_a_file_of_scores_is_read_and_checked(tmp_path: Path) -> None:
    file = tmp_path / "scores.txt"
    file.write_text("# by an expert\n1\n\n0.5 # less\n0\n")
    assert read_scores(file, 3) == (1.0, 0.5, 0.0)
    with pytest.raises(DataError, match=r"3 scores; allowed: 4"):
        read_scores(file, 4)
    file.write_text("1\nnan\n")
    with pytest.raises(DataError, match="line 2 is 'nan'"):
        read_scores(file, 2)
    with pytest.raises(DataError, match="cannot be read"):
        read_scores(tmp_path / "absent", 2)


# ---- feature extractors ----


def doubled(rows: Tensor) -> Tensor:
    return 2 * rows[:, :3]


def test_embeddings_are_clipped_to_the_declared_range() -> None:
    rows = Extractor(doubled, 3, 0.0, 1.0, "arithmetic")(torch.tensor([[0.2, 0.9, -1.0, 7.0]]))
    assert rows.tolist() == [[pytest.approx(0.4), 1.0, 0.0]]
    assert Extractor(doubled, 3, 0.0, 1.0, "arithmetic")(torch.zeros(0, 4)).shape == (0, 3)


def test_a_graph_keeps_everything_but_its_features() -> None:
    graph = made.graph(20)
    graph.public_edges = torch.ones(graph.edge_index.shape[1], dtype=torch.bool)
    embeddings = embedded(graph, Extractor(doubled, 3, 0.0, 2.0, "arithmetic"))
    assert (embeddings.schema.dimension, embeddings.schema.low, embeddings.schema.high) == (3, 0.0, 2.0)
    assert "arithmetic" in embeddings.schema.source
    assert torch.equal(embeddings.public_edges, graph.public_edges)
    assert torch.equal(embeddings.y, graph.y)
    assert torch.equal(embeddings.edge_index, graph.edge_index)
    assert graph.x.shape[1] == 20


def test_guarantees_lean_on_the_extractor_also_of_models_that_are_saved_and_of_what_is_made_of_a_release(
    tmp_path: Path,
) -> None:
    """Nothing can check what it was trained on, and of embeddings nobody sees any more that there was one."""
    raw, extractor = made.graph(20), Extractor(doubled, 3, 0.0, 2.0, "arithmetic")
    images, fact, split = embedded(raw, extractor), assume("extractor-public"), made.split_of(raw)
    for name, settings in {"lpgnn": {"epsilon_x": 1.0, "epsilon_y": 1.0}, "class-sums": {"epsilon": 1.0}}.items():
        assert fact in plan(name, images, settings).guarantee.assumes
        method = build_method(name, {**settings, "epochs": 2}, 3).fit(
            images, split=split, randomness=SecureRandomness()
        )
        assert fact in method.guarantee.assumes and fact in load_method(method.save(tmp_path / name)).guarantee.assumes
    publisher = HeteroRR(epsilon_x=1.0, epsilon_a=1.0, epochs=2)
    released = publisher.release(images, randomness=SecureRandomness())
    assert fact in released.release.guarantee.assumes and not released.schema.extracted
    assert fact in publisher.fit_released(released, split=split).guarantee.assumes
    # Features of the owner's own, and runs in which nothing is promised, lean on no extractor.
    assert plan("lpgnn", raw, {"epsilon_x": 1.0, "epsilon_y": 1.0}).guarantee.assumption("extractor-public") is None
    assert plan("gcn", images, {}).guarantee.assumes == ()


def test_rows_that_depend_on_one_another_are_refused() -> None:
    with pytest.raises(InputError, match="changes with the other rows"):
        Extractor(lambda rows: rows - rows.mean(dim=0), 4, -1.0, 1.0, "batch means")(torch.rand(5, 4))
    for place in (0, -1):
        # The row itself becomes 0 alone and among others: one end alone would not tell.
        with pytest.raises(InputError, match="changes with the other rows"):
            Extractor(lambda rows, place=place: rows - rows[place], 4, -1.0, 1.0, "a person")(torch.rand(5, 4))
    norm = nn.BatchNorm1d(4)
    Extractor(norm, 4, -1.0, 1.0, "fixed statistics")(torch.rand(5, 4))
    assert not norm.training


def test_sparse_rows_are_embedded_and_masked_as_dense_ones() -> None:
    dense = torch.tensor([[0.0, 0.5, 0.0, 1.0], [0.25, 0.0, 0.0, 0.0]])
    extractor = Extractor(doubled, 3, 0.0, 2.0, "arithmetic")
    with quiet():  # torch calls its sparse rows a beta
        sparse = dense.to_sparse_csr()
    assert torch.equal(extractor(sparse), extractor(dense))
    assert torch.equal(masked_rows(sparse, torch.tensor([1]), 0.0), masked_rows(dense, torch.tensor([1]), 0.0))
