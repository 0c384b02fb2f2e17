"""Every code that a guarantee may state, with what it says, means and leans on: what ``graphveil explain`` prints."""

from __future__ import annotations

from difflib import get_close_matches
from typing import Final

from graphveil.errors import InputError
from graphveil.privacy.assumption_codes import ASSUMPTION_CODES
from graphveil.privacy.codes import Entry, table_of
from graphveil.privacy.observer import OBSERVER_CODES
from graphveil.privacy.unit import UNIT_CODES

#: code -> what it says; no code stands for two things, whatever its group.
CODES: Final = table_of((*UNIT_CODES.values(), *OBSERVER_CODES.values(), *ASSUMPTION_CODES.values()))


def explained(code: str) -> Entry:
    """Return what one code says.

    Args:
        code: as it stands in a guarantee's JSON; "whether-" before a unit says that its existence is meant.

    Raises:
        InputError: it is not known, naming the nearest one.
    """
    bare = code.strip().removeprefix("whether-")
    if bare in CODES:
        return CODES[bare]
    near = get_close_matches(bare, CODES, n=1, cutoff=0.5)
    remedy = f"did you mean {near[0]}?" if near else "graphveil explain lists all codes"
    raise InputError(f"code {code!r} is not known", where="explain", remedy=remedy)
