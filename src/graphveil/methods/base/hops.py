"""Hops chosen from what was released: short trainings, judged by validation reports that none of them has heard.

    for each pair (K_x, K_y):   y~ = argmax P^Ky Y',  Y' without validation reports  ->  a few epochs
                                a = (acc' - q) / (p - q) on validation reports       ->  keep the pair of the largest a

acc' is the share of noisy labels that are met, so that a is without bias what true labels would say.  Reports that are
spread into the targets may not judge: a network that learns their noise meets more of them than a perfect one could.
First K_x without label hops, from both ends of 1, 2, 4, 8; then whether label hops add to the best.  Where validation
reports are too few to tell, the public topology decides: as many hops as keep what a node hears to its part of the
graph, by n_eff(K) = (P^K 1)_v^2 / sum_u (P^K)_vu^2, the people of equal weight whose mean has that noise.

Ours.  All of it is post-processing of what was released, and costs no privacy.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final

from graphveil.aggregation import propagate
from graphveil.late import torch
from graphveil.methods.base.network import FeatureMatrix, Labels, Structured, train_network
from graphveil.methods.base.settings import NetworkSettings
from graphveil.training.selection import Epoch, smoothed

#: Hops of features, from those that smooth most; hops of labels where none is not best.
FEATURE_HOPS: Final = (8, 4, 2, 1)
LABEL_HOPS: Final = (4, 1)
#: Epochs of a short training, and its patience.
EPOCHS, PATIENCE = 60, 15
#: Standard error of an estimated accuracy from which on validation reports do not choose.
LARGEST_ERROR: Final = 0.12
#: What a node hears may cover the part 1 / (ROOM c) of the graph.
ROOM: Final = 2.0
_SIGNS: Final = 16

Pair = tuple[int, int]


@dataclass(frozen=True)
class Hops:
    """What was chosen, and by what.

    Attributes:
        steps_x, steps_y: hops of features and of labels.
        tried: (K_x, K_y) -> estimated accuracy of a short training; empty where the topology decided.
    """

    steps_x: int
    steps_y: int
    tried: dict[Pair, float]

    @property
    def words(self) -> str:
        """The choice in a sentence."""
        chosen = f"hops: {self.steps_x} of features, {self.steps_y} of labels"
        if not self.tried:
            return f"{chosen}, by how far the public edges spread; validation reports are too few to choose by"
        others = ", ".join(f"{x}/{y} {100 * a:.0f}%" for (x, y), a in self.tried.items())
        return (
            f"{chosen}, chosen at no further cost by validation reports that the trials had not heard "
            f"(estimated accuracy: {others})"
        )


def choose_hops(
    features: FeatureMatrix,
    offset: float,
    labels: Labels,
    topology: Structured,
    settings: NetworkSettings,
    free: tuple[str, ...],
    **how: Any,
) -> Hops:
    """Return hops for a training on reports.

    Args:
        features, offset, labels, topology: as of `train_network`.
        settings: the other settings, and the hops that are fixed.
        free: which of "steps_x" and "steps_y" are chosen.
        how: further arguments of `train_network`.
    """
    fixed = {"steps_x": settings.steps_x, "steps_y": settings.steps_y}
    if not _can_judge(labels):
        found = by_topology(topology, labels.classes, settings.device)
        return Hops(*(found[name] if name in free else fixed[name] for name in fixed), {})

    def judged(pair: Pair) -> float:
        short = replace(
            settings,
            steps_x=pair[0],
            steps_y=pair[1],
            epochs=min(settings.epochs, EPOCHS),
            patience=PATIENCE,
            selection="robust",
        )
        network = train_network(features, offset, labels, topology, short, unheard=True, **how)
        return _estimate(network.history)

    return _search(judged, labels, topology, fixed, free)


def _search(
    judge: Callable[[Pair], float], labels: Labels, topology: Structured, fixed: dict[str, int], free: tuple[str, ...]
) -> Hops:
    tried: dict[Pair, float] = {}

    def best(pairs: list[Pair]) -> Pair:
        tried.update((pair, judge(pair)) for pair in pairs if pair not in tried)
        return max(pairs, key=lambda pair: tried[pair])

    y = 0 if "steps_y" in free else fixed["steps_y"]
    pair = (fixed["steps_x"], y)
    if "steps_x" in free:
        far, *between, near = [(x, y) for x in FEATURE_HOPS if x != 1]
        pair = best([far, near])
        pair = best([pair, *(between if pair == far else [(1, y), *between])])
    if "steps_y" in free:
        for hops in LABEL_HOPS:
            if _reaches(topology, labels, hops):
                pair = best([pair, (pair[0], hops)])
    return Hops(*pair, tried)


def by_topology(topology: Structured, classes: int, device: str) -> dict[str, int]:
    """Return the hops that a public topology allows, by name.

    Args:
        classes: c, declared; a class may be a part of 1 / c of the graph.
        device: where P is multiplied.
    """
    p, n = topology.propagation().to(device), topology.num_nodes
    generator = torch.Generator().manual_seed(0)
    signs = torch.randint(0, 2, (n, _SIGNS), generator=generator).float().mul(2).sub(1).to(device)
    columns = torch.cat([torch.ones(n, 1, device=device), signs], dim=1)
    reach = {}
    for hops in range(1, max(FEATURE_HOPS) + 1):
        columns = propagate(p, columns, 1)
        heard = columns[:, 0] ** 2 / columns[:, 1:].square().mean(dim=1).clamp_min(1e-30)
        reach[hops] = float(heard.median())
    fitting = [hops for hops in FEATURE_HOPS if reach[hops] * ROOM * classes <= n]
    steps_x = fitting[0] if fitting else min(FEATURE_HOPS)
    return {"steps_x": steps_x, "steps_y": {8: 4, 4: 1}.get(steps_x, 0)}


def _can_judge(labels: Labels) -> bool:
    count = int((labels.val & (labels.values >= 0)).sum()) if labels.values.dim() == 1 else int(labels.val.sum())
    return count > 0 and 0.5 / math.sqrt(count) / (labels.keep - labels.flip) <= LARGEST_ERROR


def _reaches(topology: Structured, labels: Labels, hops: int) -> bool:
    """Whether a training node hears a training report over so many hops."""
    mass = propagate(topology.propagation(), labels.train[:, None].float(), hops)
    return bool((mass[labels.train] > 0).any())


def _estimate(history: tuple[Epoch, ...]) -> float:
    judged, best = None, 0.0
    for epoch in history:
        judged = smoothed(judged, epoch)
        best = max(best, judged[0])
    # More than everything is the luck of noisy reports: it says no more than that all were met.
    return min(1.0, best)
