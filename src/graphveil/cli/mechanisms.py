"""``graphveil mechanisms``: the randomizers there are, and what they cost each other."""

from __future__ import annotations

from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import Annotated

import typer

from graphveil.cli import choices, options, scores
from graphveil.cli.console import complain, emit, working
from graphveil.errors import InputError

Epsilons = Annotated[str, typer.Option("--epsilon", metavar="E,E,...", help="One or more values, separated by commas.")]
Dimension = Annotated[int, typer.Option("--dimension", metavar="D", help="Coordinates of one user's vector.")]
Users = Annotated[
    int | None, typer.Option("--users", metavar="N", help="Synthetic users. Default: 10,000, or fewer if D is large.")
]
Low = Annotated[float, typer.Option("--low", help="Lowest value of a coordinate.")]
High = Annotated[float, typer.Option("--high", help="Highest value of a coordinate.")]
Delta = Annotated[float, typer.Option("--delta", help="Delta of the mechanisms that need one.")]
Answers = Annotated[
    str, typer.Option("--answers", metavar="K,K,...", help="How many answers each question has, separated by commas.")
]
Out = Annotated[Path | None, typer.Option("--out", help="Folder to create. Default: runs/mechanisms-<D>-<time>.")]


def group() -> typer.Typer:
    """The commands about mechanisms."""
    app = typer.Typer(help="List and compare mechanisms.")
    app.callback()(lambda: None)
    app.command("list")(list_mechanisms)
    app.command("compare")(compare_mechanisms)
    app.command("categories")(compare_category_mechanisms)
    app.command("scores")(scores.scores)
    return app


def list_mechanisms(as_json: options.Json = False) -> None:
    """All mechanisms: what they protect, how large a report is, where they come from."""
    from graphveil.cli import tables
    from graphveil.mechanisms import catalogue

    with working():
        listed = [info.facts() for info in catalogue()]
    shown = [{key: facts[key] for key in ("name", "mechanism", "source", "unit", "report", "note")} for facts in listed]
    emit({"mechanisms": listed}, as_json=as_json, screen=lambda: tables.blocks(shown))


def compare_mechanisms(
    epsilon: Epsilons = "0.5,1,2",
    dimension: Dimension = 64,
    users: Users = None,
    low: Low = 0.0,
    high: High = 1.0,
    delta: Delta = 1e-10,
    out: Out = None,
    as_json: options.Json = False,
) -> None:
    """All feature mechanisms on synthetic vectors: error, report size, speed; tables and a picture."""
    from graphveil.cli import mechanism_screens
    from graphveil.graphs.schema import RANGES, usable_range
    from graphveil.mechanisms.comparison import Question, compare
    from graphveil.outputs import new_output
    from graphveil.privacy import SecureRandomness
    from graphveil.reports.compare import mechanisms as mechanism_comparison
    from graphveil.reports.runs import folder as run_folder

    if not usable_range(low, high):
        raise InputError(f"the range is {low:g} to {high:g}", where="--low, --high", allowed=RANGES)
    epsilons = tuple(value for value in choices.several("epsilon", epsilon) if value is not None)
    question = Question(epsilons, dimension, users, low, high, delta)
    default = run_folder.default_folder("mechanisms", str(dimension), datetime.now())
    with working() as tell, new_output(out, default, say=complain) as folder:
        results = compare(question, randomness=SecureRandomness(), progress=tell)
        answer = folder.write(lambda path: mechanism_comparison.write(question, results, path))
    emit(answer, as_json=as_json, screen=lambda: mechanism_screens.compared(question, results, folder.path))


def compare_category_mechanisms(
    epsilon: Epsilons = "0.5,1,2", answers: Answers = "2,8,256", as_json: options.Json = False
) -> None:
    """All mechanisms for one answer out of several: error and report size; all the questions under one budget."""
    from graphveil.cli import mechanism_screens
    from graphveil.mechanisms.category_comparison import compare_categories, compare_together

    with working():
        epsilons, many = choices.several("epsilon", epsilon), choices.several("answers", answers, int)
        rows, together = compare_categories(epsilons, many), compare_together(epsilons, many)
    answer = {"rows": [asdict(row) for row in rows], "together": [asdict(row) for row in together]}
    emit(answer, as_json=as_json, screen=lambda: mechanism_screens.categories(rows, together))
