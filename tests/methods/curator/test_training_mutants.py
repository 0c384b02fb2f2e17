"""Mutants of the curator's methods: each is a bug that was seen in released software, and each must fail an audit.

The audits are those of test_training_checklist.py, where the methods as they are pass them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from graphveil.aggregation import PerturbedSum, perturbed
from graphveil.graphs import keep_lists
from graphveil.methods.curator import sums as curator_sums
from graphveil.methods.curator import training as curator
from graphveil.methods.curator.class_sums import ClassSumsCore
from graphveil.methods.curator.recipe import StagedCore
from graphveil.privacy import budget_split
from graphveil.training.noisy_updates import NoisyUpdates
from tests.methods import curator_audits as audits

Patch = pytest.MonkeyPatch


def root_two_is_missing(patch: Patch) -> None:
    patch.setattr(perturbed, "entries_of", lambda unit, degree=None, relationships=None: degree or 1)


def sigma_is_halved(patch: Patch) -> None:
    real = PerturbedSum._noise
    patch.setattr(PerturbedSum, "_noise", lambda me, sigma, bits: real(me, sigma / 2, bits))


def empty_batches_get_no_noise(patch: Patch) -> None:
    real = NoisyUpdates.add_noise

    def add(me: Any, totals: Tensor, randomness: Any) -> None:
        if bool(totals.any()):
            real(me, totals, randomness)

    patch.setattr(NoisyUpdates, "add_noise", add)


def validation_labels_leak(patch: Patch) -> None:
    """The head is shifted by how well it does on private validation labels."""
    real = StagedCore._train

    def leaking(me: Any, network: Any, which: int, parts: Any, people: Any, *rest: Any) -> Any:
        found = real(me, network, which, parts, people, *rest)
        with torch.no_grad():
            scores = network(curator.dense_blocks(parts, people.val))
            loss = torch.nn.functional.cross_entropy(scores, people.labels[people.val])
            network.head.bias += loss * torch.arange(len(network.head.bias))
        return found

    patch.setattr(StagedCore, "_train", leaking)


def delta_comes_from_the_number_of_edges(patch: Patch) -> None:
    def mutant(real: Any) -> Any:
        def publish(me: Any, graph: Any, **rest: Any) -> Any:
            me.privacy = replace(me.privacy, delta=0.1 / graph.edge_index.shape[1])
            me.account.ledger = me.privacy.open_ledger()
            return real(me, graph, **rest)

        return publish

    for kind in (StagedCore, ClassSumsCore):
        patch.setattr(kind, "publish", mutant(kind.publish))


def lists_keep_one_too_many(patch: Patch) -> None:
    patch.setattr(curator, "keep_lists", lambda e, n, d: replace(keep_lists(e, n, d + 1), degree=d))


def the_last_list_is_lost(patch: Patch) -> None:
    def lose(edges: Tensor, nodes: int, degree: int) -> Any:
        return keep_lists(edges[:, edges[0] != nodes - 1], nodes, degree)

    patch.setattr(curator, "keep_lists", lose)


def more_steps_run_than_are_charged(patch: Patch) -> None:
    real = curator.PrivateSchedule
    patch.setattr(curator, "PrivateSchedule", lambda steps, **rest: real(steps=steps + 1, **rest))


def accounting_takes_the_central_limit(patch: Patch) -> None:
    patch.setattr(budget_split, "pipeline_epsilon", audits.central_limit)


def a_degree_normalises(patch: Patch) -> None:
    """Sums become means over private numbers of neighbours."""
    real = StagedCore._train

    def scaled(me: Any, network: Any, which: int, parts: Any, *rest: Any) -> Any:
        degrees = torch.from_numpy(np.diff(seen[-1].starts.numpy()).astype(np.float32)) if seen else 1.0
        means = [part / (1 + degrees[:, None]) if k and seen else part for k, part in enumerate(parts)]
        return real(me, network, which, means, *rest)

    seen: list[Any] = []
    rows_of = curator_sums.receiver_rows

    def watched(*arguments: Any, **named: Any) -> Any:
        seen.append(rows_of(*arguments, **named))
        return seen[-1]

    patch.setattr(StagedCore, "_train", scaled)
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


_COSTS, _LAW = audits.one_edge_costs_what_was_said, audits.noise_has_the_law_that_was_said
_STEPS = audits.every_step_is_charged_and_noised
_LISTS, _LEAK = audits.a_list_moves_no_more_rows_than_its_bound, audits.validation_labels_decide_nothing

MUTANTS = (
    Mutant("2, 4", root_two_is_missing, _COSTS, ("gap", "edge")),
    Mutant("2, 4", root_two_is_missing, _COSTS, ("progap", "edge")),
    Mutant("2, 4", root_two_is_missing, _COSTS, ("class-sums", "edge")),
    Mutant("18", sigma_is_halved, _COSTS, ("gap", "directed-edge")),
    Mutant("18", sigma_is_halved, _LAW, ("gap",)),
    Mutant("18", sigma_is_halved, _LAW, ("progap",)),
    Mutant("18", sigma_is_halved, _LAW, ("class-sums",)),
    Mutant("15", empty_batches_get_no_noise, _STEPS, ("dp-mlp",)),
    Mutant("15", empty_batches_get_no_noise, _STEPS, ("gap",)),
    Mutant("12", validation_labels_leak, _LEAK, ("gap",)),
    Mutant("12", validation_labels_leak, _LEAK, ("progap",)),
    Mutant("12", validation_labels_leak, _LEAK, ("node-sums",)),
    Mutant("5", delta_comes_from_the_number_of_edges, audits.edges_decide_no_public_number, ("gap",)),
    Mutant("5", delta_comes_from_the_number_of_edges, audits.edges_decide_no_public_number, ("progap",)),
    Mutant("5", delta_comes_from_the_number_of_edges, audits.edges_decide_no_public_number, ("class-sums",)),
    Mutant("9", lists_keep_one_too_many, _LISTS),
    Mutant("9", the_last_list_is_lost, _LISTS),
    Mutant("17", noise_is_replayed, audits.noise_is_fresh, ("gap",)),
    Mutant("15", more_steps_run_than_are_charged, _STEPS, ("dp-mlp",)),
    Mutant("15", more_steps_run_than_are_charged, _STEPS, ("progap",)),
    Mutant("15", more_steps_run_than_are_charged, _STEPS, ("node-sums",)),
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
