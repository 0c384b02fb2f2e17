"""MIR-Flickr images as a graph, in the files of HeteroRR's published code: embeddings, labels and links.

Under `root/mir-flickr` (the authors' `Data/MIR`):

    mir.csv                     one row an image, in order; its column `people` is 1 where people are on it, else 0
    feat/<name>.npy             [n, d] embeddings of the images, in that order: one file beside the masks
    feat/mask_tr.npy, mask_va.npy, mask_te.npy    [n] 0 or 1: training, validation and test images
    <name>.pairs                one line a link: two row numbers from 0, and 1 where it is private (taken by friends of
                                one another) or 0 where everybody knows it (a shared gallery, tag or place)

The images themselves are not needed, and not published with the links; embeddings are computed from them beforehand,
for example by ResNet-50 as in the paper (see `methods.release.extractor`).

Sources: M. Huiskes, M. Lew, "The MIR Flickr Retrieval Evaluation", MIR 2008; J. McAuley, J. Leskovec, "Image Labeling
on a Network", ECCV 2012 (the links); Tran et al., IEEE BigData 2022, section V, whose code reads these files.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from graphveil.errors import DataError, MissingDataError
from graphveil.files.reading import require_file
from graphveil.graphs.named.archives import EMBEDDED_RANGE, EMBEDDED_SOURCE, embedded_features, read_npy
from graphveil.graphs.named.root import DataRoot
from graphveil.graphs.value.checks import check_parts
from graphveil.graphs.value.edges import merge_edges
from graphveil.graphs.value.parts import MASKS, GraphParts, Mask
from graphveil.graphs.value.schema import GraphSchema
from graphveil.runtime.late import polars
from graphveil.runtime.sorted_arrays import contains, distinct
from graphveil.runtime.words import count_of

CLASSES = ("no people", "people")
_FILES = ("mir.csv", *(f"feat/mask_{part}.npy" for part in ("tr", "va", "te")))


def load_mir_flickr(root: DataRoot) -> GraphParts:
    """Read the graph of `root/mir-flickr`, with `public_edges`; it cannot be downloaded.

    A link that is listed both as private and as public is private. Every image may have private links. DataError: a
    file is damaged, or two files disagree on the number of images.
    """
    folder = root.ensure("mir-flickr", _FILES, name="mir-flickr")
    embeddings = _only(folder, "feat", "*.npy", tuple(Path(file).name for file in _FILES))
    links = _only(folder, "", "*.pairs", ())
    masks: dict[Mask, np.ndarray] = {}
    labels = _labels(folder / "mir.csv")
    try:
        values = read_npy(embeddings)
        for name, file in zip(MASKS, _FILES[1:], strict=True):
            masks[name] = read_npy(folder / file).astype(bool).ravel()
    except (OSError, ValueError, EOFError) as error:
        raise DataError(f"embeddings or masks cannot be read ({error})", where=str(folder)) from error
    if values.ndim != 2 or {len(labels), *map(len, masks.values())} != {len(values)}:
        counts = f"{len(labels)} rows, embeddings {values.shape}, masks of {[len(mask) for mask in masks.values()]}"
        raise DataError(f"{counts} images", where=str(folder), allowed="the same number of images everywhere")
    edge_index, public, changes = _edges(links, len(values))
    x, clipped = embedded_features(values, str(embeddings))
    notes = clipped + changes
    schema = GraphSchema("mir-flickr", x.shape[1], *EMBEDDED_RANGE, CLASSES, source=EMBEDDED_SOURCE, notes=notes)
    return check_parts(GraphParts(x, edge_index, labels, schema, masks=masks, public_edges=public))


def _only(folder: Path, part: str, pattern: str, excluded: tuple[str, ...]) -> Path:
    paths = sorted(file for file in (folder / part).glob(pattern) if file.name not in excluded)
    if len(paths) != 1:
        names = ", ".join(file.name for file in paths) or "none"
        what = f"{names} where one file {part or '.'}/{pattern} belongs"
        raise MissingDataError(what, where=str(folder), remedy="keep one set of embeddings and one list of links there")
    return paths[0]


def _labels(path: Path) -> np.ndarray:
    require_file(path)
    try:
        column = polars.read_csv(path, columns=["people"], infer_schema=False, glob=False)["people"].str.strip_chars()
    except (polars.exceptions.PolarsError, OSError) as error:
        raise DataError(f"has no readable column people ({error})", where=str(path)) from error
    bad = ~column.is_in(["0", "1"]).fill_null(False)
    if bool(bad.any()):
        row = int(bad.arg_true()[0])
        raise DataError(f"people of row {row} is {column[row]!r}", where=str(path), allowed="0 or 1")
    labels: np.ndarray = (column == "1").to_numpy().astype(np.int64)
    return labels


def _edges(path: Path, nodes: int) -> tuple[np.ndarray, np.ndarray, tuple[str, ...]]:
    """The links in both directions, which of them are public, and what was changed."""
    require_file(path)  # NumPy would unpack it unasked
    try:
        rows = np.loadtxt(path, dtype=np.int64, ndmin=2, comments="#")
    except (OSError, ValueError) as error:
        what = f"is not a list of links ({error})"
        raise DataError(what, where=str(path), allowed="lines: image image 0|1") from error
    if rows.size and rows.shape[1] != 3:
        raise DataError(f"has {rows.shape[1]} columns", where=str(path), allowed="3: image, image, 1 where private")
    source, target, private = rows.reshape(-1, 3).T
    low, high = np.minimum(source, target), np.maximum(source, target)
    bad = np.flatnonzero((low < 0) | (high >= nodes) | ~np.isin(private, (0, 1)))
    if bad.size:
        line = int(bad[0])
        what = f"link {line} is {rows[line].tolist()}"
        raise DataError(what, where=str(path), allowed=f"images 0 to {nodes - 1}, and 0 or 1")
    edge_index, changes = merge_edges(source, target, nodes, directed=False)
    # Of two rows that disagree, the private one counts.
    private_keys = distinct((low * nodes + high)[private == 1])
    ends = np.sort(edge_index, axis=0)
    public = ~contains(private_keys, ends[0] * nodes + ends[1])
    count = int((~public).sum()) // 2
    return edge_index, public, (*changes, f"private, taken by friends: {count_of(count, 'edge')}")
