"""What a task promises of each unit is at least what a reader of whole reports can make of the task's own integers."""

from __future__ import annotations

import re
from collections.abc import Iterator
from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import combinations
from pathlib import Path

import pytest

from graphveil.collection.task.declare import Prices, new_key, signed_task
from graphveil.device import Task
from graphveil.device.reports.degree import Degree
from graphveil.device.reports.exact import DIGIT, WORD
from graphveil.device.reports.features import Features
from graphveil.device.reports.label import Label
from graphveil.device.task import Field
from graphveil.mechanisms import AdjacencyRR
from graphveil.mechanisms.edges.degrees import NoisyDegree
from graphveil.mechanisms.permanent import permanent_guarantee
from graphveil.privacy.statement.guarantee import paragraph
from tests.collection.test_declare import IDS, declared

KINDS = ("features", "label", "links", "degree")
ASKED = [kinds for count in range(1, 5) for kinds in combinations(KINDS, count)]


def ratio(field: Field) -> Fraction:
    """The largest likelihood ratio of one answer, exactly, between two values of what its unit holds."""
    if isinstance(field, Features):
        return Fraction(WORD - field.threshold, field.threshold) ** field.sampled
    if isinstance(field, Label):
        return Fraction(WORD - (len(field.classes) - 1) * field.share, field.share)
    if isinstance(field, Degree):
        return max(_steps(field))
    return Fraction(WORD - field.threshold, field.threshold)


def _steps(field: Degree) -> Iterator[Fraction]:
    """How much less likely a number is than the one before it, by which of its digits is the lowest that is 0."""
    lower = Fraction(1)
    for odds in (*(Fraction(digit, DIGIT - digit) for digit in field.digits), Fraction(field.overflow, DIGIT)):
        yield lower / odds
        lower *= odds


def joint(task: Task, kinds: tuple[str, ...]) -> Decimal:
    """The log of the largest likelihood ratio of all reports, between two values of everything of these kinds."""
    whole = Fraction(1)
    for field in task.fields:
        # Both ends of a relationship draw their own noise, and whoever has both reports multiplies. Also where a list
        # holds the links that begin at its person: of friends each names the other.
        ends = 2 if getattr(field, "mode", "") in ("both", "directed") else 1
        whole *= ratio(field) ** ends if field.kind in kinds else 1
    with localcontext() as context:
        context.prec = 60
        return (Decimal(whole.numerator) / Decimal(whole.denominator)).ln()


def covered(line: str) -> tuple[str, ...]:
    """The kinds of answers that tell of the unit of a paragraph, by its first sentence."""
    unit = line.split(", not a person")[0]
    words = {"feature vector": ("features",), "label": ("label",), "relationship": KINDS[2:], "link": KINDS[2:]}
    return tuple(kind for word, kinds in words.items() if re.search(rf"\b{word}\b", unit) for kind in kinds)


def holds(task: Task, lines: list[str]) -> bool:
    """Whether every paragraph's epsilon, and the power that it says, covers all reports, and one covers everything."""
    each = [covered(line) for line in lines]
    if not any(set(kinds) >= {field.kind for field in task.fields} for kinds in each):
        return False
    bounds = [[*map(Decimal, re.findall(r"(?:\(epsilon = |most e\^)([\d.]*\d)", line))] for line in lines]
    return all(min(bound[:2]) >= joint(task, kinds) for bound, kinds in zip(bounds, each, strict=True))


@pytest.mark.parametrize("kinds", ASKED, ids="+".join)
@pytest.mark.parametrize("mode", ["lower", "both", "directed"])
def test_what_is_promised_covers_whole_reports(kinds: tuple[str, ...], mode: str, tmp_path: Path) -> None:
    key = new_key(tmp_path / "key")
    for prices in (("1", "2", "1", "1"), ("0.1", "0.2", "0.7", "0.3"), ("50", "3.5", "44", "0.05")):
        price_of = dict(zip(KINDS, prices, strict=True))
        task = signed_task(declared(Prices(**{kind: price_of[kind] for kind in kinds}, mode=mode)), key)
        assert holds(task, list(task.guarantee))
        stated = sum(
            field.epsilon * (2 if getattr(field, "mode", "") in ("both", "directed") else 1) for field in task.fields
        )
        assert f"(epsilon = {float(stated):g}, " in task.guarantee[-1]


@pytest.mark.parametrize("mode", ["lower", "both", "directed"])
def test_a_promise_that_leaves_the_sum_out_is_found(mode: str, tmp_path: Path) -> None:
    """A paragraph for each mechanism, as if its answer left alone."""
    task = signed_task(declared(Prices(links="1", degree="1", mode=mode)), new_key(tmp_path / "key"))
    apart = [AdjacencyRR(epsilon=1.0, nodes=len(IDS), mode=mode), NoisyDegree(epsilon=1.0, nodes=len(IDS), mode=mode)]
    assert not holds(task, [paragraph(permanent_guarantee(guarantee)) for guarantee in apart])
    everything = signed_task(declared(Prices(label="1", links="1", degree="1", mode=mode)), new_key(tmp_path / "other"))
    assert not holds(everything, list(everything.guarantee[:-1]))
