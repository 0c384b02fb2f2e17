"""Lift of one answer: label-pool against answer-pool at the same most epsilon per person, paired by split and noise.

    python benchmarks/answers.py --data-root DIR --graphs facebook100-caltech36 --epsilons 1,2 --splits 15 --out FILE

People with a label send it, whichever method runs; the others send nothing (label-pool) or one answer (answer-pool).
Columns: label-pool; the question "status=1" with what answers mean learned; with it declared from the other
universities at hand; all values of status, learned; and the bound that no report at this epsilon exceeds.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
from scipy import stats

from graphveil.graphs import Graph, load_graph, random_split
from graphveil.graphs.facebook100 import load_facebook100
from graphveil.graphs.features import features_tensor
from graphveil.methods.base.released import topology_of
from graphveil.methods.local.answers import answered, collect_answers
from graphveil.methods.local.asked_privacy import AskedPrivacy
from graphveil.methods.local.label_pool import pool_labels
from graphveil.privacy import SeededRandomness
from graphveil.privacy.report_bound import best_accuracy

QUESTION, WHOLE = "status=1", "status"
OTHERS = ("caltech36", "reed98", "johnshopkins55", "cornell5", "harvard1", "wisconsin87")


def main() -> None:
    """Measure, append one row for each split, and print the intervals."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data-root", type=Path, required=True)
    parser.add_argument("--graphs", required=True)
    parser.add_argument("--epsilons", default="1,2")
    parser.add_argument("--splits", type=int, default=15)
    parser.add_argument("--out", type=Path, required=True)
    chosen = parser.parse_args()
    for name in chosen.graphs.split(","):
        graph, declared = load_graph(name, root=chosen.data_root), statistics_of_others(chosen.data_root, name)
        for epsilon in map(float, chosen.epsilons.split(",")):
            rows = list(measured(graph, epsilon, declared, chosen.splits))
            with chosen.out.open("a") as file:
                file.writelines(json.dumps({"graph": name, "epsilon": epsilon, **row}) + "\n" for row in rows)
            print(name, epsilon, summary(rows), flush=True)


def statistics_of_others(root: Path, name: str) -> str:
    """Return how often each class says yes to the question in all universities at hand but this one."""
    counts = np.ones((6, 2))
    for university in OTHERS:
        if university in name:
            continue
        parts = load_facebook100(university, root)
        answer = question_of(2.0, parts.schema).truth(features_tensor(parts.x))
        known = parts.y >= 0
        np.add.at(counts, (parts.y[known], answer[known]), 1)
    shares = counts / counts.sum(axis=1, keepdims=True)
    return ";".join(",".join(f"{share:.4f}" for share in row) for row in shares)


def question_of(epsilon: float, schema: object) -> object:
    """Return the question as devices are asked it."""
    return AskedPrivacy(epsilon, epsilon, question=QUESTION).asked(schema)  # type: ignore[arg-type]


def measured(graph: Graph, epsilon: float, declared: str, splits: int) -> Iterator[dict[str, float]]:
    """Yield the accuracies of every split, in percent."""
    for number in range(splits):
        split = random_split(graph, number)
        privacy = AskedPrivacy(epsilon, epsilon, question=QUESTION)
        released = collect_answers(graph, split, privacy, randomness=SeededRandomness(7000 + number))
        keep, flip = released.channel
        pool = pool_labels(
            topology_of(graph), released.labels, classes=6, keep=keep, flip=flip, seed=number
        ).probabilities
        whole = collect_answers(
            graph, split, AskedPrivacy(epsilon, epsilon, question=WHOLE), randomness=SeededRandomness(8000 + number)
        )
        test = split.test

        def right(probabilities: torch.Tensor, test: torch.Tensor = test) -> float:
            return 100 * float((probabilities.argmax(dim=1)[test] == graph.y[test]).double().mean())

        bound = best_accuracy(pool[test].double().numpy(), epsilon) - pool[test].double().numpy().max(axis=1)
        yield {
            "split": number,
            "test nodes": int(test.sum()),
            "label-pool": right(pool),
            "learned": right(answered(pool, released, None)),
            "declared": right(answered(pool, released, declared)),
            "all values": right(answered(pool, whole, None)),
            "bound": 100 * float(bound.mean()),
        }


def summary(rows: list[dict[str, float]]) -> str:
    """Return mean lifts over label-pool with 95% paired intervals."""
    base = np.array([row["label-pool"] for row in rows])
    parts = [f"label-pool {base.mean():.2f}"]
    for name in ("learned", "declared", "all values"):
        lift = np.array([row[name] for row in rows]) - base
        half = stats.t.ppf(0.975, len(lift) - 1) * lift.std(ddof=1) / len(lift) ** 0.5 if len(lift) > 1 else np.nan
        parts.append(f"{name} {lift.mean():+.2f}±{half:.2f}")
    parts.append(f"bound +{np.mean([row['bound'] for row in rows]):.2f}")
    return ", ".join(parts)


if __name__ == "__main__":
    main()
