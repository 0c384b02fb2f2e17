"""The guarantee of a report that one user makes alone, or a curator for all, in words that mechanisms share."""

from __future__ import annotations

from graphveil.mechanisms.edges.pair_domain import PairDomain
from graphveil.privacy import Guarantee
from graphveil.privacy.printed import rounded_up

FEATURES = "one user's whole feature vector"
LABEL = "one user's label"
RELATIONSHIP = "one relationship"
LINK = "one directed link"
ENTRY = "one bit of one neighbour list"
PRIVATE_EDGE = "one private undirected edge"
READERS = "everybody who sees the released graph"
OBSERVERS = "the server and everybody it shares with"


def feature_guarantee(epsilon: float, delta: float, dimension: int, low: float, high: float) -> Guarantee:
    """The local guarantee of one randomized feature vector."""
    number = "its one feature" if dimension == 1 else f"its {dimension} features"
    return _local(
        FEATURES,
        epsilon,
        delta,
        f"the range [{low:g}, {high:g}] of {number} is public and was not read off the data",
    )


def label_guarantee(epsilon: float, classes: int) -> Guarantee:
    """The local guarantee of one randomized label."""
    return _local(LABEL, epsilon, 0.0, f"the list of the {classes} classes is public")


def list_guarantee(epsilon: float, mode: str, nodes: int) -> Guarantee:
    """The local guarantee of noisy neighbour lists (or of what is counted in them), epsilon for one list."""
    ids = f"the {nodes} users and their ids are public"
    if mode == "directed":
        return _local(LINK, epsilon, 0.0, ids, relation="add/remove")
    if mode == "lower":
        who = "of every two users the one with the lower id reports, which is public"
        return _local(RELATIONSHIP, epsilon, 0.0, ids, who, relation="add/remove")
    who = f"both ends of a relationship report it, at epsilon {rounded_up(epsilon)} each"
    return _local(RELATIONSHIP, 2 * epsilon, 0.0, ids, who, relation="add/remove")


def entry_guarantee(epsilon: float, nodes: int) -> Guarantee:
    """The local guarantee of one bit of one list: in an undirected graph a relationship may stand in two lists."""
    return _local(ENTRY, epsilon, 0.0, f"the {nodes} users and their ids are public", relation="add/remove")


def pair_guarantee(epsilon: float, domain: PairDomain) -> Guarantee:
    """The guarantee of one release of a curator who alone knows which protected pairs are related."""
    return Guarantee(
        unit=PRIVATE_EDGE,
        relation="add/remove",
        model="central",
        epsilon=epsilon,
        delta=0.0,
        against=READERS,
        assumes=(
            f"the {domain.nodes} nodes, the {len(domain.ids)} private ones among them and the public edges are public",
            "the graph is released once",
        ),
    )


def _local(unit: str, epsilon: float, delta: float, *assumes: str, relation: str = "replace") -> Guarantee:
    return Guarantee(
        unit=unit,
        relation=relation,
        model="local",
        epsilon=epsilon,
        delta=delta,
        against=OBSERVERS,
        assumes=(*assumes, "every user reports once", "who takes part is public"),
    )
