"""Defaults against the best of a small grid, on every family of graphs: does a method hold as it is first typed?

    python benchmarks/defaults.py run --data-root DATA --splits 5 --out benchmarks/panel-runs/defaults.jsonl
    python benchmarks/defaults.py table --out benchmarks/panel-runs/defaults.jsonl
    python benchmarks/defaults.py summary --out benchmarks/panel-runs/defaults.jsonl > benchmarks/tables/defaults.csv

A run resumes where it stopped; `--methods`, `--graphs` and `--levels` take part of it.
Each method trains with its defaults and with each row of its grid, which changes a setting or two of them, on the same
splits (50/25/25) and draws of noise.  The best row of a graph is the one with the best mean on the test nodes: nobody
could choose it so, which makes the comparison hard on the default.  The level "limit" has the largest epsilon that is
usual, where a method must come near what the same information gives without noise: the plain networks of the table.
Noise is seeded: this is a benchmark.
"""

from __future__ import annotations

import argparse
import math
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

from graphveil.errors import InputError
from graphveil.graphs import random_split
from graphveil.methods.registry import build_method
from graphveil.privacy import SeededRandomness
from panel import Row, append_all, paired, read, wanted
from panel_cells import MEMBERS, drawn_graph, half_of, panel_graph

Settings = Mapping[str, Any]


@dataclass(frozen=True)
class Subject:
    """A method as it is first typed, and what else it might have been.

    Attributes:
        budget: its budgets at an epsilon.
        grid: changes of its defaults.
        epsilons: by level; a plain network has the level "limit" alone.
        method: its name where two budgets of it are told apart.
        private_share: of the edges, the rest is public; 0: none is told apart.
    """

    budget: Callable[[float], Settings]
    grid: tuple[Settings, ...]
    epsilons: Mapping[str, float]
    method: str = ""
    private_share: float = 0.0


def _hops(*pairs: tuple[int, int]) -> tuple[Settings, ...]:
    return tuple({"steps_x": x, "steps_y": y} for x, y in pairs)


def _both(epsilon: float) -> Settings:
    return {"epsilon_x": epsilon, "epsilon_y": epsilon}


def _total(epsilon: float) -> Settings:
    return {"epsilon": epsilon}


def _lists(epsilon: float) -> Settings:
    return {"epsilon_x": math.inf, "epsilon_y": math.inf, "epsilon_a": epsilon}


def _edges(epsilon: float) -> Settings:
    return {"epsilon_a": epsilon}


def _features(epsilon: float) -> Settings:
    return {"epsilon_x": epsilon}


def _published(epsilon: float) -> Settings:
    return {"epsilon_x": epsilon, "epsilon_a": epsilon}


def _by_node(epsilon: float) -> Settings:
    return {"epsilon": epsilon, "unit": "node"}


def _each(**values: Sequence[Any]) -> tuple[Settings, ...]:
    """One setting at a time."""
    return tuple({key: value} for key, several in values.items() for value in several)


