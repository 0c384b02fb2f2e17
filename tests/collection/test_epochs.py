"""Reports of several epochs: what they may have cost, what trains on them, and that no smaller price would do."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import product
from math import log
from pathlib import Path

import numpy as np
import pytest
import torch

from graphveil.collection.export.export import export, read_export
from graphveil.collection.export.learning import Repetition, collected_graph, learn
from graphveil.collection.export.reports import Received
from graphveil.device.people.people import ids_hash
from graphveil.device.reports.exact import WORD
from graphveil.device.reports.features import STEPS, Features
from graphveil.device.reports.label import Label
from graphveil.errors import BudgetError
from graphveil.graphs import Split
from graphveil.methods.base.people.account import TaskPayment
from graphveil.methods.base.people.released import topology_of
from graphveil.methods.registry import build_method
from graphveil.methods.runs.result import Result
from graphveil.privacy.ledger_file import starts_with
from tests.collection.answered import IDS, PEOPLE, graph
from tests.collection.collections import Collection, begun, url_of
from tests.on_device.signing import MOODS, features, label, links

TRUTH = graph()


def values(number: int, kinds: tuple[str, ...], *, changed: bool) -> dict[str, object]:
    node = (number + 1) % PEOPLE if changed else number
    friends = TRUTH.edge_index[1][TRUTH.edge_index[0] == number].tolist()
    answers = {
        "features": TRUTH.x.to_dense()[node].tolist(),
        "label": MOODS[int(TRUTH.y[node])],
        "links": [friend for friend in friends if not changed or friend % 3],
    }
    return {kind: answers[kind] for kind in kinds}


def everybody(folder: Path, *fields: dict[str, object]) -> Collection:
    return begun(url_of(folder), *fields, people=PEOPLE, enrolled=PEOPLE, ids=ids_hash(IDS), least=3)


def two_epochs(folder: Path, *fields: dict[str, object], again: tuple[str, ...] | None = None) -> tuple[Path, Path]:
    """The exports after the first epoch and the second: every second person answers again, every fourth changed."""
    first = everybody(folder, *fields)
    kinds = tuple(field.kind for field in first.task.fields)
    answer(first, range(PEOPLE), kinds)
    second = first.after(b"second epoch 16b")
    export(first.store, folder / "one")
    answer(second, range(0, PEOPLE, 2), kinds if again is None else again, changed=True)
    return folder / "one", second.exported(folder / "two")


def answer(running: Collection, people: range, kinds: tuple[str, ...], *, changed: bool = False) -> None:
    sent = [running.report(person, values(person, kinds, changed=changed and person % 4 == 0)) for person in people]
    assert set(running.intake.take(sent)) == {"accepted"}


def learned(name: str, out: Path, **settings: object) -> Result:
    received = Received(read_export(out))
    graph = collected_graph(received, TRUTH.edge_index.numpy())
    return learn(name, received, graph, settings=settings, repetition=Repetition(controls=False))


def test_each_answer_is_priced_as_a_changed_value(tmp_path: Path) -> None:
    first, two = two_epochs(tmp_path, features("4"), label("3"))
    before, after = (learned("lpgnn", out, epochs=2) for out in (first, two))
    assert before.privacy.guarantee.epsilon == 7.0 and after.privacy.guarantee.epsilon == 14.0
    assert after.privacy.ledger.total("features") == (8.0, 0.0) and after.privacy.ledger.total("labels") == (6.0, 0.0)
    codes = [fact.code for fact in after.privacy.guarantee.assumes]
    assert {"reports-counted", "permanent-reports", "changes-open"} <= set(codes) and "reports-once" not in codes
    assert not any("twice" in note for note in before.notes)
    (repeated,) = (note for note in after.notes if "label: 60 once, 60 twice" in note)
    # What is booked of the first export stands in the ledger of the second as it was.
    assert starts_with(after.privacy.ledger, before.privacy.ledger)
    # The same people answered everything twice: there is no one who paid less for one field.
    assert Received(read_export(two)).most_of_one() == 14 and "no single person" not in repeated


def test_people_who_join_later_cost_the_others_nothing(tmp_path: Path) -> None:
    first = everybody(tmp_path, label("3"))
    answer(first, range(80), ("label",))
    second = first.after(b"second epoch 16b")
    answer(second, range(80, PEOPLE), ("label",))
    result = learned("label-propagation", second.exported(tmp_path / "out"))
    assert result.privacy.guarantee.epsilon == 3.0 and len(result.notes) == 2
    assert "reports-once" in [fact.code for fact in result.privacy.guarantee.assumes]


@pytest.mark.parametrize("epochs", [3, 5])
def test_no_more_is_paid_than_there_are_values(tmp_path: Path, epochs: int) -> None:
    running = begun(url_of(tmp_path), label("3"), links(PEOPLE, "4"), people=PEOPLE, enrolled=6, ids=ids_hash(IDS))
    for epoch in range(epochs):
        answer(running, range(6), ("label", "links"), changed=epoch % 2 == 1)
        if epoch < epochs - 1:
            running = running.after(bytes([epoch]) * 16)
    # Three classes, and a link that is there or not.
    assert Received(read_export(running.exported(tmp_path / "out"))).paid().times == {"labels": 3, "links": 2}


def test_lists_answered_again_cost_a_relationship_twice(tmp_path: Path) -> None:
    _, two = two_epochs(tmp_path, label("3"), links(PEOPLE, "4"), again=("links",))
    result = learned("link-beliefs", two, rounds=2)
    assert result.privacy.ledger.total("links") == (8.0, 0.0) and result.privacy.epsilon_relationship == 8.0
    assert "changes-open" in [fact.code for fact in result.privacy.guarantee.assumes]
    # Relationships have no price of one person.
    assert Received(read_export(two)).most_of_one() is None


def test_training_on_an_updated_export_books_what_is_new(tmp_path: Path) -> None:
    exports = [Received(read_export(out)) for out in two_epochs(tmp_path, label("3"))]
    method, topology = build_method("label-propagation", {"epsilon_y": 3.0}, 3), topology_of(graph())
    split = Split(*(torch.full((PEOPLE,), member) for member in (True, False, False)))
    spent = []
    for received in (exports[0], exports[0], exports[1], exports[1]):
        method.fit_reports(received.reports(split), topology)
        spent.append(len(method.ledger.spends))
    assert spent == [1, 1, 2, 2] and method.guarantee.epsilon == 6.0
    # People of another task are others as far as anybody knows, and their price was not declared.
    other = replace(exports[0].reports(split), paid=TaskPayment("another task", {"labels": 1}))
    with pytest.raises(BudgetError, match="not the collection that was paid for"):
        method.fit_reports(other, topology)


# ---- the joint law of two epochs, in fractions ----

Law = Sequence[Sequence[Fraction]]


def joint(once: Law, before: int, after: int) -> Mapping[tuple[int, int], Fraction]:
    """The law of a device's two answers: an equal value has one answer, two values have noise of their own."""
    answers = range(len(once[0]))
    if before == after:
        return {(value, value): once[before][value] for value in answers}
    return {(earlier, two): once[before][earlier] * once[after][two] for earlier in answers for two in answers}


