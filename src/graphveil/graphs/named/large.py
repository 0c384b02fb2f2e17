"""Sets with a published split: PPI (several labels a node) in two layouts, Reddit, ogbn-arxiv.

The errors of all loaders are those of `DataRoot.ensure`. The layout of GraphSAINT:

    adj_full.npz      the adjacency matrix in compressed rows: data, indices, indptr, shape
    feats.npy         [n, d]
    class_map.json    node number -> a list of 121 zeros and ones
    role.json         "tr", "va", "te" -> node numbers

Sources: Hamilton, Ying, Leskovec, "Inductive Representation Learning on Large Graphs", NeurIPS 2017 (PPI, Reddit); Zeng
et al., "GraphSAINT: Graph Sampling Based Inductive Learning Method", ICLR 2020, and its data folder; Hu et al., "Open
Graph Benchmark", NeurIPS 2020 (ogbn-arxiv).
"""

from __future__ import annotations

import contextlib
import io
from collections.abc import Sequence
from itertools import product
from pathlib import Path

import numpy as np

from graphveil.errors import DataError
from graphveil.files.reading import LARGEST_DATA, read_json
from graphveil.graphs.named.archives import (
    EMBEDDED_RANGE,
    EMBEDDED_SOURCE,
    LARGEST,
    embedded_features,
    read_gzip,
    read_npy,
    read_npz,
    whole_numbers,
)
from graphveil.graphs.named.root import DataRoot, download, unzip
from graphveil.graphs.value.checks import check_parts
from graphveil.graphs.value.edges import merge_edges
from graphveil.graphs.value.features import compact_dense
from graphveil.graphs.value.parts import MASKS, GraphParts, Mask
from graphveil.graphs.value.schema import GraphSchema
from graphveil.runtime.extras import require_packages
from graphveil.runtime.late import polars, quiet
from graphveil.runtime.progress import Progress, ProgressCallback

_DAMAGED = (OSError, ValueError, LookupError, TypeError, AttributeError)
_FUNCTIONS = 121
_PPI = ("train", "valid", "test")
_PPI_FILES = tuple(map("_".join, product(_PPI, ("feats.npy", "graph_id.npy", "graph.json", "labels.npy"))))
_SAINT_FILES = ("adj_full.npz", "class_map.json", "feats.npy", "role.json")
_REDDIT_FILES = ("reddit_data.npz", "reddit_graph.npz")
_ARXIV_SPLITS = tuple(f"split/time/{part}.csv.gz" for part in _PPI)
ARXIV_FILES = ("raw/edge.csv.gz", "raw/node-feat.csv.gz", "raw/node-label.csv.gz", *_ARXIV_SPLITS)


def load_ppi(root: DataRoot) -> GraphParts:
    """Read PPI under `root/pyg/PPI`: all its graphs side by side in one, 50 features, 121 labels a node."""
    folder = _pyg_files(root, "PPI", _PPI_FILES)
    try:
        splits = [_read_ppi(folder, split) for split in _PPI]
    except _DAMAGED as error:
        raise _damaged("ppi", folder, error) from error
    values = np.concatenate([features for features, _, _ in splits])
    part = np.repeat(np.arange(3), [len(features) for features, _, _ in splits])
    starts = np.searchsorted(part, np.arange(3))
    ends = np.concatenate([edges + start for (_, _, edges), start in zip(splits, starts, strict=True)], 1)
    y = np.concatenate([labels for _, labels, _ in splits]).astype(np.float32)
    return _graph("ppi", values, y, ends, _masks(part), folder, binary=np.issubdtype(values.dtype, np.integer))


