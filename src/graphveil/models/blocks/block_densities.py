"""How dense links are between two classes, B [c, c], from unbiased pair estimates between people who sent a label.

    full       B_ab = M^T A M / M^T t t^T M without own pairs                c^2 numbers
    planted    the same sums, over all pairs of one class and over all of two: B_ab = x where a = b, else y

Both are shrunk towards one density for all by the noise of the lists.  "planted" asks far less of the labels: forgers
who all name one class move a row of "full", which rests on few links; here each number rests on everybody.  It cannot
say that one class is denser than another, nor that two classes are near each other.

Sources: Karrer, Newman, "Stochastic blockmodels and community structure in networks", Phys. Rev. E 83, 2011 (degrees
beside B); Condon, Karp, "Algorithms for graph partitioning on the planted partition model", Random Structures and
Algorithms 18, 2001.  Shapes: M [n, c] unbiased labels, t [n] degrees over their mean.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphveil.models.blocks.block_model import NamedPairs
from graphveil.models.blocks.list_sums import list_sums
from graphveil.runtime.late import torch

if TYPE_CHECKING:
    from torch import Tensor

#: Links assumed per person where noise hides even their number.
FEWEST = 0.1
#: Densities stay above this share of their mean and below this probability.
LEAST_DENSE, MOST_DENSE = 0.03, 0.8


def block_densities(pairs: NamedPairs, shares: Tensor, out: Tensor, into: Tensor, blocks: str) -> Tensor:
    """Return B [c, c].

    Args:
        pairs: what the reports say.
        shares: M [n, c], zero rows for those who sent no label.
        out, into: t [n], of everyone as a source and as a target.
        blocks: "full" or "planted".
    """
    shares = shares.double()
    observed = shares.T @ list_sums(pairs, shares)
    expected = _class_pairs(shares * out[:, None], shares * into[:, None])
    usual = observed.sum().clamp_min(FEWEST * pairs.nodes) / expected.sum().clamp_min(1.0)
    counted = _class_pairs(shares, shares)
    if blocks == "planted":
        observed, expected, counted = planted(observed), planted(expected), planted(counted)
    raw = observed / expected.clamp_min(1.0)
    noise = (counted.clamp_min(1.0) / pairs.information / expected.clamp_min(1.0).square()).mean()
    trust = (1 - noise / (raw - usual).square().mean().clamp_min(1e-30)).clamp(0.05, 1.0)
    density: Tensor = (usual + (raw - usual) * trust).clamp(float(LEAST_DENSE * usual), MOST_DENSE)
    return density


def planted(cells: Tensor) -> Tensor:
    """Return the sum over all cells on the diagonal in each of these, and over all others in each other one [c, c].
    `cells`: [c, c].
    """
    within = torch.eye(len(cells), dtype=torch.bool, device=cells.device)
    return torch.where(within, cells.trace(), cells.sum() - cells.trace())


def _class_pairs(first: Tensor, second: Tensor) -> Tensor:
    """Return the sum over ordered pairs of two people of first_u second_v^T [c, c]."""
    return first.sum(dim=0)[:, None] * second.sum(dim=0) - first.T @ second
