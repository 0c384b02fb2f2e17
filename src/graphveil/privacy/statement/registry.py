"""Every code that a guarantee may state, with what it says, means and relies on: what ``graphveil explain`` prints."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from graphveil.errors import InputError
from graphveil.privacy.statement.assumption_codes import ASSUMPTION_CODES
from graphveil.privacy.statement.codes import Entry, table_of
from graphveil.privacy.statement.observer import OBSERVER_CODES
from graphveil.privacy.statement.unit import UNIT_CODES
from graphveil.runtime.words import nearest

_OTHER: Final = Entry(
    code="other",
    group="unknown",
    sentence="(the text beside it)",
    means="This version has no code for the text, and keeps it as it was read.",
    limits="Nothing is concluded from it.",
    backed_by="tests/privacy/test_unit.py::test_an_unknown_text_is_kept_and_nothing_is_concluded_from_it",
)
#: Every entry by its code; no code has two meanings, whatever its group.
CODES: Final = table_of((*UNIT_CODES.values(), *OBSERVER_CODES.values(), *ASSUMPTION_CODES.values(), _OTHER))

# What joins codes in the code of a composite unit.
_JOINTS: Final = re.compile(r"[+*()\s]+")


def explain_code(code: str, entries: Mapping[str, Entry] = CODES) -> tuple[Entry, ...]:
    """Return the entry of a code, or the entries of all units that it joins.

    Args:
        code: as it stands in a guarantee's JSON, such as "one-relationship" or "2*one-undirected-edge".
        entries: the codes to search.

    Raises:
        InputError: the code is not in the table; the nearest one is named.
    """
    words = [word for word in _JOINTS.split(code) if word and not word.isdigit()]
    return tuple(dict.fromkeys(_entry(word.removeprefix("whether-"), code, entries) for word in words or [code]))


def _entry(word: str, code: str, entries: Mapping[str, Entry]) -> Entry:
    if word in entries:
        return entries[word]
    remedy = nearest(word, entries) or "graphveil explain lists all codes"
    raise InputError(f"code {code!r} is not known", where="explain", remedy=remedy)
