"""How many hops a public topology allows: what a node hears should stay within its part of the graph.

    n_eff(K) = (P^K 1)_v^2 / sum_u (P^K)_vu^2      people of equal weight whose mean has the noise of P^K x at v
    K = the largest of 8, 4, 2, 1 with  n_eff(K) <= n / (ROOM c)  at the node in the middle

The sums of squares are estimated by E (P^K g)_v^2 over random signs g.  Ours.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import scipy.sparse as sp

#: Hops of features, from those that smooth most, and the hops of labels that go with them.
FEATURE_HOPS: Final = (8, 4, 2, 1)
_LABEL_HOPS: Final = {8: 4, 4: 1, 2: 0, 1: 0}
ROOM: Final = 2.0
_PROBES: Final = 16


def public_hops(p: sp.csr_matrix, classes: int) -> dict[str, int]:
    """Return hops of features and of labels by the name of their setting.

    Args:
        p: the propagation [n, n].
        classes: c, as declared.
    """
    n = p.shape[0]
    signs = np.random.RandomState(0).randint(0, 2, size=(n, _PROBES)).astype(np.float32) * 2 - 1
    columns, reached = np.concatenate([np.ones((n, 1), np.float32), signs], axis=1), {}
    for hops in range(1, FEATURE_HOPS[0] + 1):
        columns = p @ columns
        squares = (columns[:, 1:] ** 2).mean(axis=1)
        reached[hops] = float(np.median(columns[:, 0] ** 2 / np.maximum(squares, 1e-30)))
    steps = next((hops for hops in FEATURE_HOPS if reached[hops] * ROOM * classes <= n), FEATURE_HOPS[-1])
    return {"steps_x": steps, "steps_y": _LABEL_HOPS[steps]}
