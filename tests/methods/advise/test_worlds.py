"""Advice: made graphs, rehearsals on them, the table of rules and the figures that it rests on."""

from __future__ import annotations

import csv
import itertools
import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graphveil.errors import InputError
from graphveil.graphs import social_graph
from graphveil.graphs.value.parts import GraphParts
from graphveil.graphs.value.schema import PRIVATE_PARTS
from graphveil.methods.advise.advice import Request, advise, all_trusts
from graphveil.methods.advise.goal import GRID, Goal, budget_of, goal_of, protected, smallest, wanted
from graphveil.methods.advise.rehearsal import EXCESS, Band, Rehearsal, Trial, World, facts_of, rehearse, worlds_of
from graphveil.methods.advise.rules import GRAPHS, RULES, TRUSTS, Rule, cells, most_alike, rule_for
from graphveil.methods.registry import METHODS
from graphveil.methods.runs import experiment
from graphveil.methods.runs.intervals import Interval
from graphveil.privacy import SeededRandomness
from graphveil.runtime.progress import Progress
from tests.methods.advise.made import parts, sealed


def test_public_features_and_labels_stay_with_their_people_in_a_sample() -> None:
    graph = parts("edges", nodes=2400)
    numbered = replace(graph, x=np.arange(2400, dtype=np.float32)[:, None].repeat(12, axis=1))
    numbered = replace(numbered, schema=replace(graph.schema, high=2400.0))
    closed = sealed(numbered, "edges")
    for world in worlds_of(closed, facts_of(closed, ("edges",), 6.0), seed=0):
        people = world.graph.x.numpy()[:, 0].astype(int)
        assert len(set(people)) == 1500
        assert np.array_equal(world.graph.y.numpy(), graph.y[people])


def with_public_edges(nodes: int = 400) -> GraphParts:
    """A graph of which every other relationship is public."""
    graph = parts("edges", nodes=nodes, degree=10.0)
    low, high = np.minimum(*graph.edge_index), np.maximum(*graph.edge_index)
    return replace(graph, public_edges=(low + high) % 2 == 0)


def test_public_edges_stay_and_private_ones_are_made_beside_them() -> None:
    graph = with_public_edges()
    facts = facts_of(graph, ("edges",), None)
    (world,) = worlds_of(graph, facts)
    assert "private contacts lie as public ones do" in world.name
    public = world.graph.edge_index.numpy()[:, world.graph.public_edges.numpy()]
    assert np.array_equal(public, graph.edge_index[:, graph.public_edges])
    assert world.graph.edge_index.shape[1] > 1.5 * public.shape[1]
    # Pairs have no direction: the three worlds of any graph stand in for those of one whose links have.
    directed = replace(graph, schema=replace(graph.schema, directed=True))
    assert len(list(worlds_of(directed, facts))) == len(EXCESS)


@pytest.mark.slow  # trainings
def test_private_edges_are_made_alike_whichever_the_true_ones_are() -> None:
    """The same public edges and other private ones give the same world."""
    graph = with_public_edges(200)
    only = replace(
        graph, edge_index=graph.edge_index[:, graph.public_edges], public_edges=np.ones(graph.public_edges.sum(), bool)
    )
    (first,), (second,) = (worlds_of(g, facts_of(g, ("edges",), None)) for g in (graph, only))
    assert np.array_equal(first.graph.edge_index.numpy(), second.graph.edge_index.numpy())


# ---- which method is advised for which trust and declaration, and that nothing private is read for it ----


#: Trust, parts declared private, contacts a person -> method (None: nothing), and whether a rule fits at all.
CHOICES = [
    ("local", ("labels",), 8.0, "label-pool", True),
    ("local", ("features", "labels"), 8.0, "label-pool", True),
    ("local", ("features",), 8.0, None, True),
    ("local", ("edges",), 8.0, None, False),
    ("links", ("edges",), 8.0, "links", True),
    ("links", ("labels", "edges"), 8.0, "links", True),
    ("links", ("labels",), 8.0, None, False),
    ("curator", ("edges",), 8.0, "class-sums", True),
    ("curator", ("features", "labels"), 8.0, "dp-mlp", True),
    ("curator", ("features", "labels"), 30.0, "node-sums", True),
    ("curator", (), 8.0, None, False),
    ("release", ("edges",), 8.0, "class-counts", True),
    ("release", ("features",), 8.0, None, True),
    ("federation", ("features",), 8.0, "guesses", True),
]


