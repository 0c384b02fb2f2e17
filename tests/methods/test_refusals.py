"""A refusal speaks of what was typed: the method, the setting, its value, and the nearest value that is taken."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch

from graphveil import VFGNN, methods
from graphveil.errors import BudgetError, InputError
from graphveil.graphs import GraphSchema
from graphveil.methods import METHODS
from graphveil.methods.base.method import Method
from graphveil.methods.base.people.released import Topology, topology_of
from graphveil.methods.base.settings import NAMES, NUMBERS, Bounds
from graphveil.methods.local.label_propagation import LabelPropagation
from graphveil.methods.local.lpgnn import LPGNN
from graphveil.methods.registry import build_method, chosen_settings, find_method
from graphveil.methods.release.extractor import Extractor
from graphveil.methods.runs import experiment
from graphveil.methods.runs.search import Search
from graphveil.privacy import SecureRandomness, SeededRandomness
from graphveil.training.convolved import ConvolvedRegression
from graphveil.training.selection import selection_rule
from tests.methods import made

SCHEMA = GraphSchema("made", 8, 0.0, 1.0, ("a", "b", "c"))
#: Settings beside which a setting has a meaning, and short trainings.
BESIDE = {"delta": {"mechanism": "gaussian"}, "degree_share": {"denoiser": "blink-hybrid"}}


def built(method: Method, settings: dict[str, Any]) -> Any:
    """The estimator of chosen settings."""
    return build_method(method.name, settings, classes=3)


def beyond(bounds: Bounds, kind: type) -> list[float]:
    """Values just outside of a range."""
    step = 1 if kind is int else 1e-6
    ends = (bounds.least, -step), (bounds.most, step), (bounds.above, 0), (bounds.below, 0)
    return [kind(end + move) for end, move in ends if end is not None]


@pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)
def test_a_value_out_of_range_is_refused_by_its_name(method: Method) -> None:
    for key, option in method.options.items():
        beside = {name: value for name, value in BESIDE.get(key, {}).items() if name in method.options}
        if option.type is str:
            values: list[Any] = ["nonsense"] if option.within or key in NAMES else []
        else:
            values = beyond(NUMBERS.get(key, Bounds()), option.type)
        for value in values:
            with pytest.raises(InputError) as caught:
                built(method, {**beside, key: value})
            text = str(caught.value)
            assert key in text and (re.search(re.escape(str(value)), text) or "does not apply" in text), text
            assert option.within is None or not any(name in text for name in set(NAMES.get(key, ())) - {*option.within})


@pytest.mark.parametrize(
    ("name", "settings", "refused", "nearest"),
    [
        ("dp-mlp", {"passes": 1_000_000, "hidden": 1000}, "passes is 1000000", {}),
        ("gap", {"bits": 2, "epsilon": 50.0}, "bits is 2", {"bits": 6}),
        ("gap", {"bits": 20}, "bits is 20", {"bits": 15}),
        ("eclipse", {"epsilon": 1e-6}, "epsilon is 1e-06", {}),
        ("gap", {"delta": 1e-290, "epsilon": 2.0}, "delta is 1e-290", {}),
        ("gap", {"degree_bound": 10**13, "batch": 1000}, f"degree_bound is {10**13}", {}),
    ],
)
def test_noise_that_cannot_be_had_is_refused_with_the_nearest_value(
    name: str, settings: dict[str, Any], refused: str, nearest: dict[str, Any]
) -> None:
    method = METHODS[name]
    with pytest.raises(InputError, match=f"^{re.escape(refused)}: ") as caught:
        built(method, settings).planned_noise(SCHEMA, 60)
    key = refused.partition(" ")[0]
    end = re.search(r"allowed: at (least|most) (\S+), the other settings", str(caught.value))
    assert end is not None, str(caught.value)
    value = method.options[key].type(float(end[2]))
    built(method, {**settings, key: value}).planned_noise(SCHEMA, 60)
    assert (value > settings[key]) == (end[1] == "least") and (not nearest or value == nearest[key])


@pytest.mark.parametrize(
    ("name", "settings", "followed"),
    [
        ("gap", {"weights": "attention"}, {"hops": 1}),
        ("gap", {"relationships": 3}, {"unit": "k-edges"}),
        ("progap", {"degree_bound": 5}, {"unit": "node"}),
        ("heterorr", {"bins": 4}, {"features": "feature-rr"}),
        ("heterorr", {"count_share": 0.1}, {"edges": "lap-graph"}),
        ("lpgnn", {"stand_in": "degree"}, {"epsilon_x": None}),
    ],
)
def test_what_a_setting_forces_follows_unless_it_is_set(
    name: str, settings: dict[str, Any], followed: dict[str, Any]
) -> None:
    method = METHODS[name]
    settled = method.settle(settings)
    assert {key: settled[key] for key in followed} == followed
    assert built(method, settings).parameters().items() >= followed.items()
    for rule in method.forced:
        assert {rule.by, rule.setting} <= {*method.options}
        default = method.options[rule.setting].default
        assert default != rule.value, "a setting that follows is another than by default"
    with pytest.raises(InputError, match="|".join((*settings, *followed))):
        other = {"hops": 2, "unit": "edge", "features": "laplace", "edges": "public-tree", "epsilon_x": 1.0}
        built(method, {**settings, **{key: other[key] for key in followed}})


# ---- methods by name ----


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        *((name, {}) for name in METHODS),
        ("lpgnn", {"epsilon": 1.0}),
        ("lpgnn", {"epsilon": 30.0}),
        ("lpgnn", {"epsilon_x": None, "epsilon_y": 1.0}),
        ("lpgnn", {"mechanism": "gaussian", "delta": 1e-6, "hidden": 8}),
        ("label-propagation", {"epsilon": 2.0}),
        ("solitude", {"denoiser": "blink-hard", "degree_share": 0.3}),
        ("gap", {"epsilon": 2.0, "unit": "node", "epochs": 3}),
    ],
)
def test_a_method_is_built_once_more_from_what_a_run_recorded(name: str, settings: dict[str, object]) -> None:
    first = build_method(name, settings, 5)
    used = METHODS[name].load_family().used_settings(first, METHODS[name].settle(settings))
    second = build_method(name, chosen_settings(name, used), 5)
    assert type(second) is type(first)
    for part in ("settings", "privacy", "links", "rule", "rounds"):
        assert getattr(second, part, None) == getattr(first, part, None)


def test_a_total_budget_is_split_as_advised() -> None:
    small, large = build_method("lpgnn", {"epsilon": 2.0}, 7), build_method("lpgnn", {"epsilon": 8.0}, 7)
    assert isinstance(small, LabelPropagation) and (small.rule, small.privacy.epsilon_y) == ("pool", 2.0)
    assert isinstance(large, LPGNN)
    assert large.privacy.epsilon_x + large.privacy.epsilon_y == pytest.approx(8.0)
    assert build_method("label-propagation", {"epsilon": 3.0}, 7).privacy.epsilon_y == 3.0


@pytest.mark.parametrize(
    ("name", "settings", "says"),
    [
        ("lpgnn", {"epsilon": 2.0, "epsilon_x": 1.0}, "epsilon is a total that is split for you"),
        ("lpgnn", {"delta": 1e-5}, "delta belongs to the gaussian mechanism alone"),
        ("solitude", {"degree_share": 0.2}, "degree_share does not apply to denoiser calibration; allowed: with deg"),
        ("solitude", {"denoiser": "none", "degree_share": 0.2}, "degree_share does not apply to denoiser none"),
        ("solitude", {"denoiser": "none", "lambda1": 0.1}, "lambda1 does not apply to denoiser none; allowed: with"),
        ("solitude", {"denoiser": "blink-hard", "complement": 3}, "complement does not apply to denoiser blink-hard"),
        ("solitude", {"epsilon_a": math.inf, "lambda2": 0.1}, "lambda2 does not apply where links are public"),
        ("blink", {"epsilon_a": math.inf, "degree_share": 0.2}, "degree_share does not apply where links are public"),
        ("blink", {"denoiser": "none"}, "setting 'denoiser' is not known"),
        ("dprr", {"lambda1": 0.1}, "setting 'lambda1' is not known"),
        ("list-sums", {"rounds": 5}, "setting 'rounds' is not known"),
        ("links", {"reading": "sums"}, "setting 'reading' is not known"),
        ("link-beliefs", {"reading": "none"}, "reading is 'none'; allowed: beliefs, sums, all"),
        ("link-beliefs", {"epochs": 5}, "setting 'epochs' is not known"),
        ("link-beliefs", {"epsilon_a": math.inf}, "links are public; train lpgnn"),
        ("solitude", {"denoiser": "blink-soft", "steps_x": 2}, "allowed: steps_x=0, steps_y=0"),
        ("solitude", {"denoiser": "blink-soft", "steps_x": 0, "model": "gat"}, "which model gat cannot read"),
        ("link-beliefs", {"blocks": "planted", "reading": "sums"}, "blocks 'planted' with reading sums"),
        ("solitude", {"denoiser": "nothing"}, "denoiser is 'nothing'; allowed: calibration, none"),
        ("solitude", {"mode": "upper"}, "mode is 'upper'; allowed: lower, both, directed"),
    ],
)
def test_settings_that_would_not_be_looked_at_are_refused(name: str, settings: dict[str, object], says: str) -> None:
    with pytest.raises(InputError, match=says):
        build_method(name, settings, 5)


class Own(torch.nn.Linear):
    """A network of a user's own."""


