"""Why a studio does not do what a page asks, in one line; and what of a command's errors a page may show."""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

STATUS: Final[Mapping[str, int]] = MappingProxyType(
    {
        "bad-request": 400,
        "bad-path": 400,
        "not-admitted": 401,
        "forbidden": 403,
        "not-found": 404,
        "used": 409,
        "stale": 409,
        "other-price": 409,
        "too-large": 413,
        "wrong-host": 421,
        "refused": 422,
        "too-slow": 422,
        "too-often": 429,
        "fault": 500,
        "no-room": 507,
    }
)
#: A line or row of a table, in a command's error.
_CELL: Final = re.compile(r"^(?P<where>.*?\.(?:csv|parquet), (?:line|row) [\d,]+): (?P<what>.*)$", re.DOTALL)
_PARSER: Final = re.compile(r"(\.(?:csv|parquet): cannot be read) \(.*\)")


class Refusal(Exception):
    """A request that is refused.

    Args:
        code: of `STATUS`.
        line: what was refused and why, in one line.
    """

    def __init__(self, code: str, line: str) -> None:
        super().__init__(line)
        self.code, self.line = code, " ".join(line.split())

    @property
    def status(self) -> int:
        return STATUS[self.code]


def without_cells(line: str, columns: tuple[str, ...] = ()) -> str:
    """Return a command's error without the cell that it quotes: file, line, column and what is allowed remain.

    Args:
        line: one error.
        columns: names that a declaration makes public, to say which column it is.
    """
    match = _CELL.match(line)
    if match is None:
        return _PARSER.sub(r"\1", line)
    what, *rest = match["what"].split("; allowed: ")
    # What stands there is somebody's: it is seen in the file, by its owner.
    column = next((f" of {name}" for name in sorted(columns, key=len, reverse=True) if what.startswith(name)), "")
    kind = " is missing" if what.endswith(" is missing") else " cannot be used"
    allowed = f"; allowed: {rest[0].split('; ')[0]}" if rest else ""
    return (
        f"{match['where']}: the value{column}{kind}{allowed}; open the file at this place, the value is not shown here"
    )
