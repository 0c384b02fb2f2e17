"""The parts of a graph as NumPy arrays: read and checked without torch, turned into tensors at the last step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

import numpy as np

if TYPE_CHECKING:
    from graphveil.graphs.value.images import ImageShape
    from graphveil.graphs.value.release import Release
    from graphveil.graphs.value.schema import GraphSchema

Mask = Literal["train_mask", "val_mask", "test_mask"]
MASKS: tuple[Mask, Mask, Mask] = ("train_mask", "val_mask", "test_mask")
"""The names of a published split: who trains, who chooses, who tests."""


@dataclass(frozen=True, eq=False)
class SparseRows:
    """A float32 matrix [n, d] in compressed rows, as `torch.sparse_csr` and SciPy keep it.

    Attributes:
        values, columns: [m] stored entries, and the column of each.
        starts: [n + 1] where each row begins in the two.
        shape: (n, d).
    """

    values: np.ndarray
    columns: np.ndarray
    starts: np.ndarray
    shape: tuple[int, int]


Features = np.ndarray | SparseRows
"""A feature matrix [n, d], float32: every entry, or the stored ones only."""


@dataclass(frozen=True, eq=False)
class GraphParts:
    """What a graph is made of.

    Attributes:
        x: features [n, d].
        edge_index: int64 [2, E], sorted, unique, no self-loops, both directions when undirected.
        y: int64 [n], -1 where unknown; or float32 [n, c] for several labels a node.
        masks: the published split, any of `MASKS`, each bool [n].
        ids: the user's own node ids, in row order.
        public_edges: bool [E], the columns of `edge_index` that everybody knows; None: nobody knows any.
        private_nodes: int64 [k], who may have private edges, ascending; None: everybody.
        release: what a published graph says about itself.
        image: where in an image each feature lies, for graphs of pictures.
    """

    x: Features
    edge_index: np.ndarray
    y: np.ndarray
    schema: GraphSchema
    masks: Mapping[Mask, np.ndarray] = field(default_factory=dict)
    ids: Sequence[object] | np.ndarray | None = None
    public_edges: np.ndarray | None = None
    private_nodes: np.ndarray | None = None
    release: Release | None = None
    image: ImageShape | None = None

    @property
    def num_nodes(self) -> int:
        return int(self.x.shape[0])
