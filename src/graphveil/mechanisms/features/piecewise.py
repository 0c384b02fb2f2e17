"""The piecewise mechanisms: a number near the value, for a few sampled coordinates.

Of each sampled coordinate a level near the value is sent e^(epsilon/k) times as likely as one further off. The window
of PM-SUB is wider than that of PM, t = e^(epsilon/3k) in place of e^(epsilon/2k): nearly the best for its worst
variance. Both are on a grid (see `laws`).

Sources: PM: N. Wang et al., "Collecting and Analyzing Multidimensional Data with Local Differential Privacy", ICDE
2019, https://arxiv.org/abs/1907.00001, Algorithms 2 and 4. PM-SUB: Y. Zhao et al., "Local Differential Privacy-Based
Federated Learning for Internet of Things", IEEE Internet of Things Journal 8(11), 2021,
https://arxiv.org/abs/2004.08856; published code returns the right tail without noise, here all tails are levels.
"""

from __future__ import annotations

from functools import partial
from typing import Final

from graphveil.mechanisms.features.sampled import SamplingKind
from graphveil.mechanisms.samplers.laws import WindowLaw, best_coordinates, window_law

# Where d is large the worst variance is least near these epsilon/k.
_PM_SHARE: Final = 2.42
_SUB_SHARE: Final = 2.49


def piecewise_law(epsilon: float, parts: int) -> WindowLaw:
    """The law of one of `parts` coordinates that share `epsilon`: t = e^(share / 2)."""
    return window_law(epsilon, parts, 2)


def suboptimal_law(epsilon: float, parts: int) -> WindowLaw:
    """The law of one of `parts` coordinates that share `epsilon`: t = e^(share / 3)."""
    return window_law(epsilon, parts, 3)


Piecewise: Final = SamplingKind("Piecewise", piecewise_law, partial(best_coordinates, piecewise_law, share=_PM_SHARE))
SubOptimal: Final = SamplingKind(
    "SubOptimal", suboptimal_law, partial(best_coordinates, suboptimal_law, share=_SUB_SHARE)
)
