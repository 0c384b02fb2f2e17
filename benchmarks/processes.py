"""Does training on propagated rows gain by two processes of one thread, where it could have one process of two?

    python benchmarks/processes.py [--rows 300000] [--batch 8192]

GAP's classifier on a mapped array of rows [n, 3 * 64].  Processes share gradients by gloo, as under `torchrun`, and
each reads its half of the rows.  CPU seconds of all processes and wall seconds of an epoch, all in turns, the least of
`--repeats`, over those of one process with one thread.  Wall seconds say something on an idle machine alone.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from pathlib import Path

import numpy as np
import torch
import torch.distributed as dist
import torch.multiprocessing as mp

from graphveil.engine import Mapped, create
from graphveil.models import HopClassifier
from graphveil.training.head_loss import head_loss
from graphveil.training.loop import Adam
from timing import processor

WIDTHS, HIDDEN, CLASSES = (64, 64, 64), 64, 10
#: Processes and threads of each.
WAYS = {"one thread": (1, 1), "two threads": (1, 2), "two processes": (2, 1)}


def main() -> None:
    """Time an epoch in each way and print the ratios."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=300_000)
    parser.add_argument("--batch", type=int, default=0, help="rows of a step in all; 0: every row")
    parser.add_argument("--repeats", type=int, default=3)
    chosen = parser.parse_args()
    # Else a thread that waits for another spins, and costs what it waits.
    os.environ["OMP_WAIT_POLICY"] = "PASSIVE"
    with tempfile.TemporaryDirectory() as folder:
        create(Path(folder) / "rows.npy", (chosen.rows, sum(WIDTHS)), np.float32)[:] = 0.1
        least = dict.fromkeys(WAYS, (np.inf, np.inf))
        for _ in range(chosen.repeats):
            for name, (world, threads) in WAYS.items():
                seconds = np.minimum(least[name], run(Path(folder), world, threads, chosen.batch))
                least[name] = float(seconds[0]), float(seconds[1])
    cpu, wall = least["one thread"]
    print(f"{processor()}, {chosen.rows:,} rows, batch {chosen.batch or chosen.rows:,}; load {os.getloadavg()[0]:.1f}")
    for name, (theirs, waited) in least.items():
        print(f"{name:>14}: CPU {theirs:6.2f} s ({theirs / cpu:.2f}), wall {waited:6.2f} s ({waited / wall:.2f})")


def run(folder: Path, world: int, threads: int, batch: int) -> tuple[float, float]:
    """Return CPU seconds of all processes, and wall seconds, of an epoch after the first."""
    os.environ["OMP_NUM_THREADS"] = str(threads)
    (folder / "meeting").unlink(missing_ok=True)
    mp.spawn(train, (world, threads, batch, folder), nprocs=world)  # type: ignore[attr-defined]
    cpu, wall = zip(*(np.load(folder / f"{rank}.npy") for rank in range(world)), strict=True)
    return float(sum(cpu)), float(max(wall))


def train(rank: int, world: int, threads: int, batch: int, folder: Path) -> None:
    """Train two epochs on a share of the rows, and leave the seconds of the second in a file."""
    torch.set_num_threads(threads)
    dist.init_process_group("gloo", f"file://{folder}/meeting", rank=rank, world_size=world)
    rows = Mapped(folder / "rows.npy").open()[rank::world]
    y = torch.from_numpy(np.random.default_rng(1).integers(0, CLASSES, len(rows)))
    net = HopClassifier(WIDTHS, HIDDEN, CLASSES, batch_norm=False)
    optimiser = Adam(net.parameters(), learning_rate=0.01)
    seconds = (0.0, 0.0)
    for epoch in range(2):
        dist.barrier()
        cpu, wall = time.process_time(), time.perf_counter()
        order = np.random.default_rng((epoch, rank)).permutation(len(rows))
        for part in np.array_split(order, max(1, len(rows) * world // (batch or len(rows) * world))):
            # In the order of the file, as a mapped array is read best.
            step(net, optimiser, rows, y, np.sort(part), world)
        seconds = time.process_time() - cpu, time.perf_counter() - wall
    np.save(folder / f"{rank}.npy", seconds)
    dist.destroy_process_group()


def step(net: HopClassifier, optimiser: Adam, rows: np.ndarray, y: torch.Tensor, part: np.ndarray, world: int) -> None:
    """Take a step on some rows, along the mean gradient of all processes."""
    targets = torch.nn.functional.one_hot(y[part], CLASSES).t().float().contiguous()
    loss, _ = head_loss(net.features(torch.from_numpy(rows[part])), net.head.weight, net.head.bias, targets)
    optimiser.clear()
    loss.backward()  # type: ignore[no-untyped-call]
    if world > 1:
        gradients = [p.grad for p in net.parameters() if p.grad is not None]
        flat = torch.cat([gradient.flatten() for gradient in gradients])
        dist.all_reduce(flat)
        for gradient, mine in zip(gradients, flat.div_(world).split([g.numel() for g in gradients]), strict=True):
            gradient.copy_(mine.view_as(gradient))
    optimiser.step()


if __name__ == "__main__":
    main()
