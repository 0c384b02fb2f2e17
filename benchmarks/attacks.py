"""Every method under every attack that fits it, without and with protection.

    python benchmarks/attacks.py --data cora,facebook100-caltech36,twitch-es --out attacks.jsonl
    python benchmarks/attacks.py --out attacks.jsonl --table
    python benchmarks/attacks.py --data digits --attacks reconstruction --out attacks.jsonl

One fit of each method, 100 epochs, split 50/25/25; 500 nodes' pairs; 8 shadow models. Each method protects what it can
at epsilon 2, whole nodes at 8, a bit of a neighbour list and `edge-rand` at 8; noise is seeded: these are measurements
of public data.  Shadow models are left out where 8 fits would take longer than asked.  Finished rows are skipped.
"""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from graphveil.attacks.catalogue import SHADOW, Target, attack
from graphveil.attacks.result import AttackResult
from graphveil.errors import GraphveilError
from graphveil.files.serial import to_json
from graphveil.graphs import load_graph, random_split
from graphveil.methods.registry import METHODS, build_method
from graphveil.privacy import SeededRandomness

RUNS: dict[str, tuple[str, dict[str, Any]]] = {
    "gcn": ("gcn", {}),
    "sage": ("sage", {}),
    "gat": ("gat", {}),
    "mlp": ("mlp", {}),
    "gap inf": ("gap", {"epsilon": float("inf")}),
    "gap": ("gap", {"epsilon": 2.0}),
    "progap": ("progap", {"epsilon": 2.0}),
    "class-sums": ("class-sums", {"epsilon": 2.0}),
    "gap node": ("gap", {"epsilon": 8.0, "unit": "node"}),
    "dp-mlp": ("dp-mlp", {"epsilon": 8.0}),
    "lpgnn": ("lpgnn", {"epsilon_x": 2.0, "epsilon_y": 2.0}),
    "label-propagation": ("label-propagation", {"epsilon_y": 2.0}),
    "label-pool": ("label-pool", {"epsilon_y": 2.0}),
    "solitude": ("solitude", {"epsilon_x": 2.0, "epsilon_a": 8.0}),
    "link-beliefs": ("link-beliefs", {"epsilon_x": 2.0, "epsilon_a": 8.0}),
    "blink": ("blink", {"epsilon_x": 2.0, "epsilon_a": 8.0}),
    "dprr": ("dprr", {"epsilon_x": 2.0, "epsilon_a": 8.0}),
    "heterorr": ("heterorr", {"epsilon_x": 2.0, "epsilon_a": 2.0}),
    "feature-rr": ("feature-rr", {"epsilon_x": 2.0}),
    "edge-rr": ("edge-rr", {"epsilon_a": 2.0}),
    "edge-rand": ("edge-rand", {"epsilon_a": 8.0}),
    "lap-graph": ("lap-graph", {"epsilon_a": 2.0}),
    "priv-hrg": ("priv-hrg", {"epsilon_a": 2.0}),
}
SHADOWS = 8
#: The graph of the adversary's own, on which it learns to steal links.
SHADOW_OF = {"cora": "citeseer", "facebook100-caltech36": "cora", "twitch-es": "twitch-ru", "digits": "social-2000"}
OF_EDGES = ("linkteller", "link-stealing", "link-stealing-known", "link-stealing-shadow", "published-edges")
SHOWN = (*OF_EDGES, "membership", "lira", "attribute", "reconstruction")


def main() -> None:
    """Run what is missing, or print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default="cora")
    parser.add_argument("--data-root", type=Path)
    parser.add_argument("--runs", default=",".join(RUNS))
    parser.add_argument("--attacks", default=",".join(SHOWN))
    parser.add_argument("--longest", type=float, default=600.0, help="seconds for the shadow models of one method")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--table", action="store_true")
    args = parser.parse_args()
    if not args.table:
        for data in args.data.split(","):
            measure(data, args)
    table([json.loads(line) for line in args.out.read_text("utf-8").splitlines()], args.attacks.split(","))


def measure(data: str, args: argparse.Namespace) -> None:
    """Add a row for every run and attack on one graph that is not there yet."""
    rows = args.out.read_text("utf-8").splitlines() if args.out.exists() else []
    done = {(row["data"], row["run"], row["attack"]) for row in map(json.loads, rows)}
    graph = load_graph(data, root=args.data_root)
    own = load_graph(SHADOW_OF[data], root=args.data_root) if SHADOW in args.attacks and data in SHADOW_OF else None
    split = random_split(graph, 0)
    for run in args.runs.split(","):
        missing = [name for name in args.attacks.split(",") if (data, run, name) not in done]
        if not missing:
            continue
        start = time.perf_counter()
        method = fitted(run, graph, split, 0)
        if SHADOWS * (time.perf_counter() - start) > args.longest:
            missing = [name for name in missing if name != "lira"]
        accuracy = method.score(graph, split.test)
        target = Target(
            method,
            graph,
            graph,
            split,
            partial(fitted, run),
            SeededRandomness(1),
            shadows=SHADOWS,
            shadow=own,
        )
        for name in missing:
            start = time.perf_counter()
            row: dict[str, Any] = {"data": data, "run": run, "attack": name, "accuracy": accuracy}
            try:
                published = name == "published-edges" and method.kind == "heterorr"
                served = method.published if published else graph
                row["result"] = attack(name, replace(target, served=served)).to_dict()
            except GraphveilError as refusal:
                row["refused"] = str(refusal)
            row["seconds"] = time.perf_counter() - start
            with args.out.open("a", encoding="utf-8") as file:
                file.write(to_json(row) + "\n")


def fitted(run: str, graph: Any, split: Any, seed: int) -> Any:
    """Return one fitted method of RUNS."""
    name, settings = RUNS[run]
    if "epochs" in METHODS[name].options:
        settings = {"epochs": 100, **settings}
    method = build_method(name, settings, len(graph.schema.classes), seed=seed)
    return method.fit(graph, split=split, randomness=SeededRandomness(seed))


def table(rows: list[dict[str, Any]], attacks: list[str]) -> None:
    """Print AUC and TPR at 1% false alarms, two tables for each graph; "!" is more than epsilon allows."""
    for data in dict.fromkeys(row["data"] for row in rows):
        print(f"\n{data}")
        for secret in (OF_EDGES, tuple(name for name in SHOWN if name not in OF_EDGES)):
            names = [name for name in secret if name in attacks]
            print("\n| method | accuracy | " + " | ".join(names) + " |\n" + "| --- " * (2 + len(names)) + "|")
            for run in dict.fromkeys(row["run"] for row in rows if row["data"] == data):
                results = {row["attack"]: row for row in rows if row["data"] == data and row["run"] == run}
                accuracy = next(iter(results.values()))["accuracy"]
                cells = [_cell(results.get(name)) for name in names]
                print(f"| {run} | {100 * accuracy:.1f} | " + " | ".join(cells) + " |")


def _cell(row: dict[str, Any] | None) -> str:
    if row is None or "result" not in row:
        return "-"
    results = AttackResult.from_dict(row["result"])
    mark = "!" if results.beats_limit else ""
    beside = f" ({results.baseline:.2f})" if results.baseline not in (None, 0.5) else ""
    return f"{results.auc.mean:.2f}{beside}, {100 * results.tpr_at_1_fpr.mean:.0f}%{mark}"


if __name__ == "__main__":
    main()
