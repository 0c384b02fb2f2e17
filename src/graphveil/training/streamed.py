"""Rows of a training that are made when a batch has them, because all of them together would not fit into memory."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from graphveil.runtime.late import torch

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True)
class Streamed:
    """float32 rows [n, d], a few at a time.

    Attributes:
        shape: n and d.
        make: the rows [m, d] of some places, int64 [m]; the same bits whichever others are asked for.
    """

    shape: tuple[int, int]
    make: Callable[[Tensor], Tensor]


def rows_of(inputs: Tensor | Streamed, places: Tensor) -> Tensor:
    """Return some rows [m, d].

    Args:
        inputs: all of them [n, d]; places: int64 [m].
    """
    return (
        inputs.make(places) if isinstance(inputs, Streamed) else torch.index_select(inputs, 0, places.to(inputs.device))
    )