EXTRACTOR: dict[str, Any] = {"dimension": 3, "low": 0.0, "high": 1.0, "source": "trained on public pages"}
SOFT: dict[str, Any] = {"epsilon_x": 1.0, "epsilon_a": 4.0, "denoiser": "blink-soft", "steps_x": 0}
CONVEX: dict[str, Any] = {"restart": 0.3, "depth": 4, "penalty": 0.1, "people": 6, "columns": 2, "classes": 3}


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: find_method("gnn"), "method 'gnn' is not known; allowed: lpgnn, "),
        (lambda: methods.LPGNN(epsilon_x=1.0, epsilon_y=1.0).set_params(steps=1), "setting 'steps' is not known"),
        (lambda: methods.LabelPropagation(epsilon_y=1.0, backbone=Own), "this method trains no network"),
        (lambda: methods.LabelPropagation(epsilon_y=1.0, start="public"), "start with label-pool"),
        (lambda: methods.Solitude(**SOFT, backbone=Own), "a backbone of your own with denoiser blink-soft"),
        (lambda: methods.DPMLP(epsilon=math.inf, backbone=Own), "own with epsilon=inf; train it in torch"),
        (lambda: methods.LabelPool(epsilon_y=1.0, seed=-1), "seed is -1; allowed: a whole number in 0"),
        (lambda: methods.Links(epsilon_a=1.0, seed=None), "seed is None; allowed: a whole number in 0"),
        (lambda: methods.ClassCounts(epsilon_a=1.0, seed=2**70), f"seed is {2**70}; allowed: a whole number in 0"),
        (lambda: methods.ClassCounts(epsilon_a="1"), "epsilon_a is '1'; allowed: a number in"),
        (lambda: methods.GAP(epsilon="1"), "epsilon is '1'; allowed: a number in"),
        (lambda: methods.ProGAP(epsilon=None), "epsilon is None; allowed: a number in"),
        (lambda: methods.NodeSums(epsilon="1"), "epsilon is '1'; allowed: a number in"),
        (lambda: methods.GAP(epsilon=1.0, tuning=5), "tuning is 5; allowed: a graphveil.privacy"),
        (
            lambda: methods.Solitude(epsilon_x=1.0, epsilon_a=4.0, denoiser=[]),
            r"denoiser is \[\]; allowed: calibration",
        ),
        (
            lambda: methods.LabelPool(epsilon_y=1.0, device=torch.device("cpu")),
            "device is device.*allowed: a text: cpu",
        ),
        (lambda: methods.AnswerPool(epsilon_x=1.0, epsilon_y=1.0, question=3), "question is a int; allowed: a text"),
        (
            lambda: methods.HeteroRR(epsilon_x=1.0, epsilon_a=1.0, scores=[0.5]),
            "scores is a list; allowed: a text file",
        ),
        (lambda: run_of(seed=-1), "seed is -1; allowed: a whole number in 0"),
        (lambda: run_of(split=made.split_of(made.graph())), "split is a Split; allowed: a text, such as random"),
        (lambda: run_of(repeats=0), "repeats is 0; allowed: a whole number of at least 1"),
        (lambda: run_of(search=Search({"hidden": (2, 4)}), engine=object()), "trials of a search run here"),
        (lambda: methods.load_method(None), "path is None; allowed: a text or a path"),  # type: ignore[arg-type]
        (lambda: methods.ClassSums.load(3), "path is 3; allowed: a text or a path"),  # type: ignore[arg-type]
        (lambda: VFGNN(epsilon=8.0).fit(made.graph(), watch=3), "watch is 3; allowed: a function"),  # type: ignore[arg-type]
        (lambda: selection_rule("best", ideal=1.0), "selection 'best' is not known; allowed: robust, published, last"),
        (lambda: Extractor(Own(4, 3), **EXTRACTOR | {"high": math.inf}), "two finite numbers, low < high"),
        (lambda: Extractor(Own(4, 3), **EXTRACTOR | {"low": "0"}), "two finite numbers, low < high"),
        (lambda: Extractor(Own, **EXTRACTOR), "embed is .*; allowed: a function of rows"),
        (lambda: Extractor(Own(4, 3), **EXTRACTOR)(torch.zeros(5, 7)), "extractor: it cannot read rows of 7 numbers"),
        (
            lambda: Extractor(Own(4, 2), **EXTRACTOR)(torch.zeros(5, 4)),
            r"embeddings are \(5, 2\), .* allowed: \[5, 3\]",
        ),
        (lambda: ConvolvedRegression(**CONVEX | {"restart": 0.0}), r"restart is 0.0; allowed: a number in \(0, 1\]"),
        (lambda: ConvolvedRegression(**CONVEX | {"people": 0}), "people is 0"),
    ],
    ids=lambda part: part if isinstance(part, str) else "",
)
def test_misuse_is_refused_before_anything_is_read(call: Callable[[], object], says: str) -> None:
    with pytest.raises(InputError, match=says):
        call()


