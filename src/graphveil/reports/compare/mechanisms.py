"""What ``graphveil mechanisms compare`` leaves behind: its answer as JSON and its picture."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from graphveil.mechanisms.comparison import Measurement, Question, Refusal, measured, refused
from graphveil.reports.base import figures
from graphveil.reports.base.files import new_folder, to_json, write_bytes, write_text
from graphveil.reports.compare.mechanism_figure import mechanism_figure


def write(question: Question, results: Sequence[Measurement | Refusal], folder: Path) -> dict[str, Any]:
    """Make the folder with ``comparison.json``, ``figure.png`` and ``figure.svg``; returns what the JSON holds.

    Where every mechanism refuses, there is nothing to draw and ``figure`` is ``None``.

    Args:
        question: which vectors and range were asked for.
        results: one for each mechanism and epsilon.
        folder: to be made; must be new or empty.

    Raises:
        InputError: the folder is already used.
    """
    content = {
        "dimension": question.dimension,
        "users": question.count,
        "low": question.low,
        "high": question.high,
        "input": question.input,
        "rows": [asdict(row) for row in measured(results)],
        "refused": [asdict(row) for row in refused(results)],
        "folder": str(folder),
        "figure": str(folder / "figure.png") if measured(results) else None,
    }
    with new_folder(folder) as place:
        write_text(place / "comparison.json", to_json(content, indent=2) + "\n")
        if measured(results):
            picture = mechanism_figure(question, measured(results))
            write_bytes(place / "figure.png", figures.png(picture))
            write_text(place / "figure.svg", figures.svg(picture))
    return content
