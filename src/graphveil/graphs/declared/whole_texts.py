"""Whole numbers as pandas writes them in a column where some are missing: 1.0 for 1."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import polars

_POINT: Final = r"^(-?(?:0|[1-9][0-9]*))\.0$"


def whole_texts(texts: polars.Series) -> polars.Series:
    """Return "12" for "12.0" if every text that is not null is such a whole number; else the texts as they are."""
    if texts.len() == texts.null_count() or not texts.str.contains(_POINT).all():
        return texts
    return without_point(texts)


def without_point(texts: polars.Series) -> polars.Series:
    return texts.str.replace(_POINT, "$1")


def written_otherwise(value: str, declared: Sequence[str]) -> str | None:
    """Return how to correct a cell that is not written as any declared name; None where no name is near."""
    if value.strip() in declared:
        return "remove the spaces around it"
    if (whole := re.sub(_POINT, r"\1", value)) == value:
        return None
    if whole in declared:
        return f"write {whole}: with a point it is taken only where every value of the column is such a whole number"
    return f"neither {value} nor {whole} is declared; pandas writes {whole} so in a column where some are missing"
