"""What the name of a column suggests, whatever it holds: its role, or what it may hold.

A range or a list read off the data would reveal some of it, so no value is read here. Where a name suggests nothing,
the owner has to answer.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date
from types import MappingProxyType
from typing import Final

from graphveil.files.columns import Integer, Number, YesNo


@dataclass(frozen=True)
class Suggestion:
    """What the name of a column suggests."""

    kind: object  # as `columns` of a graph.toml declares it; None: nothing is suggested
    reason: str  # the public knowledge behind it, or why there is none
    identifies: bool = False  # whether the column tells who somebody is, which suggests to leave it out


#: Names of columns that tell who somebody is, alone or behind other words (`work_phone`).
_IDENTIFYING: Final = re.compile(
    r"name|login|alias|(.+_)?(first|last|full|family|given|middle|user|nick|member|person|customer|employee|patient|"
    r"student)_?name|(.+_)?(forename|surname|e_?mail|mail|e_?mail_address|phone|telephone|(phone|mobile)_(number|nr|no)|"
    r"address|street|zip|zip_?code|post_?code|postal_code|ssn|social_security_number|passport|passport_(number|nr|no)|"
    r"iban|birthday|birth_?date|date_of_birth|dob|ip|ip_address|latitude|longitude|lat|lon|lng|gps)"
)
_WORD = YesNo.word
#: A pattern of names, what such a column may hold, and why; the first pattern that fits counts.
_KINDS: Final[tuple[tuple[str, object, str], ...]] = (
    (r"(is|has|can|was|wants|owns|accepts)_.+|.+_flag", _WORD, "a name such as is_... or has_... asks yes or no"),
    (r"year_of_birth|birth_?year|yob", "birth year", "years in which people who live were born"),
    (r"(.+_)?age(_years)?", {Integer.word: [0, 120]}, "ages of people, in years"),
    (r"(.+_)?(percent|percentage|pct)", {Number.word: [0, 100]}, "percentages"),
    (r"(.+_)?(fraction|probability|proportion)", {Number.word: [0, 1]}, "shares of a whole"),
    (r"(.+_)?hours?_(per|a)_week|weekly_hours", {Number.word: [0, 168]}, "a week has 168 hours"),
    (r"(.+_)?hours?_(per|a)_day|daily_hours", {Number.word: [0, 24]}, "a day has 24 hours"),
    (r"(.+_)?days?_(per|a)_week", {Integer.word: [0, 7]}, "a week has 7 days"),
    (r"(.+_)?quarter", {Integer.word: [1, 4]}, "a year has 4 quarters"),
    (r"(.+_)?month", {Integer.word: [1, 12]}, "a year has 12 months"),
    (r"(calendar_)?week|week_of_year", {Integer.word: [1, 53]}, "weeks of a year are numbered 1 to 53"),
    (r"(.+_)?weekday|day_of_week", {Integer.word: [1, 7]}, "a week has 7 days"),
    (r"day_of_month", {Integer.word: [1, 31]}, "a month has at most 31 days"),
    (r"(.+_)?hour(_of_day)?", {Integer.word: [0, 23]}, "hours of a day are numbered 0 to 23"),
)
_EARLIEST_BIRTH: Final = 1900
_NOTHING: Final = Suggestion(None, "its name says nothing about what it may hold")
ROLES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "id": "id node node_id nodeid person person_id user user_id userid member_id customer_id account account_id "
        "employee_id patient_id student_id",
        "label": "label labels class y target",
        "split": "split fold partition",
        "source": "source src from from_id source_id from_node_id sender caller follower payer u",
        "target": "target dst to to_id target_id to_node_id receiver recipient callee followee payee destination v",
    }
)
"""Role -> common names of such columns, the likeliest first."""


def suggestion_of(column: str) -> Suggestion:
    """Return what the name of a column suggests."""
    name = _words(column)
    # `has_phone` does not identify anybody.
    if _IDENTIFYING.fullmatch(name) and not re.fullmatch(_KINDS[0][0], name):
        return Suggestion(None, "it tells who somebody is", identifies=True)
    for pattern, kind, reason in _KINDS:
        if re.fullmatch(pattern, name):
            years = {Integer.word: [_EARLIEST_BIRTH, date.today().year]}
            return Suggestion(years if kind == "birth year" else kind, reason)
    return _NOTHING


def role_of(role: str, columns: Iterable[str]) -> str | None:
    """Return the column whose name is common for a role; None where there is none.

    Args:
        role: one of `ROLES`.
    """
    named = {_words(column): column for column in columns}
    return next((named[name] for name in ROLES[role].split() if name in named), None)


def _words(column: str) -> str:
    """`birthYear` and `Birth year` as `birth_year`."""
    return re.sub(r"[^a-z0-9]+", "_", re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", column).lower()).strip("_")
