"""Seconds of one sparse product (and its gradient) by the kernels that plain torch, scipy and PyG wheels carry.

    python benchmarks/kernels.py --data facebook        (or social-100000, cora, ...)

CPU milliseconds on one thread, best of `--repeats`; wall milliseconds on a GPU (`--device cuda`).  Also what the count
of operations assumes: how many multiply-adds of a dense product one multiply-add of the sparse kernel costs.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable

import torch

from graphveil.aggregation import normalised
from graphveil.graphs import load_graph

WIDTHS = (4, 16, 32, 64)


def main() -> None:
    """Time every kernel at every width and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default="social-20000")
    parser.add_argument("--data-root", default=None)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--repeats", type=int, default=15)
    chosen = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    graph = load_graph(chosen.data, root=chosen.data_root)
    p = normalised(graph.edge_index, graph.num_nodes).to(chosen.device)
    print(f"{chosen.data}: {p.shape[0]:,} nodes, {p.entries:,} entries, {chosen.device}; ms of one product")
    print(f"{'columns':>8}" + "".join(f"{name:>16}" for name in kernels(p, p.shape[0], 4)) + f"{'dense ratio':>13}")
    for width in WIDTHS:
        times = {k: best(run, chosen.repeats, chosen.device) for k, run in kernels(p, p.shape[0], width).items()}
        ratio = sparse_cost(times["embedding_bag"], p.entries, width, chosen)
        print(f"{width:>8}" + "".join(f"{1e3 * seconds:>16.2f}" for seconds in times.values()) + f"{ratio:>13.1f}")


def kernels(p: object, n: int, width: int) -> dict[str, Callable[[], object]]:
    """Return each kernel as a function that makes one product with `width` columns."""
    rows = p.forward  # type: ignore[attr-defined]
    device = rows.values.device
    x = torch.randn(n, width, device=device)
    leaf = torch.randn(n, width, device=device, requires_grad=True)
    narrow = torch.sparse_csr_tensor(rows.starts, rows.indices, rows.values, (n, n))
    wide = torch.sparse_csr_tensor(rows.starts.long(), rows.indices.long(), rows.values, (n, n))
    target = torch.repeat_interleave(torch.arange(n, device=device), torch.diff(rows.starts.long()))
    source = rows.indices.long()

    def gather() -> torch.Tensor:
        return torch.zeros_like(x).index_add_(0, target, x[source] * rows.values[:, None])

    found: dict[str, Callable[[], object]] = {
        "embedding_bag": lambda: rows.times(x),
        "with gradient": lambda: (p @ leaf).backward(x),  # type: ignore[operator]
        "torch csr 32": lambda: narrow @ x,
        "torch csr 64": lambda: wide @ x,
        "gather+scatter": gather,
    }
    if device.type == "cpu":
        import scipy.sparse as sp

        csr = sp.csr_matrix((rows.values.numpy(), rows.indices.numpy(), rows.starts.numpy()), shape=(n, n))
        dense = x.numpy()
        found["scipy csr"] = lambda: csr @ dense
    return found


def sparse_cost(seconds: float, entries: int, width: int, chosen: argparse.Namespace) -> float:
    """Return the price of a sparse multiply-add in dense ones, measured against a 4,000 x 1,000 product."""
    left, right = torch.randn(4000, 1000, device=chosen.device), torch.randn(1000, width, device=chosen.device)
    dense = best(lambda: left @ right, chosen.repeats, chosen.device) / (4000 * 1000 * width)
    return seconds / (entries * width) / dense


def best(run: Callable[[], object], repeats: int, device: str) -> float:
    """Return the least seconds of a run: CPU time on the CPU, wall time on a GPU."""
    clock = time.process_time if device == "cpu" else time.perf_counter
    run()
    seconds = []
    for _ in range(repeats):
        synchronise(device)
        start = clock()
        run()
        synchronise(device)
        seconds.append(clock() - start)
    return min(seconds)


def synchronise(device: str) -> None:
    """Wait for a GPU."""
    if device != "cpu":
        torch.cuda.synchronize()


if __name__ == "__main__":
    main()
