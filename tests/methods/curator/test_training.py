"""What private training of a curator reads: every node's own row as it is, and no more than that.

Clipping bounds what one node adds to a step only if its row says nothing of others: a mean or a deviation of private
rows would tie them together before anything is clipped.
"""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from safetensors import safe_open
from torch import Tensor, nn

from graphveil.aggregation.grid import quantise
from graphveil.errors import BudgetError, InputError
from graphveil.graphs import social_graph
from graphveil.methods import DPMLP, load_method
from graphveil.methods.curator.dp_mlp import LaterWeights
from graphveil.methods.curator.gap import GapRecipe
from graphveil.methods.curator.node_sums import VoteRecipe
from graphveil.methods.curator.privacy import CuratorPrivacy
from graphveil.methods.curator.progap import ProgapRecipe
from graphveil.methods.curator.settings import CuratorSettings, GapSettings
from graphveil.methods.curator.stages.encoder import encoder_and_classifier, encoder_rows
from graphveil.methods.curator.stages.recipe import StagedEstimator
from graphveil.methods.curator.stages.stages import Recipe
from graphveil.methods.curator.stages.training import (
    ATTENTION,
    apply_by_blocks,
    build_seeded,
    parameters_of,
    read_features,
    receiver_rows,
    train_with_noise,
    training_rows,
)
from graphveil.models.networks.perceptrons import Encoder
from graphveil.privacy import Descent, Hops, SeededRandomness, pipeline_epsilon
from graphveil.training import dp_sgd
from graphveil.training.full_batch import Rows
from tests.methods import curator_audits as audits
from tests.methods import curator_made as cm
from tests.methods import made

NODES = pytest.mark.parametrize("name", ["gap", "progap", "dp-mlp"])
#: On a coarse grid, whose noise tables are small.
SMALL: dict[str, Any] = {**audits.NODE, "bits": 5}


class Trained:
    """Writes down the rows, and the labels, that every private training was given."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.rows: list[Tensor] = []
        self.labels: list[Tensor] = []
        real = dp_sgd.PrivateDescent.__init__

        def watched(me: Any, model: Any, inputs: Tensor, targets: Tensor, *rest: Any, **more: Any) -> None:
            self.rows.append(inputs.clone())
            self.labels.append(targets.clone())
            real(me, model, inputs, targets, *rest, **more)

        monkeypatch.setattr(dp_sgd.PrivateDescent, "__init__", watched)


@NODES
def test_the_first_private_training_reads_every_nodes_features_as_they_are(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another row of one node leaves the rows of all others what they were, bit for bit."""
    trained, start = Trained(monkeypatch), cm.graph()
    nodes = cm.split_of(start).train.nonzero()[:, 0]
    x = made.dense(start.x)
    x[nodes[4]] = 1 - x[nodes[4]]
    audits.fit(name, start, **SMALL)
    first, labels = trained.rows[0], trained.labels[0]
    assert np.array_equal(first.numpy(), made.dense(start.x)[nodes])
    assert torch.equal(labels, start.y[nodes])
    trained.rows.clear()
    audits.fit(name, made.changed(start, x=x), **SMALL)
    same = (first == trained.rows[0]).all(dim=1)
    assert same.tolist() == [place != 4 for place in range(len(nodes))]


@pytest.mark.parametrize("form", ["dense", "sparse", "both"])
def test_rows_made_for_each_batch_train_the_same_network(form: str) -> None:
    """More numbers than are made dense at once: rows are made when a batch has them, and no weight differs by a bit."""
    generator = torch.Generator().manual_seed(0)
    dense = torch.randn(400, 6, generator=generator)
    sparse = sp.random_array((400, 30), density=0.2, rng=np.random.default_rng(0), format="csr")
    parts = {"dense": [dense], "sparse": [sparse], "both": [dense, sparse]}[form]
    nodes, classes = torch.randperm(400, generator=generator)[:300], torch.arange(300) % 3
    start, weights = build_seeded(lambda: Encoder(sum(part.shape[1] for part in parts), 8, 3, batch_norm=False), 1), []
    for rows in (training_rows(start, parts, nodes), training_rows(start, parts, nodes, most=1000)):
        network = copy.deepcopy(start)
        settings = CuratorSettings(batch=64, passes=3)
        train_with_noise(network, Rows(rows, classes), settings, 1.0, randomness=SeededRandomness(5))
        weights.append(torch.cat([parameter.detach().flatten() for parameter in network.parameters()]))
    assert isinstance(training_rows(start, parts, nodes), torch.Tensor) and not isinstance(rows, torch.Tensor)
    assert torch.equal(*weights)


