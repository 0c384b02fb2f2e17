"""HeteroRR: a curator publishes one private graph, on which anybody may train.

    release   features, labels and private edges each through their mechanism, public edges as they are; paid once
    fit       release, then a plain network on what was released: post-processing

The result is a graph like any other, with its `release`: the guarantee, the ledger and the meaning of its numbers.
`graphs.write_release` writes it as a folder; loaded again it is the same graph.

Source: Tran, Lai, Phan et al., "Heterogeneous Randomized Response for Differential Privacy in Graph Neural Networks",
IEEE BigData 2022.  Corrected: the private nodes are declared, never derived from private edges; scores of features
come from public data or are paid for; the default tree is fitted on public edges alone, so that the guarantee needs no
converged Markov chain (`edges` = "mcmc" is the paper's, with one joint law for public and private edges).
"""

from __future__ import annotations

import math
import os
from dataclasses import fields, replace
from typing import Any, Self, Unpack

from graphveil.engine import LOCAL, Engine
from graphveil.errors import InputError
from graphveil.files.reading import read_scores
from graphveil.graphs import Graph, GraphSchema, Release, Split, require_split
from graphveil.graphs.value.checks import require_one_label
from graphveil.mechanisms import PairDomain, protected_pairs
from graphveil.mechanisms.by_blocks import randomize_by_blocks
from graphveil.methods.base.method import entry_of
from graphveil.methods.base.parameters import as_own_graph, not_by_blocks, require_unreleased
from graphveil.methods.base.people.account import Account, restored_account
from graphveil.methods.base.people.released import topology_of
from graphveil.methods.base.settings import NetworkSettings, PooledReleasedOptions, ReleasedOptions
from graphveil.methods.base.storage import Stored
from graphveil.methods.links.collection import people_key
from graphveil.methods.local.lpgnn import LPGNN
from graphveil.methods.release.counts.count_readings import NetworkReading, read_network
from graphveil.methods.release.counts.posterior import NONE, POSTERIOR, WEIGHTS, weighted_topology
from graphveil.methods.release.edges import Chains, count_neighbours, make_edges
from graphveil.methods.release.entries import CLASS_COUNTS, RELEASE_METHODS
from graphveil.methods.release.privacy import ReleasePrivacy, settings_of
from graphveil.methods.release.public_part import public_part_of
from graphveil.methods.release.published import (
    PublishedFeatures,
    ReleaseParts,
    assemble,
    describe,
    domain_of,
    published_features,
    published_schema,
    release_digest,
    rows_of,
)
from graphveil.methods.release.publisher import Publisher
from graphveil.methods.release.scores import Scores, declared_scores
from graphveil.privacy import Guarantee, Randomness, SeededRandomness, require_randomness
from graphveil.runtime.checks import require_choice
from graphveil.runtime.late import Tensor, torch
from graphveil.runtime.progress import ProgressCallback
from graphveil.training import Epoch

_NETWORK = tuple(field.name for field in fields(NetworkSettings) if field.name != "steps_y")
#: Hops over which noisy features are smoothed before the network.
HOPS = 8
#: Whether the network is pooled with the public part.
PUBLIC_PART, POOLINGS = "public-part", ("public-part", "none")


