"""Every method of a trust model on every graph of the panel, at equal price: lift, wins, losses, worst loss.

    python benchmarks/panel.py run links --data-root DATA --splits 5 --out benchmarks/panel-runs/links.jsonl
    python benchmarks/panel.py table links --out benchmarks/panel-runs/links.jsonl

A run resumes where it stopped: a cell that --out holds is not run again.  `--graphs` and
`--contenders` take part of it.
Each contender with something to choose gets 8 trials on the smallest graph of each family, on a split that is not
reported, by the validation labels that the method itself may see; the choice holds for all graphs of the family and all
epsilons.  The price of those trials is charged to nobody.  Splits are 50/25/25; noise is seeded: this is a benchmark.
Intervals are 95%, paired by split; they say nothing about graphs that are not in the panel.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy import stats

from graphveil.graphs import Graph, random_split
from graphveil.methods.base.network.objectives import true_score
from graphveil.methods.registry import build_method
from graphveil.methods.runs.proposals import candidates
from graphveil.methods.runs.tuning import tunable, tune
from graphveil.privacy import SeededRandomness
from panel_cells import (
    FEATURES_POOL,
    HALVES,
    MAJORITY,
    MEMBERS,
    PUBLIC_POOL,
    TRUSTS,
    Contender,
    drawn_graph,
    features_pool,
    half_of,
    majority,
    panel_graph,
    public_pool,
    scout_of,
)

TRIALS = 8
SCOUTING = 1_000
POOLS = {FEATURES_POOL: features_pool, PUBLIC_POOL: public_pool}
Row = dict[str, Any]


def main() -> None:
    """Run cells, or print what they say."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("run", "table"))
    parser.add_argument("trust", choices=tuple(TRUSTS))
    parser.add_argument("--data-root", default=None)
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--epsilons", default=None, help="numbers with commas; default: all of the trust model")
    parser.add_argument("--graphs", default=None, help="names with commas; default: all")
    parser.add_argument("--contenders", default=None, help="names with commas; default: all")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--out", type=Path, required=True)
    chosen = parser.parse_args()
    if chosen.what == "run":
        run(chosen)
    else:
        print("\n".join(table(chosen.trust, read(chosen.out), HALVES)))


def read(path: Path) -> list[Row]:
    """Return the rows of a file, none if there is no file."""
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def run(chosen: argparse.Namespace) -> None:
    """Run the missing scouts, then the missing cells, small graphs first."""
    chosen.out.parent.mkdir(parents=True, exist_ok=True)
    trust, graphs = TRUSTS[chosen.trust], wanted(chosen.graphs, [member.name for member in MEMBERS])
    names = wanted(chosen.contenders, list(trust.contenders))
    epsilons = wanted(chosen.epsilons, list(trust.epsilons))
    families = [member.family for member in MEMBERS if member.name in graphs]
    scouts = [(family, name) for family in dict.fromkeys(families) for name in names if trust.contenders[name].over]
    done_scouts = {(row["family"], row["contender"]) for row in read(chosen.out) if row["kind"] == "scout"}
    append_all(
        partial(scout, chosen.trust, chosen.data_root), [item for item in scouts if item not in done_scouts], chosen
    )
    rows = read(chosen.out)
    settings = {(row["family"], row["contender"]): row["settings"] for row in rows if row["kind"] == "scout"}
    done = {_key(row) for row in rows if row["kind"] == "cell"}
    cells = [
        (member.name, name, epsilon, number, settings.get((member.family, name), {}))
        for member in MEMBERS
        for number in range(chosen.splits)
        for name in names
        for epsilon in ([epsilons[0]] if trust.contenders[name].free_of_epsilon else epsilons)
        if member.name in graphs
    ]
    append_all(partial(cell, chosen.trust, chosen.data_root), [item for item in cells if item[:4] not in done], chosen)


