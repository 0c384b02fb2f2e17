"""Splits: disjoint, seeded, and blind to what the labels are."""

from __future__ import annotations

import pytest
import torch

from graphveil.errors import InputError
from graphveil.graphs import draw_private, known_labels, published_split, random_split, shares_of, social_graph
from graphveil.graphs.value.splits import fold_split, has_two_parts, separate_test_nodes
from tests.graphs.made import tiny_graph


def test_shares_are_disjoint_drawn_by_the_seed_and_blind_to_what_labels_are():
    graph, changed = social_graph(1_000), social_graph(1_000)
    changed.y = (changed.y + 1) % 8
    split, other, next_one = random_split(graph, 7), random_split(changed, 7), random_split(graph, 8)
    assert [int(mask.sum()) for mask in (split.train, split.val, split.test)] == [500, 250, 250]
    assert int((split.train & split.val | split.val & split.test | split.train & split.test).sum()) == 0
    assert all(torch.equal(getattr(split, part), getattr(other, part)) for part in ("train", "val", "test"))
    assert not torch.equal(split.train, next_one.train)
    some = random_split(graph, 0, (0.1, 0.1, 0.2))
    assert [int(mask.sum()) for mask in (some.train, some.val, some.test)] == [100, 100, 200]


def test_only_nodes_with_a_known_label_are_drawn():
    graph = social_graph(100)
    graph.y[:40] = -1
    split = random_split(graph, 0)
    drawn = split.train | split.val | split.test
    assert torch.equal(drawn, known_labels(graph)) and int(drawn.sum()) == 60
    assert int(random_split(tiny_graph(y=torch.zeros(4, 2)), 0).train.sum()) == 2  # several labels a node are known


@pytest.mark.parametrize(
    "fractions", [(0.5, 0.5, 0.5), (-0.1, 0.5, 0.5), (0.0, 0.0, 0.0), (0.5, 0.5), "abc", (1, "a", 0)]
)
def test_bad_fractions_are_refused(fractions):
    with pytest.raises(InputError, match="random_split: fractions are"):
        random_split(tiny_graph(), 0, fractions)
    with pytest.raises(InputError, match="3 labelled nodes leave none to train on"):
        random_split(tiny_graph(), 0, (0.0, 0.5, 0.5))
    with pytest.raises(InputError, match="random_split: a str is no graph of graphveil; make one with"):
        random_split("cora", 0)
    for seed in (-1, "x", 1.5):
        with pytest.raises(InputError, match=r"random_split: seed is .*; allowed: a whole number"):
            random_split(tiny_graph(), seed)


@pytest.mark.parametrize("text", ["mine", "75/x", "75/10/10/5", "", "0.75,0.1,0.15", "75/10/16", "-1/50/50", "nan/1/1"])
def test_what_is_no_share_is_refused(text):
    assert shares_of("75/10/15") == (0.75, 0.1, 0.15)
    assert shares_of(" 12.5/0/ 87.5") == (0.125, 0.0, 0.875)
    with pytest.raises(InputError, match=r"allowed: .*three shares|fractions are"):
        random_split(tiny_graph(), 0, shares_of(text))


def test_a_published_split_is_whole_or_none():
    graph = tiny_graph()
    assert published_split(graph) is None
    mask = torch.tensor([True, False, False, False])
    graph.train_mask, graph.val_mask = mask, mask.roll(1)
    assert published_split(graph) is None
    graph.test_mask = mask.roll(2)
    assert torch.equal(published_split(graph).test, mask.roll(2))


def test_five_folds_test_everybody_once_and_the_next_five_are_drawn_anew() -> None:
    graph = social_graph(103, seed=1)
    splits = [fold_split(graph, 5, number) for number in range(10)]
    for split in splits:
        assert bool((split.train.int() + split.val.int() + split.test.int() == 1).all())
        assert int(split.test.sum()) in (20, 21)
    for five in (splits[:5], splits[5:]):
        assert bool((torch.stack([split.test for split in five]).sum(dim=0) == 1).all())
    assert bool((splits[0].val == splits[1].test).all()) and not bool((splits[0].test == splits[5].test).all())
    assert bool((splits[3].test == fold_split(graph, 5, 3).test).all())
    for folds in (2, 104):
        with pytest.raises(InputError, match=f"{folds} folds; allowed: 3 to 103"):
            fold_split(graph, folds, 0)


def test_two_shares_are_of_training_and_test_nodes_without_edges_between_them() -> None:
    graph = social_graph(200, seed=2)
    assert shares_of("80/20") == (0.8, 0.0, 0.2) and has_two_parts("80/20") and not has_two_parts("75/10/15")
    split = random_split(graph, 0, shares_of("80/20"))
    before = graph.edge_index.clone()
    reduced = separate_test_nodes(graph, split)
    remaining = {tuple(pair) for pair in reduced.edge_index.T.tolist()}
    for source, target in before.T.tolist():
        assert ((source, target) in remaining) == bool(split.test[source] == split.test[target])
    assert remaining and len(remaining) < before.shape[1]
    # The graph itself and everything else of it stay.
    assert torch.equal(graph.edge_index, before) and reduced.x is graph.x and reduced.schema == graph.schema


def test_public_edges_stay_with_their_edges_when_graphs_are_kept_apart() -> None:
    graph = draw_private(social_graph(200, seed=2), 0.3, 0)
    split = random_split(graph, 1, (0.8, 0.0, 0.2))
    reduced = separate_test_nodes(graph, split)
    assert reduced.public_edges.shape == reduced.edge_index.shape[1:]

    def public(graph: object) -> set[tuple[int, ...]]:
        return {tuple(pair) for pair in graph.edge_index[:, graph.public_edges].T.tolist()}  # type: ignore[attr-defined]

    assert public(reduced) == {pair for pair in public(graph) if bool(split.test[pair[0]] == split.test[pair[1]])}
