"""Numbers, names and the sentences of a run."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphveil.graphs import social_graph
from graphveil.methods.base.people.local_privacy import LocalPrivacy
from graphveil.methods.links.privacy import LinkPrivacy
from graphveil.methods.runs.intervals import Interval
from graphveil.privacy.statement.unit import NODE_AND_OWN_LIST, UNDIRECTED_EDGE
from graphveil.reports.base import words
from graphveil.reports.base.text import markdown, memory, plain_name, points, printable, seconds, spreadsheet
from graphveil.reports.base.text import settings as one_line
from tests.reports import made


def _lift(low: float, high: float, runs: int = 3) -> Interval:
    return Interval((low + high) / 2, low, high, (0.0,) * runs)


@pytest.mark.parametrize(
    ("lift", "says"),
    [
        (_lift(-0.01, 0.01), "added nothing measurable: random features on the same graph score as well."),
        (_lift(0.01, 0.02), "measurably above its best control: that is what the private features added."),
        (_lift(0.01, 0.02, 1), "use --repeats 10"),
        (_lift(-0.02, -0.01), "below its best control: random-features does better and needs less private data."),
    ],
)
def test_lift_sentence_follows_the_interval(lift: Interval, says: str) -> None:
    assert says in words.lift_sentence(made.record(lift=lift))


@pytest.mark.parametrize(
    ("control", "changes", "added"),
    [
        ("public-edges", {}, "the private edges"),
        ("no-edges", {}, "the graph"),
        ("random-graph", made.beside_rivals(), "the private connections"),
        ("majority", made.beside_rivals(), "the private data"),
        ("public-only", {}, "the private data"),
        # Where labels are public, they are no part of what the lift was bought with.
        ("public-only", {"settings": {"epsilon_x": 1.0, "epsilon_y": math.inf}}, "the private features"),
    ],
)
def test_a_lift_was_bought_with_what_the_best_control_lacks(control: str, changes: dict[str, Any], added: str) -> None:
    best = {"controls": {control: made.interval(0.7)}, "best_control": control, "lift": _lift(0.01, 0.02)}
    assert words.lift_sentence(made.record(**changes | best)).endswith(f"that is what {added} added.")


def test_a_control_that_goes_without_public_features_needs_no_less_private_data() -> None:
    """Of methods that collect lists alone: features and labels are public."""
    *_, lists = made.beside_rivals()["guarantee"].parts
    public = {"guarantee": lists, "settings": {"epsilon_x": math.inf, "epsilon_y": math.inf}}
    best = {"controls": {"random-features": made.interval(0.7)}, "best_control": "random-features"}
    record = made.record(**public | best | {"lift": _lift(-0.2, -0.1)})
    assert words.lift_sentence(record).endswith("random-features does better and needs no more.")


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
    open_ = made.guarantee(epsilon_x=math.inf)
    assert words.not_protected(open_, {}) == ("Features, labels and connections: all are used as they are.",)
    assert words.not_protected(made.guarantee(void="seed 3"), {})[0] == "Anything, in this run: seed 3."


def test_a_curator_exposes_what_is_not_in_the_unit() -> None:
    edge = replace(made.guarantee(), unit=UNDIRECTED_EDGE, model="central", parts=())
    exposed = " ".join(words.not_protected(edge, {}))
    assert "The features" in exposed and "The labels: used as they are." in exposed
    assert "connected" not in exposed and "Several edges at once" in exposed
    first, _ = words.not_protected(replace(edge, unit=NODE_AND_OWN_LIST), {})
    assert first.startswith("That others list a node")


# ---- laws: no name moves a cursor, computes in a spreadsheet or marks up a page ----

#: Texts that mean harm, among any others.
NASTY = st.one_of(st.text(max_size=30), st.text("=+-@\t\r\n '\"|\\`*_~<>[]():;\x1b\x00\u202e\uff1d09.eE/", max_size=30))


@settings(max_examples=200, deadline=None)
@given(NASTY)
def test_no_text_moves_a_cursor_computes_marks_up_or_leaves_its_folder(text: str) -> None:
    printed = printable(text)
    assert all(character.isprintable() for character in printed)
    assert printed == printed.strip() == printable(printed) and "  " not in printed
    # A cell begins with none of the signs that spreadsheets compute, or it is a plain number.
    cell = spreadsheet(text)
    assert all(character.isprintable() for character in cell) and spreadsheet(cell) == cell
    if cell.lstrip()[:1] in tuple("=+-@＝＋－＠"):
        assert float(cell) == float(text)
    # Taking the backslashes away gives the text back, and nothing that marks up stands without one.
    written = markdown(text)
    assert re.sub(r"\\(.)", r"\1", written) == printed
    bare = re.sub(r"\\.", "x", written)
    assert not re.search(r"[`*<>|~]", bare) and not re.search(r"\][(:]", bare)
    name = plain_name(text)
    assert re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,59}", name) and name not in (".", "..")


@settings(max_examples=200, deadline=None)
@given(st.floats(0, 1e7), st.floats(0, 1e6), st.floats(-1, 1), st.floats(1e-9, 1e3))
def test_figures_are_those_that_were_measured(
    duration: float, megabytes: float, difference: float, price: float
) -> None:
    """Read back, they are off by half their smallest unit at most; a price is never printed smaller."""
    units = {"s": 1, "min": 60, "h": 3600}
    parts = [(float(count), unit) for count, unit in re.findall(r"([\d.]+) (s|min|h)", seconds(duration))]
    assert parts and all(count < 60 for count, unit in parts if unit != "h")
    smallest = 0.1 if parts == [parts[0]] and parts[0][1] == "s" else units[parts[-1][1]]
    assert abs(sum(count * units[unit] for count, unit in parts) - duration) <= smallest
    amount, unit = memory(megabytes).split()
    assert abs(float(amount) * {"MB": 1, "GB": 1000}[unit] - megabytes) <= {"MB": 0.5, "GB": 50}[unit] + 1e-6
    printed = points(difference)
    assert abs(float(printed) - 100 * difference) <= 0.05 + 1e-9
    assert printed == "0.0" or printed[0] == ("+" if difference > 0 else "-")
    assert spreadsheet(repr(difference)) == repr(difference)
    line = one_line({"epsilon_x": price, "delta": price, "dropout": price})
    epsilon, delta, _ = (float(part.split(" = ")[1]) for part in line.split(", "))
    assert epsilon >= price and delta >= price


def test_settings_without_a_value_are_listed_as_not_set() -> None:
    assert one_line({"hops": None, "epochs": 5, "hidden": None}) == "epochs = 5; not set: hops, hidden"
    assert (one_line({"hops": None}), one_line({})) == ("not set: hops", "none")
