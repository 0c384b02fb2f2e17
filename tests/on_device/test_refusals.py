"""Every fact of a task that is not as the standard says is refused by its code, whoever signed it."""

from __future__ import annotations

from typing import Any

import pytest

from graphveil.device import DeviceError, answer
from tests.on_device.signing import degree, features, label, links, opening_of, task_of

FIELDS = {"features": features(), "label": label(), "links": links(12), "degree": degree(12)}


def refused(code: str) -> pytest.RaisesExc[DeviceError]:
    return pytest.raises(DeviceError, match=f"^{code}: ")


#: What the vectors of `refused` do not have.
FACTS: list[dict[str, Any]] = [
    {"purpose": 5},
    {"contact": ["mail"]},
    {"nonce": ""},
    {"opens": 2_000_000_000},
    {"closes": 1 << 41},
    {"least": 0},
    {"people": "012"},
    {"guarantee": "one"},
    {"fields": {}},
    {"fields": ["label"]},
    {"fields": [{"kind": "label"}]},
]


@pytest.mark.parametrize("changes", FACTS, ids=str)
def test_facts_of_a_task(changes: dict[str, Any]) -> None:
    with refused("bad-task"):
        task_of(label(), **changes)


PARTS: list[tuple[str, dict[str, Any]]] = [
    ("features", {"low": "-1.0e400"}),
    ("features", {"low": "-1e308", "high": "1e308"}),
    ("features", {"high": "nan"}),
    ("features", {"epsilon": "\u0664"}),
    ("features", {"sampled": 0}),
    ("features", {"sampled": 7}),
    ("features", {"threshold": "0"}),
    ("features", {"threshold": str(2**63 + 1)}),
    ("features", {"threshold": "1.5"}),
    ("label", {"classes": "one"}),
    ("label", {"share": True}),
    ("links", {"mode": 1}),
    ("links", {"threshold": "-5"}),
    ("degree", {"digits": "1"}),
    ("degree", {"digits": ["0"]}),
    ("degree", {"overflow": str(2**256 + 1)}),
]


@pytest.mark.parametrize(("kind", "changes"), PARTS, ids=str)
def test_facts_of_a_field(kind: str, changes: dict[str, Any]) -> None:
    task_of(FIELDS[kind])
    with refused("bad-task"):
        task_of({**FIELDS[kind], **changes})
    left_out = {name: value for name, value in FIELDS[kind].items() if name not in changes}
    with refused("bad-task"):
        task_of({**left_out, "extra": "fact"})


def test_an_opening_has_no_nonce_of_a_round_to_come() -> None:
    with refused("bad-opening"):
        opening_of(task_of(label())).nonce(2)


def test_a_value_that_is_not_asked_for_is_refused_and_no_number_is_too_large_to_be() -> None:
    task = task_of(features())
    person = task.person(0, bytes(16))
    for values in ({"links": [1]}, {"label": "sad"}, {"features": [10**400] + [0] * 5}, {"features": [2**63] * 6}):
        with refused("bad-value"):
            answer(task, person, values, bytes(32))
    counted = task_of(degree(12))
    with refused("bad-value"):
        answer(counted, counted.person(0, bytes(16)), {"degree": 3}, bytes(32))
    assert answer(counted, counted.person(0, bytes(16)), {"links": [3]}, bytes(32)).names
    for number, nonce in ((12, bytes(16)), (-1, bytes(16)), (0, bytes(15))):
        with refused("bad-task"):
            task.person(number, nonce)