def _read_ppi(folder: Path, split: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    features, labels = (read_npy(folder / f"{split}_{part}.npy") for part in ("feats", "labels"))
    links = read_json(folder / f"{split}_graph.json", largest=LARGEST_DATA)["links"]
    edges = np.array([[link["source"] for link in links], [link["target"] for link in links]], dtype=np.int64)
    if len(links) and not 0 <= edges.min() <= edges.max() < len(features):
        raise ValueError(f"{split}_graph.json joins nodes outside 0..{len(features) - 1}")
    return features, labels, edges


def load_saint(root: DataRoot) -> GraphParts:
    """Read PPI under `root/pyg/PPI-GraphSAINT/raw`; the files cannot be downloaded by a program."""
    folder = root.ensure("pyg/PPI-GraphSAINT/raw", _SAINT_FILES, name="ppi-graphsaint")
    try:
        file = folder / "adj_full.npz"
        starts, target = (whole_numbers(array, file.name) for array in read_npz(file, ("indptr", "indices")))
        counts = np.diff(starts)
        fits = starts.ndim == target.ndim == 1 and len(starts) > 0 and bool((counts >= 0).all())
        # Checked here, since SciPy, which would check them, does not see these arrays.
        if not fits or (starts[0], starts[-1]) != (0, len(target)) or int(target.min(initial=0)) < 0:
            raise ValueError("the rows of adj_full.npz do not fit its indices")
        ends = np.repeat(np.arange(len(counts), dtype=np.int64), counts), target
        values = read_npy(folder / "feats.npy")
        if values.ndim != 2:
            raise ValueError(f"feats.npy has shape {values.shape}")
        labels, masks = _saint_labels(folder, len(values)), _saint_masks(folder, len(values))
        if max(end.max(initial=0) for end in ends) >= len(values):
            raise ValueError(f"adj_full.npz joins more nodes than the {len(values)} of feats.npy")
    except _DAMAGED as error:
        raise _damaged("ppi-graphsaint", folder, error) from error
    binary = bool(np.isin(values, (0, 1)).all())
    return _graph("ppi-graphsaint", values, labels, ends, masks, folder, binary=binary)


def _saint_labels(folder: Path, nodes: int) -> np.ndarray:
    labels = np.zeros((nodes, _FUNCTIONS), dtype=np.float32)
    for node, row in read_json(folder / "class_map.json", largest=LARGEST_DATA).items():
        labels[_node(int(node))] = row
    return labels


def _saint_masks(folder: Path, nodes: int) -> dict[Mask, np.ndarray]:
    roles = read_json(folder / "role.json", largest=LARGEST_DATA)
    masks: dict[Mask, np.ndarray] = {}
    for name, role in zip(MASKS, ("tr", "va", "te"), strict=True):
        masks[name] = np.zeros(nodes, dtype=bool)
        masks[name][[_node(node) for node in roles[role]]] = True
    return masks


def _node(number: int) -> int:
    """Return a node's number; NumPy would count a negative one from the end."""
    if number < 0:
        raise ValueError(f"{number} is no node")
    return number


def load_reddit(root: DataRoot) -> GraphParts:
    """Read Reddit under `root/pyg/Reddit`: 232,965 posts, 602 embedded features, 41 communities."""
    folder = _pyg_files(root, "Reddit", _REDDIT_FILES)
    try:
        posts, links = (folder / file for file in _REDDIT_FILES)
        values, labels, types = read_npz(posts, ("feature", "label", "node_types"), largest=4 * LARGEST)
        ends = read_npz(links, ("row", "col"), largest=4 * LARGEST)
    except _DAMAGED as error:
        raise _damaged("reddit", folder, error) from error
    return _graph("reddit", values, labels.astype(np.int64), ends, _masks(types - 1), folder, classes=41)


def load_arxiv(root: DataRoot) -> GraphParts:
    """Read ogbn-arxiv under `root/ogb/ogbn_arxiv`: 169,343 papers, 128 embedded features, 40 subjects.

    MissingExtraError: it is absent, and the package ogb, which downloads it, is not installed.
    """
    folder = root.ensure("ogb/ogbn_arxiv", ARXIV_FILES, name="ogbn-arxiv", fetch=_fetch_arxiv)
    try:
        values = _numbers(folder / "raw/node-feat.csv.gz", np.float32)
        labels = _numbers(folder / "raw/node-label.csv.gz", np.int64).ravel()
        ends = _numbers(folder / "raw/edge.csv.gz", np.int64).T
        part = np.full(len(labels), -1)
        for index, file in enumerate(_ARXIV_SPLITS):
            part[_numbers(folder / file, np.int64).ravel()] = index
    except _DAMAGED as error:
        raise _damaged("ogbn-arxiv", folder, error) from error
    return _graph("ogbn-arxiv", values, labels, ends, _masks(part), folder, classes=40)


def _fetch_arxiv(target: Path, progress: ProgressCallback) -> None:
    require_packages("ogb", "ogb", where="downloading ogbn-arxiv")
    from ogb.nodeproppred import NodePropPredDataset

    progress(Progress(0, 0, "downloading ogbn-arxiv"))
    with contextlib.redirect_stdout(io.StringIO()), quiet():
        NodePropPredDataset(name="ogbn-arxiv", root=str(target))
    for part in ("raw", "split"):
        (target / "ogbn_arxiv" / part).rename(target / part)


def _numbers(path: Path, kind: type[np.generic]) -> np.ndarray:
    try:
        table = polars.read_csv(read_gzip(path), has_header=False)
        return table.to_numpy().astype(kind)
    except polars.exceptions.PolarsError as error:
        raise ValueError(f"{path.name}: {error}") from error


def _pyg_files(root: DataRoot, kind: str, files: tuple[str, ...]) -> Path:
    """Return the folder of the raw files of a class of PyG."""

    def fetch(target: Path, progress: ProgressCallback) -> None:
        with quiet():
            from torch_geometric import datasets
        unzip(download(getattr(datasets, kind).url, target / f"{kind.lower()}.zip", progress), files, target)

    return root.ensure(f"pyg/{kind}/raw", files, name=kind.lower(), fetch=fetch)


def _graph(
    name: str,
    values: np.ndarray,
    y: np.ndarray,
    ends: Sequence[np.ndarray] | np.ndarray,
    masks: dict[Mask, np.ndarray],
    folder: Path,
    *,
    binary: bool = False,
    classes: int | None = None,
) -> GraphParts:
    """Return an undirected graph with `classes` classes; None: with the functions of PPI."""
    source, target = ends
    edge_index, changes = merge_edges(source, target, len(values), directed=False)
    # The example version of GraphSAGE's PPI holds zeros and ones; the 24-graph version is standardised.
    if binary:
        x, bounds, origin = compact_dense(values), (0.0, 1.0), "published benchmark: gene sets, 0 or 1"
    else:
        x, clipped = embedded_features(values, str(folder))
        changes, bounds, origin = clipped + changes, EMBEDDED_RANGE, EMBEDDED_SOURCE
    kind = "function" if classes is None else "class"
    names = tuple(f"{kind} {index}" for index in range(classes or _FUNCTIONS))
    schema = GraphSchema(name, x.shape[1], *bounds, names, source=origin, notes=changes)
    return check_parts(GraphParts(x, edge_index, y, schema, masks=masks))


def _masks(part: np.ndarray) -> dict[Mask, np.ndarray]:
    return {name: part == index for index, name in enumerate(MASKS)}


def _damaged(name: str, folder: Path, error: Exception) -> DataError:
    return DataError(f"the files of {name!r} cannot be read ({error})", where=str(folder))
