"""The page of threats: each line names a test that is there, and every party that the design names is on it."""

from __future__ import annotations

import ast
import re

import pytest

from tests.pages import ROOT, table

LINES = table("collection-threats")


@pytest.mark.parametrize("line", LINES, ids=lambda line: line[1][:40])
def test_each_threat_has_a_test(line: list[str]) -> None:
    named = re.findall(r"`([\w/]+\.py)::(\w+)`", line[-1])
    assert len(line) == 4 and named
    for file, test in named:
        statements = ast.parse((ROOT / "tests" / file).read_text()).body
        assert test in {each.name for each in statements if isinstance(each, ast.FunctionDef)}, f"{file}::{test}"


def test_every_party_may_try_something() -> None:
    parties = {"organiser", "collector", "whoever had the export", "participant", "stranger", "network", "a crash"}
    assert {line[0] for line in LINES} == parties
