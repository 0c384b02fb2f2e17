"""Which method for which trust, and what was measured on public graphs.

rules.toml holds the rules, of which the first that fits a declaration is taken; panel.toml the figures.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from graphveil.privacy.accounting.printed import rounded_up


@dataclass(frozen=True)
class Rule:
    """A method for a trust.

    Attributes:
        method: its name; None: nothing is worth collecting or publishing.
        protects: what is private under it, and is not read here.
        wants: parts of which the owner must have declared one private, for the rule to fit.
        needs: parts that must not be private.
        least_degree: contacts of a person from which on it fits, where their number is public or was said.
        budget: the option that epsilon goes to; "": nothing is spent. epsilon: its advised value. settings: the others.
        over: the controls that lift is measured against; empty: all that the method has.
        panel: the heading of the panel with its figures, or None.
        why, loses, open: why it, where it loses, and what it does not protect. page: where to read on.
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
        if self.undirected and directed:
            return False
        dense = self.least_degree == 0 or (degree is not None and degree >= self.least_degree)
        return bool(set(self.wants) & set(private)) and not set(self.needs) & set(private) and dense

    def choice(self, epsilon: float | None = None) -> dict[str, Any]:
        return {**self.settings, **({self.budget: epsilon or self.epsilon} if self.budget else {})}


def _value(cell: Any) -> Any:
    """Return a value of the table as a rule has it; TOML has neither tuples nor None."""
    if isinstance(cell, dict):
        return {key: None if value == "none" else value for key, value in cell.items()}
    return tuple(cell) if isinstance(cell, list) else cell


_TABLES = tomllib.loads((Path(__file__).parent / "rules.toml").read_text(encoding="utf-8"))
RULES = tuple(Rule(**{key: _value(value) for key, value in rule.items()}) for rule in _TABLES["rules"])
#: Who may see raw data, in words.
TRUSTS: Final[Mapping[str, str]] = MappingProxyType(_TABLES["trusts"])


def rule_for(trust: str, private: tuple[str, ...] | None, degree: float | None, directed: bool = False) -> Rule | None:
    """Return the first rule of a trust that fits, or None.

    Args:
        trust: out of `TRUSTS`.
        degree: contacts of a person, where that is public or was said.
        private: what the owner declared; None for a public data set, of which the first rule's parts are private.
        directed: whether edges have a direction.
    """
    # Order matters: the first rule that fits is the one whose figures are the best.
    of_trust = [rule for rule in RULES if rule.trust == trust]
    if private is None:
        return of_trust[0]
    return next((rule for rule in of_trust if rule.fits(private, degree, directed)), None)


@dataclass(frozen=True)
class Kind:
    """A graph of the panel: its family, people, mean number of contacts, and classes."""

    family: str
    nodes: int
    degree: float
    classes: int


_PANEL = tomllib.loads((Path(__file__).parent / "panel.toml").read_text(encoding="utf-8"))
GRAPHS: Final[Mapping[str, Kind]] = MappingProxyType({name: Kind(*facts) for name, facts in _PANEL["graphs"].items()})


@dataclass(frozen=True)
class Cell:
    """A measured lift, in points, and accuracy, in percent, of a method on a graph of the panel.

    Attributes:
        lift: NaN where no control was measured. accuracy: None where the lift alone is listed.
        unit: what the epsilon protects; None where all methods of the trust have the same.
    """

    method: str
    graph: str
    epsilon: float
    unit: str | None
    lift: float
    accuracy: float | None = None

    @property
    def sentence(self) -> str:
        kind = GRAPHS[self.graph]
        return (
            f"{self.lift:+.1f} points at epsilon {rounded_up(self.epsilon)} on {self.graph} ({kind.family}; "
            f"{kind.nodes:,} people, {kind.degree:g} contacts, {kind.classes} classes)"
        )


def cells(table: str) -> tuple[Cell, ...]:
    """Return all that was measured under a heading of the panel, such as "curator" or "links"."""
    return tuple(
        Cell(method, graph, float(epsilon), _PANEL["units"].get(table), *figures)
        for method, graphs in _PANEL["measured"][table].items()
        for graph, measured in graphs.items()
        for epsilon, figures in measured.items()
    )


def most_alike(
    measured: Iterable[Cell], *, nodes: int, classes: int, degree: float | None, most: int = 3
) -> tuple[str, ...]:
    """Return the graphs on which something was measured that are most like another, the nearest first.

    Graphs are alike whose people, contacts and classes are about as many (distances of their logarithms).

    Args:
        degree: contacts of a person, or None where that is not public: then it does not count.
    """

    def distance(graph: str) -> float:
        kind = GRAPHS[graph]
        # People count half: what a graph is like depends less on its size than on contacts and classes.
        apart = abs(math.log(kind.nodes / nodes)) / 2 + abs(math.log(kind.classes / classes))
        return apart + (0.0 if degree is None else abs(math.log(kind.degree / max(degree, 0.5))))

    return tuple(sorted(dict.fromkeys(cell.graph for cell in measured), key=distance)[:most])
