"""Accuracy at equal epsilon PER RELATIONSHIP: links and its parts against the published methods on private lists.

    python benchmarks/local_edges.py --data cora,citeseer-lcc --out local_edges.jsonl

Rivals as published: both ends report, so each list spends half; two-layer GCN, 200 epochs, and of SETTINGS the one with
the best validation accuracy in each run.  "lower" rows give a rival our way of reporting (the lower id reports, the
list spends all).  Ours have no such choice to make: their strengths and weights are fitted to the same labels.
Labels are public, features public (`--epsilon-x inf`) or multi-bit. "no edges" is the control: logistic regression
and perceptron, pooled (in the recorded rows the better of the two on validation labels). Noise is seeded: this is a
benchmark. Gains are paired by split, 95% intervals. Finished runs are skipped. Lists with over HEAVY reported entries
are run on `--heavy-splits` splits by the rivals that train on all of them; those rows take part in the comparison
only when complete.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy import stats

from graphveil.graphs import load_graph, random_split
from graphveil.methods import LinkBeliefs, Solitude
from graphveil.methods.links.controls import link_controls_of
from graphveil.privacy import SeededRandomness

EPSILONS = (2.0, 4.0, 6.0, 8.0)
SETTINGS: tuple[dict[str, Any], ...] = (
    {"hidden": 16, "dropout": 0.5, "weight_decay": 5e-4},
    {"hidden": 64, "dropout": 0.8, "weight_decay": 5e-3},
)
#: name -> (denoiser, mode); everything but ours is published.
RIVALS = {
    "base": ("none", "both"),
    "solitude": ("calibration", "both"),
    "dprr": ("degree-preserving", "both"),
    "blink-hard": ("blink-hard", "both"),
    "blink-hybrid": ("blink-hybrid", "both"),
}
HEAVY = 200_000
EXTRA = {"base, lower": ("none", "lower"), "solitude, lower": ("calibration", "lower")}
#: Ours, and what they make of the lists.
OURS = {"links": "all", "link-beliefs": "beliefs", "list-sums": "sums"}
BEST, CONTROL = "links", "no edges"


def main() -> None:
    """Run what is missing and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default="cora", help="names with commas")
    parser.add_argument("--data-root", default=None)
    parser.add_argument("--splits", type=int, default=10)
    parser.add_argument("--epsilon-x", type=float, default=math.inf)
    parser.add_argument("--epsilons", default=",".join(f"{e:g}" for e in EPSILONS))
    parser.add_argument("--heavy-splits", type=int, default=2)
    parser.add_argument("--extra", action="store_true", help="rivals with our way of reporting as well")
    parser.add_argument("--out", type=Path, default=Path("local_edges.jsonl"))
    chosen = parser.parse_args()
    torch.set_num_threads(1)
    epsilons = [float(text) for text in chosen.epsilons.split(",")]
    rivals = RIVALS | (EXTRA if chosen.extra else {})
    for data in chosen.data.split(","):
        graph = load_graph(data, root=chosen.data_root)
        for epsilon in sorted(epsilons, reverse=True):
            for split in range(chosen.splits):
                for name in (*OURS, CONTROL, *rivals):
                    heavy = name.startswith(("base", "solitude")) and entries(graph, epsilon, *rivals[name]) > HEAVY
                    if heavy and split >= chosen.heavy_splits:
                        continue
                    fill(chosen.out, graph, data, chosen.epsilon_x, epsilon, name, rivals.get(name), split)
        table(chosen.out, data, chosen.epsilon_x, epsilons, [CONTROL, *rivals], chosen.splits)


def entries(graph: Any, epsilon: float, denoiser: str, mode: str) -> float:
    """Return how many false entries the lists are expected to hold, counted in both directions."""
    bit = epsilon / 2 if mode == "both" else epsilon
    return float(graph.num_nodes) ** 2 / (1 + math.exp(bit))