class HeteroRR(Publisher):
    """A curator publishes a private graph: `fit` is `release` (the curator), then `fit_released` (anybody).

    Args:
        features, edges, delta, bins, tree_share, count_share: see `ReleasePrivacy`.
        scores: the share of each feature in epsilon_x (features "feature-rr"): `Scores`, or a text file of one number a
            feature, which the curator declares to be public.
        weights: "posterior" weighs synthetic edges by the probability that they are true, see
            `methods.release.counts.posterior` (edges "edge-rand" and "lap-graph" alone); "none" takes them like public
            ones.
        pooling: "public-part" pools the network with the public part; "none" does not.
        settings: any field of `NetworkSettings` but `steps_y`, for the network that is trained on the release;
            `steps_x` is HOPS if features are protected, else 0.

    After fitting: `guarantee`, `ledger`, `history`, `published`, `reading` (what was used).

    Example:
        >>> from graphveil.graphs import social_graph
        >>> from graphveil.methods import HeteroRR
        >>> graph = social_graph(200, average_degree=8, dimension=20, classes=3, seed=1)
        >>> from graphveil.privacy import SecureRandomness
        >>> published = HeteroRR(epsilon_x=2.0, epsilon_a=1.0).release(graph, randomness=SecureRandomness())
        >>> published.release.guarantee.epsilon, published.num_nodes
        (3.0, 200)
    """

    entry, kind = entry_of("heterorr", RELEASE_METHODS), "heterorr"
    settings_type, derived = NetworkSettings, ("steps_x",)
    privacy: ReleasePrivacy

    def __init__(
        self,
        *,
        epsilon_x: float,
        epsilon_a: float,
        epsilon_y: float = math.inf,
        features: str = "multi-bit",
        edges: str = "public-tree",
        delta: float = 1e-10,
        bins: int = 10,
        tree_share: float = 0.5,
        count_share: float = 0.01,
        scores: Scores | str | None = None,
        steps: int | None = None,
        chains: int = 3,
        weights: str = NONE,
        pooling: str = PUBLIC_PART,
        **settings: Unpack[ReleasedOptions],
    ) -> None:
        for name, value, allowed in (("weights", weights, WEIGHTS), ("pooling", pooling, POOLINGS)):
            require_choice(allowed, **{name: value})
        self.weights, self.pooling = weights, pooling
        self.privacy = ReleasePrivacy(
            epsilon_x, epsilon_a, epsilon_y, features, edges, delta, bins, tree_share, count_share
        )
        if not isinstance(scores, Scores | str | os.PathLike | None):
            allowed = "a text file, or the Scores of methods.release.scores, such as declared_scores([...])"
            raise InputError(f"scores is a {type(scores).__name__}", allowed=allowed)
        self._scores_file = None if scores is None or isinstance(scores, Scores) else os.fspath(scores)
        if isinstance(scores, Scores):
            self.privacy = replace(self.privacy, scores=scores)
        elif scores is not None and features != "feature-rr":
            raise InputError(f"{features} gives every feature the same", remedy="leave out scores, or use feature-rr")
        self.chains = Chains(steps, chains)
        self._given_hops, self._network_settings = {"steps_x": settings.get("steps_x")}, dict[str, Any](settings)
        self.network = self._new_network(noisy=math.isfinite(epsilon_x))
        self.account = Account(self.privacy.open_ledger())
        self.reading: NetworkReading | None = None
        self._people: str | None = None

    # ---- the curator ----

    def release(
        self,
        graph: Graph,
        *,
        randomness: Randomness,
        method: str = "heterorr",
        split: Split | None = None,
        progress: ProgressCallback | None = None,
        engine: Engine = LOCAL,
    ) -> Graph:
        """Return the graph to publish, with its `release`; the only place that reads what is private.

        Args:
            graph: with `public_edges` and `private_nodes` if the owner declares them; else every edge is private, and
                every node may have some.
            split: whose labels may form groups (edges "class-counts"): training and validation nodes; None: all nodes
                with a label.

        Raises:
            BudgetError: when this release has already been made, before anything is read.
            InputError: for a directed graph whose edges are private, private edges outside the declared pairs, or
                values outside what was declared; or another engine than `LOCAL` with nothing to work on by blocks.
        """
        graph = as_own_graph(graph)
        require_unreleased(graph, method)
        require_randomness(randomness)
        if split is not None:
            require_split(split, int(graph.num_nodes))
        if engine != LOCAL and not self.privacy.by_blocks:
            raise not_by_blocks(method)
        # Scores are fixed before the graph is read: shares that depended on it would cost more than epsilon.
        if self._scores_file is not None and self.privacy.scores is None:
            values = read_scores(self._scores_file, graph.schema.dimension)
            self.privacy = replace(self.privacy, scores=declared_scores(values))
        privacy = self.privacy
        domain = None if "edges" not in privacy.protected else domain_of(graph)
        # Before anything is paid: a release without a valid declaration would be lost.
        schema = published_schema(graph.schema, privacy.feature_mechanism(graph.schema), int(graph.num_nodes))
        needs_label = privacy.edges == CLASS_COUNTS or "labels" in privacy.protected
        # The price follows from the schema and the protected pairs, which are public: paying reads nothing.
        parts = self.account.buy(
            privacy.spends(graph.schema, domain),
            lambda: self._read(graph, domain, split, progress, randomness=randomness, engine=engine),
            check=(lambda: require_one_label(graph)) if needs_label else None,
        )
        released = assemble(graph, schema, domain, parts)
        # The ledger goes with the graph: whoever trains on it sees what was paid, and pays nothing.
        released.release = describe(method, graph.schema, privacy, domain, parts, self.account.ledger, randomness)
        self.account.remember(f"release {release_digest(released)}")
        return released

    def _read(
        self,
        graph: Graph,
        domain: PairDomain | None,
        split: Split | None,
        progress: ProgressCallback | None,
        **keywords: Any,
    ) -> ReleaseParts:
        """Return features, labels and edges behind their mechanisms; public parts as they are."""
        schema, privacy = graph.schema, self.privacy
        mechanism = privacy.feature_mechanism(schema)
        features = PublishedFeatures(graph.x, "")
        if mechanism is not None:
            features = published_features(mechanism, randomize_by_blocks(mechanism, graph.x, **keywords))
        synthetic, counts = None, None
        if domain is not None:
            facts = {"public_edges": graph.get("public_edges"), "members": graph.get("private_nodes")}
            _, private = protected_pairs(int(graph.num_nodes), graph.edge_index, **facts)
            rows = rows_of(features.x) if mechanism is None else None  # noisy rows would place nodes badly
            synthetic = make_edges(
                privacy, domain, private, features=rows, chains=self.chains, progress=progress, **keywords
            )
            if privacy.edges == CLASS_COUNTS:
                groups = public_part_of(graph, split, domain).groups()
                counts = count_neighbours(privacy, domain, private, groups, len(schema.classes), **keywords)
        labels, y = privacy.label_mechanism(len(schema.classes)), graph.y
        if labels is not None:
            y = y.clone()
            # Who has a label is public; the label goes through the mechanism.
            y[y >= 0] = randomize_by_blocks(labels, y[y >= 0], **keywords).labels
        return ReleaseParts(features, y, synthetic, counts)

    # ---- anybody ----

    def fit_released(self, released: Graph, *, split: Split, progress: ProgressCallback | None = None) -> Self:
        """Train on a released graph, any number of times at no privacy cost. Guarantee and ledger are then the
        release's, whatever epsilons this method was built with.

        Raises:
            InputError: for a graph that nobody released.
            BudgetError: another release than the one that was paid for, and no budget for two.
        """
        released = as_own_graph(released)
        origin: Release | None = released.get("release")
        if origin is None:
            raise InputError("the graph was not released", where="fit_released", remedy="call release first")
        if origin.counts is not None:
            raise InputError("counts were released, and no edges", where="fit_released", remedy="train class-counts")
        require_split(split, int(released.num_nodes))
        self.account.adopt(release_digest(released), origin.ledger)
        # For the features of the release, whatever the settings of this method.
        self.network = self._new_network(noisy="features" in origin.settings)
        reports = self.network.randomize(released, split=split, randomness=SeededRandomness(0))  # nothing is drawn
        topology = topology_of(released)
        if self.weights == POSTERIOR:
            topology = weighted_topology(released, split, domain_of(released), seed=self.seed)
        self.network.fit_reports(reports, topology, progress=progress)
        self.reading = None
        if self.pooling == PUBLIC_PART:
            domain = domain_of(released) if origin.edges else None
            logits = self.network.result.network.logits
            self.reading = read_network(released, domain, reports, logits, self.settings)
        self.published, self._people = released, people_key(released)
        return self

    # ---- what comes out ----

    def probabilities(self, graph: Graph | None = None, *, randomness: Randomness | None = None) -> Tensor:
        """Return class probabilities [n, c] of the released nodes; nothing private is read. Other nodes are refused:
        their graph would have to be released, which nobody has paid for.
        """
        self._require_fitted()
        if graph is not None and people_key(graph) != self._people:
            raise InputError(
                f"{self.name} predicts only the nodes that were released",
                where=graph.schema.name,
                remedy="release the other graph, and train on both releases with gcn or sage",
            )
        return self.network.predict_proba() if self.reading is None else torch.softmax(self.reading.scores, dim=1)

    @property
    def fitted(self) -> bool:
        """Whether there is a trained network."""
        return self._people is not None

    @property
    def several(self) -> bool:
        return self.network.several

    def parameters(self) -> dict[str, Any]:
        privacy = {field.name: getattr(self.privacy, field.name) for field in fields(self.privacy)}
        scores = {"scores": self._scores_file or self.privacy.scores}
        network = {name: getattr(self.settings, name) for name in _NETWORK}
        return {**privacy, **scores, **self._options, **network, **self._given_hops}

    @property
    def _options(self) -> dict[str, Any]:
        chains = {"steps": self.chains.steps, "chains": self.chains.chains}
        return {**chains, "weights": self.weights, "pooling": self.pooling}

    @property
    def settings(self) -> NetworkSettings:
        """The settings of the network that is trained on the release."""
        return self.network.settings

    @property
    def schema(self) -> GraphSchema:
        """The public facts of the released graph."""
        self._require_fitted()
        return self.network.schema

    @property
    def mechanism_guarantee(self) -> Guarantee:
        self._require_fitted()
        return self.network.guarantee

    @property
    def history(self) -> tuple[Epoch, ...]:
        self._require_fitted()
        return self.network.history

    # ---- files ----

    def stored(self) -> Stored:
        """Return the network, predictions, guarantee and ledger; no graph."""
        self._require_fitted()
        network, account = self.network, self.account
        facts = {**network.facts(), "people": self._people, "budgets": settings_of(self.privacy)}
        facts |= {**account.facts(), "collections": sorted(account.collections | network.account.collections)}
        facts |= {"guarantee": self.guarantee.to_dict(), "options": self._options}
        # The prediction of the reading in place of the network's: a loaded method predicts by these alone.
        scores = {} if self.reading is None else {"logits": self.reading.scores}
        return Stored(facts, network.tensors() | scores)

    @classmethod
    def restore(cls, stored: Stored) -> Self:
        """Return what `stored` gave, able to predict for its own nodes; its release cannot be repeated."""
        facts = stored.facts
        budgets = {key: value for key, value in facts["budgets"].items() if not key.startswith("scores")}
        numbers = {name: float(budgets[name]) for name in ("epsilon_x", "epsilon_a", "epsilon_y")}
        network, unset = LPGNN.restore(stored), facts.get("unset", ("steps_x",))
        settings = {name: getattr(network.settings, name) for name in _NETWORK}
        steps_x = None if "steps_x" in unset else network.settings.steps_x
        method = cls(**{**budgets, **numbers, **facts.get("options", {}), **settings, "steps_x": steps_x})
        method.network = network
        # Not the account of the network: this one has paid for the release.
        method.account = restored_account(facts)
        method._people = str(facts["people"])
        return method

    def _new_network(self, *, noisy: bool) -> LPGNN:
        """Return the untrained network for noisy or public features."""
        steps_x = self._given_hops["steps_x"]
        steps_x = (HOPS if noisy else 0) if steps_x is None else steps_x
        # Budgets are infinite: the data of the network has passed the mechanisms already.
        options = {**self._network_settings, "steps_x": steps_x}
        return LPGNN(epsilon_x=math.inf, epsilon_y=math.inf, pooling="none", **options)

    def _require_fitted(self) -> None:
        if self._people is None:
            raise InputError(f"this {self.name} has not been fitted", remedy="call fit or fit_released first")


