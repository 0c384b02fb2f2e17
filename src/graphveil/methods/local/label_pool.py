"""Label pool: the classes of a graph's nodes from noisy labels alone, by pooling several readings of them.

    members   s_m(v) [c]: label propagation (8), labels so many hops away (5), Gaussian processes over the graph (5),
              belief propagation (4), each without the part that is common to all nodes, and scaled to unit
              root-mean-square
    pool      log p(y | v) = sum_m w_m s_m(v) + b log pi + const                     `models.labels.pool`
    on scores of held-out reports: the reports are split into FOLDS, and a node's own fold has no part in its score
    (but in the class shares pi and the homophily, which all reports estimate together)

The part of a member that is common to all nodes is an estimate of the class shares from the same reports as pi: on
dense graphs long walks converge to it, noise included, and it would hide the differences between nodes.  The exact
channel T of randomized response enters every member and the pool, so nothing is chosen by hand and no clean label is
used.  benchmarks/README.md, "The panel", compares it with label propagation and LPGNN.
Shapes: labels [n] with -1 for none, masks "used" [n, b], scores of a member [n, b, c].
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from graphveil.aggregation import SparseMatrix
from graphveil.aggregation.propagation import Adjacency
from graphveil.aggregation.sparse import Rows, walk_coefficients
from graphveil.engine import LOCAL, Blocks, Engine
from graphveil.methods.base.network.start import Reader
from graphveil.methods.base.people.released import Topology
from graphveil.models.labels.belief import Edges, edges_of, propagate_beliefs
from graphveil.models.labels.label_prior import Channel, all_classes, class_shares, homophily, label_pairs
from graphveil.models.labels.pool import Weights, fit_weights
from graphveil.models.labels.process import DEPTH, POINTS, Process, fit_process
from graphveil.runtime.late import Tensor, torch
from graphveil.runtime.progress import Progress, ProgressCallback

FOLDS = 4
#: (matrix, alpha) of label propagation; (matrix, hops); (matrix, alpha, penalty) of processes; (discount, temper) of
#: beliefs, and the numbers of rounds: few for dense graphs, where reports soon return to their sender.
SPREADS = (("gcn", 0.5), ("gcn", 0.8), ("gcn", 0.9), ("gcn", 0.95), ("gcn", 0.98), ("gcn", 0.99))
WALKS = (("mean", 0.95), ("mean", 0.98))
HOPS = (("gcn", 1), ("gcn", 2), ("gcn", 3), ("mean", 1), ("mean", 2))
PROCESSES = (("mean", 0.9, 1.0), ("mean", 0.97, 0.1), ("mean", 0.97, 0.3), ("mean", 0.99, 0.3), ("gcn", 0.97, 0.3))
BELIEFS, ROUNDS = ((0.25, 1.0), (0.5, 0.25)), (2, 8)
#: The members on every graph by name, as (matrix, hops, alpha) of `Rows.walk`. 60 steps above alpha 0.985, since
#: 0.985^30 is still nearly two thirds, and the rest of the series must be small beside its sum.
CHAINED = {f"spread {kind} {alpha}": (kind, 60 if alpha > 0.985 else 30, alpha) for kind, alpha in SPREADS + WALKS}
CHAINED |= {f"hops {kind} {hops}": (kind, hops, 1.0) for kind, hops in HOPS}
#: Their number, the name of a pre-trained reader, and the numbers of its clues.
CHAINED_MEMBERS, START = len(CHAINED), "start"
OWN, COMMON = CHAINED_MEMBERS + 1, CHAINED_MEMBERS + 4
#: The largest score among its clues.
MOST = 8.0
#: The costly members are left out if all processes together would take more multiply-adds than this.
MOST_WORK = 2e11
#: The same beside a network, than whose training they would otherwise take longer.
NETWORK_WORK = 2e10
#: The most reports that weigh the members: more would hardly change a weight.
MOST_TEACHERS = 1 << 18
#: The most numbers of a member's scores at once; the blocks of folds are computed together as far as they allow.
AT_ONCE = 1 << 27
#: The weight of the reports' own class shares in pi: if noise hides the shares, the majority is still the better guess.
TRACE = 0.01


@dataclass(frozen=True)
class Pool:
    """A fitted pool.

    Attributes:
        probabilities: [n, c]. weights: of each member by name.
        doubt: Pr[class shares alone are as good], by held-out reports.
    """

    probabilities: Tensor
    weights: dict[str, float]
    doubt: float

    @property
    def sentence(self) -> str:
        """The leading members, for people."""
        if self.doubt > 0.5:
            return "class shares, little else: the graph says nothing sure of the classes"
        heaviest = sorted(self.weights, key=lambda name: -self.weights[name])[:3]
        return "pool led by " + ", ".join(f"{name} ({self.weights[name]:.2f})" for name in heaviest)


def pool_labels(
    topology: Topology,
    labels: Tensor,
    channel: Channel,
    *,
    seed: int,
    device: str = "cpu",
    reader: Reader | None = None,
    progress: ProgressCallback | None = None,
    engine: Engine = LOCAL,
) -> Pool:
    """Return class probabilities of every node from released labels.

    Args:
        topology, labels: of the people; reported [n], -1 where none.
        channel: the noise of the labels.
        seed: fixes the folds, never privacy noise.
        reader: pre-trained on `pool_clues`, one more member, or None.
    """
    keywords: dict[str, Any] = {"device": device, "progress": progress, "engine": engine}
    read = read_labels(topology, labels, channel, seed=seed, **keywords)
    if reader is not None:
        read = _with_reader(read, reader)
    fitted = _fitted_weights(read, read.folds >= 0)
    shares = dict(zip(read.names, (float(w) for w in fitted.members), strict=True))
    return Pool(torch.softmax(_pooled(read.whole, fitted, read.setting), dim=1).cpu(), shares, fitted.doubt)


def pooled_opinions(read: Readings, judges: Tensor) -> tuple[Tensor, Tensor]:
    """Return log-probabilities [n, c] from labels alone: out of fold, which reports may judge, and from all reports.
    For people without a report the two are the same.

    Args:
        judges: mask [n]; in the first, their reports enter only the class shares and the homophily.
    """
    setting, folds = read.setting, read.folds
    whole = torch.log_softmax(_pooled(read.whole, _fitted_weights(read, folds >= 0), setting), dim=1)
    fitted = _fitted_weights(read, (folds >= 0) & ~judges.to(folds.device))
    out_of_fold = whole.clone()
    out_of_fold[folds >= 0] = torch.log_softmax(_pooled(read.out_of_fold, fitted, setting), dim=1)
    return out_of_fold, whole


def _pooled(scores: Sequence[Tensor], fitted: Weights, setting: _Setting) -> Tensor:
    """Return sum_m w_m s_m + b log pi of the members' scores [., c]."""
    logits = (fitted.prior * setting.log_prior).repeat(len(scores[0]), 1)
    for weight, member_scores in zip(fitted.members.tolist(), scores, strict=True):
        logits.add_(member_scores, alpha=weight)
    return logits


