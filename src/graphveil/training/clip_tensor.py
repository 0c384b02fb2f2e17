"""Clipping on another device than the CPU, by the kernels of `clip_kernel`; sums are of whole numbers, and exact."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from graphveil.runtime.late import Tensor, torch


@dataclass(frozen=True)
class WholeRows:
    """The inputs of a layer in a batch, on grids: [a | 1] = scale * whole, the 1 where it has a bias."""

    whole: (
        Tensor  # float64 or int8 [b, in] or [b, in + 1]; arbitrary finite numbers in a row whose length is not finite
    )
    scale: Tensor  # float64 [b], of the grids
    squares: Tensor  # float64 [b], squared lengths of `whole`; not finite where the length of the row is not

    @staticmethod
    def of(rows: Tensor, bias: bool) -> WholeRows:
        """Put every row on a grid of its own, as `OnGrids.of` does.

        Args:
            bias: whether the layer has one, whose input is 1.
        """
        from graphveil.training.clip_kernel import put_on_grids
        from graphveil.training.clip_loop import INPUT_BITS

        return WholeRows(*put_on_grids(rows if rows.stride(1) == 1 else rows.contiguous(), bias, INPUT_BITS))

    def narrow(self) -> WholeRows:
        """Return the same in one byte a number, which holds 2^6, the longest."""
        return WholeRows(self.whole.to(torch.int8), self.scale, self.squares)

    def rows(self, chosen: Tensor) -> WholeRows:
        """Return some rows."""
        return WholeRows(*(part.index_select(0, chosen) for part in (self.whole, self.scale, self.squares)))

    @staticmethod
    def joined(parts: Sequence[WholeRows]) -> WholeRows:
        """Return rows one part after the other."""
        return WholeRows(
            *(torch.cat([getattr(part, name) for part in parts]) for name in ("whole", "scale", "squares"))
        )


def clip_deltas(
    deltas: Tensor, widths: Sequence[int], inputs: Sequence[WholeRows], dither: Tensor, step: float, cap: int
) -> Tensor:
    """Return loss gradients as whole numbers, float32 [b, k], such that no sample's products with its inputs are longer
    than the cap. A sample with a NaN or an infinity anywhere is zero.

    Args:
        deltas: of all layers side by side, float32 [b, k].
        widths: how many columns each layer has.
        inputs: of each layer.
        dither: uniform whole numbers below 2^16, int32 [b, k].
        step, cap: of the grid.
    """
    from graphveil.training.clip_kernel import clip_gradients
    from graphveil.training.clip_loop import SPREAD

    scales, squares = (torch.stack([getattr(rows, name) for rows in inputs], 1) for name in ("scale", "squares"))
    owners = _owners(tuple(widths), deltas.device)
    whole: Tensor = clip_gradients(deltas, scales, squares, owners, dither, step, cap, SPREAD)
    return whole


@lru_cache(maxsize=8)
def _owners(widths: tuple[int, ...], device: torch.device) -> Tensor:
    """The layer of each column, int32 [k]."""
    return on_device(np.repeat(np.arange(len(widths), dtype=np.int32), widths), device)


def products(deltas: Tensor, widths: Sequence[int], inputs: Sequence[WholeRows], biases: Sequence[bool]) -> Tensor:
    """Return the integer sums of outer products of all layers, float64 [P]: weights [out, in], then bias [out].

    Args:
        deltas: whole numbers [b, k].
        widths: how many columns each layer has.
        inputs: of each layer.
        biases: whether each layer has a bias.
    """
    parts = []
    # In float64, which holds every sum exactly; a device may multiply float32 with eleven bits of each factor.
    for delta, rows, bias in zip(torch.split(deltas.double(), list(widths), 1), inputs, biases, strict=True):
        sums = delta.T @ rows.whole.double()
        parts += [sums[:, :-1].flatten(), sums[:, -1]] if bias else [sums.flatten()]
    return torch.cat(parts)


def on_device(numbers: np.ndarray, device: torch.device) -> Tensor:
    """Return a copy on a device, without waiting for it."""
    tensor = torch.from_numpy(numbers)
    # From pinned memory, which the device reads by itself: otherwise the CPU would wait for the copy.
    return (tensor.pin_memory() if device.type == "cuda" else tensor).to(device, non_blocking=True)
