"""What noisy lists reveal about everyone's class, in a block model estimated from labels.

    prior       Pr[u ~ v | classes a, b] = B_ab t_u t_v h_k         t: degrees, shrunk by their noise; k: likeness
    h_k         estimated links among labelled pairs of likeness k, over those expected by B and t
    pair        F_ab(e) = 1 - B t t h + B t t h L_e,               R(e) = F(e) / F(0)
    field       phi_v(a) = sum_u log F(0) + sum_{u named with v} log sum_b c_{u \\ v}(b) R_ab(e)

B and h are averages over many pairs, each behind a known channel, so they are right at any epsilon; estimated in the
rounds they would follow overconfident beliefs (`models.blocks.block_model`).  The messages of people with a public
label never change: only people without one take part in the rounds.  The field of a node leaves out its own evidence,
label and features, so that training and validation nodes can judge it as if they had reported nothing.  Pairs that
nobody named are summed in closed form over groups of equal degree, at the average likeness.

    "full"      B_ab = M^T A M / M^T t t^T M without own pairs, from unbiased pair estimates         c^2 numbers
    "planted"   the same sums, over all pairs of one class and over all of two: B_ab = x where a = b, else y

Both are shrunk towards one density for all by the noise of the lists.  "planted" needs far less of the labels: forgers
who all report one class move a row of "full", which depends on few links; here each number depends on everybody.  It
cannot express that one class is denser than another, or that two classes are close to each other.

    s_uv = cosine of x_u and x_v, columns weighted by  1 + ln((1 + n) / (1 + how many rows have one)), as words are
    k    = between which of the quantiles QUANTILES of random pairs s_uv lies

Sources: Karrer, Newman, "Stochastic blockmodels and community structure in networks", Phys. Rev. E 83, 2011 (degrees);
Decelle et al., Phys. Rev. E 84, 2011 (rounds); Condon, Karp, "Algorithms for graph partitioning on the planted
partition model", Random Structures and Algorithms 18, 2001.  Shapes: evidence, fields [n, c], B [c, c], tables of B,
features [n, d] sparse, M [n, c] unbiased labels, t [n] degrees over their mean.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from graphveil.models.blocks.block_model import DAMPING, LARGEST_LOG, LEAST, PIECE, NamedPairs, PairMessages
from graphveil.models.blocks.list_sums import list_sums, named_by_sums
from graphveil.models.labels.label_prior import shares_of
from graphveil.runtime.late import Tensor, torch
from graphveil.runtime.late import sparse as sp

#: The number of groups of degrees, and the range of degrees relative to their mean.
LEVELS, DEGREE_RANGE = 12, (0.15, 8.0)
#: The largest prior probability that a pair is linked, and the range of h.
LARGEST_PROBABILITY, LIKENESS_RANGE = 0.95, (0.05, 80.0)


@dataclass(frozen=True)
class LabelledPeople:
    shares: Tensor  # M [n, c], unbiased, zero rows for those who sent none, see `list_sums.unbiased_labels`
    public_labels: Tensor  # int64 [n], public classes, -1 for all others


def block_fields(
    pairs: NamedPairs,
    evidence: Tensor,
    people: LabelledPeople,
    *,
    degrees: bool,
    alike: Likeness | None,
    rounds: int,
    blocks: str = "full",
    after_round: Callable[[], None] = lambda: None,
) -> Tensor:
    """Return phi [n, c].

    Args:
        evidence: log f_v(a) [n, c], from each node's own reports; not read for nodes with a public class.
        degrees: whether people differ in their number of links.
        alike: the likeness of pairs; None: it is not used.
        blocks: "full" or "planted".
        after_round: called after each round.
    """
    out, into = _levels(pairs, degrees=degrees)
    density = block_densities(pairs, people.shares, out.of_each, into.of_each, blocks)
    factors = density.new_ones(1) if alike is None else _factors(pairs, people.shares, out, into, density, alike)
    prior = out.level[:, None, None, None] * into.level[:, None, None] * density
    rest = torch.tensor(pairs.background, dtype=torch.float64).exp()
    values, kind = pairs.kinds()
    linked = (factors[:, None, None, None, None] * prior).clamp_max(LARGEST_PROBABILITY)
    ratio = values.double().clamp_max(LARGEST_LOG).exp().view(-1, 1, 1, 1, 1, 1)
    table = (1 - linked + linked * ratio).log() - (1 - linked + linked * rest).log()
    cell = kind if alike is None else kind * len(factors) + alike.named.to(evidence.device)
    cell = (cell * len(out.level) + out.group[pairs.source]) * len(into.level) + into.group[pairs.target]
    plain = prior.clamp_max(LARGEST_PROBABILITY)
    absent = (1 - plain + plain * rest).log()
    tables = table.flatten(0, 3).float()
    model = _Model(pairs.source, pairs.target, cell, tables, out, into, absent, pairs.directed)
    return _rounds(model, evidence, people.public_labels, rounds, after_round)


@dataclass(frozen=True)
class _Levels:
    """Everyone's group [n], and the degree of each group over the mean [G]."""

    group: Tensor
    level: Tensor

    @property
    def of_each(self) -> Tensor:
        return self.level[self.group]


