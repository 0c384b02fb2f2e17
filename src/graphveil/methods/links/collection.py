"""A collection of features, labels and neighbour lists, and the base of its estimators.

Raw neighbour lists are read in :func:`randomize_lists` alone, raw features and labels in `released.randomize_people`;
everything after is post-processing.
"""

from __future__ import annotations

import hashlib
import json
import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

from graphveil.engine import LOCAL, Engine
from graphveil.errors import InputError
from graphveil.graphs import Graph, GraphSchema, Split, Structure, make_graph, node_names, validate
from graphveil.graphs.value.features import features_from_rows
from graphveil.mechanisms import AdjacencyRR, EdgeReports
from graphveil.methods.base.estimator import F, FittedEstimator
from graphveil.methods.base.network.network import as_matrix
from graphveil.methods.base.parameters import checked_graph
from graphveil.methods.base.people.account import Account, TaskPayment, tensors_digest
from graphveil.methods.base.people.local_privacy import LocalPrivacy
from graphveil.methods.base.people.people import times_paid
from graphveil.methods.base.people.released import LocalReports, randomize_people, require_budgets, require_reports
from graphveil.methods.base.storage import number, schema_facts, stored_number
from graphveil.methods.links.privacy import UNIT, LinkPrivacy
from graphveil.methods.links.silent_lists import pairs_of_some, usual_excess
from graphveil.models import NamedPairs
from graphveil.privacy import Guarantee, Randomness
from graphveil.runtime.late import Tensor, torch
from graphveil.runtime.late import sparse as sp
from graphveil.runtime.progress import ProgressCallback

#: Settings that may be infinite, which JSON cannot hold.
_EPSILONS = ("epsilon_x", "epsilon_a", "epsilon_y")


@dataclass(frozen=True)
class LinkReports:
    """The reports of one collection of people and their neighbour lists.

    Attributes:
        lists: the reports by mechanism part, see `LinkPrivacy.parts`; empty where links are public.
        public_links: [2, E] where links are declared public, else None.
        heard: mask [n] of people who sent a list; None: all. The other lists are empty, and no evidence.
    """

    people: LocalReports
    lists: dict[str, Any]
    public_links: Tensor | None
    links: LinkPrivacy
    people_key: str | None = None
    heard: Tensor | None = None

    @property
    def nodes(self) -> int:
        """n."""
        return len(self.people.labels)

    @property
    def digest(self) -> str:
        """A hash of all reports, which identifies the collection."""
        lists = {f"{part} {name}": t for part, sent in self.lists.items() for name, t in sent.to_tensors().items()}
        if self.heard is not None:
            lists["heard"] = self.heard
        return f"{self.people.digest} {tensors_digest(lists)}" if lists else self.people.digest

    @property
    def void(self) -> str | None:
        """Why the guarantee does not hold, or None."""
        return self.people.void

    @property
    def paid(self) -> TaskPayment | None:
        """What devices have paid for these reports, or None."""
        return self.people.paid


def spends_of(people: LocalPrivacy, links: LinkPrivacy, schema: GraphSchema, nodes: int) -> tuple[Any, ...]:
    """Return all spends of one collection, in order."""
    return people.spends(schema) + links.spends(schema, nodes)


def randomize_lists(
    graph: Structure, links: LinkPrivacy, *, randomness: Randomness, engine: Engine = LOCAL
) -> dict[str, Any]:
    """Return every person's neighbour list report: the one place where raw links are read."""
    parts = links.parts(graph.schema, int(graph.num_nodes))
    raw = graph.edge_index
    degrees = parts.get("degrees")
    reports = {}
    if degrees is not None:
        # Two mechanisms on one list: their epsilons add up, and `LinkPrivacy` has split the budget between them.
        reports["degrees"] = degrees.randomize(degrees.count(raw), randomness=randomness, engine=engine)
    if "lists" in parts:
        reports["lists"] = parts["lists"].randomize(raw, randomness=randomness, engine=engine)
    return reports