def fill(
    out: Path,
    graph: Any,
    data: str,
    epsilon_x: float,
    epsilon: float,
    name: str,
    rival: tuple[str, str] | None,
    split: int,
) -> None:
    """Run one cell's split unless --out holds it."""
    key = {"data": data, "epsilon_x": str(epsilon_x), "epsilon": epsilon, "method": name, "split": split}
    if any(all(row[k] == v for k, v in key.items()) for row in rows(out)):
        return
    start = time.process_time()
    nodes = random_split(graph, split)
    noise = SeededRandomness(1000 * split + int(epsilon * 10))
    if rival is None:
        ours = LinkBeliefs(epsilon_x=epsilon_x, epsilon_a=epsilon, reading=OURS.get(name, "beliefs"), seed=split)
        if name in OURS:
            accuracy = ours.fit(graph, split=nodes, randomness=noise).score(graph, nodes.test)
        else:
            ours.released = ours.randomize(graph, split=nodes, randomness=noise)
            accuracy = float(link_controls_of(ours, graph, nodes)["no-edges"]().mean())
        variant = ours.variant if name in OURS else ""
    else:
        accuracy, variant = published(graph, nodes, epsilon_x, epsilon, *rival, noise, split)
    row = key | {"accuracy": 100 * accuracy, "cpu_seconds": time.process_time() - start, "variant": variant}
    with out.open("a") as file:
        file.write(json.dumps(row) + "\n")


def published(
    graph: Any, nodes: Any, epsilon_x: float, epsilon: float, denoiser: str, mode: str, noise: Any, split: int
) -> tuple[float, str]:
    """Return the test accuracy of the setting that validates best; one collection serves all settings."""
    best = (-1.0, 0.0, "")
    released = None
    for settings in SETTINGS:
        bit = epsilon / 2 if mode == "both" else epsilon
        method = Solitude(
            epsilon_x=epsilon_x,
            epsilon_a=bit,
            mode=mode,
            denoiser=denoiser,
            model="gcn",
            epochs=200,
            patience=0,
            seed=split,
            **settings,
        )
        if released is None:
            released = method.randomize(graph, split=nodes, randomness=noise)
        method.fit_reports(replace(released))
        best = max(best, (method.score(graph, nodes.val), method.score(graph, nodes.test), str(settings["hidden"])))
    return best[1], f"hidden {best[2]}"


def rows(out: Path) -> list[dict[str, Any]]:
    """Return the finished runs."""
    return [json.loads(text) for text in out.read_text().splitlines()] if out.exists() else []


def table(out: Path, data: str, epsilon_x: float, epsilons: list[float], names: list[str], splits: int) -> None:
    """Print accuracy per method and epsilon, and the gain of ours over the best published one."""
    errors: dict[tuple[str, float], list[float]] = {}
    for row in sorted(rows(out), key=lambda row: row["split"]):
        if (row["data"], row["epsilon_x"]) == (data, str(epsilon_x)) and row["split"] < splits:
            errors.setdefault((row["method"], row["epsilon"]), []).append(row["accuracy"])
    print(f"\n{data}, epsilon_x {epsilon_x:g}, {splits} splits; epsilon per relationship")
    print(f"{'':18}" + "".join(f"{epsilon:>14g}" for epsilon in epsilons))
    for name in (*names, *reversed(OURS)):
        print(f"{name:18}" + "".join(f"{cell(errors.get((name, epsilon), [])):>14}" for epsilon in epsilons))
    gains = []
    for epsilon in epsilons:
        ours = errors.get((BEST, epsilon), [])
        rivals = {
            name: errors[name, epsilon] for name in RIVALS if len(errors.get((name, epsilon), [])) == len(ours) > 0
        }
        if not rivals:
            continue
        best = max(rivals, key=lambda name: float(np.mean(rivals[name])))
        gains.append(np.subtract(ours, rivals[best]))
        print(f"  at {epsilon:g}: {cell(list(gains[-1])):>12} over {best}")
    if gains:
        print(f"mean gain over the best published method: {np.mean([gain.mean() for gain in gains]):+.2f} points")


def cell(values: list[float]) -> str:
    """Return mean and 95% half-interval."""
    if not values:
        return "-"
    half = float(stats.t.ppf(0.975, len(values) - 1) * stats.sem(values)) if len(values) > 1 else float("nan")
    return f"{np.mean(values):.1f}±{half:.1f}"


if __name__ == "__main__":
    main()