class FeatureRR(HeteroRR):
    """Private features are published, every one in a bin near the true one; edges as they are."""

    entry = entry_of("feature-rr", RELEASE_METHODS)

    def __init__(
        self,
        *,
        epsilon_x: float,
        epsilon_y: float = math.inf,
        bins: int = 10,
        scores: Scores | str | None = None,
        **settings: Unpack[PooledReleasedOptions],
    ) -> None:
        keywords: dict[str, Any] = {"bins": bins, "scores": scores, **settings, **self.entry.fixed}
        super().__init__(epsilon_x=epsilon_x, epsilon_y=epsilon_y, **keywords)


class EdgeRR(HeteroRR):
    """Private edges are made anew from noisy counts of blocks of a tree; features are published as they are."""

    entry = entry_of("edge-rr", RELEASE_METHODS)

    def __init__(
        self,
        *,
        epsilon_a: float,
        edges: str = "public-tree",
        tree_share: float = 0.5,
        steps: int | None = None,
        chains: int = 3,
        **settings: Unpack[PooledReleasedOptions],
    ) -> None:
        tree: dict[str, Any] = {"edges": edges, "tree_share": tree_share, "steps": steps, "chains": chains}
        super().__init__(epsilon_a=epsilon_a, **tree, **settings, **self.entry.fixed)


