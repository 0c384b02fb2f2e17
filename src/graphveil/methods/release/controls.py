"""Controls, rivals and notes of released graphs: do the synthetic edges give any lift?

    public-edges       the same network on the public edges alone
    random-edges       as many uniform random pairs of the same protected set in place of the synthetic edges
    public-part        public edges, features and labels alone, if the network is pooled with them
    no-edges, random-features, label-propagation, public-only    as for every method, on what was released
    ceiling            the same backbone on the raw graph with all true edges (not for a folder: the truth is not there)

Rivals protect the same pairs at the same price, each with a release of its own.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping
from dataclasses import asdict, replace
from functools import partial
from typing import Any

import numpy as np

from graphveil.graphs import Graph, Release, Split
from graphveil.mechanisms import PairDomain
from graphveil.methods.base.family import Control, Controls
from graphveil.methods.base.network.features import labels_of, random_features
from graphveil.methods.base.people.released import LocalReports, Topology, topology_of
from graphveil.methods.local.controls import CONTROL_HOPS, LocalMethod, controls_of, hits
from graphveil.methods.local.label_propagation import LabelPropagation, propagate_labels
from graphveil.methods.local.lpgnn import LPGNN
from graphveil.methods.release.edges import joined_edges, warning_of
from graphveil.methods.release.heterorr import HeteroRR
from graphveil.methods.release.published import domain_of
from graphveil.methods.release.publisher import Publisher
from graphveil.privacy import Randomness
from graphveil.runtime.late import Tensor, torch

#: Rivals where edges are protected; without chains, which take long and promise less.
RIVAL_EDGES = ("public-tree", "edge-rand", "lap-graph")


def made_edge_controls(method: LocalMethod, graph: Graph, split: Split) -> Controls:
    """Return the controls of a method on a released graph beside those of every method."""
    origin: Release | None = getattr(graph, "release", None)
    reports = method.released
    if origin is None or reports is None:
        return {}
    controls: dict[str, Control] = {}
    if method.trains_network and reports.labels.dim() == 2:
        # `controls_of` has none for several labels a node.
        topology, settings = topology_of(graph), method.settings
        noise = random_features(reports.labels.shape[0], reports.schema.dimension, settings.seed)
        random_reports = replace(reports, features=noise)
        hops = max(settings.steps_x, CONTROL_HOPS)
        controls["random-features"] = lambda: _hits_of_refit(
            method, random_reports, topology, graph, split, steps_x=hops
        )
        controls["no-edges"] = lambda: _hits_of_refit(method, reports, topology, graph, split, steps_x=0, model="mlp")
    if not origin.edges:
        return controls
    public = Topology(graph.edge_index[:, graph.public_edges], int(graph.num_nodes))
    random = Topology(random_in_place(graph, method.seed), int(graph.num_nodes))
    controls["public-edges"] = lambda: _hits_of_refit(method, reports, public, graph, split)
    controls["random-edges"] = lambda: _hits_of_refit(method, reports, random, graph, split)
    if reports.labels.dim() == 1:
        # In place of the control for any graph, which would spread labels over synthetic edges as well.
        controls["public-only"] = lambda: _public_only(reports, public, graph, split)
    return controls


def release_controls_of(method: HeteroRR, graph: Graph, split: Split) -> Controls:
    """Return the controls of a method that released `graph`, on what it released, against the true labels."""
    if method.published is None:
        return {}
    measured, reading = _with_truth(method.published, graph), method.reading
    controls = {**controls_of(method.network, measured, split), **made_edge_controls(method.network, measured, split)}
    return controls if reading is None else controls | {"public-part": lambda: hits(reading.public, measured, split)}


def release_rivals_of(method: HeteroRR, graph: Graph, split: Split, *, randomness: Randomness) -> Controls:
    """Return other mechanisms for the private edges at the same prices, each with a release of its own."""
    privacy = method.privacy
    if "edges" not in privacy.protected:
        return {}
    budgets = {name: getattr(privacy, name) for name in ("epsilon_x", "epsilon_a", "epsilon_y", "features", "bins")}
    network = {key: value for key, value in asdict(method.network.settings).items() if key != "steps_y"}

    budgets |= {"scores": privacy.scores, "delta": privacy.delta, "pooling": method.pooling}

    def run(edges: str) -> np.ndarray:
        rival = HeteroRR(**budgets, edges=edges, **network)
        return hits(rival.fit(graph, split=split, randomness=randomness).predict_proba(), graph, split)

    too_large = release_rivals_left_out(method, graph)
    rival_edges = [edges for edges in RIVAL_EDGES if edges != privacy.edges and rival_name(edges) not in too_large]
    return {rival_name(edges): partial(run, edges) for edges in rival_edges}


def rival_name(edges: str) -> str:
    """Return the method of a mechanism for edges."""
    return "edge-rr" if edges == "public-tree" else edges


def release_rivals_left_out(method: Publisher, graph: Graph) -> Mapping[str, str]:
    """Return the rivals whose release would be too large, with the warning of their mechanism."""
    if "edges" not in method.privacy.protected:
        return {}
    domain = domain_of(graph)
    warnings = {}
    for edges in RIVAL_EDGES:
        rival = HeteroRR(epsilon_x=1.0, epsilon_a=method.privacy.epsilon_a, edges=edges)
        warning = warning_of(rival.privacy, domain)
        if warning is not None:
            warnings[rival_name(edges)] = warning
    return warnings


def release_notes(method: LocalMethod, graph: Graph) -> tuple[str, ...]:
    """Return what readers of a run on a released graph must know; nothing on other graphs."""
    origin = getattr(graph, "release", None)
    if origin is None:
        return ()
    notes = [
        f"trained on a release ({origin.method}), at no further cost: the guarantee is the release's",
        *origin.notes,
    ]
    notes += noisy_label_notes(origin)
    epsilons = method.privacy.epsilon_y, method.privacy.epsilon_x or math.inf
    if any(math.isfinite(epsilon) for epsilon in epsilons):
        notes.append("noise was added to what anybody may know already: it costs accuracy and protects nothing more")
    return tuple(notes)


def noisy_label_notes(origin: Release) -> tuple[str, ...]:
    """Return the meaning of an accuracy on a folder's labels if these are randomized."""
    if origin.keep == 1:
        return ()
    return (
        "accuracy is measured against the labels in the folder, which are randomized: a on them stands for about "
        f"(a - {origin.flip:.3f}) / {origin.keep - origin.flip:.3f} on true ones",
    )


