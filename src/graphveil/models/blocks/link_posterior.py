"""How likely every pair is linked, given neighbour lists that went through randomized response and noisy degrees.

    logit Pr[i ~ j | reports] = beta_i + beta_j + ln ( Pr[reports | link] / Pr[reports | no link] )
    beta_i <- ln d_i - ln sum_{j != i} 1 / (e^{beta_i} + e^{-beta_j}),         held at +-2 ln n

The fixed point gives everyone the expected degree d_i; noise can leave degrees that no graph has, for which beta would
run away.  People of equal degree have equal beta, so that the rounds run over the G distinct degrees: G^2 a round, not
n^2, and the very same numbers.  Of a directed graph only the senders' degrees are known: Pr[i -> j] = d_i / (n - 1).
The ratio is one known number for every pair that no report names, so that those pairs differ by their ends' degrees
alone: they are kept as G x G numbers between groups of equal degree, the named ones one by one.  Sums, thresholds and
rankings run over all pairs and are exact, in memory of the reports: pairs are numbered without gaps, block by block of
two groups, in closed forms of integers both ways (`PairCells`),

    between groups A and B          i |B| + j                              i, j: positions inside the group
    inside A, ordered pairs         i (|A| - 1) + j - [j > i]
    inside A, unordered pairs       (s - 1) |A| + i,  j = i + s mod |A|    each pair once for s = 1 .. |A| / 2

Sources: Zhu, Tan, Xiao, "Blink: Link Local Differential Privacy in Graph Neural Networks via Bayesian Estimation",
CCS 2023, arXiv 2309.03190 (there on arrays of all pairs); Chatterjee, Diaconis, Sly, "Random graphs with a given degree
sequence", Annals of Applied Probability 21, 2011, theorem 1.5.
Shapes: source, target, log_ratio [S], each pair once (in either order, if undirected); numbers of pairs int64.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from graphveil.errors import InputError
from graphveil.models.blocks.group_background import SoftLinks, soft_links
from graphveil.runtime.late import Tensor, torch

#: A sum of probabilities that misses a whole number by no more than this, relatively, is that number up to rounding.
ROUNDING = 1e-9
#: How many pairs are numbered at a time, so that working memory is small beside the reports.
CHUNK = 2**15


@dataclass(frozen=True)
class LinkPosterior:
    """The posterior of every pair."""

    source: Tensor  # [S] of the pairs that reports name
    target: Tensor  # [S]
    logit: Tensor  # [S] of these pairs, float64
    background: Tensor  # [G, G] logits of all other pairs, by the groups of source and target
    prior: DegreePrior  # the degrees behind it
    cells: PairCells  # the numbering of all pairs
    named: Tensor  # [S] the numbers of the named pairs, ascending

    @property
    def probability(self) -> Tensor:
        """Posterior of the named pairs [S]."""
        return torch.sigmoid(self.logit)

    @property
    def background_probability(self) -> Tensor:
        """Posterior of all other pairs by group [G, G]."""
        return torch.sigmoid(self.background)

    @cached_property
    def expected_edges(self) -> float:
        """Sum of the posterior over all pairs (ordered ones of a directed graph)."""
        return float(self.probability.sum() + (torch.sigmoid(self._block_logit) * self._unnamed).sum())

    @cached_property
    def _block_logit(self) -> Tensor:
        return self.background[self.cells.sender, self.cells.receiver]

    @cached_property
    def _unnamed_before(self) -> Tensor:
        """How many unnamed pairs lie before each block, and in all [B + 1]."""
        return self.cells.starts - torch.searchsorted(self.named, self.cells.starts)

    @property
    def _unnamed(self) -> Tensor:
        return torch.diff(self._unnamed_before)

    def hard(self) -> Tensor:
        """Return the edges [2, E] more likely than not, in both directions if undirected."""
        pairs, _ = self._above(0.0)
        return self._edges(pairs)

    def hybrid(self, *, seed: int = 0) -> tuple[Tensor, Tensor]:
        """Return the edges [2, E] of the k likeliest pairs, k the whole part of `expected_edges`, and posteriors [E].
        Where several pairs are equally likely and not all are among the k, those kept are drawn uniformly with `seed`.
        """
        # A sum of a million probabilities may fall just below a whole number: `int` alone would lose an edge.
        k = int(self.expected_edges * (1 + ROUNDING))
        if k == 0:
            return torch.empty(2, 0, dtype=torch.int64), torch.empty(0)
        threshold = self._of_rank(k)
        sure, sure_logit = self._above(threshold)
        tied = self._tied(threshold, k - sure.shape[1], seed)
        pairs = torch.cat([sure, tied], dim=1)
        logits = torch.cat([sure_logit, torch.full((tied.shape[1],), threshold, dtype=torch.float64)])
        weights = torch.sigmoid(logits).float()
        return self._edges(pairs), weights if self.prior.directed else weights.repeat(2)

    def soft(self) -> SoftLinks:
        return soft_links(
            self.source,
            self.target,
            self.probability,
            self.background_probability,
            self.prior.group,
            self.prior.sizes,
            directed=self.prior.directed,
        )

    def _of_rank(self, k: int) -> float:
        """Return the k-th greatest logit of all pairs."""
        named = self.logit
        if len(named) > k:  # the k-th of all pairs is at least the k-th of the named pairs
            index = len(named) - k
            named = named[named >= float(np.partition(named.numpy(), index)[index])]
        logit = torch.cat([named, self._block_logit])
        counts = torch.cat([torch.ones(len(named), dtype=torch.int64), self._unnamed])
        order = torch.argsort(logit, descending=True)
        return float(logit[order[torch.searchsorted(torch.cumsum(counts[order], 0), k)]])

    def _above(self, threshold: float) -> tuple[Tensor, Tensor]:
        """Return the pairs [2, p] of a greater logit than the threshold, and their logits [p]."""
        named = self.logit > threshold
        blocks = torch.nonzero((self._block_logit > threshold) & (self._unnamed > 0))[:, 0]
        # The ranks of all unnamed pairs of these blocks, end to end.
        counts, starts = self._unnamed[blocks], self._unnamed_before[blocks]
        before = torch.cumsum(counts, 0) - counts
        rest = self._unnamed_pairs(torch.arange(int(counts.sum())) + torch.repeat_interleave(starts - before, counts))
        pairs = torch.cat([torch.stack([self.source[named], self.target[named]]), rest], dim=1)
        logits = torch.repeat_interleave(self._block_logit[blocks], self._unnamed[blocks])
        return pairs, torch.cat([self.logit[named], logits])

    def _tied(self, threshold: float, count: int, seed: int) -> Tensor:
        """Return `count` pairs [2, count] with exactly this logit, drawn uniformly."""
        named = torch.nonzero(self.logit == threshold)[:, 0]
        blocks = torch.nonzero((self._block_logit == threshold) & (self._unnamed > 0))[:, 0]
        before = torch.cumsum(self._unnamed[blocks], 0)
        total = len(named) + (int(before[-1]) if len(blocks) else 0)
        drawn = _draw_distinct(total, count, torch.Generator().manual_seed(seed))
        from_named, rank = named[drawn[drawn < len(named)]], drawn[drawn >= len(named)] - len(named)
        block = torch.searchsorted(before, rank, right=True)
        within = rank - (before - self._unnamed[blocks])[block]
        rest = self._unnamed_pairs(self._unnamed_before[blocks[block]] + within)
        return torch.cat([torch.stack([self.source[from_named], self.target[from_named]]), rest], dim=1)

    def _unnamed_pairs(self, rank: Tensor) -> Tensor:
        """Return the unnamed pairs [2, p] of these ranks [p] in the order of their numbers."""
        if not len(rank):
            return torch.empty(2, 0, dtype=torch.int64)
        gaps = self.named - torch.arange(len(self.named))
        return torch.stack(self.cells.pairs(rank + torch.searchsorted(gaps, rank, right=True)))

    def _edges(self, pairs: Tensor) -> Tensor:
        return pairs if self.prior.directed else torch.cat([pairs, pairs.flip(0)], dim=1)


def link_posterior(
    source: Tensor, target: Tensor, log_ratio: Tensor, background: float, prior: DegreePrior
) -> LinkPosterior:
    """Combine the evidence of the reports on each pair with that of the degrees. Raises InputError for a pair of one
    person, of a person that does not exist, or listed twice, and for ratios that are not finite numbers, one a pair.

    Args:
        source, target: [S] the pairs that some report names.
        log_ratio: [S] ln Pr[reports | link] / Pr[.. | no link].
        background: the same of all other pairs.
    """
    source, target, log_ratio = source.cpu(), target.cpu(), log_ratio.cpu().double()
    if not source.shape == target.shape == log_ratio.shape:
        raise InputError(
            f"{len(source)} sources, {len(target)} targets and {len(log_ratio)} ratios", allowed="one a pair"
        )
    if not bool(log_ratio.isfinite().all()) or not abs(background) < float("inf"):
        raise InputError("a log-ratio is not a finite number")
    cells = pair_cells(prior.group, prior.sizes, directed=prior.directed)
    named, logit = torch.empty_like(source), torch.empty_like(log_ratio)
    for part in (slice(start, start + CHUNK) for start in range(0, len(source), CHUNK)):
        i, j = source[part], target[part]
        if bool(((torch.minimum(i, j) < 0) | (torch.maximum(i, j) >= prior.nodes) | (i == j)).any()):
            raise InputError("a pair of people that does not exist", allowed=f"two of 0..{prior.nodes - 1}")
        named[part] = cells.number(i, j)
        logit[part] = prior.out[prior.group[i]] + prior.into[prior.group[j]] + log_ratio[part]
    # In place: there may be as many pairs as reports, and a sorted copy would double the memory.
    named.numpy().sort()
    if bool((named[1:] == named[:-1]).any()):
        raise InputError("a pair is listed twice", remedy="give the ratio of both reports together")
    return LinkPosterior(source, target, logit, prior.logits() + background, prior, cells, named)


def _draw_distinct(count: int, size: int, generator: torch.Generator) -> Tensor:
    """Return `size` distinct numbers of 0..count-1, uniformly, in memory proportional to `size`."""
    if 2 * size >= count:
        return torch.randperm(count, generator=generator)[:size]
    drawn = torch.empty(0, dtype=torch.int64)
    while len(drawn) < size:
        more = torch.randint(count, (2 * (size - len(drawn)) + 16,), generator=generator)
        drawn = torch.unique(torch.cat([drawn, more]))
    return drawn[torch.randperm(len(drawn), generator=generator)[:size]]


@dataclass(frozen=True)
class PairCells:
    """The numbering of pairs without gaps, block by block."""

    group: Tensor  # [n] each person's group
    sizes: Tensor  # [G]
    directed: bool  # whether pairs are ordered
    members: Tensor  # [n] people by group
    position: Tensor  # [n] each person's place inside the group
    first: Tensor  # [G] where each group starts in `members`
    sender: Tensor  # [B] the first group of each block, at most `receiver` where pairs are unordered
    receiver: Tensor  # [B] the second group of each block
    starts: Tensor  # [B + 1] the number of each block's first pair

    def block(self, source: Tensor, target: Tensor) -> Tensor:
        a, b, groups = self.group[source], self.group[target], len(self.sizes)
        if self.directed:
            return a * groups + b
        low, high = torch.minimum(a, b), torch.maximum(a, b)
        return low * groups - low * (low - 1) // 2 + high - low

    def number(self, source: Tensor, target: Tensor) -> Tensor:
        """Return the number of each pair [p] of different people."""
        if not self.directed:
            swap = self.group[source] > self.group[target]
            source, target = torch.where(swap, target, source), torch.where(swap, source, target)
        i, j, size = self.position[source], self.position[target], self.sizes[self.group[target]]
        inner = i * (size - 1) + j - (j > i).long() if self.directed else _circle_number(i, j, size)
        within = torch.where(self.group[source] == self.group[target], inner, i * size + j)
        return self.starts[self.block(source, target)] + within

    def pairs(self, number: Tensor) -> tuple[Tensor, Tensor]:
        block = torch.searchsorted(self.starts, number, right=True) - 1
        within, a, b = number - self.starts[block], self.sender[block], self.receiver[block]
        size, inside = self.sizes[b], a == b
        narrow = (size - 1).clamp_min(1)
        if self.directed:
            i, j = within // narrow, within % narrow
            i, j = i, j + (j >= i).long()
        else:
            i, j = within % size, (within % size + within // size + 1) % size
        i = torch.where(inside, i, within // size)
        j = torch.where(inside, j, within % size)
        return self.members[self.first[a] + i], self.members[self.first[b] + j]


def pair_cells(group: Tensor, sizes: Tensor, *, directed: bool) -> PairCells:
    """Number the pairs of people in groups.

    Args:
        group: int64 [n].
        sizes: [G], at least one.
        directed: whether (u, v) and (v, u) are two pairs.
    """
    members = torch.argsort(group, stable=True)
    first = torch.cumsum(sizes, 0) - sizes
    position = torch.empty_like(group)
    position[members] = torch.arange(len(group)) - first[group[members]]
    groups = len(sizes)
    if directed:
        sender, receiver = torch.cartesian_prod(torch.arange(groups), torch.arange(groups)).view(-1, 2).T
    else:
        sender, receiver = torch.triu_indices(groups, groups)
    inside = sizes[sender] * (sizes[sender] - 1) // (1 if directed else 2)
    counts = torch.where(sender == receiver, inside, sizes[sender] * sizes[receiver])
    starts = torch.cat([torch.zeros(1, dtype=torch.int64), torch.cumsum(counts, 0)])
    return PairCells(group, sizes, directed, members, position, first, sender, receiver, starts)


def _circle_number(i: Tensor, j: Tensor, size: Tensor) -> Tensor:
    """Number the unordered pairs of a circle of people by the shorter step from one to the other, then by who takes it.
    Half way round an even circle both steps are equal, and the first half of the people take it.
    """
    step = (j - i) % size
    swap = (2 * step > size) | ((2 * step == size) & (i > j))
    step, start = torch.where(swap, size - step, step), torch.where(swap, j, i)
    return (step - 1) * size + start


@dataclass(frozen=True)
class DegreePrior:
    """The prior's logit of a pair, out[group[i]] + into[group[j]], float64."""

    degrees: Tensor  # [G] the distinct degrees after clamping, ascending
    sizes: Tensor  # [G] how many people have each
    group: Tensor  # [n] each person's position in `degrees`
    out: Tensor  # [G] beta, or logit(d / (n - 1)) of a directed graph
    into: Tensor  # [G] beta, or zeros of a directed graph
    directed: bool  # whether pairs are ordered

    @property
    def nodes(self) -> int:
        return len(self.group)

    def logits(self) -> Tensor:
        """Return ln(Pr / (1 - Pr)) of a link from a person of one group to one of another [G, G]."""
        return self.out[:, None] + self.into


