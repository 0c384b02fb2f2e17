"""CPU seconds and memory of Blink's hybrid: ours beside the same computation on nodes x nodes arrays.

    python benchmarks/blink.py --data cora --epsilon 2 4 6 8

Each figure comes from a process of its own, one thread, after a warm-up; ours and the dense way take turns, and the
least of `--repeats` counts.  "denoise" goes from what the server holds (both lists of everyone, noisy degrees) to the
kept edges, "trial" from the graph to a trained GCN (collect, denoise, 300 epochs, clean features, public labels).
Memory is the peak above what the process holds before.  The dense rival is written as tightly as its arrays allow:
float32, normalised once, one pass to train and one to judge an epoch.
Settings are those published for Cora and GCN (best_hp.json of the authors' repository).  Linux only (/proc).
"""

from __future__ import annotations

import argparse
import ctypes
import json
import math
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.functional import cross_entropy

from graphveil.aggregation import build_inputs, normalised
from graphveil.graphs import load_graph, random_split
from graphveil.mechanisms import AdjacencyRR, NoisyDegree
from graphveil.methods.base.network.objectives import drop_objective
from graphveil.models import build_backbone, structure_for
from graphveil.models.blocks.link_posterior import degree_prior, link_posterior
from graphveil.models.labels.label_prior import Channel
from graphveil.privacy import SeededRandomness
from graphveil.training import Schedule, Trained, train
from timing import processor, ratio

EPOCHS, HIDDEN = 300, 16
#: Published: epsilon of a list -> share of it for the degree, dropout, weight decay; learning rate 0.01.
PUBLISHED = {2: (0.9, 0.1, 1e-4), 4: (0.1, 0.1, 1e-4), 6: (0.1, 0.0, 1e-5), 8: (0.3, 0.1, 0.0)}
RATE = 0.01


def main() -> None:
    """Measure both ways at each epsilon and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default="cora")
    parser.add_argument("--data-root", default=None)
    parser.add_argument("--epsilon", type=int, nargs="*", default=list(PUBLISHED))
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--one", nargs=2, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.one:
        print(json.dumps(measure_stage(chosen.data, chosen.data_root, chosen.epsilon[0], *chosen.one)))
        return
    print(f"{processor()}, one thread; {chosen.data}")
    print("| list epsilon | stage | dense / ours: CPU | memory | CPU s, ours / dense | MB, ours / dense | accuracy % |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for epsilon in chosen.epsilon:
        for stage in ("denoise", "trial"):
            rounds = [
                [measured(chosen, epsilon, way, stage) for way in ("ours", "dense")] for _ in range(chosen.repeats)
            ]
            ours, dense = (
                {key: min(row[key] for row in rows) for key in rows[0]} for rows in zip(*rounds, strict=True)
            )
            cells = [ratio(dense[key], ours[key]) for key in ("cpu", "mb")]
            cells += [f"{ours[key]:.3g} / {dense[key]:.3g}" for key in ("cpu", "mb")]
            scores = f"{ours['accuracy']:.1f} / {dense['accuracy']:.1f}" if stage == "trial" else ""
            print(f"| {epsilon} | {stage} | {' | '.join(cells)} | {scores} |", flush=True)


def measured(chosen: argparse.Namespace, epsilon: int, way: str, stage: str) -> dict[str, float]:
    """Return the figures of one stage done one way, from a fresh process."""
    command = [sys.executable, __file__, "--data", chosen.data, "--epsilon", str(epsilon), "--one", way, stage]
    command += ["--data-root", chosen.data_root] if chosen.data_root else []
    return dict(json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout))


def measure_stage(data: str, root: str | None, epsilon: int, way: str, stage: str) -> dict[str, float]:
    """Return CPU seconds, peak MB above the start, and the accuracy of a trial."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    graph = load_graph(data, root=root)
    split = random_split(graph, 0)
    collect, denoise, fit = (sparse_collect, sparse_denoise, sparse_fit) if way == "ours" else DENSE
    settings = PUBLISHED[epsilon]
    tiny = small_problem()
    fit(tiny[0], tiny[1], denoise(collect(tiny[0], 4.0, 0.1)), settings, 2)
    if stage == "denoise":
        collection = collect(graph, float(epsilon), settings[0])
        _, cpu, mb = watched(lambda: denoise(collection))
        return {"cpu": cpu, "mb": mb}
    accuracy, cpu, mb = watched(
        lambda: fit(graph, split, denoise(collect(graph, float(epsilon), settings[0])), settings, EPOCHS)
    )
    return {"cpu": cpu, "mb": mb, "accuracy": 100 * accuracy}


def watched(run: Callable[[], Any]) -> tuple[Any, float, float]:
    """Return what `run` returns, its CPU seconds, and the MB that the process grew by at most."""
    ctypes.CDLL(None).malloc_trim(0)
    Path("/proc/self/clear_refs").write_text("5")
    before, start = memory("VmRSS"), time.process_time()
    result = run()
    return result, time.process_time() - start, memory("VmHWM") - before


