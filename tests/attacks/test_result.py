"""Scores, their intervals, and what an epsilon allows an adversary of each secret."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphveil.attacks import AttackResult, judge
from graphveil.attacks.limits import Limit, bound, limit_of, limit_of_answers, no_limit
from graphveil.attacks.pairs import Pairs
from graphveil.attacks.result import Samples, auc_of
from graphveil.errors import InputError
from graphveil.methods.registry import build_method
from graphveil.methods.runs.intervals import Interval
from graphveil.privacy import Guarantee


def test_auc_is_the_chance_of_a_pair_in_order() -> None:
    rng = np.random.default_rng(0)
    members, strangers = rng.integers(0, 6, 40), rng.integers(0, 5, 70)
    pairs = (members[:, None] > strangers).mean() + 0.5 * (members[:, None] == strangers).mean()
    assert auc_of(members, strangers) == pytest.approx(pairs)
    assert judged(members, strangers).auc.mean == pytest.approx(pairs)


def test_a_response_at_the_limit_is_let_through_and_one_beyond_it_is_caught() -> None:
    """Randomized response at epsilon 1; claimed at 1 and, wrongly, at 0.5."""
    rng = np.random.default_rng(2)
    keep = math.e / (1 + math.e)
    members, strangers = (rng.random(4000) < keep).astype(float), (rng.random(4000) < 1 - keep).astype(float)
    assert not judged(members, strangers, Limit(1.0, 0.0, "")).beats_limit
    assert judged(members, strangers, Limit(0.5, 0.0, "")).beats_limit


def test_refusals() -> None:
    with pytest.raises(InputError, match="at least two"):
        judged(np.ones(1), np.ones(5))
    with pytest.raises(InputError, match="finite"):
        judged(np.array([1.0, np.nan]), np.ones(5))


OPEN = no_limit("nothing is protected")
SCORES = st.lists(st.integers(-5, 5), min_size=2, max_size=20).map(lambda drawn: np.array(drawn, float))


def judged(members: np.ndarray, strangers: np.ndarray, limit: Limit = OPEN, seed: int = 0) -> AttackResult:
    return judge("toy", "a toy", members, strangers, limit=limit, seed=seed)


def normal(shift: float = 1.0, many: int = 150) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(4)
    return rng.normal(shift, 1, many), rng.normal(0, 1, 2 * many)


@settings(derandomize=True, deadline=None, max_examples=20)
@given(SCORES, SCORES)
def test_exchanged_sides_turn_the_auc_over_and_no_scale_changes_it(members: np.ndarray, strangers: np.ndarray) -> None:
    auc = auc_of(members, strangers)
    assert auc_of(strangers, members) == pytest.approx(1 - auc, abs=1e-9)
    assert auc_of(-members, -strangers) == pytest.approx(1 - auc, abs=1e-9)
    assert auc_of(np.exp(members) - 7, np.exp(strangers) - 7) == pytest.approx(auc, abs=1e-9)


def test_only_the_order_of_scores_counts_and_the_seed_moves_intervals_alone() -> None:
    members, strangers = normal()
    result, stretched = judged(members, strangers), judged(np.exp(3 * members), np.exp(3 * strangers))
    assert stretched == result
    again, other = judged(members, strangers), judged(members, strangers, seed=1)
    assert again == result
    assert other.auc.mean == result.auc.mean and other.auc.low != result.auc.low
    assert other.roc == result.roc and other.tpr_at_1_fpr.mean == result.tpr_at_1_fpr.mean


def test_the_wrong_way_round_is_as_sure_as_the_right_one() -> None:
    right, wrong = judged(np.arange(30) + 50.0, np.arange(40.0)), judged(np.arange(30.0), np.arange(40) + 50.0)
    surely = 0.025 ** (1 / 30)
    assert (right.auc.mean, right.auc.low, right.auc.high) == (1.0, pytest.approx(surely), 1.0)
    assert (wrong.auc.mean, wrong.auc.low, wrong.auc.high) == (0.0, 0.0, pytest.approx(1 - surely))
    assert wrong.tpr_at_1_fpr.mean == 0.0 and not replace(wrong, limit=0.0, advantage_limit=0.0).beats_limit


@pytest.mark.parametrize("strangers", [2, 99, 100])
def test_fewer_others_than_a_hundred_are_said_to_be_too_few(strangers: int) -> None:
    notes = judged(np.arange(5.0), np.arange(float(strangers))).notes
    assert notes == (() if strangers == 100 else (f"{strangers} others are too few to see 1% of false alarms: "
                                               "the TPR is interpolated",))  # fmt: skip


def test_between_two_thresholds_a_coin_is_flipped() -> None:
    """One of 20 others and 4 of 10 members share the highest score: 1% is a fifth of the way there."""
    members = np.array([9.0] * 4 + [0.0] * 6)
    strangers = np.array([9.0] + [0.0] * 19)
    assert judged(members, strangers).tpr_at_1_fpr.mean == pytest.approx(0.4 / 5)


def test_the_limit_of_a_claim_stands_in_the_result() -> None:
    result = judged(*normal(), Limit(math.log(3), 1e-3, "of a toy"))
    assert (result.epsilon, result.delta, result.limit_note) == (math.log(3), 1e-3, "of a toy")
    assert result.limit == pytest.approx(0.031) and result.advantage_limit == pytest.approx((2 + 2e-3) / 4)
    unbound = judged(*normal())
    assert unbound.limit is unbound.advantage_limit is None and not unbound.beats_limit
    assert unbound.to_dict()["epsilon"] == "inf" and AttackResult.from_dict(unbound.to_dict()) == unbound


@pytest.mark.parametrize(
    "damage", [{"name": 5}, {"positives": True}, {"limit": "0.5"}, {"figures": {"rounds": "many"}}]
)
def test_a_file_whose_figures_are_no_numbers_or_whose_words_are_no_texts_holds_no_result(
    damage: dict[str, Any],
) -> None:
    with pytest.raises(TypeError, match="a field holds no number, or no text"):
        AttackResult.from_dict(judged(*normal()).to_dict() | damage)


@pytest.mark.parametrize(
    ("changed", "beats"),
    [
        ({}, False),
        ({"limit": 0.29}, True),
        ({"limit": 0.3}, False),
        ({"advantage_limit": 0.39}, True),
        ({"advantage_limit": 0.45}, False),
        ({"limit": 0.29, "baseline": 0.69}, True),
        ({"limit": 0.29, "baseline": 0.7}, False),
        ({"limit": 0.29, "baseline": 0.5, "baseline_high": 0.72}, False),
        ({"limit": 0.29, "baseline": 0.75, "baseline_high": 0.65}, True),
    ],
    ids=str,
)
def test_a_limit_is_beaten_by_a_whole_interval_above_it_and_above_what_was_there_anyway(
    changed: dict[str, float], beats: bool
) -> None:
    scores = {
        "auc": Interval(0.8, 0.7, 0.9, (0.8,)),
        "advantage": Interval(0.5, 0.4, 0.6, (0.5,)),
        "tpr_at_1_fpr": Interval(0.35, 0.3, 0.4, (0.35,)),
    }
    assert replace(judged(*normal()), **{**scores, **changed}).beats_limit is beats


def test_images_stay_out_of_files_and_of_comparisons() -> None:
    result = judged(*normal(many=20))
    picture = Samples(("a",), np.zeros((1, 2, 2)), np.ones((1, 2, 2)))
    seen = replace(result, samples=picture)
    assert seen.samples is picture and result.samples is None
    assert seen == result and seen.to_dict() == result.to_dict()
    assert "samples" not in seen.to_dict() and "samples" not in repr(seen)


def test_pairs_of_a_mask_keep_their_ends_and_scores_their_side() -> None:
    pairs = Pairs(np.array([3, 8, 9]), np.array([0, 0, 1]), np.array([1, 2, 2]), np.array([True, False, True]))
    assert [end.tolist() for end in pairs.ends()] == [[3, 3, 8], [8, 9, 9]]
    some = pairs.where(np.array([False, True, True]))
    assert [end.tolist() for end in some.ends()] == [[3, 8], [9, 9]] and some.edge.tolist() == [False, True]
    assert [side.tolist() for side in some.split(np.array([0.2, 0.7]))] == [[0.7], [0.2]]


def test_intervals_cover_and_reject() -> None:
    """Normal scores a shift of 1 apart: AUC Phi(1/sqrt 2).  20 seeds; false alarm if more than 4 miss (p < 0.003)."""
    from scipy.stats import norm

    truth, advantage = norm.cdf(1 / math.sqrt(2)), 2 * norm.cdf(0.5) - 1
    rng = np.random.default_rng(1)
    missed, wrong, lucky = 0, 0, 0
    for _ in range(20):
        result = judged(rng.normal(1, 1, 120), rng.normal(0, 1, 240))
        missed += not result.auc.low <= truth <= result.auc.high
        wrong += result.auc.low <= truth + 0.12 <= result.auc.high  # a wrong truth is turned down
        lucky += result.advantage.low > advantage
    assert missed <= 4 and wrong <= 4 and lucky <= 4


# ---- what an epsilon allows an adversary, and which guarantee speaks of which secret ----


EPSILONS, DELTAS = st.floats(0.0, 800.0), st.floats(0.0, 0.5)


@settings(derandomize=True, deadline=None, max_examples=100)
@given(EPSILONS, DELTAS)
def test_the_bound_is_a_curve_of_a_test(epsilon: float, delta: float) -> None:
    """In [0, 1], never falling, never below guessing."""
    grid = np.linspace(0, 1, 101)
    curve = bound(grid, epsilon, delta)
    assert (curve >= grid - 1e-12).all() and (curve <= 1).all() and (np.diff(curve) >= -1e-12).all()


@settings(derandomize=True, deadline=None, max_examples=60)
@given(st.floats(0.0, 8.0), DELTAS)
def test_what_one_side_may_do_the_other_may(epsilon: float, delta: float) -> None:
    """A point (f, t) turned over is (1 - t, 1 - f)."""
    grid = np.linspace(0, 1, 101)
    assert (bound(1 - bound(grid, epsilon, delta), epsilon, delta) >= 1 - grid - 1e-9).all()


def test_the_ends_of_the_bound() -> None:
    zero, whole = np.array([0.0]), np.array([1.0])
    assert bound(zero, 1.0, 0.0)[0] == 0.0, "without false alarms nobody is certain"
    assert bound(zero, 1.0, 0.01)[0] == pytest.approx(0.01) and bound(whole, 1.0, 0.0)[0] == 1.0
    assert bound(zero, 0.0, 0.0)[0] == 0.0 and bound(np.array([0.3]), 0.0, 0.0)[0] == pytest.approx(0.3)
    assert bound(np.array([0.0, 0.5]), math.inf, 0.0).tolist() == [1.0, 1.0]
    assert bound(np.array([1e-300]), 750.0, 0.0)[0] == 1.0, "no overflow"
    assert bound(zero, 1.0, 1.0)[0] == 1.0


def test_the_advantage_of_nothing_at_all_is_delta() -> None:
    assert Limit(0.0, 0.0, "").advantage == 0.0
    assert Limit(math.log(3), 0.0, "").advantage == pytest.approx(0.5)  # (3 - 1) / (3 + 1)
    grid = np.linspace(0, 1, 5001)
    best = float((bound(grid, 2.0, 0.01) - grid).max())
    assert Limit(2.0, 0.01, "").advantage == pytest.approx(best, abs=2e-3)
    assert Limit(0.0, 0.2, "").advantage == pytest.approx(0.2)
    assert Limit(900.0, 0.3, "").advantage == 1.0
    assert no_limit("why").advantage is None and not no_limit("why").exists and no_limit("why").note == "why"


@dataclass(frozen=True)
class Stated:
    """A fitted method, by what it states."""

    guarantee: Guarantee
    epsilon_relationship: float | None = None
    privacy: Any = None


def of(name: str, **chosen: Any) -> Stated:
    """What a method promises before it has seen anybody."""
    from graphveil.graphs import load_graph
    from graphveil.methods.registry import plan

    graph = load_graph("social-100")
    method = build_method(name, chosen, len(graph.schema.classes))
    return Stated(plan(name, graph, chosen).guarantee, privacy=getattr(method, "privacy", None))


def test_each_secret_is_bound_by_the_part_that_covers_it_and_not_by_the_sum() -> None:
    both = of("lpgnn", epsilon_x=1.0, epsilon_y=2.0)
    assert both.guarantee.epsilon == pytest.approx(3.0)
    assert limit_of(both, "features").epsilon == pytest.approx(1.0)
    assert limit_of(both, "label").epsilon == pytest.approx(2.0)
    for secret in ("edge", "node"):
        assert not limit_of(both, secret).exists
        assert "outside what the method protects" in limit_of(both, secret).note
    public = of("lpgnn", epsilon_x=math.inf, epsilon_y=2.0)
    assert limit_of(public, "label").epsilon == pytest.approx(2.0) and not limit_of(public, "features").exists
    for secret in ("edge", "node", "features", "label"):
        assert limit_of(of("gcn"), secret) == no_limit("the method protects nothing")


def test_an_edge_is_bound_by_the_price_of_the_relationship() -> None:
    gap = of("gap", epsilon=1.0)
    assert limit_of(gap, "edge").epsilon == pytest.approx(1.0)
    dearer = replace(gap, epsilon_relationship=1.5)
    assert limit_of(dearer, "edge").epsilon == 1.5 and "one relationship" in limit_of(dearer, "edge").note
    assert not limit_of(replace(gap, epsilon_relationship=math.inf), "edge").exists
    assert not limit_of(dearer, "features").exists and not limit_of(dearer, "label").exists


def test_a_node_is_bound_with_all_its_parts() -> None:
    node = of("gap", epsilon=8.0, unit="node", degree_bound=5)
    for secret in ("node", "features", "label"):
        assert limit_of(node, secret).epsilon == pytest.approx(8.0)


def test_an_edge_between_two_nodes_stands_in_two_lists_unless_degrees_are_promised() -> None:
    """Group privacy for two: twice epsilon, and delta (1 + e^epsilon)."""
    cut = of("gap", epsilon=2.0, delta=1e-4, unit="node", degree_bound=5)
    limit = limit_of(cut, "edge")
    assert limit.epsilon == pytest.approx(4.0) and limit.delta == pytest.approx(1e-4 * (1 + math.exp(2.0)))
    huge = replace(cut, guarantee=replace(cut.guarantee, epsilon=800.0))
    assert limit_of(huge, "edge").delta == 1.0
    assert not limit_of(replace(cut, guarantee=replace(cut.guarantee, epsilon=math.inf)), "edge").exists
    promised = of("gap", epsilon=2.0, unit="node", degree_bound=5, rule="declared")
    assert limit_of(promised, "edge").epsilon == pytest.approx(2.0)


def test_the_answer_about_a_node_is_not_bound_by_joint_privacy() -> None:
    node, local = of("gap", epsilon=8.0, unit="node", degree_bound=5), of("lpgnn", epsilon_x=1.0, epsilon_y=2.0)
    assert not limit_of_answers(node).exists and "everybody else's view" in limit_of_answers(node).note
    assert limit_of_answers(local) == limit_of(local, "features")


def test_reproducible_noise_is_attacked_as_if_it_were_not() -> None:
    both = of("lpgnn", epsilon_x=1.0, epsilon_y=2.0)
    void = replace(both, guarantee=replace(both.guarantee, void="seed 3", parts=both.guarantee.parts))
    assert limit_of(void, "label").epsilon == pytest.approx(2.0)
    assert "void: seed 3" in limit_of(void, "label").note and "void" not in limit_of(both, "label").note
    assert "void: seed 3" in limit_of(void, "edge").note and "void" not in limit_of(both, "edge").note


def test_what_states_no_guarantee_has_no_limit() -> None:
    assert limit_of(SimpleNamespace(), "edge") == no_limit("the method states no guarantee")
    assert limit_of(SimpleNamespace(guarantee=None), "label").note == "the method states no guarantee"
