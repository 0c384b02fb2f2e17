"""Who is who when a model is asked again: people are known by their ids, and whoever is asked again pays again."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from graphveil.errors import BudgetError, InputError
from graphveil.graphs import make_graph, normalise_edges
from graphveil.mechanisms import MultiBit, permanent_reports
from graphveil.methods import LPGNN, Solitude, load_method
from graphveil.methods.base.people.people import BY_ID
from graphveil.methods.base.storage import ANSWERS, answers_file, read_method
from graphveil.privacy import PermanentRandomness, SecureRandomness, assume
from tests.methods import made

KINDS: dict[str, Any] = {
    "lpgnn": lambda **more: LPGNN(epsilon_x=1.0, epsilon_y=1.0, epochs=2, hidden=4, **more),
    "solitude": lambda **more: Solitude(epsilon_x=1.0, epsilon_a=4.0, epochs=2, hidden=4, **more),
}
BOTH = pytest.mark.parametrize("name", KINDS)


def graph(rows: Any = range(made.NODES), *, ids: bool = True, name: str = "town", without: int | None = None) -> Any:
    """Some people of one town in some order, with all links among them, or all but one; row 60 + i is a stranger."""
    rows = torch.as_tensor(list(rows))
    first, second = made.graph(20, seed=1), made.graph(20, seed=2)
    x, y = torch.cat([first.x, second.x])[rows], torch.cat([first.y, second.y])[rows]
    both = torch.cat([first.edge_index, second.edge_index + made.NODES], dim=1)
    place = torch.full((2 * made.NODES,), -1)
    place[rows] = torch.arange(len(rows))
    edges = place[both]
    edges = edges[:, (edges >= 0).all(dim=0) & (edges[0] < edges[1])]
    if without is not None:
        edges = edges[:, torch.arange(edges.shape[1]) != without]
    made_edges, _ = normalise_edges(*edges.numpy(), len(rows), directed=False)
    names = [f"person {row}" for row in rows.tolist()] if ids else None
    return make_graph(x, made_edges, y, replace(first.schema, name=name), ids=names)


def fit(name: str, *, ids: bool = True, **more: Any) -> Any:
    start = graph(ids=ids)
    return KINDS[name](**more).fit(start, split=made.split_of(start), randomness=SecureRandomness())


@BOTH
def test_the_same_people_without_ids_are_not_asked_again_for_nothing(name: str) -> None:
    """One link less, or another name: refused before anything is read, naming the three ways on."""
    method = fit(name, ids=False)
    paid = method.ledger
    for other in (graph(ids=False, without=3, name="town, later"), graph(range(40), ids=False)):
        with pytest.raises(BudgetError) as refused:
            method.predict(other, randomness=SecureRandomness())
        for remedy in ("queries=1", "people='same'", "people='other'"):
            assert remedy in str(refused.value)
    assert method.ledger == paid


@BOTH
def test_a_declared_second_report_is_counted_in_the_guarantee(name: str) -> None:
    method = fit(name, ids=False, queries=1)
    once = method.guarantee
    assert once.assumption("reports-once")
    method.predict(graph(range(40), ids=False), randomness=SecureRandomness())
    more = 1.0 if name == "lpgnn" else 5.0
    assert method.guarantee.epsilon == pytest.approx(once.epsilon + more)
    assert not method.guarantee.assumption("reports-once")
    assert "features 2 times" in str(method.guarantee.assumption("reports-counted"))
    assert [spend.name for spend in method.ledger.spends][-1].endswith("again for town")
    with pytest.raises(BudgetError):
        method.predict(graph(range(30), ids=False), randomness=SecureRandomness())


@BOTH
def test_only_new_ids_are_asked_and_their_price_is_theirs_alone(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    method = fit(name)
    before, price, reported = method.ledger, method.guarantee.epsilon, []
    real = MultiBit.randomize

    def watched(me: MultiBit, values: Any, *, randomness: Any) -> Any:
        reported.append(len(values))
        return real(me, values, randomness=randomness)

    monkeypatch.setattr(MultiBit, "randomize", watched)
    mixed = graph([*range(50), *range(60, 75)])
    probabilities = method.predict_proba(mixed, randomness=SecureRandomness())
    assert (probabilities.shape[0], reported) == (65, [15])
    rows = method.ledger.spends[len(before.spends) :]
    units = {"features", "links"} if name == "solitude" else {"features"}
    assert {spend.unit.split(" of ")[0] for spend in rows} == units
    assert all(spend.unit.startswith(("features of town (", "links of town (")) for spend in rows)
    assert method.guarantee.epsilon == price
    assert BY_ID in method.guarantee.assumes
    again = method.predict_proba(graph([*range(60, 80)]), randomness=SecureRandomness())
    assert reported == [15, 5] and again.shape[0] == 20
    assert torch.equal(method.predict_proba(mixed), probabilities)


@BOTH
def test_the_caller_may_say_who_they_are(name: str) -> None:
    method = fit(name, ids=False)
    paid, later = method.ledger, graph(ids=False, without=3, name="later")
    assert method.predict_proba(later, people="same").shape == (made.NODES, 3)
    assert method.ledger == paid
    assert assume("rows-declared", graph="later", times="") in method.guarantee.assumes
    with pytest.raises(InputError, match="cannot be the people of the run"):
        method.predict_proba(graph(range(40), ids=False, name="fewer"), people="same")
    with pytest.raises(InputError, match="allowed: same, other"):
        method.predict_proba(later, people="friends")
    strangers = graph(range(60, 100), ids=False, name="strangers")
    first = method.predict_proba(strangers, people="other", randomness=SecureRandomness())
    assert torch.equal(method.predict_proba(strangers, people="other"), first)
    assert len(method.ledger.spends) == len(paid.spends) + (1 if name == "lpgnn" else 2)
    assert assume("others-declared", graph="strangers", times="") in method.guarantee.assumes


def test_ids_are_believed_and_not_the_caller() -> None:
    with pytest.raises(InputError, match="10 of the ids have never reported"):
        fit("lpgnn").predict(graph(range(10, 70)), people="same")


@pytest.mark.parametrize(("name", "ids"), [("lpgnn", True), ("lpgnn", False), ("solitude", True)])
def test_the_people_of_the_run_are_not_declared_to_be_others(name: str, ids: bool) -> None:
    """They would report a second time at the price of a first."""
    method = fit(name, ids=ids)
    paid = method.ledger
    with pytest.raises(InputError, match="they cannot be other people: this is the graph of the run; leave out people"):
        method.predict_proba(graph(ids=ids), people="other", randomness=SecureRandomness())
    assert method.ledger == paid


@pytest.mark.parametrize("kind", [int, float, np.int64, torch.tensor, "zoe\u0308\u00a0 {}".format])
@BOTH
def test_an_id_is_the_same_however_it_is_typed_or_spelled(name: str, kind: Any) -> None:
    """One person, one price: whoever is written otherwise in another table has reported all the same."""
    rows = range(made.NODES)
    start, again = graph(ids=False), graph(ids=False, without=3)
    start.ids = [str(row) if isinstance(kind, type) or kind is torch.tensor else f"Zo\u00eb {row}" for row in rows]
    again.ids = kind(rows) if kind is torch.tensor else [kind(row) for row in rows]
    method = KINDS[name]().fit(start, split=made.split_of(start), randomness=SecureRandomness())
    paid = method.ledger
    method.predict_proba(again)
    assert method.ledger == paid


@BOTH
def test_ids_of_declared_others_do_not_pass_for_new_ones_later(name: str, tmp_path: Path) -> None:
    """They may be the same people, whose second report would be free, or others whose ids happen to be equal."""
    method, strangers = fit(name), range(60, 70)
    method.predict_proba(graph(strangers, name="far"), people="other", randomness=SecureRandomness())
    method = load_method(method.save(tmp_path))
    paid = method.ledger
    with pytest.raises(BudgetError, match="nothing tells the people of near"):
        method.predict_proba(graph(strangers, name="near"), randomness=SecureRandomness())
    assert method.ledger == paid
    method.predict_proba(graph(range(10), name="near"))


def test_old_and_permanent_reports_are_taken_as_they_are() -> None:
    """Those that this account paid for say nothing new; others are noted, for somebody else answers for their price."""
    method = fit("lpgnn", ids=False)
    paid, later = method.ledger, graph(ids=False, without=3, name="later")
    mine = method.predict_proba(later, reports=method.released)
    assert torch.equal(mine, method.predict_proba(later, people="same"))
    devices = [PermanentRandomness(bytes([row]) * 32, "town") for row in range(made.NODES)]
    mechanism = method.privacy.features(method.schema)
    lasting = replace(method.released, features=permanent_reports(mechanism, later.x, devices, field="features"))
    method.predict_proba(later, reports=lasting)
    assert method.ledger == paid
    assert method.guarantee.assumes[-1] == assume("reports-handed-in", graph="later")
    with pytest.raises(InputError, match="60 reports for 40 nodes"):
        method.predict(graph(range(40), ids=False), reports=method.released)
    other = LPGNN(epsilon_x=2.0, epsilon_y=1.0, epochs=2).randomize(
        graph(), split=made.split_of(graph()), randomness=SecureRandomness()
    )
    with pytest.raises(InputError, match="the reports were made by"):
        method.predict(later, reports=other)


@BOTH
def test_a_model_that_was_handed_on_knows_nobody(name: str, tmp_path: Path) -> None:
    """Without the file beside it, ids tell nothing: the people may be those of the run, and would be asked again."""
    file = fit(name).save(tmp_path)
    answers_file(file).unlink()
    handed = load_method(tmp_path)
    for other in (graph(range(40)), graph(range(60, 90), name="strangers")):
        with pytest.raises(BudgetError, match="would be asked again"):
            handed.predict(other, randomness=SecureRandomness())
    handed.predict(graph(range(60, 90), name="strangers"), people="other", randomness=SecureRandomness())


@BOTH
def test_how_often_people_were_declared_to_be_others_is_told(name: str) -> None:
    method = fit(name, ids=False)
    for row in (60, 61, 62):
        other = graph(range(row, 80), ids=False, name="far")
        method.predict_proba(other, people="other", randomness=SecureRandomness())
    assert "(said 3 times)" in str(method.guarantee.assumption("others-declared"))


@BOTH
def test_who_was_asked_by_a_step_that_failed_is_not_new(name: str) -> None:
    """What they sent is lost, and that they sent it is not: without room for a second report they stay unasked."""
    method = fit(name)
    broken = graph(range(60, 90))
    broken.x[0, 0] = math.nan
    with pytest.raises(InputError):
        method.predict(broken, randomness=SecureRandomness())
    paid = method.ledger
    with pytest.raises(BudgetError, match="would be asked again"):
        method.predict(graph(range(60, 90)), randomness=SecureRandomness())
    assert method.ledger == paid


@BOTH
def test_what_two_copies_asked_is_put_together_when_they_are_saved(name: str, tmp_path: Path) -> None:
    """The second knows nothing of whom the first asked; the file beside the model keeps their answers."""
    file = fit(name).save(tmp_path)
    first, second = load_method(tmp_path), load_method(tmp_path)
    first.predict(graph(range(60, 80)), randomness=SecureRandomness())
    first.save(tmp_path)
    second.save(tmp_path)
    content = read_method(answers_file(file))[2]
    assert len(content["names"]) == made.NODES + 20


@BOTH
def test_the_model_holds_nobodys_reports_and_the_file_beside_it_is_its_owners(name: str, tmp_path: Path) -> None:
    method = fit(name)
    method.predict(graph(range(60, 90)), randomness=SecureRandomness())
    file = method.save(tmp_path / "one")
    assert not any(part.startswith(("answers", "rows", "names")) for part in read_method(file)[2])
    assert b"person 3" not in file.read_bytes() and b"person 3" not in answers_file(file).read_bytes()
    assert (tmp_path / "one" / ANSWERS).stat().st_mode & 0o777 == 0o600
    assert answers_file(method.save(tmp_path / "mine.safetensors")).name == "mine.answers.safetensors"


@BOTH
def test_the_ledger_beside_a_model_is_the_account_of_all_who_load_it(name: str, tmp_path: Path) -> None:
    """Two that were loaded before either asked share one budget: the second is refused, and nothing of it is read."""
    fitted = fit(name, ids=False, queries=1)
    fitted.save(tmp_path)
    (tmp_path / "ledger.json").write_text(json.dumps(fitted.ledger.to_dict()))
    first, other = load_method(tmp_path), load_method(tmp_path)
    broken = graph(range(40), ids=False)
    broken.x[0, 0] = math.nan
    with pytest.raises(InputError):
        first.predict(broken, randomness=SecureRandomness())
    on_disk = json.loads((tmp_path / "ledger.json").read_text())
    assert on_disk == first.ledger.to_dict() and len(on_disk["spends"]) > len(fitted.ledger.spends)
    with pytest.raises(BudgetError):
        other.predict(graph(range(30), ids=False), randomness=SecureRandomness())
    assert json.loads((tmp_path / "ledger.json").read_text()) == on_disk


@BOTH
def test_people_who_were_asked_again_after_a_lost_answer_are_not_asked_a_third_time(name: str) -> None:
    """A prediction that failed after paying leaves it open who was asked, so all pay once more; then their rows are
    there."""
    method, broken = fit(name, queries=1), graph(range(40, 90), name="later")
    later = graph(range(40, 90), name="later")
    broken.x[-1, 0] = math.nan
    with pytest.raises(InputError):
        method.predict(broken, randomness=SecureRandomness())
    lost = method.ledger
    answer = method.predict_proba(later, randomness=SecureRandomness())
    paid = method.ledger
    assert len(paid.spends) > len(lost.spends)
    assert torch.equal(method.predict_proba(later), answer) and method.ledger == paid
