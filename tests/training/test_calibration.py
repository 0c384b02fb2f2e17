"""Calibration of edge weights against the same scheme over a dense n x n array, and the proximal step by itself."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from graphveil.aggregation import Support, build_inputs
from graphveil.errors import InputError
from graphveil.models import build_backbone
from graphveil.runtime.progress import Progress
from graphveil.training import Calibration, Schedule, train_calibrated
from graphveil.training.calibration import Calibrated, EdgeWeights, complement_of
from tests.training.dense import dense_calibrated, forward

N, D, HIDDEN, CLASSES = 30, 6, 5, 3
BACKBONES = ["sage", "gcn", "gat"]
LABELS = torch.arange(N) % CLASSES


@dataclass
class Judge:
    """Cross entropy on the first 20 nodes; validation figures from the rest, or `estimates`."""

    estimates: list[float] | None = None
    breaks_at: int | None = None
    calls: int = 0
    epochs: int = 0
    ideal: float = 1.0

    def loss(self, logits: Tensor) -> Tensor:
        self.calls += 1
        loss = cross_entropy(logits[:20], LABELS[:20])
        return loss * math.nan if self.calls == self.breaks_at else loss

    def train_accuracy(self, logits: Tensor) -> float:
        return 0.0

    def validate(self, logits: Tensor) -> tuple[float, float, float]:
        assert not logits.requires_grad
        self.epochs += 1
        estimate = self.estimates[self.epochs - 1] if self.estimates else 0.5
        return float(cross_entropy(logits[20:], LABELS[20:])), 0.25, estimate


def edges(*, directed: bool = False) -> Tensor:
    """Node 29 is isolated, node 28 hears from one node only."""
    source, target = np.random.default_rng(0).integers(0, 28, (2, 70))
    pairs = np.concatenate([np.stack([source, target]), [[3], [28]]], axis=1)
    if not directed:
        pairs = np.concatenate([pairs, pairs[::-1]], axis=1)
    return torch.from_numpy(pairs)


def features() -> Tensor:
    return torch.randn(N, D, generator=torch.Generator().manual_seed(1))


def backbone(name: str, rate: float = 0.5) -> Any:
    return build_backbone(name, D, HIDDEN, CLASSES, rate, generator=torch.Generator().manual_seed(2))


def support_of(*, directed: bool = False) -> Support:
    return Support.of(edges(directed=directed), N)


def run(
    name: str,
    calibration: Calibration,
    *,
    support: Support | None = None,
    epochs: int = 40,
    seed: int = 5,
    model: Any = None,
    judge: Judge | None = None,
    selection: str = "last",
    patience: int = 0,
    progress: Any = None,
) -> Calibrated:
    schedule, inputs = Schedule(epochs, 0.02, 1e-3, selection, patience), build_inputs(features(), None, 0, width=1)
    own, judge, how = support or support_of(), judge or Judge(), {"seed": seed, "progress": progress}
    return train_calibrated(model or backbone(name), name, inputs, own, judge, schedule, calibration, **how)


def run_dense(name: str, calibration: Calibration, noisy: Tensor) -> tuple[Tensor, Tensor]:
    """The dense scheme's last evaluated A and logits."""
    model, schedule = backbone(name), Schedule(40, 0.02, 1e-3, "last")
    return dense_calibrated(model, name, features(), noisy, Judge(), schedule, calibration, seed=5)[-1]


def matrix(result: Calibrated | Support, weights: Tensor | None = None) -> Tensor:
    """[receiver, sender]."""
    source, target = result.edge_index
    values = torch.ones(len(source)) if weights is None else weights
    return torch.zeros(N, N).index_put((target, source), values)


