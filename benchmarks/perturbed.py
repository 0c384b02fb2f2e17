"""A private hop beside the plain float product, at several sizes in the same run: seconds, parts, and how they grow.

    python benchmarks/perturbed.py --nodes 100000 1000000 --degree 10 --columns 64 --threads 1

CPU seconds of one thread, or seconds by the clock of several; all take turns. Each line has the median of `--repeats`,
and of its ratios to the quicker plain product of its turn, by torch's `embedding_bag` or our own. Noise is from the
secure source. A hop is rows to the grid, exact sums, rounded normal noise, and rows scaled to length 1: one by itself,
and one of three in a row, each in memory of the caller's and in fresh memory. Products of fewer columns stand beside
the plain one as well. The last lines are exponents: the power of the nodes with which seconds grow.
"""

from __future__ import annotations

import argparse
import math
import resource
import time
from collections.abc import Callable
from statistics import median

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import embedding_bag

from graphveil.aggregation import PerturbedSum, ReceiverRows, propagate_privately, quantise, unit_rows
from graphveil.aggregation.perturbed import NoisyHops
from graphveil.aggregation.sparse import Rows
from graphveil.engine import LOCAL, Blocks
from graphveil.mechanisms.samplers.rounded_normal import RoundedNormal
from graphveil.privacy import SecureRandomness
from timing import processor

#: Columns of a product of labels, and of one of an epoch.
NARROW = (8, 16)
HOPS = 3
Works = dict[str, Callable[[], object]]


def main() -> None:
    """Time all at each size and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, nargs="+", default=[1_000_000])
    parser.add_argument("--degree", type=int, default=10, help="edges a node")
    parser.add_argument("--columns", type=int, default=64)
    parser.add_argument("--sigma", type=float, default=2.0)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--weighted", action="store_true", help="weights up to 0.731 on the edges")
    chosen = parser.parse_args()
    torch.set_num_threads(chosen.threads)
    print(f"{processor()}; threads: {chosen.threads}; {chosen.degree} edges a node, {chosen.columns} columns")
    sizes = []
    for nodes in chosen.nodes:
        rows = random_rows(nodes, nodes * chosen.degree, weighted=chosen.weighted)
        seconds = in_turns(works(rows, chosen.columns, chosen.sigma), chosen.repeats)
        show(nodes, seconds, [f"plain, {chosen.columns} columns", f"ours, {chosen.columns} columns"])
        sizes.append({name: median(each) for name, each in seconds.items()})
    print(f"peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:,.0f} MB")
    for name in sizes[0] if len(sizes) > 1 else ():
        growth = np.polyfit(np.log(chosen.nodes), [math.log(each[name]) for each in sizes], 1)[0]
        print(f"{name:<34}{growth:>8.2f} exponent")


def works(rows: ReceiverRows, columns: int, sigma: float) -> Works:
    """Return the pieces of work by name, a hop's parts after it."""
    nodes, source = rows.num_nodes, SecureRandomness()
    x = torch.randn(nodes, columns, generator=torch.Generator().manual_seed(0))
    once, several = (PerturbedSum(sigmas=(sigma,) * hops, w_max=rows.w_max) for hops in (1, HOPS))
    bits = once.row_bits(rows.weight_bits)
    steps = sigma * 2.0 ** (bits + rows.weight_bits)
    noise, rooms = RoundedNormal(steps, math.ceil(12 * steps)), [np.zeros_like(x.numpy()) for _ in range(HOPS + 1)]
    grid, out, sums = quantise(x, bits=bits, narrow=True), rooms[-1], torch.from_numpy(rooms[-1])
    return {
        **products(rows, x),
        "hop, memory of the caller's": lambda: NoisyHops(once, rows, source, LOCAL).perturb(x, 1, out, normalise=True),
        "hop, fresh memory": lambda: NoisyHops(once, rows, source, LOCAL).perturb(x, 1, None, normalise=True),
        "three hops, memory of the caller's": lambda: propagate_privately(several, rows, x, source, out=rooms),
        "three hops, fresh memory": lambda: propagate_privately(several, rows, x, source),
        "  rows to the grid": lambda: quantise(x, bits=bits, narrow=True, over=grid),
        "  exact sums": lambda: [rows.sums(grid, part.rows, out=sums[part.rows]) for part in Blocks.of(nodes, columns)],
        "  noise": lambda: noise.add_to(out.reshape(-1), source),
        "  rows to length 1": lambda: unit_rows(sums, out=out),
        **{name: work for width in NARROW for name, work in products(rows, x[:, :width].contiguous()).items()},
    }


def products(rows: ReceiverRows, x: Tensor) -> Works:
    """Return what a hop costs without privacy: torch's product of rows x, and ours."""
    weights = torch.ones(rows.senders.numel()) if rows.weights is None else rows.weights
    ours = Rows(rows.starts, rows.senders, weights)
    return {
        f"plain, {x.shape[1]} columns": lambda: product(rows, x),
        f"ours, {x.shape[1]} columns": lambda: ours.times(x),
    }


def in_turns(works: Works, repeats: int) -> dict[str, list[float]]:
    """Return the seconds of each work in each turn but the first; of three hops, those of one."""
    clock = time.process_time if torch.get_num_threads() == 1 else time.perf_counter
    seconds: dict[str, list[float]] = {name: [] for name in works}
    for turn in range(repeats + 1):
        for name, work in works.items():
            start = clock()
            work()
            if turn:
                seconds[name].append((clock() - start) / (HOPS if name.startswith("three") else 1))
    return seconds


def random_rows(nodes: int, edges: int, *, weighted: bool) -> ReceiverRows:
    """Return `edges` random entries, not built through `ReceiverRows.of` to keep the peak of memory to the hops."""
    generator = np.random.default_rng(0)
    counts = generator.multinomial(edges, np.full(nodes, 1 / nodes))
    starts = torch.from_numpy(np.concatenate([[0], np.cumsum(counts)]).astype(np.int32))
    senders = torch.from_numpy(generator.integers(0, nodes, edges, dtype=np.int32))
    if not weighted:
        return ReceiverRows(starts, senders)
    weights = torch.from_numpy(generator.integers(34, 94, edges).astype(np.float32))
    return ReceiverRows(starts, senders, weights, 93, 7)


def product(rows: ReceiverRows, x: Tensor) -> Tensor:
    """Return what a hop costs without privacy."""
    return embedding_bag(
        rows.senders, x, rows.starts, mode="sum", per_sample_weights=rows.weights, include_last_offset=True
    )


def show(nodes: int, seconds: dict[str, list[float]], plain: list[str]) -> None:
    """Print the table of a size."""
    least = [min(turn) for turn in zip(*(seconds[name] for name in plain), strict=True)]
    print(f"{nodes:,} nodes")
    for name, each in seconds.items():
        ratio = median(mine / theirs for mine, theirs in zip(each, least, strict=True))
        print(f"{name:<34}{median(each):>9.3f} s{ratio:>8.2f} x plain")


if __name__ == "__main__":
    main()
