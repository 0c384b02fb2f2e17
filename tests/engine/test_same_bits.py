"""The same bits from one thread, from three and from a cluster, on graphs of 16 blocks and more."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import polars
import pytest
import scipy.sparse as sp
import torch
from torch import Tensor

from graphveil.aggregation import (
    CountedSum,
    PerturbedSum,
    ReceiverRows,
    SparseMatrix,
    build_inputs,
    normalised,
    propagate,
    propagate_privately,
    standardise,
)
from graphveil.engine import Block, Blocks, Engine, LocalEngine, RayEngine
from graphveil.engine.contract import VALUES
from graphveil.errors import BudgetError
from graphveil.graphs import Graph, GraphSchema, Split, load_parts, make_graph, normalise_edges
from graphveil.graphs.value.features import compact_dense, features_tensor
from graphveil.mechanisms import (
    ClassCounts,
    DegreePreservingRR,
    EdgeRand,
    FeatureRR,
    LapGraph,
    MultiBit,
    NoisyDegree,
    PairDomain,
    PrivUnit,
    SubsetSelection,
)
from graphveil.mechanisms.by_blocks import PEOPLE, randomize_by_blocks
from graphveil.mechanisms.edges.edge_sampling import place_blocks
from graphveil.methods import GAP, LPGNN, ClassSums, HeteroRR
from graphveil.methods.base.network.objectives import drop_objective
from graphveil.methods.local.label_propagation import propagate_labels
from graphveil.models.labels.label_prior import Channel
from graphveil.privacy import Randomness, SecureRandomness, SeededRandomness

#: So many that there are 16 blocks and more, for which some tests take 2 s.
NODES = 66_000
COLUMNS = 64


@pytest.fixture(scope="module")
def rows() -> ReceiverRows:
    """Ten edges a node, and one node that hears everybody: its sum is cut into pieces."""
    generator = torch.Generator().manual_seed(0)
    edges = torch.randint(0, NODES, (2, 10 * NODES), generator=generator)
    edges[1, :NODES] = 7
    return ReceiverRows.of(edges, NODES)


@pytest.fixture(scope="module")
def x() -> Tensor:
    return torch.randn(NODES, COLUMNS, generator=torch.Generator().manual_seed(1))


Work = Callable[[ReceiverRows, Tensor, Randomness, Engine], Tensor]


def hop(rows: ReceiverRows, x: Tensor, randomness: Randomness, engine: Engine) -> Tensor:
    return PerturbedSum(unit="edge", sigmas=(8.0,)).perturb(rows, x, 1, randomness, engine=engine)


def hops(rows: ReceiverRows, x: Tensor, randomness: Randomness, engine: Engine) -> Tensor:
    return torch.stack(propagate_privately(PerturbedSum(sigmas=(8.0, 4.0)), rows, x, randomness, engine=engine))


def counts(rows: ReceiverRows, x: Tensor, randomness: Randomness, engine: Engine) -> Tensor:
    return CountedSum(epsilon=1.0).perturb(rows, torch.eye(COLUMNS)[x.argmax(1)], randomness, engine=engine)


def released(rows: ReceiverRows, x: Tensor, randomness: Randomness, engine: Engine) -> Tensor:
    released = EdgeRand(epsilon=6.5, domain=DOMAIN)
    assert len(place_blocks(DOMAIN.size, released.expected_false, NODES)) > 16
    return released.randomize(DOMAIN.pairs(torch.arange(0, DOMAIN.places, 10**4)), randomness=randomness, engine=engine)


def ranked(rows: ReceiverRows, x: Tensor, randomness: Randomness, engine: Engine) -> Tensor:
    pairs = DOMAIN.pairs(torch.arange(0, DOMAIN.places, 10**3))
    assert len(place_blocks(DOMAIN.size, pairs.shape[1], NODES)) > 16
    return LapGraph(epsilon=3.0, domain=DOMAIN).randomize(pairs, randomness=randomness, engine=engine)


def degrees(rows: ReceiverRows, x: Tensor, randomness: Randomness, engine: Engine) -> Tensor:
    people = 17 * VALUES
    mechanism = NoisyDegree(epsilon=1.0, nodes=people, mode="directed")
    return mechanism.randomize(torch.full((people,), 9), randomness=randomness, engine=engine).levels


def counted(rows: ReceiverRows, x: Tensor, randomness: Randomness, engine: Engine) -> Tensor:
    pairs = DOMAIN.pairs(torch.arange(0, DOMAIN.places, 10**4))
    mechanism = ClassCounts(epsilon=1.0, domain=DOMAIN, groups=x.argmax(1), classes=COLUMNS)
    return mechanism.randomize(pairs, randomness=randomness, engine=engine)


def lists(rows: ReceiverRows, x: Tensor, randomness: Randomness, engine: Engine) -> Tensor:
    pairs = DOMAIN.pairs(torch.arange(0, DOMAIN.places, 10**4))
    reports = DegreePreservingRR(epsilon=7.5, nodes=NODES)
    sent = reports.randomize(torch.cat([pairs, pairs.flip(0)], 1), randomness=randomness, engine=engine)
    return sent.edges.to_edge_index()


def public(rows: ReceiverRows) -> SparseMatrix:
    """P of some of the edges, declared public; its transpose is another matrix."""
    receivers = torch.repeat_interleave(torch.arange(NODES), rows.starts.diff().long())
    return normalised(torch.stack([rows.senders.long(), receivers])[:, ::8], NODES)


def drawn(randomness: Randomness) -> Tensor:
    """A number of each person in 0..1: what is public is no noise, but has to differ between two runs."""
    return torch.from_numpy((randomness.uint64(NODES) >> 40).astype(np.float32)) / 2**24


def propagated(rows: ReceiverRows, x: Tensor, randomness: Randomness, engine: Engine) -> Tensor:
    p, x = public(rows), x * drawn(randomness)[:, None]
    return torch.cat([propagate(p, x, 2, engine=engine), p.on(engine).backward.times(x)])


def spread(rows: ReceiverRows, x: Tensor, randomness: Randomness, engine: Engine) -> Tensor:
    role = drawn(randomness)
    channel = Channel(COLUMNS, 0.5, 0.5 / (COLUMNS - 1))
    return propagate_labels(public(rows), x.argmax(1), role < 0.5, role > 0.8, channel, engine=engine)[0]


def inputs(rows: ReceiverRows, x: Tensor, randomness: Randomness, engine: Engine, hops: int = 2) -> Tensor:
    """LPGNN's inputs from sparse reports, and the targets of its objective."""
    p, role = public(rows), drawn(randomness)
    sent = sp.csr_matrix((role.numpy(), (np.arange(NODES), x.argmax(1).numpy())), shape=(NODES, COLUMNS))
    built = build_inputs(sent, p, hops, width=1, offset=0.5, engine=engine)
    assert (built.p is p) == (hops == 2)
    built = standardise(built, generator=torch.Generator().manual_seed(0), engine=engine)
    drop = drop_objective(x.argmax(1), role < 0.5, role > 0.8, p, 2, Channel(COLUMNS, 0.5, 0.1), engine=engine)
    assert built.mean is not None and built.scale != 1.0
    shift, targets = built.mean.flatten(), drop.train_targets.float()
    return torch.cat([built.linear(torch.ones(COLUMNS, 1)).flatten(), shift, torch.tensor([built.scale]), targets])


