"""PM-SUB: the piecewise mechanism with a window that is nearly the best for its worst variance.

The window is wider: t = e^(epsilon/3k) in place of e^(epsilon/2k).

Source: Y. Zhao et al., "Local Differential Privacy-Based Federated Learning for Internet of Things", IEEE Internet of
Things Journal 8(11), 2021, https://arxiv.org/abs/2004.08856, on a grid (see `window`). Published code returns the right
tail as a number without noise; here all tails are levels like any other.
"""

from __future__ import annotations

from typing import Final

from graphveil.mechanisms.features.sampled import SamplingKind
from graphveil.mechanisms.samplers.laws import best_coordinates
from graphveil.mechanisms.samplers.window import WindowLaw, window_law

# Where d is large the worst variance is least near epsilon/k = 2.49.
_BEST_SHARE: Final = 2.49


def suboptimal_law(epsilon: float, parts: int) -> WindowLaw:
    """The law of one of `parts` coordinates that share `epsilon`: t = e^(share / 3).

    Args:
        epsilon: of all coordinates together.
        parts: k.
    """
    return window_law(epsilon, parts, 3)


def _best(epsilon: float, dimension: int) -> int:
    return best_coordinates(suboptimal_law, epsilon, dimension, _BEST_SHARE)


SubOptimal: Final = SamplingKind("SubOptimal", suboptimal_law, _best)
