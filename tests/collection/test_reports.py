"""From an export to the reports that methods read: bits at the coordinates that were assigned, and nothing invented."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from graphveil.collection.declare import ids_hash
from graphveil.collection.export import export, read_export
from graphveil.collection.reports import Received
from graphveil.device.features import Features
from graphveil.errors import DataError, InputError
from graphveil.graphs import Split
from graphveil.mechanisms import MultiBitReports
from graphveil.methods.base.released import Answers
from tests.collection.collections import PEOPLE, Collection, begun, url_of
from tests.on_device.signing import features, label, links

IDS = [f"person {number}" for number in range(PEOPLE)]
VALUES = {"features": [-1.0, 0.0, 1.0, 2.0, 3.0, 0.5], "label": "glad"}


def received(folder: Path, *fields: dict[str, Any], silent: Any = None) -> tuple[Collection, Received]:
    """A collection in which everybody answered all but what `silent` says of them."""
    running = begun(url_of(folder), *fields, ids=ids_hash(IDS), least=3)
    asked = {one.kind for one in running.task.fields}
    left_out = silent or {}
    for number in range(PEOPLE):
        told = {name: value for name, value in VALUES.items() if name in asked and name not in left_out.get(number, ())}
        if told:
            assert running.intake.take([running.report(number, told)]) == ["accepted"]
    running.store.close_epoch()
    export(running.store, folder / "out")
    running.store.engine.dispose()
    return running, Received(read_export(folder / "out"))


def test_what_devices_drew_is_what_methods_read(tmp_path: Path) -> None:
    running, found = received(tmp_path, features(), label(), silent={3: ("features",), 5: ("features", "label")})
    sent = found.features()
    assert isinstance(sent, Answers)
    assert sent.who.tolist() == [number not in (3, 5) for number in range(PEOPLE)]
    field = running.task.fields[0]
    assert isinstance(field, Features)
    for row, number in enumerate(sent.who.nonzero().flatten().tolist()):
        person = running.task.person(number, running.opening.nonce(1))
        assert sent.reports.indices[row].tolist() == field.asked(person)
        bits = np.unpackbits(np.frombuffer(running.report(number, VALUES).body, np.uint8))[1 : 1 + field.width]
        assert sent.reports.bits[row].tolist() == bits.tolist()
    assert {kind: int(mask.sum()) for kind, mask in found.answered().items()} == {"features": 10, "label": 11}


def test_everybodys_reports_are_plain_ones(tmp_path: Path) -> None:
    _, found = received(tmp_path, features(), label())
    assert isinstance(found.features(), MultiBitReports)
    assert (found.labels() >= 0).all()


def test_labels_of_those_who_sent_none_are_not_there(tmp_path: Path) -> None:
    _, found = received(tmp_path, features(), label(), silent={3: ("label",), 5: ("features", "label")})
    labels = found.labels()
    assert np.flatnonzero(labels < 0).tolist() == [3, 5]
    everyone, nobody = torch.ones(PEOPLE, dtype=torch.bool), torch.zeros(PEOPLE, dtype=torch.bool)
    reports = found.reports(Split(everyone, nobody, nobody))
    assert reports.labelled.tolist() == (labels >= 0).tolist()
    assert reports.labels.tolist() == labels.tolist() and reports.ids.tolist() == IDS
    assert found.reports(Split(nobody, everyone, nobody)).train.sum() == 0


def test_the_budgets_are_the_decimals_of_the_task(tmp_path: Path) -> None:
    _, found = received(tmp_path, features("4.1"), label("0.3"))
    privacy = found.privacy()
    assert 4.1 - 1e-9 < privacy.epsilon_x <= 4.1 and 0.3 - 1e-9 < privacy.epsilon_y <= 0.3
    assert (found.schema.low, found.schema.high, found.schema.dimension) == (-1.0, 3.0, 6)
    assert found.schema.classes == running_classes(found)


def running_classes(found: Received) -> tuple[str, ...]:
    return next(one.classes for one in found.collected.task.fields if one.kind == "label")


def test_a_law_that_is_not_ours_is_refused(tmp_path: Path) -> None:
    """A smaller threshold than the epsilon allows is lawful for a device, and another law for every estimate."""
    told = features()
    weaker = {**told, "threshold": str(int(told["threshold"]) + 1)}
    _, found = received(tmp_path, weaker, label())
    with pytest.raises(DataError, match="devices drew with"):
        found.privacy()


def test_without_a_label_nothing_is_learned(tmp_path: Path) -> None:
    _, found = received(tmp_path, features(), links(PEOPLE))
    with pytest.raises(InputError, match="asks for no label"):
        _ = found.schema
