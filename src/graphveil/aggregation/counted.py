"""Sums over neighbours with two-sided geometric noise: pure epsilon, for messages that name a class.

    Y = (S + Z) step,   S = exact integer sums of rows, Pr[Z = z] = (1 - r) / (1 + r) r^|z|, r = e^(-epsilon step / D)

Rows have length at most 1 in the L1 norm, D is how far all sums of all K hops move in that norm:

    unit            what comes or goes                                    D
    directed-edge   one entry of A                                        K
    edge            one undirected edge, a row at either end              2 K
    k-edges         up to k relationships of one person                   2 k K: the person's own row, and k others

A message that names one class moves one coordinate by 1, while the normal law pays for all directions of a vector of
length 1: for one edge at delta 1e-6 it needs 2 to 5 times the deviation (epsilon 1 to 8), and promises less.  For rows
of many entries it is the other way round.

Source: C. Dwork, F. McSherry, K. Nissim, A. Smith, "Calibrating Noise to Sensitivity", TCC 2006; the discrete law by
A. Ghosh, T. Roughgarden, M. Sundararajan, STOC 2009, arXiv 0811.2841.  Shapes: rows and sums [n, c].
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from graphveil.aggregation.exact_sum import ReceiverRows
from graphveil.aggregation.grid import GridRows
from graphveil.aggregation.names import Unit
from graphveil.aggregation.perturbed import entries_of
from graphveil.aggregation.shared import as_tensor
from graphveil.engine import LOCAL, Block, Blocks, Engine
from graphveil.errors import InputError
from graphveil.mechanisms import NoisyCounts
from graphveil.privacy import BlockKey, BlockNoise, Randomness
from graphveil.runtime.checks import require_number, require_whole
from graphveil.runtime.late import torch

if TYPE_CHECKING:
    import numpy as np
    from torch import Tensor


@dataclass(frozen=True, kw_only=True)
class CountedSum:
    """K noisy sums of rows that name classes, one after the other, each at an equal part of epsilon.

    Args:
        unit: what is hidden; not "node".
        hops: K.
        relationships: k, of one person, hidden together; for "k-edges".
        epsilon: of all sums together, for one unit; inf adds no noise and hides nothing.
        bits: a row of length 1 is 2^bits steps long; 0: each row names one class or none.

    >>> import torch
    >>> from graphveil.aggregation import CountedSum, ReceiverRows
    >>> from graphveil.privacy import SeededRandomness
    >>> counted = CountedSum(unit="edge", epsilon=2.0)
    >>> rows = ReceiverRows.of(torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]]), 3)
    >>> counted.perturb(rows, torch.eye(3), SeededRandomness(1)).shape
    torch.Size([3, 3])
    >>> counted.change, round(counted.sigma, 2)
    (2, 1.36)
    """

    unit: Unit = "edge"
    epsilon: float
    hops: int = 1
    relationships: int | None = None
    bits: int = 0

    def __post_init__(self) -> None:
        if self.unit == "node":
            raise InputError("sums of classes do not hide a node", allowed="units of edges")
        entries_of(self.unit, None, self.relationships)
        require_number("(0, inf]", epsilon=self.epsilon)
        require_whole(1, 64, hops=self.hops)
        require_whole(0, 12, bits=self.bits)

    @property
    def change(self) -> int:
        """By how much the sums of one hop move when one unit comes or goes, in the L1 norm."""
        if self.relationships is not None:
            # Each of the k edges is in the sum of either end; at the person's end all k are in one row.
            return 2 * self.relationships
        return entries_of(self.unit)

    @property
    def sigma(self) -> float:
        """The standard deviation of each entry's noise; 0 where nothing is hidden."""
        return 0.0 if math.isinf(self.epsilon) else math.sqrt(self.noise.variance) * 2.0**-self.bits

    @property
    def noise(self) -> NoisyCounts:
        """What adds noise to each entry in steps of the grid, where there is any."""
        # Pure epsilons add up over hops, each of which may read the noisy sums before it.
        return NoisyCounts(epsilon=self.epsilon / (self.hops * self.change) * 2.0**-self.bits)

    def perturb(self, rows: ReceiverRows, x: Tensor, randomness: Randomness, *, engine: Engine = LOCAL) -> Tensor:
        """Return the noisy sums of one hop, float32 [n, c]. Raises InputError for edges with weights, or not one row a
        node.

        Args:
            x: float [n, c], each row of L1 length at most 1; longer rows are shortened, and rows with NaN send nothing.
        """
        sent = self._sent(rows, x)
        blocks = Blocks.of(*sent.shape)
        keys = BlockNoise(randomness).keys(len(blocks))
        task = _NoisyBlock(self.bits, None if math.isinf(self.epsilon) else self.noise)
        shared = engine.put(*rows.arrays[:2], sent.numpy())
        noisy = torch.empty_like(sent)
        engine.gather(engine.map_blocks(task, blocks, shared, keys), blocks, noisy.numpy())
        return noisy

    def log_likelihood(self, noisy: Tensor, rows: ReceiverRows, x: Tensor) -> Tensor:
        """Return log Pr[noisy entry | edges] of each entry, float64 [n, c].

        Args:
            noisy: what was released [n, c].
        """
        sent = (noisy.double() * 2.0**self.bits).round().long()
        exact = _whole_sums(rows, GridRows(self._sent(rows, x), 1.0, self.bits))
        return self.noise.log_likelihood(sent.reshape(-1), exact.reshape(-1)).view_as(sent)

    def _sent(self, rows: ReceiverRows, x: Tensor) -> Tensor:
        if rows.weights is not None:
            raise InputError("edges with weights", where="sums of classes", allowed="edges without weights")
        if len(x) != rows.num_nodes:
            raise InputError(f"{len(x)} rows", allowed=f"one for each of {rows.num_nodes} nodes")
        return on_l1_grid(x, self.bits)


