"""A federation as an estimator: all parties in this process."""

from __future__ import annotations

import math

import pytest

from graphveil.errors import BudgetError, GraphveilError, InputError
from graphveil.federation import KINDS, MODES, VFGNN
from graphveil.graphs import load_graph, random_split
from graphveil.privacy import SecureRandomness, SeededRandomness

SMALL = {"epochs": 4, "republish": 2, "hops": 1, "width": 8, "opened": True}


def test_it_is_reached_from_the_methods_as_from_its_room() -> None:
    import graphveil
    from graphveil import methods

    assert methods.VFGNN is VFGNN is graphveil.federation.VFGNN
    with pytest.raises(AttributeError, match=r"graphveil\.methods.*nothing"):
        methods.nothing  # noqa: B018


@pytest.mark.parametrize("mode", list(MODES))
def test_all_parties_run_and_everything_is_accounted_for(mode: str) -> None:
    graph = load_graph("social-200")
    made = VFGNN(epsilon=8.0, mode=mode, **SMALL).fit(graph, shares=(2, 1, 1), randomness=SecureRandomness())
    found = made.predict_proba()
    assert found.shape == (200, len(graph.schema.classes)) and bool((found.sum(dim=1) - 1 < 1e-5).all())
    assert 0 <= made.score(graph, random_split(graph, 0).test) <= 1
    assert (made.guarantee.epsilon, made.guarantee.model, made.guarantee.void) == (8.0, "vertical", None)
    assert 7.9 < made.ledger.total("rows")[0] <= 8
    assert len(made.history) == 2
    entries = made.transcript.entries
    assert {entry.kind for entry in entries} <= set(KINDS)
    guesses, holders = mode == "guesses", {"holder1", "holder2", "holder3"}
    assert {entry.sender for entry in entries} == (holders if guesses else {"server", *holders})
    published = [entry for entry in entries if entry.kind in ("embeddings", "noisy-share", "guesses")]
    assert len(published) == (2 if guesses else 3 * 2)
    between = [entry for entry in entries if "server" not in (entry.sender, entry.receiver)]
    assert bool(between) == (mode != "individual")


def test_it_learns_without_noise_and_says_that_nothing_is_protected() -> None:
    graph = load_graph("digits")
    split = random_split(graph, 0)
    made = VFGNN(epsilon=math.inf, mode="individual", epochs=25, hops=1)
    made.fit(graph, split=split, randomness=SeededRandomness(1))
    assert made.score(graph, split.test) > 0.8
    assert not made.guarantee.protects and made.guarantee.assumption("no-privacy-chosen")
    assert made.guarantee.void == SeededRandomness(1).void


def test_it_publishes_once() -> None:
    graph = load_graph("social-200")
    made = VFGNN(epsilon=8.0, mode="individual", **SMALL).fit(graph, randomness=SecureRandomness())
    with pytest.raises(BudgetError, match="has run"):
        made.fit(graph, randomness=SecureRandomness())


def test_wrong_settings_and_early_questions_are_refused() -> None:
    with pytest.raises(InputError, match="hop"):
        VFGNN(epsilon=1.0, hop=2)
    with pytest.raises(GraphveilError, match="fit first"):
        VFGNN(epsilon=1.0).predict_proba()
    with pytest.raises(InputError, match="epsilon"):
        VFGNN(epsilon=0.0).fit(load_graph("social-200"), randomness=SecureRandomness())
