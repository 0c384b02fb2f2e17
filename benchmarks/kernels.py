"""What one sparse product costs by the kernels that plain torch and scipy carry, next to the one that we use.

    python benchmarks/kernels.py --data facebook        (or social-100000, cora, ...)

CPU time on one thread, wall time on a GPU (`--device cuda`); all take turns, and the least of `--repeats` counts.
"with gradient" is our product and the gradient of its input.  Also what the count of operations assumes: how many
multiply-adds of a dense product one multiply-add of the sparse kernel costs.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable

import torch

from graphveil.aggregation import normalised
from graphveil.graphs import load_graph
from timing import processor

WIDTHS = (4, 16, 32, 64)
OURS = "ours"
Program = Callable[[], object]


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
    where = processor() if chosen.device == "cpu" else torch.cuda.get_device_name(chosen.device)
    print(f"{where}, {chosen.data}: {p.shape[0]:,} nodes, {p.entries:,} entries; times ours, and ms of ours")
    print(f"{'columns':>8}" + "".join(f"{name:>16}" for name in kernels(p, p.shape[0], 4)) + f"{'dense ratio':>13}")
    for width in WIDTHS:
        times = in_turns(kernels(p, p.shape[0], width), chosen.repeats, chosen.device)
        mine = times.pop(OURS)
        cells = [f"{1e3 * mine:.2f} ms", *(f"{seconds / mine:.1f}" for seconds in times.values())]
        ratio = sparse_cost(mine, p.entries, width, chosen)
        print(f"{width:>8}" + "".join(f"{text:>16}" for text in cells) + f"{ratio:>13.1f}", flush=True)


def kernels(p: object, n: int, width: int) -> dict[str, Program]:
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

    def bags() -> torch.Tensor:
        weights = {"per_sample_weights": rows.values, "include_last_offset": True}
        return torch.nn.functional.embedding_bag(rows.indices, x, rows.starts, mode="sum", **weights)

    programs: dict[str, Program] = {
        OURS: lambda: rows.times(x),
        "embedding_bag": bags,
        "with gradient": lambda: (p @ leaf).backward(x),  # type: ignore[operator]
        "torch csr 32": lambda: narrow @ x,
        "torch csr 64": lambda: wide @ x,
        "gather+scatter": gather,
    }
    if device.type == "cpu":
        import scipy.sparse as sp

        csr = sp.csr_matrix((rows.values.numpy(), rows.indices.numpy(), rows.starts.numpy()), shape=(n, n))
        dense = x.numpy()
        programs["scipy csr"] = lambda: csr @ dense
    return programs


def sparse_cost(seconds: float, entries: int, width: int, chosen: argparse.Namespace) -> float:
    """Return the price of a sparse multiply-add in dense ones, measured against a 4,000 x 1,000 product."""
    left, right = torch.randn(4000, 1000, device=chosen.device), torch.randn(1000, width, device=chosen.device)
    dense = in_turns({"dense": lambda: left @ right}, chosen.repeats, chosen.device)["dense"]
    return seconds / (entries * width) / (dense / (4000 * 1000 * width))


def in_turns(programs: dict[str, Program], repeats: int, device: str) -> dict[str, float]:
    """Return the least seconds of each program, which take turns: CPU time on the CPU, wall time on a GPU."""
    rounds = [{name: seconds(run, device) for name, run in programs.items()} for _ in range(repeats + 1)]
    return {name: min(each[name] for each in rounds[1:]) for name in programs}


def seconds(run: Program, device: str) -> float:
    """Return the seconds of one run."""
    clock = time.process_time if device == "cpu" else time.perf_counter
    synchronise(device)
    start = clock()
    run()
    synchronise(device)
    return clock() - start


def synchronise(device: str) -> None:
    """Wait for a GPU."""
    if device != "cpu":
        torch.cuda.synchronize()


if __name__ == "__main__":
    main()
