"""`load_graph`: one door to every named set and to the user's own files."""

from __future__ import annotations

import difflib
import os
from typing import TYPE_CHECKING

from graphveil.errors import InputError
from graphveil.graphs.digits import digits_graph
from graphveil.graphs.musae import load_musae
from graphveil.graphs.planetoid import load_planetoid
from graphveil.graphs.root import Progress, data_root

if TYPE_CHECKING:
    from torch_geometric.data import Data

NAMES = ("citeseer", "cora", "digits", "facebook", "lastfm", "pubmed")
"""The named data sets."""


def load_graph(
    name_or_path: str | os.PathLike[str],
    root: str | os.PathLike[str] | None = None,
    *,
    download: bool = True,
    progress: Progress | None = None,
) -> Data:
    """Load a graph.

    Args:
        name_or_path: one of `NAMES`, or a folder with your own files.
        root: data root; else GRAPHVEIL_DATA, else the user cache.
        download: fetch an absent named set.
        progress: called with {"stage", "done", "total"} while something is fetched.

    Returns:
        A PyG `Data` with `x`, `edge_index`, `y`, `num_nodes`, `schema`.

    Raises:
        MissingDataError: the set is absent and could not be fetched.
        DataError: a file cannot be used; names file and row.
        InputError: no such name or folder.
    """
    name = str(name_or_path).lower().replace("_", "-")
    where = data_root(root)
    if name == "digits":
        return digits_graph()
    if name in ("cora", "citeseer", "pubmed"):
        return load_planetoid(name, where, download=download, progress=progress)
    if name in ("facebook", "lastfm"):
        return load_musae(name, where, download=download, progress=progress)
    raise _unknown(name)


def _unknown(name: str) -> InputError:
    near = difflib.get_close_matches(name, NAMES, n=1)
    return InputError(
        f"no data set and no folder {name!r}",
        allowed=f"{', '.join(NAMES)}, or a folder",
        remedy=f"did you mean {near[0]}?" if near else None,
    )
