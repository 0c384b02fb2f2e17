"""Readings: their parts, which labels judge, and how they are built, saved and found by name."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest
import torch

from graphveil.errors import InputError
from graphveil.methods import LinkBeliefs
from graphveil.methods.base.features import labels_of
from graphveil.methods.links.names import READINGS
from graphveil.methods.links.readings import judged_labels, read_lists
from graphveil.methods.links.regression import with_labels
from graphveil.models.label_prior import log_channel
from graphveil.privacy import SeededRandomness
from graphveil.progress import Progress
from tests.methods import links_made, made


def released(**settings: Any) -> Any:
    graph = links_made.graph()
    method = LinkBeliefs(**{"epsilon_x": math.inf, "epsilon_a": 6.0, **settings})
    return method.randomize(graph, split=made.split_of(graph), randomness=SeededRandomness(1))


@pytest.mark.parametrize(
    ("reading", "settings", "steps"),
    [
        ("beliefs", {}, 4 * 3),
        ("beliefs", {"epsilon_x": 1.0}, 4 * 3),
        ("sums", {}, 2),
        ("all", {}, 4 * 3 + 2),
    ],
)
def test_progress_ends_with_all_done(reading: str, settings: dict[str, Any], steps: int) -> None:
    """Four fields of three rounds; likeness of noisy features says nothing, and those two fields are passed over."""
    told: list[Progress] = []
    read_lists(released(**settings), reading, rounds=3, seed=0, progress=told.append)
    assert [at.done for at in told] == sorted({at.done for at in told})
    assert (told[-1].done, told[-1].total) == (steps, steps)


def test_where_nobody_validates_a_third_of_those_who_train_judges() -> None:
    labels = labels_of(released().people)
    nobody = replace(labels, val=torch.zeros_like(labels.val))
    first, second = judged_labels(nobody, "cpu"), judged_labels(nobody, "cpu")
    assert int(first.val.sum()) == int(labels.train.sum()) // 3
    assert not bool((first.val & first.train).any())
    assert torch.equal(first.val | first.train, labels.train)
    assert torch.equal(first.val, second.val)
    assert judged_labels(labels, "cpu").val.equal(labels.val)


def test_own_labels_count_for_those_who_sent_one_alone() -> None:
    labels = labels_of(released(epsilon_y=2.0).people)
    heard = log_channel(labels.classes, labels.keep, labels.flip)
    found = with_labels(torch.zeros(made.NODES, 3), labels, heard)
    asked = labels.train | labels.val
    assert torch.allclose(found[asked], heard[:, labels.values[asked]].T)
    assert not found[~asked].any()


@pytest.mark.parametrize("reading", READINGS)
def test_reports_without_training_labels_are_refused(reading: str) -> None:
    sent = released()
    nobody = torch.zeros(made.NODES, dtype=torch.bool)
    empty = replace(sent, people=replace(sent.people, train=nobody, val=nobody))
    with pytest.raises(InputError, match="no training node carries a label; give the split some training nodes"):
        read_lists(empty, reading, rounds=2, seed=0)


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["both"])
def test_all_readings_read_one_collection_at_one_price(mode: str) -> None:
    """What is sent does not depend on what is made of it: the same reports, guarantee and ledger."""
    graph = links_made.graph()
    sent = released(mode=mode)
    methods = [
        LinkBeliefs(epsilon_x=math.inf, epsilon_a=6.0, mode=mode, reading=one).fit_reports(sent) for one in READINGS
    ]
    assert len({str(method.guarantee) for method in methods}) == 1
    assert all(method.ledger == methods[0].ledger for method in methods)
    answers = [method.predict_proba() for method in methods]
    assert all(found.shape == (graph.num_nodes, 3) for found in answers)
    assert not torch.equal(answers[0], answers[1])
