"""Training on an exported collection, for `train`."""

from __future__ import annotations

from collections.abc import Mapping, Sized
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from graphveil.cli.base import choices, groups
from graphveil.errors import InputError
from graphveil.runtime.words import count_of

if TYPE_CHECKING:
    from graphveil.collection.export.export import Collected
    from graphveil.engine import Engine
    from graphveil.graphs import Graph
    from graphveil.methods.runs.result import Result
    from graphveil.runtime.progress import ProgressCallback

#: The file that marks a folder as an export, see `collection.export.export`.
_FILE = "collection.json"


@dataclass(frozen=True)
class Learned:
    """A result, the options that its folder records, and the graph of the people, without their true values."""

    result: Result
    options: Mapping[str, Any]
    graph: Graph


def is_export(data: str, edges: Path | None) -> bool:
    """Whether ``data`` is the folder of an exported collection; InputError where it is not, and edges are given."""
    # By its own file: read as a folder of tables, its reports would pass for true values.
    has_file = (Path(data) / _FILE).is_file()
    if edges is not None and not has_file:
        raise InputError("edges beside data that have their own", where=f"--edges {edges}", remedy="leave them out")
    return has_file


def people_of(run: Path) -> Graph | None:
    """Return the people of the export that a run was trained on; None for a run on a graph."""
    from graphveil.collection.export import learning
    from graphveil.reports.runs.folder import read_run
    from graphveil.reports.runs.origin import is_collected

    record = read_run(run)
    if not is_collected(record):
        return None
    options = record.options
    folder, edges = Path(str(options["source"])), options.get("edges")
    received, _ = learning.received_of(folder, keep_suspects=bool(options.get("suspects_kept")))
    public_edges = None if edges is None else learning.read_edges(Path(str(edges)), received.collected.ids)
    return learning.collected_graph(received, public_edges)


def _moved_by_forgers(result: Result, collected: Collected, graph: Graph) -> str:
    """Return a sentence on how far forged reports could have moved what a run has read of its graph."""
    from graphveil.aggregation.propagation import Adjacency
    from graphveil.collection.export.moved import bounds, of_targets, sentence_of

    limits = bounds(collected.task, len(collected.bodies.bits))
    hops = result.settings.get("steps_y", 0)
    # Weights that depend on the labels themselves are beyond this bound.
    if hops and graph.edge_index.shape[1] and result.settings.get("trimming", "none") == "none":
        spread = Adjacency.of(graph.edge_index, int(graph.num_nodes)).to_scipy()
        labels = result.model.released.labels.numpy()
        limits = (*limits, of_targets(spread, labels, len(graph.schema.classes), hops))
    return sentence_of(limits)


def _refuse_unlabelled(collected: Collected, left_out: Sized) -> NoReturn:
    reports = len(collected.bodies.bits)
    if len(left_out):
        left = f"{len(left_out):,} of {count_of(reports, 'report')} {'was' if len(left_out) == 1 else 'were'}"
        raise InputError(
            f"{left} left out as suspects, and no label is left to train on",
            where=collected.task.name,
            remedy="read what `graphveil collect export` says of them; --keep-suspects trains on all reports",
        )
    few = collected.too_few.get("label", 0)
    problem = f"{count_of(few, 'person')} sent a label"
    raise InputError(problem, where=collected.task.name, allowed=f"{collected.task.least:,} or more, as the task says")


def train_collected(
    method: str,
    data: str,
    export: groups.Export,
    settings: Mapping[str, Any],
    repetition: groups.Repetition,
    speed: groups.Speed,
    progress: ProgressCallback,
    engine: Engine,
) -> Learned:
    """Return what a method learned from an exported collection.

    Args:
        export: the file of public edges, for methods that read them, and whether suspect reports are read too.

    Raises:
        InputError: reproducible noise is given, but devices have drawn the noise; or from `learning.learn`.
    """
    from graphveil.collection.export import learning

    if repetition.reproducible_noise is not None:
        raise InputError("the noise was drawn on devices", where="--reproducible-noise", remedy="leave it out")
    received, findings = learning.received_of(Path(data), keep_suspects=export.keep_suspects)
    collected = received.collected
    note = f"{findings.sentence}; suspects are {'kept' if export.keep_suspects else 'left out'}"
    learning.require_able(method, received)
    if not (received.labels() >= 0).any():
        _refuse_unlabelled(collected, findings.suspects if not export.keep_suspects else ())
    edges = export.edges
    if (edges is None) != learning.reads_lists(method):
        remedy = "name them: --edges edges.parquet" if edges is None else "leave them out: people sent lists"
        raise InputError("a collection holds no public edges", where=data, remedy=remedy)
    public_edges = None if edges is None else learning.read_edges(edges, received.collected.ids)
    graph = learning.collected_graph(received, public_edges)
    choices.settle_threads(speed.threads, graph)
    learning_repetition = learning.Repetition(
        repeats=repetition.repeats,
        seed=repetition.seed,
        split=repetition.split,
        controls=not repetition.no_controls,
        device=speed.device,
    )
    result = learning.learn(
        method,
        received,
        graph,
        settings=settings,
        repetition=learning_repetition,
        notes=(note,),
        progress=progress,
        engine=engine,
    )
    counts = {f"answered_{kind}": int(mask.sum()) for kind, mask in received.answered().items()}
    options = {"task": collected.task.hash.hex(), "people": received.people, **counts}
    options |= {"suspects": len(findings.suspects), "suspects_kept": export.keep_suspects}
    result = replace(result, notes=(*result.notes, _moved_by_forgers(result, collected, graph)))
    return Learned(result, options if edges is None else {**options, "edges": str(edges.absolute())}, graph)
