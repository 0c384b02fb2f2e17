"""Class shares and homophily from noisy labels."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from graphveil.aggregation import SparseMatrix, normalised
from graphveil.mechanisms import RandomizedResponse
from graphveil.models import label_process
from graphveil.models.label_prior import HOMOPHILY, LEAST_SHARE, channel, class_shares, homophily
from graphveil.models.label_process import DEPTH, SCALE, diffuse, fit_process, gradient
from graphveil.privacy import SeededRandomness

SHARES = torch.tensor([0.5, 0.3, 0.2])


def noisy(labels: Tensor, epsilon: float, seed: int = 3) -> Tensor:
    return RandomizedResponse(epsilon=epsilon, classes=3).randomize(labels, randomness=SeededRandomness(seed)).labels


def rates(epsilon: float) -> tuple[float, float]:
    mechanism = RandomizedResponse(epsilon=epsilon, classes=3)
    return mechanism.keep, mechanism.flip


def drawn(count: int, probabilities: Tensor) -> Tensor:
    return torch.multinomial(probabilities, count, replacement=True, generator=torch.Generator().manual_seed(1))


@pytest.mark.parametrize(("classes", "epsilon"), [(2, 0.1), (3, 1.0), (40, 3.0), (7, 12.0)])
def test_each_row_of_the_channel_holds_all_reports_of_one_label(classes: int, epsilon: float) -> None:
    mechanism = RandomizedResponse(epsilon=epsilon, classes=classes)
    found = channel(classes, mechanism.keep, mechanism.flip)
    assert torch.allclose(found.sum(dim=1), torch.ones(classes), atol=1e-6)
    assert torch.allclose(found.double(), mechanism.transition().double(), atol=1e-7)


def test_class_shares_are_unbiased() -> None:
    """200,000 reports at epsilon 1: each share within 5 deviations (false alarm 2e-6); inverted at 1.5, not."""
    n = 200_000
    labels = drawn(n, SHARES)
    reports, truth = noisy(labels, 1.0), torch.bincount(labels, minlength=3) / n
    keep, flip = rates(1.0)
    error = 5 * 0.5 / math.sqrt(n) / (keep - flip)
    assert float((class_shares(reports, 3, keep, flip) - truth).abs().max()) < error
    assert float((class_shares(reports, 3, *rates(1.5)) - truth).abs().max()) > error


@settings(max_examples=200, deadline=None)
@given(st.lists(st.integers(-1, 4), min_size=1, max_size=60), st.floats(0.05, 14))
def test_class_shares_are_on_the_simplex(reports: list[int], epsilon: float) -> None:
    """Whatever was reported: they add up to 1, and no class is thought much rarer than declared."""
    mechanism = RandomizedResponse(epsilon=epsilon, classes=5)
    found = class_shares(torch.tensor(reports), 5, mechanism.keep, mechanism.flip)
    assert float(found.sum()) == pytest.approx(1, abs=1e-5)
    assert float(found.min()) > LEAST_SHARE / 5 * 0.83


def planted(h: float, edges: int) -> tuple[Tensor, Tensor, Tensor]:
    """Edges between nodes of their own whose classes follow (1 - h) pi pi^T + h diag(pi): source, target, labels."""
    joint = (1 - h) * SHARES[:, None] * SHARES + h * torch.diag(SHARES)
    pairs = drawn(edges, joint.flatten())
    first, second = torch.arange(edges), torch.arange(edges, 2 * edges)
    labels = torch.cat([pairs // 3, pairs % 3])
    return torch.cat([first, second]), torch.cat([second, first]), labels


@pytest.mark.parametrize("h", [0.65, 0.85])
def test_homophily_is_found(h: float) -> None:
    """100,000 edges at epsilon 2: within 0.03; inverted at epsilon 3, not.

    A pair of reports agrees or not (deviation at most 1/2) and the inverse of the channel stretches by 1/(p - q) at
    each end and 1/(1 - |pi|^2): a deviation of 0.006 (measured), so a false alarm has a chance of 6e-7.
    """
    source, target, labels = planted(h, 100_000)
    reports = noisy(labels, 2.0)
    assert homophily(source, target, reports, 3, *rates(2.0)) == pytest.approx(h, abs=0.03)
    assert homophily(source, target, reports, 3, *rates(3.0)) != pytest.approx(h, abs=0.03)


def test_homophily_stays_where_there_is_something_to_infer() -> None:
    nobody = torch.full((10,), -1)
    source, target = torch.arange(5), torch.arange(5, 10)
    assert homophily(source, target, nobody, 3, *rates(1.0)) == pytest.approx(sum(HOMOPHILY) / 2)
    for h in (0.0, 1.0):
        source, target, labels = planted(h, 2_000)
        assert homophily(source, target, labels, 3, *rates(8.0)) == HOMOPHILY[int(h)]


# ---- the Gaussian process over a graph, against dense algebra and automatic differentiation ----


# A triangle 0 - 1 - 2 with a tail 2 - 3 - 4, a pair 5 - 6 and the isolated node 7.
PAIRS = torch.tensor([[0, 0, 1, 2, 3, 5], [1, 2, 2, 3, 4, 6]])
EDGES = torch.cat([PAIRS, PAIRS.flip(0)], dim=1)
N, C = 8, 3
REPORTS = torch.tensor([0, 1, 1, 2, 0, 2, 2, 1])
LIKELIHOOD = channel(C, 0.6, 0.2)[:, REPORTS].T.contiguous()
USED = torch.tensor([[1.0, 1, 0, 1, 1, 0, 1, 1], [0, 1, 1, 1, 1, 1, 1, 0]]).T
LOG_PRIOR = torch.tensor([0.5, 0.3, 0.2]).log()
SETTINGS = {"alpha": 0.9, "penalty": 0.3}


def matrix(kind: str) -> SparseMatrix:
    return normalised(EDGES, N, kind)  # type: ignore[arg-type]


def dense(q: SparseMatrix) -> Tensor:
    return (q @ torch.eye(N)).double()


def operator(q: SparseMatrix, alpha: float, depth: int) -> Tensor:
    """B as a dense matrix, from its formula."""
    power = [torch.linalg.matrix_power(alpha * dense(q), k) for k in range(depth + 1)]
    return (1 - alpha) * sum(power[:-1], torch.zeros(N, N).double()) + power[-1]


def objective(a: Tensor, b: Tensor, used: Tensor) -> Tensor:
    """What is minimised, in double precision: a [n, blocks, c]."""
    f = torch.einsum("uv,vbc->ubc", b, a)
    said = (torch.softmax(SCALE * f + LOG_PRIOR, dim=2) * LIKELIHOOD[:, None]).sum(dim=2).log()
    return -(said * used).sum() + SETTINGS["penalty"] / 2 * a.square().sum()


@pytest.mark.parametrize(("kind", "depth"), [("gcn", 0), ("gcn", 5), ("mean", 1), ("mean", 20)])
def test_diffusion_equals_the_dense_formula_and_its_transpose_is_the_adjoint(kind: str, depth: int) -> None:
    q, x = matrix(kind), torch.randn(N, 4, generator=torch.Generator().manual_seed(0))
    b = operator(q, 0.9, depth)
    assert torch.allclose(diffuse(q, x, 0.9, depth).double(), b @ x.double(), atol=1e-5)
    assert torch.allclose(diffuse(q, x, 0.9, depth, transposed=True).double(), b.T @ x.double(), atol=1e-5)


@pytest.mark.parametrize("kind", ["gcn", "mean"])
def test_the_gradient_is_that_of_automatic_differentiation(kind: str) -> None:
    q = matrix(kind)
    a = 0.1 * torch.randn(N, 2, C, generator=torch.Generator().manual_seed(0))
    free = a.double().requires_grad_()
    objective(free, operator(q, SETTINGS["alpha"], DEPTH), USED).backward()  # type: ignore[no-untyped-call]
    found = gradient(q, a.view(N, -1), LIKELIHOOD, USED, LOG_PRIOR, **SETTINGS)
    assert free.grad is not None
    assert torch.allclose(found.double(), free.grad.view(N, -1), atol=1e-4)


def test_the_objective_falls_to_its_minimum(monkeypatch: pytest.MonkeyPatch) -> None:
    """B is invertible, so the scores give back the coefficients; the minimum comes from Newton-like search."""
    q = matrix("mean")
    b = operator(q, SETTINGS["alpha"], DEPTH)
    values = []
    for steps in (0, 2, 10, label_process.STEPS):
        monkeypatch.setattr(label_process, "STEPS", steps)
        scores = fit_process(q, LIKELIHOOD, USED, LOG_PRIOR, **SETTINGS)
        a = torch.einsum("uv,vbc->ubc", torch.linalg.inv(b), scores.double() / SCALE)
        values.append(float(objective(a, b, USED)))
    free = torch.zeros(N, 2, C, dtype=torch.float64, requires_grad=True)
    search = torch.optim.LBFGS([free], max_iter=500, line_search_fn="strong_wolfe", tolerance_grad=1e-9)

    def step() -> Tensor:
        search.zero_grad()
        value = objective(free, b, USED)
        value.backward()  # type: ignore[no-untyped-call]
        return value

    search.step(step)  # type: ignore[no-untyped-call, arg-type]
    least = float(objective(free.detach(), b, USED))
    assert values == sorted(values, reverse=True)
    assert values[-1] - least < 0.02 * (values[0] - least)


def test_blocks_solved_side_by_side_are_those_solved_alone() -> None:
    q = matrix("gcn")
    both = fit_process(q, LIKELIHOOD, USED, LOG_PRIOR, **SETTINGS)
    for block in range(2):
        alone = fit_process(q, LIKELIHOOD, USED[:, block : block + 1], LOG_PRIOR, **SETTINGS)
        assert torch.allclose(both[:, block : block + 1], alone, atol=1e-5)


def test_a_report_that_is_not_used_changes_nothing() -> None:
    q, other = matrix("mean"), LIKELIHOOD.clone()
    other[2] = channel(C, 0.6, 0.2)[:, 0]
    before, after = (fit_process(q, found, USED, LOG_PRIOR, **SETTINGS) for found in (LIKELIHOOD, other))
    assert torch.equal(before[:, 0], after[:, 0])
    assert not torch.equal(before[:, 1], after[:, 1])
    assert before[7, 1].tolist() == [0.0] * C, "without neighbours and report there is no opinion"
    assert float(before[7, 0].abs().max()) > 0
