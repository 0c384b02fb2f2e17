"""What users of a public codebook send."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from graphveil.errors import InputError
from graphveil.mechanisms.base import reports
from graphveil.runtime.late import torch

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True, eq=False)
class CodewordReports(reports.NamedTensors):
    """The codeword that each user chose, int32 [n], and the number of its public codebook, int64 [n]."""

    codewords: Tensor
    codebooks: Tensor

    def __post_init__(self) -> None:
        reports.require_tensor("codewords", self.codewords, torch.int32, 1)
        reports.require_tensor("codebooks", self.codebooks, torch.int64, 1)
        if self.codewords.shape != self.codebooks.shape:
            raise InputError(f"{len(self.codewords)} codewords of {len(self.codebooks)} codebooks", where="reports")
