"""Reconstruction: a person's whole feature vector, from what a method shows of that person.

The adversary knows what some of the people hold (half of them, unless told otherwise) and sees of everybody

    a report       where people randomize their features themselves: its unbiased estimate
    a release      where a graph was published: the published features
    answers        everywhere else: probabilities and their logs

It learns to go back from one to the other (see `inversion`) and reconstructs everybody else.  Judged by
re-identification: is a reconstruction more like what this person holds than like what another person of the same class
holds?  The class by itself says nothing about that, so 0.5 is chance.  Alike is the cosine of what both have beyond the
mean of the class.
A report or a published row depends on one person's features alone, so epsilon bounds it whoever that person's friends
are; answers also show what friends have in common, which labels spread over the edges, the baseline, show as well.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch

from graphveil.attacks.inversion import inverted
from graphveil.attacks.limits import Limit, limit_of, limit_of_answers, require_truth
from graphveil.attacks.result import AttackResult, Samples, auc_of, judge
from graphveil.attacks.service import Answering, answer_rows, labels_alone
from graphveil.errors import InputError
from graphveil.graphs import Graph, GraphSchema, Split
from graphveil.mechanisms import NotCollected, Public
from graphveil.mechanisms.base.values import Values
from graphveil.methods.base.network.network import as_matrix
from graphveil.methods.base.people.local_privacy import LocalPrivacy
from graphveil.methods.release.privacy import ReleasePrivacy
from graphveil.privacy import Randomness
from graphveil.runtime.checks import require_number
from graphveil.runtime.words import count_of

_COLUMNS = 2000
_LEARNED = 4000
_JUDGED = 2000
_FEWEST = 10
_PICTURES = 10


@dataclass(frozen=True)
class _People:
    """Those who take part.

    Attributes:
        nodes: int64 [m], ascending; auxiliary: mask [m] of those whose features the adversary knows.
        features: theirs as they are [m, D]; truth: those under attack, over the declared range [m, d] in 0..1.
        columns: which they are [d]; groups: the class of each [m], all 0 where people have several.
    """

    nodes: np.ndarray
    auxiliary: np.ndarray
    features: Any
    truth: np.ndarray
    columns: np.ndarray
    groups: np.ndarray


@dataclass(frozen=True)
class _View:
    """What an adversary sees of people, in words, and the limit that it is under."""

    observed: np.ndarray
    words: str
    limit: Limit
    baseline: np.ndarray | None = None
    baseline_note: str = "the mean of the class"
    estimate: np.ndarray | None = None


def reconstruction(
    method: Answering,
    graph: Graph,
    *,
    served: Graph | None = None,
    auxiliary: float | np.ndarray = 0.5,
    observed: np.ndarray | None = None,
    noiseless: bool = False,
    split: Split | None = None,
    randomness: Randomness | None = None,
    seed: int = 0,
) -> AttackResult:
    """Return how much nearer reconstructions are to the true features than to those of somebody like them.

    Args:
        graph: with the true features, which score the attack; `image`, where they are pixels.
        served: the graph that the method was trained on; default: `graph`.
        auxiliary: share of the nodes whose features the adversary knows, or a mask [n] of them.
        observed: what is shown of each node [n, k], such as embeddings, in place of what the module says.
        noiseless: show the features as they are: what a report or a release would be without protection.
        split: whose labels the baseline of answers knows; default: half of them.
        randomness: of the reports, which are made anew for the attack.

    Raises:
        InputError: for a share outside its range, too few people, features that are the same for all, or a published
            graph without the graph that it was made of.
    """
    require_truth(graph, "features", "reconstruction")
    rng = np.random.default_rng([seed, 0x1A6E])
    people = _people(graph, auxiliary, rng)
    served = graph if served is None else served
    if observed is not None:
        if observed.shape[:1] != (int(graph.num_nodes),):
            what = f"{count_of(len(observed), 'row')} shown"
            raise InputError(what, where="reconstruction", allowed="one for each node")
        rows = observed[people.nodes].astype(np.float64)
        view = _View(rows, "what is shown of it", limit_of(method, "features"))
    elif noiseless or shows_features(method, served):
        view = _copied(method, graph, served, people, noiseless, randomness)
    else:
        view = _answered(method, graph, people, split, seed)
    hidden, seen = ~people.auxiliary, people.truth[people.auxiliary]
    guess = inverted(view.observed, people.auxiliary, seen, seed=seed, estimate=view.estimate)[hidden]
    # Candidates share a class: telling classes apart is no reconstruction of a person.
    truth, centre = people.truth[hidden], _centres(people)[hidden]
    targets, partners = _partners(people.groups[hidden], rng)
    own, other = _alike(guess, truth, centre, targets, targets), _alike(guess, truth, centre, targets, partners)
    baseline = centre if view.baseline is None else inverted(view.baseline, people.auxiliary, seen, seed=seed)[hidden]
    figures = likeness(guess, truth, centre, seen.mean(axis=0), graph.get("image") is not None)
    figures["nearer to its own than to the other"] = float(((own > other) + 0.5 * (own == other)).mean())
    result = judge(
        "reconstruction",
        f"all features of a node from {view.words}",
        own,
        other,
        limit=view.limit,
        seed=seed,
        baseline=auc_of(
            _alike(baseline, truth, centre, targets, targets), _alike(baseline, truth, centre, targets, partners)
        ),
        baseline_note=view.baseline_note,
        figures=figures,
        notes=_notes(people, graph, figures),
    )
    return _with_samples(result, graph, people, guess)


def shows_features(method: object, served: Graph) -> bool:
    """Return whether a copy of each node's features is shown, noisy or not: a report, or a published row.

    Args:
        served: the graph the method was fitted on, which may be a release.
    """
    return served.get("release") is not None or _mechanism(method, served.schema) is not None


def _mechanism(method: object, schema: GraphSchema) -> Any:
    """Return the mechanism that hides the shown features, or None where others see answers alone."""
    privacy = getattr(method, "privacy", None)
    if isinstance(privacy, ReleasePrivacy):
        return privacy.feature_mechanism(schema) or Public(dimension=schema.dimension)
    if not isinstance(privacy, LocalPrivacy):
        return None
    mechanism = privacy.features(schema)
    # Of a plain network's features answers are seen alone.
    return None if isinstance(mechanism, Public | NotCollected) else mechanism


def _people(graph: Graph, auxiliary: float | np.ndarray, rng: np.random.Generator) -> _People:
    """Draw who is known and who is attacked, two disjoint sets; the only function that reads features and labels."""
    n, d, schema = int(graph.num_nodes), int(graph.schema.dimension), graph.schema
    order = rng.permutation(n)
    if isinstance(auxiliary, np.ndarray):
        if auxiliary.shape != (n,) or auxiliary.dtype != bool:
            raise InputError(
                f"auxiliary is {auxiliary.dtype} {auxiliary.shape}", where="reconstruction", allowed=f"a mask [{n}]"
            )
        # In random order, so that cutting to a limit below draws at random.
        learned, attacked = order[auxiliary[order]], order[~auxiliary[order]]
    else:
        require_number("(0, 1)", "reconstruction", auxiliary=auxiliary)
        learned, attacked = order[: round(auxiliary * n)], order[round(auxiliary * n) :]
    if min(len(learned), len(attacked)) < _FEWEST:
        what = f"{len(learned)} known and {len(attacked)} other nodes"
        raise InputError(what, where="reconstruction", allowed=f"{_FEWEST} of each")
    nodes = np.sort(np.concatenate([learned[:_LEARNED], attacked[:_JUDGED]]))
    # Sorted, so that the columns lie in memory as they are read.
    columns = np.sort(rng.permutation(d)[:_COLUMNS])
    features: Any = as_matrix(graph.x)
    features = features[nodes] if sp.issparse(features) else features[torch.from_numpy(nodes)]
    # Over the declared range, so that errors of different graphs compare; the data's own range would be read off it.
    truth = (_dense(features, columns) - schema.low) / (schema.high - schema.low)
    if not truth.std(axis=0).any():
        remedy = "attack a graph with features"
        raise InputError("the graph has no features", where="reconstruction", remedy=remedy)
    groups = graph.y.numpy()[nodes] if graph.y.dim() == 1 else np.zeros(len(nodes), dtype=np.int64)
    return _People(nodes, np.isin(nodes, learned), features, truth, columns, groups)


def _copied(
    method: object, graph: Graph, served: Graph, people: _People, noiseless: bool, randomness: Randomness | None
) -> _View:
    mechanism = Public(dimension=graph.schema.dimension) if noiseless else _mechanism(method, graph.schema)
    if not noiseless and served.get("release") is not None:
        published: Any = as_matrix(served.x)
        copy, words = _dense(published[people.nodes], people.columns), "its published features"
    elif isinstance(mechanism, Public):
        copy, words = _dense(people.features, people.columns), "its features without noise"
    else:
        if randomness is None:
            raise InputError("this attack draws reports", where="reconstruction", remedy="give randomness")
        # Made anew: a second report of the same person, which a simulation may draw and a collection has to pay for.
        reports = mechanism.randomize(people.features, randomness=randomness)
        copy, words = _dense(mechanism.centred(reports), people.columns), "its noisy report"
    copy = copy / (graph.schema.high - graph.schema.low)
    return _View(copy, words, limit_of(method, "features"), estimate=copy)


def _answered(method: Answering, graph: Graph, people: _People, split: Split | None, seed: int) -> _View:
    limit = limit_of_answers(method)
    classes = people.groups[:, None] == np.unique(people.groups)
    baseline = np.concatenate([labels_alone(graph, split, seed)[people.nodes], classes], axis=1)
    rows = answer_rows(method, graph)[people.nodes]
    return _View(rows, "the answer about it", limit, baseline, "the class, and labels spread over the edges")


def _dense(rows: Values, columns: np.ndarray) -> np.ndarray:
    if isinstance(rows, torch.Tensor | np.ndarray):
        return np.asarray(rows)[:, columns].astype(np.float64)
    return np.asarray(rows[:, columns].toarray(), np.float64)


def _centres(people: _People) -> np.ndarray:
    """Return for each of the people the mean of those known who have the same class [m, d]; of all, where none has."""
    # Means of known people alone: one over everybody would hold the very rows that are to be reconstructed.
    centres = np.repeat(people.truth[people.auxiliary].mean(axis=0)[None], len(people.nodes), axis=0)
    for group in np.unique(people.groups):
        alike = people.groups == group
        if (alike & people.auxiliary).any():
            centres[alike] = people.truth[alike & people.auxiliary].mean(axis=0)
    return centres


def _partners(groups: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Return everybody who has somebody of the same class beside, and one of these: each is somebody's once. So every
    candidate is compared as often with its own reconstruction as with another's, as the limit supposes.
    """
    targets, partners = [], []
    for group in np.unique(groups):
        places = rng.permutation(np.flatnonzero(groups == group))
        # A class with one node offers nobody to be confused with.
        if len(places) > 1:
            targets.append(places)
            # A cycle in random order: nobody is compared with itself, and everybody serves once as the other.
            partners.append(np.roll(places, 1))
    if not targets:
        raise InputError("no two nodes under attack have the same class", where="reconstruction")
    return np.concatenate(targets), np.concatenate(partners)