class EdgeRand(HeteroRR):
    """Private edges are published after randomized response on every pair; features as they are."""

    entry = entry_of("edge-rand", RELEASE_METHODS)

    def __init__(self, *, epsilon_a: float, weights: str = NONE, **settings: Unpack[PooledReleasedOptions]) -> None:
        super().__init__(epsilon_a=epsilon_a, weights=weights, **settings, **self.entry.fixed)


class LapGraph(HeteroRR):
    """The pairs that are largest after noise are published as edges; features as they are."""

    entry = entry_of("lap-graph", RELEASE_METHODS)

    def __init__(
        self,
        *,
        epsilon_a: float,
        count_share: float = 0.01,
        weights: str = NONE,
        **settings: Unpack[PooledReleasedOptions],
    ) -> None:
        keywords: dict[str, Any] = {"count_share": count_share, "weights": weights, **settings, **self.entry.fixed}
        super().__init__(epsilon_a=epsilon_a, **keywords)


class PrivHRG(HeteroRR):
    """Edges are published that are drawn from a tree which private edges helped to fit; features as they are."""

    entry = entry_of("priv-hrg", RELEASE_METHODS)

    def __init__(
        self,
        *,
        epsilon_a: float,
        tree_share: float = 0.5,
        steps: int | None = None,
        **settings: Unpack[PooledReleasedOptions],
    ) -> None:
        keywords: dict[str, Any] = {"tree_share": tree_share, "steps": steps, **settings, **self.entry.fixed}
        super().__init__(epsilon_a=epsilon_a, **keywords)
