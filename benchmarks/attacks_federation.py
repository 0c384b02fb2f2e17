"""Attacks on a federation: three modes without and with noise, and the naive design, on one graph.

    python benchmarks/attacks_federation.py --data cora --out attacks_federation.jsonl
    python benchmarks/attacks_federation.py --out attacks_federation.jsonl --table
    python benchmarks/attacks_federation.py --hidden --epochs 100 --out hidden.jsonl    what a hidden layer costs

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

from graphveil.attacks.federation.catalogue import FEDERATION_ATTACKS, attack_federation, simulate_run
from graphveil.attacks.result import AttackResult
from graphveil.federation.core.setting import Setting
from graphveil.federation.simulation import head_of, partition_graph
from graphveil.files.serial import to_json
from graphveil.graphs import Graph, load_graph, random_split
from graphveil.privacy import SeededRandomness

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
#: Of what is opened to whom, at what cost: the settings of all modes that train a hidden layer together.
SMALL: dict[str, Any] = {"width": 16, "hops": 1, "opened": True, **OPEN}
HIDDEN_MODES = ("all-shares", "individual", "shared-linear", "paper")
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
    parser.add_argument("--hidden", action="store_true", help="a small network in each mode, with bytes and seconds")
    parser.add_argument("--splits", type=int, default=2)
    args = parser.parse_args()
    if args.hidden:
        hidden(args)
        return
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
        seen = simulate_run(setting, holdings, randomness=SeededRandomness(1), seed=SEED, unprotected=unprotected)
        seconds = time.perf_counter() - start
        for name in ATTACKS:
            result = attack_federation(name, seen, seed=SEED, unprotected=unprotected)
            row = {"data": data, "run": run, "attack": name, "seconds": seconds, "result": result.to_dict()}
            with args.out.open("a", encoding="utf-8") as file:
                file.write(to_json(row) + "\n")


def hidden(args: argparse.Namespace) -> None:
    """Print bytes, CPU seconds, accuracy and attacks in each mode; means over splits, attacks on the first."""
    graph = load_graph(args.data, root=args.data_root)
    print("| | MB | CPU seconds | accuracy | " + " | ".join(ATTACKS) + " |\n" + "| --- " * (4 + len(ATTACKS)) + "|")
    for mode in HIDDEN_MODES:
        rows = [_hidden_row(graph, mode, number, args.epochs) for number in range(args.splits)]
        with args.out.open("a", encoding="utf-8") as file:
            file.writelines(to_json(row) + "\n" for row in rows)
        figures = [sum(row[name] for row in rows) / len(rows) for name in ("megabytes", "seconds", "accuracy")]
        cells = [f"{figures[0]:,.0f}", f"{figures[1]:.1f}", f"{100 * figures[2]:.1f}"]
        print(
            f"| {mode} | " + " | ".join([*cells, *(_cell(rows[0]["attacks"][name]) for name in ATTACKS)]) + " |",
            flush=True,
        )


def _hidden_row(graph: Graph, mode: str, number: int, epochs: int) -> dict[str, Any]:
    split = random_split(graph, number)
    members, holdings = partition_graph(graph, split, (1.0, 1.0), seed=number)
    setting = Setting.of(members, len(graph.schema.classes), mode=mode, epochs=epochs, **SMALL)
    start = time.process_time()
    seen = simulate_run(setting, holdings, randomness=SeededRandomness(1), seed=number)
    seconds, predictions = time.process_time() - start, head_of(seen.holdings).predictions
    if predictions is None:
        raise RuntimeError("no round was finished")
    right = (predictions.argmax(dim=1) == graph.y)[split.test]
    attacks = {} if number else {name: attack_federation(name, seen, seed=SEED).to_dict() for name in ATTACKS}
    row = {"mode": mode, "split": number, "seconds": seconds, "accuracy": float(right.float().mean())}
    return {**row, "megabytes": seen.trained.transcript.bytes / 1e6, "attacks": attacks}


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