@pytest.mark.parametrize(("trust", "private", "degree", "method", "fits"), CHOICES)
def test_the_rule_follows_from_trust_and_declaration(
    trust: str, private: tuple[str, ...], degree: float, method: str | None, fits: bool
) -> None:
    graph = sealed(parts(*private, degree=degree), *private)
    request = Request(private, degree=None, rehearsed=False)
    advice = advise(trust, graph, request)
    assert (advice.rule is not None) == fits
    assert (advice.rule.method if advice.rule else None) == method
    assert set(private) <= set(advice.facts.hidden)


@pytest.mark.parametrize(
    ("trust", "private", "hidden"),
    [
        ("local", ("features", "labels"), ("features", "labels")),
        ("links", ("edges",), ("edges",)),
        ("curator", ("edges",), ("edges",)),
        ("curator", ("features", "labels"), ("features", "labels", "edges")),
    ],
)
@pytest.mark.slow
def test_advice_and_rehearsal_read_nothing_private(
    trust: str, private: tuple[str, ...], hidden: tuple[str, ...]
) -> None:
    """Private parts fail when they are read."""
    graph, request = parts(*private, nodes=200), Request(private, degree=6.0)
    events: list[Progress] = []
    closed = hidden if trust != "curator" or "edges" in private else private
    advice = advise(trust, sealed(graph, *closed), request, events.append)
    assert advice.facts.hidden == hidden and len(events) == len(EXCESS)
    assert advice.expected.low < advice.expected.high and None not in (advice.rehearsal, advice.adversary)


def test_a_public_data_set_is_read_as_if_its_trusts_parts_were_private() -> None:
    graph = parts("features", "labels")
    methods = [advice.rule.method for advice in all_trusts(graph, Request(None)) if advice.rule is not None]
    assert methods == ["label-pool", "links", "class-sums", "class-counts", "guesses"]
    assert [advice.trust for advice in all_trusts(graph, Request(None))] == list(TRUSTS)


def test_without_a_rehearsal_the_band_is_that_of_the_graphs_most_alike() -> None:
    advice = advise("curator", parts("edges"), Request(("edges",), degree=8.0, rehearsed=False))
    lifts = [cell.lift for cell in advice.alike]
    assert advice.expected is not None and len(lifts) == 3
    assert advice.expected.low == pytest.approx(min(lifts) / 100)
    assert advice.expected.high == pytest.approx(max(lifts) / 100)
    assert advice.on == "not rehearsed"


def test_facts_count_public_parts_alone() -> None:
    graph = parts()
    everything = facts_of(graph, ())
    assert everything.nodes == 300 and everything.labelled == 270
    assert everything.degree == graph.edge_index.shape[1] / 300
    assert everything.inside is not None and 0.5 < everything.inside < 0.9
    nothing = facts_of(sealed(graph, "features", "labels", "edges"), ("features", "labels", "edges"), 5.0)
    assert (nothing.degree, nothing.largest, nothing.inside) == (5.0, None, None)


def test_several_labels_a_node_are_refused() -> None:
    graph = parts()
    with pytest.raises(InputError, match="several labels"):
        facts_of(replace(graph, y=np.zeros((300, 3), np.float32)), ())


@pytest.mark.parametrize("hidden", [("edges",), ("features", "labels"), ("features", "labels", "edges")])
def test_a_world_has_the_public_parts_and_as_many_contacts_inside_a_class_as_it_says(hidden: tuple[str, ...]) -> None:
    graph = parts(nodes=1000, degree=10.0)
    facts = facts_of(sealed(graph, *hidden), hidden, 10.0)
    for world, excess in zip(worlds_of(sealed(graph, *hidden), facts), EXCESS.values(), strict=True):
        generated = world.graph
        source, target = generated.edge_index
        labels = generated.y.numpy()
        both = (labels[source] >= 0) & (labels[target] >= 0)
        inside = float((labels[source] == labels[target])[both.tolist()].mean())
        assert f"({100 * inside:.0f}% inside)" in world.name
        if "edges" in hidden:  # classes cannot follow given edges more than these fall into groups
            assert inside == pytest.approx(1 / 3 + 2 / 3 * excess, abs=0.08)
        assert generated.edge_index.shape[1] / 1000 == pytest.approx(10.0, rel=0.1)
        assert ((labels < 0) == (graph.y < 0)).all()
        if "edges" not in hidden:
            assert np.array_equal(generated.edge_index.numpy(), graph.edge_index)
        if "labels" not in hidden:
            assert np.array_equal(labels, graph.y)


# ---- rehearsals: what is trained on what, and the bands that are made of them ----


