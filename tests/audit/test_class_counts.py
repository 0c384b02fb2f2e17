"""Audits of published counts: they pass as shipped, and weakened copies of each half are found."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from graphveil.audit.canaries import audit_edge_canaries
from graphveil.audit.cases import Case, audit_exactly, audit_samples
from graphveil.audit.edge_cases import edge_cases
from graphveil.audit.exact import Table
from graphveil.audit.pipelines import pipeline
from graphveil.audit.replay import audit_replay
from graphveil.audit.sampled import Draw, Scores
from graphveil.mechanisms import ClassCounts
from graphveil.privacy import Randomness


def case() -> Case:
    (found,) = (one for one in edge_cases() if one.name == "class-counts")
    return found


def test_enumerated_and_sampled_audits_accept_the_epsilon_and_reject_twice_of_it() -> None:
    """The sampled one at its stated false-alarm rate."""
    assert audit_exactly(case()).holds and audit_samples(case()).holds
    assert not audit_exactly(case(), actual=2.0).holds
    assert not audit_samples(case(), actual=4.0).holds


def test_counts_that_cost_an_edge_once_for_both_are_found() -> None:
    """A copy whose likelihood is that of counts at all of epsilon each."""

    def at_full_price(mechanism: ClassCounts) -> Table:
        return np.asarray(2.0 * case().table(mechanism))

    assert not audit_exactly(replace(case(), table=at_full_price)).holds


def test_canaries_accept_the_release_and_the_bound_is_no_empty_one() -> None:
    found = audit_edge_canaries("class-counts")
    assert found.holds and 0.2 < found.lower_bound <= found.claimed_epsilon


def test_sampled_scores_without_noise_are_found() -> None:
    """A copy that publishes the counts themselves: every score tells."""

    def bare(mechanism: ClassCounts) -> Draw:
        people = mechanism.domain.nodes
        partners = torch.arange(people).view(-1, 2).T

        def scores(is_first: bool, count: int, randomness: Randomness) -> Scores:
            table = mechanism.count(partners if is_first else partners[:, :0])
            each = (table[0::2, 1] + table[1::2, 0]).astype(np.float64)
            return np.resize(each, count)

        return scores

    assert not audit_samples(replace(case(), draw=bare)).holds


def test_a_replay_on_a_neighbour_differs_in_the_counts_alone() -> None:
    found = audit_replay(pipeline("class-counts"))
    assert found.holds, found.notes
    assert "1 mechanism calls replayed" in found.notes[-1]


@pytest.mark.parametrize("epsilon", [0.5, 4.0])
def test_one_edge_is_worth_all_of_epsilon_and_no_more(epsilon: float) -> None:
    """The worst table of the enumerated case, at other prices than that of the case."""
    found = audit_exactly(replace(case(), epsilon=epsilon))
    assert found.holds
    assert 0.999 * epsilon < found.lower_bound <= epsilon * (1 + 1e-9)
