"""Non-private baselines in the methods' own interface: plain GCN, GraphSAGE, GAT and MLP on raw features and labels.

A plain network is LPGNN with both budgets infinite and no propagation in front: the same arithmetic, the same loop,
and a guarantee that says that nothing is protected.
"""

from __future__ import annotations

from typing import Any

from graphveil.methods.base.estimator import Estimator
from graphveil.methods.base.options import INFINITE
from graphveil.methods.local.lpgnn import LPGNNCore


def baseline(model: str, **settings: Any) -> Estimator[LPGNNCore]:
    """Return an unfitted network that protects nothing.

    Args:
        model: its backbone, one of `models.names.BACKBONES`.
        settings: any field of `NetworkSettings`.

    Raises:
        InputError: for an unknown backbone or setting.
    """
    return Estimator(LPGNNCore(epsilon_x=INFINITE, epsilon_y=INFINITE, model=model, **settings))
