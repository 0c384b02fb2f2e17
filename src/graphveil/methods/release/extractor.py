"""From a user's raw input to an embedding: a public feature extractor with a declared range, applied row by row.

It is pretrained, or trained on public data: guarantees assume that (`extractor-public`), as no program can check it.  A
test checks that it runs on each row by itself, so that one user's embedding reveals nothing about another; values
outside the declared range are clipped.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from graphveil import models
from graphveil.errors import InputError
from graphveil.graphs import Graph, GraphSchema, make_graph
from graphveil.graphs.value.schema import EXTRACTED, FeatureNumbers
from graphveil.runtime.checks import is_number, require_whole
from graphveil.runtime.late import Tensor, torch

_BLOCK = 4096
_CLOSE = 1e-4


@dataclass(frozen=True)
class Extractor:
    """A public map from raw rows to embeddings.

    Attributes:
        embed: rows [m, r] float32 -> [m, dimension]; a `torch.nn.Module` is put into evaluation mode.
        dimension, low, high: d of the embeddings, and their declared range.
        source: what the extractor was trained on, for the schema.
    """

    embed: Callable[[Tensor], Tensor]
    dimension: int
    low: float
    high: float
    source: str

    def __post_init__(self) -> None:
        if not callable(self.embed) or isinstance(self.embed, type):
            allowed = "a function of rows, such as a fitted torch.nn.Module"
            raise InputError(f"embed is {self.embed!r}", where="feature extractor", allowed=allowed)
        require_whole(1, None, "feature extractor", dimension=self.dimension)
        ends = [end for end in (self.low, self.high) if is_number(end) and math.isfinite(end)]
        if len(ends) < 2 or self.low >= self.high or not self.source:
            raise InputError(
                f"the range is {self.low!r} to {self.high!r}, from {self.source!r}",
                where="feature extractor",
                allowed="two finite numbers, low < high, and a sentence on where the extractor comes from",
            )

    def __call__(self, rows: Tensor) -> Tensor:
        """Return the embeddings [m, d] float32 of rows [m, r], clipped to the range. Raises InputError for another
        width, an entry that is no number, or a row that depends on other rows.
        """
        if isinstance(self.embed, torch.nn.Module):
            # Batch statistics in training mode would tie every embedding to the other rows of its block.
            self.embed.eval()
        with torch.no_grad():
            rows = rows if rows.layout == torch.strided else rows.to_dense()
            parts = [self._rows(rows[start : start + _BLOCK]) for start in range(0, len(rows), _BLOCK)]
            embeddings = torch.cat(parts) if parts else torch.zeros(0, self.dimension)
            if embeddings.shape != (len(rows), self.dimension) or bool(torch.isnan(embeddings).any()):
                raise InputError(
                    f"embeddings are {tuple(embeddings.shape)}, or not numbers",
                    where="feature extractor",
                    allowed=f"[{len(rows)}, {self.dimension}]",
                )
            # A row by itself against the same row among others: a cheap check that a batch norm in training mode fails.
            # Of both ends: a map that subtracts the first row, say, passes at the first and fails at the last.
            ends = [(rows[:1], embeddings[:1]), (rows[-1:], embeddings[-1:])] if len(rows) else []
            if not all(torch.allclose(self._rows(row), embedding, rtol=_CLOSE, atol=_CLOSE) for row, embedding in ends):
                raise InputError(
                    "the embedding of a row changes with the other rows",
                    where="feature extractor",
                    remedy="leave out batch statistics: every user's embedding must come from that user's row alone",
                )
        # A value outside the declared range would break the mechanism's bound: it is clipped, and the range never
        # widened.
        return embeddings.clamp(self.low, self.high)

    def _rows(self, rows: Tensor) -> Tensor:
        with models.reading_rows(rows.shape[1], "feature extractor"):
            return self.embed(rows).float()


def masked_rows(rows: Tensor, columns: Tensor, fill: float) -> Tensor:
    """Return rows [m, r] with the sensitive `columns` replaced by `fill`: the input of z^ (eq. 5)."""
    masked = rows.clone() if rows.layout == torch.strided else rows.to_dense()
    masked[:, columns] = fill
    return masked


def embedded(graph: Graph, extractor: Extractor) -> Graph:
    """Return the graph with each user's embedding in place of the raw features, and the same labels and edges."""
    rows = graph.x if graph.x.layout == torch.strided else graph.x.to_dense()
    numbers = FeatureNumbers(extractor.dimension, extractor.low, extractor.high, f"{EXTRACTED}{extractor.source}")
    schema: GraphSchema = graph.schema.derived(numbers=numbers)
    derived = make_graph(extractor(rows), graph.edge_index, graph.y, schema, like=graph)
    for name in graph.keys():  # noqa: SIM118 (a PyG graph is no dictionary)
        if name not in ("x", "y", "edge_index", "schema", "num_nodes", "image"):
            derived[name] = graph[name]
    return derived
