"""What screens say is what the answer holds, and all of it: each read back from the text, in both directions."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping

import pytest

from graphveil.cli.base import tables
from graphveil.collection.service.refusal_codes import REFUSAL_CODES
from graphveil.privacy.statement.registry import CODES
from tests.cli.conftest import Terminal, text_of

NUMBER = re.compile(r"(?<![\w.])-?\d[\d,]*(?:\.\d+)?(?:e[+-]?\d+)?(?![\w])")


def facts(text: str) -> list[tuple[str, str]]:
    """Two columns read back: what stands at the left begins a fact, what is set in goes on with it."""
    pairs: list[tuple[str, str]] = []
    for line in text.splitlines():
        name, _, value = line.rstrip().partition("  ")
        if name:
            pairs.append((name, value.strip()))
        elif value:
            last, start = pairs[-1]
            pairs[-1] = (last, f"{start} {value.strip()}".strip())
    return pairs


def flat(text: object) -> str:
    """Without the places where lines were broken."""
    return re.sub(r"\s+", "", str(text))


def numbers_of(content: object) -> list[float]:
    """Every number of an answer that is none of a text, in order."""
    if isinstance(content, Mapping):
        return [number for value in content.values() for number in numbers_of(value)]
    if isinstance(content, list):
        return [number for value in content for number in numbers_of(value)]
    return [] if isinstance(content, bool | str) or content is None else [float(content)]


# ---- data describe ----


@pytest.mark.parametrize("data", ["social-100", "digits"])
def test_a_description_has_each_fact_of_the_answer_with_its_numbers(type_in: Terminal, data: str) -> None:
    """Four decimals are kept: no number moves by more than half of the last one."""
    answer = type_in("data", "describe", data, "--json").json
    screen = facts(type_in("data", "describe", data).out)
    assert [name for name, _ in screen] == [name.replace("_", " ") for name in answer]
    for (name, text), value in zip(screen, answer.values(), strict=True):
        if name == "classes":
            value = list(value.values())
            text = " ".join(part.rsplit(" ", 1)[1] for part in text.split(", "))
        if isinstance(value, str):
            assert flat(text) == flat(value), name
        elif value is None or isinstance(value, bool):
            assert text == {True: "yes", False: "no", None: "-"}[value], name
        elif not isinstance(value, list) or not any(isinstance(item, str) for item in value):
            numbers = [float(number.replace(",", "")) for number in NUMBER.findall(text.replace(", ", " "))]
            assert numbers == pytest.approx(numbers_of(value), rel=1e-5, abs=5.1e-5), name


# ---- plan ----


@pytest.mark.parametrize("epsilon", [0.3])
def test_a_plan_shows_the_noise_of_each_sum_and_the_whole_guarantee(type_in: Terminal, epsilon: float) -> None:
    words = ("plan", "gap", "social-100", "--epsilon", epsilon, "--set", "hops=2")
    answer, text = type_in(*words, "--json").json, type_in(*words).out
    sums = re.findall(r"^sum (\d+) over neighbours +(\S+) +(\S+)", text, flags=re.MULTILINE)
    assert [int(hop) for hop, _, _ in sums] == [1, 2]
    curator = answer["curator"]
    assert [float(sigma) for _, sigma, _ in sums] == pytest.approx(curator["noise"]["sigmas"], abs=5.1e-5, rel=1e-5)
    assert [float(ratio) for _, _, ratio in sums] == pytest.approx(curator["per_node"], rel=0.051)
    screen = dict(facts(text.split("Guarantee", 1)[1].join(("Guarantee", ""))))
    assert flat(screen["Guarantee"]) == flat(answer["guarantee_sentence"])
    match = re.search(r"one undirected edge: (\S+) \(delta (\S+)\)", screen["Epsilon"])
    assert match and float(match[1]) == answer["guarantee"]["epsilon"] == epsilon
    assert float(match[2]) == answer["guarantee"]["delta"]
    assert screen["Memory"] == f"about {answer['memory_mb']:.0f} MB"
    assert all(flat(line) in flat(text) for line in answer["advice"])


# ---- cells ----


@pytest.mark.parametrize(
    ("key", "value", "text"),
    [
        ("epsilon", 1.0000049, "1.00001"),
        ("epsilon_x", 0.1 + 0.2, "0.300001"),
        ("delta", 1.00000049e-6, "1.00001e-06"),
        ("accuracy", 1.0000049, "1"),
        ("epsilon", math.inf, "inf"),
        ("density", -0.123456, "-0.1235"),
        ("density", math.nan, "nan"),
        ("nodes", 1234567, "1,234,567"),
    ],
)
def test_a_price_is_rounded_up_and_everything_else_to_the_nearest(key: str, value: object, text: str) -> None:
    assert tables.plain_named(key, value) == text
    assert tables.plain({key: value}) == f"{key} {text}"


def test_numbers_stand_right_texts_left_and_no_cell_moves_the_cursor() -> None:
    text = text_of(tables.rows(("method", "epsilon"), [("a", 1), ("longer\n\x1b[2J", 12345)]), 60)
    head, _, first, second = (line.rstrip() for line in text.splitlines() if line.strip())
    assert len(head) == len(first) == len(second)
    assert head.startswith("method") and first.startswith("a ") and second.startswith("longer [2J")
    assert (first.split()[-1], second.split()[-1]) == ("1", "12345")
    assert "\x1b" not in text


def test_joined_codes_refusals_and_all_codes_are_explained(type_in: Terminal) -> None:
    joined = type_in("explain", "one-user-features+one-user-label", "--json").json["codes"]
    assert [entry["code"] for entry in joined] == ["one-user-features", "one-user-label"]
    (several,) = type_in("explain", "5*one-relationship-of-a-person", "--json").json["codes"]
    assert "any k / 2 contacts may be others" in several["means"]
    codes = type_in("explain", "--json").json["codes"]
    assert [entry["code"] for entry in codes] == [*CODES, *REFUSAL_CODES]
    assert set(codes[0]) == {"code", "group", "sentence", "means", "limits", "backed_by"}
    screen, entry = dict(facts(type_in("explain", "bad-tag").out)), REFUSAL_CODES["bad-tag"]
    assert flat(screen["Says"]) == flat(entry.sentence) and flat(screen["To do"]) == flat(entry.limits)