@pytest.mark.parametrize(
    "name", ["lpgnn", "answer-pool", "links", "class-sums", "gap", "dp-mlp", "heterorr", "class-counts"]
)
def test_what_is_no_split_or_source_of_noise_is_refused_before_anything_is_paid(name: str) -> None:
    graph = made.graph()
    split = made.split_of(graph)
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"split": "random"}, "split: is a str; allowed: a graphveil.graphs.Split"),
        ({"split": replace(split, val=split.train)}, "split: a node is in two parts"),
        ({"split": replace(split, test=split.test.numpy())}, "split: test is ndarray; allowed: a torch tensor of bool"),
        ({"split": replace(split, train=split.train & False)}, "no training node carries a label"),
        ({"split": replace(split, val=split.val[1:])}, r"split: val is torch.bool \[59\]"),
        ({"randomness": 3}, r"randomness is 3; allowed: a source of graphveil.privacy: SecureRandomness"),
        ({"randomness": SeededRandomness}, "randomness is .*; allowed: a source"),
        ({"progress": 3}, "progress is 3; allowed: a function"),
        ({"engine": "ray"}, "engine"),
    ]
    for how, says in wrong:
        method = built(METHODS[name], {})
        with pytest.raises(InputError, match=says):
            method.fit(graph, **{"split": split, "randomness": SeededRandomness(1), **how})
        assert method.ledger.spends == ()
        # The half that reads has callers of its own.
        if says.startswith("split: ") or "randomness" in how:
            with pytest.raises(InputError, match=says):
                method.collect(graph, **{"split": split, "randomness": SeededRandomness(1), **how})
            assert method.ledger.spends == ()


