"""A terminal to type commands into, in this process: fast, with stdout and stderr kept apart."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console, RenderableType

from graphveil.cli import main


def text_of(screen: RenderableType, width: int = 80) -> str:
    """What a screen shows on a terminal of that width."""
    out = io.StringIO()
    Console(file=out, width=width, highlight=False, markup=False, emoji=False, color_system=None).print(screen)
    return out.getvalue()


@dataclass(frozen=True)
class Answer:
    """What a command printed and its exit code."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> dict[str, Any]:
        """The one object on stdout; fails on anything else there and on literals that JSON lacks."""
        answer = json.loads(self.out, parse_constant=pytest.fail)
        assert isinstance(answer, dict)
        assert self.out.count("\n") == 1
        return answer

    @property
    def good(self) -> Answer:
        """Itself, of a command that worked."""
        assert self.code == 0, self.err
        return self

    def refused(self, *parts: str) -> None:
        """Refused in one line that says all of this, with nothing on stdout."""
        assert (self.code, self.out) == (2, ""), self.err
        assert self.err.startswith("error: ") and self.err.count("\n") == 1, self.err
        for part in parts:
            assert part in self.err, self.err


Terminal = Callable[..., Answer]


@pytest.fixture
def type_in(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Terminal:
    """Run ``graphveil WORDS...`` in an empty folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GRAPHVEIL_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.delenv("FORCE_COLOR", raising=False)

    def run(*words: object) -> Answer:
        capsys.readouterr()
        code = main([str(word) for word in words])
        captured = capsys.readouterr()
        return Answer(code, captured.out, captured.err)

    return run


@pytest.fixture(scope="session")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run folder of a short real run on the digits."""
    folder = tmp_path_factory.mktemp("runs") / "run"
    code = main(
        ["train", "lpgnn", "digits", "--epochs", "5", "--epsilon-y", "2", "--no-controls", "--out", str(folder)]
    )
    assert code == 0
    return folder


@pytest.fixture
def quick_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pictures take seconds to draw: where nobody looks at the report of a run, it is two words."""
    monkeypatch.setattr("graphveil.reports.runs.folder.page_html", lambda *_: "a page")
