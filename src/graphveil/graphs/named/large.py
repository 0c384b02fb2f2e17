"""Sets with a published split: PPI (several labels a node) in two layouts, Reddit, ogbn-arxiv.

What each loader takes and refuses: see `ensure_files`.

Sources: Hamilton, Ying, Leskovec, "Inductive Representation Learning on Large Graphs", NeurIPS 2017 (PPI, Reddit); Hu
et al., "Open Graph Benchmark", NeurIPS 2020 (ogbn-arxiv).
"""

from __future__ import annotations

import contextlib
import io
from itertools import product
from pathlib import Path

import numpy as np

from graphveil.errors import DataError, MissingExtraError
from graphveil.files.reading import LARGEST_DATA, read_json
from graphveil.graphs.named.archives import EMBEDDED_SOURCE, LARGEST, embedded_features, read_gzip, read_npy, read_npz
from graphveil.graphs.named.root import download, ensure_files, unzip
from graphveil.graphs.value.checks import check_parts
from graphveil.graphs.value.edges import merge_edges
from graphveil.graphs.value.features import compact_dense
from graphveil.graphs.value.parts import MASKS, GraphParts, Mask
from graphveil.graphs.value.schema import GraphSchema
from graphveil.runtime.late import quiet
from graphveil.runtime.progress import Progress, ProgressCallback

_DAMAGED = (OSError, ValueError, KeyError, TypeError)
_PPI = ("train", "valid", "test")
_PPI_FILES = tuple(f"{s}_{f}" for s, f in product(_PPI, ("feats.npy", "graph_id.npy", "graph.json", "labels.npy")))
_REDDIT_FILES = ("reddit_data.npz", "reddit_graph.npz")
_ARXIV_SPLITS = tuple(f"split/time/{part}.csv.gz" for part in _PPI)
ARXIV_FILES = ("raw/edge.csv.gz", "raw/node-feat.csv.gz", "raw/node-label.csv.gz", *_ARXIV_SPLITS)


def load_ppi(root: Path, *, fetch_absent: bool, progress: ProgressCallback | None) -> GraphParts:
    """Read PPI under `root/pyg/PPI`: all its graphs side by side in one, 50 features, 121 labels a node."""
    folder = root / "pyg" / "PPI" / "raw"

    def fetch(target: Path, tell: ProgressCallback) -> None:
        with quiet():
            from torch_geometric.datasets import PPI
        unzip(download(PPI.url, target / "ppi.zip", tell), _PPI_FILES, target)

    ensure_files(folder, _PPI_FILES, name="ppi", fetch=fetch if fetch_absent else None, progress=progress)
    try:
        splits = [_read_ppi(folder, split) for split in _PPI]
    except _DAMAGED as error:
        raise _damaged("ppi", folder, error) from error
    values = np.concatenate([features for features, _, _ in splits])
    part = np.repeat(np.arange(3), [len(features) for features, _, _ in splits])
    starts = np.searchsorted(part, np.arange(3))
    source, target = np.concatenate([edges + start for (_, _, edges), start in zip(splits, starts, strict=True)], 1)
    edge_index, changes = merge_edges(source, target, len(values), directed=False)
    # The example version of GraphSAGE holds whole numbers 0 and 1; the 24-graph version is standardised.
    if np.issubdtype(values.dtype, np.integer):
        x, low, high, origin = compact_dense(values), 0.0, 1.0, "published benchmark: gene sets, 0 or 1"
    else:
        x, (low, high), clipped = embedded_features(values, str(folder))
        changes, origin = clipped + changes, EMBEDDED_SOURCE
    classes = tuple(f"function {index}" for index in range(121))
    schema = GraphSchema("ppi", x.shape[1], low, high, classes, source=origin, notes=changes)
    y = np.concatenate([labels for _, labels, _ in splits]).astype(np.float32)
    return check_parts(GraphParts(x, edge_index, y, schema, masks=_masks(part)))