@pytest.mark.parametrize(
    ("settings", "people", "steps"),
    [({}, 385, 100), ({}, 100_000, 977), ({"passes": 10}, 385, 10), ({"passes": 10, "steps": 7}, 385, 7)],
)
def test_a_small_graph_is_trained_for_some_steps_by_default(settings: dict[str, int], people: int, steps: int) -> None:
    assert CuratorSettings(**settings).descent("training", people).steps == steps


def test_private_training_is_given_the_rows_it_was_called_with(monkeypatch: pytest.MonkeyPatch) -> None:
    trained, x = Trained(monkeypatch), torch.randn(30, 5, generator=torch.Generator().manual_seed(1))
    rows, settings = Rows(x.clone(), torch.arange(30) % 3), CuratorSettings(batch=30, passes=1)
    network = Encoder(5, 4, 3, batch_norm=False)
    train_with_noise(network, rows, settings, 1.0, randomness=SeededRandomness(0))
    assert torch.equal(trained.rows[0], x) and torch.equal(trained.labels[0], rows.classes)


def test_rows_of_nodes_are_in_no_file(tmp_path: Path) -> None:
    """For unit node a prediction is for its node alone; where edges are hidden it is for everybody."""
    for settings, stores in ((SMALL, False), ({}, True)):
        path = audits.fit("gap", cm.graph(), **settings).save(tmp_path / str(stores))
        with safe_open(path, framework="pt") as file:
            assert ("logits" in set(file.keys())) == stores


@NODES
def test_no_figure_of_a_private_training_is_kept(name: str, tmp_path: Path) -> None:
    """Losses and accuracies of private rows would have to be paid for: neither the method nor its file has any."""
    method = audits.fit(name, cm.graph(), **SMALL)
    assert method.history == ()
    method.save(tmp_path)
    assert load_method(tmp_path).history == ()


# ---- what methods over an encoder share ----


def test_rows_are_at_most_one_long_and_keep_no_gradient() -> None:
    start = cm.graph()
    first, last = encoder_and_classifier(CuratorSettings(hidden=4), start.schema, [4, 3], batch_norm=True)
    rows = encoder_rows(first, read_features(start))
    assert rows.shape == (60, 4) and not rows.requires_grad
    assert float(rows.norm(dim=1).max()) <= 1 + 1e-6
    assert last(torch.cat([rows, torch.zeros(60, 3)], dim=1)).shape == (60, 3)


@pytest.mark.parametrize("sparse", [False, True])
def test_many_nodes_are_read_some_at_a_time_and_come_out_in_their_order(sparse: bool) -> None:
    rows = sp.random_array((300_001, 3), density=0.5, random_state=1, format="csr", dtype="float32")
    read, weights = (sp.csr_matrix(rows) if sparse else torch.from_numpy(rows.toarray())), torch.rand(3, 2)
    sizes: list[int] = []

    def network(some: Any) -> torch.Tensor:
        rows: torch.Tensor = (some[0] if sparse else some) @ weights
        sizes.append(len(rows))
        return rows

    torch.testing.assert_close(apply_by_blocks(network, [read]), torch.from_numpy(rows.toarray()) @ weights)
    assert len(sizes) == 2 and sum(sizes) == 300_001


# ---- unit "node" ----


EVERY = pytest.mark.parametrize("name", [*cm.KINDS, "node-sums"])
#: A batch of everybody: the noise of plain Gaussian steps is found at once.
NODE: dict[str, Any] = {"unit": "node", "degree_bound": 5, "epsilon": 8.0, "hops": 1, "batch": 1000, "passes": 4}


