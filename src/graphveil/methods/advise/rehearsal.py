"""What is declared public about a graph, made graphs that are like it, and what a method buys in them.

    edges      private: made by the law of `graphs.named.social`, as many as are assumed, so often inside a class
    labels     private: on public edges, spread from random people and then partly redrawn; else even
    features   private: made as in `graphs.named.social`

How much contacts say of classes is private where edges or labels are, so a world is made for each of three answers:
EXCESS is the share of contacts inside a class beyond what chance brings.  The public graphs of the panel lie between
(adjusted homophily 0.0 to 0.8).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, Final

import numpy as np

from graphveil.graphs import Graph
from graphveil.graphs.named.social import social_edges, social_features
from graphveil.graphs.public_edges import public_of
from graphveil.graphs.value.checks import require_one_label
from graphveil.graphs.value.edges import merge_edges
from graphveil.graphs.value.features import compact_rows
from graphveil.graphs.value.parts import Features, GraphParts, SparseRows
from graphveil.graphs.value.schema import FeatureNumbers
from graphveil.graphs.value.value import plain_graph
from graphveil.mechanisms.base.mechanism import VectorDomain
from graphveil.mechanisms.question import example_question
from graphveil.methods.base.cost import ASSUMED_DEGREE, settle_threads
from graphveil.methods.local.controls import hits
from graphveil.methods.registry import build_method, resolved_choice
from graphveil.methods.release.public_part import public_part_of
from graphveil.methods.release.published import domain_of
from graphveil.methods.release.rehearsal import made_private
from graphveil.methods.runs.experiment import split_of
from graphveil.methods.runs.intervals import Interval, interval
from graphveil.privacy import SeededRandomness
from graphveil.runtime.late import sparse
from graphveil.runtime.progress import Progress, ProgressCallback
from graphveil.runtime.words import count_of


@dataclass(frozen=True)
class PublicFacts:
    """What may be known of a graph before anything is collected.

    Attributes:
        nodes, labelled: people, and how many of them have a label (whose is public, which is not).
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
            f"{count_of(self.nodes, 'person')}, {self.labelled:,} with a label, {self.classes} classes, "
            f"{count_of(self.dimension, 'feature')}"
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
        hidden: the parts that are private or protected.
        degree: contacts of a person, where edges are hidden.
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


@dataclass(frozen=True)
class Band:
    """From the least to the greatest that may be expected, as shares: ends of the 95% intervals of all rehearsals."""

    low: float
    high: float

    @property
    def points(self) -> str:
        return f"{100 * self.low:+.1f} to {100 * self.high:+.1f}"

    def to_dict(self) -> dict[str, float]:
        return {"low": self.low, "high": self.high}


@dataclass(frozen=True)
class Trial:
    """One rehearsal: in which world, what accuracy, and what lift over the best control, and which that was."""

    world: str
    accuracy: Interval
    lift: Interval
    control: str


@dataclass(frozen=True)
class Rehearsal:
    """What one method and one epsilon brought in all worlds."""

    trials: tuple[Trial, ...]

    def band(self, what: str) -> Band:
        bands = [getattr(trial, what) for trial in self.trials]
        return Band(min(band.low for band in bands), max(band.high for band in bands))


def rehearse(
    name: str,
    settings: Mapping[str, Any],
    worlds: Sequence[World],
    over: tuple[str, ...],
    *,
    seeds: Sequence[int] = (0,),
    progress: ProgressCallback | None = None,
) -> Rehearsal:
    """Train a method and its controls in every world.

    Args:
        over: the controls that count; empty: all of them.
        worlds: made or public graphs; their noise is seeded, since nobody is in them whom it could hide.
        seeds: of splits and noise, one rehearsal each.
    """
    spent = [value for key, value in settings.items() if key in ("epsilon", "epsilon_a", "epsilon_x", "epsilon_y")]
    finite = [value for value in spent if value is not None and math.isfinite(value)]
    stage = f"rehearsing {name}" + (f" at epsilon {finite[-1]:g}" if finite else "")
    trials = []
    for number, (world, seed) in enumerate((world, seed) for world in worlds for seed in seeds):
        if progress is not None:
            progress(Progress(number, len(worlds) * len(seeds), stage))
        # Worlds are small: on a busy machine a second thread makes them slower by far.
        settle_threads(world.graph)
        trials.append(_rehearse(name, settings, world, over, seed))
    return Rehearsal(tuple(trials))


