"""A published graph: a folder that anyone may store, share and train on, and what it says about itself.

    graph.toml, nodes.parquet, edges.parquet, features.parquet   the graph, in the format of every own folder
    counts.parquet  where a method publishes them in place of private edges: noisy counts of neighbours
    release.json    method, settings, guarantee, what the numbers mean, and the hashes of all other files
    ledger.json     what was spent
    card.md         the privacy card, for people; card.html the same
    croissant.json  what hubs and loaders read: files, fields, guarantee
    lift.json       the result of a training on it, where it was measured

The hashes find damage and careless edits, not forgery: whoever forges a release can compute them too.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np

from graphveil.errors import DataError, GraphveilError, InputError
from graphveil.files.reading import read_json
from graphveil.files.writing import whole_file, write_text
from graphveil.graphs.declared.declaration import FILE as DECLARATION
from graphveil.graphs.tables.tables import read_table
from graphveil.graphs.tables.write import new_graph_folder, write_graph
from graphveil.graphs.value.parts import Graph
from graphveil.graphs.value.release import FORMAT, NeighbourCounts, Release
from graphveil.runtime.checks import as_path
from graphveil.runtime.late import polars, torch

FILE = "release.json"
COUNTS = "counts.parquet"
_GROUP, _COUNT = "group", "count_"
LEDGER = "ledger.json"
CARD, CARD_PAGE = "card.md", "card.html"


def write_release(
    released: Graph, path: str | os.PathLike[str], release: Release, *, card: str, page: str | None = None
) -> Path:
    """Write a published graph as a folder, whole or not at all; return its path.

    Args:
        released: the released graph, in which nothing is private.
        path: of a new folder.
        release: what the graph says about itself.
        card: the text of card.md.
        page: the text of card.html; None: no such file. Neither is hashed: cards can be rewritten.

    Raises:
        InputError: the folder exists, nodes have several labels, or the graph is no release.
    """
    from graphveil.graphs.releases import croissant

    if not isinstance(release, Release):
        remedy = "publish it with graphveil.HeteroRR or ClassCounts, and write what their release returns"
        raise InputError(f"release is a {type(release).__name__}", where="write_release", remedy=remedy)
    folder = as_path(path)
    with new_graph_folder(folder) as inside:
        write_graph(released, inside, format="parquet", release=True)
        if release.counts is not None:
            write_counts(release.counts, inside)
        write_text(inside / LEDGER, _json(replace(release.ledger, void=release.guarantee.void).to_dict()))
        content = release.to_dict()
        # Cards are not hashed, since `report` rewrites them without changing what was published.
        content["files"] = {file.name: _digest(file) for file in sorted(inside.iterdir())}
        content["sha256"] = _content_digest(content)
        write_text(inside / FILE, _json(content))
        described = croissant.of_release(inside, released.schema, release, content["files"], croissant.Credit())
        # Not hashed, like cards: a licence or a page may be added to it later.
        write_text(inside / croissant.FILE, _json(described))
        for name, text in {CARD: card, CARD_PAGE: page}.items():
            if text is not None:
                write_text(inside / name, text)
    return folder


def read_release(folder: Path) -> Release:
    """Return what a published folder says about itself, after a check that every file is as published.

    DataError names a file that is missing, was changed or does not belong.
    """
    file = folder / FILE
    try:
        content = read_json(file)
        stored = dict(content["files"])
        # Its own hash first: the other hashes count only if nobody edited the list.
        intact = content.pop("sha256") == _content_digest(content) and content["format"] == FORMAT
    except FileNotFoundError as error:
        raise _incomplete(folder, FILE) from error
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise _changed(file) from error
    if not intact:
        raise _changed(file)
    _check_files(folder, stored)
    from graphveil.privacy import Ledger

    try:
        ledger = Ledger.from_dict(read_json(folder / LEDGER))
        return replace(Release.from_dict(content, ledger), counts=read_counts(folder) if COUNTS in stored else None)
    except (KeyError, TypeError, ValueError, AttributeError, GraphveilError) as error:
        raise _changed(file) from error


def refuse_stray_release(folder: Path) -> None:
    """Refuse a folder with a `release.json` that its `graph.toml` does not declare: somebody assembled it by hand."""
    if (folder / FILE).exists():
        raise DataError(
            f"holds a {FILE}, but {DECLARATION} does not say release = true",
            where=str(folder),
            remedy="restore the published folder, or remove the file: no guarantee belongs to this graph",
        )


def _check_files(folder: Path, stored: Mapping[str, str]) -> None:
    for name in (DECLARATION, LEDGER):
        if name not in stored:
            raise _changed(folder / FILE)
    for name, digest in stored.items():
        if not (folder / name).is_file():
            raise _incomplete(folder, name)
        if _digest(folder / name) != digest:
            raise _changed(folder / name)
    for stem in ("nodes", "edges", "features", "counts"):
        for ending in ("csv", "parquet"):
            name = f"{stem}.{ending}"
            # A csv beside a published parquet file could be read in its place.
            if name not in stored and (folder / name).exists():
                raise DataError(f"{name} was not published with it", where=str(folder), remedy=_RESTORE)


_RESTORE = "restore the published folder; what was changed has no guarantee"


def _incomplete(folder: Path, name: str) -> DataError:
    return DataError(f"the release is incomplete: {name} is missing", where=str(folder), remedy=_RESTORE)


def _changed(file: Path) -> DataError:
    return DataError("was changed since it was published", where=str(file), remedy=_RESTORE)


def _digest(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


def _content_digest(content: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True, allow_nan=False).encode()).hexdigest()


def _json(content: Mapping[str, Any]) -> str:
    return json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def write_counts(counts: NeighbourCounts, inside: Path) -> None:
    """Write a table of counts into a release's folder, in the order of its nodes."""
    columns = {f"{_COUNT}{group}": column.numpy() for group, column in enumerate(counts.counts.T)}
    frame = polars.DataFrame({_GROUP: counts.groups.numpy(), **columns})
    with whole_file(inside / COUNTS) as file:
        frame.write_parquet(file)


def read_counts(folder: Path) -> NeighbourCounts:
    """Read what `write_counts` wrote; DataError for anything else."""
    try:
        frame = cast("polars.DataFrame", read_table(folder / COUNTS).frame)
        columns = [f"{_COUNT}{group}" for group in range(frame.width - 1)]
        table = np.array(frame.select(columns).to_numpy(), order="C")
        return NeighbourCounts(torch.from_numpy(frame[_GROUP].to_numpy().copy()), torch.from_numpy(table))
    except (OSError, ValueError, TypeError, InputError, polars.exceptions.PolarsError) as error:
        raise DataError("holds no counts of neighbours", where=str(folder / COUNTS)) from error
