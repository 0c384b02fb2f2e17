"""Named data sets, made small in their published formats, and changes of the arrays inside their files."""

from __future__ import annotations

import gzip
import io
import random
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
        changed = flat.copy()
        if changed.size:
            changed[place] = value
        whole = values.dtype.kind in "iu" and abs(value) < 2**62
        return changed.reshape(values.shape).astype(np.int64 if whole else np.float64)

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
    """Another array in an npz or npy file, other text in a gzip file; else, and now and then, other bytes."""
    if rng.random() < 0.3:
        return mutate(content, name, rng)
    out = io.BytesIO()
    with np.errstate(all="ignore"):
        if name.endswith(".npz"):
            with np.load(io.BytesIO(content)) as arrays:
                entries = dict(arrays)
            key = rng.choice(sorted(entries))
            value = changed_array(entries.pop(key), rng)
            (np.savez_compressed if rng.random() < 0.5 else np.savez)(
                out, **entries, **({} if rng.random() < 0.1 else {key: value})
            )
        elif name.endswith(".npy"):
            np.save(out, changed_array(np.load(io.BytesIO(content)), rng))
        elif name.endswith(".gz"):
            out.write(gzip.compress(mutate(gzip.decompress(content), name.removesuffix(".gz"), rng)))
        else:
            return mutate(content, name, rng)
    return out.getvalue()


def published_targets(base: Path) -> list[Target]:
    """One target for each format."""
    from tests.graphs import published_made as made_sets

    university = [[1, 2, 270, 0, 95, 2004, 50379], [0, 0, 0, 0, 0, 2009, 0], [6, 1, 14, 14, 0, 1999, 1]]
    builders: dict[str, tuple[str, Callable[[Path], object]]] = {
        "npz rows": ("dblp", made_sets.dblp),
        "musae": ("lastfm", lambda root: made_sets.lastfm(root, [17, 1, 0, 3])),
        "saint": ("ppi-graphsaint", made_sets.saint),
        "university": ("facebook100-made1", lambda root: made_sets.university(root, university)),
    }
    targets = []
    for name, (what, make) in builders.items():
        folder = base / name.replace(" ", "-")
        folder.mkdir(parents=True)
        make(folder)
        targets.append(Target(f"set {name}", folder, ("**/*",), _describing(what), in_archive))
    return targets


def _describing(name: str) -> Callable[[Path, random.Random], Sequence[Words]]:
    def commands(copy: Path, rng: random.Random) -> Sequence[Words]:
        return [("data", "describe", name, "--data-root", copy)]

    return commands