def _rehearse(name: str, settings: Mapping[str, Any], world: World, over: tuple[str, ...], seed: int) -> Trial:
    graph, classes = world.graph, len(world.graph.schema.classes)
    split = split_of(graph, "random", seed)
    method = build_method(name, settings, classes, seed=seed)
    method.fit(graph, split=split, randomness=SeededRandomness(seed))
    mine = hits(method.predict_proba(), graph, split)
    family = resolved_choice(name, settings, classes).method.load_family()
    # Other noise than the method's: a control that shared it would be better than any that could be had.
    controls = family.controls(method, graph, split, randomness=SeededRandomness(1_000 + seed))
    rows: dict[str, np.ndarray] = {key: train() for key, train in controls.items() if not over or key in over}
    # The best is chosen by the figures it is compared with, so the lift errs on the low side.
    best = max(rows, key=lambda key: rows[key].mean())
    lift = interval([mine - rows[best]], difference=True)
    return Trial(world.name, interval([mine]), lift, best)


EXCESS: Final[Mapping[str, float]] = MappingProxyType({"hardly": 0.1, "partly": 0.4, "mostly": 0.7})
#: Larger graphs are rehearsed on so many of their people.
MOST_PEOPLE: Final = 1_500
#: The same where edges are public and stay as they are.
MOST_BY_EDGES: Final = 6_000
#: With public edges the whole graph is rehearsed on, as a release rehearses.
MOST_PEOPLE_BY_PAIRS: Final = 25_000
_HOPS: Final = 8
_MOST_COLUMNS, _APPS, _SIGNAL = 200, 12.0, 0.3


@dataclass(frozen=True)
class World:
    """A graph to rehearse on, and in words what it is."""

    name: str
    graph: Graph


def worlds_of(graph: GraphParts, facts: PublicFacts, *, seed: int = 0) -> Iterator[World]:
    """Yield a world for each answer to how much contacts say of classes.

    Args:
        graph: only parts that are not hidden are read, and who has a label.
        seed: fixes what is made.
    """
    # Private edges are drawn among pairs of people, which have no direction.
    paired = graph.public_edges is not None and not graph.schema.directed
    if paired and facts.hidden == ("edges",) and facts.nodes <= MOST_PEOPLE_BY_PAIRS:
        yield World("private contacts lie as public ones do", plain_graph(_with_public_edges(graph, seed)))
        return
    # One draw for all three: they differ in what contacts say of classes, and as little as can be in all else.
    for name, excess in EXCESS.items():
        similar = _similar(graph, facts, excess, np.random.default_rng([seed, 0xAD]))
        yield World(f"contacts follow classes {name} ({_inside(similar):.0f}% inside)", plain_graph(similar))


def pilot_world(pilot: GraphParts) -> World:
    """Return a graph that its owner declares public or paid, as it is: all parts are read."""
    # Its own declaration binds nobody here, and methods on a public topology would refuse private edges.
    opened = replace(pilot, schema=pilot.schema.derived(private=("features", "labels")))
    return World(f"the pilot {pilot.schema.name}", plain_graph(opened))


def _inside(similar: GraphParts) -> float:
    """The share of contacts inside a class in a made graph, %; classes that public edges cannot follow reach less."""
    source, target = similar.edge_index
    both = (similar.y[source] >= 0) & (similar.y[target] >= 0)
    return 100 * float((similar.y[source] == similar.y[target])[both].mean()) if both.any() else 0.0


def _share(excess: float, classes: int) -> float:
    return 100 * (1 / classes + (1 - 1 / classes) * excess)


def _similar(graph: GraphParts, facts: PublicFacts, excess: float, rng: np.random.Generator) -> GraphParts:
    hidden, schema = set(facts.hidden), graph.schema
    people = np.arange(facts.nodes)
    if facts.nodes > (MOST_PEOPLE if "edges" in hidden else MOST_BY_EDGES):
        # Of people alone: a sample of a graph's edges would leave fewer contacts a person.
        people, hidden = np.sort(rng.choice(people, MOST_PEOPLE, replace=False)), hidden | {"edges"}
    # Who has a label is public also where the label is not: see the guarantees.
    labelled = np.asarray(graph.y >= 0)[people]
    if "labels" in hidden and "edges" in hidden:
        labels = rng.integers(facts.classes, size=len(people))
    elif "labels" in hidden:
        labels = _labels(graph, facts, excess, rng)
    else:
        labels = graph.y[people].copy()
        # Also people without a label have a class, which their contacts follow.
        labels[~labelled] = rng.choice(labels[labelled], int((~labelled).sum()))
    # Methods on a public topology refuse a graph that says that its edges are private; here nobody's are.
    edges = _edges(labels, facts, excess, rng) if "edges" in hidden else graph.edge_index
    x, schema = graph.x, schema.derived(private=("features", "labels"))
    if "features" in hidden:
        x = _features(labels, facts, rng)
        schema = schema.derived(numbers=FeatureNumbers(x.shape[1], 0.0, 1.0, "made"))
    elif len(people) < facts.nodes:
        x = rows_of(x, people)
    return GraphParts(x, edges, np.where(labelled, labels, -1), schema)


