"""Graphs kept as arrays: the same graph, mapped, refused when it was changed, and used within little memory."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest
import torch

from graphveil.errors import DataError, InputError
from graphveil.graphs import load_graph, load_parts, load_plain, store_parts
from graphveil.graphs.value.parts import GraphParts, SparseRows
from graphveil.graphs.value.value import parts_of
from tests.graphs.made import folder, tiny_graph
from tests.graphs.test_release import published

SPARSE = {
    "graph__toml": 'range = [0, 1]\nclasses = ["a", "b"]\nprivate = ["edges"]\ndirected = true\ndimension = 40\n',
    "nodes__csv": "id,label\nana,a\nböb,b\n7,\n",
    "edges__csv": "source,target\nana,7\n7,böb\n",
    "features__csv": "id,feature,value\nana,3,0.5\n7,39,1\n",
}
KNOWN = {
    "graph__toml": 'range = [0, 1]\nclasses = ["a", "b"]\nprivate = ["edges"]\ndirected = false\nsplit = "part"\n'
    'public_edges = "open"\nprivate_nodes = "hidden"\n',
    "nodes__csv": "id,label,part,hidden,f\n1,a,train,yes,0\n2,b,test,yes,0.5\n3,a,val,no,1\n",
    "edges__csv": "source,target,open\n1,2,no\n2,3,yes\n",
}


def equal(first: object, other: object) -> bool:
    if isinstance(first, SparseRows) and isinstance(other, SparseRows):
        return all(equal(getattr(first, field.name), getattr(other, field.name)) for field in fields(SparseRows))
    if isinstance(first, np.ndarray) and isinstance(other, np.ndarray):
        return first.dtype == other.dtype and np.array_equal(first, other)
    return first == other


@pytest.mark.parametrize(
    "build",
    [
        lambda place: load_parts("digits"),
        lambda place: load_parts("social-300"),
        lambda place: load_parts(folder(place / "own")),
        lambda place: load_parts(folder(place / "own", **SPARSE)),
        lambda place: load_parts(folder(place / "own", **KNOWN)),
        lambda place: parts_of(tiny_graph(y=torch.tensor([[1.0, 0.0], [1.0, 1.0], [0.0, 0.0], [0.0, 1.0]]))),
    ],
    ids=["digits", "social", "own", "sparse", "known", "several labels"],
)
def test_a_stored_graph_is_the_graph(tmp_path: Path, build: Callable[[Path], GraphParts]) -> None:
    parts = build(tmp_path)
    loaded = load_parts(store_parts(parts, tmp_path / "stored"))
    assert loaded.schema == parts.schema and loaded.masks.keys() == parts.masks.keys()
    assert all(equal(loaded.masks[name], mask) for name, mask in parts.masks.items())
    for name in ("x", "edge_index", "y", "public_edges", "private_nodes"):
        assert equal(getattr(loaded, name), getattr(parts, name))
    assert (loaded.ids is None) == (parts.ids is None)
    if loaded.ids is not None and parts.ids is not None:
        assert list(map(str, loaded.ids)) == list(map(str, parts.ids))
    stored = tmp_path / "stored"
    content = json.loads((stored / "stored.json").read_text())
    assert content["schema"]["private"] == list(parts.schema.private)
    # Nobody else may read it.
    assert stored.stat().st_mode & 0o777 == 0o700
    assert {file.stat().st_mode & 0o777 for file in stored.glob("*.npy")} == {0o600}
    assert isinstance(loaded.edge_index, np.memmap) and not loaded.edge_index.flags.writeable


def test_its_tensors_share_the_files_in_silence(tmp_path: Path) -> None:
    stored = store_parts(load_parts(folder(tmp_path / "own", **SPARSE)), tmp_path / "stored")
    dense = store_parts(load_parts("digits"), tmp_path / "dense")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert load_plain(stored).x.is_sparse_csr and load_graph(dense).num_nodes == 1797


def test_a_folder_that_is_there_and_a_release_are_refused(tmp_path: Path) -> None:
    (tmp_path / "stored").mkdir()
    with pytest.raises(InputError, match="exists already"):
        store_parts(load_parts("social-100"), tmp_path / "stored")
    with pytest.raises(InputError, match="is a release"):
        store_parts(load_parts(published(tmp_path)), tmp_path / "again")
    with pytest.raises(InputError, match="NUL"):  # which NumPy would cut
        store_parts(parts_of(tiny_graph(ids=("a", "x\0", "b", "c"))), tmp_path / "again")
    assert not (tmp_path / "again").exists()


def saved(stored: Path, name: str, change: Callable[[np.ndarray], np.ndarray]) -> None:
    np.save(stored / f"{name}.npy", change(np.load(stored / f"{name}.npy")))


SPOILED: dict[str, Callable[[Path], object]] = {
    "allowed: 0 to 1": lambda stored: saved(stored, "x", lambda x: x + 1),
    "is float32 .*allowed": lambda stored: saved(stored, "x", lambda x: x[1:]),
    "cannot be opened": lambda stored: (stored / "y.npy").unlink(),
    "label of node": lambda stored: saved(stored, "y", lambda y: y + 5),
    "two parts of the split": lambda stored: saved(stored, "test_mask", np.ones_like),
    "another order": lambda stored: saved(stored, "edges", lambda edges: edges[:, ::-1]),
    "does not exist": lambda stored: saved(stored, "edges", lambda edges: edges + 1),
    "one direction only": lambda stored: saved(stored, "edges", lambda edges: np.array([[0, 0, 1, 1], [1, 2, 0, 2]])),
    "do not tell": lambda stored: saved(stored, "ids", np.zeros_like),
    "public in one direction": lambda stored: saved(stored, "public_edges", lambda mask: np.arange(4) == 1),
    "not ascending": lambda stored: saved(stored, "private_nodes", lambda nodes: nodes[::-1]),
    "format 2": lambda stored: (stored / "stored.json").write_text('{"format": 2}'),
    "is damaged": lambda stored: (stored / "stored.json").write_text('{"format": 1}'),
}


@pytest.mark.parametrize("message", SPOILED)
def test_arrays_that_were_changed_are_refused(tmp_path: Path, message: str) -> None:
    stored = store_parts(load_parts(folder(tmp_path / "own", **KNOWN)), tmp_path / "stored")
    SPOILED[message](stored)
    with pytest.raises(DataError if message != "cannot be opened" else InputError, match=message):
        load_parts(stored)


def test_features_that_are_no_rows_are_refused(tmp_path: Path) -> None:
    stored = store_parts(load_parts(folder(tmp_path / "own", **SPARSE)), tmp_path / "stored")
    saved(stored, "columns", lambda columns: columns + 1)
    with pytest.raises(DataError, match="are not rows of entries"):
        load_parts(stored)
