"""The Gaussian process over a graph against dense algebra and automatic differentiation."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from graphveil.aggregation import SparseMatrix, normalised
from graphveil.models import label_process
from graphveil.models.label_prior import channel
from graphveil.models.label_process import DEPTH, SCALE, diffuse, fit_process, gradient

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
