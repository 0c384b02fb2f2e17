"""What no device draws is found, and nobody honest is suspected.

All checks together are wrong about an honest collection once in a million, by their own account; the secrets are fixed,
so a test that passes once passes always.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from graphveil.collection.export.bodies import Bodies
from graphveil.collection.export.export import Collected
from graphveil.collection.export.suspects import inspect, without
from graphveil.collection.store.frozen import SHORT, Last
from graphveil.device import Task, answer
from graphveil.errors import InputError
from tests.on_device.signing import MOODS, degree, features, label, links, task_of

NONCE = bytes(range(16))
Values = Callable[[int], Mapping[str, object]]


def drawn(people: int, values: Values, *fields: dict[str, Any], seed: int = 0) -> Collected:
    """What was collected of people who all answered."""
    task = task_of(*fields, people=people, least=1)
    kinds, bodies = {"links" if field.kind == "degree" else field.kind for field in task.fields}, []
    for number in range(people):
        answers = {kind: value for kind, value in values(number).items() if kind in kinds}
        secret = b"drawn" + seed.to_bytes(13, "big") + number.to_bytes(14, "big")
        bodies.append(answer(task, task.person(number, NONCE), answers, secret).body)
    return received(task, bodies)


def received(task: Task, bodies: list[bytes]) -> Collected:
    numbers = np.arange(len(bodies))
    times = np.ones((len(bodies), len(task.fields)), np.int32)
    ids = tuple(f"person {number}" for number in range(task.people))
    sent, once = Bodies.of(task, bodies, numbers), np.ones(len(bodies), np.int64)
    last = Last(numbers, once, once, np.zeros((len(bodies), SHORT), np.uint8), np.packbits(sent.bits, axis=1))
    return Collected(task, ids, last, sent, (NONCE,), times, {})


def forged(collected: Collected, who: np.ndarray, place: int, bits: np.ndarray) -> Collected:
    """A collection in which some send other bits for a field."""
    changed_bits = collected.bodies.bits.copy()
    start = 1 + sum(1 + field.width for field in collected.task.fields[:place])
    changed_bits[who, start : start + bits.shape[1]] = bits
    changed = replace(collected.bodies, bits=changed_bits)
    # What a device cannot send is refused before it is stored: every forgery here would be stored.
    assert changed.possible().all()
    return replace(collected, bodies=changed)


def under(collected: Collected, *fields: dict[str, Any]) -> Collected:
    """The same bits under a task that states another law."""
    task = task_of(*fields, people=collected.task.people, least=1)
    return replace(collected, task=task, bodies=replace(collected.bodies, task=task))


PEOPLE, WIDE = 200, 300
FORGERS = np.arange(0, PEOPLE, 20)


def everything(number: int) -> Mapping[str, object]:
    near = [(number + step) % PEOPLE for step in (1, 2, 3, PEOPLE - 1, PEOPLE - 2, PEOPLE - 3)]
    return {"features": [-1.0, 3.0] * (WIDE // 2), "label": MOODS[number % 3], "links": near}


def fields(mode: str = "both", *, bit: str = "4") -> tuple[dict[str, Any], ...]:
    wide = features("600", WIDE)
    return wide, label(), links(PEOPLE, bit, mode), degree(PEOPLE, "0.5", mode)


def listing(share: float, seed: int) -> np.ndarray:
    """Lists of the forgers, which name this share of all people at random."""
    lists = (np.random.default_rng(seed).random((len(FORGERS), PEOPLE)) < share).astype(np.uint8)
    lists[np.arange(len(FORGERS)), FORGERS] = 0
    return lists


def suspects(collected: Collected, what: str) -> list[int]:
    """The people who fail a check."""
    return next(check.people.tolist() for check in inspect(collected).checks if check.what == what)


@pytest.mark.slow  # processes, or many people
@pytest.mark.parametrize("mode", ["lower", "both", "directed"])
@pytest.mark.parametrize("seed", range(2))
def test_honest_people_are_never_suspected(mode: str, seed: int) -> None:
    findings = inspect(drawn(PEOPLE, everything, *fields(mode), seed=seed), most_links=6)
    assert findings.suspects.tolist() == [] and findings.amiss == ()
    assert findings.reports == PEOPLE and "suspects 0 of 200 reports" in findings.sentence


@pytest.mark.parametrize("end", [-1.0, 3.0])
def test_values_at_an_end_of_the_range_are_lawful(end: float) -> None:
    """All people of one class, with all features at one end: the law is met with equality, and still not broken."""
    for seed in range(2):
        honest = drawn(400, lambda _: {"features": [end] * 6, "label": "sad"}, features("1"), label("3"), seed=seed)
        assert not len(inspect(honest).suspects) and not inspect(honest).amiss


@pytest.mark.parametrize("bit", [0, 1])
def test_a_report_of_ones_alone_is_no_devices(bit: int) -> None:
    honest = drawn(PEOPLE, everything, *fields())
    width = honest.task.fields[0].width
    bent = forged(honest, FORGERS, 0, np.full((len(FORGERS), width), bit, np.uint8))
    assert suspects(bent, "ones of a report") == FORGERS.tolist()
    assert inspect(bent).suspects.tolist() == FORGERS.tolist()


def test_reports_that_are_each_lawful_can_be_too_many_of_one_kind() -> None:
    """A single bit says nothing alone; a thousand of them that are all 1 do, and those of one coordinate do."""
    honest = drawn(1200, lambda _: {"features": [0.0] * 6}, features("1"))
    assert not inspect(honest).amiss
    skewed = forged(honest, np.arange(1200), 0, np.ones((1200, 1), np.uint8))
    assert inspect(skewed).amiss == ("features (ones of all reports)", "features (ones of each coordinate)")
    columns = honest.columns(honest.task.fields[0], np.arange(1200)).ravel()
    aimed = np.flatnonzero(columns == 2)
    assert inspect(forged(honest, aimed, 0, np.ones((len(aimed), 1), np.uint8))).amiss == (
        "features (ones of each coordinate)",
    )


def test_a_class_that_is_named_less_often_than_noise_names_it() -> None:
    honest = drawn(400, lambda number: {"label": MOODS[number % 2]}, label())
    bits = np.tile(np.array([[0, 1]], np.uint8), (400, 1))
    assert inspect(forged(honest, np.arange(400), 0, bits)).amiss == ("label (how often a class is named)",)


def test_more_links_than_anybody_has_are_found_where_their_number_is_public() -> None:
    honest = drawn(PEOPLE, everything, links(PEOPLE, "4", "directed"))
    bent = forged(honest, FORGERS, 0, listing(0.4, 3))
    assert inspect(bent).suspects.tolist() == []
    assert inspect(bent, most_links=6).suspects.tolist() == FORGERS.tolist()
    with pytest.raises(InputError, match="most_links is 0"):
        inspect(bent, most_links=0)


def test_ends_that_differ_too_often_are_their_forgers_alone() -> None:
    """Forgers name a third of all people, who differ from them by it: only the forgers are suspected."""
    honest = drawn(PEOPLE, everything, *fields())
    assert suspects(forged(honest, FORGERS, 2, listing(0.35, 5)), "ends that differ") == FORGERS.tolist()


def test_a_degree_beyond_all_people_or_unlike_its_list() -> None:
    honest = drawn(PEOPLE, everything, *fields())
    field = honest.task.fields[3]
    far = np.array([[int(bit) for bit in f"{field.highest - field.lowest:0{field.width}b}"]], np.uint8)
    assert suspects(forged(honest, FORGERS[:1], 3, far), "beyond its ends") == [0]
    within = np.array([[int(bit) for bit in f"{150 - field.lowest:0{field.width}b}"]], np.uint8)
    bent = forged(honest, FORGERS[:1], 3, within)
    assert suspects(bent, "beyond its ends") == [] and suspects(bent, "beside the list") == [0]


def test_copies_of_one_report_are_found_where_chance_makes_none() -> None:
    honest = drawn(PEOPLE, everything, *fields("directed"))
    row = honest.bodies.bits[7].copy()
    bodies = honest.bodies.bits.copy()
    start = sum(1 + field.width for field in honest.task.fields[:2]) + 1
    # Nobody names themselves: copies agree on everybody else.
    row[start + FORGERS] = 0
    bodies[FORGERS] = row
    copied = replace(honest, bodies=replace(honest.bodies, bits=bodies))
    # Nor can anybody tell whose the first one was.
    assert inspect(copied).suspects.tolist() == sorted([7, *FORGERS.tolist()])
    # A class alone is the same of a third of all people.
    assert not len(inspect(drawn(PEOPLE, everything, label())).suspects)


def test_a_law_of_another_strength_is_told_from_the_right_one() -> None:
    """Devices that draw with half of the threshold lose more than is stated: they pass for their own law alone."""
    stated = features("1")
    weaker = {**stated, "epsilon": "2", "threshold": str(int(stated["threshold"]) // 2)}
    honest = drawn(2000, lambda _: {"features": [3.0] * 6}, stated)
    weakened = drawn(2000, lambda _: {"features": [3.0] * 6}, weaker)
    assert not inspect(honest).amiss and not inspect(weakened).amiss
    assert "features (ones of all reports)" in inspect(under(weakened, stated)).amiss


def test_suspects_are_left_out_like_people_who_never_answered() -> None:
    honest = drawn(PEOPLE, everything, *fields())
    rest = without(honest, FORGERS)
    for place in range(4):
        assert np.flatnonzero(~rest.bodies.answered(place)).tolist() == FORGERS.tolist()
    assert rest.bodies.possible().all() and np.array_equal(rest.times, honest.times)
    assert not len(inspect(rest).suspects)
    assert without(honest, FORGERS[:0]) is honest