def reports(mechanism: Any, values: Callable[[Tensor], Any] = lambda x: x[:, :8].sigmoid()) -> Work:
    """What everybody's device sends: of vectors, unless `values` makes something else of x."""

    def work(rows: ReceiverRows, x: Tensor, randomness: Randomness, engine: Engine) -> Tensor:
        sent = randomize_by_blocks(mechanism, values(x), randomness=randomness, engine=engine)
        return torch.cat([part.reshape(NODES, -1).long() for part in sent.to_tensors().values()], dim=1)

    return work


def few_are_stored(x: Tensor) -> sp.csr_matrix:
    return sp.csr_matrix((x[:, :8].sigmoid() - 0.5).clamp_min(0).numpy())


def classes(x: Tensor) -> Tensor:
    return x.argmax(dim=1)


VECTORS: dict[str, Any] = {"epsilon": 4.0, "dimension": 8}
CLASSES: dict[str, Any] = {"epsilon": 2.0, "classes": COLUMNS}
WORK: dict[str, Work] = {
    "hops": hops,
    "counts": counts,
    "released": released,
    "ranked": ranked,
    "degrees": degrees,
    "counted": counted,
    "lists": lists,
    "propagated": propagated,
    "spread": spread,
    "inputs": inputs,
    "dense inputs": partial(inputs, hops=28),
    "multi-bit of sparse rows": reports(MultiBit(**VECTORS), few_are_stored),
    "privunit": reports(PrivUnit(**VECTORS, codewords=16)),
    "feature-rr": reports(FeatureRR(**VECTORS)),
    "subsets": reports(SubsetSelection(**CLASSES), classes),
}
DOMAIN = PairDomain(NODES)


