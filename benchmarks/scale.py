"""Seconds and memory of LPGNN on made social networks of growing size, and the exponent of the growth.

    python benchmarks/scale.py --nodes 10000 100000 1000000

Each size runs in a process of its own: make the graph (average degree 20, 1,000 sparse features), randomize everybody's
features and label, train 50 epochs.  Cost should grow linearly: an exponent near 1.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time

import numpy as np

EPOCHS = 50
STEPS = {"steps_x": 4, "steps_y": 2}


def main() -> None:
    """Measure each size in a fresh process and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, nargs="*", default=[10_000, 100_000, 1_000_000])
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--one", type=int, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.one:
        print(json.dumps(measure(chosen.one, chosen.threads)))
        return
    rows = []
    columns = {"nodes": 10, "edges": 11, "make": 8, "randomize": 10, "train": 8, "cpu": 8, "memory": 8, "accuracy": 9}
    print("".join(f"{name:>{width}} " for name, width in columns.items()) + "(seconds, MB, %)")
    for nodes in chosen.nodes:
        command = [sys.executable, __file__, "--one", str(nodes), "--threads", str(chosen.threads)]
        row = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)
        rows.append(row)
        shown = {k: f"{v:,.2f}" if isinstance(v, float) else f"{v:,}" for k, v in row.items()}
        print("".join(f"{shown[name]:>{width}} " for name, width in columns.items()), flush=True)
    if len(rows) > 1:
        sizes, seconds = (
            np.log([row["nodes"] for row in rows]),
            np.log([row["train"] + row["randomize"] for row in rows]),
        )
        print(f"seconds grow as nodes^{np.polyfit(sizes, seconds, 1)[0]:.2f}")


def measure(nodes: int, threads: int) -> dict[str, float]:
    """Return the figures of one size."""
    import torch

    from graphveil.graphs import random_split, social_graph
    from graphveil.methods import LPGNN
    from graphveil.methods.base.released import topology_of
    from graphveil.methods.runs.experiment import peak_memory_mb
    from graphveil.privacy import SecureRandomness

    torch.set_num_threads(threads)
    start = time.perf_counter()
    graph = social_graph(nodes, average_degree=20, dimension=1000)
    made = time.perf_counter()
    method = LPGNN(epsilon_x=1.0, epsilon_y=1.0, epochs=EPOCHS, **STEPS)
    split = random_split(graph, 0)
    released = method.randomize(graph, split=split, randomness=SecureRandomness())
    sent = time.perf_counter()
    cpu = time.process_time()
    method.fit_reports(released, topology_of(graph))
    done = time.perf_counter()
    return {
        "nodes": nodes,
        "edges": graph.edge_index.shape[1] // 2,
        "make": made - start,
        "randomize": sent - made,
        "train": done - sent,
        "cpu": time.process_time() - cpu,
        "memory": peak_memory_mb(),
        "accuracy": 100 * method.score(graph, split.test),
    }


if __name__ == "__main__":
    main()
