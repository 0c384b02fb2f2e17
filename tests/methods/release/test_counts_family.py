"""Published counts where they meet plans, runs and tuning: public facts alone, free controls, paid rivals."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from graphveil.errors import InputError
from graphveil.methods import ClassCounts
from graphveil.methods.registry import METHODS, require_trainable
from graphveil.methods.release.counts_family import COUNTS
from graphveil.methods.runs.plan import plan
from graphveil.privacy import SeededRandomness
from tests.methods import made, released_made


def fitted(graph: Any) -> Any:
    return ClassCounts(epsilon_a=2.0).fit(graph, split=made.split_of(graph), randomness=SeededRandomness(1))


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 8.0])
def test_a_plan_follows_from_public_facts(epsilon: float) -> None:
    """Whichever private edges there are; its noise is that of two counts at half of epsilon each."""
    graph = released_made.graph()
    found = plan("class-counts", graph, {"epsilon_a": epsilon})
    other = plan("class-counts", released_made.without_one(graph), {"epsilon_a": epsilon})
    # Seconds are those of this machine, which is measured anew.
    first, second = ({**one.to_dict(), "seconds": None} for one in (found, other))
    assert first == second
    deviation = math.sqrt(2 * math.exp(-epsilon / 2)) / (1 - math.exp(-epsilon / 2))
    assert f"a deviation of {deviation:.2g}" in found.advice[0]
    assert found.epsilon == {"one private edge": epsilon}
    assert found.seconds > 0 and found.memory_mb > 0


@pytest.mark.slow
def test_controls_are_free_and_rivals_pay_the_same() -> None:
    graph = released_made.graph()
    method, split, noise = fitted(graph), made.split_of(graph), SeededRandomness(1)
    ledger = method.ledger
    controls = COUNTS.controls(method, graph, split, randomness=noise)
    rivals = COUNTS.rivals(method, graph, split, randomness=noise)
    tested = int(split.test.sum())
    for run in (
        *controls.values(),
        rivals["lap-graph"],
        lambda: COUNTS.ceiling(method, graph, split, randomness=noise),
    ):
        hits = run()
        assert hits.shape == (tested,) and set(np.unique(hits)) <= {0.0, 1.0}
    assert set(controls) == {"public-edges", "no-edges"}
    assert set(rivals) == {"edge-rr", "edge-rand", "lap-graph"}
    assert method.ledger == ledger


@pytest.mark.slow
def test_what_was_published_has_no_rivals_and_may_be_read_again() -> None:
    graph = released_made.graph()
    split = made.split_of(graph)
    out = ClassCounts(epsilon_a=2.0).release(graph, randomness=SeededRandomness(1), split=split)
    require_trainable(METHODS["class-counts"], out)
    method = fitted(out)
    assert COUNTS.rivals(method, out, split, randomness=SeededRandomness(1)) == {}
    collected = COUNTS.collect(method, out, split, randomness=SeededRandomness(1))
    assert collected.graph is out
    assert (COUNTS.train(method, collected, out) == out.y).all()
    notes = COUNTS.notes(method, out, {}, controlled=True)
    assert notes[0].startswith("private edges are not in it") and notes[1].startswith("used: public part")
    with pytest.raises(InputError, match="already public"):
        require_trainable(METHODS["edge-rand"], out)
