"""What a target of fuzzing is."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.fuzz.mutate import mutate

#: A command, or a reader that is called without one.
Words = Sequence[object] | Callable[[], object]


@dataclass(frozen=True)
class Target:
    """A folder of valid files, one of which is changed, and what then runs on a copy of it.

    Args:
        folder: the valid files; never written to.
        files: those that are changed, by patterns relative to the folder.
        commands: given the copy, what may be typed, or called; one of them is, by seed.
        change: how a file's content is changed.
        accepted: looks at the copy after exit code 0, and fails where it does not mean what it says.
    """

    name: str
    folder: Path
    files: tuple[str, ...]
    commands: Callable[[Path, random.Random], Sequence[Words]]
    change: Callable[[bytes, str, random.Random], bytes] = mutate
    accepted: Callable[[Path], None] = lambda copy: None
