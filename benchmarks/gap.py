"""Accuracy of a curator's methods by unit and epsilon: GAP, ProGAP, class-sums, beside the same networks without edges.

    python benchmarks/gap.py --data facebook100-wisconsin87-2005-2009 --units edge,directed-edge --out gap.jsonl

Splits are 75/10/15, delta is 1e-7, settings are the defaults, two hops unless said.  "edge" hides an undirected edge,
"directed-edge" one of its two entries, as published.  Controls read no edge and do not depend on epsilon: "no edges,
encoder" is the better of GAP's encoder and classifier by validation labels, "no edges, fusion" is class-sums without
sums.  Lifts are over the control that TESTS better, paired by split, with 95% intervals.  Noise is seeded: this is a
benchmark.  Finished runs are skipped.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy import stats

from graphveil.graphs import load_graph, random_split
from graphveil.methods import GAP, ClassSums, ProGAP
from graphveil.methods.base.family import Control
from graphveil.methods.curator.family import CURATOR
from graphveil.privacy import SeededRandomness

EPSILONS = (1.0, 2.0, 4.0, 8.0)
DELTA = 1e-7
FRACTIONS = (0.75, 0.10, 0.15)
KINDS: dict[str, Any] = {"class-sums": ClassSums, "progap": ProGAP, "gap": GAP}
CONTROLS = {"no edges, encoder": "gap", "no edges, fusion": "class-sums"}
#: Published code, run for delta 1e-7 at the unit "directed-edge": mean of 3 runs at EPSILONS.
REFERENCE = {
    ("facebook100-wisconsin87-2005-2009", "gap"): (65.7, 70.3, 73.9, 75.2),
    ("facebook100-wisconsin87-2005-2009", "progap"): (73.3, 76.8, 78.9, 79.6),
}
Row = dict[str, Any]


def main() -> None:
    """Run what is missing and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default="facebook100-wisconsin87-2005-2009", help="names with commas")
    parser.add_argument("--data-root", default=None)
    parser.add_argument("--units", default="edge,directed-edge")
    parser.add_argument("--methods", default=",".join(KINDS))
    parser.add_argument("--epsilons", default=",".join(f"{e:g}" for e in EPSILONS))
    parser.add_argument("--hops", type=int, default=2, help="of GAP and ProGAP")
    parser.add_argument("--splits", type=int, default=10)
    parser.add_argument("--out", type=Path, default=Path("gap.jsonl"))
    chosen = parser.parse_args()
    torch.set_num_threads(1)
    epsilons = [float(text) for text in chosen.epsilons.split(",")]
    for data in chosen.data.split(","):
        graph = load_graph(data, root=chosen.data_root)
        for unit in chosen.units.split(","):
            for split in range(chosen.splits):
                for name in CONTROLS:
                    fill(chosen.out, graph, key_of(data, "", 0.0, 0, name, split))
                for epsilon in epsilons:
                    for name in chosen.methods.split(","):
                        hops = 1 if name == "class-sums" else chosen.hops
                        fill(chosen.out, graph, key_of(data, unit, epsilon, hops, name, split))
            table(rows(chosen.out), data, unit, epsilons, chosen.hops)


def key_of(data: str, unit: str, epsilon: float, hops: int, method: str, split: int) -> Row:
    """Return what tells one run from another; controls have no unit, epsilon and hops."""
    return {"data": data, "unit": unit, "epsilon": epsilon, "hops": hops, "method": method, "split": split}


def fill(out: Path, graph: Any, key: Row) -> None:
    """Run one split of a cell unless --out holds it."""
    if any(all(row[k] == v for k, v in key.items()) for row in rows(out)):
        return
    split = random_split(graph, key["split"], FRACTIONS)
    noise = SeededRandomness(1000 * key["split"] + int(key["epsilon"] * 10))
    if key["method"] in CONTROLS:
        accuracy = 100 * float(control(graph, split, key)().mean())
    else:
        kind, shared = KINDS[key["method"]], {"epsilon": key["epsilon"], "delta": DELTA, "unit": key["unit"]}
        own = {} if kind is ClassSums else {"hops": key["hops"]}
        method = kind(**shared, **own, seed=key["split"]).fit(graph, split=split, randomness=noise)
        accuracy = 100 * method.score(graph, split.test)
    row = key | {"accuracy": accuracy}
    with out.open("a") as file:
        file.write(json.dumps(row) + "\n")


