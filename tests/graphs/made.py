"""Small graphs and files that the tests of this room share."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch

from graphveil.graphs import Graph, GraphSchema, make_graph, normalise_edges

TOML = """
private = ["features", "labels"]
range = [0, 10]
classes = ["cat", "dog"]
directed = false
"""
NODES = "id,age,height,label\na,1,2,cat\nb,3,4,dog\nc,5,6,\n"
EDGES = "source,target\na,b\nb,c\n"


def folder(path: Path, **files: str | bytes | None) -> Path:
    """A folder of own files: the small valid ones, with some replaced, added or (None) left out.

    Keywords name files by their stem; a dot in the name is written as two underscores.
    """
    content: dict[str, str | bytes | None] = {"graph__toml": TOML, "nodes__csv": NODES, "edges__csv": EDGES}
    path.mkdir(parents=True, exist_ok=True)
    for name, text in {**content, **files}.items():
        if text is not None:
            file = path / name.replace("__", ".")
            file.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def tiny_graph(**fields: Any) -> Graph:
    """Four nodes in a path with two features, and classes 0, 1, 1, unknown."""
    edge_index, notes = normalise_edges(np.array([0, 1, 2]), np.array([1, 2, 3]), 4, directed=False)
    parts: dict[str, Any] = {
        "x": torch.tensor([[0.0, 1.0], [0.5, 0.0], [1.0, 1.0], [0.0, 0.25]]),
        "edge_index": edge_index,
        "y": torch.tensor([0, 1, 1, -1]),
        "schema": GraphSchema("tiny", 2, 0.0, 1.0, ("cat", "dog"), notes=notes),
    }
    return make_graph(**{**parts, **fields})
