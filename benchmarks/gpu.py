"""A GPU beside the CPU, in one command: words of noise, a private hop beside the plain product, private and plain steps
of a training, an epoch of LPGNN and of GAP for nodes.

    python benchmarks/gpu.py [--nodes 10000000] [--edges 100000000] [--columns 64] [--repeats 3]

Prints one JSON object a line, each with the device it was taken on. Without a GPU it stops before it makes anything.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from functools import partial
from itertools import product
from typing import Any

import torch
from graphveil.privacy.source.aes_words import KeyStreams

import dp_sgd
from graphveil.aggregation import PerturbedSum, ReceiverRows
from graphveil.graphs import social_graph
from graphveil.methods import GAP, LPGNN
from graphveil.privacy import BlockNoise, SecureRandomness
from timing import processor

#: Numbers of 32 bits of a key, and keys at once.
NUMBERS, KEYS = 1 << 18, 16
EPOCHS = 50
#: Steps of a training that are timed together, and their network.
STEPS, LAYERS, BATCH = 200, [1433, 64, 64, 7], 256


def seconds(work: Callable[[], object], repeats: int) -> float:
    """Return the least wall seconds of some runs after a first one, until the device has finished."""
    times = []
    for _ in range(repeats + 1):
        torch.cuda.synchronize()
        start = time.perf_counter()
        work()
        torch.cuda.synchronize()
        times.append(time.perf_counter() - start)
    return min(times[1:])


def report(**facts: object) -> None:
    """Print one line."""
    print(json.dumps({"device": torch.cuda.get_device_name(), "processor": processor(), **facts}), flush=True)


def words(repeats: int) -> None:
    """Time the cipher alone."""
    streams = KeyStreams.of(list(BlockNoise(SecureRandomness()).keys(KEYS)), "cuda")
    took = seconds(lambda: streams.numbers(0, NUMBERS), repeats)
    report(what="words of noise", numbers_per_second=KEYS * NUMBERS / took)


def hop(nodes: int, edges: int, columns: int, repeats: int) -> None:
    """Time a private hop, and the sums of the same rows over the same edges without grid and noise."""
    drawn = torch.Generator().manual_seed(0)
    rows = ReceiverRows.of(torch.randint(0, nodes, (2, edges), generator=drawn), nodes).to("cuda")
    x = torch.randn(nodes, columns, device="cuda")
    perturbed = PerturbedSum(unit="edge", sigmas=(8.0,))
    torch.cuda.reset_peak_memory_stats()
    private = seconds(lambda: perturbed.perturb(rows, x, 1, SecureRandomness()), repeats)
    peak = torch.cuda.max_memory_allocated()

    def plain() -> object:
        return torch.nn.functional.embedding_bag(rows.senders, x, rows.starts, mode="sum", include_last_offset=True)

    summed = seconds(plain, repeats)
    facts = {"nodes": nodes, "entries": rows.senders.numel(), "columns": columns, "peak_gib": peak / 2**30}
    report(what="private hop", **facts, seconds=private, plain_product=summed, ratio=private / summed)


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
    methods: dict[str, Callable[..., Any]] = {
        "lpgnn": lambda epochs, device: LPGNN(epsilon_x=2.0, epsilon_y=1.0, epochs=epochs, device=device),
        "gap for nodes": lambda epochs, device: GAP(
            epsilon=8.0, unit="node", degree_bound=20, batch=nodes // 100, passes=epochs, device=device
        ),
    }

    def fit(name: str, epochs: int, device: str) -> None:
        methods[name](epochs, device).fit(graph, randomness=SecureRandomness())

    for name, device in product(methods, ("cuda", "cpu")):
        few, many = (seconds(partial(fit, name, epochs, device), repeats) for epochs in (1, 1 + EPOCHS))
        report(what=f"epoch of {name}", nodes=nodes, trained_on=device, seconds=(many - few) / EPOCHS)


def main() -> None:
    """Measure, or refuse."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, default in (("nodes", 10**7), ("edges", 10**8), ("columns", 64), ("repeats", 3), ("people", 10**5)):
        parser.add_argument(f"--{name}", type=int, default=default)
    args = parser.parse_args()
    if not torch.cuda.is_available():
        parser.error("no GPU: torch finds no CUDA device, and nothing here is measured on a CPU in its place")
    words(args.repeats)
    hop(args.nodes, args.edges, args.columns, args.repeats)
    step(args.repeats)
    epoch(args.people, args.repeats)


if __name__ == "__main__":
    main()