_PEOPLE: Final = {"small": 1.0, "usual": 2.0, "limit": 20.0}
_EDGES: Final = {"small": 1.0, "usual": 4.0, "limit": 45.0}
_LISTS: Final = {"small": 2.0, "usual": 4.0, "limit": 15.0}
_NODES: Final = {"small": 2.0, "usual": 8.0, "limit": 50.0}
_RELEASES: Final = {"small": 1.0, "usual": 4.0, "limit": 15.0}
_LIMIT: Final = {"limit": math.inf}
_SUMS: Final = _each(hops=(1, 3), hidden=(64,), dropout=(0.0,), hop_ratio=(2.0,))
_ON_SUMS: Final = _each(pooling=("none",), rows=("published",))
_TRAINED: Final = _each(passes=(40, 200), batch=(256,))
_OF_RELEASE: Final = (*_each(pooling=("none",), hidden=(64,)), {"model": "gcn", "pooling": "none"})
SUBJECTS: Final[Mapping[str, Subject]] = {
    "lpgnn": Subject(_both, (*_hops((2, 0), (2, 1), (4, 1), (8, 0), (8, 4)), {"pooling": "none"}), _PEOPLE),
    "upgnet": Subject(_both, _hops((2, 0), (2, 1), (4, 1), (8, 0), (8, 4)), _PEOPLE),
    "label-pool": Subject(_total, (), _PEOPLE),
    "solitude": Subject(_lists, _each(steps_x=(0, 1, 2, 4, 8)), _LISTS),
    "blink": Subject(_lists, _each(steps_x=(0, 1, 2, 4, 8)), _LISTS),
    "links": Subject(_lists, _each(rounds=(1, 20), blocks=("planted",)), _LISTS),
    "link-beliefs": Subject(_lists, _each(rounds=(1, 100), blocks=("planted",)), _LISTS),
    "list-sums": Subject(_lists, (), _LISTS),
    "dprr": Subject(_lists, _each(steps_x=(0, 1, 4), hidden=(64,)), _LISTS),
    "class-sums": Subject(_total, _each(hidden=(16, 64), dropout=(0.2, 0.5), weight_decay=(0.0005, 0.005)), _EDGES),
    "gap": Subject(_total, (*_SUMS, {"hops": 2}, *_ON_SUMS), _EDGES),
    "progap": Subject(_total, (*_SUMS, {"hops": 2}, *_ON_SUMS), _EDGES),
    "lpgnet": Subject(_total, _each(hops=(1, 2, 3), hidden=(64,), dropout=(0.0,)), _EDGES),
    "dpdgc": Subject(_total, _each(share_hops=(0.3, 0.7), passes=(10,), hidden=(64,)), _EDGES),
    "gcon": Subject(_total, _each(hops=(1, 4), restart=(0.25, 0.75), hidden=(16,)), _EDGES),
    "eclipse": Subject(_total, _each(hops=(1, 2), hidden=(16,), hop_ratio=(2.0,)), _EDGES),
    "caribou": Subject(_total, _each(hops=(1, 4), contraction=(0.4, 0.8), hidden=(16,)), _EDGES),
    "gap by node": Subject(_by_node, _each(hops=(1, 2), passes=(40,), hidden=(16, 64)), _NODES, "gap"),
    "node-sums": Subject(_total, (*_TRAINED, *_each(share_hops=(0.3, 0.7), hidden=(16,))), _NODES),
    "dp-mlp": Subject(_total, (*_TRAINED, *_each(hidden=(16,))), _NODES),
    "class-counts": Subject(_edges, (), _RELEASES, private_share=0.9),
    "edge-rand": Subject(_edges, (*_OF_RELEASE, {"weights": "posterior"}), _RELEASES, private_share=0.9),
    "lap-graph": Subject(_edges, (*_OF_RELEASE, {"weights": "posterior"}), _RELEASES, private_share=0.9),
    "edge-rr": Subject(_edges, _OF_RELEASE, _RELEASES, private_share=0.9),
    "priv-hrg": Subject(_edges, _OF_RELEASE, _RELEASES, private_share=0.9),
    "feature-rr": Subject(_features, _OF_RELEASE, _RELEASES),
    "heterorr": Subject(_published, _OF_RELEASE, _RELEASES, private_share=0.9),
    "mlp": Subject(lambda _: {}, (), _LIMIT),
    "gcn": Subject(lambda _: {}, (), _LIMIT),
    "sage": Subject(lambda _: {}, (), _LIMIT),
}
#: What a method at its limit is held against: plain networks that read the same things.
PLAIN: Final = ("mlp", "gcn", "sage")
DEFAULT: Final = "default"


