"""Solitude's Table III, cell by cell: our accuracies beside the published ones.

    pip install 'graphveil[benchmarks]'
    python benchmarks/reproduce_solitude.py --data cora,citeseer-lcc --out solitude

epsilon_x = 1; epsilon_a is what one bit of one list costs, both ends report and each list stands as its own directed
entries, as in the paper: a relationship costs 2 epsilon_a.  Settings come from the paper's grid, searched once for
each graph, backbone, method and three neighbouring epsilon_a by the mean VALIDATION accuracy over three splits and
noises (one for each epsilon_a) that are not among the reported ones; a reported split's test nodes are scored once,
with the settings chosen.  The method "random" is a control: LPGNN, with LPGNN's settings, on random numbers in place of
feature reports.  Searches and runs are kept in the folder --out and go on from there when the command is given again.

Source: Lin, Li, Wang, "Towards Private Learning on Decentralized Graphs With Local Differential Privacy", IEEE TIFS
17, 2022, Table III: mean and standard deviation of 5 runs.  A cell is "BELOW" when our mean is under the published
mean minus that deviation.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import optuna
import torch
from scipy import stats

from graphveil.graphs import load_graph, random_split
from graphveil.methods import Solitude
from graphveil.privacy import SeededRandomness

EPSILON_A = (7.0, 7.3, 7.5, 7.7, 7.9, 8.0)
#: Neighbouring epsilon_a share their settings.
BANDS = ((7.0, 7.3, 7.5), (7.7, 7.9, 8.0))
#: Published mean and deviation in %, by graph, backbone and method, in the order of EPSILON_A.
PUBLISHED = {
    ("cora", "sage"): {
        "base": "50.9±3.8 54.9±3.7 57.2±2.5 61.4±2.6 63.7±2.4 63.2±3.2",
        "lpgnn": "62.5±1.6 69.2±1.6 72.9±2.3 74.7±0.9 75.3±1.2 76.4±0.8",
        "solitude": "66.4±1.7 72.4±1.2 75.8±0.9 76.7±1.1 77.9±0.6 79.0±0.6",
    },
    ("cora", "gcn"): {
        "base": "60.8±2.0 63.1±3.4 64.8±3.7 66.9±4.0 68.1±4.0 68.6±3.8",
        "lpgnn": "67.9±1.2 69.4±1.4 73.7±1.8 74.4±0.5 75.7±1.0 76.3±0.9",
        "solitude": "68.4±2.3 72.6±1.4 75.2±1.2 76.1±0.5 77.3±0.9 77.8±0.5",
    },
    ("citeseer-lcc", "sage"): {
        "base": "35.0±1.8 39.1±1.3 42.3±1.5 44.5±1.2 45.7±1.8 44.5±1.9",
        "lpgnn": "46.8±2.0 49.7±0.7 50.7±1.4 51.2±1.4 53.3±0.9 54.5±1.2",
        "solitude": "50.1±1.3 52.7±1.0 54.0±1.0 55.6±0.8 56.3±1.0 57.0±1.4",
    },
    ("citeseer-lcc", "gcn"): {
        "base": "39.7±3.0 45.3±1.8 48.3±2.9 49.6±1.3 52.5±2.1 52.8±2.5",
        "lpgnn": "47.8±1.1 50.1±1.8 52.3±1.2 53.7±1.3 55.6±1.3 55.6±1.5",
        "solitude": "49.8±1.4 53.4±1.0 55.1±0.8 56.4±1.5 58.2±0.7 58.0±2.5",
    },
}
#: Trials of a search: one for Base's 64 settings, more for Solitude's 49,152.
TRIALS = {"base": 6, "lpgnn": 8, "solitude": 16}
#: The first of the splits and noises that a search sees; the reported ones start at 0.
FIRST_DRAW = 1000
#: A trial goes on to its next draw while it is among this share (in %) of the best so far.
KEPT = 30.0
#: Epochs of a trial; the reported runs have the paper's 500.
TRIAL_EPOCHS = 200
STEPS = (0, 2, 4, 8)
#: Where searches start: exponents of 10, and places in STEPS.
STARTS = (
    {"rate": -3, "dropout": -1, "decay": -1, "x": 2, "y": 0, "lambda1": -4, "lambda2": -5, "rate_a": -2},
    {"rate": -2, "dropout": -1, "decay": -1, "x": 3, "y": 0, "lambda1": -4, "lambda2": -5, "rate_a": -2},
    {"rate": -2, "dropout": -1, "decay": -2, "x": 2, "y": 1, "lambda1": -3, "lambda2": -4, "rate_a": -3},
)


def main() -> None:
    """Search and run what is missing, method by method, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default="cora,citeseer-lcc")
    parser.add_argument("--data-root", default=None)
    parser.add_argument("--models", default="sage,gcn", help="several runs may work on --out at once")
    parser.add_argument("--methods", default="solitude,lpgnn,base,random")
    parser.add_argument("--epsilon-a", type=float, nargs="*", default=EPSILON_A)
    parser.add_argument("--splits", type=int, default=10)
    parser.add_argument("--out", type=Path, default=Path("solitude"))
    chosen = parser.parse_args()
    torch.set_num_threads(1)
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    chosen.out.mkdir(parents=True, exist_ok=True)
    for method in chosen.methods.split(","):
        for data in chosen.data.split(","):
            graph = load_graph(data, root=chosen.data_root)
            for model in chosen.models.split(","):
                for band in BANDS:
                    wanted = [epsilon for epsilon in band if epsilon in chosen.epsilon_a]
                    if not wanted:
                        continue
                    tuned = "lpgnn" if method == "random" else method
                    settings = settings_of(method, model, search(chosen.out, graph, tuned, model, band))
                    for epsilon in wanted:
                        fill(chosen.out, graph, method, settings, epsilon, chosen.splits)
                        print(line(chosen.out, data, method, model, epsilon, settings), flush=True)


