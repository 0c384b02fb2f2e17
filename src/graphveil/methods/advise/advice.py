"""The answer to one trust: which method, why, what to expect of it, and what an adversary may then know."""

from __future__ import annotations

import math
import time
from collections import defaultdict
from dataclasses import asdict, dataclass, replace
from typing import Any

from graphveil.files.serial import json_safe
from graphveil.graphs.value.parts import GraphParts
from graphveil.methods.advise.goal import Goal, Reached, smallest
from graphveil.methods.advise.rehearsal import (
    Band,
    PublicFacts,
    Rehearsal,
    World,
    facts_of,
    pilot_world,
    rehearse,
    worlds_of,
)
from graphveil.methods.advise.rules import RULES, TRUSTS, Cell, Rule, cells, most_alike, rule_for
from graphveil.methods.registry import METHODS, plan
from graphveil.privacy.accounting.guessing import adversary, guesses_about
from graphveil.runtime.progress import ProgressCallback

#: What `guesses` costs, which is no method of one party.
_FEDERATED, _FEDERATED_DELTA = "guesses", 1e-5


@dataclass(frozen=True)
class Request:
    """What advice is wanted for.

    Attributes:
        declared: the parts that the owner declares private; None for a public data set.
        epsilon: to rehearse at; None: the advised one. degree: contacts of a person, where that is publicly known.
        goal: what should be reached, or None. rehearsed: whether to rehearse at all.
        pilot: a graph that the user declares public or paid, to rehearse on; None: made ones.
    """

    declared: tuple[str, ...] | None
    epsilon: float | None = None
    degree: float | None = None
    goal: Goal | None = None
    pilot: GraphParts | None = None
    rehearsed: bool = True


@dataclass(frozen=True)
class Advice:
    """What to take for one trust.

    Attributes:
        trust: who is trusted; rule: the rule that fits, or None where none does. facts: what was looked at.
        epsilon: advised, asked for, or the answer to a goal; None where nothing is spent.
        adversary: what somebody who sees the results may know, in words; None where nothing is spent.
        measured: what was measured of all methods of the trust on the graphs most like this one, whatever the epsilon.
        rehearsal: what the method brought at that epsilon; None: not rehearsed. on: what it was rehearsed on.
        reached: the answer to a goal, or None. seconds: that all of it took.
    """

    trust: str
    rule: Rule | None
    facts: PublicFacts
    epsilon: float | None
    adversary: str | None
    measured: tuple[Cell, ...]
    rehearsal: Rehearsal | None
    on: str
    reached: Reached | None
    seconds: float

    @property
    def settings(self) -> dict[str, Any]:
        return {} if self.rule is None else self.rule.choice(self.epsilon)

    @property
    def alike(self) -> tuple[Cell, ...]:
        """The method's lift on each of those graphs, at the nearest epsilon that was measured there."""
        if self.rule is None or self.rule.panel is None or self.epsilon is None:
            return ()
        lifts = [cell for cell in self.measured if cell.method == self.rule.method and not math.isnan(cell.lift)]
        # Epsilons are compared as ratios: from 1 to 2 is as far as from 4 to 8.
        apart = {cell: abs(math.log(cell.epsilon / self.epsilon)) for cell in lifts}
        graphs = dict.fromkeys(cell.graph for cell in lifts)
        return tuple(min((cell for cell in lifts if cell.graph == graph), key=apart.__getitem__) for graph in graphs)

    @property
    def expected(self) -> Band | None:
        """The lift to expect, by the rehearsal, else by the graphs of the panel that are most alike; None: unknown."""
        if self.rehearsal is not None:
            return self.rehearsal.band("lift")
        lifts = [cell.lift / 100 for cell in self.alike]
        return Band(min(lifts), max(lifts)) if lifts else None

    def to_dict(self) -> dict[str, Any]:
        rule, band = self.rule, self.expected
        trials = () if self.rehearsal is None else self.rehearsal.trials
        answer = {
            "trust": self.trust,
            "method": None if rule is None else rule.method,
            "settings": self.settings,
            "why": None if rule is None else rule.why,
            "loses": None if rule is None else rule.loses,
            "not_protected": None if rule is None else rule.open,
            "page": None if rule is None else rule.page,
            "facts": self.facts.to_dict(),
            "adversary": self.adversary,
            "alike": [{"graph": cell.graph, "epsilon": cell.epsilon, "lift": cell.lift / 100} for cell in self.alike],
            "measured": [asdict(cell) for cell in self.measured],
            "expected": None if band is None else band.to_dict(),
            "rehearsed_on": self.on,
            "rehearsal": [
                {
                    "world": trial.world,
                    "accuracy": trial.accuracy.to_dict(),
                    "lift": trial.lift.to_dict(),
                    "control": trial.control,
                }
                for trial in trials
            ],
            "reached": None if self.reached is None else self.reached.to_dict(),
            "seconds": self.seconds,
        }
        safe: dict[str, Any] = json_safe(answer)
        return safe


