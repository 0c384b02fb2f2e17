"""What the weights of messages are worth in GAP, at the same unit and price: attention beside those that read no edge.

    python benchmarks/weights.py --data facebook100-wisconsin87-2005-2009 --splits 10 --out weights.jsonl

One hop (all that attention has), unit "edge", delta 1e-7, splits 75/10/15, other settings the defaults; "attention,
0.8" gives four fifths of the budget to the sum instead of a half.  Epsilon inf is without noise.  Noise is seeded: this
is a benchmark.  Finished runs are skipped.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch

from gap import cell
from graphveil.graphs import load_graph, random_split
from graphveil.methods import GAP
from graphveil.privacy import SeededRandomness
from timing import processor

EPSILONS = (1.0, 2.0, 4.0, 8.0, math.inf)
FRACTIONS = (0.75, 0.10, 0.15)
KINDS: dict[str, dict[str, Any]] = {
    "uniform": {},
    "similarity": {"weights": "similarity"},
    "kernel": {"weights": "kernel"},
    "learned": {"weights": "learned"},
    "attention": {"weights": "attention"},
    "attention, 0.8": {"weights": "attention", "share_hops": 0.8},
}
Row = dict[str, Any]


def main() -> None:
    """Run what is missing and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default="facebook100-wisconsin87-2005-2009")
    parser.add_argument("--data-root", default=None)
    parser.add_argument("--splits", type=int, default=10)
    parser.add_argument("--out", type=Path, default=Path("weights.jsonl"))
    chosen = parser.parse_args()
    torch.set_num_threads(1)
    graph = load_graph(chosen.data, root=chosen.data_root)
    for split in range(chosen.splits):
        for name in KINDS:
            for epsilon in EPSILONS:
                fill(chosen.out, graph, {"data": chosen.data, "weights": name, "epsilon": str(epsilon), "split": split})
    print(f"{processor()}, one thread")
    table([row for row in rows(chosen.out) if row["data"] == chosen.data])


def fill(out: Path, graph: Any, key: Row) -> None:
    """Run one split of a cell unless --out holds it."""
    if any(all(row[k] == v for k, v in key.items()) for row in rows(out)):
        return
    epsilon, split = float(key["epsilon"]), random_split(graph, key["split"], FRACTIONS)
    start = time.process_time()
    method = GAP(epsilon=epsilon, delta=1e-7, unit="edge", hops=1, seed=key["split"], **KINDS[key["weights"]])
    method.fit(graph, split=split, randomness=SeededRandomness(1000 * key["split"] + int(10 * min(epsilon, 99))))
    accuracy = 100 * method.score(graph, split.test)
    with out.open("a") as file:
        file.write(json.dumps(key | {"accuracy": accuracy, "cpu_seconds": time.process_time() - start}) + "\n")


def rows(out: Path) -> list[Row]:
    """Return the finished runs."""
    return [json.loads(text) for text in out.read_text().splitlines()] if out.exists() else []


def table(results: list[Row]) -> None:
    """Print the mean and its 95% interval in every cell, and differences and cost next to uniform weights."""
    scores = {(row["weights"], row["epsilon"], row["split"]): row["accuracy"] for row in results}
    for name in KINDS:
        own = [row for row in results if row["weights"] == name]
        cells = []
        for epsilon in map(str, EPSILONS):
            splits = sorted(row["split"] for row in own if row["epsilon"] == epsilon)
            values = [scores[name, epsilon, split] for split in splits]
            paired = [(split, scores.get(("uniform", epsilon, split))) for split in splits]
            leads = [scores[name, epsilon, split] - other for split, other in paired if other is not None]
            cells.append(f"{cell(values)} ({cell(leads, '+')})")
        seconds = np.mean([row["cpu_seconds"] for row in own])
        plain = np.mean([row["cpu_seconds"] for row in results if row["weights"] == "uniform"])
        print(f"| {name} | " + " | ".join(cells) + f" | {seconds / plain:.1f} ({seconds:.1f} s) |")


if __name__ == "__main__":
    main()
