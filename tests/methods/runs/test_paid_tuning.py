"""Tuning at a price (checklist items 12 and 13): what trials cost, who scores them, and what may come out."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import dp_accounting
import numpy as np
import pytest
from dp_accounting import rdp

from graphveil.errors import BudgetError, DataError, GraphveilError, InputError
from graphveil.methods.curator.privacy import CuratorPrivacy
from graphveil.methods.runs import search as paid_tuning
from graphveil.methods.runs.experiment import run
from graphveil.methods.runs.search import Search, noisy_count, require_payable, tune_at_a_price
from graphveil.privacy import Ledger, RepeatAndSelect, SecureRandomness, SeededRandomness
from graphveil.privacy.accounting.accountant import RDP_ORDERS
from graphveil.privacy.ledger_file import LedgerFile, read_ledger
from graphveil.runtime.progress import Progress
from tests.methods import curator_made as cm
from tests.methods import made

TUNING = RepeatAndSelect(5.0)
FAST: dict[str, Any] = {"epochs": 4, "hidden": 4, "batch": 1000, "epsilon": 4.0}
KINDS: dict[str, tuple[str, dict[str, Any], dict[str, tuple[Any, ...]]]] = {
    "gap by edge": ("gap", {"bits": 5}, {"hops": (1, 3), "weights": ("uniform", "similarity")}),
    "progap by entry": ("progap", {"unit": "directed-edge", "bits": 5}, {"hops": (1, 2)}),
    "gap by node": ("gap", {"unit": "node", "bits": 5}, {"hops": (1, 2), "passes": (2, 5), "degree_bound": (4, 9)}),
    "dp-mlp": ("dp-mlp", {}, {"passes": (2, 5)}),
}
ALL = pytest.mark.parametrize("kind", KINDS)
NODES = pytest.mark.parametrize("kind", ["gap by node", "dp-mlp"])


DRAW = RepeatAndSelect.draw


@pytest.fixture(autouse=True)
def four_trials(monkeypatch: pytest.MonkeyPatch) -> None:
    """The law is tested elsewhere; here it mostly gives four."""
    monkeypatch.setattr(RepeatAndSelect, "draw", lambda self, randomness: 4)


def tuned(kind: str, start: Any = None, over: Any = None, settings: Any = None, **how: Any) -> Any:
    name, own, space = KINDS[kind]
    start = cm.graph() if start is None else start
    split = how.pop("split", None) or cm.split_of(start)
    chosen = {"split": split, "randomness": SeededRandomness(2), "tuning": TUNING, **how}
    return tune_at_a_price(name, start, {**FAST, **own, **(settings or {})}, over or space, **chosen)


# ---- the price ----


def overspent(method: Any, mean: float = 5.0, shape: float = 0.0) -> float:
    """By how much a tuning with the noise of an exported model exceeds its promise, by dp-accounting alone.

    Everything is read off the ledger of what was exported: the noise of sums, of training and of the score.
    """
    parameters, privacy = method.ledger.spends[0].parameters, method.privacy
    entries = {"edge": 2, "directed-edge": 1, "node": parameters.get("degree", 0)}[parameters["unit"]]
    reach = math.sqrt(entries) * parameters.get("w_max", 1.0)
    noise = [parameters[f"sigma_{hop}"] / reach for hop in range(1, parameters["hops"] + 1)]
    events = [
        dp_accounting.GaussianDpEvent(value)
        for value in [*noise, *([parameters["sigma_score"]] if "sigma_score" in parameters else [])]
    ]
    for key, value in parameters.items():
        if key.startswith("multiplier_"):
            steps = dp_accounting.GaussianDpEvent(value)
            events.append(dp_accounting.SelfComposedDpEvent(steps, method.settings.passes))
    trial = dp_accounting.ComposedDpEvent(events)
    whole = dp_accounting.dp_event.RepeatAndSelectDpEvent(trial, mean, shape)
    price = rdp.RdpAccountant(orders=RDP_ORDERS).compose(whole).get_epsilon(privacy.delta)
    return float(price) - privacy.epsilon


@pytest.mark.slow  # trainings
@ALL
def test_what_is_exported_was_made_with_noise_that_pays_for_all_trials(kind: str) -> None:
    tuning = tuned(kind)
    assert -0.2 < overspent(tuning.method) <= 0.0
    (row,) = tuning.method.ledger.spends
    assert (row.epsilon, row.delta) == (4.0, 1e-5)
    assert (row.parameters["law"], row.parameters["mean_trials"]) == ("logarithmic", 5.0)
    assert 2.0 < row.parameters["epsilon_of_one_trial"] < 2.5
    assert tuning.method.guarantee.epsilon == 4.0
    assert "mean 5)" in str(tuning.method.guarantee.assumption("trials-covered"))


@pytest.mark.slow  # trainings
@ALL
def test_exporting_the_best_of_k_at_the_price_of_one_is_rejected(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Item 13, the mutant: every trial has the noise of a single run, and the best goes out as if it were one."""
    real = CuratorPrivacy.noise

    def forgetful(privacy: CuratorPrivacy, *rest: Any, **more: Any) -> Any:
        noise = real(replace(privacy, tuning=None), *rest, **more)
        return replace(noise, score=10.0 if privacy.protects_nodes else 0.0, trial=noise.epsilon)

    monkeypatch.setattr(CuratorPrivacy, "noise", forgetful)
    assert overspent(tuned(kind).method) > 1.0


