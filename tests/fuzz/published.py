"""Named data sets, made small in their published formats, and changes of the arrays inside their files."""

from __future__ import annotations

import gzip
import io
import random
import struct
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tests.fuzz.mutate import mutate
from tests.fuzz.target import Target, Words

_ODD = (-1, 0, 1, 2, 7, 2**31, 2**32, 2**40, -(2**40), 2**62)
_KINDS = ("u1", "i4", "i8", "u8", "f4", "f8", "c16", "?", "O", "U3")


def changed_array(values: Any, rng: random.Random) -> Any:
    """An array of another shape, type or content."""
    values = np.asarray(values)
    flat = values.ravel().astype(np.float64, copy=True) if values.dtype.kind in "biuf" else values.ravel()
    place = rng.randrange(max(flat.size, 1))

    def put(value: float) -> Any:
        found = flat.copy()
        if found.size:
            found[place] = value
        whole = values.dtype.kind in "iu" and abs(value) < 2**62
        return found.reshape(values.shape).astype(np.int64 if whole else np.float64)

    makers: tuple[Callable[[], Any], ...] = (
        *(lambda odd=odd: put(odd) for odd in _ODD),
        *(lambda odd=odd: put(odd) for odd in (0.5, float("nan"), float("inf"), 1e308, -1e-320)),
        lambda: values[:0],
        lambda: values.ravel(),
        lambda: values[None],
        lambda: values.T,
        lambda: values.ravel()[0] if values.size else values,
        lambda: np.concatenate([values, values]) if values.ndim else values,
        lambda: values[:-1] if values.ndim else values,
        lambda: values.astype(rng.choice(_KINDS)),
    )
    try:
        return rng.choice(makers)()
    except (IndexError, ValueError):  # a single number has no part, and some arrays cannot be of that type
        return values


def in_archive(content: bytes, name: str, rng: random.Random) -> bytes:
    """Another array in an npz, npy or mat file, other text in a gzip file; else, and now and then, other bytes."""
    if rng.random() < 0.3:
        return mutate(content, name, rng)
    out = io.BytesIO()
    with np.errstate(all="ignore"):
        if name.endswith(".npz"):
            with np.load(io.BytesIO(content)) as arrays:
                found = dict(arrays)
            key = rng.choice(sorted(found))
            value = changed_array(found.pop(key), rng)
            (np.savez_compressed if rng.random() < 0.5 else np.savez)(
                out, **found, **({} if rng.random() < 0.1 else {key: value})
            )
        elif name.endswith(".npy"):
            np.save(out, changed_array(np.load(io.BytesIO(content)), rng))
        elif name.endswith(".mat"):
            _save_mat(content, out, rng)
        elif name.endswith(".gz"):
            out.write(gzip.compress(mutate(gzip.decompress(content), name.removesuffix(".gz"), rng)))
        else:
            return mutate(content, name, rng)
    return out.getvalue()


def _save_mat(content: bytes, out: io.BytesIO, rng: random.Random) -> None:
    """Another table, or another number somewhere in the sparse matrix, written by hand: SciPy would not survive it."""
    from scipy.io import loadmat, savemat

    if rng.random() < 0.4:
        found = {key: value for key, value in loadmat(io.BytesIO(content)).items() if not key.startswith("__")}
        savemat(
            out, {**found, "local_info": changed_array(found["local_info"], rng)}, do_compression=rng.random() < 0.5
        )
        return
    changed = bytearray(content)
    for _ in range(rng.choice((1, 1, 2))):
        place = 128 + 4 * rng.randrange((len(changed) - 128) // 4)
        changed[place : place + 4] = struct.pack("<i", rng.choice((-1, 0, 1, 3, 2**16, 2**31 - 1)))
    out.write(bytes(changed) if rng.random() < 0.5 else _compressed(bytes(changed)))


def _compressed(content: bytes) -> bytes:
    """The same mat file with each of its variables packed."""
    made, place = content[:128], 128
    while place + 8 <= len(content):
        size = 8 + struct.unpack("<I", content[place + 4 : place + 8])[0]
        packed = zlib.compress(content[place : place + size])
        made += struct.pack("<II", 15, len(packed)) + packed
        place += size
    return made


def published_targets(base: Path) -> list[Target]:
    """One target for each format."""
    from tests.graphs import published_made as made_sets

    university = [[1, 2, 270, 0, 95, 2004, 50379], [0, 0, 0, 0, 0, 2009, 0], [6, 1, 14, 14, 0, 1999, 1]]
    made: dict[str, tuple[str, Callable[[Path], object]]] = {
        "npz rows": ("dblp", made_sets.dblp),
        "npz dense": ("twitch-de", lambda root: made_sets.twitch(root, np.eye(2, 128))),
        "largest component": ("citeseer-lcc", made_sets.citeseer),
        "musae": ("lastfm", lambda root: made_sets.lastfm(root, [17, 1, 0, 3])),
        "ppi": ("ppi", lambda root: made_sets.ppi(root, np.uint8)),
        "saint": ("ppi-graphsaint", made_sets.saint),
        "images": ("mir-flickr", made_sets.flickr),
        "university": ("facebook100-made1", lambda root: made_sets.university(root, university)),
        "arxiv": ("ogbn-arxiv", _arxiv),
        "reddit": ("reddit", _reddit),
        "planetoid": ("cora", _planetoid),
    }
    found = []
    for name, (what, make) in made.items():
        folder = base / name.replace(" ", "-")
        folder.mkdir(parents=True)
        make(folder)
        found.append(Target(f"set {name}", folder, ("**/*",), _describing(what), in_archive))
    return found


def _describing(name: str) -> Callable[[Path, random.Random], Sequence[Words]]:
    def commands(copy: Path, rng: random.Random) -> Sequence[Words]:
        return [("data", "describe", name, "--data-root", copy)]

    return commands


def _arxiv(root: Path) -> None:
    content = {
        "raw/edge.csv.gz": "0,1\n1,2\n",
        "raw/node-feat.csv.gz": "\n".join(",".join(["0.5"] * 4) for _ in range(3)),
        "raw/node-label.csv.gz": "0\n39\n7\n",
        "split/time/train.csv.gz": "2\n",
        "split/time/valid.csv.gz": "0\n",
        "split/time/test.csv.gz": "1\n",
    }
    for name, text in content.items():
        file = root / "ogb/ogbn_arxiv" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(gzip.compress(text.encode()))


def _reddit(root: Path) -> None:
    from scipy.sparse import coo_matrix, save_npz

    folder = root / "pyg/Reddit/raw"
    folder.mkdir(parents=True)
    arrays: dict[str, Any] = {"feature": np.full((3, 6), 0.5), "label": np.array([0, 40, 3])}
    np.savez(folder / "reddit_data.npz", node_types=np.array([1, 2, 3]), **arrays)
    save_npz(folder / "reddit_graph.npz", coo_matrix(([1, 1], ([0, 1], [1, 2])), shape=(3, 3)))


def _planetoid(root: Path) -> None:
    """Pickles of nobody's: none is opened."""
    folder = root / "pyg/Planetoid/Cora/raw"
    folder.mkdir(parents=True)
    for part in ("x", "tx", "allx", "y", "ty", "ally", "graph", "test.index"):
        (folder / f"ind.cora.{part}").write_bytes(b"\x80\x04]\x94.")
