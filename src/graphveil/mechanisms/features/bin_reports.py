"""Reports of one bin for each feature that is sent at all."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from graphveil.mechanisms.base.reports import require_names, require_tensor


@dataclass(frozen=True, eq=False)
class BinReports:
    """The bin of each sent feature, in the features' order: bins uint8 [n, a]."""

    bins: Tensor

    def __post_init__(self) -> None:
        require_tensor("bins", self.bins, torch.uint8, 2)

    def __len__(self) -> int:
        return len(self.bins)

    def to_tensors(self) -> dict[str, Tensor]:
        """The tensors by name."""
        return {"bins": self.bins}

    @classmethod
    def from_tensors(cls, tensors: Mapping[str, Tensor]) -> BinReports:
        """The inverse of `to_tensors`; raises InputError for missing, extra or wrong tensors."""
        require_names(tensors, "bins")
        return cls(tensors["bins"])
