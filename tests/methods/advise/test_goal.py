"""The smallest epsilon that reaches a goal."""

from __future__ import annotations

import pytest

from graphveil.errors import InputError
from graphveil.methods.advise.goal import GRID, Goal, goal_of, smallest
from graphveil.methods.advise.rehearsal import Band


def rising(epsilon: float) -> Band:
    """A lift that grows with epsilon; the band is 10 points wide."""
    return Band(0.05 * epsilon - 0.05, 0.05 * epsilon + 0.05)


@pytest.mark.parametrize("least", [0.01, 0.05, 0.1, 0.15, 0.2, 0.3, 0.35])
def test_it_is_the_first_of_the_grid_at_either_end_of_the_band(least: float) -> None:
    found = smallest(Goal("lift", least), rising)
    assert found.hopeful == next((one for one in GRID if rising(one).high >= least), None)
    assert found.sure == next((one for one in GRID if rising(one).low >= least), None)
    assert set(found.tried) <= set(GRID)


def test_a_goal_that_is_out_of_reach_is_said_with_the_best_that_was_found() -> None:
    found = smallest(Goal("lift", 0.9), rising)
    assert found.hopeful is None and found.sure is None
    assert "no epsilon up to 8 reaches it" in found.sentence and "+35.0 to +45.0" in found.sentence


def test_a_goal_that_only_luck_reaches_is_no_recommendation() -> None:
    found = smallest(Goal("lift", 0.4), rising)
    assert found.hopeful == 8.0 and found.sure is None and "do not count on it" in found.sentence
    assert "from epsilon 8 on" in found.sentence and "gave +35.0 to +45.0 points" in found.sentence
    share = smallest(Goal("accuracy", 0.4), rising).sentence
    assert "gave 35.0 to 45.0 %" in share


def test_the_upper_end_is_what_to_take() -> None:
    found = smallest(Goal("lift", 0.15), rising)
    assert (found.hopeful, found.sure) == (2.0, 4.0) and "epsilon 2 to 4; take 4" in found.sentence
    assert found.to_dict()["epsilon"] == {"low": 2.0, "high": 4.0}


@pytest.mark.parametrize("text", ["accuracy", "lift=", "lift=0", "lift=2", "acc=0.5", "lift=nan", "accuracy=0.8=1", ""])
def test_what_is_no_goal_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="no goal"):
        goal_of(text)