def wanted(text: str | None, every: list[Any]) -> list[Any]:
    if text is None:
        return every
    values = [type(every[0])(name) for name in text.split(",")]
    if unknown := sorted(set(values) - set(every)):
        raise SystemExit(f"unknown: {unknown}; allowed: {every}")
    return values


def _key(row: Row) -> tuple[str, str, float, int]:
    return row["graph"], row["contender"], row["epsilon"], row["split"]


def append_all(work: Any, tasks: Sequence[Any], chosen: argparse.Namespace) -> None:
    """Append a row for each task as it is done; the file is whole after each."""
    with get_context("spawn").Pool(chosen.workers, initializer=torch.set_num_threads, initargs=(1,)) as pool:
        for number, row in enumerate(pool.imap_unordered(work, tasks), start=1):
            with chosen.out.open("a") as file:
                file.write(json.dumps(row) + "\n")
            print(f"{number}/{len(tasks)}", {key: value for key, value in row.items() if key != "settings"}, flush=True)


def scout(trust: str, root: str | None, task: tuple[str, str]) -> Row:
    """Choose a contender's settings for a family, by validation labels on its smallest graph."""
    family, name = task
    contender, middle = TRUSTS[trust].contenders[name], TRUSTS[trust].middle
    graph, fixed = _graph(trust, scout_of(family, trust), root, contender, SCOUTING), dict(contender.settings(middle))
    split, randomness = random_split(graph, SCOUTING), SeededRandomness(SCOUTING)
    start = time.process_time()
    if set(contender.over) <= set(tunable(contender.method)):
        more: dict[str, Any] = {"split": split, "randomness": randomness, "trials": TRIALS, "seed": SCOUTING}
        tuned = tune(contender.method, graph, fixed, contender.over, **more)
        tried = [(dict(item.settings), item.score) for item in tuned.trials]
    else:  # trials publish anew; what a trial learns from validation labels is charged to nobody, see above
        tried = []
        for item in candidates(contender.over, TRIALS, SCOUTING):
            model = build_method(contender.method, {**fixed, **item}, len(graph.schema.classes), seed=SCOUTING)
            model.fit(graph, split=split, randomness=randomness)
            tried.append((item, model.score(graph, split.val)))
    best, score = max(tried, key=lambda pair: pair[1])
    row = {"kind": "scout", "family": family, "contender": name, "settings": best, "validation": score}
    return row | {"trials": len(tried), "cpu_seconds": round(time.process_time() - start, 2)}


def cell(trust: str, root: str | None, task: tuple[str, str, float, int, Mapping[str, Any]]) -> Row:
    """Train once and measure on the test nodes; a method that refuses a graph says so in its row."""
    name, contender, epsilon, number, chosen = task
    about = TRUSTS[trust].contenders[contender]
    graph = _graph(trust, name, root, about, number)
    split, start = random_split(graph, number), time.process_time()
    if about.method in POOLS:
        accuracy = 100 * true_score(POOLS[about.method](graph, split, number), graph, split.test)
    elif about.method == MAJORITY:
        accuracy = 100 * true_score(majority(graph, split, number, epsilon), graph, split.test)
    else:
        settings = {**about.settings(epsilon), **chosen}
        model = build_method(about.method, settings, len(graph.schema.classes), seed=number)
        accuracy = 100 * model.fit(graph, split=split, randomness=SeededRandomness(number)).score(graph, split.test)
    row = {"kind": "cell", "graph": name, "contender": contender, "epsilon": epsilon, "split": number}
    return row | {"accuracy": round(accuracy, 3), "cpu_seconds": round(time.process_time() - start, 2)}


def _graph(trust: str, name: str, root: str | None, about: Contender, number: int) -> Graph:
    """Return a graph as a contender gets it; which edges are private is drawn for each split."""
    share = TRUSTS[trust].private_share
    return drawn_graph(panel_graph(name, root), share, number, public=about.public_edges)


