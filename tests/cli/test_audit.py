"""``audit``: one object, a screen that fits, and an exit code that scripts can read."""

from __future__ import annotations

import pytest

from graphveil.mechanisms import RandomizedResponse
from tests.cli.conftest import Terminal


def test_one_object(type_in: Terminal) -> None:
    answer = type_in("audit", "randomized-response", "--json")
    assert answer.code == 0
    found = answer.json
    assert (found["target"], found["verdict"]) == ("randomized-response", "holds")
    assert [one["false_alarm"] for one in found["audits"]] == [0.0, 1e-6]
    assert set(found["audits"][0]) == {
        "target", "claimed_epsilon", "delta", "lower_bound", "false_alarm", "verdict", "seconds", "notes",
    }  # fmt: skip


def test_the_screen_fits_a_terminal(type_in: Terminal) -> None:
    answer = type_in("audit", "class-sums")
    assert answer.code == 0
    assert max(map(len, answer.out.splitlines())) <= 80
    assert "no claim broken" in answer.out and "holds" in answer.out


def test_a_broken_claim_has_an_exit_code_of_its_own(type_in: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    real, weak = RandomizedResponse.randomize, RandomizedResponse(epsilon=2.0, classes=7)
    monkeypatch.setattr(RandomizedResponse, "randomize", lambda me, values, **rest: real(weak, values, **rest))
    answer = type_in("audit", "randomized-response", "--json")
    assert answer.code == 3
    assert [one["verdict"] for one in answer.json["audits"]] == ["holds", "broken"]
    assert "1 of 2 claims broken" in type_in("audit", "randomized-response").out


def test_an_unknown_target_is_refused(type_in: Terminal) -> None:
    answer = type_in("audit", "nothing", "--json")
    assert (answer.code, answer.out) == (2, "")
    assert "mechanisms, methods, all" in answer.err
