"""``graphveil train DATA``: nothing is trained, and what it would take is said."""

from __future__ import annotations

from pathlib import Path
from typing import NoReturn

from graphveil.cli.advise import request_of, trust_of
from graphveil.cli.base import choices
from graphveil.cli.base.console import emit, working
from graphveil.errors import InputError
from graphveil.methods.registry import METHODS


def refuse_unnamed(data: str, trust: str | None, root: Path | None, *, as_json: bool) -> NoReturn:
    """Say which method would be taken for the data that stands in the place of a method.

    Args:
        data: the only argument that was typed.
        trust: whom the user trusts; None: a line for each.
        root: the data root.
        as_json: whether stdout belongs to an answer, which there is none of.

    Raises:
        InputError: always: no data, no such method, or no method; the last with the command to type.
    """
    if data in METHODS:
        raise InputError("DATA is missing", where=f"train {data}", allowed="a named data set, or a folder")
    from graphveil.graphs.load import is_name

    # Neither a data set nor a folder: a mistyped method, for which the nearest name is a better answer.
    if not is_name(data) and not Path(data).is_dir():
        choices.find_method(data)
    commands = _advised(data, None if trust is None else trust_of(trust), root, as_json=as_json)
    # Not 0: a script that forgot the method must not go on as if something had been trained.
    raise InputError(
        "no method is named, so nothing was trained",
        where="train",
        remedy=f"type {commands[0]}" if len(commands) == 1 else "type one of the commands above, or add --trust",
    )


def _advised(data: str, trust: str | None, root: Path | None, *, as_json: bool) -> list[str]:
    """Print the short advice and return the commands in it."""
    from graphveil.cli import advise as advise_screen
    from graphveil.cli.advise import command_of
    from graphveil.graphs import load_parts
    from graphveil.methods.advise.advice import all_trusts

    with working() as progress:
        graph = load_parts(data, root, progress=progress)
        every = all_trusts(graph, request_of(data, graph))
    advices = [advice for advice in every if trust in (None, advice.trust)]
    # A command that fails leaves stdout empty for whoever reads JSON from it.
    if not as_json:
        emit({}, as_json=False, screen=lambda: advise_screen.of_all(data, advices, why=trust is not None))
    return [command for advice in advices if (command := command_of(advice, data)) is not None]
