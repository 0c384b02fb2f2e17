"""Messages between the two ends of every named pair, renewed in place.

    c_{u\\v} = softmax(belief_u - m_{v->u})         what u is without what v told it
    m_{u->v}(a) = log sum_b R_e(a, b) c_{u\\v}(b)      damped

A pair's two messages depend on each other and on no other pair's, so that one copy of them is enough and any piece of
the pairs may be renewed by itself.  On a CPU the gathers and small products are compiled loops; elsewhere, torch's.
Shapes: beliefs [n, c], messages [2, S, c] to the sources and to the targets, ratios R [cells, c, c].
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from graphveil.runtime.late import torch

if TYPE_CHECKING:
    from torch import Tensor


#: Share of the last message that is kept, so that loops do not make the rounds swing.
DAMPING = 0.3
#: Pairs in a piece: its messages stay in a core's cache from the gather to the logarithm.
PIECE = 1 << 12
#: The least probability.
LEAST = 1e-30


@dataclass(frozen=True)
class PairMessages:
    """Who tells whom."""

    source: Tensor  # int32 [S]
    target: Tensor  # int32 [S]
    cell: Tensor  # int32 [S], which ratios hold for a pair
    compiled: bool  # whether the arrays lie where compiled loops reach them

    @staticmethod
    def between(source: Tensor, target: Tensor, cell: Tensor) -> PairMessages:
        """Return where messages go among some pairs.

        Args:
            source, target: integers [S]; cell: integers [S], which ratios hold for a pair.
        """
        return PairMessages(source.int(), target.int(), cell.int(), source.is_cpu)

    def silence(self, like: Tensor) -> Tensor:
        """Return messages that say nothing, of the type and the classes of `like` [.., c]."""
        return like.new_zeros(2, len(self.source), like.shape[1])

    def renew(self, messages: Tensor, beliefs: Tensor, ratios: Tensor) -> Tensor:
        """Renew the messages in place and return the sum of what everyone is told [n, c].

        Args:
            beliefs: [n, c], which hold those messages; ratios: R, the source's classes first.
        """
        received = torch.zeros_like(beliefs, memory_format=torch.contiguous_format)
        for here in self.pieces():
            update = self._heard(self.weights(messages, beliefs, here), ratios, here).log_()
            self._take_in(update, messages, received, here)
        return received

    def joint(self, messages: Tensor, beliefs: Tensor, ratios: Tensor) -> Tensor:
        """Return the sum of c_u(a) c_v(b) / Z of each cell's pairs [cells, c, c], Z that of c_u(a) c_v(b) R_ab.

        Args:
            messages: [2, S, c]; beliefs: [n, c]; ratios: R, the source's classes first.
        """
        total = torch.zeros_like(ratios, dtype=torch.float64)
        for here in self.pieces():
            weights = self.weights(messages, beliefs, here)
            if self.compiled:
                from graphveil.models.blocks.pair_loops import add_joint

                add_joint(weights.numpy(), self.cell.numpy(), here.start, ratios.numpy(), total.numpy())
                continue
            cell, (source, target) = self.cell[here].long(), weights.double()
            products = source[:, :, None] * target[:, None]
            total.index_add_(0, cell, products / (ratios[cell] * products).sum(dim=(1, 2), keepdim=True))
        return total.to(ratios)

    def pieces(self) -> Iterator[slice]:
        pairs = len(self.source)
        return (slice(start, min(start + PIECE, pairs)) for start in range(0, pairs, PIECE))

    def weights(self, messages: Tensor, beliefs: Tensor, here: slice) -> Tensor:
        """Return what the ends of some pairs are without those pairs' own messages, up to a factor [2, s, c].

        Args:
            messages: [2, S, c]; beliefs: [n, c]; here: the pairs.
        """
        cavity = beliefs.new_empty(2, here.stop - here.start, beliefs.shape[1])
        if self.compiled:
            from graphveil.models.blocks.pair_loops import without_answers

            arrays = beliefs.contiguous(), self.source, self.target, messages, cavity
            without_answers(beliefs.shape[1])(here.start, *(part.numpy() for part in arrays))
        else:
            for way, ends in enumerate((self.source, self.target)):
                left = torch.sub(beliefs[ends[here]], messages[way, here], out=cavity[way])
                left -= left.amax(dim=1, keepdim=True)
        return cavity.exp_()

    def _heard(self, weights: Tensor, ratios: Tensor, here: slice) -> Tensor:
        """Return what both ends of some pairs hear, before the logarithm [2, s, c]; may change `weights`."""
        if self.compiled:
            from graphveil.models.blocks.pair_loops import heard_of

            arrays = weights, self.cell, ratios
            heard_of(weights.shape[2])(here.start, LEAST, *(part.numpy() for part in arrays))
            return weights
        table, shares = ratios[self.cell[here].long()], weights / weights.sum(dim=2, keepdim=True)
        to_source, to_target = table @ shares[1, :, :, None], table.transpose(1, 2) @ shares[0, :, :, None]
        return torch.stack([to_source, to_target])[..., 0].clamp_min(LEAST)

    def _take_in(self, update: Tensor, messages: Tensor, received: Tensor, here: slice) -> None:
        """Move the messages of some pairs towards `update` [2, s, c], and add them to what their receivers get."""
        if self.compiled:
            from graphveil.models.blocks.pair_loops import take_in

            arrays = update, self.source, self.target, messages, received
            take_in(update.shape[2])(here.start, 1 - DAMPING, *(part.numpy() for part in arrays))
            return
        messages[:, here].lerp_(update, 1 - DAMPING)
        for way, ends in enumerate((self.source, self.target)):
            received.index_add_(0, ends[here], messages[way, here])
