"""What methods over an encoder share: rows are at most 1 long, and graphs and units that do not fit are refused."""

from __future__ import annotations

from typing import Any

import pytest
import scipy.sparse as sp
import torch

from graphveil.methods.curator.encoder import encoded, encoder_and_classifier
from graphveil.methods.curator.settings import CuratorSettings
from graphveil.methods.curator.training import of_all, read_features
from tests.methods import curator_made as cm


def test_rows_are_at_most_one_long_and_keep_no_gradient() -> None:
    start = cm.graph()
    first, last = encoder_and_classifier(CuratorSettings(hidden=4), start.schema, [4, 3], batch_norm=True)
    rows = encoded(first, read_features(start))
    assert rows.shape == (60, 4) and not rows.requires_grad
    assert float(rows.norm(dim=1).max()) <= 1 + 1e-6
    assert last(torch.cat([rows, torch.zeros(60, 3)], dim=1)).shape == (60, 3)


@pytest.mark.parametrize("sparse", [False, True])
def test_many_nodes_are_read_some_at_a_time_and_come_out_in_their_order(sparse: bool) -> None:
    rows = sp.random_array((300_001, 3), density=0.5, random_state=1, format="csr", dtype="float32")
    read, weights = (sp.csr_matrix(rows) if sparse else torch.from_numpy(rows.toarray())), torch.rand(3, 2)
    sizes: list[int] = []

    def network(some: Any) -> torch.Tensor:
        made: torch.Tensor = (some[0] if sparse else some) @ weights
        sizes.append(len(made))
        return made

    torch.testing.assert_close(of_all(network, [read]), torch.from_numpy(rows.toarray()) @ weights)
    assert len(sizes) == 2 and sum(sizes) == 300_001