def _levels(pairs: NamedPairs, *, degrees: bool) -> tuple[_Levels, _Levels]:
    """Return the groups of degrees of people as sources and as targets."""
    unit = torch.ones(pairs.nodes, 1, device=pairs.source.device, dtype=torch.float64)
    if not degrees:
        alone = _Levels(torch.zeros_like(unit[:, 0], dtype=torch.int64), unit[0])
        return alone, alone
    noise = (pairs.nodes - 1) / pairs.information
    out = _levels_of_degrees(list_sums(pairs, unit)[:, 0], noise)
    return out, _levels_of_degrees(named_by_sums(pairs, unit)[:, 0], noise) if pairs.directed else out


def _levels_of_degrees(degrees: Tensor, noise: float) -> _Levels:
    """Sort unbiased degrees, shrunk by their noise and a Poisson count's, into groups of nearly equal ones."""
    mean = degrees.mean().clamp_min(FEWEST_LINKS)
    spread = (degrees.var(correction=0) - noise - mean).clamp_min(0)
    shrunk = mean + (degrees - mean) * spread / (spread + noise + mean)
    logs = shrunk.clamp(DEGREE_RANGE[0] * mean, DEGREE_RANGE[1] * mean).log()
    width = ((logs.max() - logs.min()) / (LEVELS - 1)).clamp_min(1e-2)
    group = torch.unique(((logs - logs.min()) / width).round(), return_inverse=True)[1]
    sizes = torch.bincount(group).to(degrees)
    level = torch.zeros_like(sizes).index_add(0, group, logs.exp()) / sizes
    return _Levels(group, level / level[group].mean())


def _factors(
    pairs: NamedPairs, shares: Tensor, out: _Levels, into: _Levels, density: Tensor, alike: Likeness
) -> Tensor:
    """Return h [bins]: observed over expected links, shrunk towards 1 by its noise."""
    device, labelled = density.device, (shares != 0).any(dim=1)
    source, target, drawn = (part.to(device) for part in (alike.source, alike.target, alike.drawn))
    both_labelled = labelled[source] & labelled[target]
    source, target, drawn = source[both_labelled], target[both_labelled], drawn[both_labelled]
    people = int(labelled.sum())
    pairs_per_draw = people * (people - 1) / (1 if pairs.directed else 2) / max(len(drawn), 1)
    left, right = shares.double() * out.of_each[:, None], shares.double() * into.of_each[:, None]
    prior = ((left[source] @ density) * right[target]).sum(dim=1)
    total = _binned(torch.ones_like(prior), drawn, alike.bins) * pairs_per_draw
    expected = (_binned(prior, drawn, alike.bins) * pairs_per_draw).clamp_min(1e-9)
    named, other = pairs.estimate
    counted = labelled[pairs.source] & labelled[pairs.target]
    excess = torch.where(counted, (named - other).double(), 0.0)
    observed = _binned(excess, alike.named.to(device), alike.bins) + other * total
    deviation = observed / expected - 1
    noise = (total / pairs.information + observed.clamp_min(1.0)) / expected.square()
    return (1 + deviation * deviation.square() / (deviation.square() + noise)).clamp(*LIKENESS_RANGE)


def _binned(values: Tensor, bins: Tensor, count: int) -> Tensor:
    return values.new_zeros(count).index_add(0, bins, values)


@dataclass(frozen=True)
class _Model:
    source: Tensor  # int64 [S]
    target: Tensor  # int64 [S]
    cell: Tensor  # int64 [S]
    table: Tensor  # log R [cells, c, c], the source's classes first
    out: _Levels  # everyone's groups
    into: _Levels  # everyone's groups
    absent: Tensor  # log F(0) [G, G, c, c] by groups and classes of source and target
    directed: bool  # whether everyone is a source and a target of every other

    @property
    def ways(self) -> tuple[tuple[Tensor, Tensor, Tensor], ...]:
        """Receivers and senders [S], and the table with the receiver's classes first."""
        return (self.source, self.target, self.table), (self.target, self.source, self.table.transpose(1, 2))


