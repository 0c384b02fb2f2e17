"""Feature extractors: declared ranges, one row at a time, everything else of the graph as it was."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from graphveil.errors import InputError
from graphveil.methods.release.extractor import Extractor, embedded, masked_rows
from tests.methods import made


def doubled(rows: Tensor) -> Tensor:
    return 2 * rows[:, :3]


def test_embeddings_are_clipped_to_the_declared_range() -> None:
    found = Extractor(doubled, 3, 0.0, 1.0, "arithmetic")(torch.tensor([[0.2, 0.9, -1.0, 7.0]]))
    assert found.tolist() == [[pytest.approx(0.4), 1.0, 0.0]]
    assert Extractor(doubled, 3, 0.0, 1.0, "arithmetic")(torch.zeros(0, 4)).shape == (0, 3)


def test_a_graph_keeps_everything_but_its_features() -> None:
    graph = made.graph(20)
    graph.public_edges = torch.ones(graph.edge_index.shape[1], dtype=torch.bool)
    found = embedded(graph, Extractor(doubled, 3, 0.0, 2.0, "arithmetic"))
    assert (found.schema.dimension, found.schema.low, found.schema.high) == (3, 0.0, 2.0)
    assert "arithmetic" in found.schema.source
    assert torch.equal(found.public_edges, graph.public_edges)
    assert torch.equal(found.y, graph.y)
    assert torch.equal(found.edge_index, graph.edge_index)
    assert graph.x.shape[1] == 20


def test_rows_that_depend_on_one_another_are_refused() -> None:
    with pytest.raises(InputError, match="changes with the other rows"):
        Extractor(lambda rows: rows - rows.mean(dim=0), 4, -1.0, 1.0, "batch means")(torch.rand(5, 4))
    norm = nn.BatchNorm1d(4)
    Extractor(norm, 4, -1.0, 1.0, "fixed statistics")(torch.rand(5, 4))
    assert not norm.training


@pytest.mark.parametrize(("width", "low", "high"), [(2, 0.0, 1.0), (3, 1.0, 1.0), (3, 0.0, float("inf"))])
def test_another_width_or_no_range_is_refused(width: int, low: float, high: float) -> None:
    with pytest.raises(InputError):
        Extractor(doubled, width, low, high, "arithmetic")(torch.rand(2, 4))


def test_masking_leaves_the_rows_as_they_were() -> None:
    rows = torch.ones(2, 3)
    assert masked_rows(rows, torch.tensor([0, 2]), 0.5).tolist() == [[0.5, 1.0, 0.5]] * 2
    assert bool((rows == 1).all())
