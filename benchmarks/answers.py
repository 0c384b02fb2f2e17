"""Lift of one answer: label-pool against answer-pool at the same most epsilon per person, paired by split and noise.

    python benchmarks/answers.py --data-root DIR --graphs facebook100-caltech36 --epsilons 1,2 --splits 15 --out FILE
    python benchmarks/answers.py --data-root DIR --graphs twitch-ru --question-of twitch-es --epsilons 2 --out FILE

People with a label send it, whichever method runs; the others send nothing (label-pool) or one answer (answer-pool).
Columns: label-pool; one's own answer alone, what answers mean being learned; with friends' answers too; with declared
statistics of other graphs of the kind; on Facebook100 all values of status, learned; and the bound that no report about
oneself exceeds at this epsilon.  The question is "status=1" on Facebook100; elsewhere the feature that says most of the
class in --question-of, another graph with the same features, taken as published.  A run resumes where it stopped.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy import stats

from graphveil.graphs import Graph, Split, load_graph, random_split
from graphveil.graphs.named.facebook100 import load_facebook100
from graphveil.graphs.value.features import features_tensor
from graphveil.methods.base.people.released import LocalReports, Topology, topology_of
from graphveil.methods.local.label_pool import pool_labels
from graphveil.methods.local.question import QuestionPrivacy, collect_answers, posterior_with_answers
from graphveil.privacy import SeededRandomness
from graphveil.privacy.accounting.report_bound import best_accuracy

QUESTION, WHOLE = "status=1", "status"
OTHERS = ("caltech36", "reed98", "johnshopkins55", "cornell5", "harvard1", "wisconsin87")
Row = dict[str, Any]


@dataclass(frozen=True)
class Plan:
    """What is asked, how often each class gives each answer elsewhere, and the column in which all values are asked."""

    question: str
    statistics: str
    whole: str | None


def main() -> None:
    """Measure, append one row for each split, and print the intervals."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-root", type=Path, required=True)
    parser.add_argument("--graphs", required=True)
    parser.add_argument("--question-of", default=None)
    parser.add_argument("--epsilons", default="1,2")
    parser.add_argument("--splits", type=int, default=15)
    parser.add_argument("--out", type=Path, required=True)
    chosen = parser.parse_args()
    for name in chosen.graphs.split(","):
        graph = load_graph(name, root=chosen.data_root)
        plan = Plan(QUESTION, statistics_of_others(chosen.data_root, name), WHOLE)
        if chosen.question_of:
            plan = plan_of(load_graph(chosen.question_of, root=chosen.data_root))
        for epsilon in map(float, chosen.epsilons.split(",")):
            rows = [row for row in read(chosen.out) if (row["graph"], row["epsilon"]) == (name, epsilon)]
            for number in sorted(set(range(chosen.splits)) - {row["split"] for row in rows}):
                rows.append({"graph": name, "epsilon": epsilon, **measured(graph, epsilon, plan, number)})
                with chosen.out.open("a") as file:
                    file.write(json.dumps(rows[-1]) + "\n")
            print(name, epsilon, plan.question, summary(rows), flush=True)


def read(path: Path) -> list[Row]:
    """Return the rows of a file, none if there is no file."""
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def statistics_of_others(root: Path, name: str) -> str:
    """Return how often each class says yes to the question in all universities at hand but this one."""
    counts = np.ones((6, 2))
    for university in OTHERS:
        if university not in name:
            counts += counted(load_facebook100(university, root), QUESTION)
    return spelled(counts)


def plan_of(graph: Graph) -> Plan:
    """Return the feature that says most of the class in a graph, as a question, and how each class answers it."""
    columns = graph.x.to_dense().numpy() >= 0.5
    labelled, classes = graph.y.numpy() >= 0, len(graph.schema.classes)
    of_class = np.eye(classes)[graph.y.numpy()[labelled]]
    yes = of_class.T @ columns[labelled] + 0.5
    cells = np.stack([of_class.sum(axis=0)[:, None] + 1 - yes, yes])
    shares = cells / cells.sum(axis=(0, 1), keepdims=True)
    alone = shares.sum(axis=0, keepdims=True) * shares.sum(axis=1, keepdims=True)
    best = int((shares * np.log(shares / alone)).sum(axis=(0, 1)).argmax())
    return Plan(f"{best}>=0.5", spelled(cells[:, :, best].T), None)


def counted(parts: Any, question: str) -> np.ndarray:
    """Return how many people of each class give each answer [c, 2]."""
    answer = QuestionPrivacy(1.0, 1.0, question=question).question_for(parts.schema).truth(features_tensor(parts.x))
    counts, labelled = np.zeros((len(parts.schema.classes), 2)), parts.y >= 0
    np.add.at(counts, (parts.y[labelled], answer[labelled]), 1)
    return counts


def spelled(counts: np.ndarray) -> str:
    """Return counts [c, k] as the setting `statistics`."""
    shares = counts / counts.sum(axis=1, keepdims=True)
    return ";".join(",".join(f"{share:.4f}" for share in row) for row in shares)


def measured(graph: Graph, epsilon: float, plan: Plan, number: int) -> Row:
    """Return the accuracies of one split, in percent."""
    split = random_split(graph, number)
    test = split.test
    released = reports_to(graph, split, epsilon, plan.question, 7000 + number)
    topology = topology_of(graph)
    pool = pool_labels(topology, released.labels, released.channel, seed=number).probabilities

    def right(probabilities: torch.Tensor) -> float:
        return 100 * float((probabilities.argmax(dim=1)[test] == graph.y[test]).double().mean())

    predicted = pool[test].double().numpy()
    row = {
        "split": number,
        "test nodes": int(test.sum()),
        "label-pool": right(pool),
        "own answer": right(
            posterior_with_answers(pool, released, Topology(torch.empty(2, 0, dtype=torch.int64), len(pool)), None)
        ),
        "learned": right(posterior_with_answers(pool, released, topology, None)),
        "declared": right(posterior_with_answers(pool, released, topology, plan.statistics)),
        "bound": 100 * float((best_accuracy(predicted, epsilon) - predicted.max(axis=1)).mean()),
    }
    if plan.whole is None:
        return row
    whole = reports_to(graph, split, epsilon, plan.whole, 8000 + number)
    return row | {"all values": right(posterior_with_answers(pool, whole, topology, None))}


def reports_to(graph: Graph, split: Split, epsilon: float, question: str, seed: int) -> LocalReports:
    """Return labels of some and answers of the others."""
    privacy = QuestionPrivacy(epsilon, epsilon, question=question)
    return collect_answers(graph, split, privacy, randomness=SeededRandomness(seed))


def summary(rows: list[Row]) -> str:
    """Return mean lifts over label-pool with 95% paired intervals."""
    base = np.array([row["label-pool"] for row in rows])
    parts = [f"label-pool {base.mean():.2f}"]
    for name in ("own answer", "learned", "declared", "all values"):
        if name not in rows[0]:
            continue
        lift = np.array([row[name] for row in rows]) - base
        half = stats.t.ppf(0.975, len(lift) - 1) * lift.std(ddof=1) / len(lift) ** 0.5 if len(lift) > 1 else np.nan
        parts.append(f"{name} {lift.mean():+.2f}±{half:.2f}")
    parts.append(f"bound +{np.mean([row['bound'] for row in rows]):.2f}")
    return ", ".join(parts)


if __name__ == "__main__":
    main()
