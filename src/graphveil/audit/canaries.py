"""One run, a thousand canaries: each is in or out by a fair coin, and its output says which.

    If one run is (epsilon, delta)-private for each of m canaries and an auditor makes r guesses, at least v are right
    with probability at most  P[B >= v] + 2 m delta max_i P[v - i <= B < v] / i,  B ~ Binomial(r, 1/(1 + e^-epsilon))

The least epsilon that this does not contradict is a lower bound. With all of 1,000 guesses right it is no more than
5.4 at a false-alarm rate of 1%, whatever the truth, and at the epsilons that people ask for it lies far below what
`exact` and `sampled` prove of each mechanism: what it adds is that nothing else in the run speaks. Source: T. Steinke,
M. Nasr, M. Jagielski, "Privacy Auditing with One (1) Training Run", NeurIPS 2023, https://arxiv.org/abs/2305.08846,
Theorem 5.2 (there for pure guesses; abstaining by rank as in Algorithm 1).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt
import torch
from scipy import stats
from torch import Tensor

from graphveil.audit.verdict import Audit, judge
from graphveil.errors import InputError
from graphveil.graphs import Graph, GraphSchema, Split, make_graph, normalise_edges
from graphveil.methods import METHODS
from graphveil.methods.curator.evidence import messages
from graphveil.methods.curator.stages.encoder import encoder_rows, message_rows
from graphveil.methods.curator.stages.training import blocks
from graphveil.methods.registry import build_method
from graphveil.privacy import Randomness, SeededRandomness

if TYPE_CHECKING:
    from graphveil.methods import HeteroRR, LinkBeliefs, Solitude

Bits = npt.NDArray[np.bool_]
Scores = npt.NDArray[np.float64]

CANARIES: Final = 1000
#: The probability that a right method gets a bound above its epsilon.
FALSE_ALARM: Final = 0.01
_LARGEST: Final = 50.0
#: People who are no canaries, and validate and test.
_OTHERS: Final = 40
_DIMENSION: Final = 20
_SCHEMA: Final = GraphSchema("canaries", _DIMENSION, 0.0, 1.0, ("first", "second"), source="made for an audit")


def chance_of_guesses(correct: int, guesses: int, canaries: int, epsilon: float, delta: float) -> float:
    """Return the largest probability that so many guesses are right if the run is (epsilon, delta)-private of one
    canary.

    Args:
        correct, guesses: right guesses, of how many.
        canaries: how many could have been guessed.
        epsilon, delta: what is claimed of one canary.

    Raises:
        InputError: more right guesses than guesses, or more guesses than canaries.
    """
    if not 0 <= correct <= guesses <= canaries:
        raise InputError(f"{correct} of {guesses} guesses about {canaries} canaries", allowed="each at most the next")
    law = stats.binom(guesses, 1.0 / (1.0 + math.exp(-epsilon)))
    below = np.cumsum(law.pmf(np.arange(correct - 1, -1, -1)))
    # The second term of Theorem 5.2: how far delta can shift the count of right guesses, at the worst shift i.
    slope = float((below / np.arange(1, correct + 1)).max()) if correct else 0.0
    return min(1.0, float(law.sf(correct - 1)) + 2 * canaries * delta * slope)


def one_run_bound(correct: int, guesses: int, canaries: int, delta: float, false_alarm: float = FALSE_ALARM) -> float:
    """Return what epsilon is at least, from one run's guesses.

    Args:
        correct, guesses: right guesses, of how many.
        canaries: how many could have been guessed.
        delta: what is claimed of one canary.
        false_alarm: the probability that the bound is too high.
    """

    def possible(epsilon: float) -> bool:
        return chance_of_guesses(correct, guesses, canaries, epsilon, delta) > false_alarm

    low, high = 0.0, _LARGEST
    if possible(0.0):
        return 0.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if possible(middle) else (middle, high)
    # The end that is proven not to be enough.
    return low


def right_guesses(scores: Scores, truth: Bits, guesses: int) -> int:
    """Return how many guesses are right: "in" for the highest half of them by score, "out" for the lowest.

    Args:
        scores: [m], higher means in.
        truth: bool [m], whether each canary was in.
    """
    order = np.argsort(scores, kind="stable")
    half = guesses // 2
    out, inside = order[:half], order[len(order) - (guesses - half) :]
    return int((~truth[out]).sum() + truth[inside].sum())


def audit_edge_canaries(
    name: str,
    *,
    epsilon: float = 2.0,
    canaries: int = CANARIES,
    guesses: int | None = None,
    false_alarm: float = FALSE_ALARM,
    seed: int = 0,
    **settings: object,
) -> Audit:
    """Train `name` once on a graph of disjoint edges that are there or not, and guess which from what it publishes.

    Args:
        name: one of `EDGE_CANARIES`, or InputError is raised.
        epsilon: of one edge.
        guesses: how many of the canaries to guess; fixed beforehand, default half of them.

    Raises:
        InputError: no such method.
    """
    if name not in EDGE_CANARIES:
        raise InputError(f"{name!r} has no canary edges", allowed=", ".join(EDGE_CANARIES))
    account, score = EDGE_CANARIES[name]
    randomness = SeededRandomness(seed)
    # Fair and independent coins, as the theorem needs: a fixed half would be guessed by count.
    truth = randomness.uint64(canaries) % np.uint64(2) == 1
    graph, split = _edges_graph(truth, randomness)
    quick = {key: value for key, value in (("epochs", 5), ("hidden", 8)) if key in METHODS[name].options}
    options = {**quick, account: epsilon, **settings}
    method = build_method(name, options, len(graph.schema.classes), seed=seed)
    scores = score(method, graph, split, randomness)
    budget = next(budget for budget in method.ledger.budget if budget.unit not in ("features", "labels"))
    # Fixed before the scores are seen: the best number of guesses in hindsight has no such tail.
    guess_count = canaries // 2 if guesses is None else guesses
    target = f"{name}, {canaries:,} canary edges"
    return _verdict(target, (budget.epsilon, budget.delta), scores[:canaries], truth, guess_count, false_alarm)


def audit_people_canaries(
    *,
    epsilon_x: float = 1.0,
    epsilon_y: float = 1.0,
    canaries: int = CANARIES,
    false_alarm: float = FALSE_ALARM,
    seed: int = 0,
) -> Audit:
    """Collect features and labels of people for `lpgnn` once: all high and one class, or low and the other. The unit is
    one person; everything after the collection is post-processing.

    Args:
        epsilon_x, epsilon_y: budgets of features and label.
        canaries: how many people, each one of the two by a coin.
        false_alarm: the probability that a true claim is called broken.
    """
    randomness = SeededRandomness(seed)
    truth = randomness.uint64(canaries) % np.uint64(2) == 1
    bits = torch.from_numpy(truth)
    ends = torch.stack([torch.zeros(_DIMENSION), torch.ones(_DIMENSION)])
    graph = make_graph(ends[bits.long()], torch.zeros(2, 0, dtype=torch.int64), bits.long(), _SCHEMA)
    everybody = torch.ones(canaries, dtype=torch.bool)
    settings = {"epsilon_x": epsilon_x, "epsilon_y": epsilon_y, "steps_y": 0}
    method = build_method("lpgnn", settings, len(_SCHEMA.classes), seed=seed)
    sent = method.randomize(graph, split=Split(everybody, ~everybody, ~everybody), randomness=randomness)
    features, labels = method.privacy.features(_SCHEMA), method.privacy.labels(len(_SCHEMA.classes))
    low, high = (end.expand(canaries, -1) for end in ends)
    ratio = features.log_likelihood(sent.features, high) - features.log_likelihood(sent.features, low)
    # The class of the mechanism's reports, made from nobody's label: nothing is drawn for it.
    reports = labels.randomize(bits[:0].long(), randomness=randomness).from_tensors({"labels": sent.labels})
    positive = torch.ones(canaries, dtype=torch.int64)
    ratio = ratio + labels.log_likelihood(reports, positive) - labels.log_likelihood(reports, 0 * positive)
    claimed = (epsilon_x + epsilon_y, 0.0)
    return _verdict(f"lpgnn, {canaries:,} canary people", claimed, ratio.numpy(), truth, canaries // 2, false_alarm)


def _verdict(
    target: str, claimed: tuple[float, float], scores: Scores, truth: Bits, guesses: int, false_alarm: float
) -> Audit:
    epsilon, delta = claimed
    correct = right_guesses(scores, truth, guesses)
    bound = one_run_bound(correct, guesses, len(truth), delta, false_alarm)
    most = one_run_bound(guesses, guesses, len(truth), delta, false_alarm)
    are = "is" if correct == 1 else "are"
    notes = (
        f"{correct} of {guesses} guesses about {len(truth):,} canaries {are} right in one run",
        f"if all were right the bound would be {most:.2f}: this audit finds gross leaks only",
    )
    return judge(target, epsilon, delta, bound, false_alarm, notes=notes)


def _edges_graph(truth: Bits, randomness: Randomness) -> tuple[Graph, Split]:
    """Pairs 2k, 2k + 1 joined where the coin says so, random features and labels, and a few people to validate."""
    nodes = 2 * len(truth) + _OTHERS
    # Disjoint edges: neighbourhoods do not overlap, so the canaries' outputs differ by their own coin alone.
    pairs = 2 * np.flatnonzero(truth)
    edges, _ = normalise_edges(pairs, pairs + 1, nodes, directed=False)
    # Features and labels at random: were they alike within pairs, they would tell the coin without any edge.
    rng = np.random.default_rng(randomness.uint64(4))
    x = torch.from_numpy(rng.integers(0, 2, (nodes, _DIMENSION)).astype(np.float32))
    train = torch.arange(nodes) < nodes - _OTHERS
    val = ~train & (torch.arange(nodes) % 2 == 0)
    graph = make_graph(x, edges, torch.from_numpy(rng.integers(0, 2, nodes)), _SCHEMA)
    return graph, Split(train, val, ~train & ~val)


def _of_gap(method: Any, graph: Graph, split: Split, randomness: Randomness) -> Scores:
    published = method.fit(graph, split=split, randomness=randomness).published
    people, encoder, sums = published.people, published.networks[0], published.parts[1:]
    row = message_rows(
        method.settings, encoder, [people.features], encoder_rows(encoder, people.features), people.train_labels
    )
    return np.asarray(sum(_agreement(after, before) for before, after in itertools.pairwise([row, *sums])))


def _of_progap(method: Any, graph: Graph, split: Split, randomness: Randomness) -> Scores:
    published = method.fit(graph, split=split, randomness=randomness).published
    scores = np.zeros(int(graph.num_nodes) // 2)
    for hop, stage in enumerate(published.networks[:-1], start=1):
        # What the first stage expects takes the place of features in the stages after it.
        read = [published.people.features] if hop == 1 else published.parts[:hop]
        with torch.no_grad():
            learned = torch.nn.functional.normalize(stage.embed(blocks(read)))
        row = message_rows(method.settings, stage, read, learned, published.people.train_labels)
        scores += _agreement(published.parts[hop], row)
    return scores


def _of_class_sums(method: Any, graph: Graph, split: Split, randomness: Randomness) -> Scores:
    published = method.fit(graph, split=split, randomness=randomness).published
    return _agreement(published.sums, messages(published.people, published.evidence))


def _agreement(sums: Tensor, sent: Tensor) -> Scores:
    """How similar each of two partners' sums is to what the other would have sent."""
    each = (sums * sent.view(-1, 2, sent.shape[1]).flip(1).reshape(sent.shape)).sum(dim=1).double()
    return np.asarray(each.view(-1, 2).sum(dim=1))


