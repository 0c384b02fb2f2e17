"""A device in a folder, and somebody who types its commands."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from graphveil.device.__main__ import main
from tests.on_device.pretended import Pretended, pretended

#: What a command says: code, output, error.
Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "device"


@pytest.fixture
def run(home: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    def run(*words: object) -> tuple[int, str, str]:
        code = main(["--folder", str(home), *map(str, words)])
        return code, *capsys.readouterr()

    return run


@pytest.fixture
def collector(request: pytest.FixtureRequest) -> Iterator[Pretended]:
    """Of the task that a module asks."""
    with pretended(request.module.TASK) as pretended_collector:
        yield pretended_collector


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """What a person knows of themselves."""
    path = tmp_path / "mine.json"
    path.write_text('{"label": "sad"}')
    return path
