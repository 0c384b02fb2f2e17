"""A comparison: methods x epsilons x seeds, one file for each finished cell, so that it can be resumed.

A folder holds ``comparison.json`` (what is compared) and ``cells/*.json`` (one finished run each). While cells are
missing it also holds ``graph`` (the graph's fingerprint and its key, with which a guess of the graph can be checked);
then ``table.md``, ``table.csv``, ``table.json``, ``table.html``, ``figure.png`` and ``figure.svg`` take its place.
"""

from __future__ import annotations

import itertools
import re
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graphveil.errors import InputError, UsedPathError
from graphveil.files.outputs import Output
from graphveil.files.reading import read_cached_object, read_text
from graphveil.files.serial import json_safe, seal, to_json, unseal
from graphveil.files.writing import refuse_used_folder
from graphveil.graphs import Graph
from graphveil.graphs.value.value import fingerprint
from graphveil.reports.base.parts import require_paid, require_sum
from graphveil.reports.base.record import RunRecord
from graphveil.reports.base.text import plain_name
from graphveil.runtime.progress import ProgressCallback

if TYPE_CHECKING:
    from graphveil.privacy import Randomness

PLAN_FILE, GRAPH_FILE = "comparison.json", "graph"


@dataclass(frozen=True)
class Cell:
    """One run of a comparison: a method, its settings, and a seed."""

    method: str
    settings: Mapping[str, Any]
    seed: int

    @property
    def file(self) -> str:
        """The name of its file: readable, and different for different cells of one comparison."""
        parts = [self.method, *(f"{key}-{_word(value)}" for key, value in self.settings.items()), f"seed-{self.seed}"]
        return re.sub(r"[^A-Za-z0-9_.-]", "_", "__".join(parts)) + ".json"

    def to_dict(self) -> dict[str, Any]:
        return {"method": self.method, "settings": dict(self.settings), "seed": self.seed}


@dataclass(frozen=True)
class Comparison:
    """What is compared.

    Args:
        methods: method -> the settings that are the same in all of its cells.
        axes: setting -> its values.
        takes: method -> the axes that it has.
        seeds: one cell for each.
        options: everything else that decides the numbers (controls, reproducible noise).
    """

    data: str
    methods: Mapping[str, Mapping[str, Any]]
    axes: Mapping[str, Sequence[Any]]
    takes: Mapping[str, Sequence[str]]
    seeds: Sequence[int]
    options: Mapping[str, Any]

    def cells(self) -> Iterator[Cell]:
        for method, fixed in self.methods.items():
            axes = self.takes[method]
            for values in itertools.product(*(self.axes[axis] for axis in axes)):
                for seed in self.seeds:
                    yield Cell(method, {**dict(zip(axes, values, strict=True)), **fixed}, seed)

    def to_dict(self) -> dict[str, Any]:
        """Everything that must be equal for a folder to be continued."""
        return {
            "data": self.data,
            "methods": {method: dict(fixed) for method, fixed in self.methods.items()},
            "axes": {axis: list(values) for axis, values in self.axes.items()},
            "takes": {method: list(axes_of_method) for method, axes_of_method in self.takes.items()},
            "seeds": list(self.seeds),
            "options": dict(self.options),
        }


def _word(value: object) -> str:
    return str(value).removesuffix(".0")  # unrounded, so that different values have different files


def default_folder(data: str) -> Path:
    """``runs/compare-<data>``: the same for the same data, so that an interrupted comparison can continue."""
    return Path("runs") / f"compare-{plain_name(data)}"


def check_folder(comparison: Comparison, folder: Path) -> None:
    """Refuse a folder that a comparison can neither create nor continue: UsedPathError if it holds anything else,
    InputError if it cannot be read or created. Nothing is written.

    Args:
        comparison: an existing folder must hold the same comparison.
    """
    plan = folder / PLAN_FILE
    if not plan.exists():
        refuse_used_folder(folder)
        return
    expected, stored = json_safe(comparison.to_dict()), read_cached_object(plan)
    # Compared in full: otherwise old cells with other settings would silently mix with new ones.
    differing = sorted(key for key in expected.keys() | stored.keys() if expected.get(key) != stored.get(key))
    if differing:
        raise UsedPathError(
            f"{folder} holds a comparison with other {', '.join(differing)}",
            where="--out",
            remedy="name another folder, or repeat the settings in its comparison.json",
        )


