"""Attacks on a federation: three modes without and with noise, and the naive design, on one graph.

    python benchmarks/attacks_federation.py --data cora --out attacks_federation.jsonl
    python benchmarks/attacks_federation.py --out attacks_federation.jsonl --table

Two holders with half of the columns and edges each, random split 50/25/25, defaults of the settings, seeded noise:
these are measurements of public data. Finished rows are skipped.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from pathlib import Path
from typing import Any

from graphveil.attacks.federation.catalogue import FEDERATION_ATTACKS, attack_federation, simulated
from graphveil.attacks.result import AttackResult
from graphveil.federation.core.setting import Setting
from graphveil.federation.simulation import partition_graph
from graphveil.graphs import load_graph, random_split
from graphveil.privacy import SeededRandomness
from graphveil.reports.base.files import to_json

OPEN: dict[str, Any] = {"epsilon": math.inf, "epsilon_y": math.inf}
HIDDEN: dict[str, Any] = {"epsilon": 8.0, "epsilon_y": 2.0}
#: Settings of each row; the naive design is that of any of them.
RUNS: dict[str, dict[str, Any]] = {
    "naive design": {"mode": "individual", **OPEN},
    "paper": {"mode": "paper", "opened": True, **OPEN},
    "individual": {"mode": "individual", **OPEN},
    "shared-linear": {"mode": "shared-linear", **OPEN},
    "individual, noise": {"mode": "individual", "republish": 50, **HIDDEN},
    "shared-linear, noise": {"mode": "shared-linear", "republish": 50, **HIDDEN},
    "guesses, noise": {"mode": "guesses", **HIDDEN},
}
#: Those of any number of columns, against one naive design.
ATTACKS = tuple(name for name, attack in FEDERATION_ATTACKS.items() if not attack.bare)
SEED = 0


def main() -> None:
    """Run what is missing, or print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default="cora")
    parser.add_argument("--data-root", type=Path)
    parser.add_argument("--runs", default=";".join(RUNS), help="rows with semicolons between")
    parser.add_argument("--epochs", type=int, default=200)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--table", action="store_true")
    args = parser.parse_args()
    if not args.table:
        for data in args.data.split(","):
            measure(data, args)
    table([json.loads(line) for line in args.out.read_text("utf-8").splitlines()])


def measure(data: str, args: argparse.Namespace) -> None:
    """Simulate each run on one graph that is not there yet, and attack it in every way."""
    rows = args.out.read_text("utf-8").splitlines() if args.out.exists() else []
    done = {(row["data"], row["run"]) for row in map(json.loads, rows)}
    graph = load_graph(data, root=args.data_root)
    members, holdings = partition_graph(graph, random_split(graph, SEED), (1.0, 1.0), seed=SEED)
    for run in args.runs.split(";"):
        if (data, run) in done:
            continue
        start, unprotected = time.perf_counter(), run == "naive design"
        setting = Setting.of(members, len(graph.schema.classes), epochs=args.epochs, **RUNS[run])
        seen = simulated(setting, holdings, randomness=SeededRandomness(1), seed=SEED, unprotected=unprotected)
        seconds = time.perf_counter() - start
        for name in ATTACKS:
            result = attack_federation(name, seen, seed=SEED, unprotected=unprotected)
            row = {"data": data, "run": run, "attack": name, "seconds": seconds, "result": result.to_dict()}
            with args.out.open("a", encoding="utf-8") as file:
                file.write(to_json(row) + "\n")


def table(rows: list[dict[str, Any]]) -> None:
    """Print AUC, that of the control, and TPR at 1% false alarms; "!" is more than epsilon allows."""
    for data in dict.fromkeys(row["data"] for row in rows):
        print(f"\n{data}\n\n| | " + " | ".join(ATTACKS) + " |\n" + "| --- " * (1 + len(ATTACKS)) + "|")
        for run in dict.fromkeys(row["run"] for row in rows if row["data"] == data):
            results = {row["attack"]: row["result"] for row in rows if row["data"] == data and row["run"] == run}
            print(f"| {run} | " + " | ".join(_cell(results.get(name)) for name in ATTACKS) + " |")


def _cell(facts: dict[str, Any] | None) -> str:
    if facts is None:
        return "-"
    results = AttackResult.from_dict(facts)
    mark = "!" if results.beats_limit else ""
    return f"{results.auc.mean:.2f} ({results.baseline:.2f}), {100 * results.tpr_at_1_fpr.mean:.0f}%{mark}"


if __name__ == "__main__":
    main()
