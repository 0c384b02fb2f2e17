"""What accuracy it costs to stop training after some epochs without a better one, and how many epochs it saves.

    python benchmarks/patience.py --data-root DATA --graphs cora,citeseer --out patience.jsonl

Each split is trained for all epochs once. Where patience would have kept another epoch, the same reports are trained on
again from the same weights for as long as patience lets, which gives the bits of a run with patience. Epochs are judged
by released labels alone, as ever. Differences are paired by split, with 95% intervals (Student's t). Graphs and halves
of families are those of `panel.py`; lpgnn spends half on features, half on the label, solitude all on lists, gcn
protects nothing.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy import stats

from graphveil.graphs import Graph, random_split
from graphveil.methods.base.settings import NetworkSettings
from graphveil.methods.registry import build_method
from graphveil.privacy import SeededRandomness
from graphveil.training import Epoch
from graphveil.training.selection import selection_rule
from panel_cells import half_of, panel_graph

PATIENCES = (25, 50, 100, 150)
EPOCHS = NetworkSettings().epochs
BUDGETS: dict[str, Callable[[float], dict[str, float]]] = {
    "lpgnn": lambda epsilon: {"epsilon_x": epsilon / 2, "epsilon_y": epsilon / 2},
    "solitude": lambda epsilon: {"epsilon_x": float("inf"), "epsilon_a": epsilon},
    "gcn": lambda epsilon: {},
}


def main() -> None:
    """Run what --out does not hold yet, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--graphs", default="caltech,reed-gender,cora,citeseer,pages,twitch-es", help="with commas")
    parser.add_argument("--data-root", default=None)
    parser.add_argument("--method", choices=tuple(BUDGETS), default="lpgnn")
    parser.add_argument("--epsilons", default="4,8", help="totals with commas")
    parser.add_argument("--splits", type=int, default=10)
    parser.add_argument("--out", type=Path, default=Path("patience.jsonl"))
    given = parser.parse_args()
    torch.set_num_threads(1)
    cells = [(name, float(number)) for name in given.graphs.split(",") for number in given.epsilons.split(",")]
    done = {_key(row) for row in rows_of(given.out)}
    for name, epsilon in cells:
        wanted = [number for number in range(given.splits) if (given.method, name, epsilon, number) not in done]
        graph = panel_graph(name, given.data_root) if wanted else None
        for number in wanted:
            row = run(given.method, graph, epsilon, number)
            with given.out.open("a") as file:
                file.write(json.dumps({"method": given.method, "graph": name, **row}) + "\n")
    print("\n".join(table(rows_of(given.out))))


def rows_of(out: Path) -> list[dict[str, Any]]:
    """Return the finished runs."""
    return [json.loads(line) for line in out.read_text().splitlines()] if out.exists() else []


def _key(row: dict[str, Any]) -> tuple[str, str, float, int]:
    return row["method"], row["graph"], row["epsilon"], row["split"]


def run(method: str, graph: Graph, epsilon: float, number: int) -> dict[str, Any]:
    """Return the accuracies of a split, in %: of all epochs, and of each patience with the epochs that it took."""
    settings = {**BUDGETS[method](epsilon), "patience": 0}
    split = random_split(graph, number)

    def fitted(epochs: int) -> tuple[float, tuple[Epoch, ...]]:
        built = build_method(method, {**settings, "epochs": epochs}, len(graph.schema.classes), seed=number)
        model = built.fit(graph, split=split, randomness=SeededRandomness(1_000 + number))
        return 100 * model.score(graph, split.test), model.history

    start = time.process_time()
    accuracy, history = fitted(EPOCHS)
    row = {"epsilon": epsilon, "split": number, "all": accuracy, "cpu_seconds": round(time.process_time() - start, 2)}
    accuracies = {stop(history, 0)[1]: accuracy}
    for patience in PATIENCES:
        last, best = stop(history, patience)
        if best not in accuracies:
            accuracies[best] = fitted(last)[0]
        row[str(patience)] = [accuracies[best], last]
    return row


def stop(history: tuple[Epoch, ...], patience: int) -> tuple[int, int]:
    """Return the last epoch of a run with patience (0: all), and the one that it keeps."""
    better, best = selection_rule("robust", ideal=1.0), 0
    for epoch in history:
        best = epoch.epoch if better(epoch) else best
        if patience and epoch.epoch - best >= patience:
            return epoch.epoch, best
    return len(history), best


def table(rows: list[dict[str, Any]]) -> list[str]:
    """Return a line for each method, graph and epsilon."""
    heads = "".join(f" {patience}: gain, epochs |" for patience in PATIENCES)
    lines = [f"| method | graph | families | epsilon | splits | all {EPOCHS} epochs |{heads}"]
    lines.append("| --- | --- | --- | --- | --- | --- |" + " --- |" * len(PATIENCES))
    for cell in dict.fromkeys(_key(row)[:3] for row in rows):
        method, name, epsilon = cell
        chosen = [row for row in rows if _key(row)[:3] == cell]
        rows_of_table = [
            f"| {method} | {name} | {half_of(name)} | {epsilon:g} | {len(chosen)} | "
            f"{np.mean([row['all'] for row in chosen]):.1f} |"
        ]
        for patience in map(str, PATIENCES):
            gains = [row[patience][0] - row["all"] for row in chosen]
            share = np.mean([row[patience][1] for row in chosen]) / EPOCHS
            rows_of_table.append(f" {interval(gains)}, {share:.0%} |")
        lines.append("".join(rows_of_table))
    return lines


def interval(values: list[float]) -> str:
    """Return the mean of some values and half the width of its 95% interval."""
    if len(values) < 2:
        return f"{values[0]:+.1f}"
    half = stats.t.ppf(0.975, len(values) - 1) * np.std(values, ddof=1) / len(values) ** 0.5
    return f"{np.mean(values):+.1f} ± {half:.1f}"


if __name__ == "__main__":
    main()
