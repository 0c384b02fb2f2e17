"""UPGNet's two layers: the formulas by hand, both forms of features, nodes without neighbours, too large graphs."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from graphveil.aggregation.high_order import regularised, require_dense, upgnet_features
from graphveil.aggregation.propagation import Adjacency
from graphveil.errors import InputError

#: 0 - 1 - 2, and 3 alone.
PATH = Adjacency.of(torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]]), 4)
CENTRED = np.array([[9.5, -4.5], [0.2, -0.2], [1.5, 0.5], [50.0, 50.0]], np.float32)


def test_small_averages_become_zero_and_others_lose_the_threshold() -> None:
    """Node 1 has the averages (5.5 + 0.5, -2 + 0.5), its neighbours (0.7, 0.3), which are within 1."""
    expected = np.array([[0, 0], [5.0, -0.5], [0, 0], [0, 0]])
    assert regularised(CENTRED, PATH) == pytest.approx(expected, abs=1e-6)
    assert regularised(sp.csr_matrix(CENTRED), PATH) == pytest.approx(expected, abs=1e-6)


def test_hops_are_averaged_and_not_only_the_last_is_kept() -> None:
    """P between neighbours on the path is 1 / sqrt 2: one hop takes node 1 to both ends, the next back."""
    z, half = np.array([5.0, -0.5]), 1 / np.sqrt(2)
    found = upgnet_features(CENTRED, PATH, 2)
    expected = np.array([half * z / 2, z / 2, half * z / 2, 0 * z])
    assert found.numpy() == pytest.approx(expected, abs=1e-6)
    assert upgnet_features(CENTRED, PATH, 0).numpy() == pytest.approx(regularised(CENTRED, PATH))


def test_features_that_would_take_too_much_memory_are_refused() -> None:
    require_dense(536_870, 1_000)
    with pytest.raises(InputError, match="536,871 nodes with 1,000 features"):
        require_dense(536_871, 1_000)
