"""Controls and rivals of methods that collect neighbour lists: what they see, cost and are equal in."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from graphveil.methods import LinkBeliefs, Solitude
from graphveil.methods.links import controls as link_controls
from graphveil.methods.links.controls import (
    link_controls_of,
    rivals_left_out,
    rivals_of,
    settings_of,
)
from graphveil.methods.links.link_beliefs import LinkBeliefsCore
from graphveil.methods.links.solitude import SolitudeCore
from graphveil.privacy import SeededRandomness
from tests.methods import links_made, made

SHORT: dict[str, Any] = {"epochs": 2, "hidden": 4, "steps_x": 2}
CONTROLS = {"public-only", "label-propagation", "no-edges", "random-features", "random-graph"}


def graph_of(mode: str) -> Any:
    return links_made.graph(directed=mode == "directed")


def solitude(mode: str = "lower", **settings: Any) -> Any:
    return Solitude(**{"epsilon_x": 2.0, "epsilon_a": 4.0, "mode": mode, **SHORT, **settings})


def beliefs(mode: str = "lower", **settings: Any) -> Any:
    return LinkBeliefs(**{"epsilon_x": 2.0, "epsilon_a": 4.0, "mode": mode, "rounds": 5, **settings})


def fitted(method: Any, graph: Any) -> Any:
    return method.fit(graph, split=made.split_of(graph), randomness=SeededRandomness(1))


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Networks beside a method that trains none train for two epochs."""
    monkeypatch.setattr(link_controls, "settings_of", lambda method: replace(settings_of(method), epochs=2))


SLOW = pytest.mark.slow


@pytest.mark.slow  # trainings
@pytest.mark.parametrize(
    ("build", "mode"),
    [
        (solitude, "lower"),  # of eight networks and two collections more
        pytest.param(solitude, "directed", marks=SLOW),
        pytest.param(beliefs, "both", marks=SLOW),
        pytest.param(beliefs, "directed", marks=SLOW),
    ],
)
def test_every_control_and_rival_runs_at_the_same_price_and_spends_nothing_of_the_methods_ledger(
    build: Any, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rivals on the same reports look at nothing else and draw no noise; the others collect at the method's price."""
    graph, noise = graph_of(mode), made.Counted()
    split = made.split_of(graph)
    method = fitted(build(mode), graph)
    ledger, answers, built = method.ledger, method.predict_proba(), list[Any]()
    controls = link_controls_of(method, graph, split)
    found = {name: train() for name, train in controls.items()}
    for kind in (SolitudeCore, LinkBeliefsCore):
        monkeypatch.setattr(kind, "__init__", _noting(kind.__init__, built))
    rivals = dict(rivals_of(method, links_made.Sealed(graph, split.test), split, randomness=noise))
    collecting = {"blink", "dprr"}
    own = "solitude" if isinstance(method.core, SolitudeCore) else "link-beliefs"
    assert set(controls) == CONTROLS
    assert set(rivals) == {"base", "lpgnn", "solitude", "link-beliefs", "list-sums", "links", *collecting} - {own}
    opened = rivals_of(method, graph, split, randomness=SeededRandomness(2))
    rivals |= {name: opened[name] for name in collecting}
    found |= {name: train() for name, train in rivals.items()}
    for name, hits in found.items():
        assert hits.shape == (int(split.test.sum()),) and set(np.unique(hits)) <= {0.0, 1.0}, name
    assert noise.asked == [] and method.ledger == ledger and torch.equal(method.predict_proba(), answers)
    ours = [rival for rival in built if rival.released is not None]
    assert len(ours) >= len(rivals)
    for rival in ours:
        assert rival.epsilon_relationship == method.epsilon_relationship
        assert rival.links.mode in (method.links.mode, "directed" if mode == "directed" else "both")
        for unit in ("features", "labels", "links"):
            assert rival.account.ledger.total(unit) == pytest.approx(method.ledger.total(unit)), unit
        assert rival.guarantee.epsilon == pytest.approx(method.guarantee.epsilon)


@pytest.mark.parametrize(
    "method",
    [
        solitude(denoiser="blink-soft", steps_x=0),
        solitude(epsilon_y=1.0),
        pytest.param(beliefs("both", epsilon_y=2.0), marks=SLOW),
    ],
    ids=["blink-soft", "private labels", "beliefs with private labels"],
)
def test_controls_look_at_reports_alone(method: Any) -> None:
    """The accuracy of each is the same when features, links and all labels but those of test nodes are sealed."""
    graph = links_made.graph()
    split = made.split_of(graph)
    fitted(method, graph)
    opened, sealed = (link_controls_of(method, g, split) for g in (graph, links_made.Sealed(graph, split.test)))
    private = {"majority"} if math.isfinite(method.privacy.epsilon_y) else set()
    assert set(opened) == set(sealed) == CONTROLS | private
    for name in opened:
        assert np.array_equal(opened[name](), sealed[name]()), name


def _noting(start: Any, built: list[Any]) -> Any:
    def begin(self: Any, **options: Any) -> None:
        start(self, **options)
        built.append(self)

    return begin


def test_public_links_have_no_rivals_and_no_strangers() -> None:
    graph = links_made.graph()
    split = made.split_of(graph)
    method = fitted(solitude(None, epsilon_a=math.inf), graph)
    assert set(link_controls_of(method, graph, split)) == CONTROLS - {"random-graph"}
    assert rivals_of(method, graph, split, randomness=SeededRandomness(2)) == {}
    assert rivals_left_out(method, graph.schema, 10**6) == {}


def test_rivals_whose_own_collection_is_too_large_are_left_out() -> None:
    """100,000 people, epsilon 8: 1.7 million false entries if one end reports, 180 million if both do at half."""
    graph = links_made.graph()
    method = fitted(beliefs(epsilon_a=8.0), graph)
    assert rivals_left_out(method, graph.schema, made.NODES) == {}
    found = rivals_left_out(method, graph.schema, 100_000)
    assert set(found) == {"blink", "dprr"}
    assert all("more than 20,000,000" in why for why in found.values())
