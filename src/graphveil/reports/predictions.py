"""Predictions as a table: one row for each node, in the user's own ids."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from graphveil.errors import InputError

if TYPE_CHECKING:
    from torch import Tensor
    from torch_geometric.data import Data

_ENDINGS = (".csv", ".parquet")


def check_file(path: Path | None) -> None:
    """Refuse a file that could not be written, before anything is computed.

    Raises:
        InputError: the name ends in neither .csv nor .parquet, exists already, or lies in no folder.
    """
    if path is None:
        return
    if path.suffix.lower() not in _ENDINGS:
        raise InputError(str(path), where="--out", allowed="a name ending in .csv or .parquet")
    if path.exists():
        raise InputError(f"{path} exists", where="--out", remedy="name a new file; nothing is overwritten")
    if not path.parent.is_dir():
        raise InputError(f"{path.parent} is no folder", where="--out")


def tabulate(probabilities: Tensor, graph: Data, classes: tuple[str, ...]) -> pl.DataFrame:
    """One row for each node.

    Args:
        probabilities: [n, c], a row for each node.
        graph: the graph they are for; its ``ids`` are used where it has them, else row numbers.
        classes: the c names.

    Returns:
        Columns ``id``, ``prediction``, ``probability`` and one ``p(<class>)`` for each class.
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
    """Write a table to ``path``, whole or not at all, as CSV or Parquet by its name."""
    partial = path.with_name(f".{path.name}.partial-{os.getpid()}")
    try:
        if path.suffix.lower() == ".csv":
            table.write_csv(partial)
        else:
            table.write_parquet(partial)
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def summary(table: pl.DataFrame, *, run: str, data: str, out: Path | None) -> dict[str, Any]:
    """What ``graphveil predict`` answers: nodes of each class, and the rows unless they went to a file."""
    counted = table["prediction"].value_counts(sort=True)
    answer: dict[str, Any] = {
        "run": run,
        "data": data,
        "nodes": len(table),
        "predicted": dict(counted.iter_rows()),
        "out": None if out is None else str(out),
    }
    if out is None:
        answer["predictions"] = table.select("id", "prediction", "probability").to_dicts()
    return answer
