"""Calibration of a noisy graph's edges: our sparse step beside a dense nodes x nodes one, growth and memory.

    python benchmarks/calibration.py                        (all three parts; the dense runs take minutes)

Neighbour lists are randomized at `--epsilon` a list (both ends report), features at epsilon 1.  "pair" trains ours, the
dense array and ours again, one after the other, the same scheme on the same inputs.  "growth" makes the lists noisier
and noisier: seconds of an epoch should grow as the collected entries.  "memory" trains PubMed in a process of its own.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from graphveil.aggregation import Inputs, Support, build_inputs, normalised, standardise
from graphveil.graphs import load_graph, random_split
from graphveil.mechanisms import AdjacencyRR, MultiBit
from graphveil.methods.base.network.objectives import drop_objective
from graphveil.models import build_backbone, first_width
from graphveil.models.labels.label_prior import Channel
from graphveil.privacy import SeededRandomness
from graphveil.training import Calibration, Schedule, train_calibrated
from graphveil.training.loop import epoch_figures
from graphveil.training.selection import selection_rule
from timing import processor

HOPS, HIDDEN, DROPOUT = 4, 16, 0.5
#: Hardly a slope outside the collected entries beats this lambda2 ("grown outside"): both should end at the same A.
CALIBRATION = Calibration(lambda1=1e-2, lambda2=1e-2, learning_rate=0.01)
PARTS = ("pair", "growth", "memory")
GROWTH = (8.0, 7.0, 6.0, 5.0, 4.0, 3.0)


@dataclass(frozen=True)
class Task:
    """What a server holds of one collection, and the truth to measure with."""

    support: Support
    inputs: Inputs
    objective: Any
    classes: int
    labels: Tensor
    test: Tensor

    def model(self, name: str) -> Any:
        """Return a fresh backbone, the same each time."""
        generator = torch.Generator().manual_seed(0)
        return build_backbone(name, self.inputs.dimension, HIDDEN, self.classes, DROPOUT, generator=generator)

    def accuracy(self, logits: Tensor) -> float:
        """Return the share of test nodes whose class is met, in %."""
        return 100 * float((logits[self.test].argmax(1) == self.labels[self.test]).float().mean())


def collect(data: str, epsilon: float, name: str, root: str | None) -> Task:
    """Simulate the collection."""
    graph, randomness = load_graph(data, root=root), SeededRandomness(0)
    n, schema = graph.num_nodes, graph.schema
    lists = AdjacencyRR(epsilon=epsilon, nodes=n, mode="both").randomize(graph.edge_index, randomness=randomness)
    users = torch.repeat_interleave(torch.arange(n), torch.diff(lists.starts))
    support = Support.of(torch.stack([lists.columns.long(), users]), n)
    mechanism = MultiBit(epsilon=1.0, dimension=schema.dimension, low=schema.low, high=schema.high)
    features = mechanism.centred(mechanism.randomize(graph.x, randomness=randomness))
    p = normalised(support.edge_index, n)
    inputs = build_inputs(features, p, HOPS, width=first_width(name, HIDDEN), offset=mechanism.midpoint)
    inputs = standardise(inputs, generator=torch.Generator().manual_seed(0))
    split, classes = random_split(graph, 0), len(schema.classes)
    objective = drop_objective(graph.y, split.train, split.val, p, 0, Channel(classes))
    return Task(support, inputs, objective, classes, graph.y, split.test)


def ours(task: Task, name: str, epochs: int) -> tuple[Tensor, Tensor]:
    """Train on the collected entries; return the kept logits and weights."""
    schedule = Schedule(epochs, selection="last")
    trained_model = train_calibrated(
        task.model(name), name, task.inputs, task.support, task.objective, schedule, CALIBRATION, seed=0
    )
    return trained_model.trained.logits, trained_model.weights


def dense(task: Task, name: str, epochs: int) -> tuple[Tensor, Tensor]:
    """Train the same scheme over an n x n array by plain autograd; return the kept logits and A."""
    n, schedule = task.support.num_nodes, Schedule(epochs, selection="last")
    noisy, model, inputs = torch.zeros(n, n), task.model(name), task.inputs
    source, target = task.support.edge_index
    noisy[target, source] = 1
    a = noisy.clone().requires_grad_()
    rates = {"lr": schedule.learning_rate, "weight_decay": schedule.weight_decay}
    network = torch.optim.Adam(model.parameters(), **rates, fused=True)
    edges = torch.optim.Adam([a], lr=CALIBRATION.learning_rate, fused=True)
    rule = selection_rule(schedule.selection, ideal=task.objective.ideal)
    saved = (torch.empty(0), a)
    torch.manual_seed(0)
    for number in range(1, epochs + 1):
        model.train()
        logits = forward(model, name, inputs, a.detach())
        loss = task.objective.loss(logits)
        network.zero_grad()
        loss.backward()
        network.step()
        model.eval().requires_grad_(False)
        clean = forward(model, name, inputs, a)
        if rule(judged(number, loss, logits, clean, task)):
            saved = (clean.detach(), a.detach().clone())
        slope = torch.autograd.grad(task.objective.loss(clean), a)[0]
        with torch.no_grad():
            a.grad = slope.add_(a - noisy, alpha=2 * CALIBRATION.lambda1).add_(CALIBRATION.lambda2).fill_diagonal_(0)
            edges.step()
            a.clamp_(0, 1)
        model.requires_grad_(True)
    return saved


def forward(model: Any, name: str, inputs: Inputs, a: Tensor) -> Tensor:
    """Return the logits over the array of weights."""
    if name == "gcn":
        looped = a + torch.eye(len(a))
        q = looped.sum(1).rsqrt()[:, None] * looped * looped.sum(0).rsqrt()
    else:
        q = a / a.sum(1, keepdim=True).clamp_min(1e-12)
    logits: Tensor = model.rest(model.first(inputs, q), q)
    return logits


def judged(number: int, loss: Tensor, noisy: Tensor, clean: Tensor, task: Task) -> Any:
    """Return an epoch's figures as the training loop does."""
    return epoch_figures(number, float(loss.detach()), noisy.detach(), clean.detach(), task.objective)


