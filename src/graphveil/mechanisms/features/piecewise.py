"""The piecewise mechanism (PM): a number near the value, on a few sampled coordinates.

Of each sampled coordinate a level near the value is sent e^(epsilon/k) times as likely as one further off.

Source: N. Wang et al., "Collecting and Analyzing Multidimensional Data with Local Differential Privacy", ICDE 2019,
https://arxiv.org/abs/1907.00001, Algorithms 2 and 4, on a grid (see `window`).
"""

from __future__ import annotations

from typing import Final

from graphveil.mechanisms.features.sampled import SamplingKind
from graphveil.mechanisms.samplers.laws import best_coordinates
from graphveil.mechanisms.samplers.window import WindowLaw, window_law

# Where d is large the worst variance is least near epsilon/k = 2.42.
_BEST_SHARE: Final = 2.42


def piecewise_law(epsilon: float, parts: int) -> WindowLaw:
    """The law of one of `parts` coordinates that share `epsilon`: t = e^(share / 2).

    Args:
        epsilon: of all coordinates together.
        parts: k.
    """
    return window_law(epsilon, parts, 2)


def _best(epsilon: float, dimension: int) -> int:
    return best_coordinates(piecewise_law, epsilon, dimension, _BEST_SHARE)


Piecewise: Final = SamplingKind("Piecewise", piecewise_law, _best)
