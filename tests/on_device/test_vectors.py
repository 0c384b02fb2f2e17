"""The vectors of the standard: the Python client passes them, and nobody changed them."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator

import pytest

from graphveil.device import DeviceError
from graphveil.device.canonical import canonical
from tests.on_device.vectors import FILES, vectors
from tests.pages import DOCS, ROOT


def cases() -> Iterator[tuple[str, str]]:
    """Every operation, and the code that it was refused with."""
    for name in FILES:
        yield from ((case["in"].get("op", ""), case["out"].get("error", "")) for case in vectors(name))


def run(lines: list[str]) -> list[str]:
    command = [sys.executable, "-m", "graphveil.device", "lines"]
    done = subprocess.run(command, input="\n".join(lines), capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


@pytest.mark.parametrize("name", FILES)
def test_the_program_passes_them(name: str) -> None:
    cases = vectors(name)
    answers = run([json.dumps(case["in"]) for case in cases])
    assert [json.loads(line) for line in answers] == [case["out"] for case in cases]


@pytest.mark.parametrize("value", [{1: 2}, {"a": [None]}, "\ud800", b"a", {1}])
def test_what_no_json_holds_has_no_spelling(value: object) -> None:
    with pytest.raises(DeviceError, match=r"^not-canonical: "):
        canonical(value)


def test_every_code_is_in_the_table_and_in_a_vector() -> None:
    """What the source raises, what the page explains, what a vector shows: the same codes."""
    sources = (ROOT / "src" / "graphveil" / "device").rglob("*.py")
    raised = {code for file in sources for code in re.findall(r'DeviceError\(\s*"([a-z-]+)"', file.read_text())}
    page, _ = (DOCS / "standard" / "refused.md").read_text().split("## What a collector answers")
    explained = set(re.findall(r"^\| `([a-z-]+)` \|", page, re.M))
    assert raised | {"bad-line"} == explained
    # Folders, key stores and connections are a client's own affair.
    own = {"ledger", "command", "enrolment", "collector", "keystore"}
    assert {code for _, code in cases() if code} == explained - own