@pytest.mark.slow  # trainings
@ALL
def test_a_trial_that_was_not_priced_as_one_of_many_is_not_exported(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same mutant one step earlier: methods that are built without the tuning are refused at the door."""
    real = paid_tuning._builder

    def cheap(*rest: Any) -> Callable[[Mapping[str, Any]], Any]:
        build = real(*rest)

        def without(settings: Mapping[str, Any]) -> Any:
            method = build(settings)
            method.privacy = replace(method.privacy, tuning=None)
            return method

        return without

    monkeypatch.setattr(paid_tuning, "_builder", cheap)
    with pytest.raises(GraphveilError, match="priced as a single run"):
        tuned(kind)


def test_a_relationship_costs_what_the_tuning_costs_it() -> None:
    """unit directed-edge: both entries of an undirected edge, through all trials."""
    method = tuned("progap by entry").method
    sigmas = [method.ledger.spends[0].parameters[f"sigma_{k}"] for k in range(1, method.settings.hops + 1)]
    trial = dp_accounting.ComposedDpEvent([dp_accounting.GaussianDpEvent(sigma / math.sqrt(2)) for sigma in sigmas])
    whole = dp_accounting.dp_event.RepeatAndSelectDpEvent(trial, 5.0, 0.0)
    price = rdp.RdpAccountant(orders=RDP_ORDERS).compose(whole).get_epsilon(1e-5)
    assert method.epsilon_relationship == pytest.approx(price, rel=1e-6) and price > 5.5


# ---- before anything is read ----


@ALL
def test_a_budget_that_cannot_pay_reads_no_data(kind: str) -> None:
    account = "nodes" if "node" in kind or kind == "dp-mlp" else "edges"
    ledger = Ledger.open({account: (3.9, 1e-5)})
    with pytest.raises(BudgetError, match="costs epsilon 4"):
        tuned(kind, cm.Unreadable(cm.graph()), ledger=ledger, split=cm.split_of(cm.graph()))


def test_a_ledger_pays_once_and_keeps_what_it_paid_before() -> None:
    ledger = Ledger.open({"edges": (6.0, 1e-4)})
    charged = tuned("gap by edge", ledger=ledger).method.ledger
    assert charged.total("edges") == pytest.approx((4.0, 1e-5)) and charged.budget == ledger.budget
    with pytest.raises(BudgetError):
        tuned("gap by edge", cm.Unreadable(cm.graph()), ledger=charged, split=cm.split_of(cm.graph()))


def test_a_ledger_on_disk_has_paid_before_anything_is_read(tmp_path: Path) -> None:
    """A second tuning at once would else run all its trials, too, and hear of the other one only after them."""
    file = tmp_path / "ledger.json"
    opened = LedgerFile(file).open(Ledger.open({"edges": (6.0, 1e-4)}))
    with pytest.raises(TypeError, match="Sealed"):  # where it is read first
        tuned("gap by edge", cm.Unreadable(cm.graph()), ledger=opened, split=cm.split_of(cm.graph()))
    (spend,) = read_ledger(file).spends
    assert (spend.epsilon, spend.delta) == (4.0, 1e-5)
    # What it says is known before: of single trials and their noise nothing may be shown.
    assert set(spend.parameters) == {"unit", "law", "mean_trials"}
    with pytest.raises(BudgetError):
        tuned("gap by edge", cm.graph(), ledger=opened)
    file.unlink()
    again = LedgerFile(file).open(Ledger.open({"edges": (6.0, 1e-4)}))
    method = tuned("gap by edge", ledger=again).method
    assert method.ledger.spends == read_ledger(file).spends and method.guarantee.epsilon == 4.0


@pytest.mark.parametrize(
    ("name", "settings", "over", "says"),
    [
        ("gap", {}, {"epsilon": (1.0, 2.0)}, "epsilon is part of the guarantee"),
        ("gap", {}, {"delta": (1e-5,)}, "delta is part of the guarantee"),
        ("gap", {}, {"unit": ("edge", "node")}, "unit is part of the guarantee"),
        ("gap", {"unit": "node", "rule": "declared"}, {"degree_bound": (3, 4)}, "degree_bound is part of"),
        ("gap", {}, {"degree_bound": (3, 4)}, "degree_bound is part of the guarantee"),
        ("gap", {}, {"queries": (0, 1)}, "queries is part of the guarantee"),
        ("gap", {}, {}, "nothing to try"),
        ("gap", {}, {"hops": ()}, "nothing to try"),
        ("gap", {"epsilon": math.inf}, {"hops": (1, 2)}, "nothing is protected"),
        ("gap", {}, {"weights": ("uniform", "attention")}, "attention"),
        ("class-sums", {}, {"hidden": (2, 4)}, "does not pay for its trials"),
        ("lpgnn", {}, {"hidden": (2, 4)}, "does not pay for its trials"),
    ],
)
def test_what_may_not_be_chosen_is_refused(name: str, settings: Any, over: Any, says: str) -> None:
    with pytest.raises(InputError, match=says):
        require_payable(name, settings, over, TUNING)


# ---- the trials ----


@ALL
def test_the_best_is_kept_and_every_trial_is_told_to_the_curator(kind: str) -> None:
    log: list[Mapping[str, Any]] = []
    tuning = tuned(kind, log=log.append)
    assert [entry["trial"] for entry in log] == [1, 2, 3, 4]
    best = max(log, key=lambda entry: entry["score"])
    assert tuning.settings == best["settings"] and tuning.trials == ()
    for key, value in tuning.settings.items():
        owner = tuning.method.privacy if key == "degree_bound" else tuning.method.settings
        assert getattr(owner, key) == value
    assert len({entry["data"] for entry in log}) == 1


def test_every_trial_has_fresh_noise() -> None:
    """Four trials of the same settings draw four times the noise of one, and meet different numbers of labels."""
    log: list[Mapping[str, Any]] = []
    tuned("gap by edge", None, {"hops": (2,)}, {"epsilon": 1.0}, randomness=SeededRandomness(5), log=log.append)
    assert len({entry["score"] for entry in log}) > 1


@pytest.mark.slow  # trainings
def test_the_seed_decides_neither_how_many_trials_nor_which(monkeypatch: pytest.MonkeyPatch) -> None:
    """The number and the settings come from the source of the noise."""
    monkeypatch.setattr(RepeatAndSelect, "draw", DRAW)
    counts, chosen = [], []
    for _ in range(12):
        log: list[Mapping[str, Any]] = []
        tuned("gap by edge", randomness=SecureRandomness(), tuning=RepeatAndSelect(3.0), log=log.append, seed=7)
        counts.append(len(log))
        chosen += [tuple(entry["settings"].values()) for entry in log]
    assert len(set(counts)) > 1 and len(set(chosen)) > 1


def test_a_graph_that_changes_between_trials_is_noticed() -> None:
    """Item 13: one edge, one feature or one label; nothing is exported."""
    for change in ("edge", "feature", "label"):
        start, split = cm.graph(), cm.split_of(cm.graph())

        def spoil(_: Progress, what: str = change, graph: Any = start) -> None:
            if what == "edge":
                graph.edge_index = graph.edge_index[:, 1:]
            elif what == "feature":
                graph.x.values()[3] = 0.5
            else:
                graph.y[0] = (graph.y[0] + 1) % 3

        with pytest.raises(DataError, match="the graph changed between trials"):
            tuned("gap by edge", start, split=split, progress=spoil)


# ---- the score ----


@NODES
def test_one_label_moves_the_count_by_one_and_the_score_has_noise_for_it(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Item 12: with a trial's outputs frozen, flipping one validation label moves what is counted by at most 1."""
    counts: list[int] = []

    def recorded(count: int, sigma: float, randomness: Any) -> float:
        counts.append(count)
        assert sigma >= 1.0
        return 7.0

    monkeypatch.setattr(paid_tuning, "noisy_count", recorded)
    start = cm.graph()
    node = int(cm.split_of(start).val.nonzero()[0, 0])
    first = tuned(kind, start)
    start.y[node] = (start.y[node] + 1) % 3
    second = tuned(kind, start)
    assert len(counts) == 8
    assert all(abs(count - other) <= 1 for count, other in zip(counts[:4], counts[4:], strict=True))
    assert first.settings == second.settings and first.score_note == second.score_note
    assert first.method.ledger == second.method.ledger


def test_scoring_edges_reads_no_edge(monkeypatch: pytest.MonkeyPatch) -> None:
    """Item 12: at edge level the score is a function of what was released and of public labels."""
    start = cm.graph()
    method = cm.fit("gap", start)
    noise = method.planned_noise(start.schema, 30)
    sealed = cm.without_edge(start, 3)
    split = cm.split_of(start)
    scores = [paid_tuning.score_of(method, graph, split, noise, SeededRandomness(1)) for graph in (start, sealed)]
    assert scores[0] == scores[1] == pytest.approx(method.score(start, split.val), rel=1e-6)


def test_the_noise_of_a_count_follows_its_law() -> None:
    """Deviation within 4 standard errors (false alarms 6e-5, fixed seed); noise of 0.9 sigma is rejected."""
    for sigma in (0.8, 7.5, 9000.0):
        source = SeededRandomness(3)
        draws = np.array([noisy_count(40, sigma, source) - 40 for _ in range(4000)]) / sigma
        assert abs(draws.std() - 1) < 4 / math.sqrt(2 * 4000) < abs(0.9 * draws.std() - 1)
        assert abs(draws.mean()) < 4 / math.sqrt(4000)


# ---- what comes out ----


def test_a_query_of_a_tuned_model_is_one_more_row_at_the_whole_price() -> None:
    start = cm.graph()
    other, third = (made.changed(start, name=name) for name in ("elsewhere", "third"))
    method = tuned("gap by edge", start, {"hops": (1, 2)}, {"queries": 1}).method
    method.predict(other, randomness=SeededRandomness(3))
    first, second = method.ledger.spends
    assert "law" in first.parameters and "law" not in second.parameters
    assert method.guarantee.epsilon == 8.0
    with pytest.raises(BudgetError):
        method.predict(third, randomness=SeededRandomness(3))


def test_a_run_tells_the_price_and_the_best_and_nothing_of_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither the number of trials, nor the time or memory they took together."""
    monkeypatch.setattr(RepeatAndSelect, "draw", lambda self, randomness: 23)
    start = cm.graph()
    log: list[Mapping[str, Any]] = []
    result = run(
        "gap",
        start,
        settings={**FAST, "bits": 5},
        search=Search({"hops": (1, 2)}, trials=40, log=log.append),
        randomness=SeededRandomness(8),
        controls=False,
    )
    assert len(log) == 23
    assert "random number of trials (logarithmic law, mean 40)" in result.notes[0]
    assert result.notes[1].startswith(f"run 1 chose hops={result.settings['hops']} (met ")
    assert "23" not in " ".join(result.notes)
    assert result.cost.seconds < 5 * result.cost.seconds_method
    assert result.privacy.guarantee.epsilon == 4.0 and result.privacy.guarantee.void is not None
