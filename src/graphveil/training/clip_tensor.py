"""The clipping of `clip_loop` in tensor arithmetic: all samples at once, on whatever device the tensors lie.

Sums over a row are added up in one order, entry by entry, and everything else is of one entry alone: what a sample
becomes depends neither on the others nor on its place among them. Nothing waits for the device.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Final

from graphveil.aggregation.grid import squared_lengths
from graphveil.late import torch
from graphveil.training.clip_loop import INPUT_BITS, SPREAD

if TYPE_CHECKING:
    from torch import Tensor

    from graphveil.training.clipped_sum import GradientGrid

#: Of a float64: its bits before the exponent, and what stands there for 2^0.
_FRACTION: Final = 52
_ONE: Final = 1023


@dataclass(frozen=True)
class WholeRows:
    """What a layer saw of a batch, on grids: [a | 1] = scale * whole, the 1 where it has a bias.

    Attributes:
        whole: float64 [b, in] or [b, in + 1]; zero in rows that are not sound.
        scale, squares: float64 [b], of the grids and the squared lengths of `whole`.
        sound: bool [b], whether a row is of finite length.
    """

    whole: Tensor
    scale: Tensor
    squares: Tensor
    sound: Tensor

    @staticmethod
    def of(rows: Tensor, bias: bool) -> WholeRows:
        """Put every row on a grid of its own, as `clipped_sum.input_lengths` does.

        Args:
            rows: float32 [b, in].
            bias: whether the layer has one, whose input is 1.
        """
        exact = (torch.cat([rows, rows.new_ones(len(rows), 1)], dim=1) if bias else rows).double()
        lengths = squared_lengths(exact)
        sound = lengths.isfinite()
        exponent = torch.frexp(torch.where(sound, lengths, 1.0).sqrt()).exponent.long()
        # By its bits: a device's power of 2 may be off by one in the last place.
        scale = (exponent - INPUT_BITS + _ONE << _FRACTION).view(torch.float64)
        whole = torch.where(sound[:, None], (exact / scale[:, None]).round(), 0.0)
        return WholeRows(whole, scale, squared_lengths(whole), sound)


def clipped(
    deltas: Sequence[Tensor], inputs: Sequence[WholeRows], dither: Sequence[Tensor], grid: GradientGrid
) -> list[Tensor]:
    """Return loss gradients as whole numbers, such that no sample's products with its inputs are longer than the cap.

    Args:
        deltas: of each layer, float32 [b, out].
        inputs: of the same layers.
        dither: uniform numbers in the shape of `deltas`, of which 2^16 are 1.
        grid: the grid and the clipping norm.

    Returns:
        float32 [b, out] of each layer. A sample with a NaN or an infinity anywhere is zero.
    """
    reach = [one.scale / grid.step for one in inputs]
    terms = zip(deltas, reach, inputs, strict=True)
    lengths = _total(squared_lengths(delta.double()) * by.square() * one.squares for delta, by, one in terms)
    rough = _total(delta.shape[1] * one.squares / 6.0 for delta, one in zip(deltas, inputs, strict=True))
    room = ((grid.cap - SPREAD) ** 2 - rough).clamp_min(grid.cap**2 / 4.0).sqrt()
    shrink = torch.where(lengths > 0, (room / lengths.sqrt()).clamp_max(1.0), 1.0)
    exact = [delta * (shrink * by).float()[:, None] for delta, by in zip(deltas, reach, strict=True)]
    near = [(part + moved * 2.0**-16).floor() for part, moved in zip(exact, dither, strict=True)]
    short = [part.trunc() for part in exact]
    usable = torch.stack([lengths.isfinite(), *(one.sound for one in inputs)]).all(dim=0)
    # On the integers that are added, not on the floats they came from: this is the sensitivity that noise pays for.
    first, second = (usable & fits(parts, inputs, grid.cap) for parts in (near, short))
    return [
        torch.where(first[:, None], one, torch.where(second[:, None], other, 0.0))
        for one, other in zip(near, short, strict=True)
    ]


def fits(parts: Sequence[Tensor], inputs: Sequence[WholeRows], cap: int) -> Tensor:
    """Return whether samples' products over all layers are at most `cap` steps long, exactly; false for NaN.

    Args:
        parts: whole numbers of each layer, [b, out].
        inputs: of the same layers.
        cap: the longest gradient, in steps.

    Returns:
        bool [b].
    """
    length = _total(squared_lengths(part.double()) * one.squares for part, one in zip(parts, inputs, strict=True))
    return length <= float(cap) ** 2


def products(deltas: Tensor, inputs: WholeRows, bias: bool) -> list[Tensor]:
    """Return the integer sum of outer products, [weights [out, in]] or [weights, bias [out]], float64.

    Args:
        deltas: whole numbers [b, out].
        inputs: of the layer.
        bias: whether it has one.
    """
    # In float64: it holds every sum, and a device may be set to multiply float32 by eleven bits of each factor.
    sums = deltas.double().T @ inputs.whole
    return [sums[:, :-1], sums[:, -1]] if bias else [sums]


def _total(parts: Iterable[Tensor]) -> Tensor:
    """The sum over layers, in their order: a kernel's would have an order of its own."""
    return reduce(torch.add, parts)
