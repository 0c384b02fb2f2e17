"""From an export to the reports that methods read: bits at the coordinates that were assigned, and nothing invented."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from graphveil.collection.export.export import read_export
from graphveil.collection.export.reports import Received
from graphveil.device.reporting import Enrolled
from graphveil.device.reports.features import STEPS, Features
from graphveil.errors import DataError, InputError
from graphveil.graphs import Split
from graphveil.mechanisms import MultiBit, MultiBitReports
from graphveil.methods.base.people.released import Answers
from tests.collection.collections import IDS, PEOPLE, Collection, begun, key, secret, token, url_of
from tests.on_device.signing import features, label, links, opening_of

VALUES = {"features": [-1.0, 0.0, 1.0, 2.0, 3.0, 0.5], "label": "glad"}


def received(folder: Path, *fields: dict[str, Any], silent: Any = None) -> tuple[Collection, Received]:
    """A collection in which everybody answered all but what `silent` says of them."""
    running = begun(url_of(folder), *fields, least=3)
    kinds = {field.kind for field in running.task.fields}
    left_out = silent or {}
    for number in range(PEOPLE):
        answered = kinds - {*left_out.get(number, ())}
        values = {name: value for name, value in VALUES.items() if name in answered}
        if values:
            assert running.intake.take([running.report(number, values)]) == ["accepted"]
    return running, Received(read_export(running.exported(folder / "out")))


def test_what_devices_drew_is_what_methods_read(tmp_path: Path) -> None:
    running, collection = received(tmp_path, features(), label(), silent={3: ("features",), 5: ("features", "label")})
    sent = collection.features()
    assert isinstance(sent, Answers)
    assert sent.who.tolist() == [number not in (3, 5) for number in range(PEOPLE)]
    field = running.task.fields[0]
    assert isinstance(field, Features)
    for row, number in enumerate(sent.who.nonzero().flatten().tolist()):
        person = running.task.person(number, running.opening.nonce(1))
        assert sent.reports.indices[row].tolist() == field.coordinates(person)
        bits = np.unpackbits(np.frombuffer(running.report(number, VALUES).body, np.uint8))[1 : 1 + field.width]
        assert sent.reports.bits[row].tolist() == bits.tolist()
    assert {kind: int(mask.sum()) for kind, mask in collection.answered().items()} == {"features": 10, "label": 11}


def test_who_joined_later_was_asked_by_the_nonce_of_their_own_epoch(tmp_path: Path) -> None:
    """Each person's coordinates are those that their device answered, whichever epoch they joined in."""
    first = begun(url_of(tmp_path), features(dimension=100), label(), least=3, enrolled=6)
    task, store = first.task, first.store
    assert first.intake.take([first.report(n, {"features": [0.5] * 100}) for n in range(3)]) == ["accepted"] * 3
    store.close_epoch()
    late = [store.enrol(task, token(number), key(number)) for number in range(6, PEOPLE)]
    assert {who.joined for who in late if who is not None} == {2}
    devices = [*first.devices, *(Enrolled(number, 2, secret(number), key(number)) for number in range(6, PEOPLE))]
    nonces = (bytes(range(16)), b"n" * 16)
    store.open_epoch(nonces[1])
    second = Collection(task, store, tuple(devices), opening_of(task, *nonces))
    codes = second.intake.take([second.report(n, {"features": [0.5] * 100}) for n in range(3, PEOPLE)])
    assert codes == ["accepted"] * (PEOPLE - 3)
    reports, field = Received(read_export(second.exported(tmp_path / "out"))).features(), task.fields[0]
    assert isinstance(reports, MultiBitReports) and isinstance(field, Features)
    for number in range(PEOPLE):
        coordinates = field.coordinates(task.person(number, nonces[number >= 6]))
        assert reports.indices[number].tolist() == coordinates


def test_labels_of_those_who_sent_none_are_not_there(tmp_path: Path) -> None:
    _, collection = received(tmp_path, features(), label(), silent={3: ("label",), 5: ("features", "label")})
    labels = collection.labels()
    assert np.flatnonzero(labels < 0).tolist() == [3, 5]
    everyone, nobody = torch.ones(PEOPLE, dtype=torch.bool), torch.zeros(PEOPLE, dtype=torch.bool)
    reports = collection.reports(Split(everyone, nobody, nobody))
    assert reports.labelled.tolist() == (labels >= 0).tolist()
    assert reports.labels.tolist() == labels.tolist() and reports.ids.tolist() == IDS
    assert collection.reports(Split(nobody, everyone, nobody)).train.sum() == 0


def test_the_budgets_are_the_decimals_of_the_task(tmp_path: Path) -> None:
    _, collection = received(tmp_path, features("4.1"), label("0.3"))
    # Where everybody answered, reports are plain ones.
    assert isinstance(collection.features(), MultiBitReports) and (collection.labels() >= 0).all()
    privacy = collection.privacy()
    assert 4.1 - 1e-9 < privacy.epsilon_x <= 4.1 and 0.3 - 1e-9 < privacy.epsilon_y <= 0.3
    assert (collection.schema.low, collection.schema.high, collection.schema.dimension) == (-1.0, 3.0, 6)
    assert collection.schema.classes == collection.collected.task.fields[1].classes


def test_a_law_that_is_not_ours_is_refused(tmp_path: Path) -> None:
    """A smaller threshold than the epsilon allows is lawful for a device, and another law for every estimate."""
    lawful = features()
    weaker = {**lawful, "threshold": str(int(lawful["threshold"]) + 1)}
    _, collection = received(tmp_path, weaker, label())
    with pytest.raises(DataError, match="devices drew with"):
        collection.privacy()


@pytest.mark.parametrize("sampled", [2, 3, 6])
def test_estimates_are_unbiased_for_as_many_coordinates_as_the_task_asks(tmp_path: Path, sampled: int) -> None:
    """Exactly, by the threshold of each value; an estimate of another scale is off."""
    _, collection = received(tmp_path, features("5", sampled=sampled), label())
    privacy = collection.privacy()
    mechanism: Any = privacy.features(collection.schema)
    # Two are what our mechanism takes by itself, and are not said.
    assert privacy.sampled == (None if sampled == 2 else sampled) and mechanism.coordinates == sampled
    task, features_field = collection.collected.task, collection.collected.task.fields[0]
    assert isinstance(features_field, Features)
    coordinates = features_field.coordinates(task.person(0, bytes(16)))
    bits = torch.tensor([[1] * sampled, [0] * sampled], dtype=torch.uint8)
    reports = MultiBitReports(torch.tensor([coordinates, coordinates], dtype=torch.int32), bits)
    high, zero = np.asarray(mechanism.centred(reports).todense())[:, coordinates]
    values = np.array(VALUES["features"])[coordinates]
    chance = features_field.thresholds(np.rint((values + 1) / 4 * STEPS).astype(np.uint64)).astype(float) / 2**64
    # Each coordinate is asked of so many of six people.
    mean = (chance * high + (1 - chance) * zero) * sampled / 6
    assert mean + mechanism.midpoint == pytest.approx(values, abs=1e-6)
    other = MultiBit(epsilon=5.0, dimension=6, low=-1.0, high=3.0, sampled=1 if sampled == 2 else None)
    assert np.abs(mean / mechanism.scale * other.scale + mechanism.midpoint - values).max() > 0.01


def test_without_a_label_nothing_is_learned(tmp_path: Path) -> None:
    _, collection = received(tmp_path, features(), links(PEOPLE))
    with pytest.raises(InputError, match="asks for no label"):
        _ = collection.schema