def accuracies(rows: Sequence[Row], trust: str) -> dict[tuple[str, float], dict[str, dict[int, float]]]:
    """Return (graph, epsilon) -> contender -> split -> accuracy in percent."""
    cells: dict[tuple[str, float], dict[str, dict[int, float]]] = {}
    contenders = TRUSTS[trust].contenders
    for row in rows:
        if row["kind"] != "cell" or row["contender"] not in contenders:
            continue
        same = contenders[row["contender"]].free_of_epsilon
        for epsilon in TRUSTS[trust].epsilons if same else (row["epsilon"],):
            place = cells.setdefault((row["graph"], epsilon), {})
            place.setdefault(row["contender"], {})[row["split"]] = row["accuracy"]
    return {key: place for key, place in cells.items() if any(not contenders[name].control for name in place)}


def paired(item: Mapping[int, float], other: Mapping[int, float]) -> tuple[float, float]:
    """Return the mean difference over common splits and half the width of its 95% interval (nan for one split)."""
    gain = np.array([item[split] - other[split] for split in sorted(set(item) & set(other))])
    if len(gain) < 2:
        return float(gain.mean()) if len(gain) else float("nan"), float("nan")
    return float(gain.mean()), float(stats.t.ppf(0.975, len(gain) - 1) * stats.sem(gain))


def table(trust: str, rows: Sequence[Row], halves: Mapping[str, tuple[str, ...]]) -> Iterator[str]:
    """Yield a Markdown table of means, one line a graph and epsilon, then a summary a method for each half."""
    cells, contenders = accuracies(rows, trust), list(TRUSTS[trust].contenders)
    yield f"Accuracy, %; epsilon of {TRUSTS[trust].unit}. Means over splits, the best in bold."
    yield ""
    yield "| graph | family | epsilon | " + " | ".join(contenders) + " | splits |"
    yield "| --- " * (len(contenders) + 4) + "|"
    for member in MEMBERS:
        for epsilon in TRUSTS[trust].epsilons:
            if place := cells.get((member.name, epsilon)):
                yield _line(member.name, member.family, epsilon, place, contenders)
    for half in halves:
        yield ""
        yield from _summary(half, cells, trust)


def _line(name: str, family: str, epsilon: float, place: Mapping[str, Mapping[int, float]], names: list[str]) -> str:
    means = {item: float(np.mean(list(by.values()))) for item, by in place.items()}
    cells = []
    for item in names:
        mark = "**" if item in means and means[item] == max(means.values()) else ""
        cells.append(f"{mark}{means[item]:.1f}{mark}" if item in means else "")
    splits = min(len(by) for by in place.values())
    return f"| {name} | {family} | {epsilon:g} | " + " | ".join(cells) + f" | {splits} |"


def _summary(
    half: str, cells: Mapping[tuple[str, float], Mapping[str, Mapping[int, float]]], trust: str
) -> Iterator[str]:
    """Yield, for every method: mean, lift over the best control, cells within 0.5 of the best, worst loss."""
    contenders = TRUSTS[trust].contenders
    controls = [name for name, item in contenders.items() if item.control]
    yield f"Half of the families: {half} ({', '.join(HALVES[half])})"
    yield ""
    yield "| method | cells | mean | lift over the control | cells with lift | within 0.5 of the best | worst loss |"
    yield "| --- | --- | --- | --- | --- | --- | --- |"
    for name in contenders:
        means, lifts, losses = [], [], []
        for (graph, _), place in cells.items():
            if half_of(graph) != half or name not in place:
                continue
            mean = {item: float(np.mean(list(by.values()))) for item, by in place.items()}
            means.append(mean[name])
            lifts += [mean[name] - max(mean[item] for item in controls if item in mean)] if controls[0] in mean else []
            losses.append(max(mean.values()) - mean[name])
        if means:
            close = sum(loss <= 0.5 for loss in losses)
            ahead = f"{np.mean(lifts):+.1f} | {sum(lift > 0 for lift in lifts)}" if lifts else "- | -"
            yield f"| {name} | {len(means)} | {np.mean(means):.1f} | {ahead} | {close} | {max(losses):.1f} |"


if __name__ == "__main__":
    main()
