"""Which method for which trust: rules.toml, of which the first rule that fits a declaration is taken."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final


@dataclass(frozen=True)
class Rule:
    """A method for a trust.

    Attributes:
        trust: out of `TRUSTS`.
        method: its name; None: nothing is worth collecting or publishing.
        protects: what is private under it, and is not read here.
        wants: parts of which the owner must have declared one private, for the rule to fit.
        needs: parts that must not be private.
        least_degree: contacts of a person from which on it fits, where their number is public or was said.
        budget: the option that epsilon goes to, and its advised value; "": nothing is spent.
        epsilon: that value.
        settings: the others.
        over: the controls that lift is measured against; empty: all that the method has.
        panel: the heading of the panel with its figures, or None.
        why, loses, open: why it, where it loses, and what it does not protect.
        page: where to read on.
        undirected: whether it is for graphs alone whose edges have no direction.
    """

    trust: str
    protects: tuple[str, ...]
    wants: tuple[str, ...]
    needs: tuple[str, ...]
    why: str
    loses: str
    open: str
    page: str
    method: str | None = None
    budget: str = ""
    epsilon: float = math.inf
    settings: Mapping[str, Any] = field(default_factory=dict)
    over: tuple[str, ...] = ()
    panel: str | None = None
    least_degree: float = 0.0
    undirected: bool = False

    def fits(self, private: tuple[str, ...], degree: float | None, directed: bool = False) -> bool:
        """Whether the rule is for a graph of which these parts are private, with so many contacts a person."""
        if self.undirected and directed:
            return False
        dense = self.least_degree == 0 or (degree is not None and degree >= self.least_degree)
        return bool(set(self.wants) & set(private)) and not set(self.needs) & set(private) and dense

    def choice(self, epsilon: float | None = None) -> dict[str, Any]:
        """Return the settings at an epsilon, by default the advised one."""
        return {**self.settings, **({self.budget: epsilon or self.epsilon} if self.budget else {})}


def _read() -> tuple[dict[str, str], tuple[Rule, ...]]:
    tables = tomllib.loads((Path(__file__).parent / "rules.toml").read_text(encoding="utf-8"))
    return tables["trusts"], tuple(
        Rule(**{key: _value(value) for key, value in rule.items()}) for rule in tables["rules"]
    )


def _value(cell: Any) -> Any:
    """A value of the table as a rule keeps it; TOML has neither tuples nor None."""
    if isinstance(cell, dict):
        return {key: None if value == "none" else value for key, value in cell.items()}
    return tuple(cell) if isinstance(cell, list) else cell


_TRUSTS, RULES = _read()
#: Who may see raw data, in words.
TRUSTS: Final[Mapping[str, str]] = MappingProxyType(_TRUSTS)


def rule_for(trust: str, private: tuple[str, ...] | None, degree: float | None, directed: bool = False) -> Rule | None:
    """Return the first rule of a trust that fits, or None.

    Args:
        trust: out of `TRUSTS`.
        private: what the owner declared; None for a public data set, of which the first rule's parts are private.
        degree: contacts of a person, where that is public or was said.
        directed: whether edges have a direction.
    """
    # Order matters: the first rule that fits is the one whose figures are the best.
    of_trust = [rule for rule in RULES if rule.trust == trust]
    if private is None:
        return of_trust[0]
    return next((rule for rule in of_trust if rule.fits(private, degree, directed)), None)