def _alike(
    guess: np.ndarray, truth: np.ndarray, centre: np.ndarray, targets: np.ndarray, candidates: np.ndarray
) -> np.ndarray:
    """Return how alike the reconstructions of `targets` and the truth of `candidates` are beyond their class [p]."""
    guessed, actual = guess[targets] - centre[targets], truth[candidates] - centre[targets]
    sizes = np.linalg.norm(guessed, axis=1) * np.linalg.norm(actual, axis=1)
    cosine: np.ndarray = np.where(sizes > 1e-12, (guessed * actual).sum(axis=1) / np.maximum(sizes, 1e-12), 0.0)
    # Rounded, so that rounding errors do not break ties between equal candidates.
    return cosine.round(9)


def _notes(people: _People, graph: Graph, figures: Mapping[str, float]) -> tuple[str, ...]:
    learned = int(people.auxiliary.sum())
    attacked = len(people.nodes) - learned
    nodes, strangers = count_of(learned, "node"), count_of(attacked, "other")
    errors = [figures[f"mean squared error{of}"] for of in ("", " of the class mean", " of the overall mean")]
    notes = [
        f"the adversary knew the features of {nodes}, and reconstructed {strangers}",
        f"mean squared error of a feature over its range: {errors[0]:.3g}; of the class mean {errors[1]:.3g}, of the "
        f"overall mean {errors[2]:.3g}",
    ]
    if len(people.columns) < graph.schema.dimension:
        notes.append(f"{len(people.columns):,} of the {graph.schema.dimension:,} features, drawn at random")
    if graph.y.dim() != 1:
        notes.append("nodes have several labels: compared with any other node")
    return tuple(notes)


