"""Fingerprints: equal for equal graphs, different after any change, useless without the key."""

from __future__ import annotations

import torch

from graphveil.graphs import social_graph
from graphveil.graphs.fingerprint import fingerprint

KEY = bytes(range(32))


def test_any_change_shows_and_nothing_else_does() -> None:
    for dimension in (20, 100):  # dense and sparse features
        start = social_graph(40, 6, dimension, 3, apps=4, seed=1)
        first = fingerprint(start, KEY)
        assert fingerprint(social_graph(40, 6, dimension, 3, apps=4, seed=1), KEY) == first
        assert len(first) == 32 and fingerprint(start, b"other") != first
        stored = start.x.values() if start.x.layout == torch.sparse_csr else start.x
        for tensor in (stored.view(-1), start.y, start.edge_index.view(-1)):
            old = tensor[3].clone()
            tensor[3] = old + 1
            assert fingerprint(start, KEY) != first
            tensor[3] = old
        assert fingerprint(start, KEY) == first
        start.edge_index = start.edge_index[:, 2:]
        assert fingerprint(start, KEY) != first
