"""Who may look at what was released, and learns no more than the guarantee allows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from graphveil.errors import InputError
from graphveil.privacy.statement.codes import Entry, table_of


@dataclass(frozen=True)
class Observer:
    """Against whom a guarantee holds.

    Args:
        code: the stable name; "other" where only a text is known.
        words: the text where the code is "other", else empty.

    Raises:
        InputError: no such observer is known, or it has no text.
    """

    code: str
    words: str = ""

    def __post_init__(self) -> None:
        # A code from the table with words of its own could print a weaker observer than programs read from the code.
        has_code = self.code in OBSERVER_CODES and not self.words
        if not has_code and not (self.code == "other" and isinstance(self.words, str) and self.words.strip()):
            allowed = ", ".join(OBSERVER_CODES)
            raise InputError(f"observer {self.code!r} is not known", where="against", allowed=allowed)

    def __str__(self) -> str:
        return self.text

    @property
    def text(self) -> str:
        """The observer in words, as guarantees and files state it."""
        return self.words or OBSERVER_CODES[self.code].sentence


def _entry(code: str, sentence: str, *, means: str, limits: str, backed_by: str) -> Entry:
    return Entry(code=code, group="observer", sentence=sentence, means=means, limits=limits, backed_by=backed_by)


#: The entry of each observer, by its code.
OBSERVER_CODES: Final = table_of(
    (
        _entry(
            "server",
            "the server and everybody it shares with",
            means="Whoever sees one device's report, the collecting server included, and whatever is computed from it.",
            limits="The person's own device holds the true value.",
            backed_by="docs/explanation/guarantee.md#the-sentence",
        ),
        _entry(
            "server-and-model",
            "the server and everybody it shares the reports or the model with",
            means="Whoever sees all reports of a collection, the trained model or its predictions.",
            limits="The person's own device holds the true values.",
            backed_by="docs/explanation/guarantee.md#the-sentence",
        ),
        _entry(
            "all-but-curator",
            "everybody who sees the model, its predictions or the cached hops, except the curator",
            means="Whoever is handed the model, predictions for others or noisy sums.",
            limits="The curator holds the data as they are; a person's own prediction is for that person alone.",
            backed_by="docs/explanation/trust-models.md#the-central-model",
        ),
        _entry(
            "all-but-curator-of-scores",
            "everybody but the curator",
            means="Whoever sees the noisy mean of the users' scores.",
            limits="The curator holds the scores as they are.",
            backed_by="tests/methods/release/test_scores.py",
        ),
        _entry(
            "release-readers",
            "everybody who sees the released graph",
            means="Whoever reads the published folder, at any time, and whatever is computed from it.",
            limits="The curator holds the graph as it is.",
            backed_by="tests/graphs/test_release.py",
        ),
        _entry(
            "federation-server",
            "the server, and everybody who sees the trained model or its predictions",
            means="The server of a federation, which reads what holders publish, and users of the model.",
            limits="Holders are protected from each other by masks, not by epsilon: see what the mode opens.",
            backed_by="docs/explanation/trust-models.md#the-vertical-model",
        ),
        _entry(
            "label-holder",
            "the label holder, and everybody who sees the trained model or its predictions",
            means="The holder of the labels, which reads the other holders' guesses, and users of the model.",
            limits="In mode guesses the other holders get the training labels.",
            backed_by="docs/explanation/trust-models.md#the-vertical-model",
        ),
    )
)

SERVER: Final = Observer("server")
SERVER_AND_MODEL: Final = Observer("server-and-model")
ALL_BUT_CURATOR: Final = Observer("all-but-curator")
ALL_BUT_CURATOR_OF_SCORES: Final = Observer("all-but-curator-of-scores")
RELEASE_READERS: Final = Observer("release-readers")
FEDERATION_SERVER: Final = Observer("federation-server")
LABEL_HOLDER: Final = Observer("label-holder")


def other_observer(words: str) -> Observer:
    """Return an observer that is known by its text alone."""
    return Observer("other", words)