def randomize_graph(
    graph: Graph,
    split: Split,
    people: LocalPrivacy,
    links: LinkPrivacy,
    *,
    randomness: Randomness,
    engine: Engine = LOCAL,
) -> LinkReports:
    """Return everybody's reports, after they were paid for."""
    # Lists first: this order keeps the reports of a seed.
    lists = randomize_lists(graph, links, randomness=randomness, engine=engine)
    released = randomize_people(graph, split, people, randomness=randomness, engine=engine)
    void = released.void if links.public else randomness.void
    public = graph.edge_index if links.public else None
    return LinkReports(replace(released, void=void), lists, public, links, people_key(graph))


def randomize_new_people(
    graph: Graph, people: LocalPrivacy, links: LinkPrivacy, *, randomness: Randomness, engine: Engine = LOCAL
) -> LinkReports:
    """Return the reports of people who are only predicted, after they paid: features and lists, no labels."""
    nobody = torch.zeros(int(graph.num_nodes), dtype=torch.bool)
    # Nobody sends a label, so none is randomized and none is paid for.
    features = replace(people, epsilon_y=math.inf)
    split = Split(nobody, nobody, nobody)
    return randomize_graph(graph, split, features, links, randomness=randomness, engine=engine)


def subgraph(graph: Graph, mask: Tensor) -> Any:
    """Return the graph of the people in a mask [n], with their links to each other alone."""
    if bool(mask.all()):
        return graph
    # Before cutting: an invalid graph must not become a valid part.
    validate(graph)
    new_numbers = torch.cumsum(mask, dim=0) - 1
    inside = mask[graph.edge_index[0]] & mask[graph.edge_index[1]]
    edges = new_numbers[graph.edge_index[:, inside]]
    values: Any = as_matrix(graph.x)
    rows = values[mask.numpy()] if sp.issparse(values) else values[mask]
    features = features_from_rows(rows) if sp.issparse(rows) else rows
    ids = node_names(graph)
    names = None if ids is None else [ids[int(row)] for row in mask.nonzero()]
    return make_graph(features, edges, graph.y[mask], graph.schema, ids=names, like=graph)


def people_key(graph: Graph, name: str | None = None) -> str:
    """Return a hash of the public facts that identify the people of a graph: name, number and ids.

    Args:
        name: None: the graph's own.
    """
    # Of public facts alone: a hash of edges or features would be a function of private data, in every saved file.
    facts = json.dumps([name or graph.schema.name, int(graph.num_nodes), node_names(graph) or ()])
    return hashlib.sha256(facts.encode()).hexdigest()


def named_pairs(released: LinkReports) -> NamedPairs:
    """Return the evidence of the lists about every pair; refuses thinned lists."""
    schema = released.people.schema
    lists = released.links.parts(schema, released.nodes)["lists"]
    # Thinning depends on the whole list at once, so no likelihood of a single pair exists.
    if released.links.mechanism == "degree-preserving":
        raise InputError("degree-preserving lists have no common likelihood", remedy="use list mechanism lists")
    return pairs_of(lists, released.lists["lists"], released.heard)


def pairs_of(lists: AdjacencyRR, sent: EdgeReports, heard: Tensor | None = None) -> NamedPairs:
    """Return the evidence of lists behind randomized response about every pair.

    Args:
        heard: mask [n] of people who sent theirs; None: all.
    """
    if heard is not None and not bool(heard.all()):
        return pairs_of_some(lists, sent, heard)
    evidence = lists.evidence(sent)
    reports = 2 if lists.mode == "both" else 1
    return NamedPairs(
        evidence.nodes,
        evidence.source,
        evidence.target,
        evidence.log_ratio,
        evidence.background,
        usual_excess(lists.flip, reports),
        evidence.directed,
    )


