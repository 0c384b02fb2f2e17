"""The price of a local collection of neighbour lists for one relationship, and its guarantee.

    lists              randomized response on every bit of the list, epsilon_a a bit          (Solitude)
    degree-preserving  a noisy degree, then the noisy list thinned to about that many         (DPRR)
    degree-and-lists   a noisy degree beside the noisy list                                   (Blink)

An undirected relationship is in two lists.  "lower": only the lower id reports it, which costs epsilon_a; "both":
each end reports, which costs 2 epsilon_a; "directed": one link, one list, epsilon_a.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

from graphveil.errors import InputError
from graphveil.graphs import GraphSchema
from graphveil.mechanisms import AdjacencyRR, DegreePreservingRR, NoisyDegree
from graphveil.mechanisms.base.guarantees import REPORTS_ONCE
from graphveil.methods.base.people.account import repeated_report_assumptions
from graphveil.methods.base.people.local_privacy import TOPOLOGY_PUBLIC, with_report_counts
from graphveil.methods.base.people.people import times_paid
from graphveil.methods.links.entries import LIST_MECHANISMS, MODES
from graphveil.privacy import Guarantee, Ledger, Spend, assume, compose, require_budget, together
from graphveil.privacy.statement.observer import SERVER_AND_MODEL
from graphveil.privacy.statement.unit import RELATIONSHIP
from graphveil.runtime.checks import require_choice, require_number

UNIT = "links"
#: The least and the largest share of a noisy degree in a budget.
SHARES = (0.01, 0.99)


@dataclass(frozen=True)
class LinkPrivacy:
    """The privacy settings of a collection of neighbour lists: public, and all that a guarantee depends on.

    Attributes:
        epsilon_a: budget of everything one list sends, per bit; inf sends lists as they are.
        mode: one of MODES; None: "directed" for directed graphs, else "lower".
        mechanism: one of LIST_MECHANISMS.
        degree_share: the share of a noisy degree in epsilon_a, for the last two mechanisms.
    """

    epsilon_a: float
    mode: str | None = None
    mechanism: str = "lists"
    degree_share: float = 0.1

    def __post_init__(self) -> None:
        require_budget("epsilon_a", self.epsilon_a, "links declared public")
        if self.mode is not None:
            require_choice(MODES, mode=self.mode)
        require_choice(LIST_MECHANISMS, mechanism=self.mechanism)
        # Neither part may get so little that its mechanism has no valid noise at ordinary budgets.
        require_number(f"[{SHARES[0]}, {SHARES[1]}]", degree_share=self.degree_share)

    @property
    def public(self) -> bool:
        return math.isinf(self.epsilon_a)

    @property
    def list_epsilon(self) -> float:
        """The part of epsilon_a for the list itself, beside a noisy degree."""
        return self.epsilon_a * (1.0 if self.mechanism == "lists" else 1 - self.degree_share)

    def mode_for(self, schema: GraphSchema) -> str:
        """Return who reports what in a graph of this kind; refuses a mode that does not fit its direction."""
        # "lower" by default: one report at the whole price is better than two at half of it each.
        mode = self.mode or ("directed" if schema.directed else "lower")
        if (mode == "directed") != schema.directed:
            kind = "directed" if schema.directed else "undirected"
            raise InputError(
                f"mode {mode} for a graph whose links are {kind}",
                where=schema.name,
                allowed="directed" if schema.directed else "lower, both",
                remedy="--set mode=directed" if schema.directed else "--set mode=lower",
            )
        return mode

    @property
    def relationship_epsilon(self) -> float:
        # Two independent reports of one bit: their epsilons add up.
        return self.epsilon_a * (2 if self.mode == "both" else 1)

    def parts(self, schema: GraphSchema, nodes: int) -> dict[str, Any]:
        """Return the mechanisms of one list by name; nothing where links are public."""
        if self.public:
            return {}
        facts: dict[str, Any] = {"nodes": nodes, "mode": self.mode_for(schema)}
        if self.mechanism == "lists":
            return {"lists": AdjacencyRR(epsilon=self.epsilon_a, **facts)}
        share = self.degree_share
        if self.mechanism == "degree-preserving":
            return {"lists": DegreePreservingRR(epsilon=self.epsilon_a, degree_share=share, **facts)}
        return {
            "degrees": NoisyDegree(epsilon=self.epsilon_a * share, **facts),
            "lists": AdjacencyRR(epsilon=self.list_epsilon, **facts),
        }

    def declare(self, ledger: Ledger, queries: int = 0) -> Ledger:
        """Return the ledger with the budget of one relationship (or directed link) declared.

        Args:
            queries: how many times a prediction may ask for everybody's list again.
        """
        return ledger.declare(UNIT, self.relationship_epsilon * (1 + queries))

    def spends(self, schema: GraphSchema, nodes: int) -> tuple[Spend, ...]:
        """Return the spend of one collection per relationship: one row, so that rounding never exceeds the budget."""
        facts: dict[str, Any] = {"nodes": nodes, "mode": self.mode_for(schema), "epsilon_a": self.epsilon_a}
        if self.mechanism != "lists":
            facts["degree_share"] = self.degree_share
        parts = self.parts(schema, nodes).values()
        # From the mechanisms' guarantees: rounding of thresholds may cost slightly less than epsilon_a.
        total = math.fsum(part.guarantee.epsilon for part in parts)
        return (Spend("neighbour list report", UNIT, self.mechanism, facts, total),) if parts else ()

    def guarantee(self, people: Guarantee, schema: GraphSchema, nodes: int, ledger: Ledger | None = None) -> Guarantee:
        """Return the guarantee of one person's features and label together with one of its relationships.

        Args:
            people: of features and label; its epsilon is inf where both are public.
            ledger: gives how often the most asked relationship was reported; None: once.
        """
        times = times_paid(ledger, UNIT)
        # Of the most asked relationship, as for features and labels.
        links = [part.guarantee for part in self.parts(schema, nodes).values()] * times
        # Edges are not public here, and the number of reports is stated below.
        dropped = (TOPOLOGY_PUBLIC,) if times == 1 else (TOPOLOGY_PUBLIC, REPORTS_ONCE)
        assumes = tuple(fact for fact in people.assumes if fact not in dropped)
        people = replace(people, assumes=assumes)
        if not links:
            unit = together([people.unit, RELATIONSHIP]) if math.isinf(people.epsilon) else people.unit
            return replace(people, unit=unit, assumes=(*people.assumes, assume("links-sent-open")))
        of_links = replace(compose(links, unit=links[0].unit), against=SERVER_AND_MODEL, parts=())
        link_assumes = (
            *with_report_counts(of_links.assumes, {"its neighbour list": times}),
            *repeated_report_assumptions(ledger),
        )
        of_links = replace(of_links, assumes=tuple(dict.fromkeys(link_assumes)))
        if math.isinf(people.epsilon):
            return replace(of_links, assumes=of_links.assumes + people.assumes)
        # Replacing a relationship by another would change two bits: the relation replaces whether one exists.
        of_links = replace(of_links, unit=of_links.unit.existence(), relation="replace")
        return compose([people, of_links], unit=together([people.unit, of_links.unit]))
