"""What a guarantee allows an adversary at most, and whether it speaks of the secret at all.

    TPR <= min( e^eps FPR + delta,  1 - e^-eps (1 - delta - FPR) )        (Kairouz, Oh, Viswanath, ICML 2015, thm 2.1)
    TPR - FPR <= (e^eps - 1 + 2 delta) / (e^eps + 1)                      where the two lines meet

The limit is on one secret that is there or not while all else stays: whether *this* pair is an edge. An attack may lie
above it where members differ from others in what is not secret (friends are alike without any edge); the attack's own
baseline tells such cases.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from graphveil.errors import InputError
from graphveil.graphs import Graph
from graphveil.privacy import Guarantee
from graphveil.privacy.accounting.guessing import advantage
from graphveil.privacy.statement.unit import Aspect

SECRETS = ("edge", "node", "features", "label")
#: secret -> what a unit must cover, so that its epsilon bounds an attack on the secret: half an edge bounds no edge.
_COVERED: dict[str, frozenset[Aspect]] = {
    "edge": frozenset({"edge", "edges"}),
    "features": frozenset({"features"}),
    "label": frozenset({"label"}),
    "node": frozenset(),
}

_JOINT = "joint privacy is everybody else's view: it does not cover the answer about a node itself"


@dataclass(frozen=True)
class Limit:
    """The epsilon and delta that bound an attack; epsilon inf where nothing does, and the note says why."""

    epsilon: float
    delta: float
    note: str

    @property
    def exists(self) -> bool:
        """Whether anything is bounded."""
        return math.isfinite(self.epsilon)

    def tpr(self, false_alarms: float) -> float | None:
        """Return the largest share of members found at a share of false alarms, or None."""
        return float(bound(np.array([false_alarms]), self.epsilon, self.delta)[0]) if self.exists else None

    @property
    def advantage(self) -> float | None:
        """The largest TPR - FPR, or None."""
        return advantage(self.epsilon, self.delta) if self.exists else None


def bound(false_alarms: np.ndarray, epsilon: float, delta: float) -> np.ndarray:
    """Return the largest TPR [k] that (epsilon, delta) allows any test at each FPR; 1 everywhere for epsilon inf.

    Args:
        false_alarms: FPR [k], each in [0, 1].
        epsilon: of the pair of worlds told apart, in nats; may be inf.
        delta: of that pair, in [0, 1].
    """
    if math.isinf(epsilon):
        return np.ones_like(false_alarms)
    # exp overflows above 709; the bound is clipped to 1 long before.
    grown = math.exp(min(epsilon, 700.0)) * false_alarms + delta
    mirrored = 1 - math.exp(-epsilon) * (1 - delta - false_alarms)
    return np.clip(np.minimum(grown, mirrored), 0.0, 1.0)


def no_limit(why: str) -> Limit:
    return Limit(math.inf, 0.0, why)


def limit_of(method: object, secret: str) -> Limit:
    """Return the epsilon and delta by which a method's guarantee binds an attack on a secret, or `nothing` and why.

    "edge" is one undirected relationship: both of its entries, or both lists that name it. "node" is one node with all
    that belongs to it, as "node" is said by the curator's methods; a node's label or features alone are no node.

    Args:
        method: fitted; one without a guarantee has no limit.
        secret: one of `SECRETS`.
    """
    guarantee: Guarantee | None = getattr(method, "guarantee", None)
    if guarantee is None:
        return no_limit("the method states no guarantee")
    # A run with reproducible noise is attacked all the same: its noise has the right law for whoever lacks the seed.
    caveat = caveat_of(guarantee)
    # Preferred over the guarantee's parts, whose epsilon may be of a single list entry.
    relationship = getattr(method, "epsilon_relationship", None)
    if secret == "edge" and relationship is not None:
        if math.isinf(relationship):
            return no_limit("the method does not protect edges")
        return Limit(float(relationship), guarantee.delta, f"epsilon of one relationship{caveat}")
    if _is_node(method):
        if math.isinf(guarantee.epsilon):
            return no_limit("the method protects nothing")
        if secret == "edge" and getattr(getattr(method, "privacy", None), "rule", None) == "lists":
            epsilon, delta = guarantee.epsilon, guarantee.delta
            note = f"twice the epsilon of one node: a relationship stands in two lists{caveat}"
            # Two nodes' lists change with one relationship: group privacy for two, delta grows by e^epsilon.
            return Limit(2 * epsilon, min(1.0, delta * (1 + math.exp(min(epsilon, 700.0)))), note)
        # A node's epsilon bounds every part: whoever cannot tell that it is there cannot tell its label either.
        return Limit(guarantee.epsilon, guarantee.delta, f"epsilon of {guarantee.unit.text}{caveat}")
    # The part that covers the secret and no other: the sum of all parts would allow more than this secret was promised.
    for part in _parts(guarantee):
        if part.unit.covers & _COVERED[secret] and math.isfinite(part.epsilon):
            return Limit(part.epsilon, part.delta, f"epsilon of {part.unit.text}{caveat}")
    if math.isinf(guarantee.epsilon):
        return no_limit("the method protects nothing")
    return no_limit(f"outside what the method protects, which is {guarantee.unit.text}{caveat}")


def require_truth(graph: Graph, secret: str, where: str) -> None:
    """Refuse a release whose noise is on the secret: what it lists is public, and to find it is no leak.

    Args:
        graph: by which an attack is scored.
        secret: one of `SECRETS`.
        where: the name of the attack.
    """
    origin = graph.get("release")
    if origin is not None and limit_of(origin, secret).exists:
        what = "the graph is a release: the original graph is needed to measure success"
        raise InputError(what, where=where, remedy="give it with --truth")


def caveat_of(guarantee: Guarantee) -> str:
    """Return the warning that follows every statement about a void guarantee; nothing for one that holds."""
    if guarantee.void is None or math.isinf(guarantee.epsilon):
        return ""
    return f" (void: {guarantee.void}; the limit is what it would be)"


def limit_of_answers(method: object) -> Limit:
    """Return what a guarantee says of a node's features where the adversary sees the answer about that very node. Where
    whole nodes are protected, nothing: the answer is made of the node's own features, for its own eyes.
    """
    return no_limit(_JOINT) if _is_node(method) else limit_of(method, "features")


def _is_node(method: object) -> bool:
    """Whether the curator's unit is a whole node, which covers each of its parts."""
    return getattr(getattr(method, "privacy", None), "unit", None) == "node"


def _parts(guarantee: Guarantee) -> Iterator[Guarantee]:
    """Every guarantee inside, the smallest first; a composed one with parts speaks through them alone."""
    for part in guarantee.parts:
        yield from _parts(part)
    if not guarantee.parts:
        yield guarantee