def world(homophily: float = 0.8, seed: int = 1) -> World:
    graph = social_graph(200, average_degree=8, dimension=10, classes=3, homophily=homophily, apps=3, seed=seed)
    return World(f"homophily {homophily}", graph)


def test_every_world_is_met_with_every_seed_and_progress_says_where_it_is() -> None:
    events: list[Progress] = []
    worlds, seeds = (world(), world(0.4)), (0, 1, 2)
    rehearsal = rehearse("label-propagation", {"epsilon_y": 2.0}, worlds, (), seeds=seeds, progress=events.append)
    assert [trial.world for trial in rehearsal.trials] == ["homophily 0.8"] * 3 + ["homophily 0.4"] * 3
    assert [(event.done, event.total) for event in events] == [(place, 6) for place in range(6)]
    assert {event.stage for event in events} == {"rehearsing label-propagation at epsilon 2"}
    assert len({trial.accuracy.mean for trial in rehearsal.trials[:3]}) > 1


def test_it_is_what_a_run_with_that_noise_reaches() -> None:
    """One accuracy of a rehearsal and of `experiment.run` on the same split, seed and noise."""
    (trial,) = rehearse("label-propagation", {"epsilon_y": 2.0}, [world()], ("majority",), seeds=(0,)).trials
    run = experiment.run(
        "label-propagation", world().graph, settings={"epsilon_y": 2.0}, controls=False, randomness=SeededRandomness(0)
    )
    assert trial.accuracy == run.scores.accuracy


def trial(mean: float, half: float, accuracy: float = 0.5) -> Trial:
    lift = Interval(mean, mean - half, mean + half, (mean,))
    return Trial("made", Interval(accuracy, accuracy - half, accuracy + half, (accuracy,)), lift, "majority")


def test_a_band_reaches_from_the_least_to_the_greatest_end_of_all_intervals() -> None:
    rehearsal = Rehearsal((trial(0.1, 0.02, 0.5), trial(0.3, 0.05, 0.7), trial(0.2, 0.2, 0.6)))
    lift, accuracy = rehearsal.band("lift"), rehearsal.band("accuracy")
    assert (lift.low, lift.high) == (pytest.approx(0.0), pytest.approx(0.4))
    assert (accuracy.low, accuracy.high) == (pytest.approx(0.4), pytest.approx(0.8))


# ---- a goal for a method that somebody chose ----


PROTECTED = [
    ("label-pool", {"epsilon": 1.0}, {"labels"}),
    ("lpgnn", {"epsilon": 1.0}, {"features", "labels"}),
    ("links", {"epsilon_a": 1.0}, {"edges"}),
    ("links", {"epsilon_a": 1.0, "epsilon_x": None, "epsilon_y": 2.0}, {"features", "labels", "edges"}),
    ("solitude", {"epsilon_a": 1.0}, {"features", "edges"}),
    ("solitude", {"epsilon_a": 1.0, "epsilon_x": math.inf}, {"edges"}),
    ("class-sums", {"epsilon": 1.0}, {"edges"}),
    ("gap", {"epsilon": 1.0, "unit": "node"}, {"features", "labels", "edges"}),
    ("dp-mlp", {"epsilon": 1.0}, {"features", "labels", "edges"}),
    ("node-sums", {"epsilon": 1.0}, {"features", "labels", "edges"}),
    ("class-counts", {"epsilon_a": 1.0}, {"edges"}),
    ("heterorr", {"epsilon_a": 1.0, "epsilon_x": 1.0}, {"features", "edges"}),
]


@pytest.mark.parametrize(("method", "settings", "hidden"), PROTECTED)
def test_what_a_method_protects_is_not_read(method: str, settings: dict[str, Any], hidden: set[str]) -> None:
    assert set(protected(method, settings)) == hidden


@pytest.mark.parametrize(
    ("method", "budget"),
    [("label-pool", "epsilon"), ("class-sums", "epsilon"), ("links", "epsilon_a"), ("class-counts", "epsilon_a")],
)
def test_the_epsilon_that_is_searched(method: str, budget: str) -> None:
    assert budget_of(method, {}) == budget
    with pytest.raises(InputError, match="is what is searched"):
        budget_of(method, {budget: 1.0})


def test_a_method_that_spends_nothing_has_no_goal() -> None:
    with pytest.raises(InputError, match="spends no epsilon"):
        budget_of("gcn", {})


