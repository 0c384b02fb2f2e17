"""The rules of selection by name; no torch is needed to read them."""

from __future__ import annotations

from typing import Literal, get_args

SelectionName = Literal["robust", "published", "last"]
SELECTIONS: tuple[str, ...] = get_args(SelectionName)