def degree_prior(noisy_degrees: Tensor, *, directed: bool = False) -> DegreePrior:
    """Return the prior of noisy degrees [n], clamped to [1, n - 2]: no finite beta gives degrees outside. Raises
    InputError for fewer than three people, or a degree that is not a finite number.
    """
    n = noisy_degrees.numel()
    if noisy_degrees.dim() != 1 or n < 3:
        raise InputError(f"noisy degrees of shape {tuple(noisy_degrees.shape)}", allowed="one for each of 3 or more")
    if noisy_degrees.is_floating_point() and not bool(noisy_degrees.isfinite().all()):
        raise InputError("a noisy degree is not a finite number")
    # Noise can leave a degree of 0 or n, for which the fixed point is at infinity.
    clamped = noisy_degrees.cpu().clamp(1, n - 2)
    degrees, group, sizes = torch.unique(clamped, return_inverse=True, return_counts=True)
    d = degrees.double()
    if directed:
        return DegreePrior(degrees, sizes, group, torch.logit(d / (n - 1)), torch.zeros_like(d), True)
    beta = _fixed_point(d, sizes.double(), 2 * math.log(n))
    return DegreePrior(degrees, sizes, group, beta, beta, False)


def _fixed_point(degrees: Tensor, sizes: Tensor, limit: float) -> Tensor:
    beta, log_degrees = torch.zeros_like(degrees), degrees.log()
    for _ in range(200):  # at most; ends as soon as beta does not change
        terms = 1 / (beta.exp()[:, None] + (-beta).exp())
        new = (log_degrees - (terms @ sizes - terms.diagonal()).log()).clamp(-limit, limit)
        if torch.equal(new, beta):
            break
        beta = new
    return beta
