"""UPGNet: LPGNN with two smoothing layers in place of its hops.

The layers, and their source, are in `aggregation.inputs`.
"""

from __future__ import annotations

from typing import Any, Unpack

from graphveil.methods.base.method import entry_of
from graphveil.methods.base.settings import NetworkOptions
from graphveil.methods.local.entries import LOCAL_METHODS
from graphveil.methods.local.lpgnn import LPGNN
from graphveil.runtime.late import nn


class UPGNet(LPGNN):
    """LPGNN with UPGNet's two layers in place of its hops, as published: nothing is pooled."""

    entry = entry_of("upgnet", LOCAL_METHODS)

    def __init__(
        self,
        *,
        epsilon_x: float | None,
        epsilon_y: float,
        mechanism: str = "multi-bit",
        delta: float = 1e-10,
        sampled: int | None = None,
        queries: int = 0,
        backbone: nn.Module | None = None,
        **settings: Unpack[NetworkOptions],
    ) -> None:
        reports: dict[str, Any] = {"mechanism": mechanism, "delta": delta, "sampled": sampled, "queries": queries}
        options: dict[str, Any] = {**reports, **settings, **self.entry.fixed}
        super().__init__(epsilon_x=epsilon_x, epsilon_y=epsilon_y, backbone=backbone, **options)
