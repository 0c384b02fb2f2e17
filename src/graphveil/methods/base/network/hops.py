"""Hops chosen from what was released: short trainings, judged by validation reports that none of them has heard.

    for each pair (K_x, K_y):   y~ = argmax P^Ky Y',  Y' without validation reports  ->  a few epochs
                                a = (acc' - q) / (p - q) on validation reports       ->  keep the pair of the largest a

acc' is the share of noisy labels that are met, so that a is without bias what true labels would say.  Reports that are
spread into the targets may not judge: a network that learns their noise meets more of them than a perfect one could.
First K_x without label hops, from the middle of 1, 2, 4, 8 on, and none where features came without noise; then
whether label hops add to the best.  Where features and labels came without noise, whole trainings tell the two best
apart, if their estimates are within a standard error.  Where validation reports are too few to tell, the public
topology decides: what a node hears should stay within its part of the graph.

    n_eff(K) = (P^K 1)_v^2 / sum_u (P^K)_vu^2      people of equal weight whose mean has the noise of P^K x at v
    K = the largest of 8, 4, 2, 1 with  n_eff(K) <= n / (ROOM c)  at the node in the middle

The sums of squares are estimated by E (P^K g)_v^2 over random signs g.  Ours; post-processing of what was released.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final, TypeAlias

import numpy as np

from graphveil.aggregation import propagate
from graphveil.methods.base.network.network import FeatureMatrix, Labels, Network, train_network
from graphveil.methods.base.people.released import Topology
from graphveil.methods.base.settings import NetworkSettings
from graphveil.runtime.late import sparse as sp
from graphveil.training.selection import smoothed

#: Hops of labels that are tried where none is not best.
LABEL_HOPS: Final = (4, 1)
#: Epochs of a short training, the same where features came without noise, and its patience.
EPOCHS, EXACT_EPOCHS, PATIENCE = 40, 60, 15
#: Standard error of an estimated accuracy from which on validation reports do not choose.
LARGEST_ERROR: Final = 0.12
Pair = tuple[int, int]
#: What a network of some settings reads: features, their offset, and the settings with the hops that are left to it.
Reads: TypeAlias = Callable[[NetworkSettings], tuple[FeatureMatrix, float, NetworkSettings]]


@dataclass(frozen=True)
class ChosenHops:
    """What was chosen, and by what.

    Attributes:
        tried: (K_x, K_y) -> estimated accuracy of a short training; empty where the topology decided.
        trial: the short training of the pair that was chosen, None where the topology decided.
        whole: its training with the settings of the method, where it came to that and labels take no hops.
    """

    steps_x: int
    steps_y: int
    tried: dict[Pair, float]
    trial: Network | None = field(default=None, compare=False, repr=False)
    whole: Network | None = field(default=None, compare=False, repr=False)

    @property
    def words(self) -> str:
        """The choice in a sentence."""
        chosen = f"hops: {self.steps_x} of features, {self.steps_y} of labels"
        if not self.tried:
            return f"{chosen}, by how far the edges spread; there are too few validation reports to choose by"
        estimates = ", ".join(f"{x}/{y} {100 * a:.0f}%" for (x, y), a in self.tried.items())
        return (
            f"{chosen}, chosen at no further cost by released validation labels that the trials had not heard "
            f"(estimated accuracy: {estimates})"
        )

    def close(self, error: float) -> tuple[Pair, ...]:
        """Return the two best pairs where their estimates are within an error, else none."""
        best = sorted(self.tried, key=self.tried.__getitem__, reverse=True)[:2]
        return tuple(best) if self.tried[best[0]] - self.tried[best[-1]] <= error and len(best) == 2 else ()


def choose_hops(
    reads: Reads,
    labels: Labels,
    topology: Topology,
    settings: NetworkSettings,
    free: tuple[str, ...],
    *,
    exact: bool = False,
    **keywords: Any,
) -> ChosenHops:
    """Return hops for a training on reports.

    Args:
        labels, topology, keywords: as of `train_network`.
        settings: the other settings, and the hops that are fixed.
        free: which of "steps_x" and "steps_y" are chosen.
        exact: whether features came without noise, which no hops need take out.
    """
    fixed = {"steps_x": settings.steps_x, "steps_y": settings.steps_y}
    tried = LABEL_HOPS if "steps_y" in free else (settings.steps_y,)
    reaching = tuple(hops for hops in tried if not hops or _reaches(topology, labels, hops))
    # Hops that were set may reach by validation reports alone, which a trial does not hear.
    if _error(labels) > LARGEST_ERROR or ("steps_y" not in free and not reaching):
        public = public_hops(topology.adjacency.to_scipy(), labels.channel.classes)
        # The reports are paid for: hops that bring no label to anybody must not be found out by the training.
        public["steps_y"] = public["steps_y"] if public["steps_y"] in reaching else 0
        public["steps_x"] = 0 if exact else public["steps_x"]
        steps_x, steps_y = (public[name] if name in free else fixed[name] for name in ("steps_x", "steps_y"))
        return ChosenHops(steps_x, steps_y, {})

    trials: dict[Pair, Network] = {}

    def judged(pair: Pair, *, whole: bool = False) -> float:
        features, offset, hops = reads(replace(settings, steps_x=pair[0], steps_y=pair[1]))
        short = partial(short_training, epochs=EXACT_EPOCHS if exact else EPOCHS)
        training = partial(train_network, exclude_validation=True) if whole else short
        trials[pair] = training(features, offset, labels, topology, hops, **keywords)
        smooth, best = None, 0.0
        for epoch in trials[pair].history:
            smooth = smoothed(smooth, epoch)
            best = max(best, smooth[0])
        # More than everything is the luck of noisy reports: it says no more than that all were met.
        return min(1.0, best)

    chosen = search_hops(judged, fixed, free, reaching, exact=exact)
    close = chosen.close(_error(labels)) if exact and labels.channel.keep == 1 else ()
    if close:
        # Without noise more hops go on learning for longer: the shorter the trainings, the nearer they look.
        estimates = {pair: judged(pair, whole=True) for pair in close}
        chosen = ChosenHops(*max(close, key=estimates.__getitem__), chosen.tried | estimates)
    trial = trials.get((chosen.steps_x, chosen.steps_y))
    return replace(chosen, trial=trial, whole=trial if close and not chosen.steps_y else None)


def short_training(
    features: FeatureMatrix,
    offset: float,
    labels: Labels,
    topology: Topology,
    settings: NetworkSettings,
    *,
    epochs: int = EPOCHS,
    **keywords: Any,
) -> Network:
    """Return a network of a few epochs that has heard no validation report; arguments as of `train_network`.

    Hops of labels that reach training nodes by validation reports alone are left out.
    """
    steps_y = settings.steps_y if settings.steps_y and _reaches(topology, labels, settings.steps_y) else 0
    epochs = min(settings.epochs, epochs)
    short = replace(settings, steps_y=steps_y, epochs=epochs, patience=PATIENCE, selection="robust")
    return train_network(features, offset, labels, topology, short, exclude_validation=True, **keywords)


def search_hops(
    judge: Callable[[Pair], float],
    fixed: Mapping[str, int],
    free: tuple[str, ...],
    label_hops: tuple[int, ...],
    *,
    exact: bool = False,
) -> ChosenHops:
    """Return the best of a few pairs.

    Args:
        judge: (K_x, K_y) -> estimated accuracy.
        fixed: hops by the name of their setting, where they are not free.
        free: which of "steps_x" and "steps_y" are chosen.
        label_hops: K_y to try beside none, from the largest.
        exact: whether no hops of features are tried as well.
    """
    tried: dict[Pair, float] = {}

    def best(*pairs: Pair) -> Pair:
        tried.update((pair, judge(pair)) for pair in pairs if pair not in tried)
        return max(pairs, key=lambda pair: tried[pair])

    pair = fixed["steps_x"], 0 if "steps_y" in free else fixed["steps_y"]
    if "steps_x" in free:
        far, middle, near, nearest = ((hops, pair[1]) for hops in FEATURE_HOPS)
        pair = best(middle, near)
        pair = best(pair, far if pair == middle else nearest)
        pair = best((0, pair[1]), pair) if exact else pair
    if "steps_y" in free:
        # Where noise in features needs few hops, edges are many, and more hops of labels would erase their classes.
        most = pair[0] if "steps_x" in free and not exact else max(label_hops, default=0)
        for hops in (hops for hops in label_hops if hops <= most):
            pair = best(pair, (pair[0], hops))
    return ChosenHops(*pair, tried)


def _error(labels: Labels) -> float:
    """Return the standard error of an estimated accuracy, at most."""
    count = int((labels.val & (labels.values >= 0)).sum()) if labels.values.dim() == 1 else int(labels.val.sum())
    return 0.5 / math.sqrt(max(1, count)) / labels.channel.lean


def _reaches(topology: Topology, labels: Labels, hops: int) -> bool:
    """Whether a training node hears a training report over so many hops."""
    mass = propagate(topology.propagation(), labels.train[:, None].float(), hops)
    return bool((mass[labels.train] > 0).any())


#: Hops of features, from those that smooth most, and the hops of labels that go with them.
FEATURE_HOPS: Final = (8, 4, 2, 1)
_LABEL_HOPS: Final = {8: 4, 4: 1, 2: 0, 1: 0}
ROOM: Final = 2.0
_PROBES: Final = 16


def public_hops(p: sp.csr_matrix, classes: int) -> dict[str, int]:
    """Return hops of features and of labels by the name of their setting.

    Args:
        p: the propagation [n, n].
    """
    n = p.shape[0]
    signs = np.random.RandomState(0).randint(0, 2, size=(n, _PROBES)).astype(np.float32) * 2 - 1
    columns, reached = np.concatenate([np.ones((n, 1), np.float32), signs], axis=1), {}
    for hops in range(1, FEATURE_HOPS[0] + 1):
        columns = p @ columns
        squares = (columns[:, 1:] ** 2).mean(axis=1)
        reached[hops] = float(np.median(columns[:, 0] ** 2 / np.maximum(squares, 1e-30)))
    steps = next((hops for hops in FEATURE_HOPS if reached[hops] * ROOM * classes <= n), FEATURE_HOPS[-1])
    return {"steps_x": steps, "steps_y": _LABEL_HOPS[steps]}
