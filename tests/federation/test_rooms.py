"""Inside the federation's room: which part may import which, and what loads with it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.test_house import SOURCE, imports

ROOM = SOURCE / "federation"
#: The parts in the order in which they build on each other; files beside them may import all.
MAY_IMPORT: Mapping[str, set[str]] = {
    "effects": set(),
    "crypto": {"effects"},
    "core": {"effects", "crypto"},
    "modes": {"effects", "crypto", "core"},
    "transport": {"effects", "crypto", "core"},
}


def part_of(file: Path) -> str:
    """The part that a file of the room belongs to, "" for those beside the parts."""
    first = file.relative_to(ROOM).parts[0].removesuffix(".py")
    return first if first in MAY_IMPORT else ""


@pytest.mark.parametrize("part", MAY_IMPORT)
def test_parts_import_only_what_comes_before_them(part: str) -> None:
    files = [file for file in ROOM.rglob("*.py") if part_of(file) == part]
    assert files
    for file in files:
        imported = {name.split(".")[2] for name in imports(file) if name.startswith("graphveil.federation.")}
        wrong = imported - MAY_IMPORT[part] - {part}
        assert not wrong, f"{file.relative_to(ROOM)} imports {wrong}"


def test_every_folder_stands_in_the_table() -> None:
    assert {path.name for path in ROOM.iterdir() if path.is_dir() and path.name != "__pycache__"} < set(MAY_IMPORT)
