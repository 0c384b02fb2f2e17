"""What hubs read of a card: valid YAML, whatever things are called, with what the card says and nothing beyond it."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest

from graphveil.reports.base.card import MARKDOWN, Card, pages
from graphveil.reports.runs.card import About, public_card, run_card
from tests.reports import made
from tests.reports.pages import HOSTILE

yaml = pytest.importorskip("yaml", reason="PyYAML, which other libraries bring, is what reads front matter")


def matter(markdown: str) -> dict[str, Any]:
    """The block before the first line of a card."""
    start, block, rest = markdown.split("---\n", 2)
    assert start == "" and rest.startswith("\n# Privacy card")
    return dict(yaml.safe_load(block))


def of(card: Card) -> dict[str, Any]:
    return matter(pages(card)[MARKDOWN])


def test_the_card_to_be_handed_on_tells_hubs_no_score() -> None:
    record = made.record()
    text = pages(public_card(About.of(record)))[MARKDOWN]
    fields = matter(text)
    assert not {"model-index", "metrics"} & set(fields) and "results_covered_by_epsilon" not in fields["graphveil"]
    assert str(round(record.scores.accuracy.mean, 6)) not in text


def test_privacy_is_stated_as_fields_and_prices_are_rounded_up() -> None:
    whole = made.guarantee(epsilon_x=1 / 3)
    fields = of(run_card(made.record(guarantee=whole), {}))["graphveil"]["privacy"]
    assert fields["epsilon"] >= whole.epsilon and fields["epsilon"] == pytest.approx(whole.epsilon, abs=1e-4)
    assert [part["unit"] for part in fields["parts"]] == [part.unit.text for part in whole.parts]
    assert (fields["trust_model"], fields["unit_code"], fields["void"]) == ("local", whole.unit.code, None)


@pytest.mark.parametrize("changes", [{"void": "noise was reproducible (seed 3)"}, {"epsilon": math.inf}], ids=str)
def test_what_protects_nobody_is_not_found_by_who_searches_for_privacy(changes: dict[str, Any]) -> None:
    fields = of(run_card(made.record(guarantee=replace(made.guarantee(), **changes)), {}))
    assert not [tag for tag in fields["tags"] if "privacy" in tag]
    assert fields["graphveil"]["privacy"]["void"] == changes.get("void")
    assert fields["graphveil"]["privacy"]["epsilon"] == ("inf" if "epsilon" in changes else 3)


@pytest.mark.parametrize("name", [HOSTILE, "---", "!!python/object:x", "'\"#- [", "\x85\u2028no"])
def test_no_name_ends_the_block_or_becomes_another_kind_of_value(name: str) -> None:
    record = made.record(data=name, method="lpgnn")
    for card in (run_card(record, {}), public_card(About.of(record))):
        fields = of(card)
        assert fields["datasets"] == [" ".join("".join(c if c.isprintable() else " " for c in name).split())]
        assert fields["graphveil"]["method"] == "lpgnn"
