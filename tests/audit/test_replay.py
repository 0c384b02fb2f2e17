"""Record and replay: pipelines as they are pass; planted leaks, wrong scales and double charges are found."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, tzinfo
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from graphveil.aggregation import PerturbedSum, ReceiverRows, perturbed
from graphveil.aggregation.contractive import ContractiveChain
from graphveil.audit import PIPELINES, Audit, audit_replay, pipeline
from graphveil.audit.pipelines import neighbour
from graphveil.audit.replay import same
from graphveil.errors import InputError
from graphveil.graphs import keep_lists
from graphveil.mechanisms import MultiBit, RandomizedResponse
from graphveil.mechanisms.edges import bit_flips
from graphveil.mechanisms.samplers.bits import BitLaw, bit_law
from graphveil.methods.curator import privacy as curator_privacy
from graphveil.methods.curator import sums as curator_sums
from graphveil.methods.curator import training as curator
from graphveil.methods.curator.privacy import CuratorPrivacy
from graphveil.methods.curator.recipe import StagedCore
from graphveil.methods.links import collection as private_links
from graphveil.methods.release import edges as release_edges
from graphveil.privacy import SeededRandomness
from graphveil.training import dp_sgd
from graphveil.training.attention import AttentionDescent
from graphveil.training.noisy_updates import NoisyUpdates

Patch = pytest.MonkeyPatch


#: Their price is of more than one call, or what one answer shows is drawn: how near they come to it varies.
EXCUSED = {"attention", "nodes"}


def replayed(name: str, **settings: Any) -> Audit:
    return audit_replay(pipeline(name, **settings))


@pytest.mark.slow  # many runs
@pytest.mark.parametrize("name", PIPELINES)
def test_pipelines_pass(name: str) -> None:
    found = replayed(name)
    assert found.holds, found.notes
    if name.split(",")[0] in ("gap", "progap", "class-sums") and not EXCUSED & set(name.split(", ")):
        # Learned rows do not all point the same way; noise of counts shows less of its ratio in a few draws.
        counted = name in ("class-sums", "class-sums, contacts")
        seeds = (1, 2) if counted else ()
        bounds = [found.lower_bound, *(audit_replay(pipeline(name), seed=seed).lower_bound for seed in seeds)]
        assert max(bounds) > (0.5 if counted or "contacts" in name else 0.75) * found.claimed_epsilon


# ---- mutants ----


def root_two_is_missing(patch: Patch) -> None:
    patch.setattr(perturbed, "entries_of", lambda unit, degree=None, relationships=None: degree or 1)


def a_count_is_charged_at_one_end(patch: Patch) -> None:
    real = CuratorPrivacy.counted

    def counted(me: CuratorPrivacy, schema: Any, **rest: Any) -> Any:
        return replace(real(me, schema, **rest), epsilon=2 * me.epsilon)

    patch.setattr(CuratorPrivacy, "counted", counted)


def contacts_cost_what_one_entry_costs(patch: Patch) -> None:
    patch.setattr(curator_privacy, "sensitivity_of", lambda *_, **__: 1.0)


def sigma_is_halved(patch: Patch) -> None:
    real = PerturbedSum._noise
    patch.setattr(PerturbedSum, "_noise", lambda me, sigma, bits: real(me, sigma / 2, bits))


def sums_are_taken_until_they_look_right(patch: Patch) -> None:
    """Control flow that depends on edges: a second noisy sum where the graph has an odd number of edges."""
    real = curator_sums.receiver_rows

    def twice(graph: Any, privacy: Any, settings: Any, x: Tensor, *rest: Any) -> Any:
        rows = real(graph, privacy, settings, x, *rest)
        if (graph.edge_index.shape[1] // 2) % 2:
            noise = privacy.noise(graph.schema, hops=1)
            privacy.sums(graph.schema, noise).perturb(rows, x, 1, SeededRandomness(1))
        return rows

    patch.setattr(curator_sums, "receiver_rows", twice)


def the_history_counts_edges(patch: Patch) -> None:
    real = StagedCore.history.fget  # type: ignore[attr-defined]
    seen: list[int] = []
    rows = curator_sums.receiver_rows

    def watched(graph: Any, *rest: Any) -> Any:
        seen.append(graph.edge_index.shape[1])
        return rows(graph, *rest)

    patch.setattr(curator_sums, "receiver_rows", watched)
    patch.setattr(StagedCore, "history", property(lambda me: (*real(me), seen[-1])))


def lists_are_sent_twice(patch: Patch) -> None:
    """Fresh noise instead of permanent: the same list answered again, and charged once."""
    real = private_links.randomize_lists

    def twice(graph: Any, links: Any, **how: Any) -> Any:
        real(graph, links, **how)
        return real(graph, links, **how)

    patch.setattr(private_links, "randomize_lists", twice)


def bits_are_flipped_half_as_often(patch: Patch) -> None:
    patch.setattr(bit_flips, "bit_law", lambda epsilon, count: BitLaw(bit_law(epsilon, count).low // 2))


def states_on_the_way_have_no_noise(patch: Patch) -> None:
    real = ContractiveChain.hide

    def hide(me: ContractiveChain, exact: Tensor, sigma: float, hop: int, randomness: Any) -> Tensor:
        return real(me, exact, sigma if hop == me.hops else sigma / 1e6, hop, randomness)

    patch.setattr(ContractiveChain, "hide", hide)


def edges_are_read_after_the_last_noise(patch: Patch) -> None:
    """CARIBOU as its authors' code has it: the noisy state is multiplied by the graph once more."""
    real = ContractiveChain.released

    def released(me: ContractiveChain, rows: ReceiverRows, start: Tensor, *rest: Any) -> Tensor:
        state = real(me, rows, start, *rest).double()
        return me.step(me.operator(rows), state, start.double()).float()

    patch.setattr(ContractiveChain, "released", released)


