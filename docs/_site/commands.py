"""``{commands}``: every command of the program with its words and options, as the program itself tells them."""

from collections.abc import Iterator
from typing import Any

import typer
from docutils import nodes
from sphinx.util.docutils import SphinxDirective

from graphveil.cli.app import EPILOG, build


def told(command: Any, path: str) -> Iterator[str]:
    """Yield the lines of a command's section in Markdown, then those of the commands below it."""
    context = command.make_context(path, [], resilient_parsing=True)
    records = [parameter.get_help_record(context) for parameter in command.params]
    yield from (f"## {path}", "", plain(command.help), "")
    if rows := [record for record in records if record is not None]:
        yield from ("| word or option | what it means |", "| --- | --- |")
        yield from (f"| `{cell(name)}` | {cell(plain(meaning))} |" for name, meaning in rows)
        yield ""
    for name, below in getattr(command, "commands", {}).items():
        yield from told(below, f"{path} {name}")


def plain(text: str) -> str:
    """Return a text of the program so that Markdown leaves it alone."""
    return text.replace("<", "\\<").replace("*", "\\*").replace("_", "\\_").replace("[", "\\[")


def cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


class Commands(SphinxDirective):
    """One section a command."""

    def run(self) -> list[nodes.Node]:
        lines = [EPILOG, "", *told(typer.main.get_command(build()), "graphveil")]
        return self.parse_text_to_nodes("\n".join(lines), allow_section_headings=True)


def setup(app: Any) -> dict[str, bool]:
    app.add_directive("commands", Commands)
    return {"parallel_read_safe": True}
