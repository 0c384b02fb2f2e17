"""The Gaussian process over a graph behind a label channel, against dense algebra and automatic differentiation."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice, pairwise

import pytest
import torch
from torch import Tensor

from graphveil.aggregation import SparseMatrix, normalised
from graphveil.models.labels.label_prior import Channel
from graphveil.models.labels.process import DEPTH, POINTS, SCALE, Process, fit_process, search

# A triangle 0 - 1 - 2 with a tail 2 - 3 - 4, a pair 5 - 6 and the isolated node 7.
PAIRS_OF_LABELS = torch.tensor([[0, 0, 1, 2, 3, 5], [1, 2, 2, 3, 4, 6]])
BOTH_WAYS = torch.cat([PAIRS_OF_LABELS, PAIRS_OF_LABELS.flip(0)], dim=1)
NODES, KINDS = 8, 3
SENT = torch.tensor([0, 1, 1, 2, 0, 2, 2, 1])
LIKELIHOOD = Channel(KINDS, 0.6, 0.2).matrix[:, SENT].T.contiguous()
USED = torch.tensor([[1.0, 1, 0, 1, 1, 0, 1, 1], [0, 1, 1, 1, 1, 1, 1, 0]]).T
LOG_PRIOR = torch.tensor([0.5, 0.3, 0.2]).log()
SETTINGS = {"alpha": 0.9, "penalty": 0.3}


def matrix(kind: str) -> SparseMatrix:
    return normalised(BOTH_WAYS, NODES, kind)  # type: ignore[arg-type]


def read(kind: str, likelihood: Tensor = LIKELIHOOD, used: Tensor = USED) -> Process:
    return Process(matrix(kind), likelihood, used, LOG_PRIOR, **SETTINGS)


def dense(q: SparseMatrix) -> Tensor:
    return (q @ torch.eye(NODES)).double()


def operator(q: SparseMatrix, alpha: float, depth: int) -> Tensor:
    """B as a dense matrix, from its formula."""
    power = [torch.linalg.matrix_power(alpha * dense(q), k) for k in range(depth + 1)]
    return (1 - alpha) * sum(power[:-1], torch.zeros(NODES, NODES).double()) + power[-1]


def objective(a: Tensor, b: Tensor, used: Tensor) -> Tensor:
    """What is minimised, in double precision: a [n, blocks, c]."""
    f = torch.einsum("uv,vbc->ubc", b, a)
    logs = (torch.softmax(SCALE * f + LOG_PRIOR, dim=2) * LIKELIHOOD[:, None]).sum(dim=2).log()
    return -(logs * used).sum() + SETTINGS["penalty"] / 2 * a.square().sum()


@pytest.mark.parametrize(("kind", "depth"), [("gcn", 0), ("gcn", 5), ("mean", 1), ("mean", 20)])
def test_diffusion_equals_the_dense_formula_and_its_transpose_is_the_adjoint(kind: str, depth: int) -> None:
    q, x = matrix(kind), torch.randn(NODES, 4, generator=torch.Generator().manual_seed(0))
    b = operator(q, 0.9, depth)
    assert torch.allclose(q.forward.walk(x, depth, 0.9).double(), b @ x.double(), atol=1e-5)
    assert torch.allclose(q.backward.walk(x, depth, 0.9).double(), b.T @ x.double(), atol=1e-5)


@pytest.mark.parametrize("kind", ["gcn", "mean"])
def test_the_slope_is_that_of_automatic_differentiation(kind: str) -> None:
    a = 0.1 * torch.randn(NODES, 2, KINDS, generator=torch.Generator().manual_seed(0))
    a -= a.mean(dim=2, keepdim=True)
    free = a.double().requires_grad_()
    value = objective(free, operator(matrix(kind), SETTINGS["alpha"], DEPTH), USED)
    value.backward()  # type: ignore[no-untyped-call]
    here = read(kind).at(a)
    assert torch.allclose(here.slope.double(), free.grad, atol=1e-4)
    assert float(here.value.sum()) == pytest.approx(value.item(), rel=1e-5)


def test_the_objective_falls_to_its_minimum() -> None:
    """The minimum comes from a library's search."""
    b = operator(matrix("mean"), SETTINGS["alpha"], DEPTH)
    values = [float(objective(here.a.double(), b, USED)) for here in islice(search(read("mean")), 20)]
    free = torch.zeros(NODES, 2, KINDS, dtype=torch.float64, requires_grad=True)
    lbfgs = torch.optim.LBFGS([free], max_iter=500, line_search_fn="strong_wolfe", tolerance_grad=1e-9)

    def step() -> Tensor:
        lbfgs.zero_grad()
        value = objective(free, b, USED)
        value.backward()  # type: ignore[no-untyped-call]
        return value

    lbfgs.step(step)  # type: ignore[no-untyped-call, arg-type]
    least = float(objective(free.detach(), b, USED))
    assert all(after < before + 1e-5 for before, after in pairwise(values))
    assert values[POINTS - 1] - least < 0.05 * (values[0] - least)
    assert values[-1] - least < 0.001 * (values[0] - least)
    assert torch.equal(fit_process(read("mean")), SCALE * list(islice(search(read("mean")), POINTS))[-1].f)


def test_a_step_too_far_is_not_taken() -> None:
    """Where the penalty is nearly all that counts, the first step leads far too far: no value rises."""
    steep = replace(read("mean"), penalty=1e3)
    values = torch.stack([here.value for here in islice(search(steep), 40)])
    assert torch.equal(values[1], values[0]), "the step was not too long"
    assert bool((values.diff(dim=0) <= 0).all())
    assert bool((values[-1] < values[0]).all())


def test_blocks_solved_side_by_side_are_those_solved_alone() -> None:
    both = fit_process(read("gcn"))
    for block in range(2):
        alone = fit_process(read("gcn", used=USED[:, block : block + 1]))
        assert torch.allclose(both[:, block : block + 1], alone, atol=1e-4)


def test_a_report_that_is_not_used_changes_nothing() -> None:
    other = LIKELIHOOD.clone()
    other[2] = Channel(KINDS, 0.6, 0.2).matrix[:, 0]
    before, after = (fit_process(read("mean", likelihood)) for likelihood in (LIKELIHOOD, other))
    assert torch.equal(before[:, 0], after[:, 0])
    assert not torch.equal(before[:, 1], after[:, 1])
    assert before[7, 1].tolist() == [0.0] * KINDS, "without neighbours and report there is no opinion"
    assert float(before[7, 0].abs().max()) > 0
