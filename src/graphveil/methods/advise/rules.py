"""Which method for which trust: one rule each, the first that fits a declaration is taken.

Every sentence has its figures in benchmarks/README.md, "The panel", or on the page that the rule names.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final

TRUSTS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "local": "nobody: people randomize features and labels on their devices; the graph is public",
        "links": "nobody: people randomize their lists of contacts on their devices",
        "curator": "a curator, who holds all data and trains; everybody else sees what comes out",
        "release": "a curator, who publishes a graph once; everybody may store it",
        "federation": "nobody but one's own organisation: two to five of them, and a server",
    }
)
_ALL: Final = ("features", "labels", "edges")


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
    """

    trust: str
    method: str | None
    protects: tuple[str, ...]
    wants: tuple[str, ...]
    needs: tuple[str, ...]
    why: str
    loses: str
    open: str
    page: str
    budget: str = ""
    epsilon: float = math.inf
    settings: Mapping[str, Any] = field(default_factory=dict)
    over: tuple[str, ...] = ()
    panel: str | None = None
    least_degree: float = 0.0

    def fits(self, private: tuple[str, ...], degree: float | None) -> bool:
        """Whether the rule is for a graph of which these parts are private, with so many contacts a person."""
        dense = self.least_degree == 0 or (degree is not None and degree >= self.least_degree)
        return bool(set(self.wants) & set(private)) and not set(self.needs) & set(private) and dense

    def choice(self, epsilon: float | None = None) -> dict[str, Any]:
        """Return the settings at an epsilon, by default the advised one."""
        return {**self.settings, **({self.budget: epsilon or self.epsilon} if self.budget else {})}