def _with_samples(result: AttackResult, graph: Graph, people: _People, guess: np.ndarray) -> AttackResult:
    """Return the result with the reconstruction of each class's first node, where features are pixels of an image."""
    image = graph.get("image")
    if image is None or graph.y.dim() != 1:
        return result
    hidden = np.flatnonzero(~people.auxiliary)
    groups, first = np.unique(people.groups[hidden], return_index=True)
    # Nodes without a label (-1) have no class to stand below the picture.
    chosen = first[groups >= 0][:_PICTURES]
    names = tuple(graph.schema.classes[group] for group in people.groups[hidden][chosen])
    images = [image.images(rows[chosen]) for rows in (people.truth[hidden], guess)]
    return replace(result, samples=Samples(names, *images))


def likeness(
    guess: np.ndarray, truth: np.ndarray, centre: np.ndarray, mean: np.ndarray, image: bool
) -> dict[str, float]:
    """Return mean squared error, correlation and (of images) structural similarity, beside those of both means.

    Args:
        guess, truth: rows [m, d] over the declared range, in 0..1.
        centre: the mean of each one's class [m, d].
        mean: of all [d].
    """
    # A reconstruction that says the mean looks good by squared error, so both means stand beside it.
    guesses = {"": guess, " of the class mean": centre, " of the overall mean": np.broadcast_to(mean, truth.shape)}
    figures = {f"mean squared error{name}": float(((rows - truth) ** 2).mean()) for name, rows in guesses.items()}
    measures = {"correlation": _correlation} | ({"structural similarity": _similarity} if image else {})
    for measure, of in measures.items():
        figures |= {f"{measure}{name}": float(of(rows, truth).mean()) for name, rows in guesses.items()}
    return figures


def _moments(guess: np.ndarray, truth: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return both variances and the covariance within each row [m]."""
    a, b = guess - guess.mean(axis=1, keepdims=True), truth - truth.mean(axis=1, keepdims=True)
    return (a**2).mean(axis=1), (b**2).mean(axis=1), (a * b).mean(axis=1)


def _correlation(guess: np.ndarray, truth: np.ndarray) -> np.ndarray:
    first, second, covariance = _moments(guess, truth)
    sizes = np.sqrt(first * second)
    # A constant row has no direction: it correlates with nothing.
    return np.where(sizes > 1e-12, covariance / np.maximum(sizes, 1e-12), 0.0)


def _similarity(guess: np.ndarray, truth: np.ndarray) -> np.ndarray:
    """Wang, Bovik, Sheikh, Simoncelli, IEEE Trans. Image Processing 2004, eq. 13, with one window over the image."""
    first, second, covariance = _moments(guess, truth)
    a, b = guess.mean(axis=1), truth.mean(axis=1)
    light, contrast = 0.01**2, 0.03**2
    near = (2 * a * b + light) / (a**2 + b**2 + light)
    similarity: np.ndarray = near * (2 * covariance + contrast) / (first + second + contrast)
    return similarity
