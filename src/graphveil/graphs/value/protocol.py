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
    """Who is linked with whom, without anybody's features and labels.

    Attributes:
        num_nodes: n.
        edge_index: int64 [2, E].
        schema: the declared facts.
    """

    @property
    def num_nodes(self) -> int: ...
    @property
    def edge_index(self) -> Tensor: ...
    @property
    def schema(self) -> GraphSchema: ...


class Graph(Protocol):
    """A graph of people: what `load_graph`, `make_graph` and the `from_...` functions return.

    At run time it is a PyG `Data`, so PyG's own tools work on it; the type names what graphveil reads of it.

    Attributes:
        x: features, float32 [n, d], dense or `torch.sparse_csr`.
        y: labels, int64 [n], -1 where unknown; or float32 [n, c] for several labels a node.
        edge_index: int64 [2, E], sorted, unique, no self-loops, both directions when undirected.
        num_nodes: n.
        schema: the declared facts.
        release: what a published graph says about itself; only published ones have it, so ask `get("release")`.
        image: where in an image each feature lies; only graphs of pictures have it, so ask `get("image")`.
        public_edges: bool [E], the edges that everybody knows; not always there, so ask `get("public_edges")`.
        private_nodes: int64 [k], who may have private edges; not always there.
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
