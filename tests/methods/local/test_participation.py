"""Reports of some: methods learn from those who answered, and predict everybody."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor

from graphveil.graphs import Graph, Split
from graphveil.methods.base.features import features_of
from graphveil.methods.base.released import Answers, LocalReports, randomize_people, topology_of
from graphveil.methods.local.label_propagation import LabelPropagationCore
from graphveil.methods.local.lpgnn import LPGNNCore
from graphveil.privacy import SeededRandomness
from tests.methods import made

SHORT: dict[str, Any] = {"epochs": 3, "hidden": 4, "steps_x": 2, "steps_y": 2}


def lpgnn(**more: Any) -> LPGNNCore:
    return LPGNNCore(epsilon_x=2.0, epsilon_y=2.0, **{**SHORT, **more})


def collected(graph: Graph, split: Split) -> LocalReports:
    return randomize_people(graph, split, lpgnn().privacy, randomness=SeededRandomness(5))


def of_some(reports: LocalReports, who: Tensor) -> LocalReports:
    """The same reports, of which those of all others never arrived."""
    kept = type(reports.features).from_tensors({name: t[who] for name, t in reports.features.to_tensors().items()})
    return replace(reports, features=Answers(who, kept))


@pytest.fixture
def graph() -> Graph:
    return made.graph()


@pytest.fixture
def sent(graph: Graph) -> LocalReports:
    return collected(graph, made.split_of(graph))


def half(graph: Graph) -> Tensor:
    return torch.arange(int(graph.num_nodes)) % 2 == 0


@pytest.mark.parametrize("more", [{}, {"model": "gcn"}, {"denoising": "upgnet"}, {"steps_x": 0}], ids=str)
def test_where_everybody_answered_every_bit_is_the_same(graph: Graph, sent: LocalReports, more: Any) -> None:
    everyone = of_some(sent, torch.ones(int(graph.num_nodes), dtype=torch.bool))
    whole, some = (lpgnn(**more).fit_reports(one, topology_of(graph)).probabilities() for one in (sent, everyone))
    assert torch.equal(whole, some)


@pytest.mark.parametrize("more", [{}, {"model": "gcn"}, {"denoising": "upgnet"}, {"steps_x": 0}], ids=str)
def test_everybody_is_predicted_where_half_answered(graph: Graph, sent: LocalReports, more: Any) -> None:
    core = lpgnn(**more).fit_reports(of_some(sent, half(graph)), topology_of(graph))
    found = core.probabilities()
    assert tuple(found.shape) == (int(graph.num_nodes), len(graph.schema.classes))
    assert bool(torch.isfinite(found).all())
    assert core.guarantee.epsilon == 4.0
    # The reports of half say something else than those of all.
    assert not torch.equal(found, lpgnn(**more).fit_reports(sent, topology_of(graph)).probabilities())


def test_a_missing_report_has_no_row_that_says_anything(graph: Graph, sent: LocalReports) -> None:
    who = half(graph)
    rows, offset = features_of(of_some(sent, who), 0)
    whole, same = features_of(sent, 0)
    assert offset == same
    assert (rows[who.numpy()] != whole[who.numpy()]).nnz == 0 and rows[~who.numpy()].nnz == 0


def test_reports_of_some_are_predicted_from_too(graph: Graph, sent: LocalReports) -> None:
    some = of_some(sent, half(graph))
    core = lpgnn().fit_reports(some, topology_of(graph))
    again = core.probabilities(graph, reports=some)
    assert torch.allclose(again, core.probabilities(), atol=1e-6)


def test_labels_spread_from_those_who_sent_one(graph: Graph, sent: LocalReports) -> None:
    silent = sent.train & half(graph)
    fewer = replace(sent, train=sent.train & ~silent, labels=torch.where(silent, -1, sent.labels), features=None)
    core = LabelPropagationCore(epsilon_y=2.0)
    found = core.fit_reports(replace(fewer, privacy=core.privacy), topology_of(graph)).probabilities()
    assert len(found) == int(graph.num_nodes) and bool(torch.isfinite(found).all())
    # What was never sent cannot matter, whatever stands at its place.
    other = replace(fewer, labels=torch.where(silent, 0, fewer.labels), privacy=core.privacy)
    again = LabelPropagationCore(epsilon_y=2.0).fit_reports(other, topology_of(graph)).probabilities()
    assert torch.equal(found, again)
