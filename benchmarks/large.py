"""How far one machine reaches: seconds and memory of every method, up to 10^7 people with 10^8 edges.

    python benchmarks/large.py --folder FOLDER --nodes 100000 1000000 10000000

Each cell, a method at a size, runs in a process of its own; what it took is kept as a row in FOLDER and the cell is not
run again unless its row is deleted, so that a run that was stopped goes on.  A cell that needs more than `--most-gb` is
ended, and the table says so.  Graphs follow the law of `social_graph`, ten relationships a person, each of which is two
entries, 1,000 sparse features; they are made once and read through memory maps.  One thread.

    ingest         a folder of parquet, read and described
    hop            one private hop of 64 columns beside the plain product, the least of two
    edge-rand      three false edges for ten true ones
    class-sums     geometric noise, `--epochs`
    products       ten plain products of 8 columns: how seconds grow where only memory is far
    labels         label propagation
    gap            2 hops of 16 columns, `--epochs` for each network
    link-beliefs   3 reported entries a person, on a graph of its own
    tree           a release along a tree of four fifths of the edges, which are public
    lpgnn          multi-bit reports, K_x = 4, K_y = 2, `--epochs`

CPU seconds are those of the work alone: each cell does it at a small size first, which loads and compiles what it
needs.  MB are the peak of the process with its libraries and the pages of mapped files that it holds.  Fewer epochs
than 50 are named in the row; "at 50" is then what the whole would take at the same seconds an epoch.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from timing import processor

SIZES, EDGES_A_NODE, WHOLE = (100_000, 1_000_000, 10_000_000), 10, 50
CLASSES, DIMENSION, APPS, COLUMNS, HOMOPHILY = 8, 1_000, 20.0, 64, 0.7
#: People at whom a cell is done first, unmeasured.
SMALL = 2_000
#: People whose features are made at once.
PART = 1 << 19
Row = dict[str, Any]


@dataclass
class Clock:
    """CPU and wall seconds of a piece of work, and CPU seconds at the end of each epoch."""

    cpu: float = field(default_factory=time.process_time)
    wall: float = field(default_factory=time.perf_counter)
    epochs: list[float] = field(default_factory=list)

    def tick(self, _: Any) -> None:
        """Note that an epoch has ended."""
        self.epochs.append(time.process_time())

    def row(self) -> Row:
        """Return the seconds since the beginning, and those that the epochs take that were told of."""
        figures = {"cpu": time.process_time() - self.cpu, "wall": time.perf_counter() - self.wall}
        steps = np.diff(self.epochs)
        # Without the longest: between two networks there is more than an epoch.
        usual = float(steps.sum() - steps.max()) / (len(steps) - 1) if len(steps) > 1 else 0.0
        return figures | {"training": usual * len(self.epochs)}


def main() -> None:
    """Run the cells that have no row, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, required=True, help="where graphs and rows are kept")
    parser.add_argument("--nodes", type=int, nargs="*", default=list(SIZES), help="none: print the rows that there are")
    parser.add_argument("--methods", nargs="*", choices=CELLS, default=list(CELLS))
    parser.add_argument("--epochs", type=int, default=WHOLE)
    parser.add_argument("--most-gb", type=float, default=20.0)
    parser.add_argument("--cell", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.cell:
        print(json.dumps(measure(chosen.cell, chosen.nodes[0], chosen.folder, chosen.epochs)))
        return
    for nodes in (SMALL, *chosen.nodes) if chosen.nodes else ():
        measured = [] if nodes == SMALL else [method for method in CELLS if method in chosen.methods]
        needed = [maker for maker in MAKE if any(method in chosen.methods for method in READ_BY[maker])]
        for cell in [*needed, *measured]:
            file = row_file(chosen.folder, cell, nodes)
            if not file.exists():
                row = in_own_process(cell, nodes, chosen.folder, chosen.epochs, chosen.most_gb)
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(json.dumps(row))
                print(f"{cell} {nodes:,}: {json.dumps(row)}", file=sys.stderr, flush=True)
    show(chosen.folder, chosen.methods)


def row_file(folder: Path, cell: str, nodes: int) -> Path:
    """Where the row of a cell is kept."""
    return folder / "rows" / f"{cell}-{nodes}.json"


def in_own_process(cell: str, nodes: int, folder: Path, epochs: int, most_gb: float) -> Row:
    """Return the row of a cell, or why there is none."""
    command = [sys.executable, __file__, "--folder", str(folder), "--cell", cell, "--nodes", str(nodes)]
    start, peak = time.perf_counter(), 0.0
    with subprocess.Popen([*command, "--epochs", str(epochs)], stdout=subprocess.PIPE, text=True) as running:
        while running.poll() is None:
            resident = memory("VmRSS", running.pid)
            peak = max(peak, resident)
            if resident > 1000 * most_gb:
                running.send_signal(signal.SIGKILL)
            time.sleep(0.2)
        out = running.stdout.read() if running.stdout else ""
    if running.returncode == 0:
        return dict[str, Any](json.loads(out))
    why = f"ended above {most_gb:g} GB" if peak > 1000 * most_gb else f"failed with {running.returncode}"
    return {"nodes": nodes, "wall": time.perf_counter() - start, "peak": peak, "ended": why}


def measure(cell: str, nodes: int, folder: Path, epochs: int) -> Row:
    """Run one cell in this process."""
    import torch

    torch.set_num_threads(1)
    there = folder / str(nodes)
    there.mkdir(parents=True, exist_ok=True)
    if cell in CELLS:
        CELLS[cell](folder / str(SMALL), SMALL, 2)
    row = {**MAKE, **CELLS}[cell](there, nodes, epochs)
    return {"nodes": nodes, "edges": EDGES_A_NODE * nodes, "peak": memory("VmHWM"), "processor": processor()} | row


def memory(name: str, process: int | str = "self") -> float:
    """A line of a process's status, in MB (Linux); 0 where it has ended."""
    try:
        lines = Path(f"/proc/{process}/status").read_text().splitlines()
    except OSError:
        return 0.0
    return next((int(line.split()[1]) * 1024 / 1e6 for line in lines if line.startswith(name)), 0.0)


def work(begin: Callable[[Clock], Any]) -> tuple[Row, Any]:
    """Do a piece of work, and return what it took and what came out; the peak so far is forgotten."""
    Path("/proc/self/clear_refs").write_text("5")
    clock = Clock()
    state = begin(clock)
    return clock.row(), state


# ---- what is made once ----


def make_graph(folder: Path, nodes: int, epochs: int) -> Row:
    """Make people with labels and relationships, and keep them as arrays."""
    return work(lambda _: _save_people(folder, nodes, EDGES_A_NODE))[0]


def make_lists(folder: Path, nodes: int, epochs: int) -> Row:
    """Make people with two relationships each, whose noisy lists have three entries."""
    return work(lambda _: _save_people(folder / "lists", nodes, 2))[0] | {"edges": 2 * nodes}


def make_features(folder: Path, nodes: int, epochs: int) -> Row:
    """Make what people have installed."""
    return work(lambda _: _save_features(folder))[0]


def make_parquet(folder: Path, nodes: int, epochs: int) -> Row:
    """Write the graph as people would hand it in: a table of people, and a table of relationships."""
    return work(lambda _: _save_tables(folder, folder / "parquet", nodes))[0]


def _save_people(folder: Path, nodes: int, edges_a_node: int) -> None:
    from graphveil.graphs.named.social import social_edges
    from graphveil.graphs.value.edges import merge_edges

    folder.mkdir(exist_ok=True)
    rng = np.random.default_rng(0)
    labels = rng.integers(CLASSES, size=nodes, dtype=np.int16)
    np.save(folder / "labels.npy", labels.astype(np.int64))
    ends = social_edges(labels, CLASSES, nodes * edges_a_node, HOMOPHILY, rng)
    np.save(folder / "edges.npy", merge_edges(*ends, nodes, directed=False)[0])


def _save_features(folder: Path) -> None:
    parts = _apps(np.load(folder / "labels.npy"), np.random.default_rng(1))
    counts, columns = (np.concatenate(part) for part in zip(*parts, strict=True))
    np.save(folder / "columns.npy", columns)
    np.save(folder / "starts.npy", np.concatenate([[0], np.cumsum(counts)]).astype(np.int32))
    np.save(folder / "values.npy", np.ones(len(columns), np.float32))


def _apps(labels: np.ndarray, rng: np.random.Generator) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield how many apps people have and which, ascending: by popularity, half of them in their class's own order."""
    from graphveil.runtime.sorted_arrays import distinct

    orders = np.stack([rng.permutation(DIMENSION) for _ in range(CLASSES + 1)]).astype(np.int32)
    popular = np.cumsum(1.0 / np.arange(2, DIMENSION + 2) ** 0.8)
    for start in range(0, len(labels), PART):
        own = labels[start : start + PART]
        counts = 1 + rng.poisson(APPS - 1.0, len(own))
        people = np.repeat(np.arange(len(own), dtype=np.int64), counts)
        rank = np.searchsorted(popular, rng.random(len(people)) * popular[-1], side="right")
        whose = np.where(rng.random(len(people)) < 0.5, own[people], CLASSES)
        places = distinct(people * DIMENSION + orders[whose, np.minimum(rank, DIMENSION - 1)])
        yield np.bincount(places // DIMENSION, minlength=len(own)), (places % DIMENSION).astype(np.int32)


def _save_tables(state: Path, folder: Path, nodes: int) -> None:
    import polars

    folder.mkdir(exist_ok=True)
    rng = np.random.default_rng(1)
    classes = ", ".join(f'"{label}"' for label in range(CLASSES))
    tick = f'range = [0, 1]\nclasses = [{classes}]\nprivate = ["features", "labels"]\ndirected = false\n'
    (folder / "graph.toml").write_text(tick)
    features = {f"f{place}": rng.random(nodes, np.float32).round(3) for place in range(4)}
    labels = np.load(state / "labels.npy").astype(str)
    polars.DataFrame({"id": np.arange(nodes), **features, "label": labels}).write_parquet(folder / "nodes.parquet")
    source, target = _once(np.load(state / "edges.npy", mmap_mode="c"))
    polars.DataFrame({"source": source, "target": target}).write_parquet(folder / "edges.parquet")


def _once(edges: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The relationships, each with its lower end first, int32."""
    up = edges[0] < edges[1]
    return edges[0][up].astype(np.int32), edges[1][up].astype(np.int32)


# ---- what is measured ----


def opened(folder: Path, nodes: int) -> Any:
    """Return the graph that was made, on its memory maps."""
    import torch

    from graphveil.graphs import GraphSchema
    from graphveil.graphs.value.parts import GraphParts, SparseRows
    from graphveil.graphs.value.value import plain_graph

    mapped = {file.stem: np.load(file, mmap_mode="c") for file in folder.glob("*.npy")}
    if "values" in mapped:
        x: Any = SparseRows(mapped["values"], mapped["columns"], mapped["starts"], (nodes, DIMENSION))
    else:
        x = np.zeros((nodes, 1), np.float32)
    names = tuple(f"community {place}" for place in range(CLASSES))
    schema = GraphSchema(f"social-{nodes}", x.shape[1], 0.0, 1.0, names, source="made", private=("features", "labels"))
    with torch.sparse.check_sparse_tensor_invariants(enable=False):
        return plain_graph(GraphParts(x, mapped["edges"], mapped["labels"], schema))


def ingest(folder: Path, nodes: int, epochs: int) -> Row:
    """Read and describe a folder of parquet, as `data describe` does."""
    from graphveil import graphs

    return work(lambda _: graphs.describe(graphs.load_parts(folder / "parquet")))[0]


def hop(folder: Path, nodes: int, epochs: int) -> Row:
    """Do one private hop, the plain product beside it; the least of two."""
    import torch
    from torch.nn.functional import embedding_bag

    from graphveil.aggregation import PerturbedSum, ReceiverRows, unit_rows
    from graphveil.privacy import SecureRandomness

    edges = torch.from_numpy(np.load(folder / "edges.npy", mmap_mode="c"))
    built, rows = work(lambda _: ReceiverRows.of(edges, nodes))
    x = torch.randn(nodes, COLUMNS, generator=torch.Generator().manual_seed(0))
    hidden, few = PerturbedSum(sigmas=(2.0,)), ReceiverRows.of(edges[:, :0], 5)
    # The table of the noise is made once for all hops, and loops are compiled once for all runs.
    hidden.perturb(few, torch.ones(5, 1 << 20)[:, :COLUMNS], 1, SecureRandomness())

    def product(_: Clock) -> None:
        embedding_bag(rows.senders, x, rows.starts, mode="sum", include_last_offset=True)

    def noisy(_: Clock) -> None:
        sums = hidden.perturb(rows, x, 1, SecureRandomness())
        unit_rows(sums, out=sums.numpy())

    plain, ours = (min((work(each)[0] for _ in range(2)), key=_cpu) for each in (product, noisy))
    return {**ours, "plain": plain["cpu"], "ratio": ours["cpu"] / plain["cpu"], "rows": built["cpu"]}


def products(folder: Path, nodes: int, epochs: int) -> Row:
    """Multiply the matrix of the edges by 8 columns, ten times."""
    import torch

    from graphveil.aggregation import normalised

    matrix = normalised(torch.from_numpy(np.load(folder / "edges.npy", mmap_mode="c")), nodes)
    x = torch.ones(nodes, CLASSES)
    return work(lambda _: [matrix.forward.times(x) for _ in range(10)])[0]


def gap(folder: Path, nodes: int, epochs: int) -> Row:
    """Fit GAP, one relationship hidden at epsilon 4."""
    from graphveil.methods.curator.gap import GAP

    # No patience: the same number of epochs at each size.
    core = GAP(epsilon=4.0, delta=1e-10, unit="edge", epochs=epochs, patience=0)
    return _fitted(core, opened(folder, nodes), epochs)


def class_sums(folder: Path, nodes: int, epochs: int) -> Row:
    """Fit class-sums, one relationship hidden at epsilon 4."""
    from graphveil.methods.curator.class_sums import ClassSums

    return _fitted(ClassSums(epsilon=4.0, unit="edge", epochs=epochs), opened(folder, nodes), epochs)


def labels(folder: Path, nodes: int, epochs: int) -> Row:
    """Collect labels at epsilon 1 and spread them."""
    from graphveil.methods.local.label_propagation import LabelPropagation

    return _fitted(LabelPropagation(epsilon_y=1.0), opened(folder, nodes))


def lpgnn(folder: Path, nodes: int, epochs: int) -> Row:
    """Collect features and labels at epsilon 1 each and train on them."""
    from graphveil.methods.local.lpgnn import LPGNN

    core = LPGNN(epsilon_x=1.0, epsilon_y=1.0, steps_x=4, steps_y=2, epochs=epochs, patience=0)
    return _fitted(core, opened(folder, nodes), epochs)


def link_beliefs(folder: Path, nodes: int, epochs: int) -> Row:
    """Collect noisy lists of three entries a person, one of them false, and read them."""
    from graphveil.methods.links.link_beliefs import LinkBeliefs

    epsilon = math.log((nodes - 1) / 2 - 1)
    core = LinkBeliefs(epsilon_x=None, epsilon_a=epsilon, epsilon_y=1.0, reading="beliefs")
    return _fitted(core, opened(folder / "lists", nodes)) | {"edges": 2 * nodes}


def edge_rand(folder: Path, nodes: int, epochs: int) -> Row:
    """Release all relationships by randomized response, at the epsilon that makes three false ones for ten true."""
    import torch

    from graphveil.mechanisms import EdgeRand, PairDomain
    from graphveil.privacy import SecureRandomness

    domain = PairDomain(nodes)
    epsilon = math.log(domain.size / (0.3 * EDGES_A_NODE * nodes))
    pairs = torch.from_numpy(np.stack(_once(np.load(folder / "edges.npy", mmap_mode="c"))))
    release = EdgeRand(epsilon=epsilon, domain=domain)
    took, figures = work(lambda _: release.randomize(pairs, randomness=SecureRandomness()))
    return took | {"epsilon": epsilon, "released": figures.shape[1]}


def tree(folder: Path, nodes: int, epochs: int) -> Row:
    """Release a fifth of the relationships along a tree made of the others."""
    import torch

    from graphveil import hierarchy
    from graphveil.mechanisms import NoisyCounts
    from graphveil.privacy import SecureRandomness

    edges = np.stack(_once(np.load(folder / "edges.npy", mmap_mode="c")))
    private = np.random.default_rng(0).random(edges.shape[1]) < 0.2
    public, hidden, noise = edges[:, ~private], edges[:, private], NoisyCounts(epsilon=1.0)
    del edges, private
    marks: dict[str, float] = {}

    def release(clock: Clock) -> Any:
        figures = hierarchy.public_tree(nodes, public)
        marks["tree"] = time.process_time() - clock.cpu
        facts = hierarchy.pair_tree(figures, public=public)
        blocks = hierarchy.choose_blocks(facts, hierarchy.collapse_by_support(facts, 1.0))
        noisy = hierarchy.release_counts(
            blocks,
            hidden,
            noise=lambda counts: noise.randomize(torch.from_numpy(counts), randomness=SecureRandomness()).numpy(),
            share=hierarchy.informed_density(blocks, variance=noise.variance),
        )
        marks["blocks"] = time.process_time() - clock.cpu - marks["tree"]
        return hierarchy.sample_edges(blocks, noisy.density, np.random.default_rng(0))

    took, state = work(release)
    return took | marks | {"released": state.shape[1]}


def _fitted(core: Any, graph: Any, epochs: int | None = None) -> Row:
    """Collect and train; what both took."""
    from graphveil.graphs import random_split
    from graphveil.privacy import SecureRandomness

    split = random_split(graph, 0)

    def run(clock: Clock) -> None:
        collected = core.collect(graph, split=split, randomness=SecureRandomness())
        core.train(collected, randomness=SecureRandomness(), progress=clock.tick)

    took, _ = work(run)
    return took | ({} if epochs is None else {"epochs": epochs})


def _cpu(row: Row) -> float:
    return float(row["cpu"])


Cell = Callable[[Path, int, int], Row]
MAKE: dict[str, Cell] = {
    "graph": make_graph,
    "features": make_features,
    "lists": make_lists,
    "parquet": make_parquet,
}
CELLS: dict[str, Cell] = {
    "ingest": ingest,
    "hop": hop,
    "edge-rand": edge_rand,
    "class-sums": class_sums,
    "products": products,
    "labels": labels,
    "gap": gap,
    "link-beliefs": link_beliefs,
    "tree": tree,
    "lpgnn": lpgnn,
}
#: The cells that read what is made.
READ_BY: dict[str, list[str]] = {
    "graph": [name for name in CELLS if name != "link-beliefs"],
    "features": ["class-sums", "gap", "lpgnn"],
    "lists": ["link-beliefs"],
    "parquet": ["ingest"],
}


# ---- the table ----


def show(folder: Path, methods: list[str]) -> None:
    """Print the rows that there are, and the exponent of CPU seconds of each method."""
    print(f"{processor()}, one thread")
    print("| method | nodes | edges | CPU s | wall s | peak MB | exponent |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for method in methods:
        files = (folder / "rows").glob(f"{method}-[0-9]*.json")
        rows = sorted((dict[str, Any](json.loads(file.read_text())) for file in files), key=lambda row: row["nodes"])
        for row in rows:
            last = exponent(rows) if row is rows[-1] else ""
            print(f"| {named(method, row)} | {' | '.join(cells(row))} | {last} |")


def named(method: str, row: Row) -> str:
    """The method, with what is to be known of how it was run."""
    if "ratio" in row:
        return f"{method}: {row['ratio']:.2f} times the plain product ({row['plain']:.1f} s)"
    few = row.get("epochs", WHOLE)
    return method if few == WHOLE else f"{method}, {few} of {WHOLE} epochs"


def cells(row: Row) -> tuple[str, ...]:
    """Sizes, seconds and memory of a row, or why it has none."""
    size = f"{row['nodes']:,}", f"{row.get('edges', EDGES_A_NODE * row['nodes']):,}"
    seconds = row.get("ended") or f"{row['cpu']:,.1f}"
    if "ended" not in row and row.get("epochs", WHOLE) < WHOLE:
        seconds += f" (at {WHOLE}: {whole(row):,.0f})"
    return (*size, seconds, f"{row['wall']:,.1f}", f"{row['peak']:,.0f}")


def whole(row: Row) -> float:
    """CPU seconds with all epochs, where fewer were run: what training took, as often as it would be done."""
    return float(row["cpu"] + row.get("training", 0.0) * (WHOLE / row.get("epochs", WHOLE) - 1))


def exponent(rows: list[Row]) -> str:
    """The power of the nodes with which CPU seconds grow, from 10^5 on."""
    large = [row for row in rows if row["nodes"] >= SIZES[0] and "cpu" in row]
    if len(large) < 2:
        return ""
    sizes, seconds = np.log([row["nodes"] for row in large]), np.log([whole(row) for row in large])
    return f"{np.polyfit(sizes, seconds, 1)[0]:.2f}"


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    main()