def advise(trust: str, graph: GraphParts, request: Request, progress: ProgressCallback | None = None) -> Advice:
    """Return what to take for one trust; private values of `graph` are not read.

    Args:
        trust: out of `rules.TRUSTS`.
        request: what is declared and wanted.
    """
    began = time.perf_counter()
    private = tuple(part for part in ("features", "labels", "edges") if part in (request.declared or ()))
    degree = request.degree if "edges" in private else graph.edge_index.shape[1] / graph.num_nodes
    # Where edges are public the user's word is not needed, and cannot contradict them.
    rule = rule_for(trust, None if request.declared is None else private, degree, graph.schema.directed)
    hidden = tuple(dict.fromkeys((*private, *(() if rule is None else rule.protects))))
    facts = facts_of(graph, hidden, request.degree)
    if rule is None or rule.method is None:
        return Advice(trust, rule, facts, None, None, (), None, "", None, time.perf_counter() - began)
    epsilon = request.epsilon or rule.epsilon
    worlds, on, seeds = _worlds(rule, graph, facts, request)
    reached = rehearsal = None
    # A federation has no rehearsal here: it would take all its parties.
    if worlds:
        rehearsals: dict[float, Rehearsal] = {}

        def at(price: float) -> Rehearsal:
            if price not in rehearsals:
                chosen, controls = rule.choice(price), rule.over
                keywords: dict[str, Any] = {"seeds": seeds, "progress": progress}
                rehearsals[price] = rehearse(str(rule.method), chosen, worlds, controls, **keywords)
            return rehearsals[price]

        if request.goal is not None:
            what = request.goal.what
            reached = smallest(request.goal, lambda price: at(price).band(what))
            # The upper end of the band: who takes the lower one counts on luck.
            epsilon = reached.sure or epsilon
        rehearsal = at(epsilon)
    words, measured = _adversary(rule, graph, epsilon), _measured(rule, facts)
    return Advice(trust, rule, facts, epsilon, words, measured, rehearsal, on, reached, time.perf_counter() - began)


def _measured(rule: Rule, facts: PublicFacts) -> tuple[Cell, ...]:
    """Return what was measured of each method of a rule's trust and each unit, on the graphs most like this one."""
    of: dict[tuple[str, str | None], list[Cell]] = defaultdict(list)
    for panel in dict.fromkeys(other.panel for other in RULES if other.trust == rule.trust and other.panel):
        for cell in cells(panel):
            of[cell.method, cell.unit].append(cell)
    return tuple(
        cell
        for listed in of.values()
        for graph in most_alike(listed, nodes=facts.nodes, classes=facts.classes, degree=facts.degree)
        for cell in listed
        if cell.graph == graph
    )


def _worlds(rule: Rule, graph: GraphParts, facts: PublicFacts, request: Request) -> tuple[list[World], str, range]:
    """Return what to rehearse on, what that is in words, and the splits and draws of noise."""
    if not request.rehearsed or rule.method not in METHODS:
        return [], "not rehearsed", range(0)
    if request.pilot is not None:
        return [pilot_world(request.pilot)], _PILOT, range(3)
    # A goal decides what is spent, so it takes more than one draw of noise in each world.
    return list(worlds_of(graph, facts)), _MADE, range(1 if request.goal is None else 2)


_PILOT = "a pilot, which you declare public or already paid for: its values were read as they are"
_MADE = "synthetic graphs: public parts as they are, private parts generated"


def _adversary(rule: Rule, graph: GraphParts, epsilon: float) -> str:
    if rule.method == _FEDERATED:
        return guesses_about("one person at one holder", epsilon, _FEDERATED_DELTA)
    return adversary(plan(str(rule.method), graph, rule.choice(epsilon)).guarantee)


def all_trusts(graph: GraphParts, request: Request) -> tuple[Advice, ...]:
    """Return the advice for every trust, by the panel alone.

    Args:
        graph, request: as of `advise`.
    """
    # Five rehearsals would take a minute, and most users trust one party only.
    quick = replace(request, rehearsed=False)
    return tuple(advise(trust, graph, quick) for trust in TRUSTS)