@pytest.fixture(scope="module")
def graph(rows: ReceiverRows) -> Graph:
    """As many people with few features and many classes, and the same edges in both directions."""
    generator = torch.Generator().manual_seed(2)
    labels = torch.randint(0, COLUMNS, (NODES,), generator=generator)
    features = features_tensor(compact_dense(torch.rand(NODES, 8, generator=generator).numpy()))
    senders = rows.senders.long()
    receivers = torch.repeat_interleave(torch.arange(NODES), rows.starts.diff().long())
    edges, _ = normalise_edges(senders.numpy(), receivers.numpy(), NODES, directed=False)
    schema = GraphSchema("blocks", 8, 0.0, 1.0, tuple(map(str, range(COLUMNS))), directed=False)
    return make_graph(features, edges, labels, schema)


def few(graph: Graph) -> Split:
    """A training of few people, whose messages reach every block all the same."""
    place = torch.arange(int(graph.num_nodes))
    return Split(place < 256, (place >= 256) & (place < 320), place >= 320)


def gap(graph: Graph, randomness: Randomness, engine: Engine) -> Tensor:
    method = GAP(epsilon=4.0, hops=2, hidden=COLUMNS, epochs=1)
    method.fit(graph, split=few(graph), randomness=randomness, engine=engine)
    return torch.cat(list(method.published.parts), dim=1)


def class_sums(graph: Graph, randomness: Randomness, engine: Engine) -> Tensor:
    core = ClassSums(epsilon=4.0)
    return core.publish(graph, split=few(graph), randomness=randomness, engine=engine).sums


def release(graph: Graph, randomness: Randomness, engine: Engine) -> Tensor:
    core = HeteroRR(epsilon_x=40.0, epsilon_y=1.0, epsilon_a=14.0, features="feature-rr", edges="edge-rand")
    out = core.release(graph, randomness=randomness, engine=engine)
    return torch.cat([out.x.flatten().double(), out.y.double(), out.edge_index.flatten().double()])


def predictions(graph: Graph, randomness: Randomness, engine: Engine) -> Tensor:
    """A prediction for people who report for it, by a network of a few others."""
    few, _ = normalise_edges(np.arange(99), np.arange(1, 100), 100, directed=False)
    x = features_tensor(compact_dense(np.random.default_rng(0).random((100, 8), np.float32)))
    small = make_graph(x, few, graph.y[:100], graph.schema)
    method = LPGNN(epsilon_x=4.0, epsilon_y=4.0, epochs=1).fit(small, randomness=SeededRandomness(1))
    return method.predict_proba(graph, people="other", randomness=randomness, engine=engine)


#: What a method publishes or asks, from its raw data on.
PUBLISHED: dict[str, Callable[[Graph, Randomness, Engine], Tensor]] = {
    "gap": gap,
    "class-sums": class_sums,
    "release": release,
    "asked": predictions,
}


@pytest.mark.parametrize("name", ["gap", pytest.param("class-sums", marks=pytest.mark.slow), "release", "asked"])
def test_no_engine_changes_a_bit_of_what_a_method_publishes_or_asks(
    name: str, graph: Graph, engines: dict[str, Engine]
) -> None:
    results = [PUBLISHED[name](graph, SeededRandomness(3), engine) for engine in engines.values()]
    assert all(torch.equal(results[0], other) for other in results[1:])


def test_no_engine_changes_what_is_read_of_a_folder(engines: dict[str, Engine], tmp_path: Path) -> None:
    rows, ids = 2_200_000, polars.Series(range(0, 9 * 10**9, 10**7)).shuffle(1)
    polars.DataFrame({"id": ids, "f": np.ones(len(ids))}).write_parquet(tmp_path / "nodes.parquet")
    ends = {end: ids.sample(rows, with_replacement=True, seed=place) for place, end in enumerate(["source", "target"])}
    polars.DataFrame(ends).write_parquet(tmp_path / "edges.parquet")
    toml = 'range = [0, 1]\nclasses = ["a", "b"]\nprivate = []\ndirected = false\n'
    (tmp_path / "graph.toml").write_text(toml)
    results = [load_parts(tmp_path, engine=engine) for engine in engines.values()]
    assert all(np.array_equal(results[0].edge_index, other.edge_index) for other in results[1:])
    assert results[0].schema.notes == results[1].schema.notes


