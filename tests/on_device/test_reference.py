"""Two programs that were written from the standard, one of them bit by bit, say the same bytes."""

from __future__ import annotations

import random
from fractions import Fraction
from typing import Any

import mpmath
import pytest

from graphveil.device import Task, answer
from graphveil.device.assigned import assigned
from graphveil.device.canonical import canonical, parse
from graphveil.device.exact import keeps
from graphveil.device.noise import words
from graphveil.device.task import TASK
from graphveil.device.wire import report
from tests.on_device import reference
from tests.on_device.signing import MOODS, degree, facts, features, label, links, signed

SECRET, KEY = bytes(range(32)), bytes(range(100, 132))


def both(told: dict[str, Any], number: int, values: dict[str, Any], nonce: bytes = bytes(16)) -> bytes:
    """The body that both send, after everything that they make of it was compared."""
    task = Task.of(signed("task", TASK, told))
    assert task.hash == reference.task_hash(told, task.key)
    made = answer(task, task.person(number, nonce), values, SECRET)
    slow = reference.Device(told, number, nonce, SECRET, task.key)
    body, names = slow.body(values)
    assert (made.body.hex(), {place: list(own) for place, own in made.names.items()}) == (body.hex(), names)
    assert report(task.hash, 7, made.body, SECRET, KEY).to_bytes() == slow.wire(7, body, KEY)
    return body


@pytest.mark.parametrize("sampled", [1, 2, 5, 6])
@pytest.mark.parametrize(("low", "high"), [("0", "1"), ("-1", "3"), ("-0.1", "0.2"), ("1e-300", "1e300")])
def test_vectors_of_numbers(sampled: int, low: str, high: str) -> None:
    """Both ends, the middle, and halves of a step, where rounding to even shows."""
    field = {**features("0.3", 6, low, high), "sampled": sampled, "threshold": str(2**63 - 2**57)}
    start, stop = float(low), float(high)
    halves = [start + (stop - start) * ((k + 0.5) / 2**32) for k in (0, 1, 2**31, 2**32 - 1)]
    for number, inside in enumerate(([start, stop, (start + stop) / 2], halves)):
        values = [*inside, *[start] * (6 - len(inside))]
        both(facts(field), number, {"features": values})
        both(facts(field), number, {"features": dict(zip(field["names"], values, strict=True))})


@pytest.mark.parametrize("epsilon", ["0.01", "1", "30"])
def test_labels(epsilon: str) -> None:
    for mood in MOODS:
        assert both(facts(label(epsilon)), 0, {"label": mood}) == both(facts(label(epsilon)), 5, {"label": mood})


@pytest.mark.parametrize("mode", ["lower", "both", "directed"])
@pytest.mark.parametrize("people", [2, 8, 41])
def test_lists_and_degrees(mode: str, people: int) -> None:
    told = facts(links(people, "1", mode), degree(people, "0.3", mode), people=people, least=1)
    source = random.Random(people)
    for number in {0, people // 2, people - 1}:
        others = [other for other in range(people) if other != number]
        for named in ([], others, source.sample(others, len(others) // 2)):
            both(told, number, {"links": named})


def test_everything_at_once_and_nothing() -> None:
    told = facts(label(), features(), degree(12), links(12))
    everything = {"label": "sad", "features": [0.25] * 6, "links": [11, 4]}
    assert len(both(told, 3, everything)) == len(both(told, 3, {}))
    assert not any(both(told, 3, {}))
    for kind in everything:
        both(told, 3, {kind: everything[kind]}, bytes(range(16)))


@pytest.mark.parametrize(("dimension", "size"), [(1, 1), (2, 1), (7, 6), (1433, 3), (1433, 1432), (1433, 1433)])
def test_assigned_coordinates(dimension: int, size: int) -> None:
    for person in (0, 1, 2**40):
        told = bytes(range(32)), bytes(range(16)), person, dimension, size
        assert assigned(*told) == reference.assigned(*told)


def test_words_are_the_keystream_of_a_counter() -> None:
    values, parts = [0, 1, 2**32, 2**64 - 1, 5], [0, 1, 2**64 - 1, 2**32, 3]
    pairs = zip(values, parts, strict=True)
    assert words(KEY, values, parts).tolist() == [reference.word(KEY, *pair) for pair in pairs]


def test_every_value_has_one_spelling() -> None:
    """Escapes, characters of all lengths in UTF-8, ends of the whole numbers; what is spelled can be read again."""
    texts = ["", '"\\/', "\b\f\n\r\t\x00\x1f\x7f", "ä€😀\u2028\ufeff", "0" * 100]
    values: list[Any] = [*texts, 0, -1, 2**53 - 1, 1 - 2**53, True, False, [], {}, [[], [{}]]]
    values.append({"b": 1, "a": {"B": [1], "A": texts, "10": 1, "9": 2}})
    for value in values:
        assert canonical(value) == reference.spelled(value)
        assert parse(canonical(value)) == value


@pytest.mark.parametrize("value", [None, 0.5, 2**53, -(2**53), {"ä": 1}, {1: 2}, {"a": [None]}, "\ud800", b"a", {1}])
def test_values_without_a_spelling_are_refused(value: object) -> None:
    with pytest.raises(Exception, match=r"^not-canonical: "):
        canonical(value)


def test_an_epsilon_is_kept_exactly_where_it_is() -> None:
    """Against e^epsilon to 400 digits: a ratio a hair below passes, one a hair above is refused."""
    source = random.Random(5)
    with mpmath.workdps(400):
        for _ in range(200):
            epsilon = Fraction(source.randrange(1, 44 * 10**9), 10**9)
            rare = source.randrange(1, 2**60)
            most = int(mpmath.floor(mpmath.exp(mpmath.mpf(epsilon.numerator) / epsilon.denominator) * rare))
            assert keeps(most, rare, epsilon)
            assert not keeps(most + 1, rare, epsilon)
    assert keeps(1, 1, Fraction(0)) and not keeps(0, 0, Fraction(1)) and not keeps(2, 1, Fraction(0))
