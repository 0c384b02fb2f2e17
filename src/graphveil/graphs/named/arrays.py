"""Data sets published as one npz file of arrays: CitationFull, Amazon, Coauthor and Twitch.

The files of PyG's classes are read straight into sparse rows (dense, Coauthor Physics takes 1.2 GB), with PyG's result:
positive features become 1, edges undirected.

Sources: Shchur, Mumme, Bojchevski, Guennemann, "Pitfalls of Graph Neural Network Evaluation", 2018 (Amazon, Coauthor
and the uncut CiteSeer of 3,312 papers); Zuegner, Akbarnejad, Guennemann, "Adversarial Attacks on Neural Networks for
Graph Data", KDD 2018 (its largest component); Bojchevski, Guennemann, "Deep Gaussian Embedding of Graphs", ICLR 2018
(Cora_ML, DBLP); Rozemberczki, Allen, Sarkar, "Multi-Scale Attributed Node Embedding", 2019 (Twitch).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from graphveil.errors import DataError
from graphveil.graphs.named.archives import (
    EMBEDDED_RANGE,
    EMBEDDED_SOURCE,
    embedded_features,
    read_npz,
    require_valid_rows,
    whole_numbers,
)
from graphveil.graphs.named.root import DataRoot, download
from graphveil.graphs.value.checks import check_parts
from graphveil.graphs.value.edges import merge_edges
from graphveil.graphs.value.features import compact_rows
from graphveil.graphs.value.parts import Features, GraphParts
from graphveil.graphs.value.schema import GraphSchema
from graphveil.runtime.late import quiet, sparse
from graphveil.runtime.progress import ProgressCallback
from graphveil.runtime.words import count_of

_SOURCE = (
    "published benchmark: each feature is a word or game, absent or present, 0 or 1; the number of features "
    "and the classes are those of the publication"
)


@dataclass(frozen=True)
class _Set:
    kind: str  # the PyG class
    folder: str
    file: str
    dimension: int
    classes: tuple[str, ...]
    largest_component: bool = False


def _numbered(count: int) -> tuple[str, ...]:
    return tuple(f"class {index}" for index in range(count))


_COMPUTERS = (
    *("Desktops", "Data Storage", "Laptops", "Monitors", "Computer Components", "Video Projectors", "Routers"),
    *("Tablets", "Networking Products", "Webcams"),
)
_CITESEER = ("AI", "Agents", "DB", "HCI", "IR", "ML")
_PHYSICS = ("phys rev d", "phys rev a", "phys rev b", "phys rev c", "phys rev e")
_SETS = {
    "amazon-computers": _Set("Amazon", "Computers", "amazon_electronics_computers", 767, _COMPUTERS),
    "amazon-photo": _Set("Amazon", "Photo", "amazon_electronics_photo", 745, _numbered(8)),
    "citeseer-lcc": _Set("CitationFull-LCC", "citeseer", "citeseer", 3703, _CITESEER, largest_component=True),
    "coauthor-cs": _Set("Coauthor", "CS", "ms_academic_cs", 6805, _numbered(15)),
    "coauthor-physics": _Set("Coauthor", "Physics", "ms_academic_phy", 8415, _PHYSICS),
    "cora-ml": _Set("CitationFull", "cora_ml", "cora_ml", 2879, _numbered(7)),
    "dblp": _Set("CitationFull", "dblp", "dblp", 1639, _numbered(4)),
    **{
        f"twitch-{code.lower()}": _Set("Twitch", code, code, 3170, ("not mature", "mature"))
        for code in ("DE", "EN", "ES", "FR", "PT", "RU")
    },
}
ARRAY_SETS = tuple(_SETS)


def load_arrays(name: str, root: DataRoot) -> GraphParts:
    """Read a graph under `root/pyg`; refusals: see `DataRoot.ensure`.

    Args:
        name: one of `ARRAY_SETS`.
    """
    spec = _SETS[name]
    file = f"{spec.file}.npz"

    def fetch(target: Path, progress: ProgressCallback) -> None:
        download(_url(spec), target / file, progress)

    folder = root.ensure(f"pyg/{spec.kind}/{spec.folder}/raw", (file,), name=name, fetch=fetch)
    reader: Callable[[Path, _Set], _Parts] = _read_twitch if spec.kind == "Twitch" else _read_sparse
    try:
        parts = reader(folder / file, spec)
    except (OSError, ValueError, LookupError, TypeError) as error:
        raise DataError(f"is not the published file of {name!r} ({error})", where=str(folder / file)) from error
    edge_index, changes = merge_edges(parts.source, parts.target, len(parts.labels), directed=False)
    schema = GraphSchema(
        name, parts.x.shape[1], *parts.bounds, spec.classes, source=parts.origin, notes=parts.notes + changes
    )
    return check_parts(GraphParts(parts.x, edge_index, parts.labels, schema))


@dataclass(frozen=True)
class _Parts:
    x: Features
    source: np.ndarray
    target: np.ndarray
    labels: np.ndarray
    bounds: tuple[float, float]
    origin: str
    notes: tuple[str, ...]


def _url(spec: _Set) -> str:
    with quiet():
        from torch_geometric import datasets
    kind = "Coauthor" if spec.kind == "CitationFull-LCC" else spec.kind  # stored beside Coauthor's
    url: str = getattr(datasets, kind).url
    if spec.kind == "CitationFull":
        return url.format(spec.file)
    return f"{url.rstrip('/')}/{spec.file}.npz"


def _read_sparse(path: Path, spec: _Set) -> _Parts:
    """The CSR arrays `adj_*`, `attr_*` and `labels`."""
    from scipy.sparse.csgraph import connected_components

    names = [f"{part}_{field}" for part in ("attr", "adj") for field in ("data", "indices", "indptr", "shape")]
    *parts, label_array = read_npz(path, [*names, "labels"])
    rows, adjacency = (
        require_valid_rows(
            sparse.csr_matrix((data, whole_numbers(indices, "indices"), whole_numbers(starts, "starts")), shape=shape)
        )
        for data, indices, starts, shape in (parts[:4], parts[4:])
    )
    labels = whole_numbers(label_array, "labels")
    # In place: nothing else uses the rows, and a second copy of Coauthor's would be large.
    changed = int(np.count_nonzero((rows.data > 0) & (rows.data != 1)))
    rows.data[rows.data > 0] = 1
    notes: tuple[str, ...] = ()
    if changed:
        notes = (f"set {count_of(changed, 'positive feature value')} to 1, as PyG's reader does",)
    if spec.largest_component:
        _, part = connected_components(adjacency, directed=False)
        inside: np.ndarray = part == np.bincount(part).argmax()
        rows, adjacency, labels = rows[inside], adjacency[inside][:, inside], labels[inside]
        notes += (f"kept the largest component: {inside.sum():,} of {inside.size:,} nodes",)
    edges = adjacency.tocoo()
    return _Parts(_compact(rows, spec), edges.row, edges.col, labels, (0.0, 1.0), _SOURCE, notes)


def _compact(rows: sparse.csr_matrix, spec: _Set) -> Features:
    if rows.shape[1] != spec.dimension:
        raise ValueError(f"{rows.shape[1]} features instead of {spec.dimension}")
    return compact_rows(rows)


def _read_twitch(path: Path, spec: _Set) -> _Parts:
    """The arrays `edges`, `features` and `target`; the features multi-hot (3,170) or PyG's 128 embedded."""
    values, label_array, edges = read_npz(path, ("features", "target", "edges"))
    labels = whole_numbers(label_array, "labels")
    source, target = edges.T
    if values.shape[1] == 128:
        x, notes = embedded_features(values, str(path))
        return _Parts(x, source, target, labels, EMBEDDED_RANGE, EMBEDDED_SOURCE, notes)
    return _Parts(_compact(sparse.csr_matrix(values), spec), source, target, labels, (0.0, 1.0), _SOURCE, ())
