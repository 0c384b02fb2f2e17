"""What is declared public about a graph, counted; private parts are not looked at."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from graphveil.graphs.value.checks import require_one_label
from graphveil.graphs.value.parts import GraphParts
from graphveil.mechanisms.base.mechanism import VectorDomain
from graphveil.mechanisms.question import example_question


@dataclass(frozen=True)
class PublicFacts:
    """What may be known of a graph before anything is collected.

    Attributes:
        nodes, labelled: people, and how many of them have a label (whose is public, which is not).
        classes, dimension: as declared.
        hidden: the parts that are private, or that the trust protects: none of them was read.
        degree: contacts of a person: counted where edges are public, else as the user said; None: not known.
        largest: share of the most frequent class, where labels are public.
        inside: share of edges inside a class, where edges and labels are public.
        question: one that people could be asked about a declared column, as an example.
    """

    name: str
    nodes: int
    labelled: int
    classes: int
    dimension: int
    hidden: tuple[str, ...]
    degree: float | None
    largest: float | None
    inside: float | None
    question: str

    @property
    def sentences(self) -> tuple[str, ...]:
        """What was looked at, in words."""
        sentences = [
            f"{self.nodes:,} people, {self.labelled:,} with a label, {self.classes} classes, {self.dimension} features"
        ]
        contacts = "contacts of a person: not public" if self.degree is None else f"{self.degree:.3g} contacts a person"
        sentences.append(contacts)
        if self.largest is not None:
            sentences.append(f"{100 * self.largest:.0f}% in the largest class")
        if self.inside is not None:
            sentences.append(f"{100 * self.inside:.0f}% of contacts inside a class")
        return tuple(sentences)

    def to_dict(self) -> dict[str, Any]:
        return {**{key: getattr(self, key) for key in self.__dataclass_fields__}, "hidden": list(self.hidden)}


def facts_of(graph: GraphParts, hidden: tuple[str, ...], degree: float | None = None) -> PublicFacts:
    """Return what is public about a graph; refuses several labels a node.

    Args:
        graph: its schema, the number of nodes, who has a label, and parts that are not hidden are read.
        hidden: the parts that are private or protected. degree: contacts of a person, where edges are hidden.
    """
    require_one_label(graph)
    nodes, labelled = graph.num_nodes, np.asarray(graph.y >= 0)
    largest = inside = None
    # Counted only where everybody could count: else what the user says is known, which may be nothing.
    if "edges" not in hidden:
        degree = graph.edge_index.shape[1] / nodes
    if "labels" not in hidden and labelled.any():
        labels = graph.y[labelled]
        largest = float(np.bincount(labels).max() / len(labels))
        if "edges" not in hidden:
            source, target = graph.edge_index
            both = labelled[source] & labelled[target]
            inside = float((graph.y[source] == graph.y[target])[both].mean()) if both.any() else None
    schema = graph.schema
    sizes = (schema.name, nodes, int(labelled.sum()), len(schema.classes), schema.dimension)
    domain = VectorDomain(schema.dimension, schema.low, schema.high)
    return PublicFacts(*sizes, hidden, degree, largest, inside, example_question(schema.columns, domain))
