"""``graphveil reproduce``: the papers' tables and figures, run again."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Group, RenderableType
from rich.text import Text

from graphveil.cli.base import choices, groups, options
from graphveil.cli.base.console import complain, emit, working
from graphveil.cli.base.tables import pairs, rows

if TYPE_CHECKING:
    from graphveil.graphs import Graph
    from graphveil.reproduction.exhibit import Exhibit
    from graphveil.reproduction.runner import Outcome


def list_screen() -> RenderableType:
    """All tables and figures, paper by paper."""
    from graphveil.reproduction.catalogue import EXHIBITS, PAPERS, duration

    parts: list[RenderableType] = []
    for paper, title in PAPERS.items():
        exhibits = [exhibit for exhibit in EXHIBITS.values() if exhibit.paper == paper]
        table = rows(
            ("name", "shows", "can be run", "10 splits"),
            [(exhibit.id, exhibit.caption, exhibit.status, duration(exhibit)) for exhibit in exhibits],
        )
        # A name broken over two lines cannot be copied.
        table.columns[0].no_wrap = table.columns[3].no_wrap = True
        parts += [Text(title, style="bold"), table, Text()]
    return Group(*parts[:-1])


def reproduced(exhibit: Exhibit, outcome: Outcome, folder: Path) -> RenderableType:
    """One exhibit: the paper's figures beside ours, with remarks."""
    from graphveil.reproduction.table import HEADS, by_data, cells, remarks

    parts: list[RenderableType] = [Text(f"{exhibit.id}: {exhibit.caption}", style="bold"), Text()]
    for head, lines in by_data(outcome.rows):
        table = rows(HEADS, map(cells, lines))
        table.columns[0].no_wrap = True
        parts += [Text(head), table, Text()]
    return Group(*parts, pairs([*remarks(exhibit, outcome), ("Folder", f"{folder} (table.md, table.json)")]))


LIST = "list"


def _names(incomplete: str) -> list[str]:
    from graphveil.reproduction.catalogue import EXHIBITS

    return [name for name in (LIST, *EXHIBITS) if name.startswith(incomplete)]


Name = Annotated[
    str,
    typer.Argument(
        metavar="TABLE",
        help="Such as lpgnn-table3; list shows every table and figure with its state.",
        autocompletion=_names,
    ),
]
Splits = Annotated[int, typer.Option("--splits", min=1, help="Random splits, each with fresh noise.")]
Only = Annotated[
    str | None, typer.Option(metavar="WORD,...", help="Data sets or beginnings of row names, separated by commas.")
]
Out = Annotated[Path | None, typer.Option("--out", help="Folder to create, or to resume. Default: one in runs/.")]


@groups.spread()
def reproduce(
    table: Name,
    speed: groups.Speed,
    splits: Splits = 10,
    only: Only = None,
    data_root: options.DataRoot = None,
    reproducible_noise: options.NoiseSeed = None,
    out: Out = None,
    as_json: options.Json = False,
) -> None:
    """Run a table or figure of a paper again, beside what was published; can be interrupted and resumed."""
    from graphveil.reproduction.catalogue import EXHIBITS, find_exhibit

    if table == LIST:
        exhibits = [entry.to_dict() for entry in EXHIBITS.values()]
        emit({"exhibits": exhibits}, as_json=as_json, screen=list_screen)
        return
    # Before anything heavy loads: a mistyped name is refused at once.
    exhibit = find_exhibit(table)
    from graphveil.reproduction import runner

    # Before the folder is made: `--only` may name nothing.
    entries = runner.select_entries(exhibit, () if only is None else [word.strip() for word in only.split(",")])
    choices.prepare(speed.device, speed.threads)

    from graphveil.files.outputs import new_output
    from graphveil.files.serial import json_safe, to_json
    from graphveil.graphs import load_plain
    from graphveil.reproduction import table as tables

    run_options, default = {"reproducible_noise": reproducible_noise}, Path("runs") / f"reproduce-{exhibit.id}"

    def check(path: Path) -> None:
        runner.check_folder(exhibit, path, run_options)

    with working() as progress, new_output(out, default, say=complain, check=check) as output:

        def load(name: str) -> Graph:
            graph = load_plain(name, data_root, progress=progress)
            # Once per graph: the fastest number of threads depends on its edges.
            choices.settle_threads(speed.threads, graph)
            # Only now: without data there is nothing to resume.
            runner.open_folder(exhibit, output, run_options)
            return graph

        # Each split has its own noise, like each run of a comparison.
        noise = partial(choices.noise_of_cell, reproducible_noise)
        train = runner.trainer(noise=noise, device=speed.device, progress=progress)
        outcome = runner.run_missing(entries, splits, output, load=load, train=train)
        output.add_file("table.md", tables.markdown(exhibit, outcome))
        answer = tables.answer(exhibit, outcome, output.path)
        output.add_file("table.json", to_json(json_safe(answer), indent=2) + "\n")
    emit(answer, as_json=as_json, screen=lambda: reproduced(exhibit, outcome, output.path))
