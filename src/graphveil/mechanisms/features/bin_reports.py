"""Reports of one bin for each feature that is sent at all."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from graphveil.mechanisms.base.reports import NamedTensors, require_tensor


@dataclass(frozen=True, eq=False)
class BinReports(NamedTensors):
    """The bin of each sent feature, in the features' order: bins uint8 [n, a]."""

    bins: Tensor

    def __post_init__(self) -> None:
        require_tensor("bins", self.bins, torch.uint8, 2)
