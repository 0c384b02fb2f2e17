"""The type of a graph: what every room may read of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, Protocol, overload

if TYPE_CHECKING:
    import numpy as np
    from torch import Tensor

    from graphveil.graphs.value.images import ImageShape
    from graphveil.graphs.value.release import Release
    from graphveil.graphs.value.schema import GraphSchema

Part = Literal["x", "y", "edge_index"]
"""The parts that every graph has."""
OptionalPart = Literal["public_edges", "private_nodes", "train_mask", "val_mask", "test_mask"]
"""The parts that some graphs have."""


class Structure(Protocol):
    """Who is linked with whom, edge_index int64 [2, E], without anybody's features and labels."""

    @property
    def num_nodes(self) -> int: ...
    @property
    def edge_index(self) -> Tensor: ...
    @property
    def schema(self) -> GraphSchema: ...


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

    def keys(self) -> list[str]: ...

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