def _read_ppi(folder: Path, split: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    features, labels = (read_npy(folder / f"{split}_{part}.npy") for part in ("feats", "labels"))
    links = read_json(folder / f"{split}_graph.json", largest=LARGEST_DATA)["links"]
    edges = np.array([[link["source"] for link in links], [link["target"] for link in links]], dtype=np.int64)
    if len(links) and not 0 <= edges.min() <= edges.max() < len(features):
        raise ValueError(f"{split}_graph.json joins nodes outside 0..{len(features) - 1}")
    return features, labels, edges


def load_reddit(root: Path, *, fetch_absent: bool, progress: ProgressCallback | None) -> GraphParts:
    """Read Reddit under `root/pyg/Reddit`: 232,965 posts, 602 embedded features, 41 communities."""
    folder = root / "pyg" / "Reddit" / "raw"

    def fetch(target: Path, tell: ProgressCallback) -> None:
        with quiet():
            from torch_geometric.datasets import Reddit
        unzip(download(Reddit.url, target / "reddit.zip", tell), _REDDIT_FILES, target)

    ensure_files(folder, _REDDIT_FILES, name="reddit", fetch=fetch if fetch_absent else None, progress=progress)
    try:
        posts, links = (folder / file for file in _REDDIT_FILES)
        values, labels, types = read_npz(posts, ("feature", "label", "node_types"), largest=4 * LARGEST)
        source, target = read_npz(links, ("row", "col"), largest=4 * LARGEST)
    except _DAMAGED as error:
        raise _damaged("reddit", folder, error) from error
    return _embedded_graph("reddit", values, labels, (source, target), types - 1, 41, str(folder))


def load_arxiv(root: Path, *, fetch_absent: bool, progress: ProgressCallback | None) -> GraphParts:
    """Read ogbn-arxiv under `root/ogb/ogbn_arxiv`: 169,343 papers, 128 embedded features, 40 subjects.

    MissingExtraError: it is absent, and the package ogb, which downloads it, is not installed.
    """
    folder = root / "ogb" / "ogbn_arxiv"
    ensure_files(
        folder,
        ARXIV_FILES,
        name="ogbn-arxiv",
        fetch=_fetch_arxiv if fetch_absent else None,
        progress=progress,
    )
    try:
        values = _numbers(folder / "raw/node-feat.csv.gz", np.float32)
        labels = _numbers(folder / "raw/node-label.csv.gz", np.int64).ravel()
        source, target = _numbers(folder / "raw/edge.csv.gz", np.int64).T
        part = np.full(len(labels), -1)
        for index, file in enumerate(_ARXIV_SPLITS):
            part[_numbers(folder / file, np.int64).ravel()] = index
    except (*_DAMAGED, IndexError) as error:
        raise _damaged("ogbn-arxiv", folder, error) from error
    return _embedded_graph("ogbn-arxiv", values, labels, (source, target), part, 40, str(folder))


def _fetch_arxiv(target: Path, progress: ProgressCallback) -> None:
    try:
        from ogb.nodeproppred import NodePropPredDataset
    except ImportError as error:
        raise MissingExtraError(
            "the package ogb is not installed",
            where="downloading ogbn-arxiv",
            remedy="run: pip install 'graphveil[ogb]'",
        ) from error
    progress(Progress(0, 0, "downloading ogbn-arxiv"))
    with contextlib.redirect_stdout(io.StringIO()), quiet():
        NodePropPredDataset(name="ogbn-arxiv", root=str(target))
    for part in ("raw", "split"):
        (target / "ogbn_arxiv" / part).rename(target / part)


def _numbers(path: Path, kind: type[np.generic]) -> np.ndarray:
    import polars

    try:
        table = polars.read_csv(read_gzip(path), has_header=False)
        return table.to_numpy().astype(kind)
    except polars.exceptions.PolarsError as error:
        raise ValueError(f"{path.name}: {error}") from error


def _embedded_graph(
    name: str,
    values: np.ndarray,
    labels: np.ndarray,
    ends: tuple[np.ndarray, np.ndarray],
    part: np.ndarray,
    classes: int,
    where: str,
) -> GraphParts:
    x, (low, high), clipped = embedded_features(values, where)
    edge_index, changes = merge_edges(*ends, nodes=len(values), directed=False)
    schema = GraphSchema(
        name,
        values.shape[1],
        low,
        high,
        tuple(f"class {index}" for index in range(classes)),
        source=EMBEDDED_SOURCE,
        notes=clipped + changes,
    )
    return check_parts(GraphParts(x, edge_index, labels.astype(np.int64), schema, masks=_masks(part)))


def _masks(part: np.ndarray) -> dict[Mask, np.ndarray]:
    return {name: part == index for index, name in enumerate(MASKS)}


def _damaged(name: str, folder: Path, error: Exception) -> DataError:
    return DataError(f"the files of {name!r} cannot be read ({error})", where=str(folder))
