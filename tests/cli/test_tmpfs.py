"""Commands on a disk of 64 kB that really is full: a tmpfs, where this process may mount one."""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.conftest import Terminal
from tests.fuzz.targets import people

SIZE = 64 << 10
TRAIN = ("lpgnn", "PEOPLE", "--epsilon-x", 1, "--epsilon-y", 1, "--epochs", 1, "--no-controls", "--threads", 1)
COMMANDS = {
    "train": ("train", *TRAIN, "--out", "OUT"),
    "tune": ("tune", *TRAIN, "--over", "hidden=4,8", "--out", "OUT"),
    "tune at a price": (
        *("tune", "gap", "PEOPLE", "--epsilon", 4, "--delta", 0.01, "--over", "hops=1,2", "--trials", 2),
        *("--no-controls", "--threads", 1, "--out", "OUT"),
    ),
    "release": ("release", "edge-rand", "PEOPLE", "--epsilon-a", 1, "-o", "OUT"),
    "split": ("federation", "split", "digits", "-o", "OUT"),
    "compare": ("compare", *TRAIN, "--repeats", 1, "--out", "OUT"),
}


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk that holds 64 kB."""
    if not sys.platform.startswith("linux"):
        pytest.skip("no tmpfs on this system")
    folder = tmp_path / "disk"
    folder.mkdir()
    system = ctypes.CDLL(None, use_errno=True)
    if system.mount(b"tmpfs", os.fsencode(folder), b"tmpfs", 0, f"size={SIZE}".encode()) != 0:
        pytest.skip(f"this process may not mount a tmpfs: {os.strerror(ctypes.get_errno())}")
    try:
        yield folder
    finally:
        assert system.umount2(os.fsencode(folder), 2) == 0


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return people(tmp_path_factory.mktemp("data") / "people")


@pytest.mark.slow  # a disk that is full; what is written at all is watched in test_full_disk.py
@pytest.mark.parametrize("filled", [False, True], ids=["small", "full"])
@pytest.mark.parametrize("command", COMMANDS)
def test_a_full_disk_is_one_line_with_the_path_and_nothing_is_left(
    type_in: Terminal, small_disk: Path, data: Path, command: str, filled: bool
) -> None:
    if filled:
        with (small_disk / "filler").open("wb", buffering=0) as file, pytest.raises(OSError, match="No space left"):
            while True:
                file.write(bytes(4096))
    names = {"PEOPLE": data, "OUT": small_disk / "out"}
    answer = type_in(*(names.get(word, word) if isinstance(word, str) else word for word in COMMANDS[command]))
    said = answer.err.splitlines()
    assert answer.code == 2, answer.err
    assert [line for line in said if line.startswith(("error:", "fault", "Traceback"))] == said[-1:]
    assert str(small_disk) in said[-1]
    assert "No space left on device" in said[-1]
    assert answer.out == ""
    left = {path.name for path in small_disk.rglob("*") if path.is_file()} - {"filler"}
    assert left <= ({"comparison.json"} if command == "compare" else set())
