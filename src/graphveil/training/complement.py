"""Entries outside a support, drawn uniformly: the sample that watches what training on the support alone leaves out."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from graphveil.aggregation import Support
from graphveil.errors import InputError
from graphveil.runtime.late import torch
from graphveil.runtime.sorted_arrays import contains

if TYPE_CHECKING:
    from torch import Tensor


def complement_of(support: Support, count: int, symmetric: bool, generator: torch.Generator) -> tuple[Support, Tensor]:
    """Return the support with `count` distinct uniform entries from outside it, and which entries it had before.

    Args:
        count: entries off the diagonal; where `symmetric`, pairs of them, both entries of which are added.

    Returns:
        A support of E + C entries and a bool tensor [E + C].

    Raises:
        InputError: when fewer lie outside the support.
    """
    if count == 0:
        return support, torch.ones(support.entries, dtype=torch.bool)
    n, occupied = support.num_nodes, _codes(support)
    if symmetric:
        occupied = occupied[occupied // n > occupied % n]
    free = n * (n - 1) // (2 if symmetric else 1) - occupied.size
    if count > free:
        raise InputError(f"a complement of {count} entries", allowed=f"at most the {free} outside the collected ones")
    # Rejection slows down as the free entries run out; the list takes n^2 memory, as so large a complement does.
    drawn = _listed if 2 * count > free else _drawn
    codes = drawn(occupied, n, count, symmetric, generator)
    added = np.stack([codes % n, codes // n])
    if symmetric:
        added = np.concatenate([added, added[::-1]], axis=1)
    both = Support.of(torch.cat([support.edge_index.cpu(), torch.from_numpy(added)], dim=1), n)
    return both.to(support.source.device), torch.from_numpy(contains(_codes(support), _codes(both)))


def _codes(support: Support) -> np.ndarray:
    source, target = support.edge_index.cpu().numpy()
    codes: np.ndarray = target * support.num_nodes + source
    return codes


def _drawn(occupied: np.ndarray, n: int, count: int, symmetric: bool, generator: torch.Generator) -> np.ndarray:
    drawn = np.zeros(0, dtype=np.int64)
    while drawn.size < count:
        target, source = torch.randint(n, (2, 2 * count), generator=generator).numpy()
        keep = target > source if symmetric else target != source
        codes = np.concatenate([drawn, (target * n + source)[keep]])
        # The order of the draws is kept, so that the first `count` are a uniform sample.
        codes = codes[np.sort(np.unique(codes, return_index=True)[1])]
        drawn = codes[~contains(occupied, codes)]
    return drawn[:count]


def _listed(occupied: np.ndarray, n: int, count: int, symmetric: bool, generator: torch.Generator) -> np.ndarray:
    codes = np.arange(n * n)
    target, source = codes // n, codes % n
    codes = codes[target > source if symmetric else target != source]
    outside = codes[~contains(occupied, codes)]
    chosen: np.ndarray = outside[torch.randperm(outside.size, generator=generator).numpy()[:count]]
    return chosen
