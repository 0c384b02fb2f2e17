"""The card of a published graph, and the words about it."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from graphveil.methods import HeteroRR
from graphveil.methods.release.report import kept_structure, with_statistics
from graphveil.methods.runs.intervals import Interval
from graphveil.privacy import SeededRandomness
from graphveil.reports.base import words
from graphveil.reports.base.card import MARKDOWN, pages
from graphveil.reports.base.record import RunRecord
from graphveil.reports.releases import card as release_card
from tests.methods import released_made
from tests.reports import made

NOTHING = Interval(0.0, -0.01, 0.01, (0.0,))


def published(**settings: Any) -> Any:
    graph = released_made.graph()
    method = HeteroRR(**{"epsilon_x": 2.0, "epsilon_a": 3.0, "steps": 50, **settings})
    out = method.release(graph, randomness=SeededRandomness(1))
    return with_statistics(out, kept_structure(graph, out))


def card_of(graph: Any) -> str:
    return pages(release_card.release_card(graph, Path("somewhere/out")))[MARKDOWN]


def test_the_card_holds_guarantee_spends_notes_and_figures() -> None:
    graph = published(epsilon_y=1.0)
    card = card_of(graph)
    assert "VOID. This release protects nobody" in card
    for spend in graph.release.ledger.spends:
        assert f"| {spend.name} | {spend.unit} | {spend.mechanism} |" in card
    for meaning in release_card.FIGURES.values():
        assert f"| {meaning} |" in card
    assert "labels went through randomized response at epsilon 1" in card
    assert "undirected edges" in card and "of them public and" in card
    assert "overlap" not in card and "distance" not in card
    found = release_card.counts(graph)
    assert found["edges"] == graph.edge_index.shape[1] // 2 == found["public"] + found["made"]
    assert found["public"] == int(torch.count_nonzero(graph.public_edges)) // 2


def test_a_card_of_features_alone_has_no_figures_of_edges() -> None:
    card = card_of(published(epsilon_a=math.inf))
    assert "Assumes: asymptotic: no finite-time guarantee" in card_of(published(edges="mcmc"))
    assert "What it keeps" not in card
    assert "The edges: published as they are." in card


@pytest.mark.parametrize(
    "settings, exposed",
    [
        ({}, ("label",)),
        ({"epsilon_x": math.inf}, ("feature", "label")),
        ({"epsilon_a": math.inf}, ("label", "edge")),
        ({"epsilon_y": 1.0}, ()),
    ],
)
def test_what_a_release_shows_as_it_is(settings: dict[str, Any], exposed: tuple[str, ...]) -> None:
    guarantee = replace(published(**settings).release.guarantee, void=None)
    lines = words.not_protected(guarantee, {})
    shown = {part for part in ("feature", "label", "edge") if f"The {part}s: published as they are." in lines}
    assert shown == set(exposed)
    assert any("k of one node's together" in line for line in lines) == ("edge" not in exposed)


def test_the_overlap_is_told_beside_chance() -> None:
    found = {"common": 14, "synthetic": 3521, "true": 3221, "chance": 14.1, "low": 7, "high": 22}
    said = release_card.overlap_sentence({"overlap": found})
    assert "14 of 3,521 generated edges are true private ones (of 3,221)" in said
    assert said.endswith("would hit 14.1 (7 to 22 in 95%): no more than chance")
    assert release_card.overlap_sentence({"overlap": {**found, "common": 300}}).endswith("other than chance")


def test_a_run_that_made_edges_did_not_help_says_so() -> None:
    guarantee = replace(published().release.guarantee, void=None)
    record = made.changed(RunRecord.from_result(made.result(), options={}), guarantee=guarantee)
    for control, bought in (("public-edges", "The private edges"), ("random-edges", "The private edges")):
        said = words.lift_sentence(made.changed(record, best_control=control, lift=NOTHING))
        assert said.startswith(f"{bought} added nothing measurable"), said
        assert ("the public edges alone score as well" in said) == (control == "public-edges")
