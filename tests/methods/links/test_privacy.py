"""What a collection of neighbour lists costs and promises."""

from __future__ import annotations

import math
from typing import Any

import pytest

from graphveil.errors import BudgetError, InputError
from graphveil.mechanisms import AdjacencyRR
from graphveil.methods.base.people.local_privacy import LocalPrivacy
from graphveil.methods.links.collection import spends_of
from graphveil.methods.links.entries import LIST_MECHANISMS
from graphveil.methods.links.family import CLEAN, SWAMPED, LinkPlan, link_plan
from graphveil.methods.links.privacy import UNIT, LinkPrivacy
from graphveil.privacy.statement.observer import SERVER_AND_MODEL
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
    ledger = links.declare(PUBLIC.open_ledger()).spend(spend)
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
        ledger = links.declare(people.open_ledger()).spend(*spends_of(people, links, UNDIRECTED, 60))
        assert ledger.remaining(UNIT)[0] == 0


@pytest.mark.parametrize(
    ("mode", "sentence", "unit"),
    [
        ("lower", "of every two users the one with the lower id reports, which is public", "one relationship"),
        ("both", "both ends of a relationship report it, at epsilon 1.5 each", "one relationship"),
        ("directed", "the 60 users and their ids are public", "one directed link"),
    ],
)
def test_the_guarantee_of_links_alone_is_about_adding_and_removing(mode: str, sentence: str, unit: str) -> None:
    """Not about replacing: to exchange one relationship for another changes two bits, and costs twice as much."""
    guarantee = LinkPrivacy(1.5, mode).guarantee(PUBLIC.guarantee(MODES[mode]), MODES[mode], 60)
    assert (guarantee.unit.text, guarantee.relation, guarantee.against) == (unit, "add/remove", SERVER_AND_MODEL)
    assert sentence in [fact.sentence for fact in guarantee.assumes]
    assert guarantee.assumption("features-sent-open") and guarantee.assumption("labels-sent-open")
    assert not guarantee.assumption("topology-public")


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


# ---- what an epsilon buys in neighbour lists, from public facts alone ----


def plan(epsilon: float, mode: str, nodes: int = 2708, **options: Any) -> LinkPlan:
    return link_plan(LinkPrivacy(epsilon, mode, **options), MODES[mode], nodes)


@pytest.mark.parametrize("mode", ["lower", "both", "directed"])
@pytest.mark.parametrize("epsilon", [0.5, 4.0, 7.0])
def test_figures_are_the_mechanisms_own(epsilon: float, mode: str) -> None:
    figures, mechanism = plan(epsilon, mode), AdjacencyRR(epsilon=epsilon, nodes=2708, mode=mode)
    assert figures.false_entries == mechanism.expected_false
    assert figures.per_person == mechanism.expected_false / 2708
    assert figures.report_bytes == mechanism.expected_bytes / 2708
    assert figures.epsilon_relationship == mechanism.guarantee.epsilon
    assert figures.epsilon_bit == mechanism.bit_guarantee.epsilon
    # Of two friends each may name the other, also where a list holds what begins at its person.
    assert figures.epsilon_both_ends == epsilon * (1 if mode == "lower" else 2)
    assert (figures.mode, figures.mechanism, figures.warning) == (mode, "lists", None)


@pytest.mark.parametrize("mechanism", LIST_MECHANISMS)
def test_a_noisy_degree_takes_its_share_of_the_list(mechanism: str) -> None:
    figures = plan(7.0, "both", mechanism=mechanism, degree_share=0.2)
    left = 7.0 if mechanism == "lists" else 7.0 * 0.8
    assert figures.false_entries == pytest.approx(AdjacencyRR(epsilon=left, nodes=2708, mode="both").expected_false)
    assert (figures.epsilon_bit, figures.epsilon_relationship) == (7.0, 14.0)
    extra = {"lists": 0, "degree-and-lists": 4, "degree-preserving": 4 - 4 * figures.per_person}[mechanism]
    assert figures.report_bytes == pytest.approx(8 * 2709 / 2708 + 4 * figures.per_person + extra)


@pytest.mark.parametrize("mode", ["lower", "both", "directed"])
@pytest.mark.parametrize("mechanism", LIST_MECHANISMS)
def test_regimes_begin_where_the_plan_says(mode: str, mechanism: str) -> None:
    share = 2 if mode == "both" else 1
    first = plan(5.0, mode, mechanism=mechanism)
    swamped = plan(first.swamped_below / share, mode, mechanism=mechanism)
    clean = plan(first.clean_above / share, mode, mechanism=mechanism)
    assert swamped.per_person == pytest.approx(SWAMPED, rel=1e-6)
    assert clean.per_person == pytest.approx(CLEAN, rel=1e-6)


def test_public_links_have_no_plan_and_wrong_modes_are_refused() -> None:
    assert link_plan(LinkPrivacy(math.inf), UNDIRECTED, 100) is None
    with pytest.raises(InputError, match="mode directed for a graph whose links are undirected; allowed: lower, both"):
        link_plan(LinkPrivacy(1.0, "directed"), UNDIRECTED, 100)
    with pytest.raises(InputError, match="mode both for a graph whose links are directed; allowed: directed"):
        link_plan(LinkPrivacy(1.0, "both"), DIRECTED, 100)
