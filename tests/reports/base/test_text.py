"""Numbers, names and the sentences of a run."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest

from graphveil.graphs import social_graph
from graphveil.methods.base.local_privacy import LocalPrivacy
from graphveil.methods.links.privacy import LinkPrivacy
from graphveil.methods.runs.intervals import Interval
from graphveil.privacy.unit import NODE_AND_OWN_LIST, UNDIRECTED_EDGE
from graphveil.reports.base import text, words
from tests.reports import made


@pytest.mark.parametrize(
    ("value", "shown"), [(1.0, "1"), (0.25, "0.25"), (1e-6, "1e-06"), (math.inf, "inf"), (0.1 + 0.2, "0.3")]
)
def test_number(value: float, shown: str) -> None:
    assert text.number(value) == shown


@pytest.mark.parametrize(("value", "shown"), [(0.012, "+1.2"), (-0.2, "-20.0"), (0.0, "0.0"), (-0.0001, "0.0")])
def test_points_are_signed_and_zero_is_not(value: float, shown: str) -> None:
    assert text.points(value) == shown


@pytest.mark.parametrize(
    ("value", "shown"), [(0.42, "0.4 s"), (59.96, "1 min 0 s"), (95, "1 min 35 s"), (4000, "1 h 6 min")]
)
def test_seconds(value: float, shown: str) -> None:
    assert text.seconds(value) == shown


@pytest.mark.parametrize(("value", "shown"), [(512.3, "512 MB"), (2048, "2.0 GB")])
def test_memory(value: float, shown: str) -> None:
    assert text.memory(value) == shown


def test_printable_takes_away_what_moves_a_cursor() -> None:
    assert text.printable("a\x1b[31m\r\n b\u202ec\ud800") == "a [31m b c"


@pytest.mark.parametrize(
    ("name", "shown"),
    [("/home/x/my data", "my-data"), ("../..", "data"), ("", "data"), ("a/<b>", "b"), ("é", "data")],
)
def test_plain_name(name: str, shown: str) -> None:
    assert text.plain_name(name) == shown


def test_markdown_is_taken_literally() -> None:
    assert text.markdown("a|b <i>*x*</i> `c` [d](e) [f]: g [0, 1] epsilon_x _y_") == (
        r"a\|b \<i\>\*x\*\</i\> \`c\` [d\](e) [f\]: g [0, 1] epsilon_x \_y\_"
    )


def _lift(low: float, high: float, runs: int = 3) -> Interval:
    return Interval((low + high) / 2, low, high, (0.0,) * runs)


@pytest.mark.parametrize(
    ("lift", "says"),
    [
        (_lift(-0.01, 0.01), "added nothing measurable: random features on the same graph score as well."),
        (_lift(-0.01, 0.01, 1), "added nothing measurable in this one run: random features"),
        (_lift(0.01, 0.02), "measurably above its best control: that is what the private features added."),
        (_lift(0.01, 0.02, 1), "use --repeats 10"),
        (_lift(-0.02, -0.01), "measurably below its best control: random-features does better"),
    ],
)
def test_lift_sentence_follows_the_interval(lift: Interval, says: str) -> None:
    assert says in words.lift_sentence(made.record(lift=lift))


LABELS_ONLY = made.guarantee().parts[1]


@pytest.mark.parametrize(
    ("changes", "best", "says"),
    [
        ({}, "random-features", "that is what the private features added"),
        ({}, "no-edges", "that is what the graph added"),
        ({}, "public-only", "that is what the private data added"),
        ({"guarantee": LABELS_ONLY, "settings": {}}, "label-propagation", "the method's own use of the labels"),
        (
            {"guarantee": LABELS_ONLY, "settings": {"epsilon_x": math.inf}},
            "label-propagation",
            "what the features added",
        ),
        ({"guarantee": made.guarantee(math.inf), "settings": {}}, "public-only", "what the features added"),
    ],
)
def test_a_lift_is_put_down_to_what_the_control_lacks(changes: dict[str, Any], best: str, says: str) -> None:
    record = made.record(lift=_lift(0.01, 0.02), best_control=best, **changes)
    assert says in words.lift_sentence(record)


def test_a_method_without_features_asks_for_no_less_than_its_control() -> None:
    record = made.record(lift=_lift(-0.02, -0.01), best_control="label-propagation", guarantee=LABELS_ONLY, settings={})
    assert words.lift_sentence(record).endswith("label-propagation does better and needs no more.")


def test_no_controls_no_claim() -> None:
    record = made.record(lift=None, best_control=None, controls={})
    assert "the lift is unknown" in words.lift_sentence(record)


def test_every_control_has_a_meaning_and_a_sentence() -> None:
    for name in made.result().scores.controls:
        record = made.record(lift=_lift(-0.01, 0.01), best_control=name)
        assert words.CONTROL_MEANING[name]
        assert f"{name} scores as well" not in words.lift_sentence(record)


def test_epsilons_are_named_by_unit_and_added_for_one_person() -> None:
    assert words.epsilon_line(made.guarantee(), {}) == (
        "one user's whole feature vector: 1, one user's label: 2; for one person together: 3"
    )


@pytest.mark.parametrize(
    ("epsilon_x", "epsilon_y", "directed", "whose"),
    [
        (2.0, 1.0, False, "one person's features, label and ONE relationship together: 8"),
        (2.0, math.inf, False, "one person's features and ONE relationship together: 7"),
        (math.inf, 1.0, True, "one person's label and ONE directed link together: 6"),
    ],
)
def test_a_sum_with_connections_covers_one_of_them(
    epsilon_x: float, epsilon_y: float, directed: bool, whose: str
) -> None:
    schema = replace(social_graph(100).schema, directed=directed)
    people = LocalPrivacy(epsilon_x, epsilon_y).guarantee(schema)
    guarantee = LinkPrivacy(5.0).guarantee(people, schema, 100)
    assert words.epsilon_line(guarantee, {}).endswith("; for " + whose)


def test_what_is_not_protected_names_the_unprotected_parts() -> None:
    exposed = " ".join(words.not_protected(made.guarantee(), {}))
    assert "Who is connected to whom" in exposed
    assert "The labels" not in exposed
    part = made.guarantee().parts[0]
    settings = {"epsilon_x": 1.0, "epsilon_y": math.inf}
    assert "The labels: declared public and used as they are." in words.not_protected(part, settings)
    assert words.epsilon_line(part, settings) == "one user's whole feature vector: 1, labels: not protected"


def test_nothing_protected_is_said_so() -> None:
    open_ = made.guarantee(epsilon_x=math.inf)
    assert words.not_protected(open_, {}) == ("Features, labels and connections: all are used as they are.",)


def test_a_curator_exposes_what_is_not_in_the_unit() -> None:
    edge = replace(made.guarantee(), unit=UNDIRECTED_EDGE, model="central", parts=())
    exposed = " ".join(words.not_protected(edge, {}))
    assert "The features" in exposed
    assert "The labels: used as they are." in exposed
    assert "connected" not in exposed
    assert "Several edges at once" in exposed


def test_a_curator_who_hides_nodes_says_whose_lists_are_not_hidden() -> None:
    unit = NODE_AND_OWN_LIST
    exposed = words.not_protected(replace(made.guarantee(), unit=unit, model="central", parts=()), {})
    assert exposed[0].startswith("That others list a node")
    assert len(exposed) == 2


def test_void_is_said_first() -> None:
    assert words.not_protected(made.guarantee(void="seed 3"), {})[0] == "Anything, in this run: seed 3."


@pytest.mark.parametrize(
    ("cell", "written"),
    [
        ("anna", "anna"),
        ("=HYPERLINK(1)", "'=HYPERLINK(1)"),
        ("+1+1", "'+1+1"),
        ("@SUM(A1)", "'@SUM(A1)"),
        ("-2+3", "'-2+3"),
        ("  =1", "'  =1"),
        ("\t=1", "\\t=1"),
        ("\uff1d1", "'\uff1d1"),
        ("-5", "-5"),
        ("+1.5e-3", "+1.5e-3"),
        ("a\x1b[31mb", "a\\x1b[31mb"),
        ("a\nb\x00\u202e", "a\\nb\\x00\\u202e"),
        ("äöü 漢字", "äöü 漢字"),
    ],
)
def test_no_cell_is_a_formula_or_an_order_to_a_terminal(cell: str, written: str) -> None:
    assert text.spreadsheet(cell) == written
