"""How alike the features of two people are, in a few classes of pairs: links favour those who are alike.

    s_uv = cosine of x_u and x_v, columns weighted by  1 + ln((1 + n) / (1 + how many rows have one))
    bin  = between which of the quantiles QUANTILES of random pairs s_uv lies

The weights are those of words in documents: what few people have in common says more.  Only named pairs and a fixed
number of random ones are looked at.  Shapes: features [n, d] sparse, bins int64 [S].
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp

from graphveil.models.blocks.block_model import NamedPairs
from graphveil.runtime.late import torch

if TYPE_CHECKING:
    from torch import Tensor

QUANTILES = (0.5, 0.75, 0.9, 0.97, 0.99, 0.997)
DRAWN = 400_000
CHUNK = 1 << 14


@dataclass(frozen=True)
class Likeness:
    """The classes of some pairs.

    Attributes:
        bins: how many classes there are; named: int64 [S], of the named pairs.
        source, target: int64 [m], random pairs of different people; drawn: int64 [m], their classes.
    """

    bins: int
    named: Tensor
    source: Tensor
    target: Tensor
    drawn: Tensor


def likeness(features: sp.csr_matrix, pairs: NamedPairs, *, seed: int) -> Likeness:
    """Sort the named pairs, and random ones, by how alike their features are.

    Args:
        features: [n, d], public or released; pairs: the named pairs.
    """
    rows = weighted_rows(features)
    generator = torch.Generator().manual_seed(seed)
    source, target = torch.randint(pairs.nodes, (2, DRAWN), generator=generator)
    source, target = source[source != target], target[source != target]
    usual = cosines(rows, source, target)
    cuts = np.unique(np.quantile(usual, QUANTILES))
    named = cosines(rows, pairs.source.cpu(), pairs.target.cpu())
    drawn_bins, named_bins = (torch.from_numpy(np.searchsorted(cuts, values)) for values in (usual, named))
    return Likeness(len(cuts) + 1, named_bins, source, target, drawn_bins)


def weighted_rows(features: sp.csr_matrix) -> sp.csr_matrix:
    """Return rows of length 1 (or 0) after rare columns were given more weight. `features`: [n, d]."""
    rows = features.astype(np.float32)
    holders = np.bincount(rows.nonzero()[1], minlength=rows.shape[1])
    weighted = rows @ sp.diags_array((1 + np.log((1 + rows.shape[0]) / (1 + holders))).astype(np.float32))
    lengths = np.sqrt(np.asarray(weighted.multiply(weighted).sum(axis=1)).ravel())
    return sp.csr_matrix(sp.diags_array(1 / np.maximum(lengths, 1e-12)) @ weighted)


def cosines(rows: sp.csr_matrix, source: Tensor, target: Tensor) -> np.ndarray:
    """Return the inner products [m] of some pairs of rows.

    Args:
        rows: [n, d]; source, target: int64 [m].
    """
    result = np.empty(len(source), dtype=np.float32)
    for start in range(0, len(source), CHUNK):
        here = slice(start, start + CHUNK)
        products = rows[source[here].numpy()].multiply(rows[target[here].numpy()])
        result[here] = np.asarray(products.sum(axis=1)).ravel()
    return result