def test_reports_and_topology_are_those_of_the_family() -> None:
    graph = made.graph()
    local, lists = LPGNN(epsilon_x=1.0, epsilon_y=1.0), methods.Links(epsilon_a=1.0)
    how: dict[str, Any] = {"split": made.split_of(graph), "randomness": SeededRandomness(1)}
    sent, listed = local.randomize(graph, **how), lists.randomize(graph, **how)
    edges = graph.edge_index
    for call, says in (
        (lambda: local.fit_reports(graph, topology_of(graph)), "reports are a .*; allowed: LocalReports"),
        (lambda: lists.fit_reports(sent), "reports are a LocalReports; allowed: LinkReports"),
        (lambda: local.fit_reports(listed, topology_of(graph)), "reports are a LinkReports; allowed: LocalReports"),
        (lambda: local.fit_reports(sent, graph), "topology is a .*; make one: Topology"),
        (lambda: local.fit_reports(sent, Topology(edges.T, made.NODES)), r"edge_index of the topology is torch.int64"),
        (lambda: local.fit_reports(sent, Topology(edges.numpy(), made.NODES)), "of the topology is ndarray; allowed"),
    ):
        with pytest.raises(InputError, match=says):
            call()  # type: ignore[no-untyped-call]


def test_a_publication_is_that_of_the_method_and_its_settings() -> None:
    graph = made.graph()
    how: dict[str, Any] = {"split": made.split_of(graph), "randomness": SeededRandomness(1)}
    options: dict[str, Any] = {"epsilon": 4.0, "epochs": 2}
    sums = methods.ClassSums(**options).publish(graph, **how)
    stages = methods.GAP(**options).publish(graph, **how)
    for call, says in (
        (lambda: methods.ClassSums(**options).fit_published(stages), "is a Publication; allowed: PublishedSums"),
        (lambda: methods.GAP(**options, hidden=32).fit_published(stages), "for networks of other sizes"),
        (lambda: methods.ProGAP(**options).fit_published(stages), "was made by another method"),
        (lambda: methods.GAP(**options).publish("nothing", **how), "no data set or folder 'nothing'"),
        (lambda: methods.LPGNN(epsilon_x=1.0, epsilon_y=1.0).randomize(3, **how), "a int is not a graph"),
    ):
        with pytest.raises(InputError, match=says):
            call()  # type: ignore[no-untyped-call]
    assert methods.ClassSums(**options).fit_published(sums).fitted


