"""One explained word: a stable code, the sentence it stands for, what that means, what it does not, what backs it.

Codes never change their meaning and are never used again for another one: files and other programs keep them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

Group = Literal["unit", "observer", "assumption", "unknown", "answer"]


@dataclass(frozen=True, kw_only=True)
class Entry:
    """What one code says.

    Attributes:
        code: the stable name, in lower case with hyphens.
        group: whether it names a protected unit, an observer or an assumption; "unknown" for a text without a code;
            "answer" of a collector or a device, which no guarantee states.
        sentence: the words that are printed; ``{name}`` stands for a public fact of the run.
        means: what a reader may conclude.
        limits: what a reader may not conclude, or what makes it fail; of an answer, what to do about it.
        backed_by: the test (``path::name``) or the document (``path#section``) that shows it.
    """

    code: str
    group: Group
    sentence: str
    means: str
    limits: str
    backed_by: str


def assumption_entry(code: str, sentence: str, *, means: str, breaks: str, backed_by: str) -> Entry:
    """Return the entry of an assumption; `breaks`: what makes it fail."""
    return Entry(code=code, group="assumption", sentence=sentence, means=means, limits=breaks, backed_by=backed_by)


def open_entry(what: str, done: str, named: str, *, backed_by: str) -> Entry:
    """Return the entry of an assumption that a part is declared public.

    Args:
        what: the part.
        done: what happens to it, as it is.
        named: the part in a sentence of its own.
    """
    return assumption_entry(
        f"{what}-{done}-open",
        f"{what} are declared public: they are {done} as they are and NOT protected",
        means=f"The {named} have no noise.",
        breaks="an epsilon of `inf` was given although they are private",
        backed_by=backed_by,
    )


def table_of(entries: Iterable[Entry]) -> Mapping[str, Entry]:
    """Return entries by their codes, unchangeable; ValueError where two entries have one code."""
    table: dict[str, Entry] = {}
    for entry in entries:
        # Codes are stored in files and quoted in documents: two meanings under one would rewrite both.
        if entry.code in table:
            raise ValueError(f"two entries have the code {entry.code}")
        table[entry.code] = entry
    return MappingProxyType(table)
