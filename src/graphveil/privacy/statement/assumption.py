"""One fact that a guarantee relies on: a code, the public numbers and names in it, and the sentence made of them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from string import Formatter

from graphveil.errors import InputError
from graphveil.privacy.statement.assumption_codes import ASSUMPTION_CODES


@dataclass(frozen=True)
class Assumption:
    """One fact that a guarantee relies on; built by `assume`.

    Args:
        code: the stable name; "other" where only a text is known.
        facts: name and value, as printed, of everything that the sentence mentions, in its order.
        words: the text where the code is "other", else empty.

    Raises:
        InputError: no such assumption is known, or its facts are not those that its sentence mentions.
    """

    code: str
    facts: tuple[tuple[str, str], ...] = ()
    words: str = ""

    def __post_init__(self) -> None:
        if self.code == "other":
            if not (isinstance(self.words, str) and self.words.strip()) or self.facts:
                raise InputError("an assumption has no text", where="assumes", allowed="a sentence")
            return
        # A code from the table with words of its own could print a weaker assumption than programs read from the code.
        if self.code not in ASSUMPTION_CODES or self.words:
            raise InputError(f"assumption {self.code!r} is not known", where="assumes", remedy="graphveil explain")
        names = fact_names(ASSUMPTION_CODES[self.code].sentence)
        # A missing fact would print a gap, and a surplus one would be stored but never printed.
        if tuple(name for name, _ in self.facts) != names:
            stated = ", ".join(name for name, _ in self.facts) or "nothing"
            allowed = ", ".join(names) or "nothing"
            raise InputError(f"{self.code} is given {stated}", where="assumes", allowed=allowed)

    def __str__(self) -> str:
        return self.sentence

    @property
    def sentence(self) -> str:
        """The fact in words, as guarantees and files state it."""
        return self.words or ASSUMPTION_CODES[self.code].sentence.format(**dict(self.facts))

    @property
    def backed_by(self) -> str:
        """The test or the document that backs the assumption; empty where only a text is known."""
        return "" if self.code == "other" else ASSUMPTION_CODES[self.code].backed_by

    def with_facts(self, **facts: str | int) -> Assumption:
        """Return the same assumption with some of its facts changed."""
        return assume(self.code, **{**dict(self.facts), **facts})


def assume(code: str, **facts: str | int) -> Assumption:
    """Return an assumption; InputError where the code is not known, or a name is missing or unknown.

    Args:
        code: one of ASSUMPTION_CODES.
        facts: a value for every name in its sentence; numbers with decimals as texts, as they are to be printed.
    """
    names = fact_names(ASSUMPTION_CODES[code].sentence) if code in ASSUMPTION_CODES else ()
    # In the order of the sentence, so that equal assumptions compare equal whatever the order of the arguments.
    ordered = sorted(facts, key=lambda name: names.index(name) if name in names else len(names))
    return Assumption(code, tuple((name, str(facts[name])) for name in ordered))


def other_assumption(words: str) -> Assumption:
    """Return an assumption that is known by its text alone."""
    return Assumption("other", words=words)


@cache
def fact_names(sentence: str) -> tuple[str, ...]:
    """Return the names of the facts that a sentence mentions, in its order."""
    return tuple(dict.fromkeys(name for _, name, _, _ in Formatter().parse(sentence) if name))