def losses(once: Law) -> Iterator[tuple[tuple[int, int], float]]:
    """Each outcome with its loss, over all pairs of histories that change alike: that they do is not hidden."""
    histories = list(product(range(len(once)), repeat=2))
    for history, two in product(histories, repeat=2):
        if (history[0] == history[1]) == (two[0] == two[1]):
            first, second = joint(once, *history), joint(once, *two)
            yield from ((value, log(first[value] / second[value])) for value in first)


def label_law(field: Label) -> Law:
    """By class, then by answer."""
    classes = range(len(field.classes))
    share = WORD - (len(classes) - 1) * field.share
    return [[Fraction(share if true == reported else field.share, WORD) for reported in classes] for true in classes]


def bit_law(field: Features) -> Law:
    """Of two values at either end of the range, then by answer; one coordinate is asked, so epsilon is all its own."""
    thresholds = [int(threshold) for threshold in field.thresholds(np.array([0, 1, STEPS - 1, STEPS], np.uint64))]
    return [[Fraction(WORD - threshold, WORD), Fraction(threshold, WORD)] for threshold in thresholds]


def test_the_printed_price_holds_and_no_smaller_one_would(tmp_path: Path) -> None:
    """By enumeration, with the thresholds that devices drew with: no sample, so no chance of a false alarm."""
    _, two = two_epochs(tmp_path, features("2"), label("3"))
    features_of_task, label_field = Received(read_export(two)).collected.task.fields
    assert isinstance(features_of_task, Features) and features_of_task.sampled == 1 and isinstance(label_field, Label)
    ledger = learned("lpgnn", two, epochs=2).privacy.ledger
    for law, unit, once in ((bit_law(features_of_task), "features", 2.0), (label_law(label_field), "labels", 3.0)):
        printed, worst = ledger.total(unit)[0], max(loss for _, loss in losses(law))
        assert 0.999 * printed < worst <= printed == 2 * once


def test_no_single_person_has_paid_more_than_is_printed(tmp_path: Path) -> None:
    """Where nobody is asked most often for everything: the worst person of all, by enumeration, meets the price."""
    first = everybody(tmp_path, features("2"), label("3"))
    answer(first, range(PEOPLE), ("features", "label"))
    second = first.after(b"second epoch 16b")
    answer(second, range(10), ("features",), changed=True)
    answer(second, range(10, 30), ("label",), changed=True)
    received = Received(read_export(second.exported(tmp_path / "out")))
    features_of_task, label_field = received.collected.task.fields
    assert isinstance(features_of_task, Features) and isinstance(label_field, Label)
    # By field, then by how often somebody answered it: what that can lose at most.
    worst = [
        (0.0, max(log(row[out] / two[out]) for row, two in product(law, law) for out in range(len(row))), twice)
        for law in (bit_law(features_of_task), label_law(label_field))
        for twice in [max(loss for _, loss in losses(law))]
    ]
    each = {tuple(row) for row in received.collected.times.tolist()}
    assert each == {(1, 1), (2, 1), (1, 2)}
    most, printed = max(sum(worst[place][often] for place, often in enumerate(row)) for row in each), 8
    assert received.most_of_one() == printed and 0.999 * printed < most <= printed
    result = learned("lpgnn", tmp_path / "out", epochs=1)
    assert result.privacy.guarantee.epsilon == 10.0
    assert "epsilon 10: no single person has paid more than 8" in result.notes[2]
