"""``--unit k-edges``: what commands, cards and codes say of several relationships of one person."""

from __future__ import annotations

from pathlib import Path

import pytest

from graphveil.privacy import Guarantee
from tests.cli.conftest import Terminal

FIVE = ("--unit", "k-edges", "--set", "relationships=5")
PRIVATE = "any set of up to 5 relationships of one person"
FIRST = f"This protects {PRIVATE}, not a person: this epsilon does not cover that person's features, label"


@pytest.mark.parametrize("method", ["class-sums", "gap", "lpgnet"])
def test_a_plan_prices_the_unit_that_was_asked_for(method: str, type_in: Terminal) -> None:
    found = type_in("plan", method, "social-200", "--epsilon", 4, *FIVE, "--json").json
    assert found["epsilon"] == {PRIVATE: 4.0}
    guarantee = Guarantee.from_dict(found["guarantee"])
    assert (guarantee.unit.code, guarantee.epsilon) == ("5*one-relationship-of-a-person", 4.0)
    edge = type_in("plan", method, "social-200", "--epsilon", 4, "--json").json
    five, one = (plan["curator"]["noise"]["sigmas"][0] for plan in (found, edge))
    assert five > 3 * one


def test_a_run_and_its_card_say_it_first(type_in: Terminal, tmp_path: Path) -> None:
    words = ("train", "class-sums", "social-200", "--epsilon", 4, *FIVE, "--epochs", 3, "--no-controls")
    answer = type_in(*words, "--out", "run", "--json")
    assert answer.code == 0
    found = answer.json
    assert found["settings"]["unit"] == "k-edges" and found["settings"]["relationships"] == 5
    assert found["epsilon_relationship"] == pytest.approx(0.8)
    row = found["ledger"]["spends"][0]["parameters"]
    assert (row["unit"], row["relationships"]) == ("k-edges", 5)
    card = (tmp_path / "run" / "card.md").read_text(encoding="utf-8")
    assert FIRST in " ".join(card.split())
    assert "More of one person's relationships at once than 5." in card
    assert "for one relationship, everything released about it included" in card


def test_a_number_is_needed_and_fits_that_unit_alone(type_in: Terminal) -> None:
    for words, said in (
        (("--unit", "k-edges"), "say how many: relationships=5"),
        (("--unit", "edge", "--set", "relationships=5"), "relationships does not apply"),
        (("--unit", "k-edges", "--set", "relationships=0"), "a whole number of at least 1"),
    ):
        answer = type_in("plan", "class-sums", "social-200", *words)
        assert answer.code == 2 and said in " ".join(answer.err.split())


def test_the_code_is_explained(type_in: Terminal) -> None:
    (entry,) = type_in("explain", "5*one-relationship-of-a-person", "--json").json["codes"]
    assert "any k / 2 contacts may be others" in entry["means"]


def test_geometric_noise_is_planned_and_trained_unless_told_otherwise(type_in: Terminal) -> None:
    law = ("--set", "noise=normal")
    plans = [type_in("plan", "class-sums", "social-200", "--epsilon", 2, *more, "--json").json for more in ((), law)]
    geometric, normal = (plan["curator"]["noise"]["sigmas"][0] for plan in plans)
    assert geometric < 0.51 * normal
    words = ("train", "class-sums", "social-200", "--epsilon", 2, "--epochs", 3, "--no-controls", "--json")
    found = type_in(*words).json
    assert found["ledger"]["spends"][0]["parameters"]["noise_law"] == "two-sided geometric"
    assert type_in("plan", "class-sums", "social-200", "--set", "noise=laplace").code == 2
