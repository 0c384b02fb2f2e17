"""Published counts of neighbours: what is read, what one edge may change, and never less than the public part."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from graphveil.errors import BudgetError, DataError, InputError
from graphveil.graphs import Split, load_graph, make_graph, social_graph, validate, write_release
from graphveil.methods import ClassCounts, HeteroRR, load_method
from graphveil.methods.release.count_readings import COUNTS_UNUSED, COUNTS_USED, read_public
from graphveil.methods.release.heterorr import domain_of
from graphveil.methods.release.public_part import public_part_of
from graphveil.privacy import SeededRandomness
from tests.methods import made, released_made


def fitted(graph: Any = None, *, noise: int = 1, **settings: Any) -> ClassCounts:
    graph = graph or released_made.graph()
    method = ClassCounts(**{"epsilon_a": 3.0, **settings})
    return method.fit(graph, split=made.split_of(graph), randomness=SeededRandomness(noise))


def two_camps(people: int = 240) -> Any:
    """Two classes that features say nothing of; friends are of one's own class, and all friendships private."""
    rng = np.random.default_rng(4)
    label = torch.arange(people) % 2
    pairs = {tuple(sorted((u, v))) for u in range(people) for v in rng.choice(range(u % 2, people, 2), 6) if u != v}
    half = torch.tensor(sorted(pairs)).T
    edges = torch.cat([half, half.flip(0)], dim=1)
    edges = edges[:, torch.argsort(edges[0] * people + edges[1])]
    like = made.graph(20)
    x = torch.from_numpy(rng.random((people, 20)).astype(np.float32))
    from dataclasses import replace

    return make_graph(x, edges, label, replace(like.schema, name="camps", classes=("a", "b")))


# ---- what one edge may change ----


def test_groups_are_the_same_whatever_edges_are_private() -> None:
    graph = released_made.graph()
    split, none = made.split_of(graph), released_made.private_pairs(graph)[:, :0]
    found = [
        ClassCounts(epsilon_a=3.0).release(one, randomness=SeededRandomness(1), split=split).release.counts.groups
        for one in (graph, released_made.with_private(graph, none))
    ]
    assert torch.equal(found[0], found[1])


def test_what_is_published_holds_no_private_edge_and_no_test_label() -> None:
    graph = released_made.graph()
    split = made.split_of(graph)
    out = validate(ClassCounts(epsilon_a=1.0).release(graph, randomness=SeededRandomness(1), split=split))
    assert bool(out.public_edges.all()) and not out.release.edges
    assert torch.equal(out.edge_index, graph.edge_index[:, graph.public_edges])
    other = made.changed(graph, y=torch.where(split.test, (graph.y + 1) % 3, graph.y))
    other.public_edges = graph.public_edges
    again = ClassCounts(epsilon_a=1.0).release(other, randomness=SeededRandomness(1), split=split)
    assert torch.equal(again.release.counts.groups, out.release.counts.groups)
    assert torch.equal(again.release.counts.counts, out.release.counts.counts)
    known = split.train | split.val
    assert torch.equal(out.release.counts.groups[known], graph.y[known])


# ---- what is made of it ----


def test_counts_tell_what_public_data_cannot() -> None:
    """Of 60 test nodes chance has 30 right; 48 or more have probability 2e-6 where nothing is learned."""
    graph = two_camps()
    place = torch.arange(240) // 2 % 4
    split = Split(place < 2, place == 2, place == 3)
    method = ClassCounts(epsilon_a=2.0).fit(graph, split=split, randomness=SeededRandomness(2))
    assert method.variant == COUNTS_USED
    assert method.score(graph, split.test) > 0.8


def test_counts_that_say_nothing_leave_the_public_part_as_it_is() -> None:
    """At epsilon 0.001 a count has a deviation of 2,800."""
    graph = released_made.graph()
    split = made.split_of(graph)
    method = fitted(graph, epsilon_a=0.001)
    assert method.variant == COUNTS_UNUSED

    public = torch.softmax(read_public(public_part_of(graph, split, domain_of(graph))), dim=1)
    assert torch.equal(method.predict_proba(), public)


def test_without_validation_nodes_the_readings_have_their_first_weights() -> None:
    graph = released_made.graph()
    split = made.split_of(graph)
    alone = Split(split.train, torch.zeros_like(split.val), split.test)
    method = ClassCounts(epsilon_a=3.0).fit(graph, split=alone, randomness=SeededRandomness(1))
    assert torch.isfinite(method.predict_proba()).all()


# ---- folders and files ----


def test_a_folder_gives_the_same_counts_and_the_same_predictions(tmp_path: Path) -> None:
    graph = released_made.graph()
    split = made.split_of(graph)
    out = ClassCounts(epsilon_a=3.0).release(graph, randomness=SeededRandomness(1), split=split)
    write_release(out, tmp_path / "out", out.release, card="")
    read = load_graph(str(tmp_path / "out"))
    assert torch.equal(read.release.counts.counts, out.release.counts.counts)
    assert torch.equal(read.release.counts.groups, out.release.counts.groups)
    for one in (ClassCounts(epsilon_a=3.0), ClassCounts(epsilon_a=9.0)):
        one.fit(read, split=split)
        assert torch.allclose(one.predict_proba(), fitted(graph).predict_proba(), atol=1e-5)
        assert one.guarantee.epsilon == 3.0 and one.ledger == read.release.ledger
    with pytest.raises(InputError, match="no counts were released"):
        plain = HeteroRR(epsilon_x=math.inf, epsilon_a=2.0).release(graph, randomness=SeededRandomness(1))
        ClassCounts(epsilon_a=2.0).fit(plain, split=split)


@pytest.mark.parametrize("damage", [b"", b"PAR1", None])
def test_damaged_or_missing_counts_are_refused(tmp_path: Path, damage: bytes | None) -> None:
    out = ClassCounts(epsilon_a=3.0).release(released_made.graph(), randomness=SeededRandomness(1))
    write_release(out, tmp_path / "out", out.release, card="")
    file = tmp_path / "out" / "counts.parquet"
    if damage is None:
        file.unlink()
    else:
        file.write_bytes(damage)
    with pytest.raises(DataError, match=r"counts\.parquet"):
        load_graph(str(tmp_path / "out"))


def test_a_saved_model_predicts_the_same_and_cannot_release_again(tmp_path: Path) -> None:
    graph = released_made.graph()
    method = fitted(graph)
    again = load_method(method.save(tmp_path))
    assert torch.equal(again.predict_proba(), method.predict_proba())
    assert (again.variant, again.guarantee, again.ledger) == (method.variant, method.guarantee, method.ledger)
    with pytest.raises(BudgetError):
        again.release(graph, randomness=SeededRandomness(2))


def test_other_people_and_what_cannot_be_served_are_refused() -> None:
    method = fitted()
    with pytest.raises(InputError, match="predicts only the nodes that were released"):
        method.predict_proba(social_graph(70, average_degree=6, seed=3))
    with pytest.raises(InputError, match="train gcn"):
        ClassCounts(epsilon_a=math.inf)
    with pytest.raises(InputError, match="features and labels as they are"):
        HeteroRR(epsilon_x=1.0, epsilon_a=1.0, edges="class-counts")


# ---- runs ----
