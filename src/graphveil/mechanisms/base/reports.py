"""What users send: small frozen groups of tensors, one row a user, that can be stored and read back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import Field, dataclass, fields
from typing import TYPE_CHECKING, Any, ClassVar, Self

from graphveil.errors import InputError
from graphveil.runtime.late import torch

if TYPE_CHECKING:
    from torch import Tensor


class NamedTensors:
    """Reports whose fields are all tensors, stored and read back under the fields' names; the first has one row a user.
    A subclass states type and number of dimensions of each field; other tensors are refused with InputError.
    """

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]
    _kinds: ClassVar[Mapping[str, tuple[str, int]]]

    def __init_subclass__(cls, **kinds: tuple[str, int]) -> None:
        cls._kinds = kinds

    def __post_init__(self) -> None:
        for name, (dtype, dimensions) in self._kinds.items():
            _require_tensor(name, getattr(self, name), getattr(torch, dtype), dimensions)

    def __len__(self) -> int:
        return len(next(iter(self.to_tensors().values())))

    def to_tensors(self) -> dict[str, Tensor]:
        """The tensors by name."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @classmethod
    def from_tensors(cls, tensors: Mapping[str, Tensor]) -> Self:
        """The inverse of `to_tensors`. Raises InputError for missing, extra or wrong tensors."""
        require_names(tensors, *(field.name for field in fields(cls)))
        return cls(**tensors)


@dataclass(frozen=True, eq=False)
class MultiBitReports(NamedTensors, indices=("int32", 2), bits=("uint8", 2)):
    """indices int32 [n, m], ascending in every row, and one bit for each: bits uint8 [n, m]."""

    indices: Tensor
    bits: Tensor

    def __post_init__(self) -> None:
        super().__post_init__()
        # Types and shapes only, for reports from the network; each mechanism checks which numbers it can have sent.
        if self.indices.shape != self.bits.shape:
            raise InputError(f"{tuple(self.indices.shape)} indices with {tuple(self.bits.shape)} bits")


@dataclass(frozen=True, eq=False)
class OneBitReports(NamedTensors, packed=("uint8", 2)):
    """One bit for each coordinate, the first in the highest bit of a byte: uint8 [n, ceil(d/8)]."""

    packed: Tensor


@dataclass(frozen=True, eq=False)
class LatticeReports(NamedTensors, levels=("int32", 2)):
    """Noisy vectors as integer multiples of the mechanism's grid step: levels int32 [n, d]."""

    levels: Tensor


@dataclass(frozen=True, eq=False)
class LabelReports(NamedTensors, labels=("int64", 1)):
    """One noisy class a user: labels int64 [n]."""

    labels: Tensor


@dataclass(frozen=True, eq=False)
class SubsetReports(NamedTensors, members=("int32", 2)):
    """Some of the classes, ascending in every row: members int32 [n, d]."""

    members: Tensor


def require_inside(reports: Tensor, low: int, high: int, name: str) -> None:
    """Refuse reports that no device can have made: a number outside low..high.

    Args:
        name: what one of the numbers is, for the message: "a bit".
    """
    # Forged numbers would index tables out of range, or count for more than one report does.
    if reports.numel() and not (int(reports.min()) >= low and int(reports.max()) <= high):
        raise InputError(f"a report holds {name} that no device can send", allowed=f"{low} to {high}")


def require_pairs(reports: int, values: int) -> None:
    """Refuse reports and values that do not belong together row by row."""
    if reports != values:
        raise InputError(f"{reports} reports for {values} rows of values", allowed="as many of both")


def _require_tensor(name: str, tensor: Tensor, dtype: torch.dtype, dimensions: int) -> None:
    """Refuse anything but a tensor of this type and number of dimensions."""
    allowed = f"a {dtype} tensor with {dimensions} dimensions"
    if not torch.is_tensor(tensor):
        raise InputError(f"{name} is {type(tensor).__name__}", where="reports", allowed=allowed)
    if tensor.dtype != dtype or tensor.ndim != dimensions:
        actual = f"{tensor.dtype} with shape {tuple(tensor.shape)}"
        raise InputError(f"{name} is {actual}", where="reports", allowed=allowed)


def require_names(tensors: Mapping[str, Tensor], *names: str) -> None:
    """Refuse tensors under other names than these.

    Args:
        tensors: by name.
        names: exactly the names that there must be.
    """
    # An extra tensor could be the raw value, sent along by mistake: it is refused, not stored.
    if set(tensors) != set(names):
        raise InputError(f"tensors {sorted(tensors)}", where="reports", allowed=", ".join(names))
