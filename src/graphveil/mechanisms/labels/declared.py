"""Reading of private classes: every one is looked at before any is encoded, and none is printed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from graphveil.errors import InputError
from graphveil.mechanisms.base import _validate

if TYPE_CHECKING:
    import torch


Labels: TypeAlias = "torch.Tensor | npt.NDArray[Any]"


def open_labels(labels: Labels, classes: int) -> npt.NDArray[np.int64]:
    """The labels as a checked integer array.

    Args:
        labels: integer classes [n].
        classes: how many were declared.

    Raises:
        InputError: a label is not a declared class (the row is named).
    """
    array = _validate.integers(labels, "labels are", "integers, one for each user")
    # All labels are looked at before the first draw, and a refusal names the row and not the class, which is private.
    bad = np.flatnonzero((array < 0) | (array >= classes))
    if bad.size:
        raise InputError(
            "the label is not a declared class",
            where=f"labels, row {int(bad[0])}",
            allowed=f"0 to {classes - 1}",
            remedy="declare the class, or leave users without a label out",
        )
    return array.astype(np.int64)