def main() -> None:
    """Run cells, or print what they say."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("run", "table", "summary"))
    parser.add_argument("--data-root", default=None)
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--methods", default=None, help="names with commas; default: all")
    parser.add_argument("--graphs", default=None, help="names with commas; default: all")
    parser.add_argument("--levels", default="small,usual,limit")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--out", type=Path, required=True)
    chosen = parser.parse_args()
    if chosen.what != "run":
        print("\n".join({"table": table, "summary": summary}[chosen.what](read(chosen.out))))
        return
    chosen.out.parent.mkdir(parents=True, exist_ok=True)
    done = {key_of(row) for row in read(chosen.out)}
    tasks = [task for task in cells(chosen) if task not in done]
    append_all(partial(cell, chosen.data_root), tasks, chosen)


Task = tuple[str, str, str, str, int]


def cells(chosen: argparse.Namespace) -> Iterator[Task]:
    """Yield (method, graph, level, row of the grid, split), small graphs first."""
    levels = wanted(chosen.levels, list(_PEOPLE))
    names = wanted(chosen.methods, list(SUBJECTS))
    for graph in wanted(chosen.graphs, [member.name for member in MEMBERS]):
        for name in names:
            for level in levels:
                if level in SUBJECTS[name].epsilons:
                    rows = [DEFAULT, *map(words, SUBJECTS[name].grid)]
                    yield from ((name, graph, level, row, split) for row in rows for split in range(chosen.splits))


def words(settings: Settings) -> str:
    """Name a row of a grid."""
    return " ".join(f"{key}={value}" for key, value in settings.items())


def key_of(row: Row) -> Task:
    return row["method"], row["graph"], row["level"], row["row"], row["split"]


def cell(root: str | None, task: Task) -> Row:
    """Train once and measure on the test nodes; a row that the method refuses has no accuracy."""
    name, graph_name, level, row, number = task
    subject = SUBJECTS[name]
    graph = drawn_graph(panel_graph(graph_name, root), subject.private_share, number, public=False)
    change = next((settings for settings in subject.grid if words(settings) == row), {})
    settings = {**subject.budget(subject.epsilons[level]), **change}
    split, start, classes = random_split(graph, number), time.process_time(), len(graph.schema.classes)
    accuracy, why = None, None
    try:
        model = build_method(subject.method or name, settings, classes, seed=number)
        model.fit(graph, split=split, randomness=SeededRandomness(number))
        accuracy = round(100 * model.score(graph, split.test), 3)
    except InputError as error:
        why = str(error)
    figures = {"method": name, "graph": graph_name, "level": level, "row": row, "split": number, "accuracy": accuracy}
    return figures | ({"why": why} if why else {}) | {"cpu_seconds": round(time.process_time() - start, 2)}


Cells = Mapping[tuple[str, str, str], Mapping[str, Mapping[int, float]]]


def accuracies(rows: Sequence[Row]) -> Cells:
    """Return (method, graph, level) -> row of the grid -> split -> accuracy in percent."""
    figures: dict[tuple[str, str, str], dict[str, dict[int, float]]] = defaultdict(lambda: defaultdict(dict))
    for row in rows:
        if row["accuracy"] is not None:
            figures[row["method"], row["graph"], row["level"]][row["row"]][row["split"]] = row["accuracy"]
    return figures


def table(rows: Sequence[Row]) -> Iterator[str]:
    """Yield a Markdown table, a line for each method, level and graph, and what is left of the bars."""
    every = accuracies(rows)
    for name in SUBJECTS:
        for level in SUBJECTS[name].epsilons:
            lines = [line for member in MEMBERS if (line := _line(every, name, member.name, level)) is not None]
            if not lines or name in PLAIN:
                continue
            yield f"\n{name}, epsilon {SUBJECTS[name].epsilons[level]:g} ({level})\n"
            yield "| graph | half | default | best of the grid | its row | default less best | best plain network |"
            yield "|---|---|---|---|---|---|---|"
            for graph, default, best, row, less, plain in lines:
                yield f"| {graph} | {half_of(graph)} | {default:.1f} | {best:.1f} | {row} | {less} | {plain} |"
            gaps = [default - best for _, default, best, *_ in lines]
            yield f"\nmean {sum(gaps) / len(gaps):+.2f}, worst {min(gaps):+.1f} of {len(gaps)} graphs"


def summary(rows: Sequence[Row]) -> Iterator[str]:
    """Yield a CSV file, a line for each method and epsilon: means over graphs, and over those of the reporting half."""
    every = accuracies(rows)
    yield "method,epsilon,graphs,splits,default,default less best,on the reporting half,worst graph"
    for name, subject in SUBJECTS.items():
        for level, epsilon in subject.epsilons.items():
            lines = [line for member in MEMBERS if (line := _line(every, name, member.name, level)) is not None]
            if not lines or name in PLAIN:
                continue
            least = min(len(every[name, graph, level][DEFAULT]) for graph, *_ in lines)
            gaps = {graph: default - best for graph, default, best, *_ in lines}
            reported_gaps = [gap for graph, gap in gaps.items() if half_of(graph) == "report"]
            worst = min(gaps, key=lambda graph: gaps[graph])
            figures = [sum(default for _, default, *_ in lines) / len(lines), sum(gaps.values()) / len(gaps)]
            reporting = f"{sum(reported_gaps) / len(reported_gaps):.1f}" if reported_gaps else ""
            numbers = ",".join(f"{figure:.1f}" for figure in figures)
            yield f"{name},{epsilon:g},{len(lines)},{least},{numbers},{reporting},{gaps[worst]:.1f} {worst}"


def _line(every: Cells, name: str, graph: str, level: str) -> tuple[str, float, float, str, str, str] | None:
    """Return a graph's name, default, best row, its name, their difference and the best plain network."""
    place = every.get((name, graph, level), {})
    if DEFAULT not in place:
        return None
    default = place[DEFAULT]
    best = max(place, key=lambda row: _mean(place[row]))
    gain, half = paired(default, place[best])
    networks = [
        _mean(every[plain_name, graph, "limit"][DEFAULT])
        for plain_name in PLAIN
        if (plain_name, graph, "limit") in every
    ]
    plain = f"{max(networks):.1f}" if networks else ""
    return graph, _mean(default), _mean(place[best]), best, f"{gain:+.1f} +- {half:.1f}", plain


def _mean(values: Mapping[int, float]) -> float:
    return sum(values.values()) / len(values)


if __name__ == "__main__":
    main()
