"""``graphveil mechanisms``: the randomizers there are."""

from __future__ import annotations

import typer

from graphveil.cli import options
from graphveil.cli.console import emit, working


def group() -> typer.Typer:
    """The commands about mechanisms."""
    app = typer.Typer(help="Look at the randomizers.")
    app.callback()(lambda: None)
    app.command("list")(list_mechanisms)
    return app


def list_mechanisms(as_json: options.Json = False) -> None:
    """All mechanisms: what they protect, how large a report is, where they come from."""
    from graphveil.cli import screens
    from graphveil.mechanisms import catalogue

    with working():
        found = [{**vars(info), "mechanism": info.mechanism.__name__} for info in catalogue()]
    emit({"mechanisms": found}, as_json=as_json, screen=lambda: screens.blocks(found))
