"""Texts of a guarantee read back as values; files state codes beside them, and the two may not contradict each other.

Only this module reads meaning from words. It recognizes a text only where the resulting value prints exactly that
text, or an earlier version printed it. Every other text becomes an "other" value: nothing is concluded from it.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from string import Formatter
from types import MappingProxyType
from typing import Final

from graphveil.privacy.statement.assumption import Assumption, other_assumption
from graphveil.privacy.statement.assumption_codes import ASSUMPTION_CODES
from graphveil.privacy.statement.observer import OBSERVER_CODES, Observer, other_observer
from graphveil.privacy.statement.unit import RELATIONSHIP_OF_ONE, SIMPLE_UNITS, ProtectedUnit, other_unit, together

_UNITS: Final[Mapping[str, ProtectedUnit]] = MappingProxyType({unit.text: unit for unit in SIMPLE_UNITS})
_OBSERVERS: Final = MappingProxyType({entry.sentence: Observer(code) for code, entry in OBSERVER_CODES.items()})
# At most nine digits: a count from a file is turned into an integer, and a text of millions of digits takes minutes.
_SEVERAL: Final = re.compile(r"(\d{1,9}) at once of: (.+)", re.DOTALL)
_OF_ONE_PERSON: Final = re.compile(r"any set of up to (\d{1,9}) relationships of one person")
_WHETHER: Final = re.compile(r"whether (.+) exists", re.DOTALL)
_OF_THAT_USER: Final = re.compile(r"(.+), and whether (.+) of that user exists", re.DOTALL)
_AND: Final = " and "
_ONE_WORD: Final = r"\S+"
#: What the value of a fact may look like; of all other names it is a single word.
_FORMS: Final = MappingProxyType(
    {
        "times": r"(?: \(said \d+ times\))?",
        "declared": r"(?:, though .+ private)?",
        **dict.fromkeys(("number", "graph", "who", "what", "reader", "each"), ".+?"),
    }
)
#: More letters than any text of ours has; longer texts are not searched.
_LONGEST: Final = 2_000


def unit_of(text: str) -> ProtectedUnit:
    """Return the unit that a text names, or an "other" one with this text."""
    # Anybody may have written the file: a regular expression over a long text could take very long.
    unit = _unit(text) if len(text) <= _LONGEST else None
    # A text that the value does not print word for word may mean something else: better unknown than misread.
    return unit if unit is not None and unit.text == text else other_unit(text)


def observer_of(text: str) -> Observer:
    """Return the observer that a text names, or an "other" one with this text."""
    return _OBSERVERS.get(text) or other_observer(text)


def assumption_of(text: str) -> Assumption:
    """Return the assumption that a sentence makes, or an "other" one with this sentence."""
    for code, sentence, pattern in _patterns() if len(text) <= _LONGEST else ():
        match = pattern.fullmatch(text)
        if match is not None and sentence.format(**match.groupdict()) == text:
            return Assumption(code, tuple(match.groupdict().items()))
    return other_assumption(text)


def _unit(text: str) -> ProtectedUnit | None:
    if text in _UNITS:
        return _UNITS[text]
    if match := _OF_ONE_PERSON.fullmatch(text):
        return RELATIONSHIP_OF_ONE.times(int(match[1])) if int(match[1]) else None
    if match := _SEVERAL.fullmatch(text):
        unit, count = _unit(match[2]), int(match[1])
        return None if unit is None or count < 1 else unit.times(count)
    if match := _OF_THAT_USER.fullmatch(text):
        people, link = _unit(match[1]), _UNITS.get(match[2])
        return None if people is None or link is None else together([people, link.existence()])
    return _existence(text) or _joined(text)


def _existence(text: str) -> ProtectedUnit | None:
    match = _WHETHER.fullmatch(text)
    unit = None if match is None else _UNITS.get(match[1])
    return None if unit is None else unit.existence()


def _joined(text: str) -> ProtectedUnit | None:
    """Return the units that a text joins by "and"; the text of one unit may contain an "and" too."""
    start = text.find(_AND)
    while start >= 0:
        first = _UNITS.get(text[:start]) or _existence(text[:start])
        rest = None if first is None else _unit(text[start + len(_AND) :])
        if first is not None and rest is not None:
            return together([first, rest])
        start = text.find(_AND, start + 1)
    return None


@cache
def _patterns() -> list[tuple[str, str, re.Pattern[str]]]:
    sentences = [(code, entry.sentence) for code, entry in ASSUMPTION_CODES.items()]
    former = tomllib.loads((Path(__file__).parent / "former.toml").read_text(encoding="utf-8"))
    return [(code, text, re.compile(_pattern(text), re.DOTALL)) for code, text in (*sentences, *former.items())]


def _pattern(sentence: str) -> str:
    pattern = ""
    for literal, name, _, _ in Formatter().parse(sentence):
        pattern += re.escape(literal)
        pattern += f"(?P<{name}>{_FORMS.get(name, _ONE_WORD)})" if name else ""
    return pattern
