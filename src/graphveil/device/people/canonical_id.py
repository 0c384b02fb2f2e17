"""One form for all spellings of an id that people take for the same, so that nobody is listed twice.

    form(id)   NFKC, then until nothing changes: full case folding, removal of invisible characters, NFKC

Where two ids are one person's, as "anna b" and "anna  b" or two encodings of an accent, both ends of a link would
report it. Clients agree by Unicode's stability policy: every later version gives assigned characters the same form.
Characters that `VERSION` does not assign are refused.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Sequence

from graphveil.device.errors import DeviceError

#: Of Unicode: the version of the oldest supported Python. Characters of later versions are in `_LATER`.
VERSION = "14.0.0"
#: White space, controls, default ignorables (DerivedCoreProperties.txt), marks of annotation, a blank of Braille.
_UNSEEN = re.compile(
    "[\0- \x7f-\xa0\xad\u034f\u061c\u115f\u1160\u1680\u17b4\u17b5\u180b-\u180f\u2000-\u200f\u2028-\u202f\u205f-\u206f"
    "\u2800\u3000\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    "\U000e0000-\U000e0fff]+"
)
_UNSEEN_ASCII = dict.fromkeys((*range(33), 127))
_BUT_LINES = {code: None for code in _UNSEEN_ASCII if code != ord("\n")}
#: Assigned from 15.0 to 17.0: every Python refuses what the oldest does not know.
_LATER = re.compile(
    "[\u0897\u088f\u0c5c\u0cdc\u0cf3\u0ece\u1acf-\u1aeb\u1b4e\u1b4f\u1b7f\u1c89\u1c8a\u20c1\u2427-\u2429\u2b96"
    "\u2ffc-\u2fff\u31e4-\u31ef\ua7cb-\ua7cf\ua7d2\ua7d4\ua7da-\ua7f1\ufbc3-\ufbd2\ufd90\ufd91\ufdc8-\ufdce"
    "\U000105c0-\U000105f3\U00010940-\U00010959\U00010d40-\U00010d8f\U00010ec2-\U00010eff\U0001123f-\U00011241"
    "\U00011380-\U000113e2\U000116d0-\U000116e3\U00011b00-\U00011bf9\U00011db0-\U00011de9\U00011f00-\U00011f5a"
    "\U0001342f\U00013439-\U000143fa\U00016100-\U00016139\U00016d40-\U00016d79\U00016ea0-\U00016ed3"
    "\U00016ff2-\U00016ff6\U000187f8-\U000187ff\U00018cff\U00018d09-\U00018df2\U0001b132\U0001b155"
    "\U0001cc00-\U0001cef0\U0001d2c0-\U0001d2d3\U0001df25-\U0001df2a\U0001e030-\U0001e08f\U0001e4d0-\U0001e6ff"
    "\U0001f6d8-\U0001f6dc\U0001f774-\U0001f77f\U0001f7d9\U0001f8b2-\U0001f8d8\U0001fa54-\U0001fa57"
    "\U0001fa75-\U0001fa77\U0001fa87-\U0001fa8f\U0001faad-\U0001faaf\U0001fabb-\U0001fabf\U0001fac6-\U0001facf"
    "\U0001fada-\U0001fadf\U0001fae8-\U0001faef\U0001faf7\U0001faf8\U0001fbcb-\U0001fbef\U0001fbfa"
    "\U0002b739-\U0002b73f\U0002cea2-\U0002cead\U0002ebf0-\U0002ee5d\U00031350-\U00033479]"
)
_UNASSIGNED = ("Cn", "Co", "Cs")


def canonical_id(id: str) -> str:
    """Return the one form of an id; two ids of one form are one person's. Raises DeviceError: `bad-ids`, a character
    that Unicode 14.0 does not assign, or no visible character.
    """
    form = id.lower().translate(_UNSEEN_ASCII) if id.isascii() else _folded(id)
    if not form:
        raise DeviceError("bad-ids", f"the id {id!a} has nothing that anybody sees")
    return form


def known_as(id: str) -> str:
    """Return the one form of an id, or the id itself where it has none, as the key of a table of people."""
    try:
        return canonical_id(id)
    except DeviceError:
        return id


def require_distinct(ids: Sequence[str]) -> None:
    """Refuse a list in which two ids are one person's; DeviceError `bad-ids`, naming both; or as `canonical_id`."""
    twins = find_twins(ids)
    if twins is not None:
        first, second = (ids[index] for index in twins)
        same = f"the id {spelled_id(first)} stands twice"
        raise DeviceError("bad-ids", same if first == second else one_id(first, second))


def one_id(first: str, second: str) -> str:
    """Return in words that two ids are one person's."""
    return f"{spelled_id(first)} and {spelled_id(second)} are one id to people"


def spelled_id(id: str) -> str:
    """Return an id in a spelling that shows every character, even the second of two spaces."""
    return ascii(id).replace("  ", r" \x20")


def find_twins(ids: Sequence[str], form: Callable[[str], str] = canonical_id) -> tuple[int, int] | None:
    """Return the indices of the first two ids that are one person's, None where all differ; DeviceError as `form`.

    Args:
        ids: of everybody.
        form: of an id, `canonical_id` or `known_as`.
    """
    forms = _forms(ids, form)
    if len(set(forms)) == len(forms):
        return None
    first: dict[str, int] = {}
    return next((first[form], index) for index, form in enumerate(forms) if first.setdefault(form, index) != index)


def _forms(ids: Sequence[str], form: Callable[[str], str]) -> list[str]:
    text = "\n".join(ids)
    # A fast path for a million ids in ASCII.
    if text.isascii() and text.count("\n") == len(ids) - 1:
        forms = text.lower().translate(_BUT_LINES).split("\n")
        if all(forms):
            return forms
    return [form(id) for id in ids]


def _folded(id: str) -> str:
    later = _LATER.search(id)
    letter = later[0] if later else next((char for char in id if unicodedata.category(char) in _UNASSIGNED), None)
    if letter is not None:
        raise DeviceError("bad-ids", f"the id {id!a} holds U+{ord(letter):04X}, which Unicode 14.0 does not assign")
    form, before = unicodedata.normalize("NFKC", id), None
    # Repeatedly: a removed character may have separated a letter from its accent.
    while form != before:
        before, form = form, unicodedata.normalize("NFKC", _UNSEEN.sub("", form.casefold()))
    return form