def test_a_goal_is_searched_without_reading_what_is_private() -> None:
    graph, events = parts("features", "labels", nodes=200), list[Progress]()
    answer = wanted(
        "label-propagation",
        {},
        sealed(graph, "features", "labels"),
        Goal("accuracy", 0.9),
        declared=("features", "labels"),
        progress=events.append,
    )
    assert answer.budget == "epsilon" and answer.on == "synthetic graphs" and events
    assert set(answer.reached.tried) <= set(GRID) and "accuracy of at least 90 %" in answer.sentence


def test_a_pilot_is_all_that_is_rehearsed_on() -> None:
    """The graph itself fails at any reading but that of its shape and of who has a label."""
    graph, pilot = parts("features", "labels"), parts(nodes=200)
    closed = sealed(graph, "features", "labels", "edges")
    answer = wanted("label-propagation", {}, closed, Goal("accuracy", 0.3), declared=("labels",), pilot=pilot)
    assert "the pilot" in answer.on and "declare public or already paid" in answer.on and " s" in answer.sentence
    assert answer.reached.hopeful is not None


# ---- the table of rules, goals, and the figures that advice rests on ----


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
    for named in (rule.protects, rule.wants, rule.needs):
        assert set(named) <= set(PRIVATE_PARTS)
    assert not set(rule.wants) & set(rule.needs), "a rule that no declaration fits"
    assert any(rule.fits(private, degree) for private in DECLARATIONS for degree in DEGREES)
    assert all(text and not text.endswith(".") and "\n" not in text for text in (rule.why, rule.loses, rule.open))
    assert (rule.budget == "") == (rule.method is None) == math.isinf(rule.epsilon)


def test_an_epsilon_that_is_asked_for_takes_the_place_of_the_advised_one() -> None:
    rule = rule_for("links", ("labels", "edges"), None)
    assert rule.choice() == {"epsilon_x": None, "epsilon_y": 2.0, "epsilon_a": 4.0}
    assert rule.choice(1.0)["epsilon_a"] == 1.0 and rule.choice(1.0)["epsilon_y"] == 2.0
    assert METHODS["links"].settle(rule.choice(1.0))["epsilon_x"] is None


@pytest.mark.parametrize(
    ("degree", "method"), [(None, "dp-mlp"), (19.9, "dp-mlp"), (20.0, "node-sums"), (90.0, "node-sums")]
)
def test_noisy_votes_of_whole_people_take_many_contacts(degree: float | None, method: str) -> None:
    rule = rule_for("curator", ("features", "labels", "edges"), degree)
    assert rule is not None and rule.method == method


# ---- the smallest epsilon that reaches a goal ----


def rising(epsilon: float) -> Band:
    """A lift that grows with epsilon; the band is 10 points wide."""
    return Band(0.05 * epsilon - 0.05, 0.05 * epsilon + 0.05)


@pytest.mark.parametrize("least", [0.01, 0.05, 0.1, 0.15, 0.2, 0.3, 0.35])
def test_it_is_the_first_of_the_grid_at_either_end_of_the_band(least: float) -> None:
    reached = smallest(Goal("lift", least), rising)
    assert reached.hopeful == next((epsilon for epsilon in GRID if rising(epsilon).high >= least), None)
    assert reached.sure == next((epsilon for epsilon in GRID if rising(epsilon).low >= least), None)
    assert set(reached.tried) <= set(GRID)


def test_a_goal_that_is_out_of_reach_is_said_with_the_best_that_was_found() -> None:
    reached = smallest(Goal("lift", 0.9), rising)
    assert reached.hopeful is None and reached.sure is None
    assert "no epsilon up to 8 reaches it" in reached.sentence and "+35.0 to +45.0" in reached.sentence


def test_a_goal_that_only_luck_reaches_is_no_recommendation() -> None:
    reached = smallest(Goal("lift", 0.4), rising)
    assert reached.hopeful == 8.0 and reached.sure is None and "do not count on it" in reached.sentence
    assert "from epsilon 8 on" in reached.sentence and "gave +35.0 to +45.0 points" in reached.sentence
    share = smallest(Goal("accuracy", 0.4), rising).sentence
    assert "gave 35.0 to 45.0 %" in share


@pytest.mark.parametrize("text", ["accuracy", "lift=", "lift=0", "lift=2", "acc=0.5", "lift=nan", "accuracy=0.8=1", ""])
def test_what_is_no_goal_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="no goal"):
        goal_of(text)


# ---- the figures that advice rests on are those of the benchmarks, and the nearest graphs are found ----


