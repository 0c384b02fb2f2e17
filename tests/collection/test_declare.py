"""A task holds the whole numbers that our mechanisms draw with, and every device accepts what was declared."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest

from graphveil.collection.task.declare import (
    Prices,
    Words,
    at_most,
    new_key,
    read_key,
    signed_opening,
    signed_task,
    task_facts,
)
from graphveil.device import DeviceError, Opening, Task
from graphveil.device.canonical import canonical
from graphveil.device.reports.features import Features
from graphveil.errors import InputError
from graphveil.graphs import GraphSchema
from graphveil.mechanisms import MultiBit

IDS = tuple(f"person {number}" for number in range(30))
NAMES = ("runs", "swims", "reads")
WORDS = Words(name="clubs", organiser="the city", purpose="to see which clubs are missed", contact="clubs@city.example")


def declared(prices: Prices, low: float = 0.0, high: float = 40.0) -> dict[str, object]:
    schema = GraphSchema("clubs", len(NAMES), low, high, ("left", "right"), private=("features", "labels"))
    return task_facts(schema, NAMES, IDS, prices, WORDS, opens=1_000, closes=2_000, least=5)


@pytest.mark.parametrize(
    ("epsilon", "mode"),
    [("0.1", "lower"), ("0.3", "both"), ("0.7", "directed"), ("2.2", "lower"), ("44", "both"), ("200", "directed")],
)
def test_whatever_is_declared_is_kept(epsilon: str, mode: str, tmp_path: Path) -> None:
    """Also where the decimal is no binary number: the mechanism's epsilon lies at or below it."""
    prices = Prices(features=epsilon, label=epsilon, links=epsilon, degree=epsilon, mode=mode)
    task = signed_task(declared(prices), new_key(tmp_path / "key"))
    assert all(paragraph.startswith(("This protects", "Against")) for paragraph in task.guarantee)
    equal = "answers an equal value with an equal report"
    assert all(equal in paragraph and "NOT hidden" in paragraph for paragraph in task.guarantee)
    assert task.epsilon == 4 * Fraction(epsilon) and task.people == len(IDS)
    assert Fraction(at_most(epsilon)) <= min(Fraction(epsilon), 44)
    field = task.fields[0]
    assert isinstance(field, Features)
    law = MultiBit(epsilon=at_most(epsilon), dimension=3, low=0.0, high=40.0)
    assert (field.sampled, field.threshold) == (law.coordinates, law.law.low)


def test_what_no_task_can_be_is_refused() -> None:
    with pytest.raises(InputError, match="asks for nothing"):
        declared(Prices())
    with pytest.raises(DeviceError, match="decimal above 0"):
        declared(Prices(label="1e3"))
    with pytest.raises(DeviceError, match="decimal above 0"):
        at_most("0")


@pytest.mark.parametrize("prices", [{"links": "1"}, {"degree": "1"}])
def test_links_of_more_people_than_a_device_has_room_for_are_refused(prices: dict[str, str]) -> None:
    schema = GraphSchema("town", 1, 0.0, 1.0, ("a", "b"), False, ("edges",), "x")
    ids = list(map(str, range(2**20 + 1)))
    with pytest.raises(InputError, match=r"links of 1,048,577 people; allowed: 1,048,576 at most"):
        task_facts(schema, [], ids, Prices(**prices), WORDS, opens=0, closes=9, least=1)


def test_a_key_is_made_once_and_kept_to_oneself(tmp_path: Path) -> None:
    path = tmp_path / "key"
    key = new_key(path)
    assert path.stat().st_mode & 0o077 == 0
    assert read_key(path).private_bytes_raw() == key.private_bytes_raw()
    with pytest.raises(InputError, match="is there already"):
        new_key(path)
    for wrong in (tmp_path / "absent", tmp_path):
        with pytest.raises(InputError, match="is no file; where the key is kept elsewhere"):
            read_key(wrong)


def test_openings_are_signed_with_the_key_of_the_task(tmp_path: Path) -> None:
    key, other = new_key(tmp_path / "key"), new_key(tmp_path / "other")
    task = signed_task(declared(Prices(label="1")), key)
    assert Task.of(task.data) == task and canonical(dict(declared(Prices(label="1"))))
    nonces = (bytes(16), bytes(range(16)))
    assert Opening.of(signed_opening(task, nonces, key), task).nonces == nonces
    with pytest.raises(DeviceError, match="bad-signature"):
        Opening.of(signed_opening(task, nonces, other), task)
