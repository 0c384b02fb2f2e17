"""A network that maps what is shown of people back to their features, trained on people of whom both are known.

    x^ = mean + g (s - mean) + network(s)

The middle term is there where s is itself a (noisy) estimate of x: g is the one number that fits best, so that noise
shrinks to the mean and an exact copy stays one.  The network learns what is left over, and stops where a fifth of those
people, kept aside, gain nothing more.
Source: Yang, Zhang, Chang, Liang, "Neural network inversion in adversarial setting via background knowledge
alignment", CCS 2019, section 4.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

_HIDDEN = 256
_RATE = 0.001
_BATCH = 64
_EPOCHS = 300
_PATIENCE = 20
_CHECKED = 5  # one in five of the known people tells when to stop
_FAR = 10.0  # deviations, beyond which nothing was seen while learning
_SMALL = 1e-9


def inverted(
    observed: np.ndarray, auxiliary: np.ndarray, truth: np.ndarray, *, seed: int, estimate: np.ndarray | None = None
) -> np.ndarray:
    """Return the reconstructed features of all people [n, d].

    Args:
        observed: what is shown of them [n, k].
        auxiliary: mask [n] of the people to learn from.
        truth: what these hold [m, d].
        seed: fixes weights, batches and who is kept aside.
        estimate: where what is shown is itself an estimate of what they hold, [n, d].
    """
    # A generator of its own: the adversary's draws never move those of training.
    order = torch.randperm(len(truth), generator=torch.Generator().manual_seed(seed))
    aside, learn = order[: len(truth) // _CHECKED], order[len(truth) // _CHECKED :]
    start = _start(estimate, auxiliary, truth, learn.numpy())
    left = truth - start[auxiliary]
    scale = float(left.std())
    if scale < _SMALL:  # an exact copy: nothing is left over
        return start
    rows = _scaled(observed, observed[auxiliary])
    network = _network(rows.shape[1], truth.shape[1], seed)
    targets = torch.from_numpy(left / scale).float()
    _learn(network, rows[torch.from_numpy(auxiliary)], targets, learn, aside, seed)
    with torch.no_grad():
        residual: np.ndarray = network(rows).double().numpy()
    return start + scale * residual


def _start(estimate: np.ndarray | None, auxiliary: np.ndarray, truth: np.ndarray, learn: np.ndarray) -> np.ndarray:
    mean: np.ndarray = truth.mean(axis=0)
    if estimate is None:
        return np.repeat(mean[None], len(auxiliary), axis=0)
    away = estimate - estimate[auxiliary].mean(axis=0)  # whatever a release subtracts from all is gone
    seen = away[auxiliary][learn]
    size = float((seen**2).sum())
    # Least squares with one number: as noise grows it falls to 0, so that a useless estimate does no harm.
    gain = float((seen * (truth[learn] - mean)).sum()) / size if size > _SMALL else 0.0
    start: np.ndarray = mean + gain * away
    return start


def _scaled(rows: np.ndarray, seen: np.ndarray) -> Tensor:
    """Return rows in deviations of those seen while learning, 0 where all of these are the same."""
    centre, spread = seen.mean(axis=0), seen.std(axis=0)
    varies = spread > _SMALL
    moved = np.where(varies, (rows - centre) / np.where(varies, spread, 1.0), 0.0)
    # Far from what was seen a network says anything; clipped, a report with huge noise reads as one with large noise.
    return torch.from_numpy(np.clip(moved, -_FAR, _FAR)).float()


def _network(inputs: int, outputs: int, seed: int) -> nn.Sequential:
    """Return a network that gives 0 for everybody before it learns."""
    # torch's layers draw from its global generator, which must come out as it was.
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        first, middle, last = nn.Linear(inputs, _HIDDEN), nn.Linear(_HIDDEN, _HIDDEN), nn.Linear(_HIDDEN, outputs)
    # At zero, so that learning starts from the linear estimate, and stopping early can fall back to it.
    nn.init.zeros_(last.weight)
    nn.init.zeros_(last.bias)
    return nn.Sequential(first, nn.ReLU(), middle, nn.ReLU(), last)


def _learn(network: nn.Module, rows: Tensor, targets: Tensor, learn: Tensor, aside: Tensor, seed: int) -> None:
    """Fit the network in place; the weights that do best on the people kept aside remain."""
    generator = torch.Generator().manual_seed(seed)
    optimiser = torch.optim.Adam(network.parameters(), lr=_RATE)
    # The error before the first step counts too: the best network may be the one that says nothing.
    best, weights, since = _error(network, rows[aside], targets[aside]), _copy(network), 0
    for _ in range(_EPOCHS):
        mixed = learn[torch.randperm(len(learn), generator=generator)]
        for start in range(0, len(mixed), _BATCH):
            batch = mixed[start : start + _BATCH]
            optimiser.zero_grad()
            loss: Any = nn.functional.mse_loss(network(rows[batch]), targets[batch])
            loss.backward()
            optimiser.step()
        error, since = _error(network, rows[aside], targets[aside]), since + 1
        if error < best:
            best, weights, since = error, _copy(network), 0
        elif since >= _PATIENCE:
            break
    network.load_state_dict(weights)


def _error(network: nn.Module, rows: Tensor, targets: Tensor) -> float:
    with torch.no_grad():
        return float(nn.functional.mse_loss(network(rows), targets))


def _copy(network: nn.Module) -> dict[str, Tensor]:
    return {name: value.clone() for name, value in network.state_dict().items()}
