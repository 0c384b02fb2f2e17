"""Non-private baselines in the methods' own interface: plain GCN, GraphSAGE, GAT and MLP on raw features and labels.

A plain network is LPGNN with both budgets infinite and no propagation in front: the same arithmetic, the same loop,
and a guarantee that says that nothing is protected.
"""

from __future__ import annotations

from typing import Any

from graphveil.methods.base.estimator import Estimator
from graphveil.methods.local.lpgnn import LPGNN, LPGNNCore

BASELINES = ("gcn", "sage", "gat", "mlp")
INFINITE = float("inf")


def baseline(model: str, **settings: Any) -> Estimator[LPGNNCore]:
    """Return an unfitted network of backbone `model` that protects nothing.

    Raises:
        InputError: for an unknown backbone or setting.
    """
    return LPGNN(epsilon_x=INFINITE, epsilon_y=INFINITE, model=model, **settings)
