"""``graphveil data``: describe, store and declare data sets."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, cast

import typer

from graphveil.cli.base import groups, options, tables
from graphveil.cli.base.console import complain, emit, working
from graphveil.cli.base.groups import open_engine, require_engine_choice
from graphveil.cli.data import declaring
from graphveil.files.serial import to_json
from graphveil.files.writing import write_text
from graphveil.runtime.words import count_of

Out = Annotated[Path | None, typer.Option("--out", "-o", metavar="FILE", help="File to write. Default: stdout.")]
New = Annotated[Path, typer.Option("--out", "-o", metavar="FOLDER", help="Folder to create.")]
License = Annotated[
    str | None, typer.Option(metavar="URL", help="Licence, such as https://spdx.org/licenses/CC-BY-4.0.html.")
]
CiteAs = Annotated[str | None, typer.Option("--cite-as", metavar="TEXT", help="How to cite it, BibTeX at best.")]
Url = Annotated[str | None, typer.Option("--url", metavar="URL", help="Its web page.")]
Creator = Annotated[str | None, typer.Option("--creator", metavar="NAME", help="Its creator.")]
Published = Annotated[str | None, typer.Option(metavar="DAY", help="Day of publication, such as 2026-01-31.")]


def group() -> typer.Typer:
    app = typer.Typer(help="Declare, import and inspect data sets.")
    app.callback()(lambda: None)
    app.command()(declaring.init)
    app.command("import")(declaring.import_)
    app.command()(describe)
    app.command()(store)
    app.command()(croissant)
    return app


@groups.spread()
def describe(
    data: options.Data,
    data_root: options.DataRoot = None,
    *,
    engine_choice: groups.EngineChoice,
    as_json: options.Json = False,
) -> None:
    """Show counts, degrees, density, homophily, declared ranges and memory of a data set."""
    require_engine_choice(engine_choice)
    from graphveil import graphs

    with working() as progress, open_engine(engine_choice) as engine:
        answer = graphs.describe(graphs.load_parts(data, root=data_root, progress=progress, engine=engine))
    emit(
        answer,
        as_json=as_json,
        screen=lambda: tables.described({**answer, "classes": _cut(cast("Mapping[str, int]", answer["classes"]))}),
    )


#: Of more classes than the first number a screen shows the second, the largest.
_MANY, _SHOWN = 20, 10


def _cut(counts: Mapping[str, int]) -> Mapping[str, object]:
    """The nodes of each class; of many classes the largest, and the range of all others."""
    if len(counts) <= _MANY:
        return counts
    ordered = sorted(counts.items(), key=lambda item: -item[1])
    rest = [count for _, count in ordered[_SHOWN:]]
    sizes = f"{rest[-1]:,} to {rest[0]:,} nodes each (all: --json)"
    return {**dict(ordered[:_SHOWN]), count_of(len(rest), "other"): sizes}


def store(data: options.Data, out: New, data_root: options.DataRoot = None) -> None:
    """Write a data set as arrays into a folder; every command accepts it as DATA and maps it instead of loading it."""
    from graphveil import graphs
    from graphveil.files.outputs import new_output

    with working() as progress, new_output(out, out, say=complain) as output:
        graph = graphs.load_parts(data, root=data_root, progress=progress)
        output.write(lambda folder: graphs.store_parts(graph, folder), paid=False)
    typer.echo(f"Written to {output.path}: raw data, which you alone may read")


def croissant(
    data: options.Data,
    data_root: options.DataRoot = None,
    license: License = None,
    cite_as: CiteAs = None,
    url: Url = None,
    creator: Creator = None,
    published: Published = None,
    out: Out = None,
) -> None:
    """Print Croissant 1.1 metadata (JSON-LD) of a data set or a release, for hubs and loaders.

    For data that is not a release, it states only what graph.toml declares: no value, no count, no hash.
    """
    from graphveil.graphs.releases.croissant import Credit, as_day
    from graphveil.graphs.releases.croissant_data import of_data

    credit = Credit(license, cite_as, url, creator, as_day(published))
    with working():
        text = to_json(of_data(data, root=data_root, credit=credit), indent=2)
    if out is None:
        typer.echo(text)
    else:
        write_text(out, text + "\n")
        typer.echo(f"Written to {out}")
