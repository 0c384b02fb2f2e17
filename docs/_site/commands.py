"""``{commands} NAME``: a command of the program with its words and options, as the program itself tells them."""

from collections.abc import Iterator
from typing import Any

import typer
from docutils import nodes
from sphinx.util.docutils import SphinxDirective

from graphveil.cli.app import EPILOG, build


def told(command: Any, path: str, head: str = "#") -> Iterator[str]:
    """Yield the lines of a command in Markdown, then those of the commands below it.

    Args:
        path: the words that call it.
        head: what marks the headings of the commands one step below it, less one `#`.
    """
    context = command.make_context(path, [], resilient_parsing=True)
    records = [parameter.get_help_record(context) for parameter in command.params]
    yield from (plain(command.help), "")
    if rows := [record for record in records if record is not None]:
        yield from ("| word or option | what it means |", "| --- | --- |")
        yield from (f"| `{cell(name)}` | {cell(plain(meaning))} |" for name, meaning in rows)
        yield ""
    for name, below in getattr(command, "commands", {}).items():
        yield from (f"{head}# {path} {name}", "")
        yield from told(below, f"{path} {name}", f"{head}#")


def top() -> list[str]:
    """The lines of the program itself: what it is for, its own options, and its exit codes."""
    program = typer.main.get_command(build())
    program.commands = {}
    return [*told(program, "graphveil"), EPILOG]


def plain(text: str) -> str:
    """Return a text of the program so that Markdown leaves it alone."""
    return text.replace("<", "\\<").replace("*", "\\*").replace("_", "\\_").replace("[", "\\[")


def cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


class Commands(SphinxDirective):
    """One command and those below it; without its name, the program itself."""

    optional_arguments = 1

    def run(self) -> list[nodes.Node]:
        lines = top()
        if self.arguments:
            name = self.arguments[0]
            lines = list(told(typer.main.get_command(build()).commands[name], f"graphveil {name}"))
        return self.parse_text_to_nodes("\n".join(lines), allow_section_headings=True)


def setup(app: Any) -> dict[str, bool]:
    app.add_directive("commands", Commands)
    return {"parallel_read_safe": True}
