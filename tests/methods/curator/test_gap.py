"""What GAP makes of a noisy sum, and where it may; the pool of its networks, and of ProGAP's."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from graphveil.errors import InputError
from graphveil.graphs import random_split, social_graph
from graphveil.methods import GAP, NodeSums, ProGAP
from graphveil.methods.curator.evidence import corners
from graphveil.methods.curator.gap import GapRecipe
from graphveil.methods.curator.settings import CuratorSettings, GapSettings, ProgapSettings, default_hops
from graphveil.methods.curator.stages.stages import AddUp, NodeInputs, carry_out
from graphveil.methods.curator.stages.training import (
    build_seeded,
    logits_of,
    read_features,
    read_people,
    rows_for,
    shares_of,
    train_openly,
    unseen_shares,
)
from graphveil.privacy import SeededRandomness
from graphveil.reproduction.catalogue import WEIGHTED_GAP
from tests.methods import curator_made as cm
from tests.methods import made


@pytest.mark.parametrize("scaling", ["standard", "published"])
def test_a_noisy_sum_loses_what_all_its_rows_share_and_not_as_published(scaling: str) -> None:
    graph, settings = cm.graph(), GapSettings(hops=1, scaling=scaling)
    networks = GapRecipe().networks(settings, graph.schema, batch_norm=True)
    nodes = int(graph.num_nodes)
    total = np.random.default_rng(0).normal(3.0, 1.0, size=(nodes, settings.hidden)).astype(np.float32)
    inputs = NodeInputs(read_features(graph), torch.full((nodes,), -1), (1.0,))
    steps = GapRecipe().steps([net.eval() for net in networks], inputs, settings)
    shares = torch.zeros(nodes, len(graph.schema.classes))
    _, row = carry_out(
        steps, train=lambda stage: None, expect=lambda stage: shares, add=lambda stage: torch.from_numpy(total)
    )
    unit = total / np.linalg.norm(total, axis=1, keepdims=True)
    if scaling == "standard":
        centred = unit - unit.mean(axis=0)
        unit = centred / np.linalg.norm(centred, axis=1, keepdims=True)
    np.testing.assert_allclose(np.asarray(row), unit, atol=1e-5)


@pytest.mark.parametrize("kind", [GAP, ProGAP])
def test_rows_say_labels_of_who_trains_and_are_no_longer_than_before(kind: Any) -> None:
    """The noise is for rows of length 1; what a node is classified by, hop 0, does not hold its own label."""
    graph, settings = cm.graph(), kind(epsilon=4.0, hops=1).settings
    labels, nodes = torch.where(torch.arange(int(graph.num_nodes)) % 2 == 0, graph.y, -1), int(graph.num_nodes)
    networks = [net.eval() for net in kind.recipe.networks(settings, graph.schema, batch_norm=True)]
    row_sets, inputs = [], NodeInputs(read_features(graph), labels, (1.0,))

    def add(stage: AddUp) -> torch.Tensor:
        row_sets.append(stage.rows)
        return torch.zeros_like(stage.rows)

    classes = len(graph.schema.classes)
    own, _ = carry_out(
        kind.recipe.steps(networks, inputs, settings),
        train=lambda stage: None,
        expect=lambda stage: torch.full((nodes, classes), 1 / classes),
        add=add,
    )
    (rows,) = row_sets
    assert rows.shape == (nodes, kind.recipe.columns(settings, graph.schema)) == (nodes, settings.hidden + classes)
    torch.testing.assert_close(rows.norm(dim=1), torch.ones(nodes))
    label_columns = rows[:, -classes:]
    torch.testing.assert_close(label_columns[labels >= 0], corners(classes)[labels[labels >= 0]] / 2**0.5)
    assert float(label_columns[labels < 0].norm(dim=1).max()) < 0.5  # what an untrained network expects is no class
    assert own.shape[1] in (classes, graph.schema.dimension)


def test_what_is_expected_of_who_trains_does_not_follow_from_their_own_label() -> None:
    """A network fits its own people more closely than others: what it says of them would be trusted too much."""
    graph, split, settings = cm.graph(), cm.split_of(cm.graph()), GapSettings(hops=1, epochs=5)
    people = read_people(graph, split)
    person = int(people.train[0])

    def fresh() -> torch.nn.Module:
        return build_seeded(lambda: GapRecipe().networks(settings, graph.schema, batch_norm=True)[0], 0)

    by_label = []
    for label in range(2):
        labels = people.labels.clone()
        labels[person] = label
        relabelled = replace(people, labels=labels)
        trained = fresh()
        rows, judges = (rows_for(trained, [people.features], relabelled, who) for who in (people.train, people.val))
        train_openly(trained, rows, judges, settings)
        unseen = unseen_shares(fresh, trained, [people.features], relabelled, settings)
        by_label.append((unseen[person], shares_of(trained, [people.features])[person], unseen[people.train[1]]))
        torch.testing.assert_close(unseen.sum(dim=1), torch.ones(people.nodes))
    assert torch.equal(by_label[0][0], by_label[1][0])
    assert not torch.equal(by_label[0][1], by_label[1][1])
    assert not torch.equal(by_label[0][2], by_label[1][2])


def test_rows_are_as_published_where_labels_may_not_be_said() -> None:
    for kind in (GAP, ProGAP):
        plain: list[dict[str, Any]] = [{"unit": "node"}, {"queries": 1}, {"weights": "similarity", "hops": 1}]
        assert {kind(epsilon=4.0, **settings).settings.rows for settings in plain} == {"published"}
        assert kind(epsilon=4.0).settings.rows == "labelled"
        for settings in plain[0], plain[2]:
            with pytest.raises(InputError, match="labelled"):
                kind(epsilon=4.0, rows="labelled", **settings)
    assert all(entry.settings["rows"] == "published" for entry in WEIGHTED_GAP["figure3"]())


def test_a_mean_of_rows_is_refused_where_a_row_is_for_its_node_alone() -> None:
    """Noise covers what a node adds to others' rows, not its own: a mean of all rows would hand that to everybody."""
    with pytest.raises(InputError, match="own row"):
        GAP(epsilon=4.0, unit="node", scaling="standard")
    assert [GAP(epsilon=4.0, unit=unit).settings.scaling for unit in ("node", "edge", None)] == [
        "published",
        "standard",
        "standard",
    ]


