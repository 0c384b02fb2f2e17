"""``graphveil device``: a person's device; ``python -m graphveil.device`` runs it without the rest of the program."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated

import typer

Folder = Annotated[
    Path | None, typer.Option(metavar="FOLDER", help="Folder of secret and ledger. Default: ~/.graphveil-device.")
]
Task = Annotated[str | None, typer.Argument(metavar="TASK", help="As --task. A single argument is DATA.")]
ValuesFile = Annotated[
    str | None, typer.Argument(metavar="DATA", help='A file: {"features": [...], "label": "...", "links": [...]}.')
]
TaskOption = Annotated[
    str | None,
    typer.Option(
        "--task", metavar="HASH", help="Hash of the task, or its beginning; needed if there are several tasks."
    ),
]
As = Annotated[
    str | None,
    typer.Option(
        "--as", metavar="ID", help="Your id. Where links are asked, it keeps you from being enrolled as another person."
    ),
]


def group() -> typer.Typer:
    app = typer.Typer(help="Answer a collection from this machine.")
    app.callback()(_callback)
    for name, command in _COMMANDS.items():
        app.command(name)(command)
    return app


def enrol(
    url: Annotated[str, typer.Argument(metavar="URL", help="Address of the collector.")],
    token: Annotated[
        str, typer.Argument(metavar="TOKEN", help="The token that you were given; - reads it from stdin.")
    ],
    task: Annotated[str, typer.Option(metavar="HASH", help="Hash of the task, as you were told it.")],
    id: As = None,
    limit: Annotated[
        str | None, typer.Option(metavar="E", help="Total epsilon that all your reports may cost; or none, or default.")
    ] = None,
    folder: Folder = None,
) -> None:
    """Take part in a task; none of your data is sent yet."""
    _run(folder, "enrol", url, token, "--task", task, *_option("--as", id), *_option("--limit", limit))


def show(
    task: Task = None, values_file: ValuesFile = None, task_option: TaskOption = None, folder: Folder = None
) -> None:
    """Show what is asked, and with DATA the report that would be sent; nothing is recorded or sent."""
    _run(folder, "show", *_option("--task", task_option), *_arguments(task, values_file))


def answer(
    task: Task = None,
    values_file: ValuesFile = None,
    task_option: TaskOption = None,
    id: As = None,
    folder: Folder = None,
) -> None:
    """Record and send one report; repeated, send the same one at no further cost."""
    _run(folder, "answer", *_option("--task", task_option), *_option("--as", id), *_arguments(task, values_file))


def spent(folder: Folder = None) -> None:
    """Show what was sent, what it cost and what is left."""
    _run(folder, "spent")


def _callback(context: typer.Context, folder: Folder = None) -> None:
    """Accept ``--folder`` before the command too."""
    if folder is not None:
        context.default_map = {name: {"folder": folder} for name in _COMMANDS}


def _arguments(*args: str | None) -> list[str]:
    # After "--": the name of a file may begin with a dash.
    return ["--", *(arg for arg in args if arg is not None)]


_COMMANDS: Mapping[str, Callable[..., None]] = {"enrol": enrol, "show": show, "answer": answer, "spent": spent}


def _option(option: str, value: str | None) -> list[str]:
    # In one word: an id may begin with a dash.
    return [] if value is None else [f"{option}={value}"]


def _run(folder: Path | None, *args: str) -> None:
    from graphveil.device.__main__ import main

    raise typer.Exit(main([*([] if folder is None else ["--folder", str(folder)]), *args]))
