"""Every method's whole run beside plain torch doing the same job, in one process: CPU seconds of each, and the ratio.

    python benchmarks/ratios.py --data cora,facebook100-caltech36 --data-root DATA

Seconds are true of one machine, ratios of two programs on it hold better.  The plain programs have the published sizes
and the fastest order of the published arithmetic, on dense rows and with ordinary noise that protects nobody:

    lpgnn    P^K X* once; an epoch is two SAGE layers of 16, K_y products of the class scores, Adam, one evaluation
    gap      two perceptrons of 16 for 100 epochs each, K noisy sums between them
    progap   K + 1 perceptrons of 16 for 100 epochs each, a noisy sum before each but the first

`perturbed.py` does the same for a hop.  One thread.  Both programs take turns, and the least of `--repeats` counts.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, embedding_bag, nll_loss

from graphveil.graphs import load_graph, random_split
from graphveil.methods import GAP, LPGNN, ClassSums, ProGAP
from timing import cpu_seconds, processor

HIDDEN, HOPS, STEPS_X, STEPS_Y = 16, 2, 4, 2
EPOCHS = {"lpgnn": 500, "gap": 100, "progap": 100}
#: What a method is compared with: class-sums has no published program, and stands beside ProGAP's.
RIVALS = {"lpgnn": "lpgnn", "gap": "gap", "progap": "progap", "class-sums": "progap"}


def main() -> None:
    """Time all pairs and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default="cora", help="names with commas")
    parser.add_argument("--data-root", default=None)
    parser.add_argument("--methods", default=",".join(RIVALS))
    parser.add_argument("--repeats", type=int, default=3)
    chosen = parser.parse_args()
    torch.set_num_threads(1)
    print(f"{processor()}; torch {torch.__version__}, one thread; CPU seconds")
    print(f"{'data':28} {'method':12} {'ours':>8} {'plain torch':>12} {'ours / plain':>13}")
    for data in chosen.data.split(","):
        graph = load_graph(data, root=chosen.data_root)
        for method in chosen.methods.split(","):
            programs = ours(graph, method), plain(graph, RIVALS[method])
            # In turns: what else runs on the machine meets both alike.
            seconds = [[cpu_seconds(program) for program in programs] for _ in range(chosen.repeats)]
            mine, theirs = (min(column) for column in zip(*seconds, strict=True))
            print(f"{data:28} {method:12} {mine:8.2f} {theirs:12.2f} {mine / theirs:13.2f}", flush=True)


def ours(graph: Any, method: str) -> Callable[[], Any]:
    """Return one whole fit of ours, loading left out."""
    split = random_split(graph, 0)
    if method == "lpgnn":
        budgets = {"epsilon_x": 1.0, "epsilon_y": 1.0}
        return lambda: LPGNN(**budgets, steps_x=STEPS_X, steps_y=STEPS_Y, patience=0).fit(graph, split=split)
    kind: Any = {"gap": GAP, "progap": ProGAP, "class-sums": ClassSums}[method]
    settings = (
        {} if method == "class-sums" else {"hops": HOPS, "hidden": HIDDEN, "epochs": EPOCHS[method], "patience": 0}
    )
    return lambda: kind(epsilon=4.0, delta=1e-7, unit="edge", **settings).fit(graph, split=split)


def plain(graph: Any, method: str) -> Callable[[], Any]:
    """Return the plain program on the same graph and split."""
    x, y, train = graph.x.to_dense().float(), graph.y, random_split(graph, 0).train
    sums = Neighbours(graph.edge_index, len(x))
    classes = len(graph.schema.classes)
    return lambda: {"lpgnn": lpgnn, "gap": gap, "progap": progap}[method](x, y, train, classes, sums)


class Neighbours:
    """A sum or mean over neighbours as plain torch has it: an `embedding_bag` over receivers."""

    def __init__(self, edges: Tensor, nodes: int) -> None:
        order = edges[1].argsort()
        self.senders, self.nodes = edges[0][order], nodes
        counts = torch.bincount(edges[1], minlength=nodes)
        self.starts = torch.cat([torch.zeros(1, dtype=torch.int64), counts.cumsum(0)])

    def __call__(self, x: Tensor, mode: str = "sum") -> Tensor:
        return embedding_bag(self.senders, x, self.starts, mode=mode, include_last_offset=True)


