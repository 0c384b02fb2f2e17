"""Classes of nodes from noisy reports about their links: belief propagation in a stochastic block model.

    prior       Pr[link | classes a, b] = B_ab,         node v brings evidence log f_v(a) (features, labels)
    channel     L_e = Pr[reports of pair e | link] / Pr[reports | no link];  pairs nobody named share one ratio L_0
    pair        F_ab(e) = (1 - B_ab) + B_ab L_e,        R(e) = F(e) / F(0)
    message     m_{u->v}(a) = log sum_b c_{u\\v}(b) R_ab(e), damped;      c_{u\\v} = softmax(b_u - m_{v->u})
    belief      b_v(a) = log f_v(a) + sum_b (N_b - c_v(b)) log F_ab(0) + sum_{u named with v} m_{u->v}(a)
    density     J_ab = sum over pairs of Pr[link, classes a, b | reports],   B_ab = J_ab / pairs of classes a, b

The pairs that nobody named are summed in closed form, so a round costs the named pairs and nothing is of size n x n.
The two messages of a named pair depend on each other and not on those of other pairs, so one copy of them is enough
and any piece of the pairs can be updated by itself: on a CPU by compiled loops, elsewhere by torch.
Directed links have an asymmetric B and two closed-form sums.  The first B comes from the unbiased estimate of each
pair, (L - 1) / chi^2, which is 1 on average for a link and 0 for none (chi^2 = E[L | link] - 1); B is then scaled to
the total of that estimate, from which rounds would otherwise drift where single links carry little information.

Source: Decelle, Krzakala, Moore, Zdeborova, "Asymptotic analysis of the stochastic block model for modular networks and
its algorithmic applications", Phys. Rev. E 84, 2011, equations 26 to 28 and 30; the known channel in front is ours.
Shapes: evidence and beliefs [n, c], messages [2, S, c] to the sources and to the targets, B [c, c], R [cells, c, c].
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from graphveil.errors import InputError
from graphveil.models.labels.label_prior import shares_of
from graphveil.models.names import BELIEF_ROUNDS
from graphveil.runtime.late import Tensor, torch
from graphveil.runtime.progress import Progress, ProgressCallback

#: Densities are clamped to this range: their logarithm must be finite, and no graph of people is half complete.
DENSITY_RANGE = (1e-9, 0.5)
#: The total number of links is corrected by at most this factor a round.
LARGEST_DRIFT = 5.0
#: Ratios beyond e^80 mean certainty, and would exceed the range of 32-bit floats.
LARGEST_LOG = 80.0
CHUNK = 1 << 16


@dataclass(frozen=True)
class NamedPairs:
    """What reports say about pairs of n nodes."""

    nodes: int  # n
    source: Tensor  # int64 [S], of the pairs that some report names
    target: Tensor  # int64 [S]
    log_ratio: Tensor  # log L of each, [S]
    background: float  # log L_0 of all others
    information: float  # chi^2 = E[L | link] - 1 of one pair, from the mechanism's parameters
    directed: bool  # whether (i, j) and (j, i) are two pairs

    def to(self, device: torch.device | str) -> NamedPairs:
        """Return the same pairs on another device."""
        source, target, ratio = (part.to(device) for part in (self.source, self.target, self.log_ratio))
        return replace(self, source=source, target=target, log_ratio=ratio)

    def kinds(self) -> tuple[Tensor, Tensor]:
        """Return the distinct ratios, ascending, and which of them each named pair has [S]."""
        # Few: one for each number of reports that name a pair. In pieces, since sorting all S ratios would copy them.
        pieces = [torch.unique(piece) for piece in torch.split(self.log_ratio, CHUNK)]
        values = torch.unique(torch.cat(pieces))
        return values, torch.searchsorted(values, self.log_ratio)

    @property
    def reversed(self) -> NamedPairs:
        """The same pairs with every link pointing the other way."""
        return replace(self, source=self.target, target=self.source)

    @property
    def pairs(self) -> float:
        """The number of all pairs."""
        ordered = float(self.nodes) * (self.nodes - 1)
        return ordered if self.directed else ordered / 2

    @property
    def estimate(self) -> tuple[Tensor, float]:
        """The unbiased estimate of each named pair [S], and of every other."""
        named = torch.expm1(self.log_ratio) / self.information
        return named, float(torch.expm1(torch.tensor(self.background, dtype=torch.float64))) / self.information

    @property
    def expected_links(self) -> float:
        """The unbiased estimate of the number of links; below 0 is noise."""
        named, other = self.estimate
        return float(named.double().sum()) + other * (self.pairs - len(self.source))


@dataclass(frozen=True)
class BlockBeliefs:
    """Log-beliefs [n, c] (not normalised), the density of links between classes B [c, c], and Pr[link] [S]."""

    beliefs: Tensor
    density: Tensor
    links: Tensor


def block_beliefs(
    pairs: NamedPairs, evidence: Tensor, *, rounds: int = BELIEF_ROUNDS, progress: ProgressCallback | None = None
) -> BlockBeliefs:
    """Return what evidence and reports together say about every node. Raises InputError for evidence of another size,
    or that is not finite.

    Args:
        evidence: log f_v(a) [n, c], finite.
    """
    if evidence.shape[0] != pairs.nodes or not bool(torch.isfinite(evidence).all()):
        raise InputError(f"evidence {tuple(evidence.shape)}", allowed=f"finite numbers [{pairs.nodes}, classes]")
    values, kind = pairs.kinds()
    named = PairMessages.between(pairs.source, pairs.target, kind)
    rest = float(torch.tensor(pairs.background, dtype=torch.float64).exp())
    state = _State(named, values.clamp_max(LARGEST_LOG).exp().to(evidence), rest)
    beliefs, share = evidence, shares_of(evidence)
    messages = state.pairs.zero_messages(evidence)
    unnamed = torch.zeros_like(evidence)
    density = _first_density(pairs, share)
    for number in range(1, rounds + 1):
        if number > 1:
            density = _to_total(pairs, _density(pairs, state, beliefs, messages, density, share), share)
        # Both are large and of opposite sign: if one lagged a step behind, all beliefs would oscillate.
        received = state.pairs.renew(messages, beliefs, _ratios(state, density))
        unnamed = unnamed.lerp(_unnamed(pairs, state, density, share), 1 - DAMPING)
        beliefs = evidence + unnamed + received
        share = shares_of(beliefs)
        if progress is not None:
            progress(Progress(number, rounds))
    return BlockBeliefs(beliefs, density, _links(state, beliefs, messages, density))


@dataclass(frozen=True)
class _State:
    """The named pairs, whose cells are the kinds of ratios; L_e of each kind [kinds], and L_0."""

    pairs: PairMessages
    ratio: Tensor
    rest: float


def _tables(state: _State, density: Tensor) -> tuple[Tensor, Tensor]:
    """Return (1 - B) / F(0) and B / F(0), so that R(e) = first + second L_e."""
    other = 1 - density + density * state.rest
    return (1 - density) / other, density / other


def _ratios(state: _State, density: Tensor) -> Tensor:
    first, second = _tables(state, density)
    return first + second * state.ratio[:, None, None]


def _unnamed(pairs: NamedPairs, state: _State, density: Tensor, share: Tensor) -> Tensor:
    """Return sum_b (N_b - c_v(b)) log F_ab(0), over every other node as if no pair were named [n, c]."""
    log_other = (1 - density + density * state.rest).log()
    if pairs.directed:
        log_other = log_other + log_other.T
    return (share.sum(dim=0) - share) @ log_other.T


def _first_density(pairs: NamedPairs, share: Tensor) -> Tensor:
    """Return the unbiased estimate of B from the evidence alone."""
    named, other = pairs.estimate
    excess = (named - other).to(share)[:, None]
    joint = (share[pairs.source] * excess).T @ share[pairs.target]
    if not pairs.directed:
        joint = joint + joint.T
    return _to_total(pairs, joint / _class_pairs(share) + other, share)


def _density(
    pairs: NamedPairs, state: _State, beliefs: Tensor, messages: Tensor, density: Tensor, share: Tensor
) -> Tensor:
    """Return J / pairs: expected links between classes, named pairs one by one and all others in closed form."""
    _, second = _tables(state, density)
    ratios = _ratios(state, density)
    # Pr[a, b | reports of e] = source_a target_b R_ab / Z_e
    joint = state.pairs.joint(messages, beliefs, ratios)
    seen = (ratios * joint).sum(dim=0)
    linked = (second * state.ratio[:, None, None] * joint).sum(dim=0)
    if not pairs.directed:
        seen, linked = seen + seen.T, linked + linked.T
    # Both are computed differently, so rounding may make their difference negative.
    unnamed = (_class_pairs(share) - seen).clamp_min(0) * second * state.rest
    return (linked + unnamed) / _class_pairs(share)


def _class_pairs(share: Tensor) -> Tensor:
    """Return the expected number of ordered pairs of two nodes with classes a, b, at least 1."""
    counts = share.sum(dim=0)
    return (counts[:, None] * counts - share.T @ share).clamp_min(1.0)


def _to_total(pairs: NamedPairs, density: Tensor, share: Tensor) -> Tensor:
    density = density.clamp(*DENSITY_RANGE)
    ordered = 1.0 if pairs.directed else 2.0
    # An unbiased estimate may be negative where noise is large; with at least a tenth of a link a node, rounds go on.
    total = ordered * max(pairs.expected_links, 0.1 * pairs.nodes)
    factor = total / max(float((_class_pairs(share) * density).sum()), 1e-30)
    return (density * min(max(factor, 1 / LARGEST_DRIFT), LARGEST_DRIFT)).clamp(*DENSITY_RANGE)


def _links(state: _State, beliefs: Tensor, messages: Tensor, density: Tensor) -> Tensor:
    """Return Pr[link | all reports] of the named pairs; the evidence of a pair does not count twice."""
    first, second = _tables(state, density)
    posterior = beliefs.new_empty(messages.shape[1])
    for piece in state.pairs.pieces():
        source, target = state.pairs.weights(messages, beliefs, piece)
        linked = state.ratio[state.pairs.cell[piece].long()] * ((source @ second) * target).sum(dim=1)
        posterior[piece] = linked / (linked + ((source @ first) * target).sum(dim=1))
    return posterior


#: The share of the previous message in each update, so that cycles do not make rounds oscillate.
DAMPING = 0.3
#: Pairs in a piece, whose messages stay in a core's cache from the gather to the logarithm.
PIECE = 1 << 12
#: The least probability.
LEAST = 1e-30


@dataclass(frozen=True)
class PairMessages:
    """The ends of named pairs, along which messages go."""

    source: Tensor  # int32 [S]
    target: Tensor  # int32 [S]
    cell: Tensor  # int32 [S], the index of the ratios of each pair
    compiled: bool  # whether compiled loops can be used: the arrays lie on the CPU

    @staticmethod
    def between(source: Tensor, target: Tensor, cell: Tensor) -> PairMessages:
        """Return the paths of messages between the ends of pairs.

        Args:
            source, target: integers [S].
            cell: integers [S], which ratios hold for a pair.
        """
        return PairMessages(source.int(), target.int(), cell.int(), source.is_cpu)

    def zero_messages(self, like: Tensor) -> Tensor:
        """Return messages without information, of the type and the classes of `like` [.., c]."""
        return like.new_zeros(2, len(self.source), like.shape[1])

    def renew(self, messages: Tensor, beliefs: Tensor, ratios: Tensor) -> Tensor:
        """Update the messages in place and return the sum of the messages to each node [n, c].

        Args:
            messages: [2, S, c].
            beliefs: [n, c], which include these messages.
            ratios: R, the source's classes first.
        """
        received = torch.zeros_like(beliefs, memory_format=torch.contiguous_format)
        for piece in self.pieces():
            weights = self.weights(messages, beliefs, piece)
            if self.compiled:
                from graphveil.models.blocks.pair_loops import reply_loop, update_loop

                arrays = weights, self.cell, ratios
                reply_loop(weights.shape[2])(piece.start, LEAST, *(part.numpy() for part in arrays))
                update_arrays = weights.log_(), self.source, self.target, messages, received
                update_loop(weights.shape[2])(piece.start, 1 - DAMPING, *(part.numpy() for part in update_arrays))
                continue
            table, shares = ratios[self.cell[piece].long()], weights / weights.sum(dim=2, keepdim=True)
            to_source, to_target = table @ shares[1, :, :, None], table.transpose(1, 2) @ shares[0, :, :, None]
            update = torch.stack([to_source, to_target])[..., 0].clamp_min(LEAST).log_()
            messages[:, piece].lerp_(update, 1 - DAMPING)
            for end, ends in enumerate((self.source, self.target)):
                received.index_add_(0, ends[piece], messages[end, piece])
        return received

    def joint(self, messages: Tensor, beliefs: Tensor, ratios: Tensor) -> Tensor:
        """Return the sum of c_u(a) c_v(b) / Z of each cell's pairs [cells, c, c], Z that of c_u(a) c_v(b) R_ab.

        Args:
            messages: [2, S, c].
            beliefs: [n, c].
            ratios: R, the source's classes first.
        """
        total = torch.zeros_like(ratios, dtype=torch.float64)
        for piece in self.pieces():
            weights = self.weights(messages, beliefs, piece)
            if self.compiled:
                from graphveil.models.blocks.pair_loops import add_joint

                add_joint(weights.numpy(), self.cell.numpy(), piece.start, ratios.numpy(), total.numpy())
                continue
            cell, (source, target) = self.cell[piece].long(), weights.double()
            products = source[:, :, None] * target[:, None]
            total.index_add_(0, cell, products / (ratios[cell] * products).sum(dim=(1, 2), keepdim=True))
        return total.to(ratios)

    def pieces(self) -> Iterator[slice]:
        pairs = len(self.source)
        return (slice(start, min(start + PIECE, pairs)) for start in range(0, pairs, PIECE))

    def weights(self, messages: Tensor, beliefs: Tensor, piece: slice) -> Tensor:
        """Return the beliefs of the ends of pairs without the messages of these pairs, up to a factor [2, s, c].

        Args:
            messages: [2, S, c].
            beliefs: [n, c].
            piece: the pairs.
        """
        cavity = beliefs.new_empty(2, piece.stop - piece.start, beliefs.shape[1])
        if self.compiled:
            from graphveil.models.blocks.pair_loops import cavity_loop

            arrays = beliefs.contiguous(), self.source, self.target, messages, cavity
            cavity_loop(beliefs.shape[1])(piece.start, *(part.numpy() for part in arrays))
        else:
            for end, ends in enumerate((self.source, self.target)):
                log_cavity = torch.sub(beliefs[ends[piece]], messages[end, piece], out=cavity[end])
                log_cavity -= log_cavity.amax(dim=1, keepdim=True)
        return cavity.exp_()
