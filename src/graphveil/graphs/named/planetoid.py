"""Cora, CiteSeer and PubMed in the Planetoid files, with their published split.

Source: Yang, Cohen, Salakhutdinov, "Revisiting Semi-Supervised Learning with Graph Embeddings", ICML 2016,
https://github.com/kimiyoung/planetoid.  `allx` and `ally` hold the nodes before the test nodes, whose rows in `tx` and
`ty` are in the order of `test.index`.
"""

from __future__ import annotations

import hashlib
import pickle
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np

from graphveil.errors import DataError
from graphveil.files.reading import LARGEST_DATA, read_bytes
from graphveil.graphs.named.root import DataRoot, download
from graphveil.graphs.value.checks import check_parts
from graphveil.graphs.value.edges import merge_edges
from graphveil.graphs.value.features import compact_dense
from graphveil.graphs.value.parts import MASKS, GraphParts, Mask
from graphveil.graphs.value.schema import GraphSchema
from graphveil.runtime.progress import ProgressCallback

_URL = "https://github.com/kimiyoung/planetoid/raw/master/data"
_PARTS = ("x", "tx", "allx", "y", "ty", "ally", "graph", "test.index")
_BINARY = "published benchmark: word absent or present, 0 or 1; the classes are those of the publication"
_TFIDF = (
    "published benchmark constant: the largest TF-IDF weight, count / length * ln(20807 / df), in the "
    "published files is below 1.2634; a real collection must declare its range beforehand (any document is "
    "bounded by ln 20807 = 9.95)"
)


@dataclass(frozen=True)
class _Set:
    folder: str
    dimension: int
    high: float
    classes: tuple[str, ...]
    source: str
    sha256: str  # of the eight files one after the other, in the order of _PARTS


_SETS = {
    "cora": _Set(
        folder="Cora",
        dimension=1433,
        high=1.0,
        classes=(
            "Theory",
            "Reinforcement_Learning",
            "Genetic_Algorithms",
            "Neural_Networks",
            "Probabilistic_Methods",
            "Case_Based",
            "Rule_Learning",
        ),
        source=_BINARY,
        sha256="0ce1f9117972bdd087a19062d3decca8abfdfef042468c282c2b977642e057dd",
    ),
    "citeseer": _Set(
        folder="CiteSeer",
        dimension=3703,
        high=1.0,
        classes=("AI", "ML", "IR", "DB", "Agents", "HCI"),
        source=_BINARY,
        sha256="cbadbc965a18fe92dd73960a02a21e4e098723aebcdbe7e03c407a3971644413",
    ),
    "pubmed": _Set(
        folder="PubMed",
        dimension=500,
        high=1.2634,
        classes=("class 0", "class 1", "class 2"),
        source=_TFIDF,
        sha256="34aaa088b00e246edbc2a4ab7c320063b5b07fc3b9839d5540a663f867238d4a",
    ),
}


def load_planetoid(name: str, root: DataRoot) -> GraphParts:
    """Read a graph under `root/pyg/Planetoid`; refusals: see `DataRoot.ensure`.

    Args:
        name: cora, citeseer or pubmed.
    """
    spec = _SETS[name]
    files = tuple(f"ind.{name}.{part}" for part in _PARTS)

    def fetch(target: Path, progress: ProgressCallback) -> None:
        for file in files:
            download(f"{_URL}/{file}", target / file, progress)

    folder = root.ensure(f"pyg/Planetoid/{spec.folder}/raw", files, name=name, fetch=fetch)
    contents = [read_bytes(folder / file, largest=LARGEST_DATA) for file in files]
    # Before the first byte is unpickled: afterwards it would be too late.
    _check_bytes(folder, b"".join(contents), name, spec.sha256)
    *pickled, test_index = contents
    try:
        x, tx, allx, _, ty, ally, graph = (
            _Unpickler(BytesIO(content), encoding="latin1").load() for content in pickled
        )
        test = np.array(test_index.split(), dtype=np.int64)
        data = _assemble(len(x.indptr) - 1, spec.dimension, (allx, tx), (ally, ty), graph, test)
    except Exception as error:  # whatever a damaged pickle raises
        raise DataError(f"the files of {name!r} cannot be read ({error})", where=str(folder)) from error
    edge_index, notes = merge_edges(data.pairs[0], data.pairs[1], len(data.y), directed=False)
    schema = GraphSchema(name, spec.dimension, 0.0, spec.high, spec.classes, source=spec.source, notes=notes)
    return check_parts(GraphParts(compact_dense(data.x), edge_index, data.y, schema, masks=data.masks))


@dataclass(frozen=True)
class _Planetoid:
    x: np.ndarray  # [n, d]
    pairs: np.ndarray  # [2, E]: the listed edges, each once and without self-loops
    y: np.ndarray  # [n]
    masks: dict[Mask, np.ndarray]  # the published split


class _Rows:
    """Stands in for a pickled SciPy CSR matrix: importing SciPy would take longer than reading all files."""

    indptr: np.ndarray
    indices: np.ndarray
    data: np.ndarray


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        return _Rows if module.startswith("scipy.") else super().find_class(module, name)


def _check_bytes(folder: Path, content: bytes, name: str, expected: str) -> None:
    """Refuse pickles that are not the published ones: a foreign pickle could run anything."""
    digest = hashlib.sha256(content)
    if digest.hexdigest() != expected:
        raise DataError(
            f"the files of {name!r} are not the published ones (SHA-256 {digest.hexdigest()[:12]}...)",
            where=str(folder),
            allowed=f"SHA-256 {expected[:12]}... over all of them",
            remedy="remove the folder to have them downloaded again",
        )


def _assemble(
    train: int,
    dimension: int,
    features: tuple[_Rows, _Rows],
    classes: tuple[np.ndarray, np.ndarray],
    graph: Any,
    test: np.ndarray,
) -> _Planetoid:
    """Return the graph; `features` and `classes` are pairs: of the nodes before the test nodes, and of the test nodes.

    The first `train` nodes train, the next 500 validate.
    """
    before = len(classes[0])
    # CiteSeer's test nodes have gaps: nodes without an edge, whose features and class nobody published.
    nodes = max(before, int(test.max()) + 1)
    x = np.zeros((nodes, dimension), dtype=np.float32)
    y = np.zeros(nodes, dtype=np.int64)
    for owners, rows in zip((np.arange(before), test), features, strict=True):
        x[np.repeat(owners, np.diff(rows.indptr)), rows.indices] = rows.data
    y[:before], y[test] = classes[0].argmax(axis=1), classes[1].argmax(axis=1)
    node = np.arange(nodes)
    masks = (node < train, (node >= train) & (node < train + 500), np.isin(node, test))
    # The files list some pairs twice, and some nodes as their own neighbours.
    pairs = np.array(sorted({(start, end) for start, ends in graph.items() for end in ends if start != end})).T
    return _Planetoid(x, pairs, y, dict(zip(MASKS, masks, strict=True)))