def control(graph: Any, split: Any, key: Row) -> Control:
    """Return the control that reads no edge; the epsilon of the method it belongs to does not matter to it."""
    method = KINDS[CONTROLS[key["method"]]](epsilon=1.0, delta=DELTA, seed=key["split"])
    return CURATOR.controls(method, graph, split, randomness=SeededRandomness(0))["no-edges"]


def rows(out: Path) -> list[Row]:
    """Return the finished runs."""
    return [json.loads(text) for text in out.read_text().splitlines()] if out.exists() else []


def table(results: list[Row], data: str, unit: str, epsilons: list[float], hops: int) -> None:
    """Print accuracy and lift over no edges of every cell."""
    own = [row for row in results if row["data"] == data]
    flat = {name: runs(own, method=name) for name in CONTROLS}
    best = max(flat, key=lambda name: float(np.mean(list(flat[name].values()))))
    print(f"\n{data}, unit {unit}, delta {DELTA:g}, {hops} hops; accuracy in % (lift over {best})")
    print(f"{'':12}" + "".join(f"{f'epsilon {epsilon:g}':>26}" for epsilon in epsilons) + "  splits")
    scores: dict[str, list[dict[int, float]]] = {}
    for name in KINDS:
        deep = 1 if name == "class-sums" else hops
        here = [row for row in own if (row["unit"], row["hops"]) == (unit, deep)]
        scores[name] = [runs(here, method=name, epsilon=epsilon) for epsilon in epsilons]
        cells = [f"{cell(list(s.values()))} ({cell(paired(s, flat[best]), '+')})" for s in scores[name]]
        if any(scores[name]):
            many = "/".join(str(len(s)) for s in scores[name])
            print(f"{name:12}" + "".join(f"{text:>26}" for text in cells) + f"  {many}")
        if unit == "directed-edge" and (data, name) in REFERENCE:
            print(f"{'  published':12}" + "".join(f"{value:>26}" for value in REFERENCE[data, name]))
    for name in CONTROLS:
        print(f"{name:20} {cell(list(flat[name].values()))} on {len(flat[name])} splits")
    gains(scores)


def gains(scores: dict[str, list[dict[int, float]]]) -> None:
    """Print what class-sums gains over ProGAP, the mean over epsilon of each split, paired."""
    pairs = list(zip(scores["class-sums"], scores["progap"], strict=True))
    common = sorted(set.intersection(*(set(ours) & set(theirs) for ours, theirs in pairs)))
    if common:
        each = [float(np.mean([ours[split] - theirs[split] for ours, theirs in pairs])) for split in common]
        print(f"class-sums over progap, mean over epsilon: {cell(each, '+')} on {len(common)} splits")


def runs(results: list[Row], **key: Any) -> dict[int, float]:
    """Return split -> accuracy of the rows of one cell."""
    chosen = [row for row in results if all(row[k] == v for k, v in key.items())]
    return {row["split"]: row["accuracy"] for row in sorted(chosen, key=lambda row: row["split"])}


def paired(ours: dict[int, float], theirs: dict[int, float]) -> list[float]:
    """Return the differences on the splits that both have."""
    return [ours[split] - theirs[split] for split in ours if split in theirs]


def cell(values: list[float], sign: str = "") -> str:
    """Return mean and 95% half-interval."""
    if not values:
        return "-"
    half = float(stats.t.ppf(0.975, len(values) - 1) * stats.sem(values)) if len(values) > 1 else float("nan")
    return f"{np.mean(values):{sign}.1f}±{half:.1f}"


if __name__ == "__main__":
    main()
