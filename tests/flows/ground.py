"""Where the flows of one kind of data run: its folder, what commands left beside it, and what they answered."""

from __future__ import annotations

import io
import json
import shutil
import traceback
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

import polars as pl

from graphveil.cli import main
from tests.flows.kinds import Kind

if TYPE_CHECKING:
    from tests.flows.commands import Command

#: What a command must not say: of itself, or through a library.
NOISE: Final = ("Traceback", "Warning:")


@dataclass(frozen=True)
class Outcome:
    """What a command answered.

    Attributes:
        words: typed after ``graphveil``.
        code, out, err: exit code, stdout and stderr.
        changed: files that are there or other than before, or no more.
    """

    words: tuple[str, ...]
    code: int
    out: str
    err: str
    changed: tuple[str, ...] = ()

    def fault(self, as_json: bool) -> str | None:
        """What speaks against its having worked."""
        if self.code != 0:
            return "does not work"
        if any(word in self.err for word in NOISE):
            return "a library speaks"
        return None if (is_json(self.out) if as_json else self.out) else "no answer"

    def no_refusal(self, reason: str, answers: bool) -> str | None:
        """What speaks against a clean refusal for a reason: one line, nothing left or spent.

        Args:
            answers: whether something stands on stdout before it.
        """
        if self.code != 2:
            return f"is not refused with {reason!r}"
        errors = [line for line in self.err.splitlines() if line.startswith("error: ")]
        if len(errors) != 1 or not self.err.endswith(f"{errors[0]}\n"):
            return "does not end in one line that begins with 'error: '"
        if self.changed or bool(self.out) != answers:
            return "leaves something"
        return None if reason in errors[0] else f"is refused, but not with {reason!r}"

    def __str__(self) -> str:
        return (
            f"graphveil {' '.join(self.words)}\nexit {self.code}\n{self.out[-600:]}\n{self.err[-3000:]}\n{self.changed}"
        )


@dataclass
class Ground:
    """A kind's folder and the outcomes so far; it is the working directory of its commands."""

    kind: Kind
    root: Path
    outcomes: dict[str, Outcome] = field(default_factory=dict)

    def typed(self, folder: Path) -> str:
        """The folder, as this kind's user types it."""
        relative = str(folder.relative_to(self.root))
        return {"absolute": str(folder), "relative": relative, "slash": f"./{relative}/"}[self.kind.typed]

    @property
    def truth(self) -> str:
        """The tables."""
        folder = self.root / self.kind.folder
        if not folder.exists():
            self.kind.write(folder)
        return self.typed(folder)

    @property
    def newcomers(self) -> str:
        """Tables of people who joined later."""
        folder = self.root / "later" / self.kind.folder
        if not folder.exists():
            self.kind.write(folder, newcomers=True)
        return self.typed(folder)

    @property
    def data(self) -> str:
        """What is typed as DATA."""
        if self.kind.source == "folder":
            return self.truth
        if self.kind.source.startswith("social"):
            return self.kind.source
        return self.typed(SOURCES[self.kind.source](self))

    def people(self, method: str) -> tuple[str, ...]:
        """The option that says that people of other data are others, where a method asks for it."""
        asks = method in ("lpgnn", "upgnet", "solitude", "blink", "dprr")
        return ("--people", "other") if asks and self.kind.source.startswith(("social", "collected")) else ()

    @property
    def true(self) -> tuple[str, ...]:
        """The option that names the truth, where the kind's data are not the truth."""
        return (
            ("--truth", self.truth)
            if self.kind.source in ("released", "counted", "collected", "collected lists")
            else ()
        )

    def beside(self, method: str) -> tuple[str, ...]:
        """Options that DATA needs for a method."""
        return ("--edges", self.edges) if self.kind.source == "collected" else ()

    def asking(self, method: str) -> tuple[str, ...]:
        """The question that answer-pool puts to people without a label."""
        named = self.kind.columns in ("form", "gaps") and not self.kind.source.startswith("social")
        question = "car" if named else "0>=0.5"
        return ("--set", f"question={question}") if method == "answer-pool" else ()

    @property
    def split(self) -> tuple[str, ...]:
        """The option that takes the declared split, where there is one that leaves a label to measure by."""
        return ("--split", "declared") if self.kind.split in ("whole", "one class") else ()

    @property
    def edges(self) -> str:
        """A file of public edges alone."""
        file = self.root / "edges.parquet"
        if not file.exists():
            pl.read_csv(Path(self.truth) / "edges.csv").write_parquet(file)
        return str(file)

    def folder(self, name: str) -> Path:
        """Where the command of a name writes."""
        return self.root / name.replace(" ", "-")

    def copy(self, name: str, of: str) -> Path:
        """A copy of what one command left, for another to work on."""
        place = self.folder(name) / "run"
        if not place.exists():
            shutil.copytree(self.folder(of), place, symlinks=True)
        return place

    def outcome(self, command: Command, as_json: bool = False) -> Outcome:
        """What a command answers here, run once; what it needs runs before it."""
        if command.name in self.outcomes:
            return self.outcomes[command.name]
        for needed in command.after():
            before = self.outcome(needed)
            assert before.code == 0, f"{command.name} needs {needed.name}\n{before}"
        words = command.words(self)
        outcome = self.run(*words, *(["--json"] if as_json and command.speaks_json else []))
        self.outcomes[command.name] = outcome
        return outcome

    def run(self, *words: object) -> Outcome:
        """Type a command."""
        typed, out, err = tuple(map(str, words)), io.StringIO(), io.StringIO()
        before = self._files()
        with redirect_stdout(out), redirect_stderr(err):
            try:
                code = main(typed)
            except BaseException:
                code = 1
                traceback.print_exc()
        after = self._files()
        changed = tuple(sorted(name for name in {*before, *after} if before.get(name) != after.get(name)))
        return Outcome(typed, code, out.getvalue(), err.getvalue(), changed)

    def _files(self) -> dict[str, tuple[int, int]]:
        stamps = {}
        for path in self.root.rglob("*"):
            stat = path.lstat()
            stamps[str(path.relative_to(self.root))] = (0, 0) if path.is_dir() else (stat.st_size, stat.st_mtime_ns)
        return stamps


def _created(ground: Ground, name: str, *words: object) -> Path:
    place = ground.folder(name)
    if not place.exists():
        answer = ground.run(*words, "--out", place)
        assert answer.code == 0, answer
    return place


def _collected(ground: Ground, *prices: object) -> Path:
    task = _created(ground, "task", "collect", "init", ground.truth, *prices, "--least", 3)
    return _created(ground, "collected", "collect", "simulate", task, ground.truth)


SOURCES: Final[dict[str, Callable[[Ground], Path]]] = {
    "stored": lambda ground: _created(ground, "stored", "data", "store", ground.truth),
    "released": lambda ground: _created(
        ground, "released", "release", "heterorr", ground.truth, "--epsilon-x", 2, "--epsilon-a", 2, "--without-lift"
    ),
    "counted": lambda ground: _created(
        ground, "counted", "release", "class-counts", ground.truth, "--epsilon-a", 2, "--without-lift"
    ),
    "collected": lambda ground: _collected(ground, "--epsilon-x", 4, "--epsilon-y", 3),
    "collected lists": lambda ground: _collected(ground, "--epsilon-y", 3, "--epsilon-a", 4),
}


def is_json(text: str) -> bool:
    """Whether a text is one JSON object on one line, without literals that JSON lacks."""

    def refuse(literal: str) -> None:
        raise ValueError(literal)

    return text.count("\n") == 1 and isinstance(json.loads(text, parse_constant=refuse), dict)
