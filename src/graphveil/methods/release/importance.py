"""The importance of each feature: mean absolute SHAP values of a small perceptron on public rows.

    alpha_i = mean over rows and outputs of |SHAP_i|,  divided by its sum

The SHAP values are expected gradients (the package's GradientExplainer), for each row those of its strongest outputs,
so that the time does not grow with the number of classes.

Source: S. Lundberg, S.-I. Lee, "A Unified Approach to Interpreting Model Predictions", NeurIPS 2017; Tran et al., IEEE
BigData 2022, eq. 6.
"""

from __future__ import annotations

import warnings
from typing import Any, Final

import numpy as np

from graphveil.errors import InputError, MissingExtraError
from graphveil.runtime.late import Tensor, nn, torch

#: Rows explained, rows they are compared with, gradients a row, and outputs a row.
ROWS: Final = 64
BACKGROUND: Final = 256
GRADIENTS: Final = 50
OUTPUTS: Final = 3
_EPOCHS: Final = 150
_HIDDEN: Final = 64


def importance(x: Tensor, y: Tensor, classes: int, *, seed: int = 0) -> Tensor:
    """Return alpha [d] float64, at least 0, adding up to 1. Raises MissingExtraError where the package shap is not
    installed.

    Args:
        x, y: PUBLIC features [p, d]; their labels, int64 [p] (-1: unknown, left out) or float 0/1 [p, c], at least 2.
    """
    shap = _shap()
    labelled = y >= 0 if y.dim() == 1 else torch.ones(len(y), dtype=torch.bool)
    if int(labelled.sum()) < 2:
        raise InputError(f"{int(labelled.sum())} public nodes carry a label", where="importance", allowed="at least 2")
    rows, labels = x[labelled].float(), y[labelled]
    model = _perceptron(rows, labels, classes, seed)
    generator = torch.Generator().manual_seed(seed)
    # Background and explained rows from the two ends of one order: they overlap only if rows are few.
    order = torch.randperm(len(rows), generator=generator)
    explainer = shap.GradientExplainer(model, rows[order[:BACKGROUND]])
    # Forked: the explainer draws from torch's global generator.
    with torch.random.fork_rng(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        values, _ = explainer.shap_values(
            rows[order[-ROWS:]], nsamples=GRADIENTS, ranked_outputs=min(OUTPUTS, classes), rseed=seed
        )
    sizes = torch.from_numpy(np.abs(np.asarray(values, dtype=np.float64)))
    alpha = sizes.mean(dim=tuple(axis for axis in range(sizes.dim()) if axis != 1))
    total = float(alpha.sum())
    # A model that uses no feature gives all the same importance.
    return alpha / total if total > 0 else torch.full_like(alpha, 1 / len(alpha))


def _shap() -> Any:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # its plots cause deprecation warnings of matplotlib
            import shap
    except ImportError as error:
        raise MissingExtraError(
            "the package shap is not installed",
            where="importance of the features",
            remedy="run: pip install 'graphveil[shap]', or declare the scores",
        ) from error
    return shap


def _perceptron(rows: Tensor, labels: Tensor, classes: int, seed: int) -> nn.Module:
    """Return a trained network of one hidden layer, rows [p, d] -> scores [p, c]."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        model = torch.nn.Sequential(
            torch.nn.Linear(rows.shape[1], _HIDDEN), torch.nn.ReLU(), torch.nn.Linear(_HIDDEN, classes)
        )
        loss = torch.nn.CrossEntropyLoss() if labels.dim() == 1 else torch.nn.BCEWithLogitsLoss()
        optimiser = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=1e-4)
        for _ in range(_EPOCHS):
            optimiser.zero_grad()
            loss(model(rows), labels).backward()
            optimiser.step()
    return model.eval()
