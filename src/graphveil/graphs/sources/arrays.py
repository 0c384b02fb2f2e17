"""A PyG `Data` saved as arrays, in a safetensors or npz file: nothing in it is unpickled."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Final

import numpy as np

from graphveil.errors import DataError
from graphveil.files.reading import require_file
from graphveil.graphs.named.archives import read_npz
from graphveil.graphs.sources.rows import Imported, write_frames
from graphveil.graphs.tables.arrays import read_ends, read_masks
from graphveil.graphs.value.checks import check_masks
from graphveil.graphs.value.parts import MASKS
from graphveil.runtime.late import polars

_PARTS: Final = ("x", "edge_index", "y", *MASKS)
HOW_TO_SAVE: Final = (
    "in Python, with the graph as `data`, write: from safetensors.torch import save_file; "
    'parts = {name: part.contiguous() for name, part in data.to_dict().items() if hasattr(part, "contiguous")}; '
    'save_file(parts, "graph.safetensors")'
)


def import_arrays(path: Path, folder: Path) -> Imported:
    """Copy x [n, d], edge_index [2, E] and, where present, y [n] and the masks into tables.

    Args:
        path: of the file; DataError names an array that is absent or has another shape.
        folder: of the tables.
    """
    arrays, left_out = _read_safetensors(path) if path.suffix == ".safetensors" else _read_npz(path)
    for name in ("x", "edge_index"):
        if name not in arrays:
            raise DataError(f"holds no {name}", where=str(path), allowed="x [n, d] and edge_index [2, E]")
    x, ends = arrays["x"], read_ends(arrays["edge_index"])
    if x.ndim != 2 or 0 in x.shape or x.dtype.kind not in "biuf":
        raise DataError(f"x has shape {x.shape} and type {x.dtype}", where=str(path), allowed="numbers [n, d]")
    ids = polars.Series("id", np.arange(len(x))).cast(polars.String)
    features = x.astype(np.float32) if x.dtype == np.float16 else x
    nodes = [
        ids,
        *(polars.Series(f"x{column}", np.ascontiguousarray(features[:, column])) for column in range(x.shape[1])),
    ]
    nodes += _labels(arrays, len(x), path) + _split(arrays, len(x))
    edges = polars.DataFrame({"source": ends[0], "target": ends[1]}).cast(polars.String)
    write_frames(folder, {"nodes": polars.DataFrame(nodes), "edges": edges})
    return Imported(notes=(f"left out: {', '.join(left_out)}",) if left_out else ())


def _labels(arrays: dict[str, np.ndarray], nodes: int, path: Path) -> list[polars.Series]:
    if "y" not in arrays:
        return []
    y = arrays["y"]
    y = y[:, 0] if y.ndim == 2 and y.shape[1] == 1 else y
    if y.shape != (nodes,) or y.dtype.kind not in "iu":
        what = f"y has shape {y.shape} and type {y.dtype}"
        raise DataError(what, where=str(path), allowed="whole numbers [n]", remedy="hand other labels to from_pyg")
    labels = polars.Series("label", y.astype(np.int64))
    return [labels.set(labels < 0, None).cast(polars.String)]


def _split(arrays: dict[str, np.ndarray], nodes: int) -> list[polars.Series]:
    masks = read_masks({name: arrays[name] for name in MASKS if name in arrays})
    if not masks:
        return []
    check_masks(masks.values(), nodes)
    parts = np.full(nodes, "", dtype=object)
    for name, mask in masks.items():
        parts[mask] = name.removesuffix("_mask")
    return [polars.Series("split", parts.tolist(), dtype=polars.String)]


def _read_npz(path: Path) -> tuple[dict[str, np.ndarray], list[str]]:
    require_file(path, packed=True)
    try:
        with zipfile.ZipFile(path) as archive:
            names = [name.removesuffix(".npy") for name in archive.namelist()]
    except Exception as error:  # zipfile raises many kinds on a damaged file
        raise DataError(f"cannot be read as arrays ({error})", where=str(path)) from error
    present = [name for name in _PARTS if name in names]
    return dict(zip(present, read_npz(path, present), strict=True)), [name for name in names if name not in _PARTS]


def _read_safetensors(path: Path) -> tuple[dict[str, np.ndarray], list[str]]:
    from safetensors import SafetensorError, safe_open

    # `packed`: the file begins with the length of its header, which may look like the mark of an archive.
    require_file(path, packed=True)
    try:
        with safe_open(path, framework="np") as file:
            names = list(file.keys())
            arrays = {name: file.get_tensor(name) for name in _PARTS if name in names}
            return arrays, [name for name in names if name not in _PARTS]
    except (SafetensorError, OSError, TypeError, ValueError) as error:
        raise DataError(f"cannot be read as arrays ({error})", where=str(path)) from error
