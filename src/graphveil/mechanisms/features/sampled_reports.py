"""Reports about a few sampled coordinates: which ones, and one small whole number for each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from graphveil.errors import InputError
from graphveil.mechanisms.base.reports import NamedTensors, require_tensor
from graphveil.runtime.late import torch

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True, eq=False)
class SampledReports(NamedTensors):
    """indices int32 [n, k], ascending in every row, and the output level of each: levels int16 [n, k]."""

    indices: Tensor
    levels: Tensor

    def __post_init__(self) -> None:
        require_tensor("indices", self.indices, torch.int32, 2)
        require_tensor("levels", self.levels, torch.int16, 2)
        if self.indices.shape != self.levels.shape:
            raise InputError(f"{tuple(self.indices.shape)} indices with {tuple(self.levels.shape)} levels")
