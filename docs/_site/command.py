"""``{command} WORDS``: a command of the program with its words and options, as the program itself tells them."""

from collections.abc import Iterator
from typing import Any

import typer
from docutils import nodes
from sphinx.util.docutils import SphinxDirective

from graphveil.cli.app import EPILOG, build


def described(command: Any) -> Iterator[str]:
    """Yield what a command does and the table of its words and options, as lines of Markdown."""
    context = command.make_context("graphveil", [], resilient_parsing=True)
    records = [parameter.get_help_record(context) for parameter in command.params]
    yield from (plain(command.help), "")
    if rows := [record for record in records if record is not None]:
        yield from ("| word or option | what it means |", "| --- | --- |")
        yield from (f"| `{cell(name)}` | {cell(plain(meaning))} |" for name, meaning in rows)
        yield ""


def plain(text: str) -> str:
    """Return a text of the program so that Markdown leaves it alone."""
    return text.replace("<", "\\<").replace("*", "\\*").replace("_", "\\_").replace("[", "\\[")


def cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


class Command(SphinxDirective):
    """One command; without its words, the program itself."""

    optional_arguments = 1
    final_argument_whitespace = True

    def run(self) -> list[nodes.Node]:
        command = typer.main.get_command(build())
        words = self.arguments[0].split() if self.arguments else []
        for word in words:
            command = command.commands[word]
        lines = [*described(command), *(() if words else (EPILOG,))]
        return self.parse_text_to_nodes("\n".join(lines))


def setup(app: Any) -> dict[str, bool]:
    app.add_directive("command", Command)
    return {"parallel_read_safe": True}
