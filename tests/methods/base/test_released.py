"""What the server holds: topology and reports."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch

from graphveil.errors import InputError
from graphveil.methods.base.local_privacy import LocalPrivacy
from graphveil.methods.base.released import (
    Topology,
    randomize_people,
    require_matching,
    require_servable,
    topology_of,
)
from graphveil.privacy import SecureRandomness, SeededRandomness
from tests.methods import made

EDGES = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])


def test_any_change_of_the_topology_changes_the_fingerprint() -> None:
    other_edge = EDGES.clone()
    other_edge[1, 0] = 2
    changed = [Topology(EDGES, 4), Topology(EDGES[:, :2], 3), Topology(other_edge, 3), Topology(EDGES.flip(0), 3)]
    fingerprints = {found.fingerprint for found in [Topology(EDGES, 3), *changed]}
    assert len(fingerprints) == 5


def test_features_and_labels_are_no_part_of_the_fingerprint() -> None:
    graph = made.graph()
    assert topology_of(made.neighbour(graph)).fingerprint == topology_of(graph).fingerprint


def test_only_training_and_validation_nodes_send_a_label() -> None:
    graph = made.graph()
    split = made.split_of(graph)
    released = randomize_people(graph, split, LocalPrivacy(None, 50.0), randomness=SecureRandomness())
    asked = split.train | split.val
    assert torch.equal(released.labelled, asked)
    assert torch.equal(released.labels[asked], graph.y[asked])
    assert bool((released.labels[~asked] == -1).all())


def test_public_parts_are_sent_as_they_are_and_draw_no_noise() -> None:
    graph = made.graph()
    noise = made.Counted()
    released = randomize_people(graph, made.split_of(graph), LocalPrivacy(math.inf, math.inf), randomness=noise)
    assert released.features is graph.x
    assert noise.asked == []
    assert released.void is None


def test_reproducible_noise_is_marked_on_the_reports() -> None:
    graph = made.graph()
    for noise, void in ((SecureRandomness(), None), (SeededRandomness(9), "noise was reproducible (seed 9)")):
        for privacy in (LocalPrivacy(1.0, math.inf), LocalPrivacy(None, 1.0), LocalPrivacy(math.inf, 1.0)):
            assert randomize_people(graph, made.split_of(graph), privacy, randomness=noise).void == void


def test_reports_say_what_they_were_made_with() -> None:
    graph = made.graph()
    privacy = LocalPrivacy(2.0, 1.0, "one-bit")
    released = randomize_people(graph, made.split_of(graph), privacy, randomness=SecureRandomness())
    assert released.privacy == privacy
    assert released.schema == graph.schema
    require_matching(released, topology_of(graph), LocalPrivacy(2.0, 1.0, "one-bit"))
    for other in (LocalPrivacy(2.0, 1.1, "one-bit"), LocalPrivacy(2.0, 1.0), LocalPrivacy(None, 1.0)):
        with pytest.raises(InputError, match="the reports were made with") as refused:
            require_matching(released, topology_of(graph), other)
        assert "\n" not in str(refused.value)


@pytest.mark.parametrize("flags", [(True, False, False), (False, True, False)], ids=["train", "validate"])
def test_label_noise_is_as_large_as_declared(flags: tuple[bool, bool, bool]) -> None:
    """3,000 labels at epsilon 1: the share kept is within 5 deviations of p (false alarm 6e-7), not of 1.2 p."""
    graph = replace_labels(3_000)
    released = randomize_people(
        graph,
        made.Split(*(torch.full((3_000,), flag) for flag in flags)),
        LocalPrivacy(None, 1.0),
        randomness=SeededRandomness(4),
    )
    kept = float((released.labels == graph.y).float().mean())
    p = math.e / (math.e + 2)
    error = 5 * math.sqrt(p * (1 - p) / 3_000)
    assert abs(kept - p) < error
    assert abs(kept - 1.2 * p) > error


def replace_labels(nodes: int) -> made.Labelled:
    schema = replace(made.graph().schema, name="labels alone")
    return made.Labelled(nodes, torch.arange(nodes) % 3, schema)


def test_a_graph_with_private_edges_is_refused_before_anything_is_read() -> None:
    graph = made.graph()
    graph.schema = replace(graph.schema, private=("features", "labels", "edges"))
    with pytest.raises(InputError, match="declares its edges private"):
        require_servable(graph)
