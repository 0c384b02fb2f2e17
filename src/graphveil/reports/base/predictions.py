"""Predictions as a table: one row for each node, in the user's own ids."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from graphveil.errors import InputError, UsedPathError
from graphveil.files.writing import whole_file
from graphveil.graphs import Graph
from graphveil.methods.base.estimator import Estimator
from graphveil.methods.base.people.local_privacy import LocalPrivacy
from graphveil.methods.base.people.people import Identity
from graphveil.methods.curator.privacy import CuratorPrivacy
from graphveil.privacy import Guarantee, Spend
from graphveil.privacy.accounting.printed import rounded_up
from graphveil.reports.base.parts import OWN
from graphveil.reports.base.text import spreadsheet
from graphveil.runtime.late import polars as pl

if TYPE_CHECKING:
    from torch import Tensor

    from graphveil.methods.links.privacy import LinkPrivacy
    from graphveil.methods.release.privacy import ReleasePrivacy

_FREE_FOR_REPORTERS = "for people who have reported predicting costs nothing more"
_ENDINGS = (".csv", ".parquet")
#: Note for graphs with several labels a node.
SEVERAL = "each node is listed under its likeliest label; all labels with p above 0.5 (--out) are what F1 counts"
#: Note for guarantees that protect whole nodes.
EYES = "each row is for that person's eyes alone: epsilon is what everybody else may learn"


def check_file(path: Path | None, where: str = "--out") -> None:
    """Refuse a file that exists (UsedPathError), another ending than .csv and .parquet, or no folder (InputError).

    Args:
        path: None: no file was requested.
        where: the option that named it.
    """
    if path is None:
        return
    if path.suffix.lower() not in _ENDINGS:
        raise InputError(str(path), where=where, allowed="a name ending in .csv or .parquet")
    if path.exists():
        raise UsedPathError(f"{path} exists", where=where, remedy="name a new file; files are never overwritten")
    if not path.parent.is_dir():
        raise InputError(f"{path.parent} is not a folder", where=where)


def check_people(people: str | None, model: Estimator) -> None:
    """Raise InputError for an unknown value of `--people`, or any value for a method without that option.

    Args:
        people: the value; None: the option was not used.
    """
    if people is None:
        return
    if people not in get_args(Identity):
        raise InputError(repr(people), where="--people", allowed=", ".join(get_args(Identity)))
    if "people" not in model.says_who:
        raise InputError(
            f"--people does not apply to {model.name}", allowed="with lpgnn, upgnet, solitude, blink and dprr"
        )


def tabulate(probabilities: Tensor, graph: Graph, classes: tuple[str, ...]) -> pl.DataFrame:
    """One row for each node: ``id``, ``prediction``, ``probability`` and one ``p(<class>)`` for each class.

    Args:
        probabilities: [n, c].
        graph: without ``ids``, row numbers are used.
    """
    values = probabilities.detach().cpu().numpy()
    best = values.argmax(axis=1)
    ids = graph.get("ids")
    return pl.DataFrame(
        {
            "id": pl.Series(list(range(len(values))) if ids is None else list(ids)),
            "prediction": [classes[index] for index in best],
            "probability": values.max(axis=1),
            **{f"p({name})": values[:, index] for index, name in enumerate(classes)},
        }
    )


def write(table: pl.DataFrame, path: Path) -> None:
    """Write a table, readable by its owner only, whole or not at all.

    Args:
        path: its ending, .csv or .parquet, decides the format.
    """
    # Rows name people: their owner decides who may see them.
    with whole_file(path, mode=OWN) as partial:
        if path.suffix.lower() == ".csv":
            spreadsheet_table(table).write_csv(partial)
        else:
            table.write_parquet(partial)


def write_own(model: Estimator, graph: Graph, path: Path) -> str:
    """Write the predictions of a fitted model for the people of its training; return in a sentence who may see them.

    Args:
        graph: of the training; nothing more is read or paid.
    """
    write(tabulate(model.predict_proba(), graph, model.schema.classes), path)
    return EYES if model.own_rows else "what the guarantee says of the model holds for them too"


def spreadsheet_table(table: pl.DataFrame) -> pl.DataFrame:
    """A table whose texts and headings no spreadsheet reads as formulas, see :func:`text.spreadsheet`."""
    columns = {}
    for name in table.columns:
        series = table[name]
        unchanged = series.dtype != pl.String
        # Texts are ids: one that begins with "=" would run as a formula for whoever opens the table.
        columns[spreadsheet(name)] = series if unchanged else [None if v is None else spreadsheet(v) for v in series]
    return pl.DataFrame(columns)


def cost_sentence(
    privacy: LocalPrivacy | CuratorPrivacy | ReleasePrivacy,
    links: LinkPrivacy | None = None,
    *,
    newcomers: bool = True,
    edges: bool = True,
) -> str:
    """What predicting costs the people of a graph, in one sentence.

    Args:
        links: the budget of neighbour lists, for a method that collects them.
        newcomers: whether people who did not report for the run can be predicted at all.
        edges: whether a curator's method reads edges.
    """
    if isinstance(privacy, CuratorPrivacy) and not edges:
        return f"{EYES}; features alone are read, at no further cost"
    if isinstance(privacy, CuratorPrivacy):
        return _cost_of_query(privacy)
    if not isinstance(privacy, LocalPrivacy):
        return "predicting costs nothing more; this model knows only the nodes that were released"
    if links is not None:
        return _cost_with_lists(privacy, links, newcomers and privacy.collects_features)
    if not privacy.collects_features:
        return "predicting reads no features and costs no privacy"
    if privacy.epsilon_x == math.inf:
        return "another graph than that of the run is read as it is, its private parts too: NOT protected"
    price = rounded_up(privacy.epsilon_x or 0.0)
    return f"{_FREE_FOR_REPORTERS}; new people send one feature report at epsilon {price}, which is kept"


def paid_sentence(spends: Sequence[Spend]) -> str:
    """What a prediction has just spent, in words; "" where it spent nothing."""
    parts = [f"epsilon {rounded_up(spend.epsilon)} on {spend.unit}" for spend in spends]
    return f"; paid now: {', '.join(parts)}" if parts else ""


def _cost_of_query(privacy: CuratorPrivacy) -> str:
    if privacy.unprotected:
        return "nothing is protected (epsilon = inf)"
    # A published file cannot identify the graph, since that would confirm a guess of it.
    cached = "on the graph of the run predicting reads no edges and costs nothing more"
    cached += " (with public/ alone, one without ids is taken for it by name and size)"
    if privacy.protects_nodes:
        cached = f"{EYES}; also the edges of the run's graph are read again"
    if not privacy.queries:
        return f"{cached}; the run has no budget for another graph (queries = 0)"
    price = f"epsilon {rounded_up(privacy.epsilon)}, delta {rounded_up(privacy.delta)}"
    limit = "once" if privacy.queries == 1 else f"{privacy.queries} times"
    repeated = "who was asked about before gets the same answer, whatever has changed"
    return f"{cached}; the edges of another graph are read at {price}, {limit} at most; {repeated}"


def _cost_with_lists(privacy: LocalPrivacy, links: LinkPrivacy, newcomers: bool) -> str:
    if not newcomers:
        return "predicting costs nothing more; this model knows only the people who reported for the run"
    noisy, open_parts = [], []
    if privacy.epsilon_x == math.inf:
        open_parts.append("features")
    else:
        noisy.append(f"one feature report at epsilon {rounded_up(privacy.epsilon_x or 0.0)}")
    if links.public:
        open_parts.append("connections")
    else:
        price = f"epsilon {rounded_up(links.epsilon_a)} a bit"
        if links.relationship_epsilon != links.epsilon_a:
            price += f", {rounded_up(links.relationship_epsilon)} a relationship"
        noisy.append(f"one neighbour list at {price}")
    if not noisy:
        return "on another graph than that of the run, features and connections are sent as they are: NOT protected"
    exception = f", and {open_parts[0]} as they are, NOT protected" if open_parts else ""
    return f"{_FREE_FOR_REPORTERS}; new people send {' and '.join(noisy)}{exception}; the run keeps the answer"


def summary(
    table: pl.DataFrame, *, run: str, data: str, out: Path | None, note: str, guarantee: Guarantee
) -> dict[str, Any]:
    """The output of ``graphveil predict``: nodes of each class, and the rows unless they went to a file.

    Args:
        table: one row for each node, with columns id, prediction and probability.
        out: the file that holds the rows; None: they are part of the output.
        note: what the predictions cost.
        guarantee: of the model, these predictions included.
    """
    if guarantee.void is not None:
        note = f"VOID, no epsilon holds: {guarantee.void}; without that: {note}"
    counts = table["prediction"].value_counts(sort=True)
    answer: dict[str, Any] = {
        "run": run,
        "data": data,
        "nodes": len(table),
        "predicted": dict(counts.iter_rows()),
        "note": note,
        "guarantee": guarantee.to_dict(),
        "guarantee_sentence": guarantee.sentence(),
        "out": None if out is None else str(out),
    }
    if out is None:
        answer["predictions"] = table.select("id", "prediction", "probability").to_dicts()
    return answer