def _rounds(
    model: _Model, evidence: Tensor, public_labels: Tensor, rounds: int, after_round: Callable[[], None]
) -> Tensor:
    public, ratios = public_labels >= 0, model.table.exp().to(evidence)
    from_public = _public_messages(model, public_labels, evidence)
    inner = ~(public[model.source] | public[model.target])
    named = PairMessages.between(model.source[inner], model.target[inner], model.cell[inner])
    share = shares_of(evidence)
    share[public] = torch.nn.functional.one_hot(public_labels[public], evidence.shape[1]).to(share)
    messages, unnamed = named.zero_messages(evidence), _unnamed_field(model, share)
    received, beliefs = from_public, evidence + unnamed + from_public
    for _ in range(rounds):
        received = named.renew(messages, beliefs, ratios) + from_public
        beliefs = evidence + unnamed + received
        share = torch.where(public[:, None], share, shares_of(beliefs))
        unnamed = unnamed.lerp(_unnamed_field(model, share), 1 - DAMPING)
        after_round()
    return _to_public(model, beliefs, public_labels, unnamed + received)


def _public_messages(model: _Model, public_labels: Tensor, like: Tensor) -> Tensor:
    """Return the sum of the messages of people with a public class to everybody else [n, c]."""
    messages = torch.zeros_like(like)
    for receiver, sender, table in model.ways:
        logs = table.transpose(1, 2).flatten(0, 1).to(like)
        for piece in torch.split((public_labels[sender] >= 0).nonzero()[:, 0], PIECE):
            rows = model.cell[piece] * like.shape[1] + public_labels[sender[piece]]
            messages.index_add_(0, receiver[piece], logs[rows])
    return messages


def _to_public(model: _Model, beliefs: Tensor, public_labels: Tensor, field: Tensor) -> Tensor:
    """Add to `field` the messages from people without a public class to people with one, less the reverse messages."""
    for receiver, sender, table in model.ways:
        logs, ratios = table.flatten(0, 1).to(field), table.exp().to(field)
        for piece in torch.split(((public_labels[receiver] >= 0) & (public_labels[sender] < 0)).nonzero()[:, 0], PIECE):
            sent = logs[model.cell[piece] * field.shape[1] + public_labels[receiver[piece]]]
            cavity = shares_of(beliefs[sender[piece]] - sent)
            response = torch.bmm(ratios[model.cell[piece]], cavity[:, :, None])[:, :, 0]
            field.index_add_(0, receiver[piece], response.clamp_min(LEAST).log())
    return field


def _unnamed_field(model: _Model, share: Tensor) -> Tensor:
    """Return the sum of log F(0) over all other people, as if no pair were named [n, c]."""
    field = _absent_field(model.absent, model.out, model.into, share)
    if model.directed:
        field = field + _absent_field(model.absent.permute(1, 0, 3, 2), model.into, model.out, share)
    return field


def _absent_field(absent: Tensor, own: _Levels, opposite: _Levels, share: Tensor) -> Tensor:
    sums = absent.new_zeros(len(opposite.level), share.shape[1])
    field = torch.empty_like(share, memory_format=torch.contiguous_format)
    if share.is_cpu:
        from graphveil.models.blocks.pair_loops import add_groups, subtract_own

        add_groups(opposite.group.numpy(), share.numpy(), sums.numpy())
        total = torch.einsum("gkab,kb->ga", absent, sums)
        arrays = total, absent.contiguous(), own.group, opposite.group, share, field
        subtract_own(*(part.numpy() for part in arrays))
        return field
    sums.index_add_(0, opposite.group, share.double())
    total = torch.einsum("gkab,kb->ga", absent, sums)
    for piece in torch.split(torch.arange(len(share), device=share.device), PIECE):
        group = own.group[piece]
        own_part = torch.bmm(absent[group, opposite.group[piece]], share[piece, :, None].double())[:, :, 0]
        field[piece] = (total[group] - own_part).to(share)
    return field


#: Links a person at least, where noise hides even their number.
FEWEST_LINKS = 0.1
#: Densities are clamped between this share of their mean and this probability.
LEAST_DENSITY_SHARE, LARGEST_DENSITY = 0.03, 0.8


