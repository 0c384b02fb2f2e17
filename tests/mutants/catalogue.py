"""Mutants: one-line bugs, each of which breaks a promise, with the tests that must notice it.

One TOML file a mutant, `tests/mutants/ROOM/NAME.toml`:

    file    what is changed, from the root of the repository
    old     text that stands in the file exactly once
    new     what stands there instead, or nothing
    breaks  the promise that this breaks, in one or two sentences
    tests   pytest node ids; each passes on the source as it is, and at least one fails on the mutant
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parent.parent.parent
FOLDER: Final = Path(__file__).parent
#: Every test that is named here runs in at most so many seconds, the start of Python left out.
SECONDS: Final = 20.0
_FIELDS: Final = {"file", "old", "new", "breaks", "tests"}


class StaleMutantError(Exception):
    """A mutant that does not fit the source as it is now."""


@dataclass(frozen=True)
class Mutant:
    """One bug; `name` is ROOM/NAME. See the head of this file for the other fields."""

    name: str
    file: str
    old: str
    new: str
    breaks: str
    tests: tuple[str, ...]

    def applied(self, text: str) -> str:
        """The mutated text of `file`; raises StaleMutantError where `old` does not stand in it exactly once."""
        times = text.count(self.old)
        if times != 1:
            raise StaleMutantError(f"{self.name}: the old text stands {times} times in {self.file}")
        return text.replace(self.old, self.new)


def read_mutant(path: Path) -> Mutant:
    """The mutant of one file; raises StaleMutantError for fields that are missing, unknown or empty."""
    name = path.relative_to(FOLDER).with_suffix("").as_posix()
    fields = tomllib.loads(path.read_text(encoding="utf-8"))
    empty = [field for field, value in fields.items() if not value and field != "new"]
    if set(fields) != _FIELDS or empty or fields["old"] == fields["new"]:
        raise StaleMutantError(f"{name}: fields are {sorted(fields)}, wanted {sorted(_FIELDS)}; empty: {empty}")
    return Mutant(name, fields["file"], fields["old"], fields["new"], fields["breaks"].strip(), tuple(fields["tests"]))


def read_mutants() -> list[Mutant]:
    """All mutants, by name."""
    return [read_mutant(path) for path in sorted(FOLDER.glob("*/*.toml"))]
