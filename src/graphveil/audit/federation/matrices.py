"""Audit of a matrix that is shared between two readers as keys (`hidden_matrix`): what one of them reads is random.

corrections   all bits that are not always 0 are uniform, for a star and for a chain, to each reader
beside        so is what moves from one matrix to the other under one key of the reader: the rest of its view is equal
shares        and so is what it expands them to, everywhere and at the entries alone

With the other reader's key all of it would follow from the matrix, so that key is new each time.
"""

from __future__ import annotations

import itertools
from typing import Final

import numpy as np
import scipy.sparse
import torch
from torch import Tensor

from graphveil.audit.federation.cases import audit_uniform
from graphveil.audit.verdict import Audit
from graphveil.federation.crypto.hidden_matrix import HiddenMatrix, Shape, hide
from graphveil.federation.crypto.masks import MaskKey
from graphveil.privacy import SeededRandomness

#: Not a multiple of the 8 rows of a leaf.
_NODES: Final = 61
_LEAF: Final = 8
_TIMES: Final = 4


def correction_words(corrections: Tensor) -> dict[str, Tensor]:
    """Return the bits of corrections of `hide`, int64 [trees, words], that differ from matrix to matrix, as words whose
    ends are uniform if they are.
    """
    levels = (corrections.shape[1] - 1 - _LEAF) // 2
    flags = corrections[:, 2 * levels, None] >> torch.arange(2 * levels) & 1
    seeds = corrections[:, : 2 * levels].clone()
    # The lowest bit of a seed is no part of it: there the correction of the left child's flag is added.
    seeds[:, 0::2] |= flags[:, 0::2]
    right = flags[:, 1::2].flatten()
    four = (right[: len(right) // 4 * 4].view(-1, 4) << torch.arange(4)).sum(dim=1)
    return {"levels": seeds, "flags": four | four << 60, "leaves": corrections[:, 2 * levels + 1 :]}


def audit_matrix(*, seed: int = 0) -> Audit:
    """Hide a star and a chain from each reader, under one key of its own and new ones of the other reader."""
    randomness, shape = SeededRandomness(seed + 1), Shape.of(_NODES, 2)
    words: dict[str, list[Tensor]] = {}
    for reader, _ in itertools.product((0, 1), range(_TIMES)):
        own = MaskKey.fresh(randomness)
        views = {}
        for name, matrix in _matrices().items():
            new = MaskKey.fresh(randomness)
            views[name] = HiddenMatrix(shape, reader, own, hide(matrix, shape, (new, own) if reader else (own, new)))
        for name, view in views.items():
            share = torch.cat([rows for _, rows in view.blocks()])
            entries = _matrices()[name].tocoo()
            streams = {**correction_words(view.corrections), "share": share, "entries": share[entries.coords]}
            for part, numbers in streams.items():
                words.setdefault(f"{part} of a {name} to reader {reader}", []).append(numbers)
        star, chain = (view.corrections for view in views.values())
        for part, numbers in correction_words(star ^ chain).items():
            words.setdefault(f"{part} from matrix to matrix under one key of reader {reader}", []).append(numbers)
    return audit_uniform("federation, a matrix hidden by keys", words)


def _matrices() -> dict[str, scipy.sparse.csr_array]:
    """Return a row that is full, and rows that are all alike; every node has an entry with itself."""
    nodes = np.arange(_NODES)
    walks = {}
    for name, row, column in (("star", np.zeros_like(nodes), nodes), ("chain", nodes, (nodes + 1) % _NODES)):
        entries = np.full(_NODES, 1 << 16, dtype=np.int64), (row, column)
        walks[name] = scipy.sparse.csr_array(entries, shape=(_NODES, _NODES)) + scipy.sparse.eye_array(
            _NODES, dtype=np.int64, format="csr"
        )
    return walks
