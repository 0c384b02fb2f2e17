"""What a collection of neighbour lists costs and promises."""

from __future__ import annotations

import math

import pytest

from graphveil.errors import BudgetError
from graphveil.methods.base.local_privacy import LocalPrivacy
from graphveil.methods.links.collection import open_ledger, spends_of
from graphveil.methods.links.names import LIST_MECHANISMS
from graphveil.methods.links.privacy import UNIT, LinkPrivacy
from graphveil.privacy.observer import SERVER_AND_MODEL
from tests.methods import links_made

UNDIRECTED, DIRECTED = links_made.graph().schema, links_made.graph(directed=True).schema
PUBLIC = LocalPrivacy(math.inf, math.inf)
MODES = {"lower": UNDIRECTED, "both": UNDIRECTED, "directed": DIRECTED}


@pytest.mark.parametrize("mechanism", LIST_MECHANISMS)
@pytest.mark.parametrize(("mode", "times"), [("lower", 1), ("both", 2), ("directed", 1)])
def test_item_4_a_relationship_is_charged_for_every_list_it_stands_in(mode: str, times: int, mechanism: str) -> None:
    links = LinkPrivacy(1.5, mode, mechanism, degree_share=0.3)
    assert links.relationship_epsilon == 1.5 * times
    (spend,) = links.spends(MODES[mode], 60)
    assert (spend.unit, spend.mechanism) == (UNIT, mechanism)
    assert spend.epsilon == pytest.approx(1.5 * times)
    assert spend.parameters["mode"] == mode
    assert ("degree_share" in spend.parameters) == (mechanism != "lists")
    guarantee = links.guarantee(PUBLIC.guarantee(MODES[mode]), MODES[mode], 60)
    assert guarantee.epsilon == pytest.approx(1.5 * times)
    ledger = open_ledger(PUBLIC, links).spend(spend)
    assert ledger.remaining(UNIT)[0] == 0
    with pytest.raises(BudgetError):
        ledger.spend(spend)


@pytest.mark.parametrize("epsilon", [1 / 3, 0.1, 0.7777777777, 2 / 7, 1e-3 / 3, 7.9])
@pytest.mark.parametrize("share", [0.1, 1 / 3, 1 / 7, 0.99])
def test_any_budget_pays_for_exactly_one_collection(epsilon: float, share: float) -> None:
    """Whatever digits its parts have: rounding up each would exceed the budget by a unit."""
    for mechanism in LIST_MECHANISMS:
        links = LinkPrivacy(epsilon, "both", mechanism, share)
        people = LocalPrivacy(epsilon, epsilon)
        ledger = open_ledger(people, links).spend(*spends_of(people, links, UNDIRECTED, 60))
        assert ledger.remaining(UNIT)[0] == 0


@pytest.mark.parametrize(
    ("mode", "said", "unit"),
    [
        ("lower", "of every two users the one with the lower id reports, which is public", "one relationship"),
        ("both", "both ends of a relationship report it, at epsilon 1.5 each", "one relationship"),
        ("directed", "the 60 users and their ids are public", "one directed link"),
    ],
)
def test_the_guarantee_of_links_alone_is_about_adding_and_removing(mode: str, said: str, unit: str) -> None:
    """Not about replacing: to exchange one relationship for another changes two bits, and costs twice as much."""
    guarantee = LinkPrivacy(1.5, mode).guarantee(PUBLIC.guarantee(MODES[mode]), MODES[mode], 60)
    assert (guarantee.unit.text, guarantee.relation, guarantee.against) == (unit, "add/remove", SERVER_AND_MODEL)
    assert said in [fact.sentence for fact in guarantee.assumes]
    assert guarantee.assumption("features-sent-open") and guarantee.assumption("labels-sent-open")
    assert not guarantee.assumption("topology-public")


@pytest.mark.parametrize("mode", MODES)
def test_the_guarantee_with_features_adds_up_and_says_what_is_replaced(mode: str) -> None:
    schema, links = MODES[mode], LinkPrivacy(1.5, mode)
    guarantee = links.guarantee(LocalPrivacy(1.0, 0.5).guarantee(schema), schema, 60)
    assert guarantee.epsilon == pytest.approx(1.5 + links.relationship_epsilon)
    assert guarantee.relation == "replace"
    unit = "one directed link" if mode == "directed" else "one relationship"
    assert guarantee.unit.text.endswith(f", and whether {unit} of that user exists")
    people, one = guarantee.parts
    assert people.epsilon == pytest.approx(1.5)
    assert (one.unit.text, one.epsilon) == (f"whether {unit} exists", pytest.approx(links.relationship_epsilon))


def test_public_links_cost_nothing_and_are_said_to_be_open() -> None:
    links, people = LinkPrivacy(math.inf), LocalPrivacy(1.0, 1.0)
    assert links.public
    assert (links.parts(UNDIRECTED, 60), links.spends(UNDIRECTED, 60)) == ({}, ())
    guarantee = links.guarantee(people.guarantee(UNDIRECTED), UNDIRECTED, 60)
    assert guarantee.epsilon == 2
    assert guarantee.assumes[-1].code == "links-sent-open"
    nothing = links.guarantee(PUBLIC.guarantee(UNDIRECTED), UNDIRECTED, 60)
    assert math.isinf(nothing.epsilon)
    assert "NOT PROTECTED" in nothing.sentence()
