"""Label pool: the classes of a graph's nodes from noisy labels alone, by pooling several ways of reading them.

    members   s_m(v) [c]: label propagation (8), Gaussian processes over the graph (5), belief propagation (3), each
              centred over classes and scaled to unit root-mean-square
    pool      log p(y | v) = sum_m exp(u_m) s_m(v) + b log pi + const,    u, b = argmax  sum_v log( p(. | v) T )_{y'_v}
    on scores of held-out reports: the reports are cut into FOLDS, a node's own fold never takes part in its score
    (but for the class shares pi and the homophily, which all reports estimate together)

The exact channel T of randomized response enters every member and the pool, so nothing is chosen by hand and no clean
label is used.  On the graphs measured (benchmarks/lead.py) it beats the best label propagation at every budget.
Shapes: labels [n] with -1 for none, masks "used" [n, b], scores [n, b, c, m].
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from graphveil.aggregation import SparseMatrix, adjacency, from_scipy, normalised
from graphveil.late import torch
from graphveil.methods.base.released import Topology
from graphveil.models.belief import ROUNDS, Edges, edges_of, propagate_beliefs
from graphveil.models.label_prior import MOST_KEPT, channel, class_shares, homophily
from graphveil.models.label_process import DEPTH, STEPS, diffuse, fit_process
from graphveil.progress import Progress, ProgressCallback

if TYPE_CHECKING:
    from torch import Tensor


FOLDS = 4
#: (matrix, alpha) of label propagation; (matrix, alpha, penalty) of processes; (discount, temper) of beliefs.
SPREADS = (("gcn", 0.5), ("gcn", 0.8), ("gcn", 0.9), ("gcn", 0.95), ("gcn", 0.98), ("gcn", 0.99))
WALKS = (("mean", 0.95), ("mean", 0.98))
PROCESSES = (("mean", 0.9, 1.0), ("mean", 0.97, 0.1), ("mean", 0.97, 0.3), ("mean", 0.99, 0.3), ("gcn", 0.97, 0.3))
BELIEFS = ((0.25, 1.0), (0.25, 0.5), (0.5, 0.25))
#: The costly members are left out where all processes together would take more multiply-adds than this.
MOST_WORK = 4e11
#: Prior of the pool: log-weights u ~ N(., 1), prior weight b ~ N(0.7, 0.3^2).
SPREAD_U, CENTRE_B, SPREAD_B = 1.0, 0.7, 0.3
#: Sizes of the weights from which the search may start, and how far from there, in the logarithm, it may go.
SIZES = (0.1, 0.2, 0.4, 0.8, 1.6, 3.2)
FARTHEST = 6.0


@dataclass(frozen=True)
class Pool:
    """A fitted pool: probabilities [n, c], the weight of each member by name, and the weight of the prior."""

    probabilities: Tensor
    weights: dict[str, float]
    prior_weight: float


def pool_labels(
    topology: Topology,
    labels: Tensor,
    *,
    classes: int,
    keep: float,
    flip: float,
    seed: int,
    device: str = "cpu",
    progress: ProgressCallback | None = None,
) -> Pool:
    """Return class probabilities of every node from released `labels` [n] (-1 where none).

    Args:
        keep, flip: the channel of randomized response the labels went through.
        seed: fixes the folds, never privacy noise.
    """
    keep = min(keep, MOST_KEPT)
    flip = max(flip, (1 - keep) / (classes - 1))
    setting = _Setting.build(topology, labels.to(device), classes, keep, flip, device)
    folds = _folds(setting.labels, seed)
    # All folds side by side in one product with P: the matrix is read once for all of them.
    used = torch.stack([(folds >= 0) & (folds != f) for f in range(FOLDS)] + [folds >= 0], dim=1).float()
    names, scores = _members(setting, used, progress)
    sent = (folds >= 0).nonzero().squeeze(1)
    weights, b = fit_weights(scores[sent, folds[sent]], setting.likelihood[sent], setting.log_prior)
    logits = scores[:, FOLDS] @ weights + b * setting.log_prior
    shares = dict(zip(names, (float(w) for w in weights), strict=True))
    return Pool(torch.softmax(logits, dim=1).cpu(), shares, b)


@dataclass(frozen=True)
class _Setting:
    """The public structure and what the reports say: everything the members read."""

    matrices: dict[str, SparseMatrix]
    edges: Edges
    labels: Tensor
    likelihood: Tensor
    log_prior: Tensor
    homophily: float
    keep: float
    flip: float

    @staticmethod
    def build(topology: Topology, labels: Tensor, classes: int, keep: float, flip: float, device: str) -> _Setting:
        # Both directions even if edges have one: labels are alike on either end.
        both_ways = torch.cat([topology.edge_index, topology.edge_index.flip(0)], dim=1)
        n = topology.num_nodes
        matrices = {kind: normalised(both_ways, n, kind).to(device) for kind in ("gcn", "mean")}
        edges = edges_of(from_scipy(adjacency(both_ways, n), symmetric=True).to(device))
        prior = class_shares(labels, classes, keep, flip).to(device)
        h = homophily(edges.receiver, edges.sender, labels, classes, keep, flip)
        likelihood = channel(classes, keep, flip).to(device)[:, labels.clamp_min(0)].T.contiguous()
        return _Setting(matrices, edges, labels, likelihood, prior.log(), h, keep, flip)


def affordable(edges: int, classes: int) -> bool:
    """Return whether the costly members take part on a graph with so many directed edges."""
    return float(len(PROCESSES) * STEPS * 2 * DEPTH) * edges * (FOLDS + 1) * classes <= MOST_WORK


def pool_products(edges: int, classes: int) -> int:
    """Return how many sparse products of (FOLDS + 1) * classes columns a pool makes."""
    spreads = 30 * len(SPREADS + WALKS)
    if not affordable(edges, classes):
        return spreads
    return spreads + len(PROCESSES) * (2 * STEPS + 1) * DEPTH + 10 * ROUNDS * len(BELIEFS)


def _folds(labels: Tensor, seed: int) -> Tensor:
    """Return the fold of every report [n], -1 where there is none."""
    sent = (labels >= 0).nonzero().squeeze(1)
    order = torch.randperm(len(sent), generator=torch.Generator().manual_seed(seed)).to(labels.device)
    folds = torch.full_like(labels, -1)
    folds[sent] = order % FOLDS
    return folds


def _members(setting: _Setting, used: Tensor, progress: ProgressCallback | None) -> tuple[list[str], Tensor]:
    """Return the members' names and their scores [n, b, c, m]."""
    small = affordable(len(setting.edges.sender), len(setting.log_prior))
    tasks: list[tuple[str, Callable[[], Tensor]]] = []
    for kind, alpha in SPREADS + WALKS:
        tasks.append((f"spread {kind} {alpha}", partial(_spread, setting, used, kind, alpha)))
    for kind, alpha, penalty in PROCESSES if small else ():
        tasks.append((f"process {kind} {alpha} {penalty}", partial(_process, setting, used, kind, alpha, penalty)))
    for discount, temper in BELIEFS if small else ():
        tasks.append((f"belief {discount} {temper}", partial(_belief, setting, used, discount, temper)))
    scores = []
    for done, (_, run) in enumerate(tasks, start=1):
        scores.append(_unit(run()))
        if progress is not None:
            progress(Progress(done, len(tasks)))
    return [name for name, _ in tasks], torch.stack(scores, dim=3)