def lists_keep_one_too_many(patch: Patch) -> None:
    patch.setattr(curator, "keep_lists", lambda e, n, d: replace(keep_lists(e, n, d + 1), degree=d))


def gradients_are_clipped_too_late(patch: Patch) -> None:
    """Sums of clipped gradients are scaled up before their noise, which stays the same."""
    real = dp_sgd.clipped_sum

    def scaled(*arguments: Any) -> Any:
        return [[4 * part for part in layer] for layer in real(*arguments)]

    patch.setattr(dp_sgd, "clipped_sum", scaled)


def the_saved_attention_counts_edges(patch: Patch) -> None:
    """No prediction shows it: it weighs what is behind noise. The file does."""
    real = AttentionDescent.finish

    def finish(me: AttentionDescent) -> None:
        real(me)
        for parameter in me._network.parameters():
            parameter.data.mul_(1 + 1e-5 * len(me._rows.senders))

    patch.setattr(AttentionDescent, "finish", finish)


def the_noise_of_blocks_depends_on_their_edges(patch: Patch) -> None:
    real = release_edges.noisy_blocks

    def wrong(tree: Any, domain: Any, private: Any, epsilon: float, *rest: Any, **named: Any) -> Any:
        return real(tree, domain, private, epsilon * (1 - 1e-3 * (private.shape[1] % 2)), *rest, **named)

    patch.setattr(release_edges, "noisy_blocks", wrong)


def the_tree_costs_more_than_is_booked(patch: Patch) -> None:
    real = release_edges._walked

    def dear(privacy: Any, *rest: Any) -> Any:
        return real(replace(privacy, epsilon_a=2 * privacy.epsilon_a), *rest)

    patch.setattr(release_edges, "_walked", dear)


MUTANTS: tuple[tuple[Callable[[Patch], None], str, str], ...] = (
    (root_two_is_missing, "gap", ""),
    (a_count_is_charged_at_one_end, "class-sums", "together"),
    (contacts_cost_what_one_entry_costs, "progap, contacts", ""),
    (sigma_is_halved, "gap", ""),
    (sums_are_taken_until_they_look_right, "gap", "neighbour"),
    (the_history_counts_edges, "gap", "history"),
    (lists_are_sent_twice, "link-beliefs", "together"),
    (bits_are_flipped_half_as_often, "solitude", ""),
    (states_on_the_way_have_no_noise, "caribou", "saw one of"),
    (edges_are_read_after_the_last_noise, "caribou", "predictions"),
    (lists_keep_one_too_many, "gap, nodes", "saw one of"),
    (gradients_are_clipped_too_late, "dp-mlp", "saw one of"),
    (the_saved_attention_counts_edges, "gap, attention", "the model file"),
    (the_noise_of_blocks_depends_on_their_edges, "edge-rr", "settings"),
    (the_tree_costs_more_than_is_booked, "priv-hrg", "together"),
)