def _fitted_weights(read: Readings, teachers: Tensor) -> Weights:
    """Return the members' weights, fitted to the reports in a mask [n], or to some of very many."""
    sent = teachers.nonzero().squeeze(1)
    if len(sent) > MOST_TEACHERS:
        sent = sent[:: -(-len(sent) // MOST_TEACHERS)]
    rows = torch.cumsum(read.folds >= 0, dim=0)[sent] - 1
    scores = torch.stack([member_scores[rows].float() for member_scores in read.out_of_fold], dim=2)
    return fit_weights(scores, read.setting.likelihood[sent], read.setting.log_prior)


def _with_reader(read: Readings, reader: Reader) -> Readings:
    """Return the readings with a pre-trained reader as one more member."""
    out_of_fold, whole = (unit_scores(reader.scores(*clues)[:, None]).squeeze(1) for clues in pool_clues(read))
    return replace(
        read, names=[*read.names, START], out_of_fold=[*read.out_of_fold, out_of_fold], whole=[*read.whole, whole]
    )


@dataclass(frozen=True)
class Readings:
    """The members' readings of released labels.

    Attributes:
        setting: their inputs. folds: int64 [n], of every report; -1 where there is none.
        names: of the members.
        out_of_fold: each member's scores [r, c] of people with a report, without that report's fold.
        whole: each member's scores [n, c] of all people, by all reports.
    """

    setting: _Setting
    folds: Tensor
    names: list[str]
    out_of_fold: list[Tensor]
    whole: list[Tensor]


def read_labels(
    topology: Topology,
    labels: Tensor,
    channel: Channel,
    *,
    seed: int,
    device: str = "cpu",
    work: float = MOST_WORK,
    progress: ProgressCallback | None = None,
    engine: Engine = LOCAL,
) -> Readings:
    """Return the members' readings of released labels.

    Args:
        topology, labels, channel, seed, device, progress, engine: as in `pool_labels`.
        work: the most multiply-adds of the costly members, which are left out if they would take more.
    """
    setting = _Setting.build(topology, labels.to(device), channel.doubting, device).on(engine)
    folds = _folds(setting.labels, seed)
    # All folds side by side in one product with P, unless there are too many people.
    used = torch.stack([(folds >= 0) & (folds != f) for f in range(FOLDS)] + [folds >= 0], dim=1).float()
    costly = affordable(setting.entries, channel.classes, work)
    together = max(1, AT_ONCE // max(1, len(folds) * channel.classes))
    parts = [range(FOLDS + 1)[start : start + together] for start in range(0, FOLDS + 1, together)]
    count, steps = members(setting.entries, channel.classes, work) * len(parts), 0
    sent = folds[folds >= 0]
    # In half precision for very many people, which changes a score by a two-thousandth.
    dtype = torch.float32 if len(parts) == 1 else torch.float16
    out_of_fold: dict[str, Tensor] = {}
    whole: dict[str, Tensor] = {}
    for blocks in parts:
        for name, scores in _scored(setting, used[:, blocks.start : blocks.stop], costly=costly):
            held_out = out_of_fold.setdefault(name, scores.new_empty(len(sent), channel.classes, dtype=dtype))
            for index, block in enumerate(blocks):
                if block == FOLDS:
                    whole[name] = scores[:, index].to(dtype, copy=True)
                else:
                    held_out[sent == block] = scores[folds == block, index].to(dtype)
            steps += 1
            if progress is not None:
                progress(Progress(steps, count))
    names = [*CHAINED, *(name for name in whole if name not in CHAINED)]
    return Readings(setting, folds, names, *([scores[name] for name in names] for scores in (out_of_fold, whole)))


def pool_clues(read: Readings) -> list[tuple[Tensor, Tensor]]:
    """Return what a reader trained elsewhere reads of those who sent a report, without it, and of everybody by all of
    them: own [., c, OWN] and common [., COMMON] each: scores of the members that take part on every graph, log pi, and
    how well these agree with reports that they have not seen, one number a member.
    """
    setting, sent = read.setting, (read.folds >= 0).nonzero().squeeze(1)
    prior = setting.log_prior - setting.log_prior.mean()
    # The mean score of the reported class, divided by the channel's contrast.
    reported = setting.labels[sent][:, None]
    agreement = (
        torch.stack([own.gather(1, reported).float().mean() for own in read.out_of_fold[:CHAINED_MEMBERS]])
        / setting.channel.lean
    )
    graph = torch.cat(
        [
            agreement.clamp(-2, 2),
            agreement.new_tensor([math.log(len(prior)), setting.channel.lean, math.log(len(sent) + 1) / 4]),
        ]
    )
    degree = setting.degree.log1p()[:, None]
    clues = []
    for scores, here in ((read.out_of_fold, degree[sent]), (read.whole, degree)):
        cheap = torch.stack(scores[:CHAINED_MEMBERS], dim=2).float()
        own = torch.cat([cheap.clamp(-MOST, MOST), prior[:, None].expand(*cheap.shape[:2], 1)], dim=2)
        clues.append((own, torch.cat([here, graph.expand(len(here), -1)], dim=1)))
    return clues


@dataclass(frozen=True)
class _Setting:
    """The inputs of the members: the public structure, the reports and what they estimate together."""

    adjacency: Adjacency  # both directions
    p: SparseMatrix
    labels: Tensor
    likelihood: Tensor
    log_prior: Tensor
    homophily: float
    channel: Channel

    @staticmethod
    def build(topology: Topology, labels: Tensor, channel: Channel, device: str) -> _Setting:
        # Both directions even if edges are directed: labels are alike on either end.
        p = topology.both_ways.normalised().to(device)
        counts = torch.bincount(labels[labels >= 0], minlength=channel.classes).to(device)
        prior = class_shares(labels, channel).to(device)
        prior = prior.lerp(counts / counts.sum().clamp_min(1), TRACE)
        prior = prior / prior.sum()
        h = homophily(_label_pairs(p.forward, labels, channel.classes), channel)
        likelihood = channel.matrix.to(device)[:, labels.clamp_min(0)].T.contiguous()
        return _Setting(topology.both_ways, p, labels, likelihood, prior.log(), h, channel)

    def on(self, engine: Engine) -> _Setting:
        """Return the same with products with P on an engine; beliefs are propagated here."""
        return replace(self, p=self.p.on(engine))

    @property
    def entries(self) -> int:
        """Directed edges."""
        return self.p.entries

    @cached_property
    def degree(self) -> Tensor:
        """[n]."""
        return torch.diff(self.p.forward.starts).float()

    @cached_property
    def edges(self) -> Edges:
        """The edges of beliefs, with the opposite of every edge, which takes long to find."""
        return edges_of(self.p)

    @cached_property
    def means(self) -> SparseMatrix:
        """D^-1 A [n, n]."""
        return self.adjacency.normalised("mean").to(self.labels.device).on(self.p.forward.engine)

    def limit(self, member: str) -> Tensor:
        """Return the limit of endless walks of a member [n], up to a factor: 0 for isolated nodes."""
        return self.degree.sqrt() if member.startswith(("spread gcn", "hops gcn")) else (self.degree > 0).float()


def _label_pairs(rows: Rows, labels: Tensor, classes: int) -> Tensor:
    """Return `label_pairs` of the entries of a matrix, block by block to save memory."""
    pairs = torch.zeros(classes, classes, dtype=torch.float64, device=labels.device)
    for block in Blocks.of(len(labels), -(-rows.indices.numel() // max(1, len(labels)))):
        part = rows.part(block.rows)
        own = torch.arange(block.start, block.stop, device=labels.device)
        pairs += label_pairs(torch.repeat_interleave(own, torch.diff(part.starts)), part.indices, labels, classes)
    return pairs


def affordable(edges: int, classes: int, work: float = MOST_WORK) -> bool:
    """Return whether the costly members take part on a graph with so many directed edges."""
    return float(len(PROCESSES) * POINTS * 2 * DEPTH) * edges * (FOLDS + 1) * classes <= work


def members(edges: int, classes: int, work: float = MOST_WORK) -> int:
    """Return how many members a pool has on a graph with so many directed edges."""
    return CHAINED_MEMBERS + affordable(edges, classes, work) * (len(PROCESSES) + len(BELIEFS) * len(ROUNDS))


def pool_products(edges: int, classes: int, work: float = MOST_WORK) -> int:
    """Return how many sparse products of (FOLDS + 1) * (classes - 1) columns a pool makes."""
    spreads = sum(_degree(kind) for kind in ("gcn", "mean"))
    if not affordable(edges, classes, work):
        return spreads
    return spreads + len(PROCESSES) * POINTS * 2 * DEPTH + 10 * ROUNDS[-1] * len(BELIEFS)


def _folds(labels: Tensor, seed: int) -> Tensor:
    """Return the fold of every report [n], -1 where there is none."""
    sent = (labels >= 0).nonzero().squeeze(1)
    order = torch.randperm(len(sent), generator=torch.Generator().manual_seed(seed)).to(labels.device)
    folds = torch.full_like(labels, -1)
    folds[sent] = order % FOLDS
    return folds


def _scored(setting: _Setting, used: Tensor, *, costly: bool) -> Iterator[tuple[str, Tensor]]:
    """Yield members by name, each with its scores [n, b, c], as the pool reads them."""
    for name, raw in _each_member(setting, used, costly=costly):
        yield name, unit_scores(apart(raw, setting.limit(name)))


def _each_member(setting: _Setting, used: Tensor, *, costly: bool) -> Iterator[tuple[str, Tensor]]:
    """Yield members by name, scores [n, b, c] as they come."""
    seeds, root = _seeds(setting, used), setting.degree.clamp_min(1).sqrt()[:, None]
    # (D^-1 A)^k x = D^-1/2 P^k D^1/2 x: one matrix does for both.
    for kind, scale in (("gcn", None), ("mean", root)):
        walks = {name: (hops, alpha) for name, (own, hops, alpha) in CHAINED.items() if own == kind}
        chain = [walk_coefficients(hops, alpha, _degree(kind)) for hops, alpha in walks.values()]
        results = setting.p.forward.polynomials(seeds if scale is None else seeds * scale, chain)
        for name in walks:
            # Each is let go as the next is read: of very many people they take most of the room.
            raw = results.pop(0)
            yield name, all_classes((raw if scale is None else raw.div_(scale)).view(*used.shape, -1))
    if costly:
        for kind, alpha, penalty in PROCESSES:
            matrix = setting.means if kind == "mean" else setting.p
            process = Process(matrix, setting.likelihood, used, setting.log_prior, alpha, penalty)
            yield f"process {kind} {alpha} {penalty}", fit_process(process)
        for discount, temper in BELIEFS:
            for rounds, raw in zip(ROUNDS, _beliefs(setting, used, discount, temper), strict=True):
                yield f"belief {discount} {temper} {rounds}", raw


def _degree(kind: str) -> int:
    """Return how many products with a matrix all members of its chain take together."""
    return max(hops for own, hops, _ in CHAINED.values() if own == kind)


def _seeds(setting: _Setting, used: Tensor) -> Tensor:
    """Return the reports that blocks use, less the class shares: rows that add up to 0, without the last class
    [n, b * (c - 1)].
    """
    prior = setting.log_prior.exp()
    # Unbiased for the true label; negative entries are right, and average out over neighbours.
    rows = torch.nn.functional.one_hot(setting.labels.clamp_min(0), len(prior))
    estimate = (rows - setting.channel.flip) / setting.channel.lean
    return ((estimate - prior)[:, None, :-1] * used[:, :, None]).flatten(1)


def _beliefs(setting: _Setting, used: Tensor, discount: float, temper: float) -> list[Tensor]:
    """Return scores after each of ROUNDS [n, b, c]."""
    evidence, prior, h = setting.likelihood.log(), setting.log_prior.exp(), setting.homophily
    keywords: dict[str, Any] = {"temper": temper, "discount": discount, "rounds": ROUNDS}
    blocks = [propagate_beliefs(setting.edges, evidence * mask[:, None], prior, h, **keywords) for mask in used.T]
    return [torch.stack(each, dim=1) for each in zip(*blocks, strict=True)]


def apart(scores: Tensor, limit: Tensor) -> Tensor:
    """Return scores less what they say of everybody alike: their part along a vector.

    Args:
        scores: [n, b, c].
        limit: [n], what endless walks tend to.
    """
    along = torch.tensordot(limit, scores, dims=1) / limit.square().sum().clamp_min(1)
    apart: Tensor = scores - limit[:, None, None] * along
    return apart


def unit_scores(scores: Tensor) -> Tensor:
    """Centre scores [n, b, c] over the classes and scale each block to unit root-mean-square."""
    scores = scores - scores.mean(dim=2, keepdim=True)
    return scores / scores.square().mean(dim=(0, 2), keepdim=True).sqrt().clamp_min(1e-9)
