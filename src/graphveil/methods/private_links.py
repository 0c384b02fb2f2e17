"""A collection of everything: features, labels and neighbour lists, and what the server holds of them.

Raw neighbour lists are read in one place, :func:`randomize_lists`; raw features and labels in
`released.randomize_people`.  Everything after is post-processing.
"""

from __future__ import annotations

import hashlib
import json
import math
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from graphveil.errors import InputError
from graphveil.graphs import Split
from graphveil.methods.link_privacy import LinkPrivacy
from graphveil.methods.local_privacy import LocalPrivacy
from graphveil.methods.released import Released, randomize_people, require_one_label
from graphveil.models import NamedPairs
from graphveil.privacy import Guarantee, Ledger, Randomness


@dataclass(frozen=True)
class ReleasedGraph:
    """The reports of one collection of people and their neighbour lists.

    Attributes:
        people: features, labels, masks and the public schema.
        lists: the reports by mechanism part, see `LinkPrivacy.parts`; empty where links are public.
        public_links: [2, E] where links are declared public, else None.
        links: the budgets and mechanisms the lists were made with.
        people_key: who took part, see :func:`people_key`.
    """

    people: Released
    lists: dict[str, Any]
    public_links: Tensor | None
    links: LinkPrivacy
    people_key: str | None = None

    @property
    def nodes(self) -> int:
        """n."""
        return len(self.people.labels)

    @property
    def void(self) -> str | None:
        """Why the guarantee does not hold, or None."""
        return self.people.void


def open_ledger(people: LocalPrivacy, links: LinkPrivacy) -> Ledger:
    """Return an empty ledger with the budgets of features, labels and one relationship."""
    return links.declare(people.open_ledger())


def spends_of(people: LocalPrivacy, links: LinkPrivacy, schema: Any, nodes: int) -> tuple[Any, ...]:
    """Return everything that one collection spends, in order."""
    return people.spends(schema) + links.spends(schema, nodes)


def randomize_lists(graph: Any, links: LinkPrivacy, *, randomness: Randomness) -> dict[str, Any]:
    """Return every person's neighbour list report: the one place where raw links are read."""
    parts = links.parts(graph.schema, int(graph.num_nodes))
    raw = graph.edge_index
    degrees = parts.get("degrees")
    found = {}
    if degrees is not None:
        found["degrees"] = degrees.randomize(degrees.count(raw), randomness=randomness)
    if "lists" in parts:
        found["lists"] = parts["lists"].randomize(raw, randomness=randomness)
    return found


def collect_graph(
    ledger: Ledger, graph: Any, split: Split, people: LocalPrivacy, links: LinkPrivacy, *, randomness: Randomness
) -> tuple[ReleasedGraph, Ledger]:
    """Return the reports and the ledger after paying for them; the ledger is asked before any data is read.

    Raises:
        BudgetError: when the ledger cannot pay.
        InputError: for data outside the declared range or classes, or a mode that does not fit the graph.
    """
    paid = ledger.spend(*spends_of(people, links, graph.schema, int(graph.num_nodes)))
    require_one_label(graph)
    lists = randomize_lists(graph, links, randomness=randomness)
    released = randomize_people(graph, split, people, randomness=randomness)
    void = released.void if links.public else randomness.void
    public = graph.edge_index if links.public else None
    return ReleasedGraph(replace(released, void=void), lists, public, links, people_key(graph)), paid


def collect_new_people(
    ledger: Ledger, graph: Any, key: str, people: LocalPrivacy, links: LinkPrivacy, *, randomness: Randomness
) -> tuple[ReleasedGraph, Ledger]:
    """Return the reports of people who are only predicted: features and lists, no labels, in rows of their own.

    Raises:
        BudgetError, InputError: as `collect_graph`.
    """
    nodes = int(graph.num_nodes)
    spends = [s for s in spends_of(people, links, graph.schema, nodes) if s.unit != "labels"]
    for unit in dict.fromkeys(spend.unit for spend in spends):
        mine = [spend for spend in spends if spend.unit == unit]
        name = f"{unit} of {graph.schema.name} ({key[:8]})"
        ledger = ledger.declare(name, math.fsum(s.epsilon for s in mine), math.fsum(s.delta for s in mine))
        ledger = ledger.spend(*(replace(spend, unit=name) for spend in mine))
    nobody = torch.zeros(nodes, dtype=torch.bool)
    features = replace(people, epsilon_y=math.inf)
    lists = randomize_lists(graph, links, randomness=randomness)
    released = randomize_people(graph, Split(nobody, nobody, nobody), features, randomness=randomness)
    void = released.void if links.public else randomness.void
    public = graph.edge_index if links.public else None
    return ReleasedGraph(replace(released, void=void), lists, public, links, key), ledger


def people_key(graph: Any) -> str:
    """Return a hash of the public facts that tell one group of people from another: name, number and ids."""
    ids = graph.get("ids")
    names = [] if ids is None else [str(name) for name in ids]
    facts = json.dumps([graph.schema.name, int(graph.num_nodes), names])
    return hashlib.sha256(facts.encode()).hexdigest()


def require_matching_graph(released: ReleasedGraph, people: LocalPrivacy, links: LinkPrivacy) -> None:
    """Refuse reports that were made under other budgets.

    Raises:
        InputError: naming what differs.
    """
    for made, asked in ((released.people.privacy, people), (released.links, links)):
        if made != asked:
            raise InputError(
                f"the reports were made with {made}",
                where="fit_reports",
                allowed=f"reports made with {asked}",
                remedy="build the method with the budgets of the collection",
            )


def graph_guarantee(released: ReleasedGraph) -> Guarantee:
    """Return what a collection protects."""
    schema = released.people.schema
    people = released.people.privacy.guarantee(schema)
    return replace(released.links.guarantee(people, schema, released.nodes), void=released.void)


def named_pairs(released: ReleasedGraph) -> NamedPairs:
    """Return what the lists say about every pair.

    Raises:
        InputError: where degrees were preserved: those lists are thinned and say something else about each pair.
    """
    schema = released.people.schema
    lists = released.links.parts(schema, released.nodes)["lists"]
    if released.links.mechanism == "degree-preserving":
        raise InputError("degree-preserving lists have no common likelihood", remedy="use list mechanism lists")
    evidence = lists.evidence(released.lists["lists"])
    reports = 2 if lists.mode == "both" else 1
    flip = lists.flip
    ratio = (1 - flip) ** 2 / flip + flip**2 / (1 - flip)  # E[L | link] of one report
    return NamedPairs(
        evidence.nodes,
        evidence.source,
        evidence.target,
        evidence.log_ratio,
        evidence.background,
        ratio**reports - 1,
        evidence.directed,
    )


def reported_edges(released: ReleasedGraph) -> Tensor:
    """Return the graph as reported, [2, E]: in mode "lower" both directions of what the lower id says; else as is.

    In mode "both" each end's own list stands as its own directed entry, as Solitude takes it: users receive from those
    whom their own list names.
    """
    if released.public_links is not None:
        return released.public_links
    lists = released.lists["lists"]
    edges: Tensor = lists.to_edge_index()
    mode = released.links.mode_for(released.people.schema)
    if mode == "lower":
        return torch.cat([edges, edges.flip(0)], dim=1)
    return edges.flip(0) if mode == "both" else edges
