"""One explained word: a stable code, the sentence it stands for, what that means, what it does not, what backs it.

A code never changes its meaning and is never reused: files and other programs store it.
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
        group: what the code names: a protected unit, an observer, an assumption, a text without a code ("unknown"), or
            an "answer" of a collector or a device, which no guarantee states.
        sentence: the words that are printed; ``{name}`` stands for a public fact of the run.
        means: what a reader may conclude.
        limits: what a reader may not conclude, or when the assumption fails; for an answer, what to do about it.
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


def open_entry(part: str, use: str, described: str, *, backed_by: str) -> Entry:
    """Return the entry of an assumption that a part of the data is declared public.

    Args:
        part: the part, as the code begins: "features", "labels", "links" or "edges".
        use: what happens to the part without noise: "sent" or "published".
        described: the part as the entry's meaning names it.
    """
    return assumption_entry(
        f"{part}-{use}-open",
        f"{part} are declared public: they are {use} as they are and NOT protected",
        means=f"The {described} have no noise.",
        breaks="an epsilon of `inf` was given although they are private",
        backed_by=backed_by,
    )


def table_of(entries: Iterable[Entry]) -> Mapping[str, Entry]:
    """Return entries by their codes, unchangeable; ValueError where two entries have one code."""
    table: dict[str, Entry] = {}
    for entry in entries:
        # Files store codes and documents quote them: with two meanings under one code both would be ambiguous.
        if entry.code in table:
            raise ValueError(f"two entries have the code {entry.code}")
        table[entry.code] = entry
    return MappingProxyType(table)