def test_a_call_without_noise_costs_no_publication_and_a_refused_question_no_guarantee() -> None:
    graph = made.graph()
    how: dict[str, Any] = {"split": made.split_of(graph), "randomness": SecureRandomness()}
    votes = methods.NodeSums(epsilon=4.0, delta=0.01, epochs=2, passes=1)
    published = votes.publish(graph, **how)
    with pytest.raises(InputError, match="private training needs a source of noise"):
        votes.fit_published(published)
    assert votes.fit_published(published, randomness=SecureRandomness()).guarantee.void is None
    gap = methods.GAP(epsilon=4.0, epochs=2).fit(graph, **how)
    with pytest.raises(BudgetError, match="this run has budget for 0"):
        gap.predict(made.graph(seed=5), randomness=SeededRandomness(1))
    assert gap.guarantee.void is None


def test_who_people_are_is_said_in_two_words() -> None:
    graph = made.graph()
    method = LPGNN(epsilon_x=1.0, epsilon_y=1.0, epochs=2).fit(graph, randomness=SeededRandomness(1))
    for how, says in (
        ({"people": "sme"}, "people is 'sme'; allowed: same, other"),
        ({"reports": 3}, "reports is a int; allowed: what randomize returned"),
        ({"randomness": 3}, "randomness is 3; allowed"),
    ):
        with pytest.raises(InputError, match=says):
            method.predict(graph, **how)


def run_of(**options: Any) -> object:
    """A run on a graph whose content nobody may look at."""
    noise = SeededRandomness(1)
    return experiment.run("lpgnn", made.sealed(made.graph()), settings={}, randomness=noise, **options)
