"""The privacy card: every field in both forms, for every kind of run, and what attacks found."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from graphveil.attacks import AttackResult, Limit, judge
from graphveil.methods.runs.intervals import Interval
from graphveil.privacy import Guarantee, Ledger, assume
from graphveil.privacy.statement.observer import ALL_BUT_CURATOR, RELEASE_READERS
from graphveil.privacy.statement.unit import NODE_WITHOUT_EDGES, UNDIRECTED_EDGE
from graphveil.reports.attacks.figure import summary
from graphveil.reports.attacks.files import PLAIN
from graphveil.reports.base.card import HTML, MARKDOWN, Card, pages
from graphveil.reports.base.words import used_settings
from graphveil.reports.runs.card import About, public_card, run_card
from tests.reports import made
from tests.reports.pages import HOSTILE, read


def edges(epsilon: float = 2.0, **changes: Any) -> Guarantee:
    facts: dict[str, Any] = {"unit": UNDIRECTED_EDGE, "relation": "add/remove", "model": "central", "delta": 1e-5}
    common = {"against": ALL_BUT_CURATOR, "assumes": (assume("node-set-public"),)}
    return Guarantee(**{**facts, **common, "epsilon": epsilon, **changes})


OPEN = edges(math.inf, delta=0.0, assumes=(assume("edges-published-open"),))
RUNS: dict[str, tuple[dict[str, Any], tuple[str, ...]]] = {
    "local": ({}, ("the person's own device", "Who is connected to whom", "one user's label", "replace")),
    "central": ({"guarantee": edges()}, ("the curator only: with the exact data", "add/remove", "1e-05")),
    "on a release": (
        {"guarantee": edges(against=RELEASE_READERS), "method": "gcn"},
        ("to release the graph once", "what the release holds, and covered by its guarantee", "--truth DATA"),
    ),
    "void": ({"void": "noise was reproducible (seed 3)"}, ("VOID. This run protects nobody", "seed 3")),
    "not private": (
        {"guarantee": OPEN, "ledger": Ledger.open({"edges": (1.0, 0.0)})},
        ("everybody who sees the data or the model", "inf", "Nothing was spent", "all are used as they are"),
    ),
    "without controls": (
        {"controls": {}, "best_control": None, "lift": None},
        ("Lift over the free baseline: not measured.", "No controls were trained"),
    ),
    "lifted": (
        {"lift": Interval(0.02, 0.01, 0.03, (0.02,) * 5)},
        ("Lift over the free baseline, random-features: +2.0 points (95%: +1.0 to +3.0).", "measurably above"),
    ),
    "whole nodes": (
        {"guarantee": edges(unit=NODE_WITHOUT_EDGES), "settings": {"unit": "node"}, "best_control": "no-edges"},
        ("There is no free baseline: no-edges is trained privately at the same price.",),
    ),
}
ALWAYS = (
    *("epsilon", "Must be trusted:", "Assumes:", "What is not protected"),
    *("ift over ", "None was run.", "graphveil attack RUN --attack link-stealing", "What was spent"),
)


def forms(record: Any, attacks: Any = None) -> tuple[str, str]:
    """Markdown with its front matter and its escapes taken off, and the text of the page."""
    both = pages(run_card(record, attacks or {}))
    return both[MARKDOWN].split("---\n", 2)[2].replace("\\", ""), read(both[HTML]).text


@pytest.mark.parametrize("kind", RUNS)
def test_every_field_stands_in_both_forms(kind: str) -> None:
    changes, phrases = RUNS[kind]
    for text in forms(made.record(**changes)):
        for part in (*ALWAYS, *phrases):
            assert part in text, part
        # Units, prices and observers stand under "What is protected" where something is.
        assert all((part in text) == (kind != "not private") for part in ("neighbours differ by", "delta", "Against:"))


def test_settings_on_a_card_do_not_contradict_its_guarantee() -> None:
    given = {"epsilon": None, "delta": 1e-10, "unit": None, "relationships": None, "epochs": 3}
    record = made.record(settings=given)
    for card in (run_card(record, {}), public_card(About.of(record))):
        assert (
            "Settings: epsilon = no total, one for each part, delta = 0 (no mechanism of this run needs one; 1e-10 "
            f"where one does), unit = {record.privacy.guarantee.unit.text} (by default), epochs = 3"
        ) in pages(card)[MARKDOWN]
    noisy = replace(record.privacy.guarantee, delta=1e-5)
    assert used_settings({"delta": 1e-5, "unit": "edge"}, noisy) == {"delta": 1e-5, "unit": "edge"}


def test_both_forms_say_the_same_in_the_same_order() -> None:
    markdown, page = forms(made.record(), attack_results())
    # A page draws who sees what, and says more of it.
    markdown, page = (
        re.sub("Who sees what .*? Results, and", "Results, and", " ".join(s.split())) for s in (markdown, page)
    )
    words = [word for word in page.split(" - graphveil ", 1)[1].split() if word.isalpha()]
    assert [word for word in markdown.replace("*", "").replace("|", " ").split() if word.isalpha()] == words


def result(epsilon: float = 2.0, *, gap: float = 0.5, note: str = "one edge", **changes: Any) -> AttackResult:
    """A result of scores made by hand; a larger gap is a stronger attack."""
    rng = np.random.default_rng(4)
    made_of = rng.normal(size=300) + gap, rng.normal(size=2000)
    limit = Limit(epsilon, 0.0, f"epsilon of {note}")
    return replace(judge("linkteller", "pairs", *made_of, limit=limit, baseline=0.55), **changes)


def attack_results(**changes: Any) -> dict[str, dict[str, AttackResult]]:
    plain = result(math.inf, gap=3.0, note="nothing")
    return {"linkteller": {"gap": result(baseline_note="labels alone", **changes), PLAIN: plain}}


def test_attacks_stand_beside_limit_baseline_and_plain_network() -> None:
    attacks = attack_results()
    own, plain = attacks["linkteller"].values()
    tpr = own.tpr_at_1_fpr
    for text in forms(made.record(), attacks):
        for part in (
            f"{own.auc.mean:.2f} ({own.auc.low:.2f} to {own.auc.high:.2f})",
            f"{100 * tpr.mean:.1f}% ({100 * tpr.low:.1f} to {100 * tpr.high:.1f})",
            "7.4%",  # e^2 of 1%
            "0.55",
            f"{plain.auc.mean:.2f} (",
            "limit: epsilon of one edge; without the secret: labels alone",
            "Measured on the true data: these figures are not covered by epsilon.",
            "An attack that finds nothing proves nothing",
        ):
            assert part in text, part
        assert "None was run" not in text and "MORE THAN EPSILON ALLOWS" not in text


def test_more_than_epsilon_allows_is_loud_and_no_limit_is_said() -> None:
    over = attack_results(epsilon=0.1, gap=3.0)
    assert over["linkteller"]["gap"].beats_limit
    repeated = {"averaging": {"lpgnn": replace(over["linkteller"]["gap"], name="averaging")}}
    for text in forms(made.record(), repeated):
        assert "the ledger refuses to pay for a second" in text and "MORE THAN" not in text
    for text in forms(made.record(), over):
        assert "MORE THAN EPSILON ALLOWS" in text
    anyway = {"linkteller": {"gap": replace(over["linkteller"]["gap"], baseline=1.0)}}
    for text in forms(made.record(), anyway):
        assert "the excess was there without the secret: no leak" in text and "MORE THAN" not in text
    # On the screen too, and for the advantage alone.
    excused = anyway["linkteller"]["gap"]
    for above in (excused, replace(excused, limit=1.0), replace(excused, advantage_limit=1.0)):
        assert "go together; the excess was there without the secret" in " ".join(summary(above))
    within = replace(excused, limit=1.0, advantage_limit=1.0)
    luck = replace(within, advantage_limit=(excused.advantage.low + excused.advantage.mean) / 2)
    assert "above" not in " ".join(summary(within)) and summary(luck)[-1].endswith("but not significantly")
    several = {"membership": {"gcn": result(math.inf, note="outside the unit"), "all holders": result()}}
    for text in forms(made.record(), several):
        assert "no limit: epsilon of outside the unit" in text
        assert "membership: gcn" in text and "membership: all holders" in text


def test_hostile_attack_files_stay_text() -> None:
    hostile = {HOSTILE: {HOSTILE: result(notes=(HOSTILE,), limit_note=HOSTILE), "other": result()}}
    both = pages(run_card(made.record(), hostile))
    tags = {tag for tag, _ in read(both[HTML]).elements}
    assert not tags & {"script", "img"}
    assert "<script" not in both[MARKDOWN].replace("\\<", "")
    assert "\n# heading" not in both[MARKDOWN] and "\x1b" not in both[MARKDOWN]
    odd = pages(run_card(made.record().in_folder("runs/a `b` <i>"), {}))
    assert "graphveil attack 'runs/a 'b' <i>' --attack link-stealing" in odd[MARKDOWN]
    assert "<i>" not in odd[HTML]


# ---- front matter: what hubs read of a card, whatever things are called, with nothing beyond what it says ----


def matter(markdown: str) -> dict[str, Any]:
    """The block before the first line of a card."""
    yaml = pytest.importorskip("yaml", reason="PyYAML, which other libraries bring, is what reads front matter")
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
