"""What one training takes in time, memory and bytes, from one timed product and public facts."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

import numpy as np

from graphveil.aggregation import normalised
from graphveil.aggregation.propagation import Adjacency
from graphveil.graphs import Graph, GraphSchema
from graphveil.graphs.value.parts import GraphParts, SparseRows
from graphveil.mechanisms import NotCollected, Public
from graphveil.methods.base.people.local_privacy import LocalPrivacy
from graphveil.methods.base.settings import NetworkSettings
from graphveil.models import first_width
from graphveil.runtime.late import Tensor, sparse, torch
from graphveil.training import fastest_threads

#: Memory of the interpreter with torch and PyG loaded, MB (measured).
BASE_MEMORY_MB = 420.0
#: The number of neighbours for which cost and noise are planned if the true number is private.
ASSUMED_DEGREE = 10.0
#: The most entries of a matrix that is timed.
MOST_TIMED = 2_000_000
#: Time of a product in training beside that of SciPy: 0.5 to 0.6 at 10 and 16 columns, one thread (measured).
TRAINING_BESIDE_SCIPY = 0.5


@dataclass(frozen=True)
class Propagation:
    """P [n, n] as a plan needs it: its entries as SciPy holds them, without torch.

    Attributes:
        symmetric: whether training stores it once, not beside its transpose.
    """

    matrix: sparse.csr_matrix
    symmetric: bool

    @property
    def nodes(self) -> int:
        return int(self.matrix.shape[0])

    @property
    def entries(self) -> int:
        return int(self.matrix.nnz)

    @property
    def nbytes(self) -> int:
        """Bytes of it in training, see `aggregation.SparseMatrix`."""
        return (4 * (self.nodes + 1) + 8 * self.entries) * (1 if self.symmetric else 2)


def propagation_of(edge_index: np.ndarray | Tensor, nodes: int) -> Propagation:
    """Return P of public edges, int64 [2, E]."""
    adjacency = Adjacency.of(edge_index, nodes)
    return Propagation(adjacency.to_scipy(), adjacency.symmetric)


def assumed_propagation(nodes: int, entries: int) -> Propagation:
    """Return P of a random graph, for plans where the true edges are private.

    Args:
        entries: its number of edges; at most MOST_TIMED are drawn.
    """
    # Always the same edges: two plans of one run must agree, and timing needs the right size alone.
    return propagation_of(fixed_integers(nodes, (2, min(entries, MOST_TIMED))).astype(np.int64), nodes)


def fixed_integers(below: int, shape: tuple[int, ...]) -> np.ndarray:
    """Return integers in 0..below-1, always the same: those of `torch.randint` for the seed 0, without torch."""
    return np.random.RandomState(0).randint(0, 2**32, size=shape, dtype=np.uint32) % np.uint32(below)


def network_cost(
    p: Propagation, graph: Graph | GraphParts, network: NetworkSettings, privacy: LocalPrivacy, *, noisy: bool = False
) -> tuple[float, float]:
    """Return the (seconds, MB) of training a network all epochs; public features count at their stored size.

    Args:
        noisy: whether a curator releases the features with noise, so that none is 0.
    """
    n, d, classes = p.nodes, graph.schema.dimension, len(graph.schema.classes)
    width = first_width(network.model, network.hidden)
    wide = product_seconds(p, width) * (network.steps_x + 1.5) * 2
    narrow = product_seconds(p, classes) * (network.steps_y * 2 + 3)
    per_node = n * (24 * width + 40 * classes) * 4 / 4e9
    mechanism = privacy.features(graph.schema)
    # What the server stores of people's features: all numbers, or the sampled coordinates.
    if isinstance(mechanism, NotCollected) and not noisy:
        entries = n  # one random coordinate a person in place of features
    elif isinstance(mechanism, Public) and not noisy:
        entries = _stored(graph, public=True)
    else:
        entries = n * (d if noisy else int(getattr(mechanism, "coordinates", d)))
    raw = _stored(graph, public=isinstance(mechanism, Public) and not noisy)
    first = entries * width * 2 / 4e9
    seconds = network.epochs * (wide + narrow + per_node + first + 2e-4 + d * width * 6 / 4e9)
    memory = 4 * p.nbytes + 8 * n * width * 4 + 8 * d * width * 4 + 24 * entries + 2 * 8 * raw
    return seconds, BASE_MEMORY_MB + memory / 1e6


def spreading_cost(p: Propagation, classes: int) -> tuple[float, float]:
    """Return the (seconds, MB) of spreading labels."""
    return spreading_seconds(p, classes, 400), BASE_MEMORY_MB + (4 * p.nbytes + 8 * p.nodes * classes * 4) / 1e6


def spreading_seconds(p: Propagation, columns: int, products: int) -> float:
    """Return the seconds of multiplying P with labels.

    Args:
        columns: of the labels [n, columns]. products: how many times.
    """
    return products * (product_seconds(p, columns) + p.nodes * columns * 8 / 4e9)


def product_seconds(p: Propagation, width: int) -> float:
    """Return the seconds of one product P x, x [n, width], in a training: half the best of five of SciPy's."""
    x = np.random.default_rng(0).standard_normal((p.nodes, width), np.float32)
    seconds = []
    for _ in range(5):
        start = time.perf_counter()
        p.matrix @ x
        seconds.append(time.perf_counter() - start)
    # The best and not the mean: other work on the machine only ever makes a product slower.
    return TRAINING_BESIDE_SCIPY * min(seconds)


def _stored(graph: Graph | GraphParts, *, public: bool) -> int:
    x = graph.x
    if not isinstance(x, SparseRows) and (isinstance(x, np.ndarray) or x.layout != torch.sparse_csr):
        return int(np.prod(x.shape))
    # The size of private sparse rows would reveal how many values are not 0; what people send is counted besides.
    if not public:
        return 0
    return int(x.values.size if isinstance(x, SparseRows) else x.values().numel())


def report_bytes(privacy: LocalPrivacy, schema: GraphSchema) -> float:
    """Return the bytes a person sends: the feature report, every feature as 32 bits where public, and a class."""
    return privacy.features(schema).report_bytes + math.ceil(math.log2(len(schema.classes))) / 8


#: Below this many edges a second thread costs more than it saves.
SMALL_EDGES = 500_000
TIMED_COLUMNS = 32


def settle_threads(graph: Graph) -> int:
    """Set torch's thread count for a topology and return it: one for a small one, else the fastest."""
    edges, nodes = graph.edge_index, int(graph.num_nodes)
    if "edges" in graph.schema.private:
        # The order of sums changes their last digits: a count from the true edges would reveal how many there are.
        count = min(round(ASSUMED_DEGREE * nodes), MOST_TIMED)
        edges = torch.randint(nodes, (2, count), generator=torch.Generator().manual_seed(0))
    if edges.shape[1] < SMALL_EDGES:
        # A fixed count also fixes the order of sums: the same seed gives the same bits on the same machine.
        torch.set_num_threads(1)
        return 1
    # Rows are those of the first targets, columns from all over the graph: neighbouring columns would be in a cache.
    p = normalised(edges[:, :MOST_TIMED].flip(0), nodes)
    x = torch.randn(p.shape[1], TIMED_COLUMNS)
    return fastest_threads(lambda: p.forward.times(x))