def lpgnn(x: Tensor, y: Tensor, train: Tensor, classes: int, sums: Neighbours) -> None:
    """Train two SAGE layers on propagated features, with labels seen through their noise."""
    for _ in range(STEPS_X):
        x = sums(x, "mean")
    first = nn.ModuleList(nn.Linear(x.shape[1], HIDDEN) for _ in range(2))
    second = nn.ModuleList(nn.Linear(HIDDEN, classes) for _ in range(2))
    channel = torch.full((classes, classes), 0.1).fill_diagonal_(1 - 0.1 * (classes - 1))
    optimiser = torch.optim.Adam([*first.parameters(), *second.parameters()], lr=0.01, weight_decay=1e-3)

    def scores(*, dropping: bool) -> Tensor:
        hidden = torch.selu(first[0](x) + sums(first[1](x), "mean"))
        hidden = nn.functional.dropout(hidden, 0.5, training=dropping)
        return (second[0](hidden) + sums(second[1](hidden), "mean")).softmax(1)

    for _ in range(EPOCHS["lpgnn"]):
        optimiser.zero_grad()
        sums_then = scores(dropping=True)
        for _ in range(STEPS_Y):
            sums_then = sums(sums_then, "mean")
        nll_loss((sums_then @ channel)[train].clamp_min(1e-9).log(), y[train]).backward()
        optimiser.step()
        with torch.no_grad():
            scores(dropping=False)


class Beside(nn.Module):
    """A network for each hop, and a head over all that they say."""

    def __init__(self, bases: list[nn.Module], classes: int) -> None:
        super().__init__()
        self.bases, self.head = nn.ModuleList(bases), nn.Linear(HIDDEN * len(bases), classes)

    def forward(self, parts: list[Tensor]) -> Tensor:
        """Return logits [n, classes] of X_0..X_i."""
        parts_of = [base(part) for base, part in zip(self.bases, parts, strict=True)]
        return self.head(nn.functional.selu(torch.cat(parts_of, 1)))


def base(columns: int, *, deep: bool) -> nn.Module:
    """Return one layer of 16 with batch normalisation, or two."""
    first = [nn.Linear(columns, HIDDEN), nn.BatchNorm1d(HIDDEN)]
    second = [nn.SELU(), nn.Linear(HIDDEN, HIDDEN), nn.BatchNorm1d(HIDDEN)]
    return nn.Sequential(*first, *(second if deep else []))


def trained(network: nn.Module, parts: list[Tensor], y: Tensor, train: Tensor, epochs: int) -> None:
    """Train a network with full batches, evaluated once an epoch."""
    optimiser = torch.optim.Adam(network.parameters(), lr=0.01)
    few = [part[train] for part in parts]
    for _ in range(epochs):
        network.train()
        optimiser.zero_grad()
        cross_entropy(network(few), y[train]).backward()
        optimiser.step()
        network.eval()
        with torch.no_grad():
            network(parts)


def noisy(sums: Neighbours, x: Tensor) -> Tensor:
    """Return a noisy sum of rows of length 1."""
    return sums(nn.functional.normalize(x)) + 4 * torch.randn(len(x), x.shape[1])


def gap(x: Tensor, y: Tensor, train: Tensor, classes: int, sums: Neighbours) -> None:
    """Encode, sum K times, classify."""
    encoder = Beside([base(x.shape[1], deep=True)], classes)
    trained(encoder, [x], y, train, EPOCHS["gap"])
    with torch.no_grad():
        parts_of = [encoder.bases[0](x)]
        for _ in range(HOPS):
            parts_of.append(noisy(sums, parts_of[-1]))
    classifier = Beside([nn.Linear(HIDDEN, HIDDEN) for _ in parts_of], classes)
    trained(classifier, parts_of, y, train, EPOCHS["gap"])


def progap(x: Tensor, y: Tensor, train: Tensor, classes: int, sums: Neighbours) -> None:
    """Train a stage over what is known, sum what its newest network says, and go on with one more."""
    bases, parts = [base(x.shape[1], deep=False)], [x]
    for stage in range(HOPS + 1):
        trained(Beside(bases, classes), parts, y, train, EPOCHS["progap"])
        if stage < HOPS:
            with torch.no_grad():
                parts.append(noisy(sums, bases[-1](parts[-1])))
            bases.append(base(HIDDEN, deep=True))


if __name__ == "__main__":
    main()
