"""Hops chosen from released data: short trainings, judged by validation reports that none of them has seen.

    for each pair (K_x, K_y):   y~ = argmax P^Ky Y',  Y' without validation reports  ->  a few epochs
                                a = (acc' - q) / (p - q) on validation reports       ->  keep the pair of the largest a

acc' is the share of noisy labels that are predicted, so that a is an unbiased estimate of the accuracy on true labels.
Reports that are spread into the targets may not judge: a network that learns their noise predicts more of them than a
perfect one could.  First K_x is chosen without label hops, from the middle of 1, 2, 4, 8 on, and also 0 if features
came without noise; then whether label hops improve on it.  If features and labels came without noise, whole trainings
decide between the two best whose estimates are within a standard error.  If validation reports are too few to choose
by, the public topology decides: what a node aggregates should stay within its part of the graph.

    n_eff(K) = (P^K 1)_v^2 / sum_u (P^K)_vu^2      people of equal weight whose mean has the noise of P^K x at v
    K = the largest of 8, 4, 2, 1 with  n_eff(K) <= n / (ROOM c)  at the median node

The sums of squares are estimated by E (P^K g)_v^2 over random signs g.  Ours; post-processing of released data.
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
from graphveil.training.selection import smooth_figures

#: Hops of labels that are tried beside 0.
LABEL_HOPS: Final = (4, 1)
#: Epochs of a short training, those where features came without noise, and its patience.
EPOCHS, EXACT_EPOCHS, PATIENCE = 40, 60, 15
#: The largest standard error of an estimated accuracy with which validation reports choose.
LARGEST_ERROR: Final = 0.12
Pair = tuple[int, int]
#: Takes settings and returns a network's features, their offset, and the settings with the hops that remain.
InputsFor: TypeAlias = Callable[[NetworkSettings], tuple[FeatureMatrix, float, NetworkSettings]]


@dataclass(frozen=True)
class ChosenHops:
    """The hops of features and labels, and the trainings that chose them.

    Attributes:
        estimates: (K_x, K_y) -> estimated accuracy of a short training; empty where the topology decided.
        trial: the short training of the chosen pair; None where the topology decided.
        whole: its training with the settings of the method, if there was one and labels take no hops.
    """

    steps_x: int
    steps_y: int
    estimates: dict[Pair, float]
    trial: Network | None = field(default=None, compare=False, repr=False)
    whole: Network | None = field(default=None, compare=False, repr=False)

    @property
    def sentence(self) -> str:
        """The choice and its grounds, for people."""
        chosen = f"hops: {self.steps_x} of features, {self.steps_y} of labels"
        if not self.estimates:
            return f"{chosen}, by how far the edges spread; there are too few validation reports to choose by"
        estimates = ", ".join(f"{x}/{y} {100 * a:.0f}%" for (x, y), a in self.estimates.items())
        return (
            f"{chosen}, chosen at no further cost by released validation labels that the trials had not seen "
            f"(estimated accuracy: {estimates})"
        )

    def close_pairs(self, error: float) -> tuple[Pair, ...]:
        """Return the two best pairs if their estimates are within an error, else none."""
        best = sorted(self.estimates, key=self.estimates.__getitem__, reverse=True)[:2]
        return tuple(best) if self.estimates[best[0]] - self.estimates[best[-1]] <= error and len(best) == 2 else ()


def choose_hops(
    inputs_for: InputsFor,
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
        labels, topology, keywords: as in `train_network`.
        settings: the other settings, and the hops that are fixed.
        free: which of "steps_x" and "steps_y" are chosen.
        exact: whether features came without noise, so that no hops may be best.
    """
    fixed = {"steps_x": settings.steps_x, "steps_y": settings.steps_y}
    candidates = LABEL_HOPS if "steps_y" in free else (settings.steps_y,)
    reaching = tuple(hops for hops in candidates if not hops or _reaches(topology, labels, hops))
    # Hops that were set may reach training nodes by validation reports alone, which trials leave out.
    if _error(labels) > LARGEST_ERROR or ("steps_y" not in free and not reaching):
        public = public_hops(topology.adjacency.to_scipy(), labels.channel.classes)
        # The reports are paid for: hops that reach no training node must not fail the training.
        public["steps_y"] = public["steps_y"] if public["steps_y"] in reaching else 0
        public["steps_x"] = 0 if exact else public["steps_x"]
        steps_x, steps_y = (public[name] if name in free else fixed[name] for name in ("steps_x", "steps_y"))
        return ChosenHops(steps_x, steps_y, {})

    trials: dict[Pair, Network] = {}

    def estimated_accuracy(pair: Pair, *, whole: bool = False) -> float:
        features, offset, hops = inputs_for(replace(settings, steps_x=pair[0], steps_y=pair[1]))
        short = partial(short_training, epochs=EXACT_EPOCHS if exact else EPOCHS)
        training = partial(train_network, exclude_validation=True) if whole else short
        trials[pair] = training(features, offset, labels, topology, hops, **keywords)
        smooth, best = None, 0.0
        for epoch in trials[pair].history:
            smooth = smooth_figures(smooth, epoch)
            best = max(best, smooth[0])
        # An estimate above 1 is the luck of noisy reports.
        return min(1.0, best)

    chosen = search_hops(estimated_accuracy, fixed, free, reaching, exact=exact)
    close = chosen.close_pairs(_error(labels)) if exact and labels.channel.keep == 1 else ()
    if close:
        # Without noise, networks of more hops improve for longer: short trainings understate them.
        estimates = {pair: estimated_accuracy(pair, whole=True) for pair in close}
        chosen = ChosenHops(*max(close, key=estimates.__getitem__), chosen.estimates | estimates)
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
    """Return a network of a few epochs that has seen no validation report; arguments as in `train_network`.

    Hops of labels that reach training nodes by validation reports alone are left out.
    """
    steps_y = settings.steps_y if settings.steps_y and _reaches(topology, labels, settings.steps_y) else 0
    epochs = min(settings.epochs, epochs)
    short = replace(settings, steps_y=steps_y, epochs=epochs, patience=PATIENCE, selection="robust")
    return train_network(features, offset, labels, topology, short, exclude_validation=True, **keywords)


