"""What publishing a graph would promise, disturb, cost and buy, from public facts; no private edge or value is read.

    noise of a person    edge-rand, lap-graph   false edges:  (k - 1) / (e^epsilon + 1),  k private nodes
                         class-counts           deviation of the sum of a row of counts:  sqrt(c) deviation of one
    lift is expected     where that is less than LIMIT times the private neighbours of a person

Private edges are not counted: their number is private.  A person is assumed to have as many as public ones, and
ASSUMED_DEGREE at least.  LIMIT is where lift ended on graphs with known edges (benchmarks, the panel of releases);
trees bought nothing there.  A rule and no promise: edges that say nothing of the classes buy nothing at any epsilon.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any, Final

from graphveil.errors import InputError
from graphveil.graphs import Graph, GraphSchema
from graphveil.graphs.value.parts import GraphParts
from graphveil.mechanisms import EdgeRand, PairDomain
from graphveil.mechanisms.edges.noisy_counts import count_noise
from graphveil.methods.base.cost import ASSUMED_DEGREE
from graphveil.methods.base.family import json_values
from graphveil.methods.release.counts.class_counts import ClassCounts
from graphveil.methods.release.edges import STEPS_A_NODE, Chains, warning_of
from graphveil.methods.release.entries import CHAINS, CLASS_COUNTS, RELEASE_FEATURES
from graphveil.methods.release.heterorr import HeteroRR
from graphveil.methods.release.privacy import ReleasePrivacy
from graphveil.methods.release.published import domain_of
from graphveil.runtime.words import count_of

#: Feature mechanisms that feature-rr is shown beside.
BESIDE = ("multi-bit", "duchi", "piecewise", "hybrid", "three-outputs", "feature-rr")
#: Seconds of one step of a Markov chain, and of one released edge (measured, rough).
STEP_SECONDS = 3e-6
EDGE_SECONDS = 4e-6
#: How many times the private neighbours of a person its noise may be, for lift to be expected.
LIMIT: Final = {"edge-rand": 3.0, "lap-graph": 2.0, CLASS_COUNTS: 2.0}


@dataclass(frozen=True)
class ReleasePlan:
    """What is known before a release.

    Attributes:
        nodes, private_nodes, public_edges, protected_pairs: how many; the last is 0 where edges are published as they
            are.
        noise: mechanism -> deviation of one published feature, in half-ranges; empty where features are public.
        least_noisy, false_edges: the mechanism with the least of it; how many made edges are expected to be no true
            ones.
        steps, seconds: of each Markov chain, where there are any; of the release itself.
        warning, advice: what a mechanism warns of; what to look at first.
    """

    nodes: int
    private_nodes: int
    public_edges: int
    protected_pairs: int
    noise: dict[str, float]
    least_noisy: str | None
    false_edges: float | None
    steps: int | None
    seconds: float
    warning: str | None
    advice: tuple[str, ...]
    section = "release"

    def to_json(self) -> dict[str, Any]:
        return {**json_values(asdict(self)), "noise": json_values(self.noise), "advice": list(self.advice)}


def release_plan(method: HeteroRR | ClassCounts, graph: Graph | GraphParts) -> ReleasePlan:
    """Return the plan of a release of `graph`, of which schema, nodes and public edges are looked at; a directed graph
    whose edges are to be protected is refused.
    """
    privacy, nodes = method.privacy, int(graph.num_nodes)
    domain = domain_of(graph) if "edges" in privacy.protected else None
    noise = feature_noise(privacy, graph.schema)
    best = min(noise, key=lambda name: noise[name]) if noise else None
    chained = domain is not None and privacy.edges in CHAINS
    chosen: Chains = getattr(method, "chains", Chains())
    steps = (chosen.steps or STEPS_A_NODE * nodes) if chained else None
    false = None
    if domain is not None and privacy.edges == "edge-rand":
        # Expected over an empty graph: how many true edges there are is private and is not looked at.
        false = EdgeRand(epsilon=privacy.epsilon_a, domain=domain).expected_false
    chains = chosen.chains if privacy.edges == "mcmc" else 1
    public_edges = 0 if domain is None or domain.public is None else domain.public.shape[1]
    advice = feature_advice(privacy, noise)
    if domain is not None:
        outlook = outlook_of(privacy, domain, len(graph.schema.classes))
        advice = (*advice, *_edge_advice(privacy, domain, public_edges), outlook.sentence)
    if getattr(graph, "release", None) is not None:
        advice = ("the graph is a release: this is free",)
    return ReleasePlan(
        nodes=nodes,
        private_nodes=nodes if domain is None else len(domain.ids),
        public_edges=public_edges,
        protected_pairs=0 if domain is None else domain.size,
        noise=noise,
        least_noisy=best,
        false_edges=false,
        steps=steps,
        seconds=(steps or 0) * chains * STEP_SECONDS + (public_edges + 5 * nodes + (false or 0)) * EDGE_SECONDS,
        warning=None if domain is None else warning_of(privacy, domain),
        advice=advice,
    )


def feature_noise(privacy: ReleasePrivacy, schema: GraphSchema) -> dict[str, float]:
    """Return the largest deviation of one published feature by mechanism, in half-ranges; empty for public features.
    The chosen mechanism and those of BESIDE, all at the same epsilon; those that refuse it are left out.
    """
    if "features" not in privacy.protected:
        return {}
    deviations = {}
    for name in RELEASE_FEATURES:
        if name not in (*BESIDE, privacy.features):
            continue
        scores = privacy.scores if name == "feature-rr" else None
        try:
            other = ReleasePrivacy(
                privacy.epsilon_x, math.inf, features=name, delta=privacy.delta, bins=privacy.bins, scores=scores
            )
            # The worst over all values: the variance at the true ones would be a function of private data.
            variance = other.feature_mechanism(schema).worst_variance
        except InputError:
            continue
        deviations[name] = math.sqrt(variance) / ((schema.high - schema.low) / 2)
    return deviations


def feature_advice(privacy: ReleasePrivacy, noise: dict[str, float]) -> tuple[str, ...]:
    """Return what to know of noisy features before they are published; nothing where features are public.

    Args:
        privacy, noise: budgets and mechanisms; of each mechanism, see `feature_noise`.
    """
    mine = noise.get(privacy.features)
    if mine is None:
        return ()
    best, advice = min(noise, key=lambda name: noise[name]), []
    if mine > 1.05 * noise[best]:
        times = "without bound" if math.isinf(mine) else f"{(mine / noise[best]) ** 2:,.3g} times"
        advice.append(
            f"{best} has the least noise here: the variance of {privacy.features} is larger {times}; "
            f"take heterorr with features={best}"
        )
    return (*advice, "look at the lift over random-features: where edges are public, noisy features often add nothing")


def _edge_advice(privacy: ReleasePrivacy, domain: PairDomain, public_edges: int) -> list[str]:
    from graphveil.hierarchy.markov import ASYMPTOTIC

    if privacy.edges == CLASS_COUNTS:
        deviation = math.sqrt(count_noise(privacy.epsilon_a).variance)
        return [f"a count of neighbours has a deviation of {deviation:.2g}: look at the lift over public-edges"]
    advice = ["look at the lift over public-edges and random-edges: only that says whether made edges bought anything"]
    if privacy.edges in CHAINS:
        advice.insert(0, f"{ASYMPTOTIC.sentence}; edge-rr (edges=public-tree) needs no such assumption")
    elif privacy.edges == "public-tree" and public_edges < domain.nodes:
        advice.insert(
            0,
            f"{count_of(public_edges, 'public edge')} for {count_of(domain.nodes, 'node')} tell little of who "
            "belongs together: blocks will be coarse",
        )
    return advice


@dataclass(frozen=True)
class Outlook:
    """What may be expected of a release.

    Attributes:
        noise, neighbours: of a person, in neighbours, None for trees; how many private ones a person is assumed to
            have.
        lift: whether more is expected than from the public part alone.
    """

    noise: float | None
    neighbours: float
    lift: bool

    @property
    def sentence(self) -> str:
        """The expectation in words."""
        if self.noise is None:
            return (
                "expected lift over the public edges alone: none; made edges of a tree bought nothing on any graph "
                "that it was measured on; class-counts did, where edges alone are private"
            )
        expected = "some" if self.lift else "none"
        return (
            f"expected lift over the public edges alone: {expected}, by a rule: noise of {self.noise:.2g} neighbours a "
            f"person beside {self.neighbours:.2g} assumed private ones"
        )


def outlook_of(privacy: ReleasePrivacy, domain: PairDomain, classes: int) -> Outlook:
    """Return what a release of private edges may be expected to buy; no private edge is looked at.

    Args:
        privacy, domain, classes: edges are protected; the protected pairs, and the public edges; how many there are.
    """
    neighbours = assumed_neighbours(domain)
    if privacy.edges == CLASS_COUNTS:
        noise = math.sqrt(classes * count_noise(privacy.epsilon_a).variance)
    elif privacy.edges in LIMIT:
        noise = 2 * EdgeRand(epsilon=privacy.epsilon_a, domain=domain).expected_false / domain.nodes
    else:
        return Outlook(None, neighbours, lift=False)
    return Outlook(noise, neighbours, lift=noise < LIMIT[privacy.edges] * neighbours)


def assumed_neighbours(domain: PairDomain, share: float | None = None) -> float:
    """Return how many private neighbours a person is assumed to have.

    Args:
        domain, share: the public edges; of all edges that are private, below 1, where that is declared.
    """
    public = 0 if domain.public is None else domain.public.shape[1]
    public_degree = 2 * public / domain.nodes
    return max(ASSUMED_DEGREE, public_degree) if share is None else public_degree * share / (1 - share)
