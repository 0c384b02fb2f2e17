"""The guarantee of a report that one user makes alone, or a curator for all, as mechanisms share it."""

from __future__ import annotations

from graphveil.mechanisms.edges.neighbour_lists import Ids, NeighbourLists
from graphveil.mechanisms.edges.pair_domain import PairDomain, Pairs
from graphveil.privacy import Assumption, Guarantee, ProtectedUnit, assume
from graphveil.privacy.accounting.printed import rounded_up
from graphveil.privacy.statement.observer import RELEASE_READERS, SERVER
from graphveil.privacy.statement.unit import (
    DIRECTED_LINK,
    LIST_ENTRY,
    PRIVATE_EDGE,
    RELATIONSHIP,
    USER_FEATURES,
    USER_LABEL,
)
from graphveil.runtime.sorted_arrays import distinct

REPORTS_ONCE = assume("reports-once")
_PARTICIPATION = assume("participation-public")


def feature_guarantee(epsilon: float, delta: float, dimension: int, low: float, high: float) -> Guarantee:
    """The local guarantee of one randomized feature vector."""
    number = "its one feature" if dimension == 1 else f"its {dimension} features"
    return _local(
        USER_FEATURES, epsilon, delta, assume("feature-range-public", low=f"{low:g}", high=f"{high:g}", number=number)
    )


def label_guarantee(epsilon: float, classes: int) -> Guarantee:
    """The local guarantee of one randomized label out of so many classes."""
    return _local(USER_LABEL, epsilon, 0.0, assume("classes-public", classes=classes))


def list_guarantee(epsilon: float, mode: str, nodes: int) -> Guarantee:
    """The local guarantee of noisy neighbour lists (or of what is counted in them).

    Args:
        mode: who reports a relationship: "lower", "both" or "directed".
    """
    ids = assume("users-public", nodes=nodes)
    # The price of a relationship depends on how many lists contain it; papers state the price of one bit.
    if mode == "directed":
        return _local(DIRECTED_LINK, epsilon, 0.0, ids, relation="add/remove")
    if mode == "lower":
        return _local(RELATIONSHIP, epsilon, 0.0, ids, assume("lower-id-reports"), relation="add/remove")
    both_report = assume("both-ends-report", epsilon=rounded_up(epsilon))
    # AND, OR or mean of the two bits cost 2 epsilon alike: each end draws its own noise, and the log-ratios add up.
    return _local(RELATIONSHIP, 2 * epsilon, 0.0, ids, both_report, relation="add/remove")


class ListMechanism:
    """Base of mechanisms of neighbour lists, which declare these fields."""

    epsilon: float
    nodes: int
    mode: str

    @property
    def guarantee(self) -> Guarantee:
        """What all reports together protect: one relationship, or one directed link."""
        return list_guarantee(self.epsilon, self.mode, self.nodes)

    @property
    def _lists(self) -> NeighbourLists:
        return NeighbourLists(self.nodes, self.mode)


def entry_guarantee(epsilon: float, nodes: int) -> Guarantee:
    """The local guarantee of one bit of one list: in an undirected graph a relationship may stand in two lists."""
    # The unit of papers. For a relationship see `list_guarantee`: where both ends report it, it costs twice as much.
    return _local(LIST_ENTRY, epsilon, 0.0, assume("users-public", nodes=nodes), relation="add/remove")


def pair_guarantee(epsilon: float, domain: PairDomain) -> Guarantee:
    """The guarantee of one release of a curator who alone knows which protected pairs are related."""
    return Guarantee(
        unit=PRIVATE_EDGE,
        relation="add/remove",
        model="central",
        epsilon=epsilon,
        delta=0.0,
        against=RELEASE_READERS,
        assumes=(
            assume("private-nodes-public", nodes=domain.nodes, private=len(domain.ids)),
            # The curator's noise is drawn anew at each release, so a second one is a second price.
            assume("released-once"),
        ),
    )


class PairMechanism:
    """Base of mechanisms of a curator's protected pairs, which declare these fields."""

    epsilon: float
    domain: PairDomain

    @property
    def guarantee(self) -> Guarantee:
        """What the release protects."""
        return pair_guarantee(self.epsilon, self.domain)

    def _ranks(self, pairs: Pairs) -> Ids:
        # Each pair once: then one edge changes one cell and one count by 1, which noise is calibrated for.
        return distinct(self.domain.rank(pairs).numpy())


def _local(
    unit: ProtectedUnit, epsilon: float, delta: float, *assumes: Assumption, relation: str = "replace"
) -> Guarantee:
    return Guarantee(
        unit=unit,
        relation=relation,
        model="local",
        epsilon=epsilon,
        delta=delta,
        against=SERVER,
        assumes=(*assumes, REPORTS_ONCE, _PARTICIPATION),
    )
