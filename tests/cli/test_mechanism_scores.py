"""``graphveil mechanisms scores``: budget shares from public rows, written for `--set scores=FILE`."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from graphveil.errors import InputError
from graphveil.graphs import load_graph
from graphveil.graphs.score_file import read_scores
from graphveil.methods.release.scores import masked_columns, public_part, public_scores, public_share_of
from tests.cli.conftest import Terminal

PUBLIC = ("mechanisms", "scores", "digits", "--public-share", 0.3)


def test_sensitivity_alone_gives_the_sensitive_columns_least(type_in: Terminal, tmp_path: Path) -> None:
    """Gamma 0 trains nothing: equation 7 by hand, for two columns that a mask empties."""
    answer = type_in(*PUBLIC, "--sensitive", "0,5", "--gamma", 0, "--out", "s.txt", "--json")
    assert answer.code == 0, answer.err
    shares = answer.json["shares"]
    assert sum(shares) == pytest.approx(1.0) and sorted(range(32), key=shares.__getitem__)[:2] in ([0, 5], [5, 0])
    assert read_scores(tmp_path / "s.txt", 32) == pytest.approx(tuple(shares))
    assert answer.json["stamp"] in (tmp_path / "s.txt").read_text() and "gamma 0" in answer.json["note"]
    graph = load_graph("digits")
    part = public_part(graph, public_share_of(graph, 0.3, 0))
    expected = public_scores(part, masked=masked_columns(part, (0, 5)), gamma=0.0)
    assert tuple(shares) == pytest.approx(expected.shares)


def test_importance_moves_the_shares_and_the_file_is_taken(type_in: Terminal) -> None:
    pytest.importorskip("shap")
    alone = type_in(*PUBLIC, "--sensitive", "0", "--gamma", 0, "--out", "a.txt", "--json").json["shares"]
    both = type_in(*PUBLIC, "--sensitive", "0", "--gamma", 0.5, "--out", "b.txt", "--json").json["shares"]
    assert sum(both) == pytest.approx(1.0) and both != alone
    taken = type_in("plan", "feature-rr", "digits", "--epsilon-x", 2, "--set", "scores=b.txt", "--json")
    assert taken.code == 0, taken.err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("digits",), "everybody is declared public, but the features are private"),
        (("digits", "--public-share", 2), "a share of 2.0"),
        (("digits", "--public-share", 0.3, "--sensitive", "a"), "numbers of columns"),
        (("digits", "--public-share", 0.3, "--sensitive", "32", "--gamma", 0), "column 32"),
        (("digits", "--public-share", 0.3, "--gamma", 2), "--gamma"),
    ],
)
def test_what_cannot_be_is_refused_and_leaves_no_file(
    type_in: Terminal, tmp_path: Path, words: tuple[object, ...], said: str
) -> None:
    answer = type_in("mechanisms", "scores", *words)
    assert (answer.code, answer.out) == (2, "") and said in answer.err
    assert not (tmp_path / "scores.txt").exists()


def test_a_file_is_not_written_over(type_in: Terminal, tmp_path: Path) -> None:
    (tmp_path / "scores.txt").write_text("mine")
    answer = type_in(*PUBLIC, "--sensitive", "0", "--gamma", 0)
    assert answer.code == 2 and (tmp_path / "scores.txt").read_text() == "mine"


def test_who_is_public_is_drawn_without_looking_at_anybody() -> None:
    graph = load_graph("digits")
    drawn = public_share_of(graph, 0.3, 4)
    other = graph.clone()
    other.x = torch.zeros_like(graph.x)
    assert torch.equal(drawn, public_share_of(other, 0.3, 4)) and int(drawn.sum()) == round(0.3 * graph.num_nodes)
    assert not torch.equal(drawn, public_share_of(graph, 0.3, 5)) and bool(public_share_of(graph, None, 0).all())
    with pytest.raises(InputError, match=r"allowed: a number in \(0, 1\)"):
        public_share_of(graph, 1.0, 0)


def test_a_mask_sets_the_named_columns_to_the_lowest_declared_value_and_no_other() -> None:
    graph = load_graph("digits")
    part = public_part(graph, public_share_of(graph, 0.1, 0))
    masked = masked_columns(part, (2, 3))
    assert bool((masked[:, 2:4] == graph.schema.low).all()) and torch.equal(masked[:, 4:], part.x[:, 4:])
    assert masked is not part.x and not torch.equal(masked, part.x)
