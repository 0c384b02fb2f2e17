"""The conformance case of a mechanism that reports several classes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor

from tests.mechanisms import conformance


def case(
    make: Callable[[float, int], Any], reports: type[Any], forged: Any, *, classes: int, epsilon: float, size: int
) -> conformance.Case:
    """A mechanism built for an epsilon and a number of classes.

    Args:
        make: builds it.
        reports: the class of its reports; forged: some that no device can send.
        classes, epsilon: what it is built with.
        size: the most bytes of one report.
    """

    def outputs(mechanism: Any) -> Mapping[str, Tensor]:
        every: Mapping[str, Tensor] = mechanism.every_report().to_tensors()
        return every

    bad = {
        "row 1": torch.tensor([0, classes, 0]),
        "row 2": torch.tensor([0, 0, -1, 0]),
        "integers": torch.zeros(3),
        "one for each user": torch.zeros(3, 1, dtype=torch.int64),
    }
    return conformance.Case(
        lambda epsilon: make(epsilon, classes),
        epsilon,
        torch.arange(classes),
        outputs,
        reports,
        torch.eye(classes),
        size,
        bad,
        forged,
    )