def open_folder(comparison: Comparison, folder: Output) -> None:
    """Create the folder of a comparison, or continue in an existing one; errors as of `check_folder`.

    Args:
        folder: its path, reserved.
    """
    check_folder(comparison, folder.path)
    folder.create_folder(PLAN_FILE, to_json(json_safe(comparison.to_dict()), indent=2) + "\n")


def require_same_graph(folder: Output, graph: Graph, name: str = GRAPH_FILE) -> None:
    """Refuse to continue on a graph that has changed since the folder was created: means would mix two graphs.

    Args:
        folder: from `open_folder`.
        name: of the file with the graph's fingerprint.
    """
    file = folder.path / name
    stored = read_text(file) if file.exists() else None
    key = secrets.token_hex(32) if stored is None else stored[:64]
    line = f"{key} {fingerprint(graph, key.encode()[:64])}\n"
    if stored not in (None, line):
        raise UsedPathError(
            f"{folder.path} holds runs on another {graph.schema.name}: the graph has changed since it began",
            where="--out",
            remedy="name another folder, which begins anew",
        )
    folder.add_file(name, line)


def remove_fingerprint(folder: Output) -> None:
    """Remove the fingerprint of the graph: a finished comparison may be shown to others."""
    (folder.path / GRAPH_FILE).unlink(missing_ok=True)


def run_missing(comparison: Comparison, folder: Output, run: Callable[[Cell, str], RunRecord]) -> list[RunRecord]:
    """Run the cells that are not finished yet, and return the records of all cells, in order.

    Args:
        folder: from `open_folder`; each record is written as soon as its cell is finished.
        run: runs a cell; its second argument says in words which of how many it is.

    Raises:
        InputError: a cell's file is damaged or of another cell; ModelFileError if it promises more than was paid for.
    """
    cells = list(comparison.cells())
    records = []
    for number, cell in enumerate(cells, start=1):
        name = f"cells/{cell.file}"
        finished = (folder.path / name).exists()
        if not finished:
            record = run(cell, f"cell {number} of {len(cells)}, {cell.method}")
            # At once, so that a comparison that stops loses at most one cell.
            folder.add_file(name, seal({"cell": cell.to_dict(), "result": record.to_dict()}))
        records.append(_read_cell(folder.path / name, cell))
        if finished:
            folder.include(name)
    return records


def cell_runner(
    graph: Graph,
    *,
    noise: Callable[[int], Randomness],
    controls: bool,
    device: str,
    progress: ProgressCallback,
    split: str = "random",
) -> Callable[[Cell, str], RunRecord]:
    """The `run` of :func:`run_missing`: one experiment on ``graph``.

    Args:
        noise: the source of the privacy noise for a cell's seed.
        controls: whether the controls are trained too.
        device: "cpu" or "cuda".
        split: who trains, validates and tests, as in ``experiment.run``.
    """
    from graphveil.methods.runs import experiment

    def run(cell: Cell, label: str) -> RunRecord:
        result = experiment.run(
            cell.method,
            graph,
            settings=cell.settings,
            repeats=1,
            seed=cell.seed,
            controls=controls,
            randomness=noise(cell.seed),
            device=device,
            split=split,
            progress=lambda event: progress(event.named(f"{label}: {event.stage}", event.epsilon)),
        )
        return RunRecord.from_result(result, options={"seed": cell.seed, "split": split})

    return run


def _read_cell(file: Path, cell: Cell) -> RunRecord:
    # A cell may come from another machine, so its guarantee is checked like that of any run.
    content = read_cached_object(file)
    if content.get("cell") != json_safe(cell.to_dict()) or not isinstance(content.get("result"), dict):
        raise InputError("belongs to another cell", where=str(file), remedy="delete it to run the cell again")
    record = RunRecord.from_dict(unseal(content, file)["result"])
    require_sum(record.privacy.guarantee, file)
    require_paid(record.privacy.guarantee, record.privacy.ledger, file)
    return record
