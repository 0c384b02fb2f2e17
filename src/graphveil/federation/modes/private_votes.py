"""Noisy votes of those who train, where the unit is a person: the one place that reads a holder's connections.

    H_v = sum over u who train and name v of row(label of u) + N(0, sigma^2)     each list cut to its first D names
    z_v = SCALE asinh( (H_v - mean of H_v) / max(sigma, 1) )

A person's label and list change at most D rows of H, by a row of length 1 each; price and noise are in `core.person`.
Votes count as released: everything after them is post-processing, so they may be read for anybody.
Source: ours, after `methods.curator.node_sums`; lists as in `graphs.degree_bound`.  Shapes: H, z [n, c].
"""

from __future__ import annotations

import torch
from torch import Tensor

from graphveil.aggregation import ReceiverRows
from graphveil.federation.core.setting import Setting
from graphveil.graphs.degree_bound import keep_lists
from graphveil.privacy import Randomness

#: The length of a vote beside features of length 1: longer ones would take the clipped gradient from the features.
SCALE = 0.1


def private_votes(
    edge_index: Tensor, nodes: int, rows: Tensor, labels: Tensor, setting: Setting, *, randomness: Randomness
) -> Tensor:
    """Return the votes of each node's neighbours who train, float32 [n, c]; [n, 0] where connections are not read.

    Args:
        edge_index: of this holder, int64 [2, E]; row 0 owns the edge. nodes: n.
        rows: who train, int64 [m]. labels: theirs, as reported, int64 [m].
        setting: the agreed run. randomness: of the noise.
    """
    sums = setting.of_person.votes
    if sums is None:
        return torch.zeros(nodes, 0)
    lists = keep_lists(edge_index, nodes, setting.privacy.degree_bound)
    label_rows = torch.zeros(nodes, setting.classes)
    label_rows[rows, labels] = 1.0
    noisy = sums.perturb(ReceiverRows.of(lists, nodes), label_rows, 1, randomness)
    # Scaled by the noise and not by the data: standardising would use a statistic of private rows.
    return SCALE * torch.asinh((noisy - noisy.mean(dim=1, keepdim=True)) / max(sums.sigmas[0], 1.0))
