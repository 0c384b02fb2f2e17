"""The reviewer's checklist, item by item, for methods of a trusted curator: gap, progap, class-sums, dp-mlp.

Items 1, 6, 7, 12 and 19 and what belongs to one method only are in the tests of that method; mutants that these tests
kill stand at the end.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor

from graphveil.aggregation import PerturbedSum, perturbed
from graphveil.errors import BudgetError, InputError
from graphveil.graphs import make_graph
from graphveil.methods import load_method
from graphveil.methods.curator.class_sums import ClassSums
from graphveil.methods.curator.stages import stages as curator_sums
from graphveil.methods.curator.stages import training as curator
from graphveil.methods.curator.stages.recipe import StagedEstimator
from graphveil.privacy import SeededRandomness
from graphveil.privacy.accounting import budget_split
from graphveil.training.noisy_updates import NoisyUpdates
from tests.methods import curator_audits as audits
from tests.methods import curator_made as cm

EDGES = pytest.mark.parametrize("name", audits.EDGE_METHODS)
EVERY = pytest.mark.parametrize("name", audits.METHODS)
NODES = pytest.mark.parametrize("name", ["gap", "progap", "node-sums", "dp-mlp"])


_COSTS, _NODES = audits.one_edge_costs_what_was_said, ("gap", "progap", "node-sums", "dp-mlp")
_WEIGHTS = {"sharpness": 3.0, "bits": 6}
#: Item of the checklist, the audit that asks it, and of what. What the audits find stands at the end.
AUDITS: list[tuple[str, Callable[..., None], tuple[Any, ...], dict[str, Any]]] = [
    *(("2", _COSTS, (name, unit), {}) for name in audits.EDGE_METHODS for unit in ("edge", "directed-edge")),
    *(
        ("2", _COSTS, (name, "edge"), {"weights": weights, **_WEIGHTS})
        for name, weights in (("gap", "similarity"), ("progap", "kernel"), ("gap", "learned"), ("progap", "learned"))
    ),
    *(("3", audits.nothing_else_reads_edges, (name,), {}) for name in audits.EDGE_METHODS),
    *(("5", audits.edges_decide_no_public_number, (name,), {}) for name in audits.EDGE_METHODS),
    *(("12", audits.validation_labels_decide_nothing, (name,), {}) for name in _NODES),
    ("14", audits.noise_of_training_is_enough, (), {}),
    *(("15", audits.every_step_is_charged_and_noised, (name,), {}) for name in _NODES),
]


@pytest.mark.parametrize(
    ("audit", "words", "settings"),
    [
        pytest.param(
            audit, arguments, settings, id="-".join([item, audit.__name__, *map(str, (*arguments, *settings.values()))])
        )
        for item, audit, arguments, settings in AUDITS
    ],
)
def test_an_audit_finds_nothing(audit: Callable[..., None], words: tuple[Any, ...], settings: dict[str, Any]) -> None:
    audit(*words, **settings)


@pytest.mark.slow  # trainings
@NODES
def test_item_3_no_control_flow_depends_on_a_node(name: str) -> None:
    """Number, order and size of the draws of noise, charges and shapes are those of a graph without the node's data."""
    facts = []
    for start in (cm.graph(), cm.without_node(cm.graph())):
        source = cm.made.Counted(1)
        method = audits.fit(name, start, noise=source, **audits.NODE)
        facts.append((source.counts, method.ledger, method.guarantee, method.predict_proba().shape))
    assert facts[0] == facts[1]


@pytest.mark.slow  # trainings
@EVERY
def test_item_7_a_class_nobody_has_keeps_its_column(name: str) -> None:
    start = cm.graph()
    start.y[start.y == 2] = 0
    assert audits.fit(name, start).predict_proba().shape == (60, 3)


@NODES
def test_item_10_a_nodes_own_row_is_its_own(name: str, tmp_path: Path) -> None:
    """The guarantee says it is everybody else's view; no prediction of a training node leaves with the model."""
    method = audits.fit(name, cm.graph(), **audits.NODE)
    assert method.guarantee.assumption("joint-privacy")
    method.save(tmp_path)
    loaded = load_method(tmp_path)
    assert loaded.guarantee == method.guarantee
    with pytest.raises(InputError, match="each is for that node only"):
        loaded.predict_proba()


