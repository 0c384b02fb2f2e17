"""The table of rules: complete, in order, and refusing what a declaration does not allow."""

from __future__ import annotations

import itertools
import math

import pytest

from graphveil.graphs.schema import PRIVATE_PARTS
from graphveil.methods.advise.rules import RULES, TRUSTS, Rule, rule_for
from graphveil.methods.registry import METHODS

DECLARATIONS = [parts for size in range(4) for parts in itertools.combinations(PRIVATE_PARTS, size)]
DEGREES = [None, 3.0, 60.0]


@pytest.mark.parametrize("trust", TRUSTS)
def test_no_rule_takes_a_private_part_for_public(trust: str) -> None:
    """What is private is protected by the method that is advised, or not collected at all."""
    assert rule_for(trust, (), 50.0) is None, "where nothing is private nothing is spent"
    for private, degree in itertools.product(DECLARATIONS, DEGREES):
        rule = rule_for(trust, private, degree)
        if rule is None or rule.method is None:
            continue
        covered = {*rule.protects, *(("features", "labels") if rule.settings else ())}
        assert set(private) <= covered, f"{rule.method} does not protect {set(private) - covered}"


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: f"{rule.trust}-{rule.method}")
def test_a_rule_names_parts_of_a_graph_and_controls_of_its_method(rule: Rule) -> None:
    for parts in (rule.protects, rule.wants, rule.needs):
        assert set(parts) <= set(PRIVATE_PARTS)
    assert not set(rule.wants) & set(rule.needs), "a rule that no declaration fits"
    assert any(rule.fits(private, degree) for private in DECLARATIONS for degree in DEGREES)
    assert all(text and not text.endswith(".") and "\n" not in text for text in (rule.why, rule.loses, rule.open))
    assert (rule.budget == "") == (rule.method is None) == math.isinf(rule.epsilon)


def test_every_trust_has_a_rule_and_the_first_spends_something() -> None:
    for trust in TRUSTS:
        first = rule_for(trust, None, None)
        assert first is not None and first.budget and first.panel is not None


def test_an_epsilon_that_is_asked_for_takes_the_place_of_the_advised_one() -> None:
    rule = rule_for("links", ("labels", "edges"), None)
    assert rule is not None
    assert rule.choice() == {"epsilon_x": None, "epsilon_y": 2.0, "epsilon_a": 4.0}
    assert rule.choice(1.0)["epsilon_a"] == 1.0 and rule.choice(1.0)["epsilon_y"] == 2.0
    assert METHODS["links"].settle(rule.choice(1.0))["epsilon_x"] is None


@pytest.mark.parametrize(
    ("degree", "method"), [(None, "dp-mlp"), (19.9, "dp-mlp"), (20.0, "node-sums"), (90.0, "node-sums")]
)
def test_noisy_votes_of_whole_people_take_many_contacts(degree: float | None, method: str) -> None:
    rule = rule_for("curator", ("features", "labels", "edges"), degree)
    assert rule is not None and rule.method == method
