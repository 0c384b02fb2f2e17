"""Groups of equal promises: units never mix, and what is said of other units is what method and accountant say."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any

import pytest

from graphveil.graphs import social_graph
from graphveil.methods.curator.privacy import CuratorPrivacy
from graphveil.methods.registry import METHODS, build_method, plan
from graphveil.privacy import Guarantee, Ledger, Spend, several
from graphveil.reports.base import trust
from graphveil.reports.compare import table
from graphveil.reports.compare.folder import figure
from graphveil.reports.compare.rows import AttackScores, Row
from graphveil.reports.compare.sheet import Sheet
from tests.reports import made

GRAPH = social_graph(200)

#: method, settings: trust, unit in short, and whether features, labels, edges, whole person are protected.
CASES: list[tuple[str, dict[str, Any], str, list[str], str]] = [
    ("lpgnn", {}, "local", ["features", "label"], "yes yes no no"),
    ("lpgnn", {"epsilon_x": math.inf}, "local", ["label"], "no yes no no"),
    ("lpgnn", {"epsilon_x": None}, "local", ["label"], "unused yes no no"),
    ("lpgnn", {"epsilon_x": math.inf, "epsilon_y": math.inf}, "none", [], "no no no no"),
    ("label-propagation", {}, "local", ["label"], "unused yes no no"),
    ("solitude", {}, "local", ["features", "relationship"], "yes no yes no"),
    ("solitude", {"epsilon_y": 1.0}, "local", ["features", "label", "relationship"], "yes yes yes no"),
    ("blink", {}, "local", ["relationship"], "no no yes no"),
    ("gap", {}, "central", ["edge"], "no no yes no"),
    ("gap", {"unit": "directed-edge"}, "central", ["directed edge"], "no no yes no"),
    (
        "gap",
        {"unit": "k-edges", "relationships": 5},
        "central",
        ["any set of up to 5 relationships of one person"],
        "no no yes no",
    ),
    ("gap", {"unit": "node"}, "central", ["node"], "yes yes partly partly"),
    ("gap", {"unit": "node", "rule": "declared", "degree_bound": 50}, "central", ["node"], "yes yes yes yes"),
    ("dp-mlp", {}, "central", ["node"], "yes yes unused yes"),
    ("heterorr", {"epsilon_x": 1.0, "epsilon_y": 1.0}, "release", ["features", "label", "edge"], "yes yes yes no"),
    ("edge-rr", {}, "release", ["edge"], "no no yes no"),
    ("gcn", {}, "none", [], "no no no no"),
    ("mlp", {}, "none", [], "no no unused no"),
]


def promised(method: str, settings: Mapping[str, Any]) -> Guarantee:
    return _planned(method, tuple(settings.items()))


@lru_cache
def _planned(method: str, settings: tuple[tuple[str, Any], ...]) -> Guarantee:
    built = build_method(method, dict(settings), len(GRAPH.schema.classes))
    if isinstance(built.privacy, CuratorPrivacy):  # its noise would take a while to find
        return built.privacy.guarantee(GRAPH.schema, edges="edges" in METHODS[method].reads)
    return plan(method, GRAPH, dict(settings)).guarantee


def row(method: str, settings: Mapping[str, Any], **changes: Any) -> Row:
    """A row that was never trained: the promise is that of the method, the accuracy is made."""
    guarantee = promised(method, settings)
    settled = METHODS[method].settle(settings)
    protects = trust.protection(guarantee, METHODS[method].reads, settled)
    given = {"accuracy": made.interval(0.7), "control": made.interval(0.6), "best_control": "no-edges", **changes}
    return Row(
        method,
        {},
        "social-200",
        **{"guarantee": guarantee, "protects": protects, "collected": "x", "exposed": (), **given},
    )


@pytest.mark.parametrize(("method", "settings", "who", "units", "states"), CASES)
def test_who_is_trusted_with_what(
    method: str, settings: dict[str, Any], who: str, units: list[str], states: str
) -> None:
    entry = row(method, settings)
    assert entry.promise.trust == who
    assert [part.short for part in entry.promise.parts] == units
    assert list(entry.protects.values()) == states.split()
    total = math.fsum(part.epsilon for part in entry.parts)
    assert not units or total == pytest.approx(entry.guarantee.epsilon)


def page() -> Sheet:
    private = [row(method, settings) for method, settings, *_ in CASES]
    return Sheet("social-200", (*private, row("gap", {"epsilon": 8.0})))


def test_every_method_of_the_catalogue_has_a_group_of_its_own_kind() -> None:
    for method, info in METHODS.items():
        promise = trust.Promise.of(promised(method, made.NEEDED.get(method, {})))
        expected = {"none": {"none"}, "local": {"local"}, "central": {"central", "release"}}[info.trust]
        assert promise.trust in expected, method
        assert all(part.short != part.unit.text for part in promise.parts), method


def test_groups_never_mix_trust_or_units() -> None:
    groups = page().groups
    assert sum(len(group.rows) for group in groups) == len(CASES) + 1
    for group in groups:
        kinds = {
            (
                member.promise.trust,
                tuple((part.unit, part.relation) for part in member.parts),
                member.guarantee.against.text if member.parts else "",
            )
            for member in group.rows
        }
        assert len(kinds) == 1
    assert len({group.promise for group in groups}) == len(groups)
    assert [group.letter for group in groups] == [trust.letter(place) for place in range(len(groups))]
    (last,) = [group for group in groups if not group.promise.parts]
    assert last is groups[-1] or last == groups[-1]
    assert {member.method for member in last.rows} == {"gcn", "mlp", "lpgnn"}


def test_sentences_refuse_to_compare_across_groups() -> None:
    for line in table.content(page())["rows"]:
        for key in ("unit", "relation", "trust", "against", "epsilon", "delta", "group", "protects", "collected"):
            assert line[key] not in (None, ""), (line["method"], key)
        assert all({"unit", "unit_code", "relation", "epsilon", "delta"} == set(part) for part in line["epsilons"])
    sentences = " ".join(page().comparable)
    text = table.markdown_text(page())
    assert "| method | epsilon: edge | delta |" in text and "| epsilon |" not in text
    assert "| method | epsilon: features | epsilon: label | epsilon: together | features |" in text
    assert "| method | features | labels |" in text and trust.MEASURED in text  # nothing is protected: no epsilon
    assert "rows of one group only" in sentences
    assert "neither a weaker nor a stronger promise" in sentences
    assert "with features, labels and whole person unprotected" in sentences
    assert "both protect features" in sentences
    assert "counts one of the two entries of an undirected edge" in sentences
    alone = Sheet("x", (row("gap", {}),)).comparable
    assert len(alone) == 1


def test_other_units_are_what_method_and_accountant_say() -> None:
    both = promised("blink", {"epsilon_a": 4.0})
    bit, two = trust.conversions(both, 8.0)
    assert (bit["unit"], bit["epsilon"]) == ("one bit of one neighbour list", 4.0)
    assert (two["unit"], two["epsilon"]) == ("two relationships of one person at once", 16.0)
    entry = promised("gap", {"unit": "directed-edge", "epsilon": 2.0})
    whole, pair = trust.conversions(entry, 2.83)
    assert (whole["unit"], whole["epsilon"], whole["delta"]) == ("one relationship", 2.83, entry.delta)
    assert pair["epsilon"] == pytest.approx(5.66)
    edge = promised("gap", {"epsilon": 2.0})
    (two,) = trust.conversions(edge, 2.0)
    assert (two["epsilon"], two["delta"]) == (several(edge, 2).epsilon, several(edge, 2).delta)
    assert trust.conversion_text(two) == "two edges of one person at once: 4 (delta 8.4e-05)"
    assert trust.price_text({**two, "epsilon": math.inf}) == "nothing is promised"
    (conversion,) = trust.conversions(promised("gap", {"unit": "k-edges", "relationships": 5, "epsilon": 2.0}), 0.6)
    assert (conversion["unit"], conversion["epsilon"], conversion["why"]) == (
        "one relationship",
        0.6,
        "the same noise, for one of them",
    )
    node = promised("gap", {"unit": "node"})
    (lists,) = trust.conversions(node, None)
    assert (lists["unit"], lists["epsilon"], lists["delta"]) == ("one relationship", 8.0, several(node, 2).delta)
    assert trust.conversions(promised("dp-mlp", {}), None) == ()


def test_the_figure_has_one_epsilon_axis_for_each_group_and_one_of_accuracy() -> None:
    sheet = page()
    drawn = figure(sheet)
    assert drawn is not None
    panels = [axes for axes in drawn.axes if axes.get_visible()]
    assert len(panels) == len(sheet.groups)
    for axes, group in zip(panels, sheet.groups, strict=True):
        label = axes.get_xlabel().replace("\n", " ")
        assert axes.get_title(loc="left").startswith(f"{group.letter}. ")
        assert group.promise.parts[0].unit.text in label if group.promise.parts else label == "no epsilon"
        assert not axes.get_shared_x_axes().get_siblings(axes)[1:]
        assert axes.get_ylim() == panels[0].get_ylim()
        assert [line for line in axes.get_lines() if line.get_linestyle() == "--"], "controls are drawn as lines"
    (edges,) = [axes for axes in panels if axes.get_xlabel() == "epsilon of one undirected edge"]
    assert [text.get_text() for text in edges.get_xticklabels()] == ["4", "8"]
    assert figure(Sheet("bare", (row("gcn", {}, accuracy=None),))) is None


LOCAL, CENTRAL, VERTICAL = "local", "central", "vertical"


@pytest.mark.parametrize(
    ("who", "spent", "expected"),
    [
        (LOCAL, {"a": {}, "b": {}}, "one report a person"),
        (LOCAL, {"a": {}, "b": {}, "a again": {}}, "up to 2 reports a person"),
        (CENTRAL, {"training": {}}, "one training"),
        (CENTRAL, {"training": {}, "query": {}}, "one training, 1 more prediction"),
        (CENTRAL, {"training": {"mean_trials": 4.0}}, "about 4 trainings"),
        (VERTICAL, {"publications": {"publications": 200}}, "200 publications"),
        ("none", {}, "as often as one likes"),
    ],
)
def test_how_often_private_data_are_read(who: str, spent: Mapping[str, Mapping[str, Any]], expected: str) -> None:
    units = {name: name.split()[0] for name in spent}
    ledger = Ledger.open(dict.fromkeys(["x", *units.values()], (100.0, 0.1)))
    ledger = ledger.spend(*(Spend(name, units[name], "noise", facts, 1.0, 0.0) for name, facts in spent.items()))
    promise = trust.Promise.of(promised("lpgnn" if who == LOCAL else "gap", {}))
    assert trust.collection_count(ledger, replace(promise, trust=who)) == expected


def test_attacks_stand_in_the_row_of_what_was_attacked() -> None:
    attacked = AttackScores(made.interval(0.8), made.interval(0.2), 0.99, 0.5, False)
    sheet = Sheet("x", (row("gap", {}, attacks={"linkteller": attacked}), row("gcn", {})))
    text = table.markdown_text(sheet)
    assert "| linkteller: AUC (95%) | linkteller: found at 1% false alarms, % |" in text
    assert "; without protection 0.99 |" in text and "; epsilon allows 50.0 |" in text
    first, second = table.content(sheet)["rows"]
    assert first["attacks"]["linkteller"]["auc"]["mean"] == attacked.auc.mean
    assert second["attacks"] == {}
    lines = csv.DictReader(io.StringIO(table.csv_text(sheet)))
    assert [line["linkteller_auc"] for line in lines] == [str(attacked.auc.mean), ""]