@EDGES
def test_item_11_inference_is_post_processing_or_metered(name: str, tmp_path: Path) -> None:
    """Known by ids: answered with the graph sealed, free, saved or not. Other people: refused before they are read."""
    plain = cm.graph()
    start = make_graph(plain.x, plain.edge_index, plain.y, plain.schema, ids=list(range(cm.made.NODES)))
    method = audits.fit(name, start)
    paid, probabilities = method.ledger, method.predict_proba()
    method.save(tmp_path)
    other = cm.Unreadable(make_graph(start.x, start.edge_index, start.y, cm.made.changed(start, name="others").schema))
    for model in (method, load_method(tmp_path)):
        assert torch.equal(model.predict_proba(cm.Unreadable(start)), probabilities)
        with pytest.raises(InputError if name == "class-sums" else BudgetError):
            model.predict_proba(other, randomness=SeededRandomness(0))
        assert (model.ledger, model.guarantee, model.history) == (paid, method.guarantee, method.history)
        assert (model.privacy, model.settings) == (method.privacy, method.settings)
        assert model.epsilon_relationship == method.epsilon_relationship


@EDGES
def test_item_11_training_on_the_publication_again_is_free_and_gives_the_same(name: str) -> None:
    method = audits.fit(name, cm.graph())
    probabilities, paid = method.predict_proba(), method.ledger
    assert torch.equal(method.fit_published(method.published).predict_proba(), probabilities) and method.ledger == paid
    with pytest.raises(InputError, match=r"published with|publication was made with"):
        audits.METHODS[name](epsilon=3.0, hidden=4).fit_published(method.published)
    with pytest.raises(BudgetError):
        method.publish(cm.Unreadable(cm.graph()), split=cm.split_of(cm.graph()), randomness=SeededRandomness(1))


@pytest.mark.slow  # trainings
@EDGES
def test_item_12_labels_of_test_nodes_are_never_used(name: str) -> None:
    """Labels outside training and validation change nothing; a training label does."""
    start = cm.graph()
    split = cm.split_of(start)
    probabilities = audits.fit(name, start).predict_proba()
    for mask, same in ((split.test, True), (split.train, False)):
        other = cm.graph()
        other.y[mask] = (other.y[mask] + 1) % 3
        assert torch.equal(audits.fit(name, other).predict_proba(), probabilities) == same


@EVERY
@pytest.mark.parametrize("bad", [math.nan, math.inf, -1.0])
def test_item_16_features_outside_their_range_are_refused(name: str, bad: float) -> None:
    start = cm.graph(20)
    start.x[3, 2] = bad
    with pytest.raises(InputError, match=r"outside the declared range|not finite"):
        audits.fit(name, start)


@EVERY
def test_item_17_noise_is_fresh(name: str) -> None:
    audits.noise_is_fresh(name)
    assert "seed 1" in (audits.fit(name, cm.graph()).guarantee.void or "")


@pytest.mark.slow  # trainings
@EVERY
def test_item_17_no_key_or_generator_is_saved(name: str, tmp_path: Path) -> None:
    """Weights, answers and nothing else: every tensor of the file is known by name."""
    path = audits.fit(name, cm.graph()).save(tmp_path / "model")
    names = {key.split(".")[0].rstrip("0123456789") for key in load_file(path)}
    assert names <= {"network", "logits", "weight", "weights", "answers"}, names


@EVERY
def test_without_privacy_it_is_said_and_no_noise_is_drawn(name: str) -> None:
    stages: list[tuple[int, int]] = []
    start, kind = cm.graph(), audits.METHODS[name]
    method = kind(epsilon=math.inf, epochs=2, hidden=4).fit(
        start,
        split=cm.split_of(start),
        randomness=SeededRandomness(1),
        progress=lambda at: stages.append((at.done, at.total)),
    )
    assert "NOT PROTECTED" in method.guarantee.sentence() and len(method.history) >= 2
    assert method.ledger.spends == () and method.guarantee.protects is False
    again = audits.fit(name, start, noise=SeededRandomness(9), epsilon=math.inf)
    assert torch.equal(method.predict_proba(), again.predict_proba())
    assert stages == sorted(stages) and stages[-1][0] == stages[-1][1]


# ---- mutants, each a bug that was seen in released software, which must fail an audit ----


Patch = pytest.MonkeyPatch


def root_two_is_missing(patch: Patch) -> None:
    patch.setattr(perturbed, "entries_of", lambda unit, degree=None, relationships=None: degree or 1)


def sigma_is_halved(patch: Patch) -> None:
    real = PerturbedSum.noise_of
    halved = lambda me: replace(me, sigmas=tuple(sigma / 2 for sigma in me.sigmas))  # noqa: E731
    patch.setattr(PerturbedSum, "noise_of", lambda me, hop, bits: real(halved(me), hop, bits))


def empty_batches_get_no_noise(patch: Patch) -> None:
    real = NoisyUpdates.add_noise

    def add(me: Any, totals: Tensor, randomness: Any) -> None:
        if bool(totals.any()):
            real(me, totals, randomness)

    patch.setattr(NoisyUpdates, "add_noise", add)


