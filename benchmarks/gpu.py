"""A GPU beside the CPU, in one command of about ten minutes: words of noise, a private hop beside the plain product,
private and plain steps of a training, an epoch, and whole fits beside all cores.

    python benchmarks/gpu.py [--nodes 10000000] [--edges 100000000] [--columns 64] [--repeats 5] [--profile FOLDER]

Prints one JSON object a line, each with the device it was taken on; seconds are medians. Without a GPU it stops before
it makes anything. With a folder, each fit is profiled once more, and its trace is kept there.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import torch

import dp_sgd
from graphveil.aggregation import PerturbedSum, ReceiverRows
from graphveil.graphs import Graph, social_graph
from graphveil.methods import GAP, LPGNN, ClassSums, LabelPropagation, Links, NodeSums
from graphveil.privacy import BlockNoise, SecureRandomness
from timing import processor

#: Numbers of 32 bits of a key, and keys at once.
NUMBERS, KEYS = 1 << 22, 64
EPOCHS = 50
#: Steps of a training that are timed together, and their network.
STEPS, LAYERS, BATCH = 200, [1433, 64, 64, 7], 256
FITS: dict[str, Callable[[str], Any]] = {
    "gap": lambda device: GAP(epsilon=4.0, device=device),
    "class-sums": lambda device: ClassSums(epsilon=4.0, device=device),
    "label-pool": lambda device: LabelPropagation(epsilon_y=2.0, rule="pool", device=device),
    "lpgnn": lambda device: LPGNN(epsilon_x=2.0, epsilon_y=2.0, epochs=100, device=device),
    "node-sums": lambda device: NodeSums(epsilon=8.0, degree_bound=20, device=device),
    "links": lambda device: Links(epsilon_x=2.0, epsilon_a=4.0, epsilon_y=2.0, device=device),
}


def seconds(work: Callable[[], object], repeats: int) -> float:
    """Return the median wall seconds of some runs after a first one, until the device has finished."""
    times = []
    for _ in range(repeats + 1):
        torch.cuda.synchronize()
        start = time.perf_counter()
        work()
        torch.cuda.synchronize()
        times.append(time.perf_counter() - start)
    return statistics.median(times[1:])


def report(**facts: object) -> None:
    """Print one line."""
    print(json.dumps({"device": torch.cuda.get_device_name(), "processor": processor(), **facts}), flush=True)


def words(repeats: int) -> None:
    """Time the cipher alone."""
    from graphveil.privacy.source.chacha_kernel import cipher_numbers, keys_on

    keys = keys_on(BlockNoise(SecureRandomness()).keys(KEYS), "cuda")
    took = seconds(lambda: cipher_numbers(keys, 0, 0, NUMBERS), repeats)
    report(what="words of noise", numbers_per_second=KEYS * NUMBERS / took)


def hop(nodes: int, edges: int, columns: int, repeats: int, *, weighted: bool) -> None:
    """Time a private hop, and the sums of the same rows over the same edges without grid and noise."""
    drawn = torch.Generator().manual_seed(0)
    pairs = torch.randint(0, nodes, (2, edges), generator=drawn)
    weights = torch.rand(edges, generator=drawn) if weighted else None
    rows = ReceiverRows.of(pairs, nodes, weights=weights).to("cuda")
    x = torch.randn(nodes, columns, device="cuda")
    perturbed = PerturbedSum(unit="edge", sigmas=(8.0,))
    torch.cuda.reset_peak_memory_stats()
    private = seconds(lambda: perturbed.perturb(rows, x, 1, SecureRandomness()), repeats)
    peak, rows_and_sums = torch.cuda.max_memory_allocated(), 2 * x.numel() * 4
    matrix = torch.sparse_csr_tensor(rows.starts, rows.senders, torch.ones(rows.senders.numel(), device="cuda"))

    def plain() -> object:
        return torch.nn.functional.embedding_bag(rows.senders, x, rows.starts, mode="sum", include_last_offset=True)

    summed = min(seconds(plain, repeats), seconds(lambda: matrix @ x, repeats))
    facts = {"nodes": nodes, "entries": rows.senders.numel(), "columns": columns, "weighted": weighted}
    memory = {"peak_gib": peak / 2**30, "peak_by_rows_and_sums": peak / rows_and_sums}
    report(what="private hop", **facts, **memory, seconds=private, plain_product=summed, ratio=private / summed)


def step(repeats: int) -> None:
    """Time a step of private training beside a plain one of the same network."""
    chosen = argparse.Namespace(layers=LAYERS, batch=BATCH, noise=1.0)
    x, y = torch.randn(10 * BATCH, LAYERS[0]), torch.randint(0, LAYERS[-1], (10 * BATCH,))
    for device in ("cuda", "cpu"):
        took = []
        for maker in (dp_sgd.private, dp_sgd.plain):
            program = maker(chosen, x.to(device), y.to(device))
            took.append(seconds(partial(several, program), repeats) / STEPS)
        private, plain = took
        report(what="step", trained_on=device, seconds=private, plain_step=plain, ratio=private / plain)


def several(program: Callable[[], object]) -> None:
    """Take some steps."""
    for _ in range(STEPS):
        program()


def epoch(nodes: int, repeats: int) -> None:
    """Time an epoch: the difference of two trainings, so that what comes before an epoch drops out."""
    graph = social_graph(nodes, average_degree=20, dimension=200, classes=8, seed=1)

    def fit(epochs: int, device: str) -> None:
        method = LPGNN(epsilon_x=2.0, epsilon_y=1.0, epochs=epochs, device=device)
        method.fit(graph, randomness=SecureRandomness())

    for device in ("cuda", "cpu"):
        few, many = (seconds(partial(fit, epochs, device), repeats) for epochs in (1, 1 + EPOCHS))
        report(what="epoch of lpgnn", nodes=nodes, trained_on=device, seconds=(many - few) / EPOCHS)


def fit_once(name: str, device: str, graph: Graph) -> None:
    """Fit a method as a user does."""
    FITS[name](device).fit(graph, randomness=SecureRandomness())


def fits(nodes: int, repeats: int, traces: Path | None) -> None:
    """Time whole fits on a graph of ten relationships a person, on the GPU and by all cores."""
    graph = social_graph(nodes, average_degree=20, dimension=200, classes=8, seed=1)
    took: dict[tuple[str, str], float] = {}
    for name, device in product(FITS, ("cuda", "cpu")):
        took[name, device] = seconds(partial(fit_once, name, device, graph), repeats if device == "cuda" else 1)
    for name in FITS:
        gpu, cpu = took[name, "cuda"], took[name, "cpu"]
        report(
            what=f"fit of {name}",
            nodes=nodes,
            seconds=gpu,
            by_the_cpu=cpu,
            cores=torch.get_num_threads(),
            ratio=cpu / gpu,
        )
        if traces is not None:
            with torch.profiler.profile() as profiled:
                fit_once(name, "cuda", graph)
            profiled.export_chrome_trace(str(traces / f"{name}.json"))


def main() -> None:
    """Measure, or refuse."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    sizes = (("nodes", 10**7), ("edges", 10**8), ("columns", 64), ("repeats", 5), ("people", 200_000))
    for name, default in sizes:
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--profile", type=Path)
    args = parser.parse_args()
    if not torch.cuda.is_available():
        parser.error("no GPU: torch finds no CUDA device, and nothing here is measured on a CPU in its place")
    words(args.repeats)
    for weighted in (False, True):
        hop(args.nodes, args.edges, args.columns, args.repeats, weighted=weighted)
    step(args.repeats)
    epoch(args.people // 10, args.repeats)
    fits(args.people, 3, args.profile)


if __name__ == "__main__":
    main()
