"""Reports of one bin for each feature that is sent at all."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from graphveil.mechanisms.base.reports import NamedTensors, require_tensor
from graphveil.runtime.late import torch

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True, eq=False)
class BinReports(NamedTensors):
    """The bin of each sent feature, in the features' order: bins uint8 [n, a]."""

    bins: Tensor

    def __post_init__(self) -> None:
        require_tensor("bins", self.bins, torch.uint8, 2)
