"""Solitude's calibration: train a network and the weights of a noisy graph's edges together, on sparse arrays.

    minimise over theta and A in [0, 1]^{n x n}      CE(g(A, X; theta)) + lambda1 |A - N|_F^2 + lambda2 |A|_1

N is the collected (noisy) adjacency; A starts at N.  Source: Lin, Li, Wang, "Towards Private Learning on Decentralized
Graphs With Local Differential Privacy" (Solitude), IEEE TIFS 17 (2022), equation 14, which names "an alternating
scheme with Adam".  An epoch takes one Adam step on theta at the present A (with dropout), then one proximal Adam step
on A at the new theta (without): with s the slope of CE + lambda1 |A - N|^2 and step = rate / (sqrt(v) + 1e-8),

    A <- prox(A - step m),      prox(z) = clip(z - step lambda2, 0, 1)  minimises  lambda2 |a| + (a - z)^2 / (2 step)

over [0, 1]: a soft threshold in Adam's own metric.  m is Adam's mean of s; v that of (s + lambda2)^2, so that an entry
without a slope of its own moves by at most the rate.

**Why the collected edges suffice.**  An entry outside N starts at 0, where s = dCE/dA.  Its next value is
clip(-step (m + lambda2)), which is exactly 0 while m >= -lambda2, and m, a mean of past slopes, keeps to that while
every slope does.  So training on the collected edges alone gives the very iterates of the dense problem, if and only if
dCE/dA >= -lambda2  on average over the epochs so far (m), at every epoch.  `complement` watches the condition: so many
entries drawn from the rest are trained as well, and the share of them that broke it is returned.  The slopes there are
those of the normalisation, whose degrees count what has grown.

The pair of theta and A that is kept is the one that was evaluated: A is the one before its epoch's step.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from graphveil.aggregation import Inputs, Support
from graphveil.errors import InputError
from graphveil.models import Backbone, learned_structure
from graphveil.runtime.checks import require_number, require_whole
from graphveil.runtime.late import Tensor, nn, torch
from graphveil.runtime.progress import Progress, ProgressCallback
from graphveil.runtime.sorted_arrays import contains
from graphveil.training.loop import Adam, Objective, Schedule, Trained, epoch_figures, require_finite_loss
from graphveil.training.selection import Epoch, selection_rule


@dataclass(frozen=True)
class Calibrated:
    trained: Trained  # as `train` returns it; losses are cross entropies without the two penalties
    edge_index: Tensor  # int64 [2, E + C], the collected entries and those of the complement
    weights: Tensor  # of the kept epoch, float32 [E + C], in [0, 1]
    collected: Tensor  # bool [E + C], false for entries of the complement
    #: share of the complement's entries that broke the condition in any epoch; None without a complement.
    violations: float | None


def train_calibrated(
    model: nn.Module,
    name: str,
    inputs: Inputs,
    support: Support,
    objective: Objective,
    schedule: Schedule,
    calibration: Calibration,
    *,
    seed: int,
    progress: ProgressCallback | None = None,
) -> Calibrated:
    """Train `model` in place together with the weights of the support's entries; load the kept epoch's network. Raises
    InputError for a backbone without edges, a support that is not symmetric where `symmetric` asks for it, a complement
    larger than what lies outside the support, and when the loss stops being a number.

    Args:
        model: the backbone `name` ("sage", "gcn" or "gat").
        support: the collected entries; every weight starts at 1.
        seed: fixes dropout and the complement; never touches privacy noise.
    """
    if calibration.symmetric and not support.symmetric:
        raise InputError("a link is listed in one direction only", where="symmetric calibration")
    generator = torch.Generator().manual_seed(seed)
    support, collected = complement_of(support, calibration.complement, calibration.symmetric, generator)
    backbone, twin = cast(Backbone, model.train()), cast(Backbone, _evaluation_copy(model))
    structure, weights = learned_structure(name, support), EdgeWeights(support, collected, calibration)
    optimiser = Adam(model.parameters(), learning_rate=schedule.learning_rate, weight_decay=schedule.weight_decay)
    rule = selection_rule(schedule.selection, ideal=objective.ideal)
    history: list[Epoch] = []
    best: dict[str, Tensor] = {}
    best_logits = best_weights = torch.empty(0)
    # Computed once for both steps and the evaluation: this product is by far the most expensive part of an epoch.
    product = inputs.linear(backbone.weight1)
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        for number in range(1, schedule.epochs + 1):
            # A step on theta at the present A, with dropout.
            present: Any = structure(weights.values)
            logits = _logits(backbone, product, present.detach())
            loss = objective.loss(logits)
            optimiser.clear()
            loss.backward()  # type: ignore[no-untyped-call]
            optimiser.step()
            product = inputs.linear(backbone.weight1)
            clean = _logits(twin, product.detach(), present)
            history.append(epoch_figures(number, loss.detach(), logits.detach(), clean.detach(), objective))
            if rule(history[-1]):
                best = {key: value.detach().clone() for key, value in model.state_dict().items()}
                best_logits, best_weights, best_epoch = clean.detach(), weights.values.detach().clone(), number
            # A step on A at the new theta, without.
            loss = objective.loss(clean)
            require_finite_loss(float(loss.detach()), number)
            weights.step(loss)
            if progress is not None:
                progress(Progress(number, schedule.epochs))
            if schedule.is_over(number, best_epoch):
                break
    model.load_state_dict(best)
    model.eval()
    trained = Trained(best_epoch, best_logits, tuple(history))
    return Calibrated(trained, support.edge_index, best_weights, collected, weights.violations)


def _evaluation_copy(model: nn.Module) -> nn.Module:
    """Return a copy for evaluation that shares the model's current parameters, as constants."""
    twin = copy.deepcopy(model).eval()
    for target, source in zip(twin.modules(), model.modules(), strict=True):
        for name, parameter in source.named_parameters(recurse=False):
            # Shared storage and no gradient: evaluating at the new theta costs no copy, and no slope of theta.
            setattr(target, name, torch.nn.Parameter(parameter.detach(), requires_grad=False))
    return twin


