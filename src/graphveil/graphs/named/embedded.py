"""Public sets whose features are embeddings without a published bound."""

from __future__ import annotations

import numpy as np

from graphveil.graphs.value.features import clip_features

BOUND = 4.0
EMBEDDED_SOURCE = (
    f"declared by graphveil: the embedding has no published bound, so -{BOUND:g} to {BOUND:g} is fixed in "
    "the program and values beyond it are clipped"
)


def embedded_features(values: np.ndarray, where: str) -> tuple[np.ndarray, tuple[float, float], tuple[str, ...]]:
    """Return float32 features clipped to the fixed range, that range, and a note when anything was clipped.

    Args:
        values: [n, d], of any type of numbers; not changed. DataError where one is NaN.
        where: their file, for the message.
    """
    # A bound fixed in the program: the data's own largest value is a function of one person's row.
    x, changed = clip_features(np.array(values, dtype=np.float32), -BOUND, BOUND, where)
    notes = (f"clipped {changed:,} feature values to -{BOUND:g}..{BOUND:g}",) if changed else ()
    return x, (-BOUND, BOUND), notes
