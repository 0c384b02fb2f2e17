"""PPI in the file layout of GraphSAINT: one graph, one matrix of features, several labels a node, three roles.

    adj_full.npz      the adjacency matrix in compressed rows: data, indices, indptr, shape
    feats.npy         [n, d]
    class_map.json    node number -> a list of 121 zeros and ones
    role.json         "tr", "va", "te" -> node numbers

Source: Zeng et al., "GraphSAINT: Graph Sampling Based Inductive Learning Method", ICLR 2020, and its data folder.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from graphveil.errors import DataError
from graphveil.files.reading import LARGEST_DATA, read_json
from graphveil.graphs.named.archives import EMBEDDED_SOURCE, embedded_features, read_npy, read_npz, whole_numbers
from graphveil.graphs.named.root import ensure_files
from graphveil.graphs.value.checks import check_parts
from graphveil.graphs.value.edges import merge_edges
from graphveil.graphs.value.features import compact_dense
from graphveil.graphs.value.parts import MASKS, GraphParts, Mask
from graphveil.graphs.value.schema import GraphSchema
from graphveil.runtime.progress import ProgressCallback

CLASSES = 121
_FILES = ("adj_full.npz", "class_map.json", "feats.npy", "role.json")
_ROLES = ("tr", "va", "te")
_DAMAGED = (OSError, ValueError, KeyError, TypeError, IndexError, AttributeError)


def load_saint(root: Path, *, fetch_absent: bool, progress: ProgressCallback | None) -> GraphParts:
    """Read PPI under `root/pyg/PPI-GraphSAINT/raw`; the files cannot be downloaded by a program."""
    del fetch_absent
    folder = root / "pyg" / "PPI-GraphSAINT" / "raw"
    ensure_files(folder, _FILES, name="ppi-graphsaint", fetch=None, progress=progress)
    try:
        source, target = _edges(folder / "adj_full.npz")
        values = read_npy(folder / "feats.npy")
        if values.ndim != 2:
            raise ValueError(f"feats.npy has shape {values.shape}")
        labels, masks = _labels(folder, len(values)), _masks(folder, len(values))
        if max(source.max(initial=0), target.max(initial=0)) >= len(values):
            raise ValueError(f"adj_full.npz joins more nodes than the {len(values)} of feats.npy")
    except _DAMAGED as error:
        raise DataError(f"the files of 'ppi-graphsaint' cannot be read ({error})", where=str(folder)) from error
    edge_index, changes = merge_edges(source, target, len(values), directed=False)
    if bool(np.isin(values, (0, 1)).all()):  # the example version of GraphSAGE; else the features are standardised
        x, low, high, origin = compact_dense(values), 0.0, 1.0, "published benchmark: gene sets, 0 or 1"
    else:
        x, (low, high), clipped = embedded_features(values, str(folder))
        changes, origin = clipped + changes, EMBEDDED_SOURCE
    names = tuple(f"function {index}" for index in range(CLASSES))
    schema = GraphSchema("ppi-graphsaint", x.shape[1], low, high, names, source=origin, notes=changes)
    return check_parts(GraphParts(x, edge_index, labels, schema, masks=masks))


def _edges(path: Path) -> tuple[np.ndarray, np.ndarray]:
    starts, target = (whole_numbers(array, path.name) for array in read_npz(path, ("indptr", "indices")))
    counts = np.diff(starts)
    fits = starts.ndim == target.ndim == 1 and len(starts) > 0 and bool((counts >= 0).all())
    # Checked here, since these arrays go past SciPy, which would look at them.
    if not fits or (starts[0], starts[-1]) != (0, len(target)) or int(target.min(initial=0)) < 0:
        raise ValueError("the rows of adj_full.npz do not fit its indices")
    return np.repeat(np.arange(len(counts), dtype=np.int64), counts), target


def _labels(folder: Path, nodes: int) -> np.ndarray:
    labels = np.zeros((nodes, CLASSES), dtype=np.float32)
    for node, row in read_json(folder / "class_map.json", largest=LARGEST_DATA).items():
        labels[_node(int(node))] = row
    return labels


def _masks(folder: Path, nodes: int) -> dict[Mask, np.ndarray]:
    roles = read_json(folder / "role.json", largest=LARGEST_DATA)
    masks: dict[Mask, np.ndarray] = {}
    for name, role in zip(MASKS, _ROLES, strict=True):
        masks[name] = np.zeros(nodes, dtype=bool)
        masks[name][[_node(node) for node in roles[role]]] = True
    return masks


def _node(number: int) -> int:
    """Return a node's number; NumPy would count a negative one from the end."""
    if number < 0:
        raise ValueError(f"{number} is no node")
    return number
