"""The card of a published graph, and the words about it."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from graphveil.methods import HeteroRR
from graphveil.methods.release.structure import kept_structure, with_statistics
from graphveil.privacy import SeededRandomness
from graphveil.reports.base import words
from graphveil.reports.base.card import MARKDOWN, pages
from graphveil.reports.releases import card as release_card
from tests.methods import released_made


def published(**settings: Any) -> Any:
    graph = released_made.graph()
    method = HeteroRR(**{"epsilon_x": 2.0, "epsilon_a": 3.0, "steps": 50, **settings})
    out = method.release(graph, randomness=SeededRandomness(1))
    return with_statistics(out, kept_structure(graph, out))


def test_the_card_holds_guarantee_spends_notes_and_figures() -> None:
    graph = published(epsilon_y=1.0)
    card = pages(release_card.release_card(graph, Path("somewhere/out")))[MARKDOWN]
    assert "VOID. This release protects nobody" in card
    for spend in graph.release.ledger.spends:
        assert f"| {spend.name} | {spend.unit} | {spend.mechanism} |" in card
    for meaning in release_card.FIGURES.values():
        assert f"| {meaning} |" in card
    assert "labels went through randomized response at epsilon 1" in card
    assert "undirected edges" in card and "generated in place of private ones" in card
    assert "overlap" not in card and "distance" not in card
    counts = release_card.edge_counts(graph)
    assert counts["edges"] == graph.edge_index.shape[1] // 2 == counts["public"] + counts["made"]
    assert counts["public"] == int(torch.count_nonzero(graph.public_edges)) // 2


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
    plain_parts = {part for part in ("feature", "label", "edge") if f"The {part}s: published as they are." in lines}
    assert plain_parts == set(exposed)
    assert any("k of one node's together" in line for line in lines) == ("edge" not in exposed)
