"""The price and the guarantee of publishing one graph: features, labels and edges of a trusted curator's graph, once.

    features   one node's whole feature vector, epsilon_x, by one of RELEASE_FEATURES
    labels     one node's label, epsilon_y, by randomized response
    edges      one private undirected edge, epsilon_a, by one of EDGE_METHODS

Both follow from public facts: the schema, the nodes, the public edges and who may have private ones.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

from graphveil.errors import InputError
from graphveil.files.serial import json_safe
from graphveil.graphs import GraphSchema
from graphveil.mechanisms import FeatureRR, PairDomain, RandomizedResponse
from graphveil.mechanisms.catalogue import mechanism_named
from graphveil.methods.base.people.account import EXTRACTOR
from graphveil.methods.base.people.local_privacy import LocalPrivacy
from graphveil.methods.base.settings import require_ranges
from graphveil.methods.release.entries import CHAINS, CLASS_COUNTS, EDGE_METHODS, RELEASE_FEATURES, TREES
from graphveil.methods.release.scores import Scores
from graphveil.privacy import Guarantee, Ledger, Spend, assume, compose, require_budget, together
from graphveil.privacy.statement.observer import RELEASE_READERS
from graphveil.privacy.statement.unit import NODE_DECLARED_PUBLIC
from graphveil.runtime.checks import require_choice

UNITS = ("features", "labels", "edges")
OPEN = {unit: assume(f"{unit}-published-open") for unit in UNITS}
LABELLED = assume("labelled-public")
#: An assumption of a device's report -> the one of a release in its place; None: dropped, as nobody takes part himself.
_ASSUMPTION_OF_RELEASE = {"reports-once": assume("released-once"), "participation-public": None}


@dataclass(frozen=True)
class ReleasePrivacy:
    """The budgets and mechanisms of one release; public, and all that a guarantee depends on.

    Attributes:
        epsilon_x, epsilon_a, epsilon_y: budgets of a feature vector, a private edge, a label; inf: not protected.
        features: one of RELEASE_FEATURES; delta: for "gaussian" alone; bins: for "feature-rr" alone.
        scores: the share of each feature in epsilon_x, for "feature-rr" alone; None: equal shares.
        edges: one of EDGE_METHODS, or CLASS_COUNTS.
        tree_share, count_share: the share of epsilon_a for a tree drawn with the help of private edges (CHAINS), and
            for the number of edges ("lap-graph").
    """

    epsilon_x: float
    epsilon_a: float
    epsilon_y: float = math.inf
    features: str = "multi-bit"
    edges: str = "public-tree"
    delta: float = 1e-10
    bins: int = 10
    tree_share: float = 0.5
    count_share: float = 0.01
    scores: Scores | None = None

    def __post_init__(self) -> None:
        for name in ("epsilon_x", "epsilon_a", "epsilon_y"):
            require_budget(name, getattr(self, name), "what is declared public")
        for name, allowed in (("features", RELEASE_FEATURES), ("edges", (*EDGE_METHODS, CLASS_COUNTS))):
            require_choice(allowed, **{name: getattr(self, name)})
        require_ranges(self)
        if self.edges == CLASS_COUNTS and self.protected not in ((), ("edges",)):
            # Groups are public labels, or the classes that public features lead to expect: private ones would not be
            # paid.
            raise InputError("class-counts publishes features and labels as they are", allowed="edges protected alone")
        if self.scores is not None and self.features != "feature-rr":
            raise InputError(
                f"{self.features} gives every feature the same", remedy="leave out scores, or use feature-rr"
            )

    @property
    def protected(self) -> tuple[str, ...]:
        """The units of UNITS that noise protects."""
        # In the order of UNITS, as in notes, ledgers and guarantees.
        budgets = dict(zip(UNITS, (self.epsilon_x, self.epsilon_y, self.epsilon_a), strict=True))
        return tuple(unit for unit, epsilon in budgets.items() if math.isfinite(epsilon))

    @property
    def by_blocks(self) -> bool:
        """Whether an engine has anything to do: all mechanisms but trees of edges work by blocks."""
        return any(unit != "edges" or self.edges not in TREES for unit in self.protected)

    def feature_mechanism(self, schema: GraphSchema) -> Any:
        """Return the feature mechanism for a schema, or None where features are public."""
        if math.isinf(self.epsilon_x):
            return None
        if self.features != "feature-rr":
            return LocalPrivacy(self.epsilon_x, math.inf, self.features, self.delta).features(schema)
        facts: dict[str, Any] = {"dimension": schema.dimension, "low": schema.low, "high": schema.high}
        shares = None if self.scores is None else self.scores.shares
        return FeatureRR(epsilon=self.epsilon_x, bins=self.bins, shares=shares, **facts)

    def label_mechanism(self, classes: int) -> RandomizedResponse | None:
        return None if math.isinf(self.epsilon_y) else RandomizedResponse(epsilon=self.epsilon_y, classes=classes)

    def edge_budgets(self) -> dict[str, float]:
        """Return the price of each step on the private edges, in order; they add up to epsilon_a."""
        if math.isinf(self.epsilon_a):
            return {}
        if self.edges in CHAINS:
            tree = self.epsilon_a * self.tree_share
            # By subtraction: two products could add up to slightly more than was declared.
            return {"tree": tree, "block counts": self.epsilon_a - tree}
        names = {"public-tree": "block counts", CLASS_COUNTS: "class counts"}
        return {names.get(self.edges, "edges"): self.epsilon_a}

    def open_ledger(self) -> Ledger:
        extra = [] if self.scores is None else list(self.scores.spends)
        delta = self.delta if mechanism_named(self.features).takes("delta") and math.isfinite(self.epsilon_x) else 0.0
        # A private estimate of the scores was paid by the same people for the same features: it counts with them.
        paid = math.fsum(spend.epsilon for spend in extra), math.fsum(spend.delta for spend in extra)
        return Ledger.open(
            {
                "features": (self.epsilon_x + paid[0], delta + paid[1]),
                "labels": (self.epsilon_y, 0.0),
                "edges": (self.epsilon_a, 0.0),
            }
        )

    def spends(self, schema: GraphSchema, domain: PairDomain | None) -> tuple[Spend, ...]:
        """Return the spends of one release, in order.

        Args:
            schema, domain: the public facts; the protected pairs, None where edges are public.
        """
        spends = [] if self.scores is None else list(self.scores.spends)
        mechanism = self.feature_mechanism(schema)
        if mechanism is not None:
            facts: dict[str, Any] = {"dimension": schema.dimension, "low": schema.low, "high": schema.high}
            if self.features == "feature-rr":
                facts |= {"bins": self.bins, "shares": "equal" if self.scores is None else self.scores.stamp}
            cost = mechanism.guarantee
            spends.append(Spend("features", "features", self.features, facts, cost.epsilon, cost.delta))
        labels = self.label_mechanism(len(schema.classes))
        if labels is not None:
            facts = {"classes": len(schema.classes)}
            spends.append(Spend("labels", "labels", "randomized-response", facts, labels.guarantee.epsilon))
        if domain is not None:
            facts = {"nodes": domain.nodes, "private nodes": len(domain.ids), "protected pairs": domain.size}
            steps = self.edge_budgets().items()
            spends += [Spend(name, "edges", self.edges, facts, epsilon) for name, epsilon in steps]
        return tuple(spends)

    def guarantee(self, schema: GraphSchema, domain: PairDomain | None, void: str | None = None) -> Guarantee:
        """Return what a release protects; unprotected parts are among its assumptions.

        Args:
            schema, domain, void: the public facts; the protected pairs, None where edges are public; why nothing holds.
        """
        parts = self._node_guarantees(schema)
        if domain is not None:
            from graphveil.hierarchy.markov import ASYMPTOTIC
            from graphveil.mechanisms.base.guarantees import pair_guarantee

            # Beside features, which are replaced, the relation of edges is replacement too: of whether an edge exists.
            edge = pair_guarantee(math.fsum(self.edge_budgets().values()), domain)
            edge = replace(edge, assumes=(ASYMPTOTIC, *edge.assumes)) if self.edges in CHAINS else edge
            parts.append(replace(edge, unit=edge.unit.existence(), relation="replace") if parts else edge)
        public_parts = tuple(OPEN[unit] for unit in UNITS if unit not in self.protected)
        # The release no longer shows that an extractor was used.
        public_parts = (*([EXTRACTOR] if schema.extracted and self.protected else []), *public_parts)
        if not parts:
            return Guarantee(
                unit=NODE_DECLARED_PUBLIC,
                relation="replace",
                model="central",
                epsilon=math.inf,
                delta=0.0,
                against=RELEASE_READERS,
                assumes=public_parts,
            )
        total = compose(parts, unit=together(part.unit for part in parts))
        # One part alone is its own guarantee; composing it would only add a sentence on composition.
        total = replace(parts[0], parts=()) if len(parts) == 1 else total
        first = tuple(fact for fact in total.assumes if fact.code == "asymptotic")  # stated first
        rest = tuple(fact for fact in total.assumes if fact not in first)
        return replace(total, assumes=(*first, *rest, *public_parts), void=void)

    def _node_guarantees(self, schema: GraphSchema) -> list[Guarantee]:
        """Return the guarantees of features and label, with a curator in place of each person."""
        features, labels = self.feature_mechanism(schema), self.label_mechanism(len(schema.classes))
        local = [] if features is None else [features.guarantee]
        if labels is not None:
            # Nothing is drawn for an unknown label: it is published as unknown.
            local.append(replace(labels.guarantee, assumes=(*labels.guarantee.assumes, LABELLED)))
        if self.scores is not None and self.scores.guarantee is not None:
            local.insert(0, self.scores.guarantee)
        return [
            replace(
                part,
                unit=part.unit.of("node"),
                model="central",
                against=RELEASE_READERS,
                assumes=tuple(filter(None, (_ASSUMPTION_OF_RELEASE.get(fact.code, fact) for fact in part.assumes))),
            )
            for part in local
        ]


def settings_of(privacy: ReleasePrivacy) -> dict[str, Any]:
    """Return the settings of a release that have an effect, as JSON values."""
    settings: dict[str, Any] = {name: getattr(privacy, name) for name in ("epsilon_x", "epsilon_a", "epsilon_y")}
    settings = json_safe(settings)
    if "features" in privacy.protected:
        settings["features"] = privacy.features
        settings |= {"delta": privacy.delta} if mechanism_named(privacy.features).takes("delta") else {}
        settings |= {"bins": privacy.bins} if privacy.features == "feature-rr" else {}
        if privacy.scores is not None:
            settings |= {"scores": privacy.scores.source, "scores_stamp": privacy.scores.stamp}
    if "edges" in privacy.protected:
        settings["edges"] = privacy.edges
        settings |= {"tree_share": privacy.tree_share} if privacy.edges in CHAINS else {}
        settings |= {"count_share": privacy.count_share} if privacy.edges == "lap-graph" else {}
    return settings