RULES: Final = (
    Rule(
        "local",
        "label-pool",
        ("features", "labels"),
        wants=("labels",),
        needs=("edges",),
        budget="epsilon_y",
        epsilon=2.0,
        over=("label-propagation", "majority"),
        panel="local",
        why="label-pool is best, or within 0.5 points of the best, in 35 of 36 cells of the panel. Do not collect "
        "features: methods that also pay for them (lpgnn) were above the labels-only controls in 1 of 14 cells",
        loses="with some hundred labels at epsilon 1 where contacts say little of classes (Reed98, gender) nothing "
        "beats the majority",
        open="who is connected to whom, and whose labels train and validate",
        page="docs/reference/methods.md",
    ),
    Rule(
        "local",
        None,
        ("features",),
        wants=("features",),
        needs=("labels", "edges"),
        why="labels and contacts are public, and what they say costs nothing (label-pool --epsilon-y inf). Do not "
        "collect features: at a local epsilon they added nothing measurable on the graphs measured",
        loses="nothing is spent",
        open="everything that is public already",
        page="docs/reference/methods.md",
    ),
    Rule(
        "links",
        "links",
        ("edges",),
        wants=("edges",),
        needs=("features", "labels"),
        budget="epsilon_a",
        epsilon=4.0,
        over=("no-edges",),
        panel="links",
        why="links is best, or within 0.5 points of the best, in 22 of 27 cells, and above no lists in all 27",
        loses="where contacts say next to nothing of classes (Twitch, gender) lists are left out, buying nothing: what "
        "is gained over a perceptron there comes from other readers of features",
        open="features and labels; several connections of one person at once cost as many times epsilon",
        page="docs/tutorials/private-links.md",
    ),
    Rule(
        "links",
        "links",
        _ALL,
        wants=("edges",),
        needs=(),
        budget="epsilon_a",
        epsilon=4.0,
        settings={"epsilon_x": None, "epsilon_y": 2.0},
        over=("label-propagation", "majority"),
        why="lists and labels are randomized and features are not collected: at a local epsilon they added nothing "
        "measurable; not on the panel, so the rehearsal alone speaks for it",
        loses="with few contacts a person, noise of labels and of lists together leave little",
        open="whose labels train and validate; several connections of one person at once cost as many times epsilon",
        page="docs/tutorials/private-links.md",
    ),
    Rule(
        "curator",
        "class-sums",
        ("edges",),
        wants=("edges",),
        needs=("features", "labels"),
        budget="epsilon",
        epsilon=4.0,
        over=("no-edges",),
        panel="curator",
        why="class-sums is best, or within 0.3 points of the best, in all 38 cells of the panel: much on universities, "
        "some points on citation and shopping graphs",
        loses="nothing measurable where contacts say little of classes (Twitch RU, Reed98 by gender, proteins)",
        open="features and labels: the model may show them; several edges at once cost as many times epsilon",
        page="docs/how-to/curator.md",
    ),
    Rule(
        "curator",
        "node-sums",
        _ALL,
        wants=("features", "labels"),
        needs=(),
        least_degree=20.0,
        budget="epsilon",
        epsilon=8.0,
        over=("no-edges",),
        panel="nodes",
        why="whole people are protected, and from some 20 contacts a person node-sums gains over dp-mlp: 20.0 to 25.1 "
        "points at epsilon 8 on universities",
        loses="on sparse citation graphs (-1.3 to -8.3 points) and where edges say little (Twitch): dp-mlp there",
        open="who takes part, and a person's own prediction, which is for that person alone",
        page="docs/how-to/curator.md",
    ),
    Rule(
        "curator",
        "dp-mlp",
        _ALL,
        wants=("features", "labels"),
        needs=(),
        budget="epsilon",
        epsilon=8.0,
        why="whole people are protected, and with few contacts a person, or an unknown number, edges cost more than "
        "they say: node-sums lost 1.3 to 8.3 points to dp-mlp on Cora-ML",
        loses="reads no edge; with 20 and more contacts a person node-sums does better (say --degree)",
        open="who takes part, and a person's own prediction, which is for that person alone",
        page="docs/how-to/curator.md",
    ),
    Rule(
        "release",
        "class-counts",
        ("edges",),
        wants=("edges",),
        needs=("features", "labels"),
        budget="epsilon_a",
        epsilon=4.0,
        panel="release",
        why="class-counts is best, or within 0.5 points of the best, in 20 of 21 cells of the panel; made edges "
        "(edge-rand, lap-graph) lost up to 45 points",
        loses="nothing measurable on Reed98 by gender, and behind public edges alone at epsilon 1 on proteins",
        open="features, labels and public edges, which are published as they are",
        page="docs/how-to/releases.md",
    ),
    Rule(
        "release",
        None,
        _ALL,
        wants=("features", "labels"),
        needs=(),
        why="a graph whose features or labels are private was published with a lift on none of the graphs measured: "
        "let a curator train (--trust curator), or declare public what is",
        loses="nothing is spent",
        open="nothing is published",
        page="docs/how-to/releases.md",
    ),
    Rule(
        "federation",
        "guesses",
        _ALL,
        wants=_ALL,
        needs=(),
        budget="epsilon",
        epsilon=8.0,
        panel="federation",
        why="guesses is the one mode that stays useful at a finite epsilon; with unit=person epsilon is the price of a "
        "whole person",
        loses="nothing on Twitch; at epsilon 2 on Cora within the noise",
        open="who takes part, and from the server and each other what a holder's own model already shows",
        page="docs/how-to/federation.md",
    ),
)


def rule_for(trust: str, private: tuple[str, ...] | None, degree: float | None) -> Rule | None:
    """Return the first rule of a trust that fits, or None.

    Args:
        trust: out of `TRUSTS`.
        private: what the owner declared; None for a public data set, of which the first rule's parts are private.
        degree: contacts of a person, where that is public or was said.
    """
    # Order matters: the first rule that fits is the one whose figures are the best.
    of_trust = [rule for rule in RULES if rule.trust == trust]
    if private is None:
        return of_trust[0]
    return next((rule for rule in of_trust if rule.fits(private, degree)), None)