def _with_public_edges(graph: GraphParts, seed: int) -> GraphParts:
    """The graph with its public edges, and private ones made as `release.rehearsal` makes them."""
    plain = plain_graph(graph)
    domain = domain_of(plain)
    private = made_private(public_part_of(plain, None, domain), domain, None, np.random.default_rng(seed)).numpy()
    public = np.zeros((2, 0), np.int64) if domain.public is None else domain.public.numpy()
    ends = np.concatenate([public, private], axis=1)
    is_public = np.arange(ends.shape[1]) < public.shape[1]
    edges = merge_edges(ends[0], ends[1], graph.num_nodes, directed=False)[0]
    mask = public_of(is_public, ends, edges, directed=False)
    schema = graph.schema.derived(private=("features", "labels"))
    return replace(graph, edge_index=edges, public_edges=mask, schema=schema, release=None)


def _edges(labels: np.ndarray, facts: PublicFacts, excess: float, rng: np.random.Generator) -> np.ndarray:
    # A made graph has no room for more contacts than a quarter of its people, see `social_graph`.
    degree = min(ASSUMED_DEGREE if facts.degree is None else facts.degree, len(labels) / 5)
    count = round(len(labels) * degree / 2)
    inside = _share(excess, facts.classes) / 100
    source, target = social_edges(labels.astype(np.int16), facts.classes, count, inside, rng)
    return merge_edges(source, target, len(labels), directed=False)[0]


def _labels(graph: GraphParts, facts: PublicFacts, excess: float, rng: np.random.Generator) -> np.ndarray:
    """Return classes that follow public edges: spread from random people, then redrawn for as many as `excess` asks."""
    source, target = graph.edge_index
    n = facts.nodes
    matrix: sparse.csr_matrix = sparse.csr_matrix((np.ones(len(source), np.float32), (source, target)), shape=(n, n))
    # Five people a class: one alone may lie in a corner that nothing spreads from.
    start = np.zeros((n, facts.classes), np.float32)
    first = rng.choice(n, min(n, 5 * facts.classes), replace=False)
    start[first, np.arange(len(first)) % facts.classes] = 1
    spread, degree = start, np.maximum(np.diff(matrix.indptr), 1)[:, None]
    # As far as eight contacts: farther, large groups would swallow small ones.
    for _ in range(_HOPS):
        # Columns of equal sum: else the class of one hub would be everybody's.
        spread = start + matrix @ (spread / spread.sum(axis=0)) / degree
    labels: np.ndarray = (spread + 1e-9 * rng.random(spread.shape)).argmax(axis=1)
    same = float((labels[source] == labels[target]).mean()) if len(source) else 0.0
    chance = float(((np.bincount(labels, minlength=facts.classes) / n) ** 2).sum())
    attained = max((same - chance) / max(1 - chance, 1e-9), 1e-9)
    # A redrawn end makes a contact chance: both ends are kept with the square of this probability.
    redrawn = rng.random(n) < 1 - min(1.0, excess / attained) ** 0.5
    labels[redrawn] = rng.integers(facts.classes, size=int(redrawn.sum()))
    return labels


def _features(labels: np.ndarray, facts: PublicFacts, rng: np.random.Generator) -> Features:
    # Wide features cost time and change little: what they say of classes is made up anyhow.
    columns = min(facts.dimension, _MOST_COLUMNS)
    return compact_rows(social_features(labels, facts.classes, columns, min(_APPS, columns / 2), _SIGNAL, rng))


def rows_of(features: Features, people: np.ndarray) -> Features:
    """Return the feature rows [k, d] of some people, by row numbers [k]."""
    if isinstance(features, SparseRows):
        parts = (features.values, features.columns, features.starts)
        return compact_rows(sparse.csr_matrix(parts, shape=features.shape)[people])
    rows: np.ndarray = features[people]
    return rows