@pytest.mark.slow  # many runs
@pytest.mark.parametrize(("mutant", "name", "note"), MUTANTS, ids=lambda part: getattr(part, "__name__", part))
def test_mutants_are_found(mutant: Callable[[Patch], None], name: str, note: str, monkeypatch: Patch) -> None:
    mutant(monkeypatch)
    found = replayed(name)
    assert not found.holds
    assert note in found.notes[0], found.notes


# ---- the recorder itself ----


@pytest.mark.slow  # many runs
def test_normal_noise_keeps_no_promise_without_a_delta() -> None:
    """No epsilon bounds the ratio of two shifted normal laws, so pure privacy is broken by any measured shift."""
    assert audit_replay(replace(pipeline("class-sums"), delta=0.0)).holds
    found = audit_replay(replace(pipeline("class-sums, normal"), delta=0.0))
    assert (found.verdict, found.lower_bound) == ("broken", math.inf)


@pytest.mark.parametrize("fails", [False, True])
def test_a_run_that_fails_or_an_outcome_that_stands_on_one_side_alone_is_a_finding(fails: bool) -> None:
    def run(labels: Any, randomness: Any) -> Any:
        if fails and labels == 4:
            raise InputError("four")
        RandomizedResponse(epsilon=1.0, classes=6).randomize(torch.tensor([labels]), randomness=randomness)
        return labels

    def outcome(labels: Any) -> Any:
        return {"extra": 1} if labels == 4 else {}

    start = replace(pipeline("label-propagation"), run=run, outcome=outcome)
    for first, second in ((5, 4),) if fails else ((5, 4), (4, 5)):
        note = "fails on the neighbour alone" if fails else "extra differs on the neighbour"
        assert note in audit_replay(replace(start, first=first, second=second)).notes[0]
    assert audit_replay(replace(start, first=5, second=3)).holds
    silent = replace(start, first=5, second=3, run=lambda *_: None)
    assert not audit_replay(silent).holds, "no mechanism was called"


def test_neighbours_differ_in_one_unit() -> None:
    made = pipeline("class-sums")
    assert made.first.edge_index.shape[1] == made.second.edge_index.shape[1] + 2
    train = torch.ones(120, dtype=torch.bool)
    other = neighbour(made.first, "person", train)
    assert (other.y != made.first.y).sum() == 1
    before = (MultiBit.randomize, PerturbedSum.perturb, NoisyUpdates.add_noise)
    replayed("class-sums")  # methods are as they were after an audit
    assert (MultiBit.randomize, PerturbedSum.perturb, NoisyUpdates.add_noise) == before
    with pytest.raises(InputError, match="unit"):
        neighbour(made.first, "house", train)
    with pytest.raises(InputError, match="pipeline"):
        pipeline("nothing")


def test_same_compares_values() -> None:
    assert same({"a": [1, float("nan"), torch.eye(2).to_sparse()]}, {"a": [1, float("nan"), torch.eye(2).to_sparse()]})
    for one, other in ((1, 1.0), (torch.zeros(2), torch.zeros(3)), ((1,), (1, 2)), (np.ones(2), np.zeros(2))):
        assert not same(one, other)


def test_a_release_that_was_made_at_another_moment_is_no_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    class Clock(datetime):
        """A minute later whenever it is asked."""

        asked = 0

        @classmethod
        def now(cls, tz: tzinfo | None = None) -> datetime:  # type: ignore[override]
            cls.asked += 1
            return datetime(2026, 1, 1, 12, cls.asked, tzinfo=UTC)

    monkeypatch.setattr("graphveil.methods.release.heterorr.datetime", Clock)
    assert audit_replay(pipeline("edge-rand"), seed=0).verdict == "holds"
    assert Clock.asked > 1
