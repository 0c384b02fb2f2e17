"""The graph of a finished run, found again from whatever folder a command is typed in."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from graphveil.errors import InputError
from graphveil.graphs import Graph, draw_private, load_plain
from graphveil.graphs.load import is_name
from graphveil.reports.base import parts
from graphveil.reports.base.record import RunRecord
from graphveil.reports.runs.folder import read_run

_REMEDY = "name its place now: attack RUN --data DATA, predict RUN DATA"


def graph_of(record: RunRecord, *, data: str | None = None, root: Path | None = None) -> Graph:
    """Return the graph that a run was trained on, with the same edges drawn as private.

    Args:
        record: of the run.
        data: where the graph lies now; None: where it lay.
        root: the data root; None: the one of the run, while it is there.

    Raises:
        InputError: the graph is not there any more; says where it lay.
    """
    options = record.options
    graph = load_plain(*(_place(record, root) if data is None else (data, root)))
    share = options.get("private_share")
    return graph if share is None else draw_private(graph, float(share), int(options.get("seed", 0)))


def data_of(run: Path, root: Path | None = None) -> tuple[str, Path | None]:
    """Return the name or folder of a run's graph, and the data root.

    Args:
        run: its folder.
        root: the data root that was given, if any.

    Raises:
        InputError: the graph is not there any more; or the folder is a run's public part, which names no place.
    """
    if parts.is_public_part(run):
        raise InputError("does not say where its graph is", where=str(run), remedy="name it behind the run")
    return _place(read_run(run), root)


def _place(record: RunRecord, root: Path | None) -> tuple[str, Path | None]:
    source, kept = str(record.options.get("source", record.data)), _root(record.options)
    # Runs of older versions keep what was typed, which may be a folder as seen from another one.
    if not is_name(source) and not Path(source).is_dir():
        raise InputError(f"its graph lay in {source}, and is not there", where=str(record.run), remedy=_REMEDY)
    return source, kept if root is None else root


def _root(options: Mapping[str, Any]) -> Path | None:
    kept = options.get("data_root")
    # Of a root that is gone nothing can be read; the usual one may hold the same public set.
    return Path(str(kept)) if kept is not None and Path(str(kept)).is_dir() else None
