"""What users of a public codebook send."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from graphveil.errors import InputError
from graphveil.mechanisms.base import reports


@dataclass(frozen=True, eq=False)
class CodewordReports:
    """The codeword that each user chose, int32 [n], and the number of its public codebook, int64 [n]."""

    codewords: Tensor
    codebooks: Tensor

    def __post_init__(self) -> None:
        reports.require_tensor("codewords", self.codewords, torch.int32, 1)
        reports.require_tensor("codebooks", self.codebooks, torch.int64, 1)
        if self.codewords.shape != self.codebooks.shape:
            raise InputError(f"{len(self.codewords)} codewords of {len(self.codebooks)} codebooks", where="reports")

    def __len__(self) -> int:
        return len(self.codewords)

    def to_tensors(self) -> dict[str, Tensor]:
        """The tensors by name."""
        return {"codewords": self.codewords, "codebooks": self.codebooks}

    @classmethod
    def from_tensors(cls, tensors: Mapping[str, Tensor]) -> CodewordReports:
        """The inverse of `to_tensors`; raises InputError for missing, extra or wrong tensors."""
        reports.require_names(tensors, "codewords", "codebooks")
        return cls(tensors["codewords"], tensors["codebooks"])
