"""How a degree bound can be kept, by name; `degree_bound` says what each rule does."""

from __future__ import annotations

from typing import Final, Literal, get_args

Rule = Literal["lists", "declared"]
RULES: Final[tuple[str, ...]] = get_args(Rule)
