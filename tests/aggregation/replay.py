"""Record every question that noisy sums ask of the edges, and ask them again on another graph with the same answers."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
import pytest
import torch
from torch import Tensor

from graphveil.aggregation import PerturbedSum, ReceiverRows, propagate_privately
from graphveil.aggregation.grid import GridRows
from graphveil.aggregation.perturbed import NoisyHops
from graphveil.mechanisms.samplers.rounded_normal import RoundedNormal
from graphveil.privacy import Randomness, SeededRandomness


@dataclass
class Trace:
    """What happened: exact sums in steps int64, the noise (sigma in steps, reach, draws), what was released."""

    sums: list[np.ndarray] = field(default_factory=list)
    noise: list[tuple[float, int, int]] = field(default_factory=list)
    released: list[Tensor] = field(default_factory=list)
    outputs: list[Tensor] = field(default_factory=list)


def record(
    perturbed: PerturbedSum, rows: ReceiverRows, x: Tensor, *, frozen: Trace | None = None, seed: int = 0
) -> Trace:
    """Propagate once; with `frozen`, every hop answers what it answered then."""
    trace = Trace()
    sums, add_to, perturb = ReceiverRows.sums, RoundedNormal.add_to, NoisyHops.perturb

    def watched_sums(self: ReceiverRows, values: GridRows, *receivers: slice, out: Tensor | None = None) -> object:
        result = sums(self, values, *receivers, out=out)
        whole = result.values.numpy().astype(np.int64)
        whole[result.long.numpy()] = result.totals.numpy()
        trace.sums.append(whole)
        return result

    def watched_add(self: RoundedNormal, totals: np.ndarray, randomness: Randomness) -> None:
        trace.noise.append((self.sigma, self.limit, totals.size))
        add_to(self, totals, randomness)

    def watched_perturb(self: NoisyHops, *arguments: object, **named: object) -> Tensor:
        answer = perturb(self, *arguments, **named)  # type: ignore[arg-type]
        if frozen is not None:
            answer = frozen.released[len(trace.released)]
        trace.released.append(answer.clone())
        return answer.clone()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ReceiverRows, "sums", watched_sums)
        patch.setattr(RoundedNormal, "add_to", watched_add)
        patch.setattr(NoisyHops, "perturb", watched_perturb)
        trace.outputs = propagate_privately(perturbed, rows, x, SeededRandomness(seed))
    return trace


def moved(first: Trace, second: Trace, *, leave_out: int | None = None) -> int:
    """The largest squared change of a hop's sums, in squared steps; optionally without one node's own row."""
    worst = 0
    for a, b in zip(first.sums, second.sums, strict=True):
        change = a - b
        if leave_out is not None:
            change = np.delete(change, leave_out, axis=0)
        worst = max(worst, int((change**2).sum()))
    return worst


def allowed(perturbed: PerturbedSum, rows: ReceiverRows) -> float:
    """The declared bound on `moved`."""
    return (perturbed.sensitivity * 2.0 ** (perturbed.row_bits(rows.weight_bits) + rows.weight_bits)) ** 2


def same_flow(first: Trace, second: Trace) -> bool:
    """Whether noise was asked for in the same order, size and strength, and results have the same shapes."""
    shapes = [[tuple(t.shape) for t in trace.outputs] for trace in (first, second)]
    return first.noise == second.noise and shapes[0] == shapes[1]


def undirected(pairs: Iterable[tuple[int, int]]) -> Tensor:
    """Both directions of each pair, sorted and once, without loops."""
    both = sorted({edge for i, j in pairs for edge in ((i, j), (j, i)) if i != j})
    return torch.tensor(both, dtype=torch.int64).reshape(-1, 2).T


def toggled(edge_index: Tensor, pairs: list[tuple[int, int]]) -> Tensor:
    """The graph in which each of `pairs` is there exactly if it was not."""
    present = {(s, t) for s, t in edge_index.T.tolist()}
    changed = sorted(present ^ set(pairs))
    return torch.tensor(changed, dtype=torch.int64).reshape(-1, 2).T
