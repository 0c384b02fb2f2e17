"""Runs an exhibit: one file for each finished split of each figure, so that an interrupted run can be continued.

A folder holds ``exhibit.json`` (which exhibit), ``graph-<data>`` (the fingerprint of a public graph, which stays, since
more splits may be run later), ``<data row>/split-<n>.json`` (one finished run each), and, at the end, ``table.md`` and
``table.json``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from graphveil.errors import InputError, MissingDataError, UsedPathError
from graphveil.files.outputs import Output
from graphveil.files.reading import read_cached_object
from graphveil.files.serial import json_safe, seal, to_json, unseal
from graphveil.files.writing import refuse_used_folder
from graphveil.graphs import Graph, draw_private
from graphveil.methods.runs.intervals import Interval, interval
from graphveil.privacy import Randomness
from graphveil.reports.compare.cells import require_same_graph
from graphveil.reproduction.exhibit import Entry, Exhibit, Price, Run
from graphveil.runtime.progress import ProgressCallback

EXHIBIT_FILE = "exhibit.json"


@dataclass(frozen=True)
class Row:
    """One figure of the paper beside ours."""

    entry: Entry
    runs: tuple[Run, ...]

    @property
    def ours(self) -> Interval:
        """Mean and 95% interval: over splits, or over test nodes where there is one split."""
        if len(self.runs) == 1:
            return self.runs[0].accuracy
        return interval([np.array([run.accuracy.mean]) for run in self.runs])

    @property
    def points(self) -> float | None:
        """Ours minus the paper's, in points."""
        published = self.entry.published
        return None if published is None else 100 * self.ours.mean - published.mean

    def to_dict(self) -> dict[str, Any]:
        published = self.entry.published
        return {
            "row": self.entry.row,
            **self.entry.to_dict(),
            "published": None if published is None else asdict(published),
            "claimed": self.entry.claimed,
            "ours": self.ours.to_dict(),
            "points": self.points,
            "splits": len(self.runs),
            "price": asdict(self.runs[0].price),
            "seconds": sum(run.seconds for run in self.runs),
        }


@dataclass(frozen=True)
class Outcome:
    """The rows of an exhibit that were run."""

    rows: tuple[Row, ...]
    absent: Mapping[str, str]  # missing data set -> why


#: Trains an entry on the graph of its data, with the split and noise of a number.
Train = Callable[[Entry, Graph, int], Run]


def select_entries(exhibit: Exhibit, only: Sequence[str]) -> tuple[Entry, ...]:
    """Return the entries whose data is one of `only`, or whose row begins with one of them; all where `only` is empty.

    Args:
        only: words; InputError for one that fits no entry.
    """
    unmatched = [word for word in only if not any(_fits(entry, word) for entry in exhibit.entries)]
    if unmatched:
        available = f"{', '.join(exhibit.data)}; {', '.join(dict.fromkeys(entry.row for entry in exhibit.entries))}"
        raise InputError(f"{unmatched[0]!r} is in no row", where="--only", allowed=available)
    # Words of one kind are alternatives, words of both kinds must both fit: cora and multi-bit are multi-bit on Cora.
    data = {word for word in only if word in exhibit.data}
    rows = [word for word in only if word not in data]
    return tuple(
        entry
        for entry in exhibit.entries
        if (not data or entry.data in data) and (not rows or any(_fits(entry, word) for word in rows))
    )


def _fits(entry: Entry, word: str) -> bool:
    return word == entry.data or entry.row.startswith(word)


def check_folder(exhibit: Exhibit, folder: Path, options: Mapping[str, Any]) -> None:
    """Refuse a folder that holds anything but this exhibit, with UsedPathError; nothing is written.

    Args:
        options: further facts that decide the numbers: reproducible noise.
    """
    plan = folder / EXHIBIT_FILE
    if not plan.exists():
        refuse_used_folder(folder)
    # Also with other options: a mean must not mix reproducible and secure noise.
    elif read_cached_object(plan) != _plan(exhibit, options):
        what = f"{folder} holds another exhibit, or other noise"
        raise UsedPathError(what, where="--out", remedy="name another folder")