@pytest.mark.slow  # seconds
@pytest.mark.parametrize(
    ("name", "directed", "symmetric"), [("sage", True, False), ("gcn", False, True), ("gat", False, False)]
)
def test_with_everything_in_the_complement_the_iterates_are_the_dense_ones(
    name: str, directed: bool, symmetric: bool
) -> None:
    support = support_of(directed=directed)
    free = N * (N - 1) - support.entries
    calibration = Calibration(1e-3, 2e-3, 0.02, free // 2 if symmetric else free, symmetric)
    calibrated = run(name, calibration, support=support)
    a, logits = run_dense(name, calibration, matrix(support))
    assert calibrated.weights.numel() == N * (N - 1)
    assert torch.allclose(matrix(calibrated, calibrated.weights), a, atol=2e-4)
    assert torch.allclose(calibrated.trained.logits, logits, atol=2e-3)
    assert calibrated.violations is not None and calibrated.violations > 0.02
    assert float((a > 0).float().mean()) > float((matrix(support) > 0).float().mean())


@pytest.mark.slow  # seconds
@pytest.mark.parametrize(("name", "symmetric"), [("sage", True), ("gcn", False), ("gat", True)])
def test_where_no_slope_outside_beats_lambda2_the_support_alone_is_the_dense_problem(
    name: str, symmetric: bool
) -> None:
    calibration = Calibration(2.0, 1.0, 0.02, 0, symmetric)
    calibrated = run(name, calibration)
    a, logits = run_dense(name, calibration, matrix(support_of()))
    assert bool((a[matrix(support_of()) == 0] == 0).all())
    assert torch.allclose(matrix(calibrated, calibrated.weights), a, atol=2e-4)
    assert torch.allclose(calibrated.trained.logits, logits, atol=2e-3)
    watched = run(name, Calibration(2.0, 1.0, 0.02, 100, symmetric))
    assert watched.violations == 0
    assert bool((watched.weights[~watched.collected] == 0).all())
    assert torch.allclose(watched.weights[watched.collected], calibrated.weights, atol=1e-4)


def stepped(slopes: list[float], calibration: Calibration, *, steps: int, collected: bool = True) -> Tensor:
    """Weights of a path's entries after steps down constant slopes."""
    support = Support.of(torch.stack([torch.arange(len(slopes)), torch.arange(len(slopes)) + 1]), len(slopes) + 1)
    weights = EdgeWeights(support, torch.full((len(slopes),), collected), calibration)
    for _ in range(steps):
        weights.step((weights.values * torch.tensor(slopes)).sum())
    return weights.values.detach()


def test_collected_weights_end_at_exactly_0_or_1_or_at_the_stationary_point() -> None:
    """Slope + lambda2 + 2 lambda1 (w - 1) = 0 in between; above it at 0 the weight is 0, below it at 1 it is 1."""
    chosen = Calibration(0.05, 0.02, 0.02)
    weights = stepped([-0.021, -0.02, -0.5, 0.0801, 0.5, 0.03, -0.01], chosen, steps=600)
    assert weights[:3].tolist() == [1, 1, 1]
    assert weights[3:5].tolist() == [0, 0]
    assert weights[5:].tolist() == pytest.approx([0.5, 0.9], abs=1e-3)


def test_the_largest_penalty_holds_every_weight_where_it_was_collected() -> None:
    """Where it would be 1 - slope / (2 lambda1): at the upper end of the range too, no square overflows."""
    for lambda1, weights in ((1e3, [1, 0.9998, 0.95]), (1e9, [1, 1, 1])):
        reached = stepped([-1.0, 0.5, 100.0], Calibration(lambda1, 0.0, 0.01), steps=600)
        assert reached.tolist() == pytest.approx(weights, abs=1e-4)


def test_entries_outside_stay_at_exactly_0_up_to_the_threshold_and_grow_beyond_it() -> None:
    chosen = Calibration(0.05, 0.02, 0.02)
    weights = stepped([0.3, 0.0, -0.0199, -0.02, -0.0201, -0.07, -0.2], chosen, steps=600, collected=False)
    assert weights[:4].tolist() == [0, 0, 0, 0]
    assert 0 < float(weights[4]) < 0.01
    assert weights[5:].tolist() == pytest.approx([0.5, 1.0], abs=1e-3)


@pytest.mark.parametrize("name", BACKBONES)
def test_the_kept_network_and_weights_belong_together(name: str) -> None:
    """The estimate peaks at epoch 7 of 12: the kept pair gives that epoch's logits, and no other pair does."""
    curve = [0.1] * 6 + [0.9] + [0.0] * 5
    model = backbone(name)
    whole = run(name, Calibration(learning_rate=0.05), model=model, epochs=12, judge=Judge(curve), selection="robust")
    assert whole.trained.epoch == 7
    assert not model.training
    early = run(name, Calibration(learning_rate=0.05), epochs=12, judge=Judge(curve), selection="robust", patience=2)
    assert len(early.trained.history) == 9 and torch.equal(early.weights, whole.weights)
    logits = forward(name, model, features(), matrix(whole, whole.weights))
    assert torch.allclose(whole.trained.logits, logits, atol=1e-5)
    last = run(name, Calibration(learning_rate=0.05), epochs=12)
    assert not torch.allclose(whole.weights, last.weights, atol=1e-3)
    assert not torch.allclose(
        whole.trained.logits, forward(name, model, features(), matrix(last, last.weights)), atol=1e-3
    )


def test_an_interrupted_training_leaves_the_generator_and_the_support_as_they_were() -> None:
    def stop(event: Progress) -> None:
        if event.done == 3:
            raise KeyboardInterrupt

    support, model, chosen = support_of(), backbone("gcn"), Calibration(1e-3, 1e-3, 0.02)
    expected = run("gcn", chosen, support=support)
    torch.manual_seed(9)
    with pytest.raises(KeyboardInterrupt):
        run("gcn", chosen, support=support, model=model, progress=stop)
    assert torch.equal(torch.rand(3), torch.rand(3, generator=torch.Generator().manual_seed(9)))
    assert torch.is_grad_enabled() and all(p.requires_grad for p in model.parameters())
    assert torch.equal(support.edge_index, support_of().edge_index)
    again, other = (run("gcn", chosen, support=support, seed=seed) for seed in (5, 6))
    assert torch.equal(again.weights, expected.weights) and torch.equal(again.trained.logits, expected.trained.logits)
    assert not torch.equal(other.trained.logits, expected.trained.logits)


@pytest.mark.parametrize(("call", "epoch"), [(5, 3), (6, 3)])
def test_a_loss_that_is_no_number_is_refused_in_either_step(call: int, epoch: int) -> None:
    with pytest.raises(InputError, match=f"the training loss is not a number at epoch {epoch}"):
        run("sage", Calibration(), judge=Judge(breaks_at=call))


@pytest.mark.parametrize(
    ("field", "value"),
    [("lambda1", -1), ("lambda1", 1e9 + 1), ("lambda2", math.inf), ("learning_rate", math.nan), ("complement", -1)],
)
def test_settings_outside_their_range_are_refused(field: str, value: float) -> None:
    with pytest.raises(InputError, match=f"^{field}(_a)? is "):
        Calibration(**{field: value})
    with pytest.raises(InputError, match="symmetric calibration: a link is listed in one direction only"):
        run("sage", Calibration(symmetric=True), support=support_of(directed=True))
    with pytest.raises(InputError, match="model 'mlp' reads no edges; allowed: sage, gcn, gat"):
        run("mlp", Calibration())
    with pytest.raises(InputError, match="a complement of 5 entries; allowed: at most the 4 outside"):
        complement_of(Support.of(torch.tensor([[0, 1], [1, 0]]), 3), 5, False, torch.Generator())
    with pytest.raises(InputError, match=r"^complement is 2.5; allowed: a whole number"):
        Calibration(complement=2.5)  # type: ignore[arg-type]


@pytest.mark.parametrize("symmetric", [False, True])
@pytest.mark.parametrize("count", [10, 300])
def test_a_complement_lies_outside_and_is_distinct(count: int, symmetric: bool) -> None:
    """10 are drawn, 300 are listed: more than half of what is free."""
    support = support_of()
    both, collected = complement_of(support, count, symmetric, torch.Generator().manual_seed(0))
    assert both.entries == support.entries + count * (2 if symmetric else 1)
    assert torch.equal(both.edge_index[:, collected], support.edge_index)
    assert both.symmetric or not symmetric
