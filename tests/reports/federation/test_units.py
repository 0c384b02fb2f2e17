"""A person's price stands first in plans, outcomes and cards, and the weaker unit beside it with its warning."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
import torch

from graphveil.cli.federation import screens as screens
from graphveil.federation.core.setting import MODES
from graphveil.privacy.statement.unit import EMBEDDING_ROW, GUESS, PERSON_AND_LIST_AT_HOLDER, PERSON_AT_HOLDER
from graphveil.reports.federation.card import check_party, unit_line
from graphveil.reports.federation.party import write_outcome
from graphveil.reports.federation.plan import plan_of, price_facts
from tests.cli.test_federation import plan, read
from tests.reports.federation.test_party import N, agreement, head, logits, outcome

PERSON: dict[str, Any] = {"mode": "guesses", "unit": "person", "epsilon": 2.0}


@pytest.mark.parametrize("mode", [mode for mode in MODES if mode != "all-shares"])
def test_where_one_publication_is_meant_a_person_has_no_bound_and_that_stands_first(mode: str) -> None:
    weaker = GUESS if mode == "guesses" else EMBEDDING_ROW
    first, second = price_facts(agreement(mode=mode, opened=True).setting)["units"]
    assert (first["unit"], first["epsilon"]) == (PERSON_AT_HOLDER.text, math.inf)
    assert "somebody who trains also moves" in first["warning"] and "unit=person" in first["warning"]
    assert (second["unit"], second["epsilon"]) == (weaker.text, 8.0)
    assert "not a person: somebody who trains also moves" in second["warning"]
    text = plan(mode=mode, opened=True)
    assert 0 < text.index("at one holder: epsilon inf; no bound") < text.index(f"{weaker.text}: epsilon 8")


def test_where_a_person_is_meant_the_person_stands_first_and_one_guess_beside_it() -> None:
    first, second = price_facts(agreement(**PERSON).setting)["units"]
    assert (first["unit"], first["epsilon"], first["delta"]) == (PERSON_AT_HOLDER.text, 2.0, 1e-4)
    assert first["warning"].startswith("each further holder that guesses costs that person as much again")
    assert (second["unit"], second["epsilon"], second["delta"]) == (GUESS.text, 2.0, 0.0)
    assert "not a person" in second["warning"]
    assert unit_line(second).endswith("are units of their own.")
    assert price_facts(agreement(mode="guesses", epsilon=math.inf).setting)["units"] == []
    # Those who train are not guessed about.
    person, guess = (plan_of(agreement(**{**PERSON, "unit": u}), 1000, 100, []) for u in ("person", "publication"))
    assert guess["bytes_round"] - person["bytes_round"] == 8 * 100
    text = plan(**PERSON)
    assert "in TOTAL for one person at each holder that guesses, at delta 0.0001" in text
    assert "100 gradients, noise" in text and "NOT PROTECTED: all holders are given" in text
    assert text.index("at one holder: epsilon 2, delta 0.0001") < text.index("by one holder: epsilon 2, delta 0")


def test_the_card_of_a_finished_party_says_both(tmp_path: Path) -> None:
    agreed = agreement(**PERSON)
    answer = write_outcome(tmp_path, "clinic", agreed, outcome(head(agreed.setting, logits(torch.ones(N) > 0)), None))
    check_party(tmp_path)
    card = (tmp_path / "card.md").read_text().replace("\\", "")
    first = card.index("one person's features and label at one holder: epsilon 2, delta 0.0001")
    assert first < card.index("one published guess of a node's class by one holder: epsilon 2, delta 0")
    assert "The label holder's own data about a person: it trains on them as they are." in card
    assert "What a person's features change in the rows of neighbours" not in card
    assert "epsilon 2, delta 0.0001" in read(screens.finished(answer))


def test_with_connections_the_own_list_is_part_of_the_person_and_votes_are_planned() -> None:
    first, second = price_facts(agreement(**PERSON, degree_bound=5).setting)["units"]
    assert (first["unit"], first["epsilon"], first["delta"]) == (PERSON_AND_LIST_AT_HOLDER.text, 2.0, 1e-4)
    assert first["warning"].startswith("that others list that person is not covered") and second["unit"] == GUESS.text
    text = plan(**PERSON, degree_bound=5)
    assert "votes: of 5 names a list, noise" in text
    assert 0 < text.index("own list of neighbours at one holder: epsilon 2") < text.index("by one holder: epsilon 2")