def _spread(setting: _Setting, used: Tensor, kind: str, alpha: float) -> Tensor:
    (n, blocks), prior = used.shape, setting.log_prior.exp()
    # Unbiased for the true label; negative entries are right, and average out over neighbours.
    estimate = (torch.nn.functional.one_hot(setting.labels.clamp_min(0), len(prior)) - setting.flip) / (
        setting.keep - setting.flip
    )
    seeds = (estimate - prior)[:, None] * used[:, :, None]
    # 0.985^30 is still nearly two thirds: what is cut off of the series must be small beside its sum.
    depth = 60 if alpha > 0.985 else 30
    return diffuse(setting.matrices[kind], seeds.reshape(n, -1), alpha, depth).view(n, blocks, -1)


def _process(setting: _Setting, used: Tensor, kind: str, alpha: float, penalty: float) -> Tensor:
    q = setting.matrices[kind]
    return fit_process(q, setting.likelihood, used, setting.log_prior, alpha=alpha, penalty=penalty)


def _belief(setting: _Setting, used: Tensor, discount: float, temper: float) -> Tensor:
    evidence = setting.likelihood.log()
    prior, h = setting.log_prior.exp(), setting.homophily
    blocks = [
        propagate_beliefs(setting.edges, evidence * mask[:, None], prior, h, temper=temper, discount=discount)
        for mask in used.T
    ]
    return torch.stack(blocks, dim=1)


def _unit(scores: Tensor) -> Tensor:
    """Centre scores [n, b, c] over the classes and scale each block to unit root-mean-square."""
    scores = scores - scores.mean(dim=2, keepdim=True)
    return scores / scores.square().mean(dim=(0, 2), keepdim=True).sqrt().clamp_min(1e-9)


def fit_weights(scores: Tensor, likelihood: Tensor, log_prior: Tensor) -> tuple[Tensor, float]:
    """Return the pool's weights exp(u) [m] and b, at the maximum a posteriori.

    Args:
        scores: [r, c, m] of nodes whose own report took no part in them; likelihood: [r, c] of that report.
    """
    from scipy.optimize import minimize  # slow to import, and nothing else needs it

    members, reports = scores.shape[2], max(len(scores), 1)

    def loss(weights: Tensor, b: Tensor) -> Tensor:
        return -(torch.softmax(scores @ weights + b * log_prior, dim=1) * likelihood).sum(dim=1).log().sum()

    def even(size: float) -> Tensor:
        return torch.full((members,), size / members, device=scores.device)

    centre = torch.tensor([CENTRE_B], device=scores.device)
    # The loss is flat for weights that are far too small or large; a search that began there would stay.
    start = even(min(SIZES, key=lambda size: float(loss(even(size), centre)))).log()

    def value(at: np.ndarray) -> tuple[float, np.ndarray]:
        z = torch.as_tensor(at, dtype=torch.float32).to(scores.device).requires_grad_()
        u, common, b = z[:members], z[members], z[members + 1 :]
        penalty = ((u / SPREAD_U).square().sum() + common**2 + ((b - CENTRE_B) / SPREAD_B).square().sum()) / 2
        total = (loss((start + u + common).exp(), b) + penalty) / reports
        (slope,) = torch.autograd.grad(total, z)
        return float(total.detach()), slope.cpu().double().numpy()

    first = np.append(np.zeros(members + 1), CENTRE_B)
    # A member that does not help has its weight go to 0, whose logarithm would run away.
    box = [(-FARTHEST, FARTHEST)] * (members + 1) + [(CENTRE_B - FARTHEST, CENTRE_B + FARTHEST)]
    best = minimize(value, first, jac=True, method="L-BFGS-B", bounds=box, options={"maxiter": 80, "ftol": 1e-9})
    z = torch.as_tensor(best.x, dtype=torch.float32).to(scores.device)
    return (start + z[:members] + z[members]).exp(), float(z[members + 1])
