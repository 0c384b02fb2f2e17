"""What all methods on private neighbour lists do alike: ask everybody once, and take those reports alone."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Self

from graphveil.engine import LOCAL, Engine
from graphveil.graphs import Graph, GraphSchema, Split
from graphveil.methods.base.fitted import F, FittedEstimator
from graphveil.methods.base.people.account import Account
from graphveil.methods.base.people.local_privacy import LocalPrivacy
from graphveil.methods.base.people.people import times_paid
from graphveil.methods.links.collection import LinkReports, randomize_graph, require_matching_graph, spends_of
from graphveil.methods.links.privacy import UNIT, LinkPrivacy
from graphveil.privacy import Randomness
from graphveil.runtime.progress import ProgressCallback


class ListsEstimator(FittedEstimator[F], ABC):
    """The devices' half of a core on private lists, and the step from one half to the other.

    Attributes:
        privacy: budgets of features and labels.
        links: budget and mode of the lists.
        account: what was paid so far, and what for.
    """

    fits = "fit_reports"
    by_blocks = True
    privacy: LocalPrivacy
    links: LinkPrivacy
    account: Account

    def randomize(self, graph: Graph, *, split: Split, randomness: Randomness, engine: Engine = LOCAL) -> LinkReports:
        """Return every person's reports; the only place that reads raw features, labels and links.

        Args:
            graph: with the truth at hand.
            split: who trains, validates and tests.
            randomness: the source of the noise.
            engine: where blocks of people and of pairs are worked on; no report depends on it.

        Raises:
            BudgetError: when this collection has already been made (one report per person), before data is read.
            DataError, InputError: for values outside the declared range or classes, or a mode that does not fit; what
                was paid stays paid.
        """
        return self.account.collect(
            spends_of(self.privacy, self.links, graph.schema, int(graph.num_nodes)),
            lambda: randomize_graph(graph, split, self.privacy, self.links, randomness=randomness, engine=engine),
            check=lambda: self.require_served(graph),
        )

    @abstractmethod
    def require_served(self, graph: Graph) -> None:
        """Refuse a graph that the method cannot serve, from public facts alone and before anything is paid."""

    @abstractmethod
    def fit_reports(self, released: LinkReports, *, progress: ProgressCallback | None = None) -> Self:
        """Train on reports alone; may be called again and again on the same reports at no privacy cost."""

    def collect(
        self,
        graph: Graph,
        *,
        split: Split,
        randomness: Randomness,
        progress: ProgressCallback | None = None,
        engine: Engine = LOCAL,
    ) -> LinkReports:
        """Simulate the collection on `graph`: everybody's reports."""
        return self.randomize(graph, split=split, randomness=randomness, engine=engine)

    def train(
        self,
        collected: LinkReports,
        *,
        randomness: Randomness | None = None,
        progress: ProgressCallback | None = None,
    ) -> None:
        """Train on a collection: `fit_reports`."""
        self.fit_reports(collected, progress=progress)

    @property
    def epsilon_relationship(self) -> float:
        """What the most asked relationship has cost, once at least, by all reports of it; inf: links are public."""
        ledger = self.account.ledger
        modes = {self.links.mode, *(spend.parameters.get("mode") for spend in ledger.spends if spend.unit == UNIT)}
        # Of friends each names the other, also where a list holds what begins at its person: two directed links.
        ends = 2 if "directed" in modes else 1
        return times_paid(ledger, UNIT) * ends * self.links.relationship_epsilon

    def recognised(self, released: LinkReports) -> GraphSchema:
        """Return the public facts of reports that may be trained on, once they are paid for.

        Raises:
            InputError: when reports and budgets do not belong together.
            BudgetError: other reports than those that were paid for, and no budget for two collections.
        """
        require_matching_graph(released, self.privacy, self.links)
        schema = released.people.schema
        self.account.book(released, spends_of(self.privacy, self.links, schema, released.nodes))
        return schema