def test_a_model_from_before_scaling_dropout_and_pooling_predicts_as_it_did() -> None:
    start, old = cm.graph(), {"scaling": "published", "dropout": 0.0, "pooling": "none", "rows": "published"}
    stored = GAP(**{**cm.FAST, "epsilon": 4.0}, **old).fit(start, split=cm.split_of(start)).stored()
    left = {name: value for name, value in stored.facts["settings"].items() if name not in old}
    settings = GAP.restore(replace(stored, facts={**stored.facts, "settings": left})).settings
    assert {name: getattr(settings, name) for name in old} == old


def test_networks_drop_columns_by_default_where_features_have_many() -> None:
    """By the declared dimension alone: on 64 columns dropout cost 5 points, on 780 it gained 3."""
    rates = {}
    for dimension in (64, 499, 500):
        schema = replace(cm.graph().schema, dimension=dimension)
        kinds = (CuratorSettings, GapSettings, ProgapSettings)
        rates[dimension] = [kind().dropout_of(schema, batch_norm=True) for kind in kinds]
        assert [GapSettings(dropout=0.2).dropout_of(schema, batch_norm=norm) for norm in (True, False)] == [0.2, 0.0]
    assert rates == {64: [0.0, 0.0, 0.7], 499: [0.0, 0.0, 0.7], 500: [0.5, 0.5, 0.7]}


def test_what_defaults_take_follows_from_the_declared_budget_alone() -> None:
    units: list[tuple[float, str | None]] = [(50.0, "node"), (19.0, "node"), (50.0, "edge"), (50.0, None)]
    assert [GAP(epsilon=epsilon, unit=unit).settings.hidden for epsilon, unit in units] == [64, 16, 16, 16]
    votes = [NodeSums(epsilon=epsilon).settings for epsilon in (2.0, 4.0, 50.0)]
    assert [(each.share_hops, each.passes) for each in votes] == [(0.05, None), (0.25, None), (0.7, 40)]
    assert NodeSums(epsilon=50.0, steps=7).settings.passes is None


