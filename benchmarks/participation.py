"""What accuracy is left where only some people answer, and what counting their silence as zeros would cost.

    python benchmarks/participation.py --data cora,facebook,pubmed --splits 10 --out participation.jsonl

Who answers is drawn by coin, for everybody alike: whoever does not sends neither features nor a label, and is predicted
all the same. Accuracy is over the test nodes, whether they answered or not. Noise and answers are those of a split's
number, so all ways read the same reports:

    lpgnn              a missing report is no evidence (`graphveil.methods`)
    lpgnn, zeros       the same network, where a vector of zeros stands for a missing report
    label propagation  of the labels that came in

Differences are paired by split, with 95% intervals (Student's t). Hyper-parameters never see a clean label.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy import stats

from graphveil.aggregation import build_inputs, propagate, standardise
from graphveil.graphs import Graph, load_graph, random_split
from graphveil.methods.base.network.features import centred_features, labels_of, reported_of
from graphveil.methods.base.network.objectives import drop_objective
from graphveil.methods.base.people.released import Answers, LocalReports, randomize_people, topology_of
from graphveil.methods.base.settings import NetworkSettings
from graphveil.methods.local.label_propagation import LabelPropagation
from graphveil.methods.local.lpgnn import LPGNN
from graphveil.models import build_backbone, first_width
from graphveil.privacy import SeededRandomness
from graphveil.training import Schedule, train

SHARES = (1.0, 0.7, 0.3)
WAYS = ("lpgnn", "lpgnn, zeros", "label propagation")


def main() -> None:
    """Run what --out does not hold yet, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default="cora,facebook,pubmed", help="names with commas")
    parser.add_argument("--data-root", default=None)
    parser.add_argument("--splits", type=int, default=10)
    parser.add_argument("--epochs", type=int, default=100)
    parser.add_argument("--epsilon-x", type=float, default=2.0)
    parser.add_argument("--epsilon-y", type=float, default=2.0)
    parser.add_argument("--out", type=Path, default=Path("participation.jsonl"))
    given = parser.parse_args()
    torch.set_num_threads(1)
    for data in given.data.split(","):
        graph = load_graph(data, root=given.data_root)
        core = LPGNN(epsilon_x=given.epsilon_x, epsilon_y=given.epsilon_y, epochs=given.epochs)
        for number in range(given.splits):
            fill(given.out, data, graph, core, number)
        table(given.out, data, given.splits)


def fill(out: Path, data: str, graph: Graph, core: LPGNN, number: int) -> None:
    """Write the runs of a split that are not there yet."""
    done = {(row["share"], row["way"]) for row in rows_of(out, data) if row["split"] == number}
    wanted = [(share, way) for share in SHARES for way in WAYS if (share, way) not in done]
    if not wanted:
        return
    split = random_split(graph, number)
    whole = randomize_people(graph, split, core.privacy, randomness=SeededRandomness(number))
    # One number a person and split: whoever answers at 30% answers at 70% too.
    luck = torch.from_numpy(np.random.default_rng([number, 0xA5]).random(int(graph.num_nodes)))
    for share, way in wanted:
        reports = of_some(whole, luck < share)
        rows = scores(way, core, reports, graph, number).argmax(dim=1)[split.test]
        row = {"data": data, "way": way, "share": share, "split": number}
        accuracy = float((rows == graph.y[split.test]).double().mean()) * 100
        with out.open("a") as file:
            file.write(json.dumps({**row, "accuracy": accuracy}) + "\n")


def of_some(whole: LocalReports, who: torch.Tensor) -> LocalReports:
    """Return the reports of some; those of all others never came in."""
    sent = {name: rows[who] for name, rows in whole.features.to_tensors().items()}
    features = Answers(who, type(whole.features).from_tensors(sent))
    labels = torch.where(who, whole.labels, -1)
    return replace(whole, features=features, labels=labels, train=whole.train & who, val=whole.val & who)


def scores(way: str, core: LPGNN, reports: LocalReports, graph: Graph, number: int) -> torch.Tensor:
    """Return the scores [n, c] of a way to read reports."""
    settings = replace(core.settings, seed=number)
    if way == "lpgnn":
        budgets = {"epsilon_x": core.privacy.epsilon_x, "epsilon_y": core.privacy.epsilon_y}
        fresh = LPGNN(**budgets, epochs=settings.epochs, seed=number)  # type: ignore[arg-type]
        return fresh.fit_reports(reports, topology_of(graph)).probabilities()
    if way == "lpgnn, zeros":
        return with_zeros(reports, graph, settings)
    labels = LabelPropagation(epsilon_y=core.privacy.epsilon_y, seed=number)
    return labels.fit_reports(replace(reports, privacy=labels.privacy), topology_of(graph)).probabilities()


def with_zeros(reports: LocalReports, graph: Graph, settings: NetworkSettings) -> torch.Tensor:
    """Return what LPGNN's network makes of reports where zeros stand for those that are missing [n, c].

    Zeros are the middle of the range, less itself: P^K (C + r o^T) has P^K r where everybody's answer has P^K 1.
    """
    topology, labels, mechanism = topology_of(graph), labels_of(reports), reports.privacy.features(reports.schema)
    p, who = topology.propagation(), reported_of(reports.features)
    assert who is not None
    built = build_inputs(
        centred_features(mechanism, reports.features),
        p,
        settings.steps_x,
        width=first_width(settings.model, settings.hidden),
        offset=mechanism.midpoint,
    )
    inputs = replace(built, row_sums=propagate(p, who.float().unsqueeze(1), settings.steps_x))
    generator = torch.Generator().manual_seed(settings.seed)
    inputs = standardise(inputs, generator=generator)
    classes = labels.channel.classes
    model = build_backbone(
        settings.model, inputs.dimension, settings.hidden, classes, settings.dropout, generator=generator
    )
    objective = drop_objective(labels.values, labels.train, labels.val, p, settings.steps_y, labels.channel)
    rate, decay = settings.learning_rate, settings.weight_decay
    schedule = Schedule(settings.epochs, rate, decay, settings.selection, settings.patience)
    structure = topology.structure(settings.model)
    return train(model, inputs, structure, objective, schedule, seed=settings.seed).logits


def rows_of(out: Path, data: str) -> list[dict[str, Any]]:
    """Return the finished runs on a data set."""
    rows = [json.loads(text) for text in out.read_text().splitlines()] if out.exists() else []
    return [row for row in rows if row["data"] == data]


def table(out: Path, data: str, splits: int) -> None:
    """Print a line for each share of people."""
    rows = [row for row in rows_of(out, data) if row["split"] < splits]
    for share in SHARES:
        by_way = {
            way: np.array([row["accuracy"] for row in rows if (row["share"], row["way"]) == (share, way)])
            for way in WAYS
        }
        gain = by_way["lpgnn"] - by_way["lpgnn, zeros"]
        half = float(stats.t.ppf(0.975, len(gain) - 1) * stats.sem(gain)) if len(gain) > 1 else float("nan")
        means = " | ".join(f"{by_way[way].mean():.1f}" for way in WAYS)
        print(f"| {data} | {share:.0%} | {means} | {gain.mean():+.1f} ± {half:.1f} | {len(gain)} |", flush=True)


if __name__ == "__main__":
    main()
