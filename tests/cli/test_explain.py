"""``graphveil explain``: every code, one code, and a mistyped one."""

from __future__ import annotations

import json

import pytest

from graphveil.cli.app import main
from graphveil.collection.refusal_codes import REFUSAL_CODES
from graphveil.privacy.registry import CODES


def test_one_code_says_what_it_means_and_what_backs_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "one-relationship"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    entry = CODES["one-relationship"]
    for said in (entry.code, entry.sentence, entry.means, entry.limits, f"Backed by {entry.backed_by}"):
        assert said in shown


def test_a_joined_code_explains_each_part(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "one-user-features+one-user-label", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["codes"]
    assert [entry["code"] for entry in found] == ["one-user-features", "one-user-label"]


def test_without_a_code_all_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain"]) == 0
    shown = capsys.readouterr().out
    assert all(code in shown for code in CODES)
    assert main(["explain", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["codes"]
    assert [entry["code"] for entry in found] == [*CODES, *REFUSAL_CODES]
    assert set(found[0]) == {"code", "group", "sentence", "means", "limits", "backed_by"}


def test_a_refusal_says_what_to_do(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "bad-tag"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    entry = REFUSAL_CODES["bad-tag"]
    assert f"Says {entry.sentence}" in shown and f"To do {entry.limits}" in shown


def test_an_assumption_says_when_it_breaks(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "reports-once"]) == 0
    assert "Breaks when" in capsys.readouterr().out


def test_a_mistyped_code_is_refused_in_one_line_with_the_nearest_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "one-relationshp"]) == 2
    out = capsys.readouterr()
    assert out.out == "" and out.err.count("\n") == 1
    assert "code 'one-relationshp' is not known" in out.err and "did you mean one-relationship?" in out.err
