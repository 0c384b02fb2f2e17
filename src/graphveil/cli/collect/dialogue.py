"""The questions of `graphveil collect init` at a terminal, about what only a person knows: words, window, prices.

Ranges and classes come from the data's declaration and are never asked.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import partial

from graphveil.cli.base.terminal import InputEnded, Terminal
from graphveil.collection.task.declare import Prices, at_most
from graphveil.collection.task.drafts import PRICES, WORDS, moment_of
from graphveil.collection.task.subject import Subject
from graphveil.device.errors import DeviceError
from graphveil.device.telling import hidden_in
from graphveil.errors import InputError

#: Seconds: 30 days.
_WINDOW_LENGTH = 30 * 24 * 3600
_MODES = ("lower", "both", "directed")
_HEAD = (
    "Some of what people will read is missing. Enter alone accepts the value in [brackets], or leaves the field empty, "
    "to be filled in later."
)
_WORDS = {
    "organiser": "Who asks? (organiser, such as: the city's youth office)",
    "purpose": "What for, in words that everybody understands? (purpose)",
    "contact": "Where can people ask back? (contact, such as a mail address)",
}
_WINDOW = "a day or a moment, UTC, such as 2027-01-31 or 2027-01-31T08:00"
_PRICE_HEAD = (
    "What may one report cost? An epsilon for each, such as 1 or 2.5: at epsilon 1 nobody becomes more than 2.8 times "
    "as sure of anything as before, at 2 not more than 7.4 times. Enter: not asked."
)
_LEAST = (
    "How many reports must there be before anything is exported? (1 to {people:,}: few reports reveal more of "
    "each person, and many may never come)"
)
_MODE = (
    "Who reports a link between two people? lower: the person with the lower number, so it is reported once; both: "
    "each of them, so it costs twice; directed: the person where it starts, so two who name each other report two links"
)


class Dialogue(Terminal):
    """What an organiser is asked."""

    def complete(
        self, subject: Subject, option_fields: Mapping[str, object], prices: Prices
    ) -> tuple[dict[str, object], Prices]:
        """Return words, window, least number and prices, completed by the person.

        Args:
            option_fields: fields given as options.
        """
        fields = dict(option_fields)
        asks_nothing = all(getattr(prices, name) is None for name in PRICES)
        if set(fields) >= {*WORDS, "least"} - {"name"} and not asks_nothing:
            return fields, prices
        self.say(_HEAD)
        try:
            for name, question in _WORDS.items():
                if name not in fields:
                    self._ask(fields, name, question, _visible)
            if "opens" not in fields:
                today = f"{datetime.now(UTC):%Y-%m-%d}"
                self._ask(fields, "opens", f"From when on may people answer? ({_WINDOW})", _moment, today)
            if "closes" not in fields:
                opens = str(fields.get("opens") or f"{datetime.now(UTC):%Y-%m-%d}")
                end = datetime.fromtimestamp(moment_of("opens", opens) + _WINDOW_LENGTH, UTC)
                later = f"{end:%Y-%m-%d}"
                self._ask(fields, "closes", "Until when? (as before, and later)", partial(_moment, after=opens), later)
            if "least" not in fields:
                people = len(subject.ids)
                self._ask(fields, "least", _LEAST.format(people=people), partial(_whole, most=people))
            return fields, self._prices(subject, prices) if asks_nothing else prices
        # The rest can be filled in later; what was typed counts.
        except InputEnded:
            self.say("")
            return fields, prices

    def _prices(self, subject: Subject, prices: Prices) -> Prices:
        self.say(_PRICE_HEAD)
        values: dict[str, object] = {}
        absent = {"features": subject.schema.dimension == 0, "label": len(subject.schema.classes) < 2}
        for name, meaning in PRICES.items():
            if not absent.get(name):
                self._ask(values, name, f"  {meaning} ({name})", _epsilon)
        if {"links", "degree"} & set(values):
            self._ask(values, "mode", _MODE, _mode, prices.mode)
        texts = {name: str(value) for name, value in values.items()}
        return Prices(
            **{name: texts.get(name) for name in PRICES}, sampled=prices.sampled, mode=texts.get("mode", prices.mode)
        )

    def _ask(
        self, fields: dict[str, object], name: str, question: str, check: Callable[[str], object], default: str = ""
    ) -> None:
        """Ask until the answer passes ``check`` or is empty."""
        while True:
            text = self.typed(question, default) or default
            if not text:
                return
            try:
                fields[name] = check(text)
                return
            except (InputError, DeviceError) as error:
                self.say(f"  {error.what if isinstance(error, InputError) else error.detail}; please try again")


def _visible(text: str) -> str:
    hidden = hidden_in(text)
    if hidden is not None:
        raise InputError(f"the character U+{ord(hidden):04X} is invisible")
    return text


def _moment(text: str, *, after: str | None = None) -> str:
    try:
        moment = moment_of("this", text)
    except InputError as error:
        raise InputError("this is not a day or moment such as 2027-01-31") from error
    if after is not None and moment <= moment_of("opens", after):
        raise InputError(f"this is not later than {after}")
    return text


def _whole(text: str, most: int) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= most:
        raise InputError(f"this is not a whole number from 1 to {most:,}")
    return int(text)


def _epsilon(text: str) -> str:
    at_most(text, "this")
    return text


def _mode(text: str) -> str:
    if text not in _MODES:
        raise InputError(f"this is not one of {', '.join(_MODES)}")
    return text