@dataclass(frozen=True)
class _NoisyBlock:
    """The task that an engine runs on a block of receivers: their noisy sums, from the block's own key."""

    bits: int
    noise: NoisyCounts | None

    def __call__(
        self, block: Block, key: BlockKey, starts: np.ndarray, senders: np.ndarray, sent: np.ndarray
    ) -> np.ndarray:
        """Return float32 [rows of the block, c] from edges and what every node sends [n, c]."""
        rows = ReceiverRows(as_tensor(starts), as_tensor(senders))
        sums = _whole_sums(rows, GridRows(as_tensor(sent), 1.0, self.bits), block.rows)
        if self.noise is not None:
            # Each entry, of isolated nodes too: a row without noise would reveal that nobody sends to it.
            sums = self.noise.randomize(sums.reshape(-1), randomness=key.stream()).view_as(sums)
        scaled: np.ndarray = (sums.float() * 2.0**-self.bits).numpy()
        return scaled


def _whole_sums(rows: ReceiverRows, sent: GridRows, receivers: slice = slice(None)) -> Tensor:
    """Return exact sums of consecutive receivers in whole steps, int64 [rows, c]."""
    sums = rows.sums(sent, receivers)
    whole = sums.values.long()
    whole[sums.long] = sums.totals
    return whole


def on_l1_grid(x: Tensor, bits: int) -> Tensor:
    """Return rows [n, c] in whole steps of 2^-bits, at least 0 and of L1 length at most 1. Longer rows are shortened,
    rows with NaN or infinite entries are zero, and an entry below 0 counts as 0.
    """
    exact = x.detach().double().clamp_min(0.0)
    lengths = exact.sum(dim=1, keepdim=True)
    # Towards zero: no entry grows, so a row that was shortened to 1 stays at most 1 long.
    steps = (exact / lengths.clamp_min(1.0) * 2.0**bits).trunc()
    # Checked on the whole numbers that are sent: neither rounding in the division nor NaN may lengthen a row.
    valid = steps.sum(dim=1, keepdim=True) <= 2.0**bits
    return torch.where(valid, steps, 0.0).float()