@pytest.mark.slow  # trainings
@EVERY
def test_a_nodes_list_moves_the_sums_of_others_by_at_most_what_is_charged(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Items 2, 3, 9: with noisy answers frozen, only the node's own row of what is summed differs."""
    replay = cm.Replay(monkeypatch)
    start, node, trained, real = cm.graph(), 5, [], StagedEstimator._train

    def frozen(me: StagedEstimator, network: nn.Module, *rest: Any) -> Any:
        if replay.replaying:
            network.load_state_dict(trained[len(replay.calls)])
            return ()
        sums = real(me, network, *rest)
        trained.append({name: value.clone() for name, value in network.state_dict().items()})
        return sums

    monkeypatch.setattr(StagedEstimator, "_train", frozen)
    cm.fit(name, start, **NODE)
    before = replay.again()
    cm.fit(name, cm.without_node(start, node), **NODE)
    rest = torch.arange(60) != node
    (sums, rows, x, hop), (sums2, rows2, x2, hop2) = before[0], replay.calls[0]
    assert (sums, hop) == (sums2, hop2)
    assert torch.allclose(x[rest], x2[rest], atol=1e-6)
    bits = sums.row_bits()
    moved = (rows.sums(quantise(x, bits=bits)).values - rows2.sums(quantise(x2, bits=bits)).values)[rest]
    assert 0 < float(moved.norm()) / 2**bits <= sums.sensitivity == pytest.approx(5**0.5)


@EVERY
def test_the_last_training_is_paid_for_once(name: str) -> None:
    method = cm.fit(name, **NODE)
    with pytest.raises(BudgetError, match="a publication pays for one"):
        method.fit_published(method.published, randomness=SeededRandomness(2))


def test_a_broken_promise_is_refused() -> None:
    privacy = CuratorPrivacy(8.0, unit="node", degree_bound=1, rule="declared")
    with pytest.raises(InputError, match="more than the declared"):
        receiver_rows(cm.graph(), privacy, CuratorSettings(), torch.ones(60, 4))


# ---- dP-MLP: a node's features and label, and no edge ----


def test_edges_are_never_read() -> None:
    start = cm.graph()
    method = DPMLP(epsilon=2.0, **cm.FAST)
    method.fit(cm.Edgeless(start), split=cm.split_of(start), randomness=SeededRandomness(1))
    assert torch.equal(method.predict_proba(), cm.fit("dp-mlp", start).predict_proba())


@pytest.mark.parametrize("hidden", [3, 16, None])
def test_a_plan_counts_the_numbers_that_are_trained(hidden: int | None) -> None:
    """The price has in it how often noise is drawn from tables: another count is another epsilon."""
    graph = cm.graph()
    own = torch.nn.Linear(graph.schema.dimension, len(graph.schema.classes))
    # None: a network of one's own.
    core = DPMLP(epsilon=2.0, backbone=own) if hidden is None else DPMLP(epsilon=2.0, hidden=hidden)
    split = cm.split_of(graph)
    planned = core.planned_noise(graph.schema, int(split.train.sum()))
    assert planned == core.collect(graph, split=split, randomness=SeededRandomness(1)).noise
    assert planned.multipliers


SIZED = social_graph(60, average_degree=6, dimension=30, classes=4, seed=1).schema


@pytest.mark.parametrize(("hops", "hidden", "weights"), [(1, 1, ATTENTION), (3, 16, "uniform"), (3, 1, ATTENTION)])
@pytest.mark.parametrize("recipe", [GapRecipe(), ProgapRecipe(), VoteRecipe()], ids=lambda recipe: recipe.kind)
def test_sizes_are_those_of_the_networks(recipe: Recipe, weights: str, hidden: int, hops: int) -> None:
    """The price has in it how often noise is drawn: a plan that counted otherwise would tell another epsilon."""
    rows = "published" if weights == ATTENTION else "labelled"
    settings = GapSettings(hidden=hidden, hops=hops, weights=weights, rows=rows)
    built = recipe.networks(settings, SIZED, batch_norm=False)
    assert recipe.sizes(settings, SIZED) == [parameters_of(network) for network in built]
    # Attention trains on edges, in steps of its own: a plan counts no epochs for it.
    assert len(recipe.layers(hops)) == len(built) - (recipe.kind == "gap" and weights == ATTENTION)


# ---- unit k-edges, and the control of unit node ----


K = 4
UNIT: dict[str, Any] = {"unit": "k-edges", "relationships": K, "epsilon": 2.0}


@pytest.mark.slow  # trainings
@pytest.mark.parametrize(
    ("name", "weights"), [("class-sums", None), ("gap", "uniform"), ("gap", "kernel"), ("progap", "similarity")]
)
def test_any_k_of_one_person_move_every_sum_by_no_more_than_is_charged(
    name: str, weights: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ten people, k relationships each, added and removed as it comes; nothing but exact sums differs."""
    settings = UNIT if weights is None else {**UNIT, "weights": weights, "bits": 6}
    replay, start = cm.Replay(monkeypatch), cm.graph()
    first = audits.fit(name, start, **settings)
    before, worst = replay.again(), 0.0
    for person in range(0, 60, 6):
        # Some of k other people are contacts, who go, and some are not, who come.
        drawn = np.random.default_rng(person).permutation([other for other in range(60) if other != person])[:K]
        pairs = {(min(person, int(other)), max(person, int(other))) for other in drawn}
        second = audits.fit(name, cm.toggled(start, pairs), **settings)
        assert torch.equal(first.predict_proba(), second.predict_proba())
        assert (first.history, first.ledger, first.guarantee) == (second.history, second.ledger, second.guarantee)
        for call, other in zip(before, replay.calls, strict=True):
            assert call[0] == other[0] and torch.equal(call[2], other[2])
            share = float((audits.exact(call) - audits.exact(other)).norm()) / call[0].sensitivity
            assert share <= 1.0
            worst = max(worst, share)
        replay.calls.clear()
    assert worst > 0.4


def test_an_untrained_head_is_public_and_all_of_the_budget_is_spent_on_the_rest() -> None:
    """At small epsilon: its weights are those of a formula, whatever the labels, and nobody pays for them."""
    settings: dict[str, Any] = {"degree_bound": 90, "batch": 1000, "steps": 2}
    first, other = (cm.fit("node-sums", **settings, draws=draws) for draws in (1, 2))
    noise, weight = first.result.noise, first.result.networks[1].head.weight
    assert list(noise.multipliers) == ["network0"]
    descent, hops = Descent(steps=2, rate=1.0, name="network0"), Hops(count=1, sensitivity=90**0.5)
    noises = {hops.name: noise.sigmas, descent.name: (noise.multipliers["network0"],)}
    assert 1.999 < pipeline_epsilon((hops, descent), noises, 1e-5) <= 2.0
    classes = len(weight)
    expected = torch.cat([torch.eye(classes), torch.eye(classes) * 0.15 * 90 / noise.sigmas[0]], dim=1)
    torch.testing.assert_close(weight, expected)
    torch.testing.assert_close(other.result.networks[1].head.weight, expected)


def test_with_little_noise_the_weights_are_the_mean_of_the_later_half(monkeypatch: pytest.MonkeyPatch) -> None:
    """For wide features alone; steps 3 and 4 of four."""
    seen: list[Tensor] = []
    real = LaterWeights.__call__

    def watched(me: LaterWeights, event: Any) -> None:
        seen.append(me._weights[0].clone())
        real(me, event)

    monkeypatch.setattr(LaterWeights, "__call__", watched)
    for dimension, mean in ((500, True), (499, False)):
        seen.clear()
        model = cm.fit("dp-mlp", cm.graph(dimension), epsilon=50.0, batch=1000, steps=4)
        weights = next(model.result.networks[0].parameters())
        torch.testing.assert_close(weights.detach(), (seen[2] + seen[3]) / 2 if mean else seen[3])
