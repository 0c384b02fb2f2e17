"""Which epoch is kept, as tables of epochs."""

from __future__ import annotations

from graphveil.training import Epoch, selection_rule
from graphveil.training.selection import SMOOTHING

# epoch: (validation loss, train accuracy, validation accuracy) and whether it is better than the best so far.
# A perfect model meets 0.5 of the noisy labels.
PUBLISHED = [
    (2.0, 0.10, 0.10, True),  # the first is accepted whatever it is
    (1.9, 0.20, 0.20, True),  # all three better
    (1.9, 0.30, 0.30, False),  # loss not lower
    (1.8, 0.30, 0.20, False),  # validation accuracy not higher
    (1.8, 0.20, 0.30, False),  # training accuracy not higher
    (1.8, 0.30, 0.51, False),  # validation accuracy above the ideal
    (1.8, 0.53, 0.30, False),  # training accuracy above 1.05 times the ideal
    (1.8, 0.525, 0.50, True),  # both limits may be met
    (1.0, 0.525, 0.50, False),  # and then nothing can be better
]


def epochs(rows: list[tuple[float, float, float]]) -> list[Epoch]:
    return [Epoch(number, 1.0, loss, train, val, 0.0) for number, (loss, train, val) in enumerate(rows, start=1)]


def accepted(name: str, rows: list[tuple[float, float, float]], ideal: float = 0.5) -> list[bool]:
    rule = selection_rule(name, ideal=ideal)
    return [rule(epoch) for epoch in epochs(rows)]


def losses(*values: float) -> list[tuple[float, float, float]]:
    return [(value, 0.0, 0.0) for value in values]


def test_the_published_chain_row_by_row() -> None:
    assert accepted("published", [row[:3] for row in PUBLISHED]) == [row[3] for row in PUBLISHED]


def test_the_published_chain_can_stick_at_the_first_epoch_and_robust_does_not() -> None:
    """A first epoch above the ideal blocks every later one (known fault of the published rule)."""
    rows = [(2.0, 0.6, 0.6), (1.0, 0.4, 0.4), (0.5, 0.5, 0.5)]
    assert accepted("published", rows) == [True, False, False]
    assert accepted("robust", rows) == [True, True, True]


def test_robust_keeps_the_highest_smoothed_estimate() -> None:
    """Whatever the loss says; the estimates are smoothed as an exponential average."""
    estimates = [0.1, 0.4, 0.9, 0.2, 0.5, 0.6, 0.6]
    rule, smooth, best, expected = selection_rule("robust", ideal=0.5), estimates[0], -1.0, []
    for number, value in enumerate(estimates):
        smooth = value if number == 0 else (1 - SMOOTHING) * smooth + SMOOTHING * value
        expected.append(smooth > best)
        best = max(best, smooth)
    rows = [Epoch(n, 1.0, float(n), 0.0, 0.0, value) for n, value in enumerate(estimates, start=1)]
    assert [rule(row) for row in rows] == expected
    assert False in expected[1:] and True in expected[1:]


def test_robust_tells_equal_estimates_apart_by_the_smoothed_loss() -> None:
    values = [2.0, 1.0, 3.0, 0.5, 0.4, 2.9, 0.1]
    smooth, best, expected = values[0], float("inf"), []
    for number, value in enumerate(values):
        smooth = value if number == 0 else (1 - SMOOTHING) * smooth + SMOOTHING * value
        expected.append(smooth < best)
        best = min(best, smooth)
    assert accepted("robust", losses(*values)) == expected
    assert False in expected[1:] and True in expected[1:]


def test_robust_is_not_taken_in_by_one_lucky_epoch_and_last_takes_any() -> None:
    """An outlier hardly moves the average, and the epochs after it are still judged."""
    rows = losses(1.0, 0.9, 0.1, 0.8, 0.7)
    assert accepted("robust", rows) == [True, True, True, True, True]
    assert accepted("robust", losses(1.0, 1.2, 0.99)) == [True, False, False]
    assert accepted("robust", losses(1.0, 1.0, 1.0)) == [True, False, False]
    assert accepted("last", losses(1.0, 2.0, 3.0)) == [True, True, True]