@dataclass(frozen=True)
class _KnownProduct:
    """Stands in for `Inputs` where the product with the first weight is already known."""

    product: Tensor

    def linear(self, weight: Tensor) -> Tensor:
        return self.product


def _logits(backbone: Backbone, product: Tensor, structure: Any) -> Tensor:
    return backbone.rest(backbone.first(cast(Inputs, _KnownProduct(product)), structure), structure)


def complement_of(support: Support, count: int, symmetric: bool, generator: torch.Generator) -> tuple[Support, Tensor]:
    """Return the support with `count` distinct uniform entries from outside it, E + C entries, and which of them it had
    before, bool. They watch what training on the support alone leaves out. Raises InputError when fewer lie outside.

    Args:
        count: entries off the diagonal; where `symmetric`, pairs of them, both entries of which are added.
    """
    if count == 0:
        return support, torch.ones(support.entries, dtype=torch.bool)
    n, occupied = support.num_nodes, _codes(support)
    if symmetric:
        occupied = occupied[occupied // n > occupied % n]
    free = n * (n - 1) // (2 if symmetric else 1) - occupied.size
    if count > free:
        raise InputError(f"a complement of {count} entries", allowed=f"at most the {free} outside the collected ones")
    # Rejection is slow where few entries are free; listing takes n^2 memory, but so does such a large complement.
    draw = _by_listing if 2 * count > free else _by_rejection
    codes = draw(occupied, n, count, symmetric, generator)
    added = np.stack([codes % n, codes // n])
    if symmetric:
        added = np.concatenate([added, added[::-1]], axis=1)
    joined = Support.of(torch.cat([support.edge_index.cpu(), torch.from_numpy(added)], dim=1), n)
    return joined.to(support.source.device), torch.from_numpy(contains(_codes(support), _codes(joined)))


def _codes(support: Support) -> np.ndarray:
    source, target = support.edge_index.cpu().numpy()
    codes: np.ndarray = target * support.num_nodes + source
    return codes


def _by_rejection(occupied: np.ndarray, n: int, count: int, symmetric: bool, generator: torch.Generator) -> np.ndarray:
    drawn = np.zeros(0, dtype=np.int64)
    while drawn.size < count:
        target, source = torch.randint(n, (2, 2 * count), generator=generator).numpy()
        keep = target > source if symmetric else target != source
        codes = np.concatenate([drawn, (target * n + source)[keep]])
        # In the order of the draws, so that the first `count` are a uniform sample.
        codes = codes[np.sort(np.unique(codes, return_index=True)[1])]
        drawn = codes[~contains(occupied, codes)]
    return drawn[:count]


def _by_listing(occupied: np.ndarray, n: int, count: int, symmetric: bool, generator: torch.Generator) -> np.ndarray:
    codes = np.arange(n * n)
    target, source = codes // n, codes % n
    codes = codes[target > source if symmetric else target != source]
    outside = codes[~contains(occupied, codes)]
    chosen: np.ndarray = outside[torch.randperm(outside.size, generator=generator).numpy()[:count]]
    return chosen


#: Adam's constants (Kingma and Ba, ICLR 2015, Algorithm 1).
DECAY = (0.9, 0.999)
TINY = 1e-8


@dataclass(frozen=True)
class Calibration:
    """How edge weights are trained. Raises InputError for negative or infinite numbers, or no whole complement."""

    lambda1: float = 1e-3  # price of the squared distance from the collected adjacency
    lambda2: float = 1e-3  # price of the weights themselves
    learning_rate: float = 0.01  # of the weights; the most that one moves in an epoch, roughly
    complement: int = 0  # entries outside the collected ones to train along (pairs, where `symmetric`)
    symmetric: bool = False  # both entries of a pair move as one, by the mean of their slopes

    def __post_init__(self) -> None:
        # By the names that users set: `learning_rate_a`, beside the learning rate of the network.
        rates = {"lambda1": self.lambda1, "lambda2": self.lambda2, "learning_rate_a": self.learning_rate}
        require_number("[0, 1e+09]", **rates)
        require_whole(0, complement=self.complement)


class EdgeWeights:
    """The weights of a support's entries in training: those `collected` [E] start at 1 and are pulled back to 1."""

    def __init__(self, support: Support, collected: Tensor, calibration: Calibration) -> None:
        self.start = collected.to(device=support.source.device, dtype=torch.float32)
        self.values = self.start.clone().requires_grad_()
        self.calibration = calibration
        self.opposite = support.turned if calibration.symmetric else None
        self.grown = torch.zeros_like(self.start, dtype=torch.bool)
        self.mean, self.square, self.steps = torch.zeros_like(self.start), torch.zeros_like(self.start), 0

    def step(self, loss: Tensor) -> None:
        """Descend from the slopes of `loss` (the cross entropy at the present values)."""
        slope = torch.autograd.grad(loss, self.values)[0]
        if self.opposite is not None:
            # Both entries are one unknown: with separate slopes, rounding would let them drift apart.
            slope = (slope + slope.index_select(0, self.opposite)) / 2
        calibration, values = self.calibration, self.values.detach()
        # On [0, inf) the penalty |w| is w: its constant slope can be added before Adam's mean.
        slope.add_(values - self.start, alpha=2 * calibration.lambda1).add_(calibration.lambda2)
        self.steps += 1
        self.mean.lerp_(slope, 1 - DECAY[0])
        self.square.mul_(DECAY[1]).addcmul_(slope, slope, value=1 - DECAY[1])
        rate = calibration.learning_rate / (1 - DECAY[0] ** self.steps)
        scale = self.square.sqrt().mul_((1 - DECAY[1] ** self.steps) ** -0.5).add_(TINY)
        values.addcdiv_(self.mean, scale, value=-rate).clamp_(0, 1)
        self.grown |= values > self.start

    @property
    def violations(self) -> float | None:
        """Share of the entries that started at 0 and have ever left it; None without such entries."""
        outside = self.start == 0
        return float(self.grown[outside].float().mean()) if bool(outside.any()) else None
