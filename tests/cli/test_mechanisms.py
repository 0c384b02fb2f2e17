"""``mechanisms compare`` and ``mechanisms categories``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from graphveil.errors import InputError
from graphveil.files.columns import Category, Column, YesNo
from graphveil.files.reading import read_scores
from graphveil.graphs import load_graph
from graphveil.mechanisms import RandomizedResponse, catalogue
from graphveil.mechanisms.base.mechanism import VectorDomain
from graphveil.mechanisms.mixed import Mixed
from graphveil.mechanisms.question import question_from
from graphveil.methods.release.scores import masked_columns, public_part, public_scores, public_share_of
from tests.cli.conftest import Terminal

# ---- compare ----


def test_every_mechanism_of_features_stands_in_its_table_by_its_worst_error(type_in: Terminal) -> None:
    answer = type_in("mechanisms", "compare", "--epsilon", "0.5,2", "--dimension", 4, "--users", 20, "--delta", 1e-5)
    text = answer.good.out
    assert max(map(len, text.splitlines())) <= 80 and "20 users, 4 coordinates" in text
    names = {info.name for info in catalogue() if info.kind == "features"}
    (folder,) = Path("runs").iterdir()
    assert folder.name.startswith("mechanisms-4-") and f"{folder} (comparison.json, figure.png," in text
    noted = json.loads((folder / "comparison.json").read_text())
    for epsilon, table in zip((0.5, 2.0), text.split("epsilon ")[1:], strict=False):
        assert table.startswith(f"{epsilon:g} for a user's whole vector")
        lines = [line.split() for line in table.splitlines() if line.split()[:1] and line.split()[0] in names]
        errors = {row["mechanism"]: row["worst_mse"] for row in noted["rows"] if row["epsilon"] == epsilon}
        assert [errors[line[0]] for line in lines] == sorted(errors.values())
        assert {line[0]: line[1] for line in lines} == {
            name: f"{error:,.0f}" if error >= 1000 else f"{error:.3g}" for name, error in errors.items()
        }
    assert {row["mechanism"] for row in noted["rows"] if row["delta"]} == {"gaussian"}
    assert "gaussian has delta 1e-05; all others have none" in text


# ---- categories ----


def test_questions_together_are_those_of_mixed(type_in: Terminal) -> None:
    """At epsilon 1 one of two questions is drawn, at 8 both are asked; one question shares nothing."""
    columns = (Column("member", YesNo()), Column("team", Category(tuple(map(str, range(16))))))
    questions = [question_from(name, 1.0, VectorDomain(17, 0.0, 1.0), columns) for name in ("member", "team")]
    rows = type_in("mechanisms", "categories", "--epsilon", "1,8", "--answers", "2,16", "--json").json["together"]
    for row, drawn in zip(rows, (1, 2), strict=True):
        mixed = Mixed(epsilon=row["epsilon"], questions=tuple(questions))
        assert (row["questions"], row["drawn"]) == (2, mixed.drawn) == (2, drawn)
        assert row["epsilon_each"] == mixed.parts[0].epsilon
        assert row["total_variance"] == pytest.approx(mixed.total_variance)
    assert type_in("mechanisms", "categories", "--answers", "5", "--json").json["together"] == []
    answer = type_in("mechanisms", "categories", "--epsilon", "1,3", "--answers", "2,256")
    assert answer.code == 0 and max(map(len, answer.out.splitlines())) <= 80
    lines = [line.split() for line in answer.out.splitlines()]
    assert ["1", "256", "subset-selection"] in [line[:3] for line in lines]
    assert ["1", "1", "of", "2"] in [line[:4] for line in lines]
    for words, message in ((("--answers", "1"), "classes"), (("--answers", "2,2"), "names a value twice")):
        type_in("mechanisms", "categories", *words).refused(message)


# ---- graphveil mechanisms scores ----


PUBLIC = ("mechanisms", "scores", "digits", "--public-share", 0.3)


def test_sensitivity_alone_gives_the_sensitive_columns_least(type_in: Terminal, tmp_path: Path) -> None:
    """Gamma 0 trains nothing: equation 7 by hand, for two columns that a mask empties."""
    answer = type_in(*PUBLIC, "--sensitive", "0,5", "--gamma", 0, "--out", "s.txt", "--json").good
    shares = answer.json["shares"]
    assert sum(shares) == pytest.approx(1.0) and sorted(range(32), key=shares.__getitem__)[:2] in ([0, 5], [5, 0])
    assert read_scores(tmp_path / "s.txt", 32) == pytest.approx(tuple(shares))
    assert answer.json["stamp"] in (tmp_path / "s.txt").read_text() and "gamma 0" in answer.json["note"]
    graph = load_graph("digits")
    part = public_part(graph, public_share_of(graph, 0.3, 0))
    expected = public_scores(part, masked=masked_columns(part, (0, 5)), gamma=0.0)
    assert tuple(shares) == pytest.approx(expected.shares)
    assert type_in(*PUBLIC, "--sensitive", "0", "--gamma", 0, "--out", "s.txt").code == 2  # it is not written over
    # A mask empties the named columns alone; who is public is drawn without looking at anybody.
    masked = masked_columns(part, (2, 3))
    assert bool((masked[:, 2:4] == graph.schema.low).all()) and torch.equal(masked[:, 4:], part.x[:, 4:])
    drawn, other = public_share_of(graph, 0.3, 4), graph.clone()
    other.x = torch.zeros_like(graph.x)
    assert torch.equal(drawn, public_share_of(other, 0.3, 4)) and int(drawn.sum()) == round(0.3 * graph.num_nodes)
    assert not torch.equal(drawn, public_share_of(graph, 0.3, 5)) and bool(public_share_of(graph, None, 0).all())
    with pytest.raises(InputError, match=r"allowed: a number in \(0, 1\)"):
        public_share_of(graph, 1.0, 0)


# ---- audit ----


def test_one_object(type_in: Terminal) -> None:
    audit = type_in("audit", "randomized-response", "--json").good.json
    assert (audit["target"], audit["verdict"]) == ("randomized-response", "holds")
    assert [row["false_alarm"] for row in audit["audits"]] == [0.0, 1e-6]
    text = type_in("audit", "randomized-response").out
    assert max(map(len, text.splitlines())) <= 80 and "no claim broken" in text and "holds" in text
    assert set(audit["audits"][0]) == {
        "target", "claimed_epsilon", "delta", "lower_bound", "false_alarm", "verdict", "seconds", "notes",
    }  # fmt: skip


def test_a_broken_claim_has_an_exit_code_of_its_own(type_in: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    real, weak = RandomizedResponse.randomize, RandomizedResponse(epsilon=2.0, classes=7)
    monkeypatch.setattr(RandomizedResponse, "randomize", lambda me, values, **rest: real(weak, values, **rest))
    answer = type_in("audit", "randomized-response", "--json")
    assert answer.code == 3
    assert [row["verdict"] for row in answer.json["audits"]] == ["holds", "broken"]
    assert "1 of 2 claims broken" in type_in("audit", "randomized-response").out