def settings_of(method: str, model: str, point: Mapping[str, int]) -> dict[str, Any]:
    """Return the arguments of `Solitude` at a point of the grid."""
    settings: dict[str, Any] = {"model": model, "denoiser": "calibration" if method == "solitude" else "none"}
    settings |= {"patience": 0}
    settings |= {"steps_x": STEPS[point["x"]], "steps_y": STEPS[point["y"]]} if "x" in point else {}
    settings |= {"steps_x": 0, "steps_y": 0} if method == "base" else {}
    settings |= {"epsilon_x": None} if method == "random" else {}
    names = {"rate": "learning_rate", "dropout": "dropout", "decay": "weight_decay", "rate_a": "learning_rate_a"}
    names |= {"lambda1": "lambda1", "lambda2": "lambda2"}
    return settings | {names[key]: 10.0**power for key, power in point.items() if key in names}


def ranges(method: str) -> dict[str, tuple[int, int]]:
    """Return the grid; the paper's, but for the rate of the calibration, which it does not name."""
    grid = dict.fromkeys(("rate", "dropout", "decay"), (-4, -1))
    if method != "base":
        grid |= {"x": (0, 3), "y": (0, 3)}
    if method == "solitude":
        grid |= {"lambda1": (-5, -2), "lambda2": (-5, -2), "rate_a": (-3, -1)}
    return grid


def search(out: Path, graph: Any, method: str, model: str, band: tuple[float, ...]) -> dict[str, int]:
    """Return the point with the best mean validation accuracy over the draws, searching on until TRIALS are done."""
    storage = f"sqlite:///{out / graph.schema.name}.db"
    name = f"{graph.schema.name} {model} {method} {{}}"
    study = optuna.create_study(
        study_name=name.format(band),
        storage=storage,
        load_if_exists=True,
        direction="maximize",
        sampler=optuna.samplers.TPESampler(seed=0, n_startup_trials=6),
        pruner=optuna.pruners.PercentilePruner(KEPT, n_startup_trials=4),
    )
    grid = ranges(method)
    if not study.trials:
        studies = optuna.get_all_study_names(storage)
        other_bands = [name.format(other) for other in BANDS if other != band and name.format(other) in studies]
        neighbours = [optuna.load_study(study_name=other, storage=storage) for other in other_bands]
        rows_then = [s.best_params for s in neighbours if any(t.value is not None for t in s.trials)]
        for start in [*rows_then, *STARTS]:
            study.enqueue_trial({key: start[key] for key in grid}, skip_if_exists=True)
    missing = TRIALS[method] - sum(trial.state.is_finished() for trial in study.trials)
    draws = [(epsilon, FIRST_DRAW + number) for number, epsilon in enumerate(band)]
    validate = partial(validation, graph, method, model)
    study.optimize(lambda trial: judged(trial, study, grid, validate, draws), n_trials=max(missing, 0))
    return dict(study.best_params)