def memory(field: str) -> float:
    """Return a figure of this process's memory in MB."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(float(line.split()[1]) / 1e3 for line in lines if line.startswith(field))


def small_problem() -> tuple[Any, Any]:
    """Return a made graph and a split: whatever is loaded at first use is loaded with it."""
    graph = load_graph("social-200")
    return graph, random_split(graph, 0)


def rows_add_up_to_one(graph: Any) -> sp.csr_matrix:
    """Return the features as the authors scale them: every row divided by its sum."""
    x = graph.x.to_sparse_csr() if graph.x.layout == torch.strided else graph.x
    parts = (x.values().numpy(), x.col_indices().numpy(), x.crow_indices().numpy())
    csr = sp.csr_matrix(parts, shape=tuple(x.shape))
    sums = np.asarray(csr.sum(axis=1)).ravel()
    return (sp.diags_array(1 / np.where(sums == 0, 1, sums)) @ csr).tocsr().astype(np.float32)


def sparse_collect(graph: Any, epsilon: float, share: float, seed: int = 0) -> Any:
    """Return what both lists say of the pairs, and the noisy degrees."""
    n, randomness = graph.num_nodes, SeededRandomness(seed)
    lists = AdjacencyRR(epsilon=(1 - share) * epsilon, nodes=n, mode="both")
    degrees = NoisyDegree(epsilon=share * epsilon, nodes=n, mode="both")
    reports = lists.randomize(graph.edge_index, randomness=randomness)
    return lists, reports, degrees.randomize(degrees.count(graph.edge_index), randomness=randomness).levels


def sparse_denoise(collection: Any) -> tuple[Tensor, Tensor]:
    """Return the kept edges and their posteriors."""
    lists, reports, levels = collection
    evidence = lists.evidence(reports)
    prior = degree_prior(levels)
    return link_posterior(evidence.source, evidence.target, evidence.log_ratio, evidence.background, prior).hybrid()


def sparse_fit(graph: Any, split: Any, denoised: tuple[Tensor, Tensor], settings: Any, epochs: int) -> float:
    """Return the test accuracy of our GCN on the kept edges."""
    return accuracy(train_gcn(graph, split, denoised, *settings[1:], epochs=epochs).logits, graph, split)


def train_gcn(
    graph: Any,
    split: Any,
    denoised: tuple[Tensor, Tensor],
    dropout: float,
    decay: float,
    *,
    rate: float = RATE,
    epochs: int = EPOCHS,
    seed: int = 0,
) -> Trained:
    """Return our GCN trained on weighted edges, clean features and public labels."""
    edges, weights = denoised
    n, classes = graph.num_nodes, len(graph.schema.classes)
    p = normalised(edges, n)
    inputs = build_inputs(rows_add_up_to_one(graph), p, 0, width=HIDDEN)
    generator = torch.Generator().manual_seed(seed)
    model = build_backbone("gcn", inputs.dimension, HIDDEN, classes, dropout, generator=generator)
    objective = drop_objective(graph.y, split.train, split.val, p, 0, Channel(classes))
    structure = structure_for("gcn", edges, n, weights=weights)
    return train(model, inputs, structure, objective, Schedule(epochs, rate, decay), seed=seed)


def accuracy(logits: Tensor, graph: Any, split: Any) -> float:
    """Return the share of test nodes classified right."""
    return float((logits.argmax(dim=1) == graph.y)[split.test].float().mean())


def dense_collect(graph: Any, epsilon: float, share: float) -> Any:
    """Return everyone's noisy list [n, n] and degree [n], and the probability of a flip."""
    n, flip = graph.num_nodes, 1 / (1 + math.exp((1 - share) * epsilon))
    lists = torch.zeros(n, n)
    lists[graph.edge_index[0], graph.edge_index[1]] = 1
    degrees = lists.sum(dim=1) + torch.distributions.Laplace(0.0, 1 / (share * epsilon)).sample((n,))
    lists = (lists - (torch.rand(n, n) < flip).float()).abs_().fill_diagonal_(0)
    return lists, degrees, flip


def dense_denoise(collection: Any) -> Tensor:
    """Return the adjacency [n, n] of the kept posteriors."""
    lists, degrees, flip = collection
    degrees = degrees.clamp(1, len(lists) - 2)
    beta = torch.zeros(len(lists))
    for _ in range(200):
        terms = 1 / (beta.exp()[:, None] + (-beta).exp())
        beta = degrees.log() - (terms.sum(dim=1) - terms.diagonal()).log()
    evidence = 2 * math.log((1 - flip) / flip) * (lists + lists.T - 1)
    posterior = torch.sigmoid(beta[:, None] + beta + evidence).fill_diagonal_(0)
    least = posterior.flatten().topk(int(posterior.sum())).values[-1]
    return posterior * (posterior >= least)


def dense_fit(graph: Any, split: Any, denoised: Tensor, settings: Any, epochs: int) -> float:
    """Return the test accuracy of a dense GCN, at the epoch of the least validation loss."""
    a = denoised + torch.eye(len(denoised))
    root = a.sum(dim=1).rsqrt()
    a = root[:, None] * a * root
    x = torch.from_numpy(rows_add_up_to_one(graph).toarray())
    shapes = (x.shape[1], HIDDEN), (HIDDEN, len(graph.schema.classes))
    weights = [nn.Parameter(nn.init.xavier_uniform_(torch.empty(shape))) for shape in shapes]
    biases = [nn.Parameter(torch.zeros(shape[1])) for shape in shapes]
    optimiser = torch.optim.Adam([*weights, *biases], lr=RATE, weight_decay=settings[2])

    def logits(training: bool) -> Tensor:
        h = (a @ (x @ weights[0]) + biases[0]).relu()
        return a @ (functional.dropout(h, settings[1], training) @ weights[1]) + biases[1]

    best, accuracy_then = math.inf, 0.0
    for _ in range(epochs):
        optimiser.zero_grad()
        cross_entropy(logits(True)[split.train], graph.y[split.train]).backward()
        optimiser.step()
        with torch.no_grad():
            now = logits(False)
        loss = float(cross_entropy(now[split.val], graph.y[split.val]))
        if loss < best:
            best, accuracy_then = loss, accuracy(now, graph, split)
    return accuracy_then


DENSE = (dense_collect, dense_denoise, dense_fit)

if __name__ == "__main__":
    main()