ROOT = Path(__file__).parents[3]
RUNS = ROOT / "benchmarks" / "panel-runs"
#: Of a table of the panel: the advised method, its controls, and the epsilons of each level of the defaults.
TABLES: dict[str, tuple[str, tuple[str, ...], tuple[float, ...]]] = {
    "curator": ("class-sums", ("no-edges", "features-pool"), (1, 4, 45)),
    "nodes": ("node-sums", ("dp-mlp",), (2, 8, 50)),
    "release": ("class-counts", ("public-edges", "public-pool"), (1, 4, 15)),
    "links": ("links", ("no-lists",), (2, 4, 15)),
    "local": ("label-pool", ("majority", "label-propagation"), (1, 2, 20)),
}


def panel(table: str) -> dict[tuple[str, float], tuple[float, float]]:
    """The advised method's accuracy in a table of the panel, and that of the stronger control, by graph and epsilon."""
    method, controls, _ = TABLES[table]
    with (RUNS / f"{table}.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    strongest = [max(float(row[control]) for control in controls) for row in rows]
    return {
        (row["graph"], float(row["epsilon"])): (float(row[method]), control)
        for row, control in zip(rows, strongest, strict=True)
    }


def typed() -> dict[tuple[str, str, str], float]:
    """The accuracy of each method with its defaults, by method, graph and level."""
    fits: dict[tuple[str, str, str], list[float]] = {}
    for line in (RUNS / "defaults.jsonl").read_text(encoding="utf-8").splitlines():
        run = json.loads(line)
        if run["row"] == "default":
            fits.setdefault((run["method"], run["graph"], run["level"]), []).append(run["accuracy"])
    return {key: round(float(np.mean(values)), 1) for key, values in fits.items()}


def test_the_panel_is_that_of_the_benchmarks() -> None:
    defaults = typed()
    for table, (method, _, epsilons) in TABLES.items():
        tuned, levels = panel(table), dict(zip(map(float, epsilons), ("small", "usual", "limit"), strict=True))
        of_graph = {graph: control for (graph, _), (_, control) in tuned.items()}
        have = {(cell.method, cell.graph, cell.epsilon): cell for cell in cells(table)}
        assert {(method, *key) for key in tuned} <= set(have)
        for (name, graph, epsilon), cell in have.items():
            if name == method and (graph, epsilon) in tuned:
                accuracy, control = tuned[graph, epsilon]
            elif table == "nodes":
                accuracy = defaults["gap by node" if name == "gap" else name, graph, levels[epsilon]]
                control = math.nan if name == "dp-mlp" else defaults["dp-mlp", graph, levels[epsilon]]
            else:
                accuracy = defaults[name, graph, levels[epsilon]]
                # Noisy labels are part of the local controls, which have no figure at these epsilons.
                control = math.nan if table == "local" else of_graph.get(graph, math.nan)
            assert cell.accuracy == accuracy
            assert cell.lift == pytest.approx(round(accuracy - control, 1), nan_ok=True)


def test_every_measured_graph_is_described_and_every_rule_names_what_there_is() -> None:
    for rule in RULES:
        assert rule.trust in TRUSTS and (ROOT / rule.page).is_file()
        assert rule.method in (None, "guesses") or rule.method in METHODS
        if rule.method in METHODS:
            METHODS[str(rule.method)].settle(rule.choice())
        for cell in cells(rule.panel) if rule.panel else ():
            assert cell.graph in GRAPHS


def test_graphs_are_alike_by_people_contacts_and_classes() -> None:
    curator = cells("curator")
    assert most_alike(curator, nodes=5000, classes=6, degree=70)[0] == "hopkins"
    assert set(most_alike(curator, nodes=3000, classes=7, degree=4.0)) == {"cora", "cora-ml", "citeseer"}
    assert len(most_alike(curator, nodes=100, classes=2, degree=None, most=2)) == 2


def test_of_each_graph_the_nearest_epsilon_counts_and_other_methods_are_listed_beside() -> None:
    graph = parts("edges")
    for epsilon, nearest in ((0.7, 1.0), (4.0, 4.0), (40.0, 45.0)):
        advice = advise("curator", graph, Request(("edges",), epsilon=epsilon, degree=8.0, rehearsed=False))
        assert [(cell.method, cell.epsilon) for cell in advice.alike] == [("class-sums", nearest)] * 3
    assert {cell.method for cell in advice.measured} >= {"class-sums", "gap", "progap", "lpgnet"}
    # The accuracy of a method that is its own control is listed, and no lift.
    request = Request(("features", "labels"), rehearsed=False)
    people = advise("curator", parts("features", "labels"), request)
    assert people.rule is not None and people.rule.method == "dp-mlp" and people.alike == () and people.expected is None
    assert {cell.accuracy is not None for cell in people.measured if cell.method == "dp-mlp"} == {True}