@pytest.mark.parametrize("name", WORK)
def test_no_engine_changes_a_bit(name: str, rows: ReceiverRows, x: Tensor, engines: dict[str, Engine]) -> None:
    assert len(Blocks.of(NODES, COLUMNS)) > 16 and len(Blocks(NODES, PEOPLE)) > 16
    results = [WORK[name](rows, x, SeededRandomness(3), engine) for engine in engines.values()]
    assert all(torch.equal(results[0], other) for other in results[1:])
    # Noise that did not come from its keys, or the same in each block, would be found here.
    other = WORK[name](rows, x, SeededRandomness(4), engines["one"])
    assert not torch.equal(results[0], other)


def test_noise_of_one_block_is_not_that_of_another() -> None:
    nobody = ReceiverRows.of(torch.zeros(2, 0, dtype=torch.int64), NODES)
    noise = PerturbedSum(sigmas=(8.0,)).perturb(nobody, torch.ones(NODES, COLUMNS), 1, SecureRandomness())
    size = Blocks.of(NODES, COLUMNS).size
    assert not torch.equal(noise[:size], noise[size : 2 * size])


@dataclass
class OneWorkerDies:
    """A cluster one of whose workers is killed in the middle of a hop, once."""

    ray: RayEngine
    where: Path

    def put(self, *arrays: Any) -> Any:
        return self.ray.put(*arrays)

    def map_blocks(self, task: Any, *arguments: Any) -> Iterator[Any]:
        return self.ray.map_blocks(_Dying(task, str(self.where)), *arguments)

    def reduce(self, *arguments: Any) -> Any:
        return self.ray.reduce(*arguments)

    def gather(self, *arguments: Any) -> Any:
        return self.ray.gather(*arguments)


@dataclass(frozen=True)
class _Dying:
    task: Any
    where: str

    def __call__(self, block: Block, *arguments: Any) -> Any:
        result = self.task(block, *arguments)
        flag = Path(self.where) / "killed"
        # After the noise was drawn: a second draw of other noise would show.
        if block.number == 5 and not flag.exists():
            flag.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return result


@pytest.mark.slow
def test_a_hop_whose_worker_dies_is_finished_under_the_same_noise(
    rows: ReceiverRows, x: Tensor, ray: RayEngine, tmp_path: Path
) -> None:
    whole = hop(rows, x, SeededRandomness(3), ray)
    broken = hop(rows, x, SeededRandomness(3), OneWorkerDies(ray, tmp_path))
    assert (tmp_path / "killed").exists() and torch.equal(whole, broken)


@pytest.mark.slow
def test_a_publication_is_paid_once_whoever_dies_on_the_way(graph: Graph, ray: RayEngine, tmp_path: Path) -> None:
    quiet, disturbed = ClassSums(epsilon=4.0), ClassSums(epsilon=4.0)
    whole = quiet.publish(graph, split=few(graph), randomness=SeededRandomness(3))
    engine = OneWorkerDies(ray, tmp_path)
    published = disturbed.publish(graph, split=few(graph), randomness=SeededRandomness(3), engine=engine)
    assert (tmp_path / "killed").exists() and torch.equal(whole.sums, published.sums)
    assert disturbed.account.ledger == quiet.account.ledger and len(quiet.account.ledger.spends) == 1


def test_a_publication_that_broke_off_is_paid_and_never_taken_up_again(graph: Graph) -> None:
    core = ClassSums(epsilon=4.0)
    with pytest.raises(ConnectionError):
        core.publish(graph, split=few(graph), randomness=SecureRandomness(), engine=_Gone())
    assert len(core.account.ledger.spends) == 1
    with pytest.raises(BudgetError):
        core.publish(graph, split=few(graph), randomness=SecureRandomness())


@dataclass(frozen=True)
class _Gone(LocalEngine):
    """All workers are lost after a few blocks, whose sums they may have handed on."""

    def map_blocks(self, *arguments: Any) -> Iterator[Any]:
        for number, result in enumerate(super().map_blocks(*arguments)):
            if number == 5:
                raise ConnectionError("the cluster is gone")
            yield result