# ---- the pool: when there is one, what it says, and where it may not be ----


@pytest.mark.parametrize("kind", [GAP, ProGAP])
def test_a_pool_weighs_its_networks_here_elsewhere_and_from_a_file(kind: Any, tmp_path: Path) -> None:
    """Behind so much noise that features alone say more than the last network, which stays as it is without a pool."""
    graph = social_graph(300, average_degree=4, dimension=100, classes=4, seed=1)
    split, settings = random_split(graph, 0), {"epsilon": 0.05, "hidden": 2, "epochs": 40, "queries": 1}
    pooled, plain = (
        kind(**settings, **more).fit(graph, split=split, randomness=SeededRandomness(0))
        for more in ({}, {"pooling": "none"})
    )
    assert (plain.pool, pooled.guarantee) == (None, plain.guarantee)
    assert pooled.score(graph, split.test) > plain.score(graph, split.test) + 0.1
    networks, parts, features = pooled.result.networks, pooled.published.parts, pooled.published.people.features
    stages = [[features], parts] if kind is GAP else [parts[:many] for many in (1, 2, 3)]
    read = zip((networks[0], networks[-1]) if kind is GAP else networks, stages, strict=True)
    opinions = [logits_of(pooled.pool.encoder, [features]), *(logits_of(*each) for each in read)]
    total = sum(w * torch.log_softmax(z, dim=1) for w, z in zip(pooled.pool.weights, opinions, strict=True))
    by_hand = torch.softmax(torch.as_tensor(total), dim=1)
    torch.testing.assert_close(torch.as_tensor(pooled.predict_proba()), by_hand, atol=1e-4, rtol=0)
    pooled.save(tmp_path / "model")
    loaded = kind.load(tmp_path / "model")
    assert torch.equal(torch.as_tensor(loaded.predict_proba()), torch.as_tensor(pooled.predict_proba()))
    other = made.changed(graph, name="people whom the method has not seen")
    predictions = [torch.as_tensor(m.predict_proba(other, randomness=SeededRandomness(3))) for m in (pooled, loaded)]
    assert torch.equal(*predictions)
    assert float((predictions[0].argmax(dim=1) == other.y).float().mean()) > plain.score(graph, split.test) + 0.1


def test_nothing_is_pooled_where_labels_are_protected_or_too_few_to_judge() -> None:
    start = cm.graph()
    for kind in (GAP, ProGAP):
        with pytest.raises(InputError, match="nothing was paid"):
            kind(epsilon=4.0, unit="node", pooling="stages")
        units = ("node", "edge", "k-edges", None)
        many = [kind(epsilon=4.0, unit=unit, relationships=2 if unit == "k-edges" else None) for unit in units]
        assert [method.settings.pooling for method in many] == ["none", "stages", "stages", "stages"]
        assert int(cm.split_of(start).val.sum()) < 30
        assert kind(**{**cm.FAST, "epsilon": 0.05}).fit(start, split=cm.split_of(start)).pool is None
    assert all(entry.settings["pooling"] == "none" for entry in WEIGHTED_GAP["figure3"]())


def test_under_much_noise_edges_are_summed_once_and_a_third_time_for_large_budgets_of_one_relationship() -> None:
    budgets = [(31.0, None), (32.0, None), (45.0, "edge"), (45.0, "directed-edge"), (45.0, "node"), (45.0, "k-edges")]
    assert [default_hops(*budget, under_noise=1, little_noise=3) for budget in budgets] == [2, 3, 3, 3, 2, 2]
    budgets = [(2.0, None), (2.0, "k-edges"), (2.0, "node"), (2.1, None), (math.inf, None)]
    assert [default_hops(*budget, under_noise=1, little_noise=2) for budget in budgets] == [1, 1, 1, 2, 2]
    kinds = GAP(epsilon=2.0), ProGAP(epsilon=2.0), ProGAP(epsilon=45.0, hops=1)
    assert [method.settings.hops for method in kinds] == [1, 2, 1]