def timed(train: Callable[..., tuple[Tensor, Tensor]], *given: Any) -> tuple[float, float, tuple[Tensor, Tensor]]:
    """Return CPU seconds, wall seconds and what came out."""
    cpu, wall = time.process_time(), time.perf_counter()
    out = train(*given)
    return time.process_time() - cpu, time.perf_counter() - wall, out


def pair(chosen: argparse.Namespace) -> None:
    """Print ours beside the dense array."""
    print(f"\n{processor()}: {chosen.data}, list epsilon {chosen.epsilon:g}, {chosen.epochs} epochs, ", end="")
    print(f"{chosen.threads} thread(s)")
    print(f"{'model':>6}{'entries':>10}{'ours, CPU s':>20}{'dense, CPU s':>14}{'ratio':>8}{'wall ratio':>12}", end="")
    print(f"{'accuracy %':>20}{'largest difference of A':>26}{'grown outside':>15}")
    for name in chosen.models:
        task = collect(chosen.data, chosen.epsilon, name, chosen.data_root)
        ours(task, name, 3)
        first, first_wall, (logits, weights) = timed(ours, task, name, chosen.epochs)
        slow, slow_wall, (slow_rows, a) = timed(dense, task, name, chosen.epochs)
        again, again_wall, _ = timed(ours, task, name, chosen.epochs)
        source, target = task.support.edge_index
        apart = float((a[target, source] - weights).abs().max())
        grown = int((a > 0).sum()) - int((a[target, source] > 0).sum())
        ratio, wall = slow / max(first, again), slow_wall / max(first_wall, again_wall)
        print(f"{name:>6}{task.support.entries:>10,}{f'{first:.2f}, {again:.2f}':>20}{slow:>14.1f}", end="")
        print(
            f"{ratio:>8.1f}{wall:>12.1f}{f'{task.accuracy(logits):.1f} / {task.accuracy(slow_rows):.1f}':>20}", end=""
        )
        print(f"{apart:>26.1e}{grown:>15,}", flush=True)


def growth(chosen: argparse.Namespace) -> None:
    """Print seconds of an epoch as the collected entries grow."""
    print(f"\n{processor()}: {chosen.data}, an epoch as the collected entries grow")
    print(f"{'epsilon':>8}{'entries':>12}{'times':>8}{'ms an epoch':>14}{'times':>8}")
    rows = []
    for epsilon in GROWTH:
        task = collect(chosen.data, epsilon, chosen.models[0], chosen.data_root)
        ours(task, chosen.models[0], 3)
        seconds = min(timed(ours, task, chosen.models[0], 25)[0] for _ in range(3)) / 25
        rows.append((task.support.entries, seconds))
        size, time = (now / first for now, first in zip(rows[-1], rows[0], strict=True))
        print(f"{epsilon:>8g}{rows[-1][0]:>12,}{size:>8.1f}{1e3 * seconds:>14.2f}{time:>8.1f}", flush=True)
    sizes, seconds = np.array(rows).T
    slope, floor = np.polyfit(sizes, seconds, 1, w=1 / seconds)
    print(f"{1e3 * floor:.2f} ms + {1e9 * slope:.0f} ns an entry; above 50,000 entries it grows as entries^", end="")
    large = sizes > 50_000
    print(f"{np.polyfit(np.log(sizes[large]), np.log(seconds[large]), 1)[0]:.2f}")


def memory(chosen: argparse.Namespace) -> None:
    """Print PubMed's peak memory and seconds, in a fresh process."""
    command = [sys.executable, __file__, "--one", "--epsilon", str(chosen.epsilon), "--threads", str(chosen.threads)]
    command += ["--models", chosen.models[0], "--epochs", str(chosen.epochs)]
    command += ["--data-root", chosen.data_root] if chosen.data_root else []
    row = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)
    print(f"\npubmed, list epsilon {chosen.epsilon:g}, {chosen.models[0]}, {chosen.epochs} epochs: {row}")


def measured(chosen: argparse.Namespace) -> dict[str, float]:
    """Return the figures of PubMed."""
    name = chosen.models[0]
    task = collect("pubmed", chosen.epsilon, name, chosen.data_root)
    cpu, wall, (logits, _) = timed(ours, task, name, chosen.epochs)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    trained_model = {"entries": task.support.entries, "cpu_s": cpu, "wall_s": wall, "peak_mb": peak}
    return {key: round(value, 1) for key, value in {**trained_model, "accuracy": task.accuracy(logits)}.items()}


def main() -> None:
    """Print the parts asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", nargs="*", choices=PARTS, default=list(PARTS))
    parser.add_argument("--data", default="cora")
    parser.add_argument("--data-root", default=None)
    parser.add_argument("--models", nargs="*", choices=("sage", "gcn"), default=["sage", "gcn"])
    parser.add_argument("--epsilon", type=float, default=7.0)
    parser.add_argument("--epochs", type=int, default=500)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    torch.set_num_threads(chosen.threads)
    if chosen.one:
        print(json.dumps(measured(chosen)))
        return
    for part in chosen.parts:
        {"pair": pair, "growth": growth, "memory": memory}[part](chosen)


if __name__ == "__main__":
    main()