def _of_lists(method: LinkBeliefs | Solitude, graph: Graph, split: Split, randomness: Randomness) -> Scores:
    """Whether the lower id of a pair names the higher one."""
    lists = method.randomize(graph, split=split, randomness=randomness).lists["lists"]
    return _named(lists.to_edge_index(), int(graph.num_nodes))


def _of_release(method: HeteroRR, graph: Graph, split: Split, randomness: Randomness) -> Scores:
    """Whether a pair is an edge of the released graph."""
    return _named(method.release(graph, randomness=randomness).edge_index, int(graph.num_nodes))


def _of_counts(method: Any, graph: Graph, split: Split, randomness: Randomness) -> Scores:
    """How many of each other's group two partners have, both counts together."""
    published = method.release(graph, randomness=randomness, split=split).release.counts
    other_group = published.groups.view(-1, 2).flip(1).reshape(-1)
    return np.asarray(published.counts.gather(1, other_group[:, None]).view(-1, 2).sum(dim=1).double())


def _named(edges: Tensor, nodes: int) -> Scores:
    partners = edges[0][(edges[0] % 2 == 0) & (edges[1] == edges[0] + 1)]
    scores = np.zeros(nodes // 2)
    scores[partners.numpy() // 2] = 1.0
    return scores


Score = Callable[[Any, Graph, Split, Randomness], Scores]
#: Methods with canary edges: the setting that holds their epsilon, and how a pair is scored.
EDGE_CANARIES: Final[dict[str, tuple[str, Score]]] = {
    "gap": ("epsilon", _of_gap),
    "progap": ("epsilon", _of_progap),
    "class-sums": ("epsilon", _of_class_sums),
    "solitude": ("epsilon_a", _of_lists),
    "class-counts": ("epsilon_a", _of_counts),
    "edge-rand": ("epsilon_a", _of_release),
    "lap-graph": ("epsilon_a", _of_release),
    "edge-rr": ("epsilon_a", _of_release),
    "priv-hrg": ("epsilon_a", _of_release),
    "heterorr": ("epsilon_a", _of_release),
}
