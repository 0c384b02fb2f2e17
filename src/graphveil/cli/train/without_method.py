"""``graphveil train DATA``: nothing is trained; the advice names a method and the command to type."""

from __future__ import annotations

from pathlib import Path
from typing import NoReturn

from graphveil.cli.advise import command_of, of_all, request_of, require_trust
from graphveil.cli.base import choices
from graphveil.cli.base.console import emit, working
from graphveil.errors import InputError
from graphveil.methods.registry import METHODS


def refuse_unnamed(data: str, trust: str | None, root: Path | None, *, as_json: bool) -> NoReturn:
    """Print which methods are advised for the data, and refuse to train without one.

    Args:
        data: the only argument, typed in the place of METHOD; where it names a method, DATA is missing.
        trust: whom the user trusts; None: advice for every trust.
        root: the data root.
        as_json: whether stdout must stay free for a JSON object; a refusal prints none.

    Raises:
        InputError: always. DATA is missing, no method or data has this name, or no method is named; the last error
            contains the command to type.
    """
    if data in METHODS:
        raise InputError("DATA is missing", where=f"train {data}", allowed="a named data set, or a folder")
    from graphveil.graphs.load import is_name

    # Neither a data set nor a folder: probably a mistyped method, so the error suggests the nearest name.
    if not is_name(data) and not Path(data).is_dir():
        choices.find_method(data)
    if trust is not None:
        require_trust(trust)
    commands = _advised(data, trust, root, as_json=as_json)
    # An error: a script that forgot the method must not go on as if it had trained.
    raise InputError(
        "no method is named, so nothing was trained",
        where="train",
        remedy=f"type {commands[0]}" if len(commands) == 1 else "type one of the commands above, or add --trust",
    )


def _advised(data: str, trust: str | None, root: Path | None, *, as_json: bool) -> list[str]:
    """Print the short advice and return the commands in it."""
    from graphveil.graphs import load_parts
    from graphveil.methods.advise.advice import all_trusts

    with working() as progress:
        graph = load_parts(data, root, progress=progress)
        every = all_trusts(graph, request_of(data, graph))
    advices = [advice for advice in every if trust in (None, advice.trust)]
    # A command that fails prints no JSON.
    if not as_json:
        emit({}, as_json=False, screen=lambda: of_all(data, advices, why=trust is not None))
    return [command for advice in advices if (command := command_of(advice, data)) is not None]
