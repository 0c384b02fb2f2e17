"""``graphveil data``: what a data set holds."""

from __future__ import annotations

import typer

from graphveil.cli import options
from graphveil.cli.console import emit, working


def group() -> typer.Typer:
    """The commands about data."""
    app = typer.Typer(help="Inspect data sets.")
    app.callback()(lambda: None)
    app.command()(describe)
    return app


def describe(data: options.Data, data_root: options.DataRoot = None, as_json: options.Json = False) -> None:
    """Counts, degrees, density, homophily, declared ranges and memory of a data set."""
    from graphveil import graphs
    from graphveil.cli import tables

    with working() as tell:
        content = graphs.describe(graphs.load_parts(data, root=data_root, progress=tell))
    emit(content, as_json=as_json, screen=lambda: tables.described(content))