def open_folder(exhibit: Exhibit, folder: Output, options: Mapping[str, Any]) -> None:
    """Create the folder of an exhibit, or continue in an existing one.

    Args:
        exhibit, options: as of `check_folder`.
        folder: its path, checked.
    """
    folder.create_folder(EXHIBIT_FILE, to_json(_plan(exhibit, options), indent=2) + "\n")


def _plan(exhibit: Exhibit, options: Mapping[str, Any]) -> Any:
    return json_safe({"exhibit": exhibit.id, "options": dict(options)})


def run_missing(
    entries: Sequence[Entry], splits: int, folder: Output, *, load: Callable[[str], Graph], train: Train
) -> Outcome:
    """Run the splits that are not finished yet; each is written as soon as it is finished.

    Args:
        entries, splits: what to run.
        folder: from `open_folder`.
        load: returns the graph of a name; called only for data with missing splits.
        train: trains one split of one entry.

    Returns:
        A row for each entry, in order, except those of absent data.

    Raises:
        InputError: a file is damaged or belongs to other settings.
        ModelFileError: it was changed.
        MissingDataError: none of the data is at hand.
        UsedPathError: a graph has changed since the folder was begun.
    """
    graphs: dict[str, Graph] = {}
    rows, absent = [], dict[str, str]()
    for entry in entries:
        names = [f"{entry.name}/split-{number}.json" for number in range(splits)]
        missing = [number for number, name in enumerate(names) if not (folder.path / name).exists()]
        if missing and entry.data not in {*graphs, *absent}:
            try:
                graphs = {entry.data: load(entry.data)}  # one at a time: graphs are large
                require_same_graph(folder, graphs[entry.data], f"graph-{entry.data}")
            except MissingDataError as error:
                # The other entries, which may take hours, do not depend on it.
                absent[entry.data] = str(error)
                if {entry.data for entry in entries} == set(absent):
                    raise
        if missing and entry.data in absent:
            continue
        for number, name in enumerate(names):
            if number not in missing:
                folder.include(name)
                continue
            run = train(entry, graphs[entry.data], number)
            folder.add_file(name, seal({"entry": entry.to_dict(), "split": number, "run": run.to_dict()}))
        # Read back even if just written, so that the table shows what the files hold.
        rows.append(Row(entry, tuple(_run(folder.path / name, entry) for name in names)))
    return Outcome(tuple(rows), absent)


def trainer(
    *, noise: Callable[[int], Randomness], device: str = "cpu", progress: ProgressCallback | None = None
) -> Train:
    """Return the training of entries: `train_federated` for a federation, `experiment.run` for all other methods.

    Args:
        noise: the source of the privacy noise for a split's number.
        device, progress: as of the experiment.
    """
    from graphveil.methods.runs import experiment
    from graphveil.reproduction import federated

    def train(entry: Entry, graph: Graph, number: int) -> Run:
        if entry.method == federated.METHOD:
            return federated.train_federated(entry, graph, number)

        def report(event: Any) -> None:
            if progress is not None:
                progress(event.named(f"{entry.data}, {entry.row}, split {number}: {event.stage}", event.epsilon))

        result = experiment.run(
            entry.method,
            draw_private(graph, entry.private_share, number) if entry.private_share else graph,
            settings=entry.settings,
            seed=number,
            controls=False,
            randomness=noise(number),
            device=device,
            split=entry.split,
            progress=report,
        )
        # By the accountant, whatever the paper claims.
        promise = result.privacy.guarantee
        price = Price(promise.unit.text, promise.epsilon, promise.delta, result.privacy.epsilon_relationship)
        return Run(result.scores.accuracy, price, result.cost.seconds)

    return train


def _run(file: Path, entry: Entry) -> Run:
    # Sealed, to detect an edited result.
    content = unseal(read_cached_object(file), file)
    if content.get("entry") != json_safe(entry.to_dict()):
        remedy = "delete it to run it again, or name another --out"
        raise InputError("was run with other settings", where=str(file), remedy=remedy)
    try:
        return Run.from_dict(content["run"])
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InputError(f"damaged ({error})", where=str(file), remedy="delete it to run it again") from error
