"""Unit node: what is for one node's eyes is in no file that is handed on, frozen noise or not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from graphveil.errors import GraphveilError
from graphveil.graphs import make_graph
from graphveil.methods import GAP, ClassSums, NodeSums, ProGAP, load_method
from graphveil.methods.base.storage import answers_file, read_method, save_method
from graphveil.privacy import SecureRandomness, SeededRandomness
from tests.methods import curator_made as cm
from tests.methods import made

KINDS: dict[str, Any] = {"gap": GAP, "progap": ProGAP, "node-sums": NodeSums}
BOTH = pytest.mark.parametrize("name", KINDS)
SETTINGS = {**cm.FAST, "unit": "node", "degree_bound": 5, "epsilon": 4.0, "queries": 2}


def asked_about(node_changed: bool) -> Any:
    """The graph of a query, whose node 0 has other features where `node_changed`."""
    start = cm.graph(seed=2)
    x = made.dense(start.x)
    if node_changed:
        x[0] = 1 - x[0]
    return made.changed(start, x=x, name="elsewhere")


@pytest.mark.slow  # trainings
@BOTH
def test_a_model_file_does_not_move_with_the_features_of_a_node_that_was_asked_about(
    name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Record and replay: the node's own answer moves, as joint privacy allows; the model is the same, byte for byte.

    The weakened copy: older versions put the answers into the model, and its bytes moved with node 0.
    """
    start = cm.graph()
    fitted = KINDS[name](**SETTINGS).fit(start, split=cm.split_of(start), randomness=SeededRandomness(1))
    replay, answers, models, weak = cm.Replay(monkeypatch), [], [], []
    for changed in (False, True):
        # Each of its own: who loads one file shares its ledger.
        method = load_method(fitted.save(tmp_path / f"before {changed}"))
        answers.append(method.predict_proba(asked_about(changed), randomness=SeededRandomness(5)))
        file = method.save(tmp_path / str(changed))
        models.append(file.read_bytes())
        kind, facts, tensors = read_method(file)
        inside = read_method(answers_file(file))[2]
        weak.append(save_method(tmp_path / f"old {changed}", kind, facts, tensors | inside).read_bytes())
        replay.again()
    assert models[0] == models[1] and weak[0] != weak[1]
    assert not torch.equal(answers[0][0], answers[1][0])
    assert torch.equal(answers[0][1:], answers[1][1:])


@pytest.mark.parametrize("name", ["gap", "dp-mlp"])
def test_other_people_without_ids_get_no_row_of_those_whose_graph_has_the_same_name_and_size(
    name: str, tmp_path: Path
) -> None:
    """A graph of next month, say, is called as that of this month was: each row is for its own node alone."""
    reads_edges = {"degree_bound": 5, "queries": 2} if name == "gap" else {}
    method, start = cm.fit(name, epsilon=8.0, unit="node", **reads_edges), cm.graph()
    rows = method.predict_proba()
    june, july = (made.changed(start, x=1 - made.dense(start.x) * part) for part in (1.0, 0.5))
    source = SecureRandomness()
    assert torch.equal(method.predict_proba(start), rows)
    first, second = (method.predict_proba(graph, randomness=source) for graph in (june, july))
    assert not torch.equal(first, rows)
    assert not torch.equal(second, first)
    if reads_edges:  # paid for once each, and given again, also by who loads the model
        assert len(method.ledger.spends) == 3
        method.save(tmp_path)
        for graph, answer in ((june, first), (july, second)):
            assert torch.equal(load_method(tmp_path).predict_proba(graph), answer)


@pytest.mark.parametrize("name", ["gap", "class-sums"])
def test_where_edges_are_protected_other_people_get_no_row_of_the_training_either(name: str, tmp_path: Path) -> None:
    """No leak, as features are open there: but a prediction of one person under the row of another.

    The owner of a saved model is told as well; a stranger who has the model alone has nothing that confirms a guess.
    """
    start = cm.graph()
    method = (GAP if name == "gap" else ClassSums)(epsilon=8.0, epochs=2).fit(start, split=cm.split_of(start))
    other = made.changed(start, x=1 - made.dense(start.x))
    file = load_method(method.save(tmp_path)).save(tmp_path / "again")
    for model in (method, load_method(tmp_path), load_method(file)):
        assert torch.equal(model.predict_proba(made.changed(start)), method.predict_proba())
        with pytest.raises(GraphveilError, match=r"has budget for 0|only nodes whose sums were published"):
            model.predict_proba(other, randomness=SecureRandomness())
    answers_file(file).unlink()
    assert torch.equal(load_method(file).predict_proba(other), method.predict_proba())


@pytest.mark.slow  # trainings
@BOTH
def test_answers_are_kept_for_their_owner_and_given_again(name: str, tmp_path: Path) -> None:
    start = cm.graph()
    method = KINDS[name](**SETTINGS).fit(start, split=cm.split_of(start), randomness=SecureRandomness())
    plain = asked_about(False)
    # By their ids people are known again unread.
    other = make_graph(plain.x, plain.edge_index, plain.y, plain.schema, ids=list(range(made.NODES)))
    probabilities = method.predict_proba(other, randomness=SecureRandomness())
    file = method.save(tmp_path)
    assert answers_file(file).stat().st_mode & 0o777 == 0o600
    assert set(read_method(file)[2]) == {part for part in read_method(file)[2] if part.startswith("network")}
    assert torch.equal(load_method(tmp_path).predict_proba(cm.Unreadable(other)), probabilities)
    sentence = method.guarantee.sentence()
    assert "for that node alone" in sentence and "no row is in the model file" in sentence
