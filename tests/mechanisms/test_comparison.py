"""All feature mechanisms side by side."""

from __future__ import annotations

from typing import Any

import pytest

from graphveil.errors import InputError
from graphveil.mechanisms import catalogue
from graphveil.mechanisms.comparison import Question, compare, measurements_of, refusals_of
from graphveil.privacy import SecureRandomness, SeededRandomness
from graphveil.runtime.progress import Progress

QUESTION = Question((0.5, 2.0), 16, users=2000, low=-1.0, high=3.0, delta=1e-6)
RESULTS = compare(QUESTION, randomness=SeededRandomness(1))
NAMES = {info.name for info in catalogue() if info.kind == "features"}


def test_measured_errors_are_those_of_the_closed_forms() -> None:
    """The measured error fits the mechanism's own variance on this input within 15%, and stays below the worst one."""
    for place, epsilon in enumerate(QUESTION.epsilons):
        rows = measurements_of(RESULTS)[place * len(NAMES) : (place + 1) * len(NAMES)]
        assert {row.mechanism for row in rows} == NAMES and {row.epsilon for row in rows} == {epsilon}
        assert [row.worst_mse for row in rows] == sorted(row.worst_mse for row in rows), "the best comes first"
    for row in measurements_of(RESULTS):
        info = next(info for info in catalogue() if info.name == row.mechanism)
        extra: dict[str, Any] = {"delta": 1e-6} if row.mechanism == "gaussian" else {}
        mechanism = info.mechanism(epsilon=row.epsilon, dimension=16, low=-1.0, high=3.0, **extra)
        expected = float(mechanism.variance(QUESTION.values()).mean())
        assert row.mse == pytest.approx(expected, rel=0.15)
        assert row.mse <= 1.15 * row.worst_mse
        # The average of 2,000 users has a 2,000th of the variance, up to what 16 coordinates leave to chance.
        assert expected / 2000 / 10 < row.mean_mse < expected / 2000 * 4
        assert row.report_bytes == mechanism.report_bytes
        assert row.users_per_second > 100


def test_a_mechanism_that_refuses_says_why_and_progress_counts_all() -> None:
    results = compare(Question((1e-6,), 200, users=50), randomness=SecureRandomness())
    assert {row.mechanism for row in measurements_of(results)} | {
        row.mechanism for row in refusals_of(results)
    } == NAMES
    assert any(row.mechanism == "laplace" and "epsilon" in row.reason for row in refusals_of(results))
    assert results[-1] in refusals_of(results)
    events: list[Progress] = []
    compare(Question((1.0, 2.0), 2, users=10), randomness=SecureRandomness(), progress=events.append)
    assert [(event.done, event.total) for event in events] == [(k, 2 * len(NAMES)) for k in range(2 * len(NAMES))]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"epsilons": ()}, "epsilons"),
        ({"epsilons": (1.0, 1.0)}, "each once"),
        ({"users": 0}, "users is 0"),
        ({"low": 1.0}, "range"),
        ({"delta": -1.0}, "delta is -1"),
        ({"users": 10**8}, "dense numbers"),
    ],
)
def test_bad_questions_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Question(**({"epsilons": (1.0,), "dimension": 4} | settings))


@pytest.mark.parametrize(
    ("dimension", "text"),
    [
        (1, "1 coordinate in [0, 1], uniform on its lower half"),
        (1433, "1,433 coordinates in [0, 1], each uniform on half"),
    ],
)
def test_the_input_is_said_as_it_is_made(dimension: int, text: str) -> None:
    assert text in Question((1.0,), dimension).input
