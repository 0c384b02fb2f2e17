"""K hops of noisy sums beside the plain float product, in the same run: seconds, memory, and where the time goes.

    python benchmarks/perturbed.py --nodes 1000000 --edges 20000000 --columns 64

CPU seconds of one thread, the best of `--repeats`; noise from the secure source.  A hop of ours is rows to the grid,
exact sums, rounded normal noise, and rows scaled to length 1 for the next hop; the plain hop is the product alone.
"""

from __future__ import annotations

import argparse
import resource

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import embedding_bag

from graphveil.aggregation import PerturbedSum, ReceiverRows, quantise, unit_rows
from graphveil.mechanisms.samplers.rounded_normal import RoundedNormal
from graphveil.privacy import SecureRandomness
from timing import best


def main() -> None:
    """Time both and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=1_000_000)
    parser.add_argument("--edges", type=int, default=20_000_000)
    parser.add_argument("--columns", type=int, default=64)
    parser.add_argument("--sigma", type=float, default=2.0)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--weighted", action="store_true", help="weights up to 0.731 on the edges")
    chosen = parser.parse_args()
    torch.set_num_threads(1)
    rows = random_rows(chosen.nodes, chosen.edges, weighted=chosen.weighted)
    x = unit_rows(torch.randn(chosen.nodes, chosen.columns, generator=torch.Generator().manual_seed(0)))
    hidden = PerturbedSum(sigmas=(chosen.sigma,), w_max=rows.w_max)
    source, bits = SecureRandomness(), hidden.row_bits(rows.weight_bits)
    steps = chosen.sigma * 2.0 ** (bits + rows.weight_bits)
    noise, flat = RoundedNormal(steps, int(12 * steps)), x.clone().view(-1).numpy()
    noise.add_to(flat[:10], source)
    print(f"{chosen.nodes:,} nodes, {chosen.edges:,} edges, {chosen.columns} columns; noise of {steps:,.0f} grid steps")
    plain = best(lambda: product(rows, x), chosen.repeats)
    show("plain float product", plain, plain)
    show("noisy hop", best(lambda: unit_rows(hidden.perturb(rows, x, 1, source)), chosen.repeats), plain)
    grid = quantise(x, bits=bits)
    show("  rows to the grid", best(lambda: quantise(x, bits=bits), chosen.repeats), plain)
    show("  exact sums", best(lambda: rows.sums(grid), chosen.repeats), plain)
    drawn = best(lambda: noise.add_to(flat, source), chosen.repeats)
    show(f"  noise ({1e9 * drawn / flat.size:.1f} ns a draw)", drawn, plain)
    show("  rows to length 1", best(lambda: unit_rows(x), chosen.repeats), plain)
    print(f"peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:,.0f} MB")


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


def show(name: str, seconds: float, plain: float) -> None:
    """Print one line of the table."""
    print(f"{name:<34}{seconds:>8.2f} s{seconds / plain:>8.2f} x plain")


if __name__ == "__main__":
    main()
