"""A keyed hash of a graph: whether two readings saw the same data, and nothing to whoever lacks the key."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import numpy as np

from graphveil.graphs.value.protocol import Part

if TYPE_CHECKING:
    from torch import Tensor

    from graphveil.graphs.value.protocol import Graph

_PARTS: tuple[Part, ...] = ("x", "y", "edge_index")


def fingerprint(graph: Graph, key: bytes) -> str:
    """Return 32 hexadecimal digits that change when features, labels, edges or their order do.

    Args:
        graph: of any kind.
        key: 1 to 64 secret bytes. Without them nobody can check a guess of the graph against its fingerprint.
    """
    # Keyed: graphs are guessable (one edge more or less), and a plain hash would confirm a guess.
    digest = hashlib.blake2b(key=key, digest_size=16)
    for name in _PARTS:
        for part in _parts(graph[name]):
            content = np.ascontiguousarray(part.detach().cpu().numpy())
            # Kind and shape too, so that no two different graphs run together to the same bytes.
            digest.update(f"{name} {content.dtype} {content.shape} ".encode())
            digest.update(content.reshape(-1).view(np.uint8).data)
    return digest.hexdigest()


def _parts(tensor: Tensor) -> list[Tensor]:
    if tensor.is_sparse_csr:
        return [tensor.crow_indices(), tensor.col_indices(), tensor.values()]
    return [tensor]
