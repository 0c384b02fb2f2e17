"""A published graph: its features in a public range, its assembly, and its `Release`."""

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
from graphveil.methods.release.edges import SyntheticEdges, joined_edges
from graphveil.methods.release.entries import CHAINS
from graphveil.methods.release.privacy import ReleasePrivacy, settings_of
from graphveil.privacy import Ledger, Randomness
from graphveil.privacy.accounting.printed import rounded_up
from graphveil.runtime.late import Tensor, torch
from graphveil.runtime.late import sparse as sp

#: Standard deviations of noise beyond the declared range, if the numbers of a mechanism have no small bound.
DEVIATIONS = 16.0
#: The most numbers of a dense table of estimates.
LARGEST = 200_000_000


@dataclass(frozen=True)
class PublishedFeatures:
    """Features x [n, d], dense or sparse CSR, and what a reader must know of them."""

    x: Tensor
    note: str


def published_schema(schema: GraphSchema, mechanism: Any, nodes: int) -> GraphSchema:
    """Return the declaration of what will be published, without reading data; refuses a dense table that would be too
    large.

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
    # Without notes: they count private values.
    return schema.derived(private=(), notes=(), numbers=numbers)


def published_features(mechanism: Any, reports: Any) -> PublishedFeatures:
    """Return the features to publish from reports: post-processing, in the range of `published_schema`. Estimates are
    stored minus the middle of the declared range, so that coordinates without a report are 0 in sparse rows; dense ones
    likewise.
    """
    bound = bound_of(mechanism)
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
    """Return the largest absolute value of a published number, from public facts, as a 32-bit number: that of the
    mechanism (`largest`) if it has few possible numbers; else half the range plus DEVIATIONS standard deviations of
    noise, to which rare larger numbers are clipped.
    """
    largest = getattr(mechanism, "largest", None)
    if largest is None:
        largest = (mechanism.high - mechanism.low) / 2 + DEVIATIONS * math.sqrt(mechanism.worst_variance)
    # Rounded up: a bound that float32 rounds down would refuse the mechanism's own largest number.
    return float(np.nextafter(np.float32(largest), np.float32(np.inf)))


@dataclass(frozen=True)
class ReleaseParts:
    """The parts of a release: features, labels, and synthetic edges or counts where edges are protected."""

    features: PublishedFeatures
    y: Tensor
    synthetic: SyntheticEdges | None
    counts: NeighbourCounts | None = None


def assemble(graph: Graph, schema: GraphSchema, domain: PairDomain | None, parts: ReleaseParts) -> Graph:
    """Return the released graph of these parts."""
    features, synthetic = parts.features, parts.synthetic
    edge_index, public = graph.edge_index, graph.get("public_edges")
    if synthetic is not None and domain is not None:
        edge_index, public = joined_edges(domain, synthetic.pairs)
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
    parts: ReleaseParts,
    ledger: Ledger,
    randomness: Randomness,
) -> Release:
    """Return the `Release` of a released graph."""
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


def _notes(privacy: ReleasePrivacy, parts: ReleaseParts) -> tuple[str, ...]:
    """Return what readers of the released graph must know about its numbers."""
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
    # Declared, never guessed: an edge that nobody declares public is private.
    private_nodes = getattr(graph, "private_nodes", None)
    members = None if private_nodes is None else torch.as_tensor(private_nodes)
    if public is None:
        return PairDomain(int(graph.num_nodes), members)
    public_edges = torch.as_tensor(graph.edge_index[:, public])
    return PairDomain(int(graph.num_nodes), members, public_edges[:, public_edges[0] < public_edges[1]])


def edge_price(origin: Release) -> float:
    """Return the epsilon of one private edge in a release; inf if edges were published as they are."""
    return float(origin.settings.get("epsilon_a", math.inf))


def release_digest(released: Graph) -> str:
    """Return a hash that identifies a release."""
    edges, labels = released.edge_index, released.y
    parts = {"features": released["x"], "edges": edges, "labels": labels}
    counts = released.release.counts
    return tensors_digest(parts if counts is None else parts | {"counts": counts.counts})


def rows_of(x: Tensor) -> Any:
    """Return features [n, d] as numpy, or CSR if they are sparse."""
    features = as_matrix(x)
    return features.numpy() if isinstance(features, torch.Tensor) else features
