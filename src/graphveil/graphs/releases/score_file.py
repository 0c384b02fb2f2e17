"""A declared vector in a text file: one number a line, for each feature; `#` begins a comment."""

from __future__ import annotations

import math
from pathlib import Path

from graphveil.errors import DataError
from graphveil.files.reading import read_text


def read_scores(path: str | Path, dimension: int) -> tuple[float, ...]:
    """Return the numbers of a file, one for each feature.

    Args:
        path: of the file; DataError where a line is no finite number of at least 0, or their count is another.
        dimension: d, how many it must hold.
    """
    where = str(path)
    try:
        lines = read_text(Path(path)).splitlines()
    except (FileNotFoundError, DataError) as error:
        raise DataError(f"cannot be read ({error})", where=where, allowed="a text file, one number a line") from error
    scores = []
    for number, line in enumerate(lines, start=1):
        text = line.split("#", 1)[0].strip()
        if text:
            scores.append(_number(text, where, number))
    if len(scores) != dimension:
        raise DataError(f"{len(scores)} scores", where=where, allowed=f"{dimension}, one for each feature")
    return tuple(scores)


def _number(text: str, where: str, line: int) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    # A negative share would take budget from the other features, and nobody would have agreed to their price.
    if not (math.isfinite(value) and value >= 0):
        raise DataError(f"line {line} is {text!r}", where=where, allowed="a number of at least 0")
    return value
