"""The thread count for a graph: one where the work is small, else the count that measures fastest on its products."""

from __future__ import annotations

from graphveil.aggregation import normalised
from graphveil.graphs import Graph
from graphveil.runtime.late import torch
from graphveil.training import fastest_threads

#: Below this many edges a second thread costs more than it gives.
SMALL = 500_000
WIDTH = 32
#: Edges whose product is timed: more would tell no more.
TIMED = 2_000_000


def settle_threads(graph: Graph) -> int:
    """Set torch's thread count to what suits the topology of `graph` and return it."""
    if graph.edge_index.shape[1] < SMALL:
        # A fixed count also fixes the order of sums: the same seed gives the same bits on the same machine.
        torch.set_num_threads(1)
        return 1
    # Of the first people, who hear from all over the graph: rows near each other would be found in a cache.
    p = normalised(graph.edge_index[:, :TIMED].flip(0), int(graph.num_nodes))
    x = torch.randn(p.shape[1], WIDTH)
    return fastest_threads(lambda: p.forward.times(x))
