"""A number for every pair of people, so that pairs of equal standing lie side by side and none need be listed.

People are sorted into G groups; a block holds the pairs between two groups, or inside one.  Blocks follow each other,
and the pairs of a block are numbered without gaps; both ways of the numbering are closed forms in integers:

    between groups A and B          i |B| + j                              i, j: positions inside the group
    inside A, ordered pairs         i (|A| - 1) + j - [j > i]
    inside A, unordered pairs       (s - 1) |A| + i,  j = i + s mod |A|    each pair once for s = 1 .. |A| / 2

Shapes: pairs [p], numbers int64 [p] in 0 .. n (n - 1) / 2, or 0 .. n (n - 1) where pairs are ordered.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from graphveil.runtime.late import torch

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True)
class PairCells:
    """The numbering.

    Attributes:
        group: [n] each person's group; sizes: [G]; directed: whether pairs are ordered.
        members: [n] people by group; position: [n] each person's place inside the group; first: [G] where each starts.
        sender, receiver: [B] the two groups of each block, sender <= receiver where pairs are unordered.
        starts: [B + 1] the number of each block's first pair.
    """

    group: Tensor
    sizes: Tensor
    directed: bool
    members: Tensor
    position: Tensor
    first: Tensor
    sender: Tensor
    receiver: Tensor
    starts: Tensor

    def block(self, source: Tensor, target: Tensor) -> Tensor:
        """Return the block of each pair [p]."""
        a, b, groups = self.group[source], self.group[target], len(self.sizes)
        if self.directed:
            return a * groups + b
        low, high = torch.minimum(a, b), torch.maximum(a, b)
        return low * groups - low * (low - 1) // 2 + high - low

    def number(self, source: Tensor, target: Tensor) -> Tensor:
        """Return the number of each pair [p] of different people."""
        if not self.directed:
            swap = self.group[source] > self.group[target]
            source, target = torch.where(swap, target, source), torch.where(swap, source, target)
        i, j, size = self.position[source], self.position[target], self.sizes[self.group[target]]
        inner = i * (size - 1) + j - (j > i).long() if self.directed else _circle_number(i, j, size)
        within = torch.where(self.group[source] == self.group[target], inner, i * size + j)
        return self.starts[self.block(source, target)] + within

    def pairs(self, number: Tensor) -> tuple[Tensor, Tensor]:
        """Return the (source, target) of each number."""
        block = torch.searchsorted(self.starts, number, right=True) - 1
        within, a, b = number - self.starts[block], self.sender[block], self.receiver[block]
        size, inside = self.sizes[b], a == b
        narrow = (size - 1).clamp_min(1)
        if self.directed:
            i, j = within // narrow, within % narrow
            i, j = i, j + (j >= i).long()
        else:
            i, j = within % size, (within % size + within // size + 1) % size
        i = torch.where(inside, i, within // size)
        j = torch.where(inside, j, within % size)
        return self.members[self.first[a] + i], self.members[self.first[b] + j]


def pair_cells(group: Tensor, sizes: Tensor, *, directed: bool) -> PairCells:
    """Number the pairs of people in groups.

    Args:
        group: int64 [n], the group of each; sizes: [G], people in each group, at least one.
        directed: whether (u, v) and (v, u) are two pairs.
    """
    members = torch.argsort(group, stable=True)
    first = torch.cumsum(sizes, 0) - sizes
    position = torch.empty_like(group)
    position[members] = torch.arange(len(group)) - first[group[members]]
    groups = len(sizes)
    if directed:
        sender, receiver = torch.cartesian_prod(torch.arange(groups), torch.arange(groups)).view(-1, 2).T
    else:
        sender, receiver = torch.triu_indices(groups, groups)
    inside = sizes[sender] * (sizes[sender] - 1) // (1 if directed else 2)
    counts = torch.where(sender == receiver, inside, sizes[sender] * sizes[receiver])
    starts = torch.cat([torch.zeros(1, dtype=torch.int64), torch.cumsum(counts, 0)])
    return PairCells(group, sizes, directed, members, position, first, sender, receiver, starts)


def _circle_number(i: Tensor, j: Tensor, size: Tensor) -> Tensor:
    """Number the unordered pairs of a circle of people by the shorter step from one to the other, then by who takes it.
    Half way round an even circle both steps are equal, and the first half of the people take it.
    """
    step = (j - i) % size
    swap = (2 * step > size) | ((2 * step == size) & (i > j))
    step, start = torch.where(swap, size - step, step), torch.where(swap, j, i)
    return (step - 1) * size + start
