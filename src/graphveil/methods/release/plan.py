"""The guarantee, noise, cost and expected lift of publishing a graph, from public facts; nothing private is read.

    noise of a person    edge-rand, lap-graph   false edges:  (k - 1) / (e^epsilon + 1),  k private nodes
                         class-counts           deviation of the sum of a row of counts:  sqrt(c) deviation of one
    lift is expected     if that is less than LIMIT times the private neighbours of a person

Private edges are not counted: their number is private.  A person is assumed to have as many as public ones, and
ASSUMED_DEGREE at least.  LIMIT is where lift ended on graphs with known edges (benchmarks, the panel of releases);
trees had none there.  A rule and no promise: edges that are unrelated to classes give no lift at any epsilon.
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

#: Feature mechanisms that are listed for comparison.
BESIDE = ("multi-bit", "duchi", "piecewise", "hybrid", "three-outputs", "feature-rr")
#: Seconds of one step of a Markov chain, and of one released edge (measured, rough).
STEP_SECONDS = 3e-6
EDGE_SECONDS = 4e-6
#: The most noise, in private neighbours of a person, at which lift is expected.
LIMIT: Final = {"edge-rand": 3.0, "lap-graph": 2.0, CLASS_COUNTS: 2.0}


@dataclass(frozen=True)
class ReleasePlan:
    """The public figures of a release.

    Attributes:
        nodes, private_nodes, public_edges, protected_pairs: their numbers; the last is 0 if edges are published as they
            are.
        noise: mechanism -> standard deviation of one published feature, in half-ranges; empty if features are public.
        least_noisy, false_edges: the mechanism with the least noise; the expected number of false edges.
        steps, seconds: of each Markov chain, if any; of the release itself.
        warning, advice: of a mechanism; sentences for people.
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
    """Return the plan of a release, from schema, nodes and public edges of `graph`; refuses a directed graph whose
    edges are to be protected.
    """
    privacy, nodes = method.privacy, int(graph.num_nodes)
    domain = domain_of(graph) if "edges" in privacy.protected else None
    noise = feature_noise(privacy, graph.schema)
    best = min(noise, key=lambda name: noise[name]) if noise else None
    chained = domain is not None and privacy.edges in CHAINS
    chain_settings: Chains = getattr(method, "chains", Chains())
    steps = (chain_settings.steps or STEPS_A_NODE * nodes) if chained else None
    false_edges = None
    if domain is not None and privacy.edges == "edge-rand":
        # Expected for an empty graph: the number of true edges is private and is not read.
        false_edges = EdgeRand(epsilon=privacy.epsilon_a, domain=domain).expected_false
    chains = chain_settings.chains if privacy.edges == "mcmc" else 1
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
        false_edges=false_edges,
        steps=steps,
        seconds=(steps or 0) * chains * STEP_SECONDS + (public_edges + 5 * nodes + (false_edges or 0)) * EDGE_SECONDS,
        warning=None if domain is None else warning_of(privacy, domain),
        advice=advice,
    )


def feature_noise(privacy: ReleasePrivacy, schema: GraphSchema) -> dict[str, float]:
    """Return the largest standard deviation of one published feature by mechanism, in half-ranges; empty for public
    features. The chosen mechanism and those of BESIDE, all at the same epsilon; those that refuse it are left out.
    """
    if "features" not in privacy.protected:
        return {}
    deviations = {}
    for name in RELEASE_FEATURES:
        if name not in (*BESIDE, privacy.features):
            continue
        scores = privacy.scores if name == "feature-rr" else None
        try:
            alternative = ReleasePrivacy(
                privacy.epsilon_x, math.inf, features=name, delta=privacy.delta, bins=privacy.bins, scores=scores
            )
            # The worst over all values: the variance at the true ones would be a function of private data.
            variance = alternative.feature_mechanism(schema).worst_variance
        except InputError:
            continue
        deviations[name] = math.sqrt(variance) / ((schema.high - schema.low) / 2)
    return deviations


def feature_advice(privacy: ReleasePrivacy, noise: dict[str, float]) -> tuple[str, ...]:
    """Return advice on noisy features; none if features are public.

    Args:
        privacy, noise: budgets and mechanisms; of each mechanism, see `feature_noise`.
    """
    deviation = noise.get(privacy.features)
    if deviation is None:
        return ()
    best, advice = min(noise, key=lambda name: noise[name]), []
    if deviation > 1.05 * noise[best]:
        times = "without bound" if math.isinf(deviation) else f"{(deviation / noise[best]) ** 2:,.3g} times"
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
    """The expectation of a release.

    Attributes:
        noise, neighbours: of a person, in neighbours, None for trees; the assumed private neighbours of a person.
        lift: whether lift over the public part alone is expected.
    """

    noise: float | None
    neighbours: float
    lift: bool

    @property
    def sentence(self) -> str:
        """The expectation, for people."""
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
    """Return the expectation of a release of private edges; no private edge is read.

    Args:
        privacy, domain, classes: edges are protected; the protected pairs, and the public edges; their number.
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
    """Return the assumed number of private neighbours of a person.

    Args:
        domain, share: the public edges; the declared share of private edges, below 1, or None.
    """
    public = 0 if domain.public is None else domain.public.shape[1]
    public_degree = 2 * public / domain.nodes
    return max(ASSUMED_DEGREE, public_degree) if share is None else public_degree * share / (1 - share)
