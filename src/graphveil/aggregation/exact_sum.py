"""Exact integer sums over neighbours: one edge changes one row, by exactly one message.

    S_u = sum over senders v of u of  W_uv v_v          (row = receiver; integers throughout)

A float32 `embedding_bag`, or a compiled loop over int16, adds whole numbers exactly while no partial sum exceeds 2^24.
Rows that could exceed it are cut into pieces that cannot, which are added up as 64-bit integers, in any order and for
any degree.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from graphveil.aggregation.grid import GridRows
from graphveil.aggregation.propagation import receiver_entries
from graphveil.errors import InputError
from graphveil.graphs.degree_bound import BoundedEdges
from graphveil.runtime.checks import require_whole
from graphveil.runtime.late import sparse as sp
from graphveil.runtime.late import torch

if TYPE_CHECKING:
    from torch import Tensor


# Whole numbers up to here are exact in float32.
_EXACT: Final = 1 << 24
#: Of the grid of weights, on which a weight of 1 is 2^7 steps.
WEIGHT_BITS: Final = 7


class _Sums(NamedTuple):
    """Exact sums float32 [n, c], but for the rows `long`, whose sums are in `totals` int64 (their float rows are 0)."""

    values: Tensor
    long: Tensor
    totals: Tensor

    def whole(self, scale: float = 1.0) -> Tensor:
        """Return all sums in `values`, whose whole steps are `scale` each: adds the totals of the long rows to what
        `values` holds there, which is 0 or noise.
        """
        if len(self.long):
            noise = (self.values[self.long] / scale).long()
            # Rounded once, after the noise.
            self.values[self.long] = (self.totals + noise).float() * scale
        return self.values


@dataclass(frozen=True)
class ReceiverRows:
    """Who sends to whom: receiver u sums over senders `senders[starts[u]:starts[u + 1]]`, each of them once."""

    starts: Tensor  # int32 [n + 1], int64 from 2^31 entries on
    senders: Tensor  # int32 [E]
    #: whole multiples of 2^-weight_bits, given in these steps, float32 [E]; None where all are 1.
    weights: Tensor | None = None
    largest: int = 1  # the largest weight allowed, in steps (1 without weights)
    weight_bits: int = 0  # 0 without weights
    #: a bound on the receivers of any sender, with the edges that were cut to it; None: nothing bounds them.
    sent: BoundedEdges | None = None

    @staticmethod
    def of(
        edges: Tensor | BoundedEdges,
        num_nodes: int,
        *,
        weights: Tensor | None = None,
        w_max: float = 1.0,
        weight_bits: int = WEIGHT_BITS,
    ) -> ReceiverRows:
        """Return the rows of edges int64 [2, E] (row 0 sends to row 1), without self-loops and duplicates. Raises
        InputError where an edge names a node that does not exist, is listed twice with weights, weights are not one per
        edge, w_max is below a step, or 2^31 nodes or more.

        Args:
            edges: also a graph with bounded degrees, which the "node" unit needs.
            weights: [E], rounded down to steps of 2^-weight_bits; those above w_max are w_max, negative or NaN ones 0.
            w_max: the declared largest weight, positive and at least one step.
        """
        bound = edges if isinstance(edges, BoundedEdges) else None
        edge_index = edges.edge_index if isinstance(edges, BoundedEdges) else edges
        largest, weight_bits = (1, 0) if weights is None else (_largest(w_max, weight_bits), weight_bits)
        edge_steps = None if weights is None else _steps(weights, largest, weight_bits)
        entries = receiver_entries(edge_index, num_nodes, weights=edge_steps)
        starts, senders = torch.from_numpy(entries.starts), torch.from_numpy(entries.columns)
        steps = None if entries.weights is None else torch.from_numpy(entries.weights)
        return ReceiverRows(starts, senders, steps, largest, weight_bits, bound)

    @property
    def num_nodes(self) -> int:
        """n."""
        return int(self.starts.numel() - 1)

    @property
    def w_max(self) -> float:
        """The largest weight allowed."""
        return self.largest * 2.0**-self.weight_bits

    def to(self, device: torch.device | str) -> ReceiverRows:
        """Return the same rows on another device."""
        weights = None if self.weights is None else self.weights.to(device)
        return replace(self, starts=self.starts.to(device), senders=self.senders.to(device), weights=weights)

    @property
    def arrays(self) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
        """Starts, senders and weights, as an engine hands them to its workers."""
        return self.starts.numpy(), self.senders.numpy(), None if self.weights is None else self.weights.numpy()

    def to_scipy(self) -> sp.csr_matrix:
        """Return the weights in steps as a sparse matrix [n, n], row = receiver, float64."""
        data = np.ones(self.senders.numel()) if self.weights is None else self.weights.numpy().astype(np.float64)
        return sp.csr_matrix((data, self.senders.numpy(), self.starts.numpy()), shape=(self.num_nodes,) * 2)

    def sums(self, rows: GridRows, receivers: slice = slice(None), *, out: Tensor | None = None) -> _Sums:
        """Return the exact sums as `_Sums` describes them. Raises InputError where the rows are not one per node,
        or a message can exceed 2^24 steps.

        Args:
            receivers: consecutive receivers to sum for; all by default.
            out: float32 [receivers, c] that the values are written into; None: a new array.
        """
        values = rows.values
        if len(values) != self.num_nodes:
            raise InputError(f"{len(values)} rows", allowed=f"one for each of {self.num_nodes} nodes")
        # A message above 2^24 could be rounded: the change by one edge would then depend on the other messages.
        if self.largest << rows.bits > _EXACT:
            raise InputError(
                f"rows of 2^{rows.bits} steps with weights of up to {self.largest} steps",
                allowed="messages of at most 2^24 steps",
                remedy="take fewer bits",
            )
        first, stop, _ = receivers.indices(self.num_nodes)
        starts = self.starts[first : stop + 1]
        # So many of the largest messages add up to at most 2^24: no partial sum of a piece is rounded.
        piece = max(1, _EXACT // (self.largest << rows.bits))
        if not values.is_cpu:
            from graphveil.aggregation.hop_kernel import PIECE, add_messages

            return _Sums(*add_messages(starts, self.senders, self.weights, values, min(PIECE, piece)))
        no_long_rows = starts.new_zeros(0, dtype=torch.int64), starts.new_zeros(0, values.shape[1], dtype=torch.int64)
        # Nobody sends to these receivers, and the kernel refuses an empty list.
        if starts[-1] == starts[0]:
            return _Sums(_output(values, stop - first, out).zero_(), *no_long_rows)
        lengths = torch.diff(starts)
        # Which branch runs depends on private degrees, but leaves no trace: both give the same exact sums.
        if int(lengths.max()) <= piece:
            return _Sums(self._bag(values, starts, out), *no_long_rows)
        sums = self._pieces(values, starts, lengths, piece)
        return sums if out is None else sums._replace(values=out.copy_(sums.values))

    def _pieces(self, values: Tensor, starts: Tensor, lengths: Tensor, piece: int) -> _Sums:
        """Cut every row after each `piece` entries, and add up the pieces of rows that have several."""
        pieces = torch.clamp(-(-lengths.long() // piece), min=1)
        owner = torch.repeat_interleave(torch.arange(len(pieces), device=pieces.device), pieces)
        ordinal = torch.arange(len(owner), device=pieces.device) - (torch.cumsum(pieces, 0) - pieces)[owner]
        parts = self._bag(values, torch.cat([starts[owner] + ordinal * piece, starts[-1:]]))
        long = torch.nonzero(pieces > 1).ravel()
        long_index = torch.full_like(pieces, -1)
        long_index[long] = torch.arange(len(long), device=long.device)
        is_long = pieces[owner] > 1
        totals = long.new_zeros(len(long), values.shape[1])
        totals.index_add_(0, long_index[owner[is_long]], parts[is_long].long())
        sums = parts[ordinal == 0]
        # Zeroed instead of holding their first piece: noise is added to these rows first, their totals afterwards.
        sums[long] = 0.0
        return _Sums(sums, long, totals)

    def _bag(self, values: Tensor, starts: Tensor, out: Tensor | None = None) -> Tensor:
        # Relative to the first of these rows, starts fit into 32 bits, however many entries there are in all.
        first, stop = int(starts[0]), int(starts[-1])
        senders, own_starts = self.senders[first:stop], (starts - first).int()
        weights = None if self.weights is None else self.weights[first:stop]
        if values.dtype == torch.int16:
            from graphveil.aggregation.loops import add_rows

            sums, steps = _output(values, len(own_starts) - 1, out), None if weights is None else weights.numpy()
            add_rows(own_starts.numpy(), senders.contiguous().numpy(), steps, values.numpy(), sums.numpy())
            return sums
        sums = torch.nn.functional.embedding_bag(
            senders, values, own_starts, mode="sum", per_sample_weights=weights, include_last_offset=True
        )
        return sums if out is None else out.copy_(sums)


def _output(values: Tensor, rows: int, out: Tensor | None) -> Tensor:
    return values.new_empty(rows, values.shape[1], dtype=torch.float32) if out is None else out


def _largest(w_max: float, weight_bits: int) -> int:
    require_whole(1, 12, weight_bits=weight_bits)
    if not 2.0**-weight_bits <= w_max <= 2.0 ** (12 - weight_bits):
        raise InputError(f"w_max is {w_max!r}", allowed=f"2^-{weight_bits} to 2^{12 - weight_bits}")
    return math.floor(w_max * 2.0**weight_bits)


def _steps(weights: Tensor, largest: int, weight_bits: int) -> Tensor:
    # NaN would pass a clamp and make the sum of its receiver NaN, which reveals the edge.
    steps = torch.nan_to_num(weights.detach().double(), nan=0.0) * 2.0**weight_bits
    # Rounded down, so that no weight in steps exceeds the declared largest one, to which the noise is calibrated.
    return steps.clamp(0, largest).floor()
