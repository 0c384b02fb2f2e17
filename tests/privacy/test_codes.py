"""Codes of observers and assumptions: texts that never change, what backs each, and texts read back."""

from __future__ import annotations

import itertools
import re
import tomllib
from pathlib import Path

import pytest

from graphveil.errors import InputError
from graphveil.privacy.statement.assumption import Assumption, assume, fact_names, other_assumption
from graphveil.privacy.statement.assumption_codes import ASSUMPTION_CODES
from graphveil.privacy.statement.observer import OBSERVER_CODES, Observer, other_observer
from graphveil.privacy.statement.registry import CODES, explain_code
from graphveil.privacy.statement.texts import assumption_of, observer_of
from graphveil.privacy.statement.unit import RELATIONSHIP, USER_FEATURES, USER_LABEL, together
from tests.pages import generated

ROOT = Path(__file__).parents[2]
FORMER = tomllib.loads((ROOT / "src/graphveil/privacy/statement/former.toml").read_text())
#: A value for every fact, the awkward ones first.
FACTS = {
    "graph": ("town (a) of {b} and c, declared", "x"),
    "number": ("its 5 features", "its one feature"),
    "times": (" (said 3 times)", ""),
    "declared": (", though town declares features and labels private", ""),
    "each": ("features 2 times, label once",),
    "who": ("the server and the holders", "the server"),
    "what": ("its holder's network, and so the guesses",),
    "reader": ("the label holder",),
    "law": ("geometric",),
    "low": ("-1e-05",),
}


def anchors(document: Path) -> set[str]:
    heads = re.findall(r"^#+ (.+)$", document.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}


def test_what_backs_a_code_exists() -> None:
    for entry in CODES.values():
        path, _, name = entry.backed_by.partition("::")
        path, _, anchor = path.partition("#")
        assert (ROOT / path).is_file(), entry.backed_by
        assert not name or f"def {name}(" in (ROOT / path).read_text(), entry.backed_by
        assert not anchor or anchor in anchors(ROOT / path), entry.backed_by


def test_sentences_are_read_back_with_their_facts() -> None:
    for code, place in itertools.product(ASSUMPTION_CODES, (0, 1)):
        names = fact_names(ASSUMPTION_CODES[code].sentence)
        facts = {name: FACTS.get(name, ("7", "0.25")) for name in names}
        assumption = assume(code, **{name: values[min(place, len(values) - 1)] for name, values in facts.items()})
        parsed = assumption_of(assumption.sentence)
        assert parsed == assumption and parsed.sentence == str(assumption) == assumption.sentence
        assert assumption.backed_by == ASSUMPTION_CODES[code].backed_by
        # Files of earlier versions are read as what they meant, and printed in today's words.
        former = FORMER.get(code, ASSUMPTION_CODES[code].sentence).format(**dict(assumption.facts))
        assert assumption_of(former) == assumption


def test_an_unknown_sentence_is_kept() -> None:
    for text in ("the classes are public", "every user reports once.", "x" * 5_000):
        parsed = assumption_of(text)
        assert parsed == other_assumption(text)
        assert (parsed.code, parsed.sentence, parsed.backed_by) == ("other", text, "")
    with pytest.raises(InputError, match="no text"):
        other_assumption("")


def test_a_sentence_full_of_traps_takes_no_time() -> None:
    trap = "the range [" + "], of is public " * 120
    assert assumption_of(trap).code == "other"


def test_an_assumption_is_said_with_its_facts_and_no_others() -> None:
    assert assume("classes-public", classes=3).sentence == "the list of the 3 classes is public"
    with pytest.raises(InputError, match="is given nothing"):
        assume("classes-public")
    with pytest.raises(InputError, match="is given nodes"):
        assume("classes-public", nodes=3)
    with pytest.raises(InputError, match="not known"):
        assume("classes-private")
    with pytest.raises(InputError, match="not known"):
        Assumption("reports-once", words="another text")
    changed = assume("others-declared", graph="town", times="").with_facts(times=" (said 2 times)")
    assert changed.sentence == "nobody in town has reported before: declared, not checked (said 2 times)"


def test_observers_are_read_back() -> None:
    for code, entry in OBSERVER_CODES.items():
        assert observer_of(entry.sentence) == Observer(code) and str(Observer(code)) == entry.sentence
    assert observer_of("somebody") == other_observer("somebody")
    assert observer_of("somebody").text == "somebody"
    for wrong in (("nobody", ""), ("other", ""), ("server", "the server")):
        with pytest.raises(InputError, match="not known"):
            Observer(*wrong)


def test_a_code_is_explained_and_a_mistyped_one_named() -> None:
    assert explain_code("one-relationship")[0].means.startswith("Whether two people are related")
    assert (
        explain_code("whether-one-relationship")
        == explain_code("2*one-relationship")
        == explain_code("one-relationship")
    )
    both = together([USER_FEATURES, USER_LABEL, RELATIONSHIP.existence()]).times(3)
    assert [entry.code for entry in explain_code(both.code)] == [
        "one-user-features",
        "one-user-label",
        "one-relationship",
    ]
    with pytest.raises(InputError, match="did you mean one-relationship"):
        explain_code("one-relationshp")
    for nothing in ("zzz", "", "2*"):
        with pytest.raises(InputError, match="lists all codes"):
            explain_code(nothing)


def test_the_page_on_guarantees_lists_every_code() -> None:
    lines = "\n".join(map(generated, ("units", "observers", "assumptions"))).splitlines()
    for entry in CODES.values():
        if entry.group == "unknown":
            continue
        cells = [entry.limits] if entry.group == "assumption" else [entry.means, entry.limits]
        line = f"| `{entry.code}` | {' | '.join([entry.sentence, *cells])} |"
        assert lines.count(line) == 1, line
    listed = {match[1] for line in lines if (match := re.match(r"\| `([a-z-]+)` \|", line))}
    assert {code for code in listed if "-" in code} <= set(CODES), "a code that there is no more"