def judged(
    trial: optuna.Trial,
    study: optuna.Study,
    grid: Mapping[str, tuple[int, int]],
    validate: Callable[[Mapping[str, int], float, int], float],
    draws: list[tuple[float, int]],
) -> float:
    """Return a trial's mean validation accuracy; it ends early where the draws so far say that others are better."""
    point = {name: trial.suggest_int(name, low, high) for name, (low, high) in grid.items()}
    for earlier in study.get_trials(deepcopy=False, states=(optuna.trial.TrialState.COMPLETE,)):
        if earlier.params == point:
            return float(earlier.value or 0.0)
    total = 0.0
    for done, (epsilon, draw) in enumerate(draws, start=1):
        total += validate(point, epsilon, draw)
        trial.report(total / done, done)
        if done < len(draws) and trial.should_prune():
            raise optuna.TrialPruned
    return total / len(draws)


def validation(graph: Any, method: str, model: str, point: Mapping[str, int], epsilon: float, draw: int) -> float:
    """Return the validation accuracy, in %, on a draw of split and noise."""
    settings = settings_of(method, model, point) | {"epochs": TRIAL_EPOCHS}
    fitted, split = trained(graph, settings, epsilon, draw)
    return 100 * fitted.score(graph, split.val)


def trained(graph: Any, settings: Mapping[str, Any], epsilon: float, draw: int) -> tuple[Any, Any]:
    """Return the method trained on split `draw` with noise `draw`, and the split."""
    split = random_split(graph, draw)
    method = Solitude(**{"epsilon_x": 1.0, "epsilon_a": epsilon, "mode": "both", "seed": draw, **settings})
    return method.fit(graph, split=split, randomness=SeededRandomness(draw)), split


def fill(out: Path, graph: Any, method: str, settings: Mapping[str, Any], epsilon: float, splits: int) -> None:
    """Run the splits of a cell that --out does not hold yet."""
    cell = {"data": graph.schema.name, "method": method, "epsilon_a": epsilon, "settings": dict(settings)}
    done = {row["split"] for row in rows(out, cell)}
    for number in sorted(set(range(splits)) - done):
        start = time.process_time()
        fitted, split = trained(graph, settings, epsilon, number)
        row = {
            **cell,
            "split": number,
            "validation": 100 * fitted.score(graph, split.val),
            "accuracy": 100 * fitted.score(graph, split.test),
            "cpu_seconds": time.process_time() - start,
        }
        with (out / "runs.jsonl").open("a") as file:
            file.write(json.dumps(row) + "\n")


def rows(out: Path, cell: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the finished runs of a cell with these settings."""
    if not (out / "runs.jsonl").exists():
        return []
    rows_then = [json.loads(text) for text in (out / "runs.jsonl").read_text().splitlines()]
    return [row for row in rows_then if all(row[name] == value for name, value in cell.items())]


def line(out: Path, data: str, method: str, model: str, epsilon: float, settings: Mapping[str, Any]) -> str:
    """Return a cell's row of the table."""
    rows_then = rows(out, {"data": data, "method": method, "epsilon_a": epsilon, "settings": dict(settings)})
    values = [row["accuracy"] for row in rows_then]
    mean = sum(values) / len(values)
    half = float(stats.t.ppf(0.975, len(values) - 1) * stats.sem(values)) if len(values) > 1 else float("nan")
    published, verdict = "none", ""
    if method in PUBLISHED[data, model]:
        published = PUBLISHED[data, model][method].split()[EPSILON_A.index(epsilon)]
        reference, width = (float(number) for number in published.split("±"))
        verdict = "ok" if mean >= reference - width else "BELOW"
    seconds = sum(row["cpu_seconds"] for row in rows_then) / len(rows_then)
    short = " ".join(f"{key}={value:g}" for key, value in settings.items() if isinstance(value, int | float))
    return (
        f"{data:12} {model:4} {method:8} eps_a {epsilon:g} published {published} ours {mean:.1f}±{half:.1f} "
        f"n={len(values)} {seconds:.1f} CPU s {verdict:5}  {short}"
    )


if __name__ == "__main__":
    main()
