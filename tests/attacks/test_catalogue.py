"""Attacks by name."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import pytest

from graphveil.attacks.catalogue import ATTACKS, PUBLISHED, SHADOW, Target, attack
from graphveil.errors import InputError
from graphveil.graphs import Split, random_split
from graphveil.methods import LPGNN, HeteroRR
from graphveil.privacy import SeededRandomness
from tests.attacks import made

SPLIT = random_split(made.graph(), 0)


def published() -> Any:
    """The graph, published."""
    maker = HeteroRR(epsilon_x=float("inf"), epsilon_a=1.0)
    return maker.release(made.graph(), randomness=SeededRandomness(2))


@cache
def target() -> Target:
    method = LPGNN(epsilon_x=2.0, epsilon_y=1.0, epochs=3)
    method.fit(made.graph(), split=SPLIT, randomness=SeededRandomness(0))

    def train(graph: Any, split: Split, seed: int) -> Any:
        return LPGNN(epsilon_x=2.0, epsilon_y=1.0, epochs=3).fit(graph, split=split, randomness=SeededRandomness(seed))

    common: dict[str, Any] = {"shadow": made.graph(200, seed=8), "nodes": 80, "shadows": 4}
    return Target(method, made.graph(), made.graph(), SPLIT, train, SeededRandomness(1), **common)


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow if name == "averaging" else []) for name in ATTACKS]
)
def test_every_attack_runs_and_stays_within_the_limit_or_says_why_there_is_none(name: str) -> None:
    found = attack(name, replace(target(), served=published()) if name == PUBLISHED else target())
    assert 0 <= found.auc.low <= found.auc.mean <= found.auc.high <= 1
    assert found.limit is not None or found.limit_note
    fresh_noise = name.startswith("averaging")  # the ledger refuses what this attack supposes
    assert found.beats_limit == fresh_noise
    if name == "averaging-labels":
        one, many = (found.figures[f"permanent reports, auc after {rounds}"] for rounds in (1, 21))
        assert found.figures["auc after 21"] > found.figures["auc after 1"] and many == pytest.approx(one)


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(InputError, match="not known"):
        attack("guess", target())
    plain = replace(target(), method=made.plain(), train=None)
    with pytest.raises(InputError, match="graph of its own"):
        attack(SHADOW, replace(target(), shadow=None))
    for name in ("averaging", "averaging-labels", "lira"):
        with pytest.raises(InputError):
            attack(name, plain)
