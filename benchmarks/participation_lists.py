"""What accuracy solitude keeps where some sent nothing, and what counting their silence as empty lists would cost.

    python benchmarks/participation_lists.py --data cora --data-root DATA --splits 10

Who answers is drawn by coin: whoever does not sends no features, no label and no list, and is predicted all the same.
Both ends of a relationship report it. Noise and answers are those of a split's number, so both ways read the same:

    solitude               a pair is read from the end that answered
    solitude, empty lists  a silent person's list is an empty one

Differences are paired by split, with 95% intervals (Student's t). Hyper-parameters never see a clean label.
"""

from __future__ import annotations

import argparse
from dataclasses import replace

import numpy as np
import torch
from scipy import stats

from graphveil.graphs import Graph, load_graph, random_split
from graphveil.methods.links.collection import LinkReports, randomize_graph
from graphveil.methods.links.silent_lists import of_heard
from graphveil.methods.links.solitude import Solitude
from graphveil.privacy import SeededRandomness
from participation import of_some


def main() -> None:
    """Run every split and share, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default="cora")
    parser.add_argument("--data-root", default=None)
    parser.add_argument("--splits", type=int, default=10)
    parser.add_argument("--epochs", type=int, default=100)
    parser.add_argument("--epsilon-a", type=float, default=8.0, help="of one bit; a relationship costs twice that")
    given = parser.parse_args()
    torch.set_num_threads(1)
    graph = load_graph(given.data, root=given.data_root)
    for share in (1.0, 0.7, 0.3):
        values = np.array([both(graph, share, number, given) for number in range(given.splits)]) * 100
        gain = values[:, 0] - values[:, 1]
        half = float(stats.t.ppf(0.975, len(gain) - 1) * stats.sem(gain))
        means = " | ".join(f"{mean:.1f}" for mean in values.mean(axis=0))
        print(f"| {given.data} | {share:.0%} | {means} | {gain.mean():+.1f} ± {half:.1f} | {len(gain)} |", flush=True)


def both(graph: Graph, share: float, number: int, given: argparse.Namespace) -> tuple[float, float]:
    """Return the test accuracy of both ways on the same reports."""
    settings = {"epsilon_x": 2.0, "epsilon_y": 2.0, "epsilon_a": given.epsilon_a, "mode": "both"}
    core = Solitude(**settings, epochs=given.epochs, seed=number)
    split = random_split(graph, number)
    whole = randomize_graph(graph, split, core.privacy, core.links, randomness=SeededRandomness(number))
    # One number a person and split: whoever answers at 30% answers at 70% too.
    heard = torch.from_numpy(np.random.default_rng([number, 0xA5]).random(int(graph.num_nodes)) < share)
    people = whole.people if share == 1 else of_some(whole.people, heard)
    some = replace(whole, people=people, lists={"lists": of_heard(whole.lists["lists"], heard)}, heard=heard)

    def accuracy(reports: LinkReports) -> float:
        fresh = Solitude(**settings, epochs=given.epochs, seed=number)
        values = fresh.fit_reports(reports).probabilities().argmax(dim=1)
        return float((values == graph.y)[split.test].double().mean())

    return accuracy(some), accuracy(replace(some, heard=None))


if __name__ == "__main__":
    main()
