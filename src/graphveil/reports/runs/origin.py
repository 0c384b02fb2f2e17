"""The graph of a finished run, located from any working folder."""

from __future__ import annotations

from copy import copy
from pathlib import Path

from graphveil.errors import InputError
from graphveil.graphs import Graph, draw_private, load_plain, node_names
from graphveil.graphs.load import is_name
from graphveil.reports.base import parts
from graphveil.reports.base.record import RunRecord
from graphveil.reports.runs.folder import read_run
from graphveil.runtime.words import count_of

_REMEDY = "name its place now: attack RUN --data DATA, predict RUN DATA"


def graph_of(record: RunRecord, *, data: str | None = None, root: Path | None = None) -> Graph:
    """Return the graph that a run was trained on, with the same private edges drawn; InputError where it is gone.

    Args:
        data: where the graph is now; None: where it was.
        root: the data root; None: that of the run, if it still exists.
    """
    options = record.options
    if is_collected(record):
        raise InputError(
            "it was trained on what people's devices sent: nobody holds the truth by which an attack could be judged",
            where=str(record.run),
            remedy="where the collection was simulated and the truth is at hand: attack RUN --truth DATA",
        )
    graph = load_plain(*(_source_of(record, root) if data is None else (data, root)))
    share = options.get("private_share")
    return graph if share is None else draw_private(graph, float(share), int(options.get("seed", 0)))


def is_collected(record: RunRecord) -> bool:
    """Whether a run was trained on the reports of people's own devices."""
    return "task" in record.options


def in_rows_of(people: Graph, truth: Graph) -> Graph:
    """Return the true graph of an exported collection, under the collection's name.

    Args:
        people: see `collection.export.learning.collected_graph`.
        truth: the graph that the collection was simulated from.

    Raises:
        InputError: its people are others, or in another order.
    """
    names = node_names(truth) or tuple(map(str, range(int(truth.num_nodes))))
    if names != node_names(people):
        raise InputError(
            "its people are not those of the collection, or in another order",
            where=truth.schema.name,
            allowed=f"the {count_of(int(people.num_nodes), 'person')} of {people.schema.name}, as they were enrolled",
        )
    renamed = copy(truth)
    renamed["schema"] = truth.schema.derived(name=people.schema.name)  # a method knows its people by it
    return renamed


def data_of(run: Path, root: Path | None = None) -> tuple[str, Path | None]:
    """Return the name or folder of a run's graph, and the data root; InputError where it is gone or unknown.

    Args:
        root: the requested data root, if any.
    """
    if parts.is_public_part(run):
        raise InputError("does not say where its graph is", where=str(run), remedy="name it behind the run")
    record = read_run(run)
    if is_collected(record):
        raise no_graph("it was trained on what people's devices sent, and", run)
    return _source_of(record, root)


def no_graph(why: str, where: Path) -> InputError:
    """Return the refusal to predict on a collection.

    Args:
        why: the beginning of the sentence.
        where: the run, or the export.
    """
    return InputError(
        f"{why} a collection is no graph",
        where=str(where),
        remedy="for its own people train with --predictions FILE; for others name their graph: predict RUN DATA",
    )


def _source_of(record: RunRecord, root: Path | None) -> tuple[str, Path | None]:
    source, stored = str(record.options.get("source", record.data)), record.options.get("data_root")
    if not is_name(source) and not Path(source).is_dir():
        raise InputError(f"its graph lay in {source}, and is not there", where=str(record.run), remedy=_REMEDY)
    # If the stored root is gone, the default root may hold the same public set.
    stored_root = Path(str(stored)) if stored is not None and Path(str(stored)).is_dir() else None
    return source, stored_root if root is None else root
