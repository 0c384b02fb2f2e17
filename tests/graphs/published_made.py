"""Named data sets, made small in their published formats."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy.io import savemat
from scipy.sparse import coo_matrix, csr_matrix

Edges = Sequence[tuple[object, object]]


def musae_files(
    path: Path, prefix: str, ends: tuple[str, str], label: str, edges: Edges, features: object, labels: Sequence[object]
) -> Path:
    """Three files in the published format of Facebook Page-Page and LastFM Asia."""
    path.mkdir(parents=True, exist_ok=True)
    rows = "".join(f"{a},{b}\n" for a, b in edges)
    (path / f"{prefix}_edges.csv").write_text(f"{ends[0]},{ends[1]}\n{rows}")
    (path / f"{prefix}_features.json").write_text(json.dumps(features))
    (path / f"{prefix}_target.csv").write_text(
        f"id,{label}\n" + "".join(f"{i},{value}\n" for i, value in enumerate(labels))
    )
    return path


def facebook(
    root: Path,
    edges: Edges = ((0, 1), (1, 2), (2, 2)),
    features: object = None,
    labels: Sequence[str] = ("company", "tvshow", "politician", "government"),
) -> Path:
    """Facebook Page-Page: the nodes listed, of 22,470; damaged where the arguments are."""
    features = {"0": [5, 9], "1": [5], "2": []} if features is None else features
    musae_files(root / "musae/facebook", "musae_facebook", ("id_1", "id_2"), "page_type", edges, features, labels)
    return root


def lastfm(root: Path, labels: Sequence[int], features: object = None) -> Path:
    """LastFM Asia: as many nodes as labels; damaged where the arguments are."""
    features = {"0": [7841], "1": [0], "3": [3]} if features is None else features
    folder = root / "musae/lastfm_asia"
    edges = ((0, 1), (1, 2), (2, 3))
    musae_files(folder, "lastfm_asia", ("node_1", "node_2"), "target", edges, features, labels)
    return root


def arrays(path: Path, values: np.ndarray, edges: Sequence[tuple[int, int]], labels: Sequence[int]) -> None:
    """An npz file of a graph with dense `values`, as PyG's readers take it."""
    n = len(values)
    source, target = np.array(edges).T
    adjacency = csr_matrix((np.ones(len(edges), dtype=np.float32), (source, target)), shape=(n, n))
    path.parent.mkdir(parents=True, exist_ok=True)
    parts: dict[str, Any] = {}
    for name, matrix in (("adj", adjacency), ("attr", csr_matrix(values))):
        for field in ("data", "indices", "indptr", "shape"):
            parts[f"{name}_{field}"] = np.asarray(getattr(matrix, field))
    np.savez(path, labels=np.array(labels, dtype=np.int8), **parts)


def dblp(root: Path, width: int = 1639, labels: tuple[int, ...] = (0, 3, 1)) -> Path:
    """DBLP with three nodes."""
    values = np.zeros((3, width), dtype=np.float32)
    values[0, 2], values[1, -1] = 0.25, 1.0
    arrays(root / "pyg/CitationFull/dblp/raw/dblp.npz", values, [(0, 1), (1, 0), (2, 2), (1, 2)], labels)
    return root


def citeseer(root: Path) -> Path:
    """CiteSeer with five nodes in two components; the file."""
    values = np.zeros((5, 3703), dtype=np.float32)
    values[1, 7], values[3, 0], values[4, -1] = 1.0, 1.0, 1.0
    file = root / "pyg/CitationFull-LCC/citeseer/raw/citeseer.npz"
    arrays(file, values, [(0, 2), (1, 4), (3, 4), (3, 3)], (5, 0, 1, 2, 3))
    return file


def twitch(root: Path, values: np.ndarray) -> Path:
    """Twitch DE with the features given."""
    file = root / "pyg/Twitch/DE/raw/DE.npz"
    file.parent.mkdir(parents=True, exist_ok=True)
    np.savez(file, features=values, target=np.array([0, 1]), edges=np.array([[0, 1], [1, 0], [0, 0]]))
    return root


def ppi(root: Path, kind: type) -> Path:
    """PPI with graphs of three, two and one nodes."""
    folder = root / "pyg/PPI/raw"
    folder.mkdir(parents=True, exist_ok=True)
    for index, split in enumerate(("train", "valid", "test")):
        n = 3 - index
        np.save(folder / f"{split}_feats.npy", np.eye(n, 50).astype(kind))
        np.save(folder / f"{split}_labels.npy", np.eye(n, 121))
        np.save(folder / f"{split}_graph_id.npy", np.full(n, index + 1))
        links = [{"source": i, "target": (i + 1) % n} for i in range(n)]
        (folder / f"{split}_graph.json").write_text(json.dumps({"links": links}))
    return root


def university(root: Path, fields: Sequence[Sequence[int]], stem: str = "Made1") -> Path:
    """A university of Facebook100: a path through the people whose fields are given."""
    (root / "facebook100").mkdir(parents=True, exist_ok=True)
    n = len(fields)
    ends = ([*range(n - 1), *range(1, n)], [*range(1, n), *range(n - 1)])
    adjacency = coo_matrix((np.ones(2 * n - 2), ends), shape=(n, n)).tocsc()
    savemat(root / f"facebook100/{stem}.mat", {"A": adjacency, "local_info": np.array(fields, dtype=np.int32)})
    return root


def saint(root: Path) -> Path:
    """PPI in GraphSAINT's layout, four nodes; the folder."""
    folder = root / "pyg/PPI-GraphSAINT/raw"
    folder.mkdir(parents=True)
    ends = ([0, 1, 1, 2, 2], [1, 0, 2, 1, 2])
    rows = csr_matrix((np.ones(5), ends), shape=(4, 4))
    np.savez(folder / "adj_full.npz", data=rows.data, indices=rows.indices, indptr=rows.indptr, shape=rows.shape)
    np.save(folder / "feats.npy", np.eye(4, 50))
    labels = np.eye(4, 121, dtype=int)
    (folder / "class_map.json").write_text(json.dumps({str(node): row.tolist() for node, row in enumerate(labels)}))
    (folder / "role.json").write_text(json.dumps({"tr": [0, 1], "va": [3], "te": [2]}))
    return folder


def flickr(root: Path, links: str = "0 1 1\n1 2 0\n2 0 0\n0 2 1\n3 3 0\n") -> Path:
    """MIR-Flickr in HeteroRR's layout, four images; the folder."""
    folder = root / "mir-flickr"
    (folder / "feat").mkdir(parents=True)
    (folder / "mir.csv").write_text("id,people\na,1\nb,0\nc,0\nd,1\n")
    np.save(folder / "feat/resnet.npy", np.arange(12, dtype=np.float32).reshape(4, 3) / 2)
    for part, mask in (("tr", [1, 1, 0, 0]), ("va", [0, 0, 1, 0]), ("te", [0, 0, 0, 1])):
        np.save(folder / f"feat/mask_{part}.npy", np.array(mask))
    (folder / "mir.pairs").write_text(links)
    return folder
