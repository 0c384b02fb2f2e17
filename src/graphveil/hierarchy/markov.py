"""A tree drawn with a preference for those that explain public and private edges, by Metropolis steps.

One joint law over the trees D on n leaves,

    pi(D) proportional to exp( L_public(D) + epsilon / (2 Delta) L_private(D) ),

the exponential mechanism on L_private with the public likelihood as its base measure. L is `log_likelihood` of edges
among L_r R_r pairs at each inner node r: for the public layer among the nodes with a public edge, for the private
layer among the declared private nodes. One private edge changes L_private by at most Delta (`likelihood_sensitivity`),
either way, so a tree from pi is epsilon-DP in one edge. A tree after finitely many steps is not: nobody can say how far
from pi it is, and the guarantee of whatever is built on it has to say so. Sources: N.-D. Tran et al., "Heterogeneous
Randomized Response for Differential Privacy in Graph Neural Networks", 2022, eq. 10 to 15; Q. Xiao, R. Chen, K.-L. Tan,
"Differentially Private Network Data Release via Structural Inference", KDD 2014 (all edges private).

Different from the papers: one law instead of turns of public and private steps, whose common limit can cost more than
epsilon; the Delta of Lemma 4 with its exponent; a number of steps that is fixed beforehand; private nodes are declared.

Formal guarantees:
- one tree leaves the chain that private edges steer: no trace, no acceptance rate, no choice among several;
- the number and the kind of steps follow from public numbers alone;
- chains for diagnosis read public edges only.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt

from graphveil.errors import InputError
from graphveil.hierarchy.counts import count_edges, likelihood_sensitivity, member_mask, read_pairs
from graphveil.hierarchy.dendrogram import Dendrogram, balanced_dendrogram, dendrogram_of
from graphveil.privacy import Assumption, Randomness, assume
from graphveil.runtime.progress import Progress, ProgressCallback
from graphveil.runtime.sorted_arrays import BoolArray, IntArray, distinct

if TYPE_CHECKING:
    from graphveil.hierarchy.mcmc_steps import Edges, Tree

#: The most steps between two points at which a walk can be interrupted.
BLOCK: Final = 1 << 16
_LARGEST: Final = 2**31 - 1


@dataclass(frozen=True, eq=False)
class Layer:
    """Edges int64 [2, m], every edge once, and the nodes, bool [n], among which their pairs are counted."""

    edges: IntArray
    ends: BoolArray


@dataclass(frozen=True, eq=False)
class Chain:
    """A walk towards exp(L_public + weight * L_private); `walk` changes the arrays of the compiled loops in place."""

    tree: Tree
    edges: Edges
    weight: float

    def walk(self, steps: int, randomness: Randomness) -> int:
        """Take steps, change the tree in place, and return how many steps were accepted.

        Args:
            steps: how many, at most BLOCK; of fewer than 3 leaves there is nothing to rearrange.
            randomness: gives UNIFORMS 64-bit numbers a step, whatever becomes of it.
        """
        from graphveil.hierarchy.mcmc_steps import UNIFORMS, walk

        if len(self.edges.middle) < 3:
            return 0
        # Equally many numbers for each step, accepted or not: how much randomness a walk uses reveals nothing.
        return int(walk(self.tree, self.edges, randomness.uint64(UNIFORMS * steps), self.weight))

    def scores(self) -> tuple[float, float]:
        """Return the public and the private log-likelihood of the present tree, in nats."""
        public, private = self.tree.score.sum(0)
        return float(public), float(private)

    def dendrogram(self) -> Dendrogram:
        """Return the present tree, with sides and numbers that follow from it alone, not from the way to it."""
        from graphveil.hierarchy.mcmc_steps import LEFT, RIGHT, smallest_leaf_left

        inner = self.tree.node[len(self.edges.middle) :]
        tree = dendrogram_of(inner[:, LEFT], inner[:, RIGHT])
        # Order of children and numbers of inner nodes depend on the path of the chain, which a released tree must not.
        left, right = tree.left.copy(), tree.right.copy()
        smallest_leaf_left(left, right)
        return dendrogram_of(left, right)


def open_chain(start: Dendrogram, public: Layer, private: Layer, weight: float) -> Chain:
    """Return a chain that stands at the tree `start`. Raises InputError for more nodes and edges than 32-bit counts can
    hold.

    Args:
        start: a dendrogram over n leaves.
        public, private: the two layers of edges over the same n nodes.
        weight: of a nat of the private log-likelihood; 0: private edges have no influence.
    """
    from graphveil.hierarchy import mcmc_steps as at

    # Every leaf's neighbours, the public ones first: a key is twice the node, plus one for private edges.
    near = np.concatenate([2 * public.edges, 2 * private.edges + 1], axis=1)
    keys = np.concatenate([near[0], near[1]])
    ends = np.concatenate([near[1], near[0]]) >> 1
    bounds = np.concatenate([[0], np.cumsum(np.bincount(keys, minlength=2 * start.leaves))])
    order = np.argsort(keys, kind="stable")
    edges = at.Edges(bounds[::2].copy(), bounds[1::2].copy(), ends[order].astype(np.int32))
    # Counts and work have 32 bits, which halves the memory that a step reads; larger ones would overflow.
    if 2 * start.nodes + len(edges.ends) > _LARGEST:
        raise InputError(f"{start.leaves} nodes and {len(edges.ends) // 2} edges", allowed="2^31 - 1 in all")
    node = np.zeros((start.nodes, at.COLUMNS), np.int32)
    node[start.leaves :, at.LEFT], node[start.leaves :, at.RIGHT] = start.left, start.right
    node[:, at.PARENT], node[:, at.SIZE], node[:, at.CROSS] = start.parent, start.sizes, -1
    node[:, at.WORK] = _below(start, 1 + np.diff(edges.starts))
    for layer, part in enumerate((public, private)):
        node[start.leaves :, at.COUNT + layer] = count_edges(start, part.edges)
        node[:, at.ENDS + layer] = _below(start, part.ends)
    tree = at.Tree(
        node=node,
        first=np.zeros(start.nodes, np.int64),
        last=np.zeros(start.nodes, np.int64),
        score=np.zeros((start.nodes, 2)),
        counts=np.zeros((2, 2), np.int64),
        values=np.zeros((2, 2)),
        stack=np.zeros(2 * start.leaves, np.int32),
        effort=np.zeros(2, np.int64),
    )
    at.relabel_all(tree)
    at.fill_scores(tree)
    return Chain(tree, edges, weight)


def _below(tree: Dendrogram, values: npt.NDArray[np.int64] | BoolArray) -> IntArray:
    """The sum of the values of the leaves [n] below each node, int64 [2n-1]."""
    layout = tree.layout
    # Leaves below a node are one interval of the row, so a difference of two running sums counts them.
    sums = np.concatenate([[0], np.cumsum(values[layout.order])])
    below: IntArray = sums[layout.stop] - sums[layout.start]
    return below


#: The assumption of every guarantee that is built on such a tree.
ASYMPTOTIC: Final = assume("asymptotic")
#: Points in the trace of a chain that is walked for diagnosis.
POINTS: Final = 256


@dataclass(frozen=True, eq=False)
class MarkovFit:
    """A drawn tree, and what public chains of the same length say about it."""

    dendrogram: Dendrogram  # the last tree of the one chain that private edges steer
    weight: float  # epsilon / (2 Delta), the weight of a nat of the private log-likelihood
    steps: int  # the steps of every chain
    # float64 [chains - 1, POINTS]: nats along chains towards exp(L_public), which read no private edge.
    public_traces: npt.NDArray[np.float64]
    assumes: tuple[Assumption, ...] = (ASYMPTOTIC,)  # for the guarantee

    @property
    def public_rhat(self) -> float:
        """`split_rhat` of the second half of the public traces; nan without any, or where they are constant."""
        if not len(self.public_traces):
            return math.nan
        return split_rhat(self.public_traces[:, POINTS // 2 :])


def fit_markov(
    nodes: int,
    members: npt.ArrayLike | None,
    public: npt.ArrayLike,
    private: npt.ArrayLike,
    *,
    epsilon: float,
    steps: int,
    chains: int,
    randomness: Randomness,
    start: Dendrogram | None = None,
    progress: ProgressCallback | None = None,
) -> MarkovFit:
    """Draw a tree after a fixed number of steps. InputError: a setting out of range, a `start` over other leaves, or
    edges that are not as above.

    Args:
        nodes: the public number of nodes n, the leaves of the tree.
        members: [k] ids of the private nodes, each once; declared, never read off private edges. None: all nodes.
        public: integers [2, m], the public edges, each once. None of them (m = 0): privHRG's setting.
        private: integers [2, S], the private edges, each once, between members, none of them public.
        epsilon: what the tree may cost one private edge once the chain has converged; at 0 none has a say.
        steps: the steps of every chain; a public number, and no trace may shorten it.
        chains: how many; the tree comes from the first, the others read public edges only and are for diagnosis.
        randomness: where the steps come from; what it decides is released.
        start: the first tree of the first two chains, made from public facts only. None: a random balanced tree, which
            every other chain begins with.
        progress: is called every 65,536 steps or sooner; it may raise, as may an interrupt.
    """
    _check_settings(nodes, epsilon, steps, chains)
    inside = member_mask(members, nodes)
    public_pairs = read_pairs(public, nodes, "the public edges")
    private_pairs = read_pairs(private, nodes, "the private edges")
    _check_edges(nodes, inside, public_pairs, private_pairs)
    if start is not None and start.leaves != nodes:
        raise InputError(f"a first tree over {start.leaves} leaves", where="start", allowed=f"{nodes} leaves")
    # The declared nodes, not those with a private edge, whose number is private.
    weight = private_weight(epsilon, int(np.count_nonzero(inside)))
    none = Layer(np.zeros((2, 0), np.int64), np.zeros(nodes, np.bool_))
    # Only among nodes with a public edge: all other nodes would dilute the densities.
    touched = np.zeros(nodes, np.bool_)
    touched[public_pairs.ravel()] = True
    public_layer = Layer(public_pairs, touched)
    notify: ProgressCallback = progress or (lambda _: None)
    first = _first_tree(start, nodes, randomness)
    # Only one chain may read private edges: choosing the better of two would depend on them, and cost again.
    chain = open_chain(first, public_layer, Layer(private_pairs, inside) if weight else none, weight)
    # A fixed number of steps: if the chain stopped once its trace settles, its length would depend on private edges.
    _advance(chain, 0, steps, randomness, lambda done: notify(_stage("tree", done, steps)))
    # Only chains without private edges have a trace: each number in the trace of another chain would cost budget.
    traces = np.empty((chains - 1, POINTS))
    for number in range(chains - 1):
        first = _first_tree(start if number == 0 else None, nodes, randomness)
        stage = f"public chain {number + 1} of {chains - 1}"
        traces[number] = _trace(open_chain(first, public_layer, none, 0.0), stage, steps, randomness, notify)
    return MarkovFit(chain.dendrogram(), weight, steps, traces)


def private_weight(epsilon: float, members: int) -> float:
    """Return epsilon / (2 Delta), the exponential mechanism's weight of a nat of L_private.

    Half of epsilon / Delta, because more edges make some trees more and others less likely: both the weight of a tree
    and the sum of all weights may move. It is 0 where no tree can tell the edges of so few nodes from none.

    Args:
        epsilon: what the tree may cost.
        members: k, the number of declared private nodes.
    """
    delta = likelihood_sensitivity(members) if members >= 2 else 0.0
    return epsilon / (2 * delta) if delta > 0.0 else 0.0


def _advance(chain: Chain, begin: int, end: int, randomness: Randomness, notify: Callable[[int], None]) -> None:
    """Walk from step `begin` to step `end` in blocks."""
    for done in range(begin, end, BLOCK):
        chain.walk(min(BLOCK, end - done), randomness)
        notify(min(done + BLOCK, end))


def _trace(
    chain: Chain, stage: str, steps: int, randomness: Randomness, notify: ProgressCallback
) -> npt.NDArray[np.float64]:
    """Return the public log-likelihood at POINTS moments of a whole walk, the last one its end."""
    trace, done = np.empty(POINTS), 0
    for point in range(POINTS):
        until = steps * (point + 1) // POINTS
        _advance(chain, done, until, randomness, lambda at: notify(_stage(stage, at, steps)))
        trace[point], done = chain.scores()[0], until
    return trace


def _first_tree(start: Dendrogram | None, nodes: int, randomness: Randomness) -> Dendrogram:
    """The given tree, else a balanced tree over a random row of leaves."""
    return balanced_dendrogram(np.argsort(randomness.uint64(nodes), kind="stable")) if start is None else start


def _stage(name: str, done: int, total: int) -> Progress:
    return Progress(done, total, f"Markov chain: {name}")


def _check_edges(nodes: int, inside: BoolArray, public: IntArray, private: IntArray) -> None:
    if not inside[private].all():
        raise InputError(
            "a private edge ends outside the declared private nodes",
            where="the private edges",
            allowed="edges with both ends among the private nodes",
            remedy="declare more private nodes (default: all), or declare the edge public",
        )
    # An edge that is listed twice would move a count by two, beyond the sensitivity.
    edges = np.concatenate([public, private], axis=1)
    if len(distinct(edges.min(0) * nodes + edges.max(0))) != edges.shape[1]:
        raise InputError("an edge is listed twice", where="fit_markov", allowed="each edge once, public or private")


def _check_settings(nodes: int, epsilon: float, steps: int, chains: int) -> None:
    if isinstance(epsilon, bool) or not isinstance(epsilon, int | float | np.number) or not 0 <= epsilon < math.inf:
        raise InputError(f"epsilon is {epsilon!r}", where="fit_markov", allowed="a number from 0, not infinite")
    for name, value in (("nodes", nodes), ("steps", steps), ("chains", chains)):
        if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
            raise InputError(f"{name} is {value!r}", where="fit_markov", allowed="a whole number from 1")


def split_rhat(traces: npt.ArrayLike) -> float:
    """Return the potential scale reduction of halves of chains: near 1 where all of them agree, in mean and along the
    way. Raises InputError for fewer than 4 points in a chain, no chain, or a number that is not finite.

    The trace of a chain that private edges steer tells about them at each of its steps, which no budget pays for. So
    traces are taken only of chains that walk towards the public part of the law, exp(L_public): they tell whether the
    number of steps was enough for that part, and the private part weighs little beside it.
    Source: A. Gelman et al., "Bayesian Data Analysis", 3rd edition, 2013, section 11.4, eq. 11.4.

    `traces` are [chains, points], at least 4 finite points each, the first steps left out. It is infinity where halves
    are constant but different, nan where all numbers are equal.
    """
    values = np.asarray(traces, np.float64)
    if values.ndim != 2 or len(values) < 1 or values.shape[1] < 4 or not np.isfinite(values).all():
        raise InputError(f"traces of shape {list(values.shape)}", allowed="chains of at least 4 finite numbers")
    # A slowly drifting chain may agree with other chains, but not with its own beginning.
    half = values.shape[1] // 2
    halves = np.concatenate([values[:, :half], values[:, -half:]])
    within = float(halves.var(1, ddof=1).mean())
    between = float(half * halves.mean(1).var(ddof=1))
    # Constant halves: R-hat is 0 / 0 where they agree, and infinite where they do not.
    if within == 0.0:
        return math.nan if between == 0.0 else math.inf
    return math.sqrt((half - 1) / half + between / within / half)
