"""A published graph: features in the range that public facts give them, put together, and what it says of itself."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np

import graphveil
from graphveil.errors import InputError
from graphveil.graphs import Graph, GraphSchema, Release, make_graph
from graphveil.graphs.value.features import features_from_rows
from graphveil.graphs.value.parts import MASKS, GraphParts
from graphveil.graphs.value.release import NeighbourCounts
from graphveil.graphs.value.schema import RANGES, FeatureNumbers, usable_range
from graphveil.mechanisms import PairDomain
from graphveil.methods.base.network.network import as_matrix
from graphveil.methods.base.people.account import tensors_digest
from graphveil.methods.release.edges import MadeEdges, joined
from graphveil.methods.release.entries import CHAINS
from graphveil.methods.release.privacy import ReleasePrivacy, settings_of
from graphveil.privacy import Ledger, Randomness
from graphveil.privacy.accounting.printed import rounded_up
from graphveil.runtime.late import Tensor, torch
from graphveil.runtime.late import sparse as sp

#: Deviations of noise beside half the declared range, where a mechanism's own numbers have no small bound.
DEVIATIONS = 16.0
#: Numbers of a dense table of estimates.
LARGEST = 200_000_000


@dataclass(frozen=True)
class PublishedFeatures:
    """Features x [n, d], dense or sparse CSR, and what a reader must know of them."""

    x: Tensor
    note: str


def published_schema(schema: GraphSchema, mechanism: Any, nodes: int) -> GraphSchema:
    """Return the declaration of what will be published; nobody's data is read, and a dense table that would be too
    large is refused.

    Args:
        schema, mechanism, nodes: of the private graph; of the features, None: published as they are; n.
    """
    numbers = None
    if mechanism is not None:
        if not hasattr(mechanism, "coordinates") and nodes * mechanism.dimension > LARGEST:
            raise InputError(
                f"{nodes:,} x {mechanism.dimension:,} noisy numbers are too many",
                where="features",
                allowed=f"{LARGEST:,}",
                remedy="take a mechanism that samples coordinates: multi-bit, duchi, piecewise, hybrid",
            )
        bound = bound_of(mechanism)
        if not usable_range(-bound, bound):
            raise InputError(
                f"noisy features would reach {bound:g}",
                where=f"release of {schema.name}",
                allowed=RANGES,
                remedy="declare a range of other units, or a larger epsilon_x",
            )
        numbers = FeatureNumbers(mechanism.dimension, -bound, bound, "the mechanism that made the features")
    # Notes are left out: they count what loading met in private values.
    return schema.derived(private=(), notes=(), numbers=numbers)


def published_features(mechanism: Any, reports: Any) -> PublishedFeatures:
    """Return what is published of reports: post-processing, in the range of `published_schema`. Sparse estimates are
    stored less the middle of the declared range, so that what nobody reported stays 0; dense ones likewise, so that
    both mean the same.
    """
    bound = bound_of(mechanism)
    # Centred, so that a coordinate that nobody reported is a zero that need not be stored.
    centred = mechanism.centred(reports)
    x = (
        features_from_rows(centred)
        if sp.issparse(centred)
        else torch.from_numpy(np.clip(centred, -bound, bound).astype(np.float32))
    )
    middle, deviation = mechanism.midpoint, math.sqrt(mechanism.worst_variance)
    note = (
        f"features are unbiased estimates less the middle {middle:g} of the declared range, with standard deviation "
        f"up to {deviation:.3g}: add {middle:g} to compare with the original"
    )
    return PublishedFeatures(x, note)


def bound_of(mechanism: Any) -> float:
    """Return the largest size that a published number may have, from public facts, as a 32-bit number: exact where a
    mechanism has few possible numbers (its `largest`); else half the range and DEVIATIONS deviations of noise, to which
    the rare number beyond is clipped.
    """
    largest = getattr(mechanism, "largest", None)
    if largest is None:
        largest = (mechanism.high - mechanism.low) / 2 + DEVIATIONS * math.sqrt(mechanism.worst_variance)
    # Rounded outwards: a bound that float32 rounds down would refuse the mechanism's own largest number.
    return float(np.nextafter(np.float32(largest), np.float32(np.inf)))


@dataclass(frozen=True)
class Parts:
    """What is published: features, labels, and made edges, or counts in their place, where edges are protected."""

    features: PublishedFeatures
    y: Tensor
    synthetic: MadeEdges | None
    counts: NeighbourCounts | None = None


def assemble(graph: Graph, schema: GraphSchema, domain: PairDomain | None, parts: Parts) -> Graph:
    """Put the released graph together."""
    features, synthetic = parts.features, parts.synthetic
    edge_index, public = graph.edge_index, graph.get("public_edges")
    if synthetic is not None and domain is not None:
        edge_index, public = joined(domain, synthetic.pairs)
    return make_graph(
        features.x,
        edge_index,
        parts.y,
        schema,
        masks={name: graph[name] for name in MASKS if graph.get(name) is not None},
        ids=graph.get("ids"),
        public_edges=public,
        private_nodes=graph.get("private_nodes"),
        like=graph,
    )


def describe(
    method: str,
    schema: GraphSchema,
    privacy: ReleasePrivacy,
    domain: PairDomain | None,
    parts: Parts,
    ledger: Ledger,
    randomness: Randomness,
) -> Release:
    """Say what a released graph is."""
    labels = privacy.label_mechanism(len(schema.classes))
    return Release(
        method=method,
        settings=settings_of(privacy),
        guarantee=privacy.guarantee(schema, domain, randomness.void if privacy.protected else None),
        ledger=ledger,
        keep=1.0 if labels is None else labels.keep,
        flip=0.0 if labels is None else labels.flip,
        edges=parts.synthetic is not None and parts.counts is None,
        notes=(*_notes(privacy, parts), *schema.missing_words),
        statistics={} if parts.synthetic is None else dict(parts.synthetic.facts),
        version=graphveil.__version__,
        created=datetime.now().astimezone().isoformat(timespec="seconds"),
        counts=parts.counts,
    )


def _notes(privacy: ReleasePrivacy, parts: Parts) -> tuple[str, ...]:
    """Return what a reader of the released graph must know of its numbers."""
    from graphveil.hierarchy.markov import ASYMPTOTIC

    notes = [parts.features.note] if parts.features.note else []
    if privacy.scores is not None:
        notes.append(f"shares of the features' budget: {privacy.scores.source}, {privacy.scores.note}")
    if parts.counts is not None:
        notes.append("private edges are not in it: counts.parquet holds noisy counts of everybody's, by public class")
    elif parts.synthetic is not None:
        notes.append("edges that are not marked public are made ones: none of them says that two nodes are related")
        if privacy.edges in CHAINS:
            notes.append(ASYMPTOTIC.sentence)
        if "public_rhat" in parts.synthetic.facts:
            rhat = f"split R-hat {parts.synthetic.facts['public_rhat']:.2f}, far from each other above 1.1"
            notes.append(f"chains of as many steps on public edges alone: {rhat}; near 1 proves nothing")
    if "labels" in privacy.protected:
        notes.append(
            f"labels went through randomized response at epsilon {rounded_up(privacy.epsilon_y)}: not all are true ones"
        )
    return tuple(notes)


def domain_of(graph: Graph | GraphParts) -> PairDomain:
    """Return the protected pairs of a graph from what is public: its nodes, public edges and declared private nodes;
    refuses a directed graph.
    """
    if graph.schema.directed:
        raise InputError(
            "edges have a direction, and what is protected here is an undirected edge",
            where=graph.schema.name,
            allowed="undirected graphs",
            remedy="declare directed = false if both directions mean the same, or protect features alone",
        )
    public = getattr(graph, "public_edges", None)
    # Declared, never guessed: an edge whose status nobody stated is private.
    declared = getattr(graph, "private_nodes", None)
    members = None if declared is None else torch.as_tensor(declared)
    if public is None:
        return PairDomain(int(graph.num_nodes), members)
    public_edges = torch.as_tensor(graph.edge_index[:, public])
    return PairDomain(int(graph.num_nodes), members, public_edges[:, public_edges[0] < public_edges[1]])


def edge_price(origin: Release) -> float:
    """Return what one private edge has cost in a release; inf where edges went out as they are."""
    return float(origin.settings.get("epsilon_a", math.inf))


def release_digest(released: Graph) -> str:
    """Return a hash that tells one release from another."""
    edges, labels = released.edge_index, released.y
    parts = {"features": released["x"], "edges": edges, "labels": labels}
    counts = released.release.counts
    return tensors_digest(parts if counts is None else parts | {"counts": counts.counts})


def rows_of(x: Tensor) -> Any:
    """Return features [n, d] as numpy; CSR where they are sparse."""
    features = as_matrix(x)
    return features.numpy() if isinstance(features, torch.Tensor) else features
