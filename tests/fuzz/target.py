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
        folder: never written to. files: those that are changed, by patterns. commands: one of them is typed, by seed.
        accepted: looks at the copy after exit code 0, and fails where it does not mean what it says.
    """

    name: str
    folder: Path
    files: tuple[str, ...]
    commands: Callable[[Path, random.Random], Sequence[Words]]
    change: Callable[[bytes, str, random.Random], bytes] = mutate
    accepted: Callable[[Path], None] = lambda copy: None
