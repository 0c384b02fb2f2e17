"""Counts with their nouns, and suggestions for mistyped names, as notes, screens and refusals print them."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def count_of(count: int, noun: str) -> str:
    """A count with its noun in the singular or plural.

    Args:
        noun: in the singular, adjectives before it.

    >>> count_of(1, "private edge"), count_of(2_000, "person")
    ('1 private edge', '2,000 people')
    """
    before, space, last = noun.rpartition(" ")
    return f"{count:,} {noun if count == 1 else before + space + _PLURALS.get(last, f'{last}s')}"


_PLURALS = {"person": "people", "entry": "entries", "query": "queries", "class": "classes"}


def nearest(name: str, names: Iterable[str]) -> str | None:
    """``did you mean x?`` for the nearest of the allowed names, if any is near.

    Args:
        names: the allowed ones.
    """
    matches = difflib.get_close_matches(name, list(names), n=1, cutoff=0.5)
    return f"did you mean {matches[0]}?" if matches else None