def search_hops(
    estimated_accuracy: Callable[[Pair], float],
    fixed: Mapping[str, int],
    free: tuple[str, ...],
    label_hops: tuple[int, ...],
    *,
    exact: bool = False,
) -> ChosenHops:
    """Return the best of a few pairs.

    Args:
        estimated_accuracy: of a pair (K_x, K_y).
        fixed: hops by the name of their setting, unless they are free.
        free: which of "steps_x" and "steps_y" are chosen.
        label_hops: K_y to try beside 0, from the largest.
        exact: whether K_x = 0 is tried as well.
    """
    estimates: dict[Pair, float] = {}

    def best(*pairs: Pair) -> Pair:
        estimates.update((pair, estimated_accuracy(pair)) for pair in pairs if pair not in estimates)
        return max(pairs, key=lambda pair: estimates[pair])

    pair = fixed["steps_x"], 0 if "steps_y" in free else fixed["steps_y"]
    if "steps_x" in free:
        far, middle, near, nearest = ((hops, pair[1]) for hops in FEATURE_HOPS)
        pair = best(middle, near)
        pair = best(pair, far if pair == middle else nearest)
        pair = best((0, pair[1]), pair) if exact else pair
    if "steps_y" in free:
        # If noisy features need few hops, edges are many, and more hops of labels would erase the classes.
        most = pair[0] if "steps_x" in free and not exact else max(label_hops, default=0)
        for hops in (hops for hops in label_hops if hops <= most):
            pair = best(pair, (pair[0], hops))
    return ChosenHops(*pair, estimates)


def _error(labels: Labels) -> float:
    """Return an upper bound of the standard error of an estimated accuracy."""
    count = int((labels.val & (labels.values >= 0)).sum()) if labels.values.dim() == 1 else int(labels.val.sum())
    return 0.5 / math.sqrt(max(1, count)) / labels.channel.lean


def _reaches(topology: Topology, labels: Labels, hops: int) -> bool:
    """Whether a training report reaches a training node over so many hops."""
    mass = propagate(topology.propagation(), labels.train[:, None].float(), hops)
    return bool((mass[labels.train] > 0).any())


#: Hops of features, from those that smooth most, and the hops of labels that go with each.
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
