"""Reports about a few sampled coordinates: which ones, and one small whole number for each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from graphveil.errors import InputError
from graphveil.mechanisms.base.reports import require_names, require_tensor


@dataclass(frozen=True, eq=False)
class SampledReports:
    """indices int32 [n, k], ascending in every row, and the output level of each: levels int16 [n, k]."""

    indices: Tensor
    levels: Tensor

    def __post_init__(self) -> None:
        require_tensor("indices", self.indices, torch.int32, 2)
        require_tensor("levels", self.levels, torch.int16, 2)
        if self.indices.shape != self.levels.shape:
            raise InputError(f"{tuple(self.indices.shape)} indices with {tuple(self.levels.shape)} levels")

    def __len__(self) -> int:
        return len(self.indices)

    def to_tensors(self) -> dict[str, Tensor]:
        """The tensors by name."""
        return {"indices": self.indices, "levels": self.levels}

    @classmethod
    def from_tensors(cls, tensors: Mapping[str, Tensor]) -> SampledReports:
        """The inverse of `to_tensors`; raises InputError for missing, extra or wrong tensors."""
        require_names(tensors, "indices", "levels")
        return cls(tensors["indices"], tensors["levels"])
