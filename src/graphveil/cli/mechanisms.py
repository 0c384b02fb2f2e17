"""``graphveil mechanisms``: the randomizers in a list and in comparison, and the budget shares of features."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from graphveil.cli.base import choices, options, tables
from graphveil.cli.base.console import complain, emit, working
from graphveil.cli.base.tables import pairs
from graphveil.errors import InputError
from graphveil.files.writing import write_text
from graphveil.graphs.value.schema import RANGES, usable_range
from graphveil.privacy.accounting.printed import rounded_up

if TYPE_CHECKING:
    from graphveil.mechanisms.comparison import CategoryRow, Measurement, Question, Refusal, TogetherRow


def _comparison_screen(question: Question, results: Sequence[Measurement | Refusal], folder: Path) -> RenderableType:
    """One table for each epsilon, best first, the meaning of its columns, and the folder of the picture."""
    from graphveil.mechanisms.comparison import measurements_of, refusals_of

    parts: list[RenderableType] = []
    for epsilon in question.epsilons:
        parts += [Text(f"epsilon {rounded_up(epsilon)} for a user's whole vector", style="bold")]
        parts += [_table([row for row in measurements_of(results) if row.epsilon == epsilon])]
        parts += [pairs((row.mechanism, row.reason) for row in refusals_of(results) if row.epsilon == epsilon), Text()]
    files = "comparison.json" + (", figure.png, figure.svg" if measurements_of(results) else "")
    return Group(*parts, pairs([*_meaning(question, results), ("Folder", f"{folder} ({files})")]))


def _categories_screen(rows: Sequence[CategoryRow], together: Sequence[TogetherRow]) -> RenderableType:
    """A table of mechanisms, best first at each epsilon and number of answers, and one of all questions together."""
    heads = ("epsilon", "answers", "mechanism", "error", "bytes")
    content = [
        (rounded_up(row.epsilon), row.answers, row.mechanism, _short(row.total_variance), _short(row.report_bytes))
        for row in rows
    ]
    parts: list[RenderableType] = [tables.rows(heads, content), Text()]
    if together:
        prices = [(rounded_up(row.epsilon), rounded_up(row.epsilon_each, 3)) for row in together]
        shared = [
            (whole, f"{row.drawn} of {row.questions}", each, _short(row.total_variance))
            for (whole, each), row in zip(prices, together, strict=True)
        ]
        parts += [tables.rows(("epsilon of a person", "asked", "epsilon each", "error of all"), shared), Text()]
    meaning = "variance of all coordinates of one person's one-hot estimate together, in closed form"
    return Group(*parts, pairs([("error", meaning)]))


def _table(rows: Sequence[Measurement]) -> Table:
    table = tables.figures("mechanism", "worst error", "measured", "of the mean", "bytes", "users/s")
    table.columns[0].no_wrap = True
    for row in rows:
        errors = (_short(value) for value in (row.worst_mse, row.mse, row.mean_mse))
        table.add_row(row.mechanism, *errors, _short(row.report_bytes), f"{float(f'{row.users_per_second:.2g}'):,.0f}")
    return table


_ERROR = "mean squared error of one user's estimate of a coordinate"


def _short(value: float) -> str:
    """Three digits: ``0.00812``, ``4.68``, ``16,384``."""
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"


def _meaning(question: Question, results: Sequence[Measurement | Refusal]) -> list[tuple[str, str]]:
    from graphveil.mechanisms.comparison import measurements_of

    deltas = {row.delta: row.mechanism for row in measurements_of(results) if row.delta > 0}
    return [
        ("Input", question.input),
        ("worst error", f"{_ERROR}, at the worst input, in closed form"),
        ("measured", "the same on the input above"),
        ("of the mean", "mean squared error of the average over all users, on the input above"),
        ("users/s", "reports made in a second, on one processor"),
        *(("Delta", f"{name} has delta {rounded_up(delta)}; all others have none") for delta, name in deltas.items()),
    ]


Epsilons = Annotated[str, typer.Option("--epsilon", metavar="E,E,...", help="One or more values, separated by commas.")]
Dimension = Annotated[int, typer.Option("--dimension", metavar="D", help="Coordinates of one user's vector.")]
Users = Annotated[
    int | None, typer.Option(metavar="N", help="Synthetic users. Default: 10,000, or fewer if D is large.")
]
Low = Annotated[float, typer.Option("--low", help="Lowest value of a coordinate.")]
High = Annotated[float, typer.Option("--high", help="Highest value of a coordinate.")]
Delta = Annotated[float, typer.Option("--delta", help="Delta of the mechanisms that need one.")]
Answers = Annotated[
    str, typer.Option(metavar="K,K,...", help="Number of possible answers of each question, separated by commas.")
]
Out = Annotated[Path | None, typer.Option("--out", help="Folder to create. Default: runs/mechanisms-<D>-<time>.")]
Sensitive = Annotated[
    str | None, typer.Option(metavar="I,J,...", help="Columns of the sensitive input, counted from 0.")
]
Gamma = Annotated[float, typer.Option(min=0.0, max=1.0, help="Weight of importance (SHAP) against sensitivity.")]
PublicShare = Annotated[
    float | None,
    typer.Option(
        metavar="RHO",
        help="For experiments: declare a random share of the nodes (drawn by --seed) public. "
        "Without it all of DATA must be public.",
    ),
]
ScoresOut = Annotated[Path, typer.Option("--out", help="File to write: one number a line, for --set scores=FILE.")]


def group() -> typer.Typer:
    app = typer.Typer(help="List and compare mechanisms.")
    app.callback()(lambda: None)
    app.command("list")(list_mechanisms)
    app.command("compare")(compare_mechanisms)
    app.command("categories")(compare_category_mechanisms)
    app.command("scores")(scores)
    return app


def list_mechanisms(as_json: options.Json = False) -> None:
    """List all mechanisms: what each protects, the size of a report, its source."""
    from graphveil.mechanisms import catalogue

    with working():
        mechanisms = [info.facts() for info in catalogue()]
    short = [
        {key: facts[key] for key in ("name", "mechanism", "source", "unit", "report", "note")} for facts in mechanisms
    ]
    emit({"mechanisms": mechanisms}, as_json=as_json, screen=lambda: tables.blocks(short))


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
    """Compare all feature mechanisms on synthetic vectors: error, report size and speed, in tables and a picture."""
    from graphveil.files.outputs import new_output
    from graphveil.mechanisms.comparison import Question, compare
    from graphveil.privacy import SecureRandomness
    from graphveil.reports.compare import mechanisms as mechanism_comparison
    from graphveil.reports.runs import folder as run_folder

    if not usable_range(low, high):
        raise InputError(f"the range is {low:g} to {high:g}", where="--low, --high", allowed=RANGES)
    epsilons = tuple(value for value in choices.several("epsilon", epsilon) if value is not None)
    question = Question(epsilons, dimension, users, low, high, delta)
    default = run_folder.default_folder("mechanisms", str(dimension), datetime.now())
    with working() as progress, new_output(out, default, say=complain) as output:
        results = compare(question, randomness=SecureRandomness(), progress=progress)
        answer = output.write(lambda path: mechanism_comparison.write(question, results, path))
    emit(answer, as_json=as_json, screen=lambda: _comparison_screen(question, results, output.path))


def compare_category_mechanisms(
    epsilon: Epsilons = "0.5,1,2", answers: Answers = "2,8,256", as_json: options.Json = False
) -> None:
    """Compare all mechanisms for one answer out of several: error, report size, and all questions under one budget."""
    from graphveil.mechanisms.comparison import compare_categories, compare_together

    with working():
        epsilons, counts = choices.several("epsilon", epsilon), choices.several("answers", answers, int)
        rows, together = compare_categories(epsilons, counts), compare_together(epsilons, counts)
    answer = {"rows": [asdict(row) for row in rows], "together": [asdict(row) for row in together]}
    emit(answer, as_json=as_json, screen=lambda: _categories_screen(rows, together))


def scores(
    data: options.Data,
    out: ScoresOut = Path("scores.txt"),
    sensitive: Sensitive = None,
    gamma: Gamma = 0.5,
    public_share: PublicShare = None,
    seed: options.Seed = 0,
    data_root: options.DataRoot = None,
    as_json: options.Json = False,
) -> None:
    """Compute budget shares for feature-rr from public rows: how important and how sensitive each feature is."""
    try:
        columns = () if sensitive is None else tuple(int(part) for part in sensitive.split(","))
    except ValueError:
        raise InputError(f"{sensitive!r}", where="--sensitive", allowed="numbers of columns, such as 0,3") from None
    if out.exists():
        raise InputError(f"{out} is there already", where="--out", remedy="name another file")

    from graphveil.graphs import load_plain
    from graphveil.methods.release.scores import masked_columns, public_part, public_scores, public_share_of

    with working() as progress:
        graph = load_plain(data, data_root, progress=progress)
        if public_share is None and "features" in graph.schema.private:
            raise InputError(
                f"{graph.schema.name} declares its features private",
                allowed="data whose features are public",
                remedy="for an experiment declare a share of the people public: --public-share 0.1",
            )
        part = public_part(graph, public_share_of(graph, public_share, seed))
        masked = masked_columns(part, columns) if columns else None
        result = public_scores(part, masked=masked, gamma=gamma, seed=seed)
        # The stamp first: the collector states it beforehand, to show later that nothing was changed.
        lines = [f"# {result.note}; stamp {result.stamp}", *(repr(share) for share in result.shares)]
        write_text(out, "\n".join(lines) + "\n")
    answer = {"file": str(out), "note": result.note, "stamp": result.stamp, "shares": list(result.shares)}
    least, most = min(result.shares), max(result.shares)
    facts = {"file": str(out), "from": result.note, "shares": f"{least:.3g} to {most:.3g}", "stamp": result.stamp}
    emit(answer, as_json=as_json, screen=lambda: tables.described(facts))
