"""What all methods on a public topology do alike: ask everybody once, and take those reports or a release."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Self

from graphveil.engine import LOCAL, Engine
from graphveil.graphs import Graph, Split
from graphveil.methods.base.estimator import F, FittedEstimator
from graphveil.methods.base.parameters import checked_graph
from graphveil.methods.base.people.account import Account
from graphveil.methods.base.people.local_privacy import LocalPrivacy
from graphveil.methods.base.people.released import (
    LocalCollection,
    LocalReports,
    Topology,
    randomize_people,
    require_matching,
    topology_of,
)
from graphveil.privacy import Guarantee, Randomness, Spend
from graphveil.runtime.progress import ProgressCallback


class ReportsEstimator(FittedEstimator[F], ABC):
    """A method on a public topology: what devices do, and the step from them to the server."""

    fits = "fit_reports"
    by_blocks = trains_by_blocks = True
    privacy: LocalPrivacy
    account: Account

    def randomize(self, graph: Graph, *, split: Split, randomness: Randomness, engine: Engine = LOCAL) -> LocalReports:
        """Return every person's report; the only place that reads raw features and labels.

        Args:
            graph, split: with the truth at hand; who trains, validates and tests.

        Raises:
            BudgetError: when this collection has already been made (one report per person), before data is read.
            DataError, InputError: for values outside the declared range or classes; what was paid stays paid.
        """
        graph = checked_graph(graph, split, randomness)

        def check() -> None:
            self.require_served(graph)
            self.require_reached(graph, split)

        return self.account.collect(
            self.priced(graph),
            lambda: randomize_people(graph, split, self.privacy, randomness=randomness, engine=engine),
            check=check,
        )

    def priced(self, graph: Graph) -> tuple[Spend, ...]:
        """Return what a collection costs: nothing on a release, whose publisher paid for everything in it."""
        return () if getattr(graph, "release", None) is not None else self.privacy.spends(graph.schema)

    def require_reached(self, graph: Graph, split: Split) -> None:
        """Refuse a split whose labels cannot be learned from in this graph; which nodes send one is public."""

    @abstractmethod
    def require_served(self, graph: Graph) -> None:
        """Refuse a graph that the method cannot serve, from public facts alone and before anything is paid."""

    @abstractmethod
    def fit_reports(
        self,
        released: LocalReports,
        topology: Topology,
        *,
        progress: ProgressCallback | None = None,
        engine: Engine = LOCAL,
    ) -> Self:
        """Train on reports alone; may be called again and again on the same reports at no privacy cost.

        Raises:
            InputError: when reports, topology and budgets do not belong together.
            BudgetError: other reports than those that were paid for.
        """

    def collect(
        self,
        graph: Graph,
        *,
        split: Split,
        randomness: Randomness,
        progress: ProgressCallback | None = None,
        engine: Engine = LOCAL,
    ) -> LocalCollection:
        reports = self.randomize(graph, split=split, randomness=randomness, engine=engine)
        return LocalCollection(reports, topology_of(graph))

    def train(
        self,
        collected: LocalCollection,
        *,
        randomness: Randomness | None = None,
        progress: ProgressCallback | None = None,
        engine: Engine = LOCAL,
    ) -> None:
        self.fit_reports(collected.reports, collected.topology, progress=progress, engine=engine)

    def check_and_book(self, released: LocalReports, topology: Topology) -> Guarantee | None:
        """Book reports that are to be trained on, or take over the account of the release that they come from, and
        return the release's guarantee; None where people reported themselves.
        """
        require_matching(released, topology, self.privacy)
        origin = released.origin
        if origin is None:
            self.account.book_reports(released, self.privacy.spends(released.schema))
            return None
        self.account.adopt(released.release_key(topology), origin.ledger)
        return origin.guarantee
