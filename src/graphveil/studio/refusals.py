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
#: A place in somebody's data, in a command's error.
_PLACE: Final = re.compile(r"^(?P<where>.*?, (?:line|row|node|edge|link)s? [^ :]+): (?P<what>.*)$", re.DOTALL)
#: A text in quotation marks, which may be cut off; a number or truth that stands alone; what a parser quotes.
_TEXT: Final = re.compile(r"""'(?:[^'\\]|\\.)*(?:'|\.\.\.|$)|"(?:[^"\\]|\\.)*(?:"|\.\.\.|$)""", re.DOTALL)
_NUMBER: Final = re.compile(r"(?<!\w)(?:-?\d[\d.]*(?:e[+-]?\d+)?|nan|-?inf|True|False)(?!\w)")
_PARSER: Final = re.compile(r"(cannot be (?:read|unpacked)[\w ]*|is not JSON|is damaged) \(.*(?:\)|$)", re.DOTALL)
#: A database quotes as it likes, and what it quotes may hold the mark that ends a quotation.
_DATABASE: Final = re.compile(r"(the database refuses [^'\"]*)['\"].*$", re.DOTALL)


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


def without_cells(line: str) -> str:
    """Return a command's error without the cell that it quotes: file, line, column and what is allowed remain."""
    line = _PARSER.sub(r"\1", _DATABASE.sub(r"\1...)", line))
    match = _PLACE.match(line)
    if match is None:
        return line
    where, what = match["where"], _TEXT.sub("...", match["what"])
    if "'" in where or '"' in where:
        # A cell that is quoted looks like a place itself.
        return re.sub("['\"].*", "...", line)
    if where.endswith(", line 1"):
        # Names of columns are public, but what is refused as a name may be a value of a table without names.
        return f"{where}: {what}"
    # Quoted texts went first: one may hold whatever separates the parts of an error.
    what, *rest = what.split("; ")
    allowed = [part for part in rest if part.startswith("allowed: ")]
    # A remedy would repeat the value.
    return "; ".join([f"{where}: {_NUMBER.sub('...', what)}", *allowed, "the file alone shows the value"])
