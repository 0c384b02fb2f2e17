"""``graphveil config``: what a file for ``--config`` may hold."""

from __future__ import annotations

import json
import sys
from typing import Annotated

import typer

Method = Annotated[
    str | None,
    typer.Argument(metavar="METHOD", help="The method whose files are described; without one, all of them."),
]


def group() -> typer.Typer:
    """The commands about files of settings."""
    app = typer.Typer(help="Files that describe a run.")
    app.callback()(lambda: None)
    app.command()(schema)
    return app


def schema(method: Method = None) -> None:
    """Print the JSON Schema (2020-12) of the files that --config takes, for editors that know TOML.

    Save it beside your file as graphveil.schema.json, and begin that file with "#:schema ./graphveil.schema.json".
    """
    from graphveil.cli.choices import find_method
    from graphveil.cli.config_schema import run_schema

    described = run_schema(None if method is None else find_method(method))
    sys.stdout.write(json.dumps(described, indent=2, allow_nan=False) + "\n")