def block_densities(pairs: NamedPairs, shares: Tensor, out: Tensor, into: Tensor, blocks: str) -> Tensor:
    """Return B [c, c].

    Args:
        shares: M [n, c], zero rows for those who sent no label.
        out, into: t [n], as a source and as a target.
    """
    shares = shares.double()
    observed = shares.T @ list_sums(pairs, shares)
    expected = _class_pairs(shares * out[:, None], shares * into[:, None])
    mean_density = observed.sum().clamp_min(FEWEST_LINKS * pairs.nodes) / expected.sum().clamp_min(1.0)
    pair_counts = _class_pairs(shares, shares)
    if blocks == "planted":
        observed, expected, pair_counts = planted(observed), planted(expected), planted(pair_counts)
    estimate = observed / expected.clamp_min(1.0)
    noise = (pair_counts.clamp_min(1.0) / pairs.information / expected.clamp_min(1.0).square()).mean()
    trust = (1 - noise / (estimate - mean_density).square().mean().clamp_min(1e-30)).clamp(0.05, 1.0)
    density: Tensor = (mean_density + (estimate - mean_density) * trust).clamp(
        float(LEAST_DENSITY_SHARE * mean_density), LARGEST_DENSITY
    )
    return density


def planted(cells: Tensor) -> Tensor:
    """Return the sum of the diagonal of cells [c, c] in each diagonal cell, and that of the rest in each other cell."""
    within = torch.eye(len(cells), dtype=torch.bool, device=cells.device)
    return torch.where(within, cells.trace(), cells.sum() - cells.trace())


def _class_pairs(first: Tensor, second: Tensor) -> Tensor:
    """Return the sum over ordered pairs of two people of first_u second_v^T [c, c]."""
    return first.sum(dim=0)[:, None] * second.sum(dim=0) - first.T @ second


QUANTILES = (0.5, 0.75, 0.9, 0.97, 0.99, 0.997)
DRAWN_PAIRS = 400_000
CHUNK = 1 << 14


@dataclass(frozen=True)
class Likeness:
    """The likeness of some pairs, by bins."""

    bins: int  # how many bins there are
    named: Tensor  # int64 [S], of the named pairs
    source: Tensor  # int64 [m], random pairs of different people
    target: Tensor  # int64 [m], random pairs of different people
    drawn: Tensor  # int64 [m], their bins


def likeness(features: sp.csr_matrix, pairs: NamedPairs, *, seed: int) -> Likeness:
    """Sort the named pairs, and random ones, by how alike their features are.

    Args:
        features: [n, d], public or released.
    """
    rows = weighted_rows(features)
    generator = torch.Generator().manual_seed(seed)
    source, target = torch.randint(pairs.nodes, (2, DRAWN_PAIRS), generator=generator)
    source, target = source[source != target], target[source != target]
    drawn_cosines = cosines(rows, source, target)
    cuts = np.unique(np.quantile(drawn_cosines, QUANTILES))
    named_cosines = cosines(rows, pairs.source.cpu(), pairs.target.cpu())
    drawn_bins, named_bins = (
        torch.from_numpy(np.searchsorted(cuts, values)) for values in (drawn_cosines, named_cosines)
    )
    return Likeness(len(cuts) + 1, named_bins, source, target, drawn_bins)


def weighted_rows(features: sp.csr_matrix) -> sp.csr_matrix:
    """Return rows [n, d] of length 1 (or 0), with more weight on rare columns."""
    rows = features.astype(np.float32)
    holders = np.bincount(rows.nonzero()[1], minlength=rows.shape[1])
    weighted = rows @ sp.diags_array((1 + np.log((1 + rows.shape[0]) / (1 + holders))).astype(np.float32))
    lengths = np.sqrt(np.asarray(weighted.multiply(weighted).sum(axis=1)).ravel())
    return sp.csr_matrix(sp.diags_array(1 / np.maximum(lengths, 1e-12)) @ weighted)


def cosines(rows: sp.csr_matrix, source: Tensor, target: Tensor) -> np.ndarray:
    """Return the inner products [m] of some pairs of rows.

    Args:
        rows: [n, d].
        source, target: int64 [m].
    """
    result = np.empty(len(source), dtype=np.float32)
    for start in range(0, len(source), CHUNK):
        piece = slice(start, start + CHUNK)
        products = rows[source[piece].numpy()].multiply(rows[target[piece].numpy()])
        result[piece] = np.asarray(products.sum(axis=1)).ravel()
    return result
