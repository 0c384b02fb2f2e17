"""The noisy sums of a hop where tensors lie on a device of their own: the bits that `perturbed` gives block by block.

Sums are exact integers, whose order is free, and the noise of each block of receivers comes from the block's own key,
in the words and draws that the block has anywhere else.  Edges, rows, sums and noise stay on the device; keys of blocks
are handed to it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby, islice
from typing import TYPE_CHECKING, Final

from graphveil.aggregation.exact_sum import ReceiverRows
from graphveil.aggregation.grid import GridRows
from graphveil.engine import Block, Blocks
from graphveil.mechanisms.samplers.rounded_normal import RoundedNormal
from graphveil.mechanisms.samplers.rounded_tensor import NormalTensors
from graphveil.privacy import BlockKey
from graphveil.runtime.late import torch

if TYPE_CHECKING:
    from torch import Tensor

#: Blocks at once: with 2^18 values each, the cipher's bytes of all of them take about 150 MB.
_AT_ONCE: Final = 16


def noisy_sums(
    rows: ReceiverRows, grid: GridRows, noise: RoundedNormal | None, blocks: Blocks, keys: Iterable[BlockKey]
) -> Tensor:
    """Return sums with their noise in whole steps, float32 [n, c] on the device of the grid.

    Args:
        rows: the edges; moved to the device, if they lie elsewhere.
        grid: what every node sends, float32 [n, c].
        noise: of every entry; None for none.
        blocks: of receivers; keys: one for each block, in their order.
    """
    device, columns = grid.values.device, grid.values.shape[1]
    there, source = rows.to(device), iter(keys)
    tables = None if noise is None else NormalTensors.of(noise, device)
    noisy = torch.empty(grid.values.shape, device=device)
    for group in _groups(blocks):
        receivers = slice(group[0].start, group[-1].stop)
        sums = there.sums(grid, receivers)
        if tables is not None:
            size = (group[0].stop - group[0].start) * columns
            # Every entry, those of isolated nodes too: a row without noise would tell that nobody sends to it.
            sums.values.add_(tables.draw(size, list(islice(source, len(group)))).view(-1, columns))
        noisy[receivers] = sums.whole()
    return noisy


def _groups(blocks: Blocks) -> Iterator[list[Block]]:
    """Blocks of one length that follow each other, a few at a time: only the last of all can be shorter."""
    for _, alike in groupby(blocks, key=lambda block: block.stop - block.start):
        while group := list(islice(alike, _AT_ONCE)):
            yield group
