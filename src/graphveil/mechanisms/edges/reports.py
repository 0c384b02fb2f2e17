"""What users send about their relationships: lists of ids, stored back to back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from graphveil.errors import InputError
from graphveil.mechanisms.base.reports import NamedTensors, require_names, require_tensor
from graphveil.runtime.late import torch
from graphveil.runtime.sorted_arrays import contains

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True, eq=False)
class EdgeReports(NamedTensors):
    """One list of ids a user: user v names columns[starts[v]:starts[v+1]], ascending.

    Args:
        starts: int64 [n+1], from 0 to the number of ids.
        columns: int32 [R], the ids.

    Raises:
        InputError: other tensors, or lists that are not ascending.
    """

    starts: Tensor
    columns: Tensor

    def __post_init__(self) -> None:
        require_tensor("starts", self.starts, torch.int64, 1)
        require_tensor("columns", self.columns, torch.int32, 1)
        starts, columns = self.starts.numpy(), self.columns.numpy()
        # Lists that overlap or leave ids out would let one user speak for another.
        whole = len(starts) > 0 and starts[0] == 0 and starts[-1] == len(columns)
        if not whole or (starts[1:] < starts[:-1]).any():
            raise InputError(
                f"starts do not divide {len(columns)} ids", where="reports", allowed="0 to that, ascending"
            )
        # Ids may fall only where a new list begins: named twice, a pair would count twice.
        down = np.flatnonzero(columns[1:] <= columns[:-1]) + 1
        if not contains(starts, down).all():
            raise InputError("a list names its ids out of order or twice", where="reports", allowed="ascending")

    def __len__(self) -> int:
        return len(self.starts) - 1

    def to_edge_index(self) -> Tensor:
        """What was sent as int64 [2, R]: row 0 the user who reports, row 1 the one named; sorted."""
        users = torch.repeat_interleave(torch.arange(len(self)), self.starts.diff())
        return torch.stack([users, self.columns.long()])


@dataclass(frozen=True, eq=False)
class DegreeReports(NamedTensors):
    """One noisy degree a user: levels int32 [n], possibly negative."""

    levels: Tensor

    def __post_init__(self) -> None:
        require_tensor("levels", self.levels, torch.int32, 1)


@dataclass(frozen=True, eq=False)
class DegreePreservingReports:
    """One noisy degree and one list of ids a user."""

    degrees: DegreeReports
    edges: EdgeReports

    def __post_init__(self) -> None:
        if len(self.degrees) != len(self.edges):
            raise InputError(f"{len(self.degrees)} degrees with {len(self.edges)} lists", where="reports")

    def __len__(self) -> int:
        return len(self.edges)

    def to_tensors(self) -> dict[str, Tensor]:
        """The tensors by name."""
        return self.degrees.to_tensors() | self.edges.to_tensors()

    @classmethod
    def from_tensors(cls, tensors: Mapping[str, Tensor]) -> DegreePreservingReports:
        """The inverse of `to_tensors`; raises InputError for missing, extra or wrong tensors."""
        require_names(tensors, "levels", "starts", "columns")
        return cls(DegreeReports(tensors["levels"]), EdgeReports(tensors["starts"], tensors["columns"]))

    def to_edge_index(self) -> Tensor:
        """What was sent as int64 [2, R]: row 0 the user who reports, row 1 the one named; sorted."""
        return self.edges.to_edge_index()
