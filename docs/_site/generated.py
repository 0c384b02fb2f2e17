"""``{generated} NAME``: a table that the program makes of itself when the site is built; no page repeats it."""

import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import typer
from command import cell, plain
from docutils import nodes
from licences import licences
from sphinx.util.docutils import SphinxDirective

from graphveil.cli.app import build
from graphveil.federation import KINDS
from graphveil.federation.core.mode import MODE_OF
from graphveil.graphs import GraphSchema
from graphveil.mechanisms.catalogue import catalogue, feature_names, mechanism_named
from graphveil.methods import METHODS
from graphveil.methods.base.people.local_privacy import LocalPrivacy
from graphveil.privacy.statement.registry import CODES
from graphveil.reproduction.catalogue import listing

ROOT = Path(__file__).parents[2]
#: Settings of families that train the network of lpgnn: they stand on its page alone.
NETWORKS = {
    "links": {*METHODS["gcn"].options, "model", "steps_x", "steps_y"},
    "release": {*METHODS["gcn"].options, "model", "steps_x"},
}


def table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    lines = [head, ("---",) * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def every_command() -> Iterator[tuple[str, Any]]:
    """Yield each command of the program with the words that call it."""
    waiting = list(reversed(typer.main.get_command(build()).commands.items()))
    while waiting:
        words, command = waiting.pop()
        below = getattr(command, "commands", {})
        if not below:
            yield words, command
        waiting += [(f"{words} {name}", subcommand) for name, subcommand in reversed(below.items())]


def commands() -> str:
    """Return what each command does: the first sentence of its help."""
    rows = []
    for words, command in every_command():
        first = " ".join((command.help or "").split("\n\n")[0].split())
        rows.append((f"`graphveil {words}`", cell(plain(first))))
    return table(("command", "what it does"), rows)


def options() -> str:
    """Return every option once for each meaning, with the commands that take it."""
    takers: dict[tuple[str, str], list[str]] = {}
    for words, command in every_command():
        context = command.make_context(words, [], resilient_parsing=True)
        for parameter in command.params:
            record = parameter.get_help_record(context)
            if record is not None and record[0].startswith("-"):
                takers.setdefault((record[0], record[1]), []).append(words)
    program = typer.main.get_command(build())
    context = program.make_context("graphveil", [], resilient_parsing=True)
    for parameter in program.params:
        record = parameter.get_help_record(context)
        if record is not None:
            takers[record] = ["graphveil"]
    rows = [
        (f"`{cell(name)}`", ", ".join(words), cell(plain(meaning)))
        for (name, meaning), words in sorted(takers.items(), key=lambda item: item[0])
    ]
    return table(("option", "of", "means"), rows)


def codes(*groups: str) -> str:
    """Return the codes of some groups with their sentences, what each means and what it does not."""
    rows = []
    for entry in CODES.values():
        if entry.group in groups:
            meaning = (entry.limits,) if entry.group == "assumption" else (entry.means, entry.limits)
            rows.append((f"`{entry.code}`", entry.sentence, *meaning))
    last = ("breaks when",) if groups == ("assumption",) else ("means", "does not mean")
    return table(("code", "text", *last), rows)


def mutants() -> str:
    """Return every planted bug: the guarantee that it breaks, and the tests that must notice it."""
    if str(ROOT) not in sys.path:
        sys.path.append(str(ROOT))
    from tests.mutants.catalogue import read_mutants

    rows = []
    for mutant in read_mutants():
        names = dict.fromkeys(f"`{cell(node.partition('::')[2] or node)}`" for node in mutant.tests)
        rows.append((f"`{mutant.name}`", cell(mutant.breaks), ", ".join(names)))
    return f"{len(rows)} mutants.\n\n{table(('mutant', 'guarantee it breaks', 'tests, one of which must fail'), rows)}"


def messages() -> str:
    """Return every message of a federation: who sends it to whom, what the receiver learns, in which modes."""
    rows = []
    for name, kind in KINDS.items():
        modes = [mode.name for mode in MODE_OF.values() if name in mode.sent]
        in_modes = "all" if len(modes) == len(MODE_OF) else ", ".join(modes) or "predictions of all"
        rows.append((f"`{name}`", kind.sender, kind.receiver, kind.reveals, in_modes, "yes" if kind.priced else "no"))
    return table(("message", "from", "to", "what the receiver learns", "modes", "paid for"), rows)


def exhibits() -> str:
    """Return every table and figure of the papers with its state; a directive holds no headings."""
    return re.sub(r"^### (.*)$", r"**\1**", listing(), flags=re.MULTILINE)


def settings(*names: str) -> str:
    """Return what a method can be told beside its network's settings, which stand on the page of lpgnn alone.

    Args:
        names: of methods that share a page; what one of them alone has, or has otherwise, names it.
    """
    rows: dict[tuple[str, ...], list[str]] = {}
    for name in names:
        method = METHODS[name]
        same = NETWORKS.get(method.family.partition(":")[0].split(".")[2], ())
        for key, option in method.options.items():
            if key not in same:
                default = "none" if option.default is None else str(option.default)
                rows.setdefault((key, default, cell(plain(option.help))), []).append(name)
    lines = []
    for (key, *rest), takers in rows.items():
        only = "" if len(takers) == len(names) else f" ({', '.join(takers)})"
        lines.append((f"`{key}`{only}", *rest))
    return table(("setting", "default", "means"), lines)


def feature_mechanisms() -> str:
    """Return the largest variance of a coordinate, over d, and the bytes of a report, of each feature mechanism."""
    rows = []
    for name in feature_names():
        built = []
        for dimension in (1, 1433):
            schema = GraphSchema("x", dimension, -1.0, 1.0, ("a", "b"), directed=False, private=(), source="made")
            built += [LocalPrivacy(epsilon, 1.0, name).features(schema) for epsilon in (1.0, 2.0, 4.0, 8.0)]
        variances = [number(mechanism.worst_variance / mechanism.dimension) for mechanism in built]
        rows.append((f"`{name}`", *variances, number(built[4].report_bytes)))
    head = ("d = 1, epsilon 1", "2", "4", "8", "d = 1,433, epsilon 1", "2", "4", "8")
    return table(("`mechanism`", *head, "bytes"), rows)


def category_mechanisms() -> str:
    """Return the variance of all coordinates of the one-hot estimate of each mechanism for a category."""
    rows = []
    for name in (info.name for info in catalogue() if info.kind == "labels"):
        built = [
            mechanism_named(name).mechanism(epsilon=epsilon, classes=classes)
            for classes in (8, 256)
            for epsilon in (1.0, 2.0, 3.0, 4.0)
        ]
        rows.append((f"`{name}`", *(number(each.law.total_variance) for each in built), number(built[4].report_bytes)))
    head = ("8 values, epsilon 1", "2", "3", "4", "256 values, epsilon 1", "2", "3", "4")
    return table(("mechanism", *head, "bytes"), rows)


def searched() -> str:
    """Return the settings that `graphveil tune` searches where none is named, methods with the same ones together."""
    rows: dict[str, list[str]] = {}
    for name, method in METHODS.items():
        if method.search:
            values = " ".join(f"{key}={','.join(map(str, tried))}" for key, tried in method.search.items())
            rows.setdefault(values, []).append(f"`{name}`")
    return table(("methods", "searched"), [(", ".join(names), f"`{values}`") for values, names in rows.items()])


def number(value: float) -> str:
    """Return a number with three digits, or all of them before the point."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


TABLES: dict[str, Callable[[], str]] = {
    "assumptions": lambda: codes("assumption"),
    "commands": commands,
    "category-mechanisms": category_mechanisms,
    "exhibits": exhibits,
    "feature-mechanisms": feature_mechanisms,
    "licences": licences,
    "messages": messages,
    "mutants": mutants,
    "observers": lambda: codes("observer"),
    "options": options,
    "searched": searched,
    "units": lambda: codes("unit"),
}


class Generated(SphinxDirective):
    """One of TABLES."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        return self.parse_text_to_nodes(TABLES[self.arguments[0]]())


class Settings(SphinxDirective):
    """The settings of methods, whose names are separated by commas."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        return self.parse_text_to_nodes(settings(*self.arguments[0].split(",")))


def setup(app: Any) -> dict[str, bool]:
    app.add_directive("generated", Generated)
    app.add_directive("settings", Settings)
    return {"parallel_read_safe": True}