def _hits_of_refit(
    method: LocalMethod, reports: LocalReports, topology: Topology, graph: Graph, split: Split, **settings: int | str
) -> np.ndarray:
    """Return the hits of the same method, trained on these reports and edges with these settings of its network."""
    privacy = method.privacy
    if method.trains_network:
        network = {**asdict(method.settings), **settings}
        budgets: dict[str, Any] = {
            "epsilon_x": privacy.epsilon_x,
            "mechanism": privacy.mechanism,
            "delta": privacy.delta,
            "sampled": privacy.sampled,
            "pooling": method.pooling,
        }
        refit: LPGNN | LabelPropagation = LPGNN(epsilon_y=privacy.epsilon_y, **budgets, **network)
    else:
        refit = LabelPropagation(epsilon_y=privacy.epsilon_y, rule=method.rule, seed=method.seed, device=method.device)
    return hits(refit.fit_reports(reports, topology).probabilities(), graph, split)


def _public_only(reports: LocalReports, public: Topology, graph: Graph, split: Split) -> np.ndarray:
    """Return the hits of public labels, spread over public edges; of a uniform guess if labels are randomized."""
    labels = labels_of(reports)
    if labels.channel.keep < 1:
        return np.full(int(split.test.sum()), 1.0 / labels.channel.classes)
    spread, _ = propagate_labels(public.propagation(), labels.values, labels.train, labels.val, labels.channel)
    return hits(spread, graph, split)


def random_in_place(graph: Graph, seed: int) -> Tensor:
    """Return the public edges and as many random protected pairs as there are synthetic edges, [2, E]."""
    domain: PairDomain = domain_of(graph)
    count = int((~graph.public_edges).sum()) // 2
    # The same number: a release of more edges would otherwise win by number alone.
    ranks = np.random.default_rng([seed, 0xED6E]).choice(domain.size, size=count, replace=False)
    edge_index, _ = joined_edges(domain, domain.unrank(torch.from_numpy(ranks.astype(np.int64))))
    return edge_index


def _with_truth(released: Graph, graph: Graph) -> Graph:
    """Return a released graph with the true labels, to measure a simulation on."""
    # A copy: the true labels must not enter the graph that will be published.
    measured = copy.copy(released)
    measured.y = graph.y
    return measured
