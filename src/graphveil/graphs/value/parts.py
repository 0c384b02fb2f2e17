"""The graph's parts as NumPy arrays, read and checked without torch, and the type of the graph that is made of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol, overload

import numpy as np

from graphveil.errors import InputError
from graphveil.graphs.value.release import Release
from graphveil.graphs.value.schema import GraphSchema
from graphveil.runtime.late import Tensor


@dataclass(frozen=True)
class ImageShape:
    """Where in an image of `rows` x `columns` pixels each feature lies, row by row: `places` [d].

    InputError refuses a place outside the image, or twice.
    """

    rows: int
    columns: int
    places: tuple[int, ...]

    def __post_init__(self) -> None:
        pixels = self.rows * self.columns
        if len(set(self.places)) != len(self.places) or not all(0 <= place < pixels for place in self.places):
            what = "a pixel lies outside the image, or is listed twice"
            raise InputError(what, where="ImageShape", allowed=f"different places below {pixels}")

    def images(self, features: np.ndarray) -> np.ndarray:
        """Return pictures [m, rows, columns] of features [m, d].

        A pixel without a feature is drawn as the mean of its four neighbours that have one (0 where none has).

        Raises:
            InputError: another d.
        """
        if features.shape[1] != len(self.places):
            allowed = f"{len(self.places)}, one for each place"
            raise InputError(f"{features.shape[1]} features", where="ImageShape", allowed=allowed)
        has_feature = np.zeros(self.rows * self.columns, dtype=bool)
        has_feature[list(self.places)] = True
        flat = np.zeros((len(features), self.rows * self.columns))
        flat[:, list(self.places)] = features
        shape = (self.rows, self.columns)
        images, has_pixel = flat.reshape(-1, *shape), has_feature.reshape(shape).astype(np.float64)
        neighbours = np.maximum(_around(has_pixel[None])[0], 1.0)
        filled: np.ndarray = np.where(has_pixel > 0, images, _around(images * has_pixel) / neighbours)
        return filled


def _around(images: np.ndarray) -> np.ndarray:
    wide = np.pad(images, ((0, 0), (1, 1), (1, 1)))
    total: np.ndarray = wide[:, :-2, 1:-1] + wide[:, 2:, 1:-1] + wide[:, 1:-1, :-2] + wide[:, 1:-1, 2:]
    return total


Mask = Literal["train_mask", "val_mask", "test_mask"]
MASKS: tuple[Mask, Mask, Mask] = ("train_mask", "val_mask", "test_mask")
"""The names of a published split: who trains, who chooses, who tests."""


@dataclass(frozen=True, eq=False)
class SparseRows:
    """A float32 matrix [n, d] in compressed rows, as `torch.sparse_csr` and SciPy keep it."""

    values: np.ndarray  # with columns: [m] stored entries, and the column of each
    columns: np.ndarray
    starts: np.ndarray  # [n + 1] where each row begins in the two
    shape: tuple[int, int]  # (n, d)


Features = np.ndarray | SparseRows
"""A feature matrix [n, d], float32: every entry, or the stored ones only."""


@dataclass(frozen=True, eq=False)
class GraphParts:
    """What a graph is made of."""

    x: Features  # features [n, d]
    edge_index: np.ndarray  # int64 [2, E], sorted, unique, no self-loops, both directions when undirected
    y: np.ndarray  # int64 [n], -1 where unknown; or float32 [n, c] for several labels a node
    schema: GraphSchema
    masks: Mapping[Mask, np.ndarray] = field(default_factory=dict)  # the published split, any of `MASKS`, each bool [n]
    ids: Sequence[object] | np.ndarray | None = None  # the user's own node ids, in row order
    public_edges: np.ndarray | None = None  # bool [E], which edges everybody knows; None: nobody knows any
    private_nodes: np.ndarray | None = None  # int64 [k], who may have private edges, ascending; None: everybody
    release: Release | None = None  # what a published graph says about itself
    image: ImageShape | None = None  # where in an image each feature lies, for graphs of pictures

    @property
    def num_nodes(self) -> int:
        return int(self.x.shape[0])


Part = Literal["x", "y", "edge_index"]
"""The parts that every graph has."""
OptionalPart = Literal["public_edges", "private_nodes", "train_mask", "val_mask", "test_mask"]
"""The parts that some graphs have."""


class Structure(Protocol):
    """Who is linked with whom, edge_index int64 [2, E], without anybody's features and labels."""

    @property
    def num_nodes(self) -> int:
        """n, people without edges too."""

    @property
    def edge_index(self) -> Tensor:
        """int64 [2, E], sorted, in both directions where undirected."""

    @property
    def schema(self) -> GraphSchema:
        """The public declaration."""


class Graph(Protocol):
    """A graph of people: what `load_graph`, `make_graph` and the `from_...` functions return.

    At run time it is a PyG `Data`, so PyG's own tools work on it; the type names what graphveil reads of it. Its
    tensors are those of `GraphParts`, with x dense or `torch.sparse_csr`; what only some graphs have (release, image,
    public_edges, private_nodes, masks, ids) is read by `get`, which says None elsewhere.
    """

    x: Tensor
    y: Tensor
    edge_index: Tensor
    num_nodes: int
    schema: GraphSchema
    release: Release
    image: ImageShape
    public_edges: Tensor
    private_nodes: Tensor

    def keys(self) -> list[str]:
        """Return the names of the parts that are there."""

    @overload
    def get(self, key: Part) -> Tensor: ...
    @overload
    def get(self, key: OptionalPart) -> Tensor | None: ...
    @overload
    def get(self, key: Literal["release"]) -> Release | None: ...
    @overload
    def get(self, key: Literal["image"]) -> ImageShape | None: ...
    @overload
    def get(self, key: Literal["schema"]) -> GraphSchema | None: ...
    @overload
    def get(self, key: Literal["ids"]) -> Sequence[object] | np.ndarray | None: ...
    @overload
    def get(self, key: str) -> object: ...

    @overload
    def __getitem__(self, key: Part | OptionalPart) -> Tensor: ...
    @overload
    def __getitem__(self, key: str) -> object: ...

    def __setitem__(self, key: str, value: object) -> None: ...
