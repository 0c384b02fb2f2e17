"""Printed bounds are met by the influence that they bound, or lie above all that is measured; smaller ones do not."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from graphveil.aggregation.propagation import Adjacency
from graphveil.collection.export import moved
from graphveil.collection.export.law import class_chances, flip_chance
from graphveil.collection.export.moved import (
    Bound,
    bounds,
    may_change,
    of_class,
    of_mean,
    of_targets,
    on_average,
    worth,
)
from graphveil.collection.export.suspects import ALARM
from graphveil.device.reports.features import Features
from graphveil.device.reports.label import Label
from graphveil.errors import InputError
from graphveil.graphs import social_graph
from tests.on_device.signing import features, label, links, task_of
from tests.pages import ROOT

PEOPLE = 2000


def test_the_share_of_a_class_moves_to_its_bound() -> None:
    """Of reports of all classes, forgers' that named another one name the last."""
    field, reports = Label.of(label("1")), np.arange(PEOPLE) % 3
    other, true = class_chances(field)
    after = reports.copy()
    after[np.flatnonzero(reports != 2)[:100]] = 2
    shares = [(np.mean(labels == 2) - other) / (true - other) for labels in (reports, after)]
    assert shares[1] - shares[0] == pytest.approx(of_class(field, PEOPLE, 100))


@pytest.mark.parametrize("forged", [20, 100, 200])
def test_no_coordinate_is_asked_of_more_forgers_than_its_bound_counts(forged: int) -> None:
    """But once in 10^6, over all of them, and one forger less would be too few; each moves a sum by twice its worth."""
    field = Features.of(features("1", 200))
    each = 2 * worth(field) / PEOPLE
    most = round(of_mean(field, PEOPLE, forged) / each)
    law, alarm = stats.binom(forged, field.sampled / 200), ALARM / 200
    assert law.sf(most) <= alarm < law.sf(most - 1)
    assert on_average(field, PEOPLE, forged) == pytest.approx(each * law.mean())
    # Who may choose their coordinate reaches it with all of them.
    assert of_mean(field, PEOPLE, forged, chosen=True) == pytest.approx(each * forged) and most < forged


def test_targets_that_cannot_change_do_not() -> None:
    """Labels of which those of forgers are another class: one for all, the next one, or any."""
    graph = social_graph(400, average_degree=8, dimension=4, classes=3, apps=2, seed=2)
    rng, share = np.random.default_rng(1), 0.05
    noisy = np.where(rng.random(400) < 0.7, graph.y.numpy(), rng.integers(0, 3, 400))
    labels, spread = np.where(rng.random(400) < 0.5, noisy, -1), Adjacency.of(graph.edge_index, 400).to_scipy()

    def targets(labels: np.ndarray) -> np.ndarray:
        scores = np.eye(3)[labels.clip(0)] * (labels >= 0)[:, None]
        for _ in range(4):
            scores = spread @ scores
        return scores.argmax(axis=1)

    before, broken, bound = targets(labels), 0, of_targets(spread, labels, 3, 4, share).most / 100
    for seed in range(60):
        rng = np.random.default_rng([seed, 9])
        who = rng.random(400) < share
        ways = (np.full(400, seed % 3), (labels + 1) % 3, rng.integers(0, 3, 400))
        changed = targets(np.where(who & (labels >= 0), ways[seed % 3], labels)) != before
        assert not (changed & ~may_change(spread, labels, 3, 4, who[:, None])[:, 0]).any()
        # Of another scale, a quarter of a vote a report, it calls some safe that change.
        broken += int((changed & ~may_change(spread, labels, 3, 4, 0.25 * who[:, None])[:, 0]).any())
        assert abs(who.mean() - share) > 0.2 * share or changed[labels >= 0].mean() <= bound
    assert broken > 5


def test_a_collections_bounds_are_told_rounded_up() -> None:
    task = task_of(features("1", 20), label("1"), links(50, "2"), people=50)
    shifts = bounds(task, 40)
    assert [shift.what.split()[-1] for shift in shifts] == ["features", "feature", "class", "links"]
    field = task.fields[2]
    assert shifts[3].most == pytest.approx(2 / (1 - 2 * flip_chance(field)))  # type: ignore[arg-type]
    sentence = moved.sentence_of(shifts)
    assert sentence.startswith("5% forged reports move averaged features by at most")
    assert sentence.endswith("accuracy has no bound, and was measured: docs/how-to/forged-reports.md")
    assert (ROOT / moved.MEASURED).is_file()
    assert Bound("x", 0.12345, "points").sentence == "x by at most 0.124 points"
    assert Bound("x", 0.0, "").sentence == "x by at most 0"
    assert replace(shifts[0], most=1.0).sentence == "averaged features by at most 1 on average"


@pytest.mark.parametrize(("share", "reports"), [(-0.1, 5), (1.1, 5), (0.1, 0)])
def test_shares_that_are_none_are_refused(share: float, reports: int) -> None:
    with pytest.raises(InputError, match="allowed: a share of 0 to 1, of some"):
        bounds(task_of(label()), reports, share)