def validation_labels_leak(patch: Patch) -> None:
    """The head is shifted by how well it does on private validation labels."""
    real = StagedEstimator._train

    def leaking(me: Any, network: Any, which: int, parts: Any, people: Any, *rest: Any) -> Any:
        output = real(me, network, which, parts, people, *rest)
        with torch.no_grad():
            scores = network(curator.dense_blocks(parts, people.val))
            loss = torch.nn.functional.cross_entropy(scores, people.labels[people.val])
            network.head.bias += loss * torch.arange(len(network.head.bias))
        return output

    patch.setattr(StagedEstimator, "_train", leaking)


def delta_comes_from_the_number_of_edges(patch: Patch) -> None:
    def mutant(real: Any) -> Any:
        def publish(me: Any, graph: Any, **rest: Any) -> Any:
            me.privacy = replace(me.privacy, delta=0.1 / graph.edge_index.shape[1])
            me.account.ledger = me.privacy.open_ledger()
            return real(me, graph, **rest)

        return publish

    for kind in (StagedEstimator, ClassSums):
        patch.setattr(kind, "publish", mutant(kind.publish))


def more_steps_run_than_are_charged(patch: Patch) -> None:
    real = curator.PrivateSchedule
    patch.setattr(curator, "PrivateSchedule", lambda steps, **rest: real(steps=steps + 1, **rest))


def accounting_takes_the_central_limit(patch: Patch) -> None:
    patch.setattr(budget_split, "pipeline_epsilon", audits.central_limit)


def a_degree_normalises(patch: Patch) -> None:
    """Sums become means over private numbers of neighbours."""
    real = StagedEstimator._train

    def scaled(me: Any, network: Any, which: int, parts: Any, *rest: Any) -> Any:
        degrees = torch.from_numpy(np.diff(seen[-1].starts.numpy()).astype(np.float32)) if seen else 1.0
        means = [part / (1 + degrees[:, None]) if k and seen else part for k, part in enumerate(parts)]
        return real(me, network, which, means, *rest)

    seen: list[Any] = []
    rows_of = curator_sums.receiver_rows

    def watched(*arguments: Any, **named: Any) -> Any:
        seen.append(rows_of(*arguments, **named))
        return seen[-1]

    patch.setattr(StagedEstimator, "_train", scaled)
    patch.setattr(curator_sums, "receiver_rows", watched)


def noise_is_replayed(patch: Patch) -> None:
    """The user's seed decides the noise."""
    real = PerturbedSum.perturb

    def seeded(me: Any, rows: Any, x: Tensor, hop: int, randomness: Any, **named: Any) -> Tensor:
        return real(me, rows, x, hop, audits.SeededRandomness(12345), **named)

    patch.setattr(PerturbedSum, "perturb", seeded)


@dataclass(frozen=True)
class Mutant:
    """A bug, the item of the checklist that forbids it, and the audit that must notice."""

    item: str
    apply: Callable[[Patch], None]
    audit: Callable[..., None]
    arguments: tuple[Any, ...] = ()


_STEPS, _LEAK = audits.every_step_is_charged_and_noised, audits.validation_labels_decide_nothing

#: One method for each bug, and a second one where another class publishes.
MUTANTS = (
    Mutant("2, 4", root_two_is_missing, _COSTS, ("gap", "edge")),
    Mutant("18", sigma_is_halved, _COSTS, ("class-sums", "edge")),
    Mutant("15", empty_batches_get_no_noise, _STEPS, ("dp-mlp",)),
    Mutant("12", validation_labels_leak, _LEAK, ("node-sums",)),
    Mutant("5", delta_comes_from_the_number_of_edges, audits.edges_decide_no_public_number, ("gap",)),
    Mutant("5", delta_comes_from_the_number_of_edges, audits.edges_decide_no_public_number, ("class-sums",)),
    Mutant("17", noise_is_replayed, audits.noise_is_fresh, ("gap",)),
    Mutant("15", more_steps_run_than_are_charged, _STEPS, ("progap",)),
    Mutant("14", accounting_takes_the_central_limit, audits.noise_of_training_is_enough),
    Mutant("8", a_degree_normalises, audits.nothing_else_reads_edges, ("progap",)),
)


def named(mutant: Mutant) -> str:
    return "-".join([mutant.apply.__name__, *map(str, mutant.arguments)])


@pytest.mark.slow  # trainings
@pytest.mark.parametrize("mutant", MUTANTS, ids=named)
def test_every_mutant_is_killed(mutant: Mutant, monkeypatch: Patch) -> None:
    mutant.apply(monkeypatch)
    with pytest.raises(AssertionError):
        mutant.audit(*mutant.arguments)