def reported_edges(released: LinkReports) -> Tensor:
    """Return the graph as reported, [2, E]: in mode "lower" both directions of the lower id's report; else as is.

    In mode "both" users receive from people whom their own list names (Solitude), or who name them if they sent no
    list.
    """
    if released.public_links is not None:
        return released.public_links
    lists = released.lists["lists"]
    edges: Tensor = lists.to_edge_index()
    mode = released.links.mode_for(released.people.schema)
    if released.heard is not None:
        edges = edges[:, released.heard[edges[0]]]
    # Only the lower id reports a pair, so its report counts for both directions.
    if mode == "lower":
        return torch.cat([edges, edges.flip(0)], dim=1)
    if mode != "both":
        return edges
    # If one end of a pair sent nothing, the list of the other end counts for both.
    one_sided = edges[:, :0] if released.heard is None else edges[:, ~released.heard[edges[1]]]
    return torch.cat([edges.flip(0), one_sided], dim=1)


class ListsEstimator(FittedEstimator[F], ABC):
    """The base of methods on private lists: the devices' half, and the booking of reports."""

    fits = "fit_reports"
    by_blocks = True
    privacy: LocalPrivacy
    links: LinkPrivacy
    account: Account

    def randomize(self, graph: Graph, *, split: Split, randomness: Randomness, engine: Engine = LOCAL) -> LinkReports:
        """Return every person's reports; the only place that reads raw features, labels and links.

        Args:
            graph: with the truth at hand.

        Raises:
            BudgetError: when this collection has already been made (one report per person), before data is read.
            DataError, InputError: for values outside what was declared; what was paid stays paid.
        """
        graph = checked_graph(graph, split, randomness, unreleased=self.name)
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
        return self.randomize(graph, split=split, randomness=randomness, engine=engine)

    def train(
        self, collected: LinkReports, *, randomness: Randomness | None = None, progress: ProgressCallback | None = None
    ) -> None:
        self.fit_reports(collected, progress=progress)

    @property
    def epsilon_relationship(self) -> float:
        """The price of the most asked relationship by all reports of it, at least one; inf: links are public."""
        ledger = self.account.ledger
        modes = {self.links.mode, *(spend.parameters.get("mode") for spend in ledger.spends if spend.unit == UNIT)}
        # Friends name each other, also in mode "directed": two directed links.
        ends = 2 if "directed" in modes else 1
        return times_paid(ledger, UNIT) * ends * self.links.relationship_epsilon

    def guarantee_of(self, schema: GraphSchema, nodes: int, void: str | None) -> Guarantee:
        """Return the guarantee of all paid collections."""
        ledger = self.account.ledger
        of_people = self.privacy.guarantee(schema, ledger=ledger)
        return replace(self.links.guarantee(of_people, schema, nodes, ledger), void=void)

    def check_and_book(self, released: LinkReports) -> GraphSchema:
        """Return the public facts of reports that may be trained on, once they are paid for.

        Raises:
            InputError: when reports and budgets do not belong together.
            BudgetError: other reports than those that were paid for, and no budget for two collections.
        """
        require_reports(released, LinkReports)
        require_budgets(released.people.privacy, self.privacy)
        require_budgets(released.links, self.links)
        schema = released.people.schema
        self.account.book_reports(released, spends_of(self.privacy, self.links, schema, released.nodes))
        return schema

    def collection_facts(self, options: Mapping[str, Any], schema: GraphSchema, people: str | None) -> dict[str, Any]:
        """Return a collection's part of a saved file, as JSON values."""
        return {
            "options": {**options, **{name: number(options[name]) for name in _EPSILONS}},
            "schema": schema_facts(schema),
            "people": people,
            **self.account.facts(),
            "guarantee": self.guarantee.to_dict(),
        }


def options_from(facts: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings in `collection_facts`."""
    return {**facts["options"], **{name: stored_number(facts["options"][name]) for name in _EPSILONS}}
