"""Facebook Page-Page and LastFM Asia in their original files: csv edges, json feature lists, csv targets.

Source: Rozemberczki, Allen, Sarkar, "Multi-Scale Attributed Node Embedding", 2019 (MUSAE), and Rozemberczki,
Sarkar, "Characteristic Functions on Graphs", CIKM 2020 (FEATHER); files at https://snap.stanford.edu/data.
The feature lists go straight to sparse rows: 22,470 x 4,714 is never dense.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import numpy as np

from graphveil.errors import DataError
from graphveil.files.reading import LARGEST_DATA, read_json, require_file
from graphveil.graphs.named.root import DataRoot, download, unzip
from graphveil.graphs.value.checks import check_parts
from graphveil.graphs.value.edges import merge_edges
from graphveil.graphs.value.features import compact_rows
from graphveil.graphs.value.parts import GraphParts
from graphveil.graphs.value.schema import GraphSchema
from graphveil.runtime.late import polars, sparse
from graphveil.runtime.progress import ProgressCallback
from graphveil.runtime.words import count_of

_SOURCE = (
    "published benchmark: each feature is a listed item, absent or present, 0 or 1; the number of items, "
    "nodes and classes are those of the publication"
)


@dataclass(frozen=True)
class _Set:
    folder: str
    prefix: str
    url: str
    ends: tuple[str, str]  # the two columns of the edge file
    label: str  # the label column of the target file
    nodes: int
    dimension: int
    classes: tuple[str, ...]  # as written in the label column
    left_out: tuple[str, ...] = ()  # published classes whose nodes are left out


_SETS = {
    "facebook": _Set(
        folder="facebook",
        prefix="musae_facebook",
        url="https://snap.stanford.edu/data/facebook_large.zip",
        ends=("id_1", "id_2"),
        label="page_type",
        nodes=22_470,
        dimension=4_714,
        classes=("company", "tvshow", "politician", "government"),
    ),
    # The ten classes of Sajadmanesh and Gatica-Perez, "Locally Private Graph Neural Networks", CCS 2021
    # (7,083 nodes): part of the published preprocessing, so listed here and never counted from labels.
    "lastfm": _Set(
        folder="lastfm_asia",
        prefix="lastfm_asia",
        url="https://snap.stanford.edu/data/lastfm_asia.zip",
        ends=("node_1", "node_2"),
        label="target",
        nodes=7_624,
        dimension=7_842,
        classes=("0", "3", "5", "6", "8", "10", "14", "15", "16", "17"),
        left_out=("1", "2", "4", "7", "9", "11", "12", "13"),
    ),
}


def load_musae(name: str, root: DataRoot) -> GraphParts:
    """Read a graph under `root/musae`; refusals: see `DataRoot.ensure`.

    Args:
        name: facebook or lastfm.
    """
    spec = _SETS[name]
    files = tuple(f"{spec.prefix}_{part}" for part in ("edges.csv", "features.json", "target.csv"))

    def fetch(labels_file: Path, progress: ProgressCallback) -> None:
        unzip(download(spec.url, labels_file / "files.zip", progress), files, labels_file)

    folder = root.ensure(f"musae/{spec.folder}", files, name=name, fetch=fetch)
    edges_file, features_file, labels_file = (folder / file for file in files)
    y = _labels(labels_file, spec)
    rows, repeated = _features(features_file, spec)
    source, target = _integers(_csv(edges_file, spec.ends), edges_file, spec.nodes)
    notes: list[str] = [f"merged {count_of(repeated, 'repeated feature entry')}"] if repeated else []
    if spec.left_out:
        labelled = np.flatnonzero(y >= 0)
        new_number = np.full(spec.nodes, -1)
        new_number[labelled] = np.arange(len(labelled))
        source, target = new_number[source], new_number[target]
        inside = (source >= 0) & (target >= 0)
        source, target = source[inside], target[inside]
        notes.append(
            f"kept the {len(labelled):,} nodes of the ten published classes, left out {spec.nodes - len(labelled):,}"
        )
        rows, y = rows[labelled], y[labelled]
    edge_index, changes = merge_edges(source, target, len(y), directed=False)
    schema = GraphSchema(name, spec.dimension, 0.0, 1.0, spec.classes, source=_SOURCE, notes=(*notes, *changes))
    return check_parts(GraphParts(compact_rows(rows), edge_index, y, schema))


def _csv(path: Path, columns: tuple[str, ...]) -> polars.DataFrame:
    require_file(path)
    try:
        return polars.read_csv(path, columns=list(columns), infer_schema=False, glob=False)
    except (polars.exceptions.PolarsError, OSError) as error:
        what = f"cannot be read ({str(error).splitlines()[0]})"
        raise DataError(what, where=str(path), allowed=f"columns {', '.join(columns)}") from error


def _integers(table: polars.DataFrame, path: Path, below: int) -> list[np.ndarray]:
    columns = []
    for name in table.columns:
        numbers = table[name].cast(polars.Int64, strict=False)
        bad = ~numbers.is_between(0, below - 1).fill_null(False)
        if bad.any():
            row = int(bad.arg_true()[0])
            what = f"{name} is {table[name][row]!r}"
            raise DataError(what, where=f"{path}, line {row + 2}", allowed=f"0 to {below - 1}")
        columns.append(numbers.to_numpy())
    return columns


def _labels(path: Path, spec: _Set) -> np.ndarray:
    table = _csv(path, ("id", spec.label))
    (ids,) = _integers(table.select("id"), path, spec.nodes)
    label_of = {label: index for index, label in enumerate(spec.classes)}
    y = np.full(spec.nodes, -1, dtype=np.int64)
    allowed = (*spec.classes, *spec.left_out)
    unknown = ~table[spec.label].is_in(allowed).fill_null(False)
    if unknown.any():
        row = int(unknown.arg_true()[0])
        what = f"{spec.label} is {table[spec.label][row]!r}"
        raise DataError(what, where=f"{path}, line {row + 2}", allowed=", ".join(allowed))
    labels = table[spec.label].replace_strict(label_of, default=-1, return_dtype=polars.Int64).to_numpy()
    y[ids] = labels
    return y


def _features(path: Path, spec: _Set) -> tuple[sparse.csr_matrix, int]:
    """The 0/1 rows of a json object {node: [items]}, and how many entries were repeated."""
    try:
        lists = read_json(path, largest=LARGEST_DATA)
        nodes = np.fromiter((int(node) for node in lists), dtype=np.int64, count=len(lists))
        lengths = np.fromiter((len(items) for items in lists.values()), dtype=np.int64, count=len(lists))
        items = np.fromiter(chain.from_iterable(lists.values()), dtype=np.int64, count=int(lengths.sum()))
    except (ValueError, TypeError, AttributeError) as error:
        what = f"is not a json object of feature lists ({error})"
        raise DataError(what, where=str(path), allowed='{"0": [12, 7], ...}') from error
    for kind, values, below in (("node", nodes, spec.nodes), ("feature", items, spec.dimension)):
        if len(values) and (values.min() < 0 or values.max() >= below):
            worst = values[(values < 0) | (values >= below)][0]
            raise DataError(f"{kind} {worst} is listed", where=str(path), allowed=f"0 to {below - 1}")
    owners = np.repeat(nodes, lengths)
    rows = sparse.csr_matrix(
        (np.ones(len(items), dtype=np.float32), (owners, items)), shape=(spec.nodes, spec.dimension)
    )
    rows.sum_duplicates()
    rows.data[:] = 1.0
    return rows, len(items) - rows.nnz
