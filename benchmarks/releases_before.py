"""How many times fewer CPU seconds EdgeRand and LapGraph take than the way they were made before, in one run.

    python benchmarks/releases_before.py [--nodes 1000000] [--edges 10000000] [--epsilon 12] [--repeats 3]

Before: distinct edges by a hash table (`np.unique` of NumPy 2.3 and later), stable sorts, one stream of noise and no
blocks, and a threshold of LapGraph that counted no true edges. Each way runs `--repeats` times, in turns; the least CPU
seconds count. Absolute seconds are those of the CPU that is named; the ratio is what to quote.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable

import numpy as np
import torch

from graphveil.mechanisms import EdgeRand, LapGraph, PairDomain
from graphveil.mechanisms.edges.edge_sampling import bernoulli_places, draw_unflipped, false_places
from graphveil.mechanisms.edges.noisy_top_k import MARGIN, Cells, threshold_for, top_k
from graphveil.mechanisms.samplers.geometric import geometric_by_ratio, two_sided
from graphveil.privacy import Randomness, SecureRandomness
from graphveil.runtime.sorted_arrays import contains
from timing import in_turns, processor


def edge_rand_before(mechanism: EdgeRand, pairs: torch.Tensor, randomness: Randomness) -> torch.Tensor:
    """EdgeRand in one piece."""
    domain = mechanism.domain
    true = np.unique(domain.rank(pairs).numpy())
    parts = [true[draw_unflipped(len(true), mechanism.threshold, randomness)]]
    for *_, false in false_places(domain.size, mechanism.threshold, randomness):
        parts.append(false[~contains(true, false)])
    return domain.unrank(np.sort(np.concatenate(parts), kind="stable"))


def lap_graph_before(mechanism: LapGraph, pairs: torch.Tensor, randomness: Randomness) -> torch.Tensor:
    """LapGraph for one threshold, which as many cells without an edge pass as are wanted."""
    domain, share = mechanism.domain, mechanism.count_share * mechanism.epsilon
    true, size, noise = np.unique(domain.rank(pairs).numpy()), domain.size, two_sided(mechanism.epsilon - share)
    wanted = len(true) + int(two_sided(share).draw(1, randomness)[0])
    values, cells = 1 + noise.draw(len(true), randomness), Cells(noise, None)
    threshold = threshold_for(wanted + MARGIN[0] * math.sqrt(wanted) + MARGIN[1], size, 0, noise)
    chance = cells.chance(threshold)
    gaps = geometric_by_ratio(1 - chance, size - len(true))
    places_of = [places for *_, places in bernoulli_places(size - len(true), gaps, float(chance), randomness)]
    zeros = np.concatenate(places_of)
    zeros += np.searchsorted(true - np.arange(len(true)), zeros, side="right")
    above = cells.passes(values, threshold, randomness)
    levels = np.concatenate([values[above], cells.values(len(zeros), threshold, randomness)])
    chosen = np.concatenate([true[above], zeros])[top_k(levels, wanted, randomness)]
    return domain.unrank(np.sort(chosen, kind="stable"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=1_000_000)
    parser.add_argument("--edges", type=int, default=10_000_000)
    parser.add_argument("--epsilon", type=float, default=12.0)
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    torch.set_num_threads(1)
    ends = np.sort(np.random.default_rng(0).integers(0, options.nodes, (2, options.edges)), axis=0)
    pairs, domain = torch.from_numpy(ends[:, ends[0] != ends[1]]), PairDomain(options.nodes)
    edge_rand = EdgeRand(epsilon=options.epsilon, domain=domain)
    lap_graph = LapGraph(epsilon=options.epsilon, domain=domain)
    secure = SecureRandomness()
    ways: dict[str, tuple[Callable[[], torch.Tensor], Callable[[], torch.Tensor]]] = {
        "edge-rand": (
            lambda: edge_rand_before(edge_rand, pairs, secure),
            lambda: edge_rand.randomize(pairs, randomness=secure),
        ),
        "lap-graph": (
            lambda: lap_graph_before(lap_graph, pairs, secure),
            lambda: lap_graph.randomize(pairs, randomness=secure),
        ),
    }
    print(f"{processor()}: {options.nodes:,} nodes, {pairs.shape[1]:,} edges, epsilon {options.epsilon:g}", flush=True)
    print("| release | before, CPU s | now, CPU s | times fewer |")
    print("| --- | --- | --- | --- |")
    for name, both in ways.items():
        before, now = in_turns(*both, repeats=options.repeats)
        print(f"| {name} | {before:.2f} | {now:.2f} | {before / now:.1f} |", flush=True)


if __name__ == "__main__":
    main()
