"""Images rebuilt from embeddings: what an inversion network makes of the digits' embeddings, without and with noise.

    python benchmarks/reconstruction.py --seeds 10 --picture docs/pictures/reconstruction.svg

The embeddings are those of `digit_images.py`: 16 numbers of a small convolutional network that was trained on the
public half of the digits.  The adversary knows that half, pixels and what is published of them, and rebuilds the 32
private pixels of everybody else.  Each seed draws another half, trains another extractor, and adds other noise.

`likelihood` is no reconstruction: it is the AUC of the adversary who knows the mechanism and the embeddings of both
candidates, and asks which is the likelier one for this report.  Nobody can do better with the report alone (Neyman and
Pearson), so it says how much there was to find.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
import torch

from digit_images import digit_embeddings
from graphveil.attacks import AttackResult, reconstruction
from graphveil.attacks.result import auc_of
from graphveil.graphs import load_graph
from graphveil.methods.release.privacy import ReleasePrivacy
from graphveil.methods.runs.intervals import interval
from graphveil.privacy import Guarantee, SeededRandomness
from graphveil.reports.attacks.figure import image_grid

OPEN = "published without noise"
MECHANISMS = ("multi-bit", "feature-rr")
EPSILONS = (1.0, 4.0, 8.0, 64.0)
SHOWN = (OPEN, "multi-bit, epsilon 64", "multi-bit, epsilon 8", "multi-bit, epsilon 1", "feature-rr, epsilon 8")


@dataclass(frozen=True)
class Published:
    """Embeddings as they are published: their guarantee, and how likely each is under two candidates."""

    guarantee: Guarantee | None
    rows: np.ndarray
    mechanism: Any = None
    reports: Any = None


def main() -> None:
    """Measure, print the table, draw the first seed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--picture", type=Path)
    args = parser.parse_args()
    torch.set_num_threads(1)
    start = time.process_time()
    by_graph: dict[str, list[tuple[AttackResult, float]]] = {}
    for seed in range(args.seeds):
        for name, result in measured(seed).items():
            by_graph.setdefault(name, []).append(result)
    table(by_graph)
    print(f"\n{args.seeds} seeds, {time.process_time() - start:.0f} CPU seconds")
    if args.picture is not None:
        draw({name: results[0][0] for name, results in by_graph.items()}, args.picture)


def measured(seed: int) -> dict[str, tuple[AttackResult, float]]:
    """Return what is found of each way to publish, and the AUC of the likelihood."""
    pixels = load_graph("digits")
    embedded, half, scores = digit_embeddings(seed)
    ways = {OPEN: Published(None, embedded.x.numpy())}
    for mechanism in MECHANISMS:
        for epsilon in EPSILONS:
            privacy = ReleasePrivacy(epsilon, float("inf"), features=mechanism)
            if mechanism == "feature-rr":
                privacy = replace(privacy, scores=scores)
            ways[f"{mechanism}, epsilon {epsilon:g}"] = published(privacy, embedded, seed)
    trained, by_graph = half.numpy(), {}
    for name, way in ways.items():
        result = reconstruction(way, pixels, observed=way.rows, auxiliary=trained, seed=seed)
        by_graph[name] = (result, likelihood(way, embedded, ~trained, seed))
    return by_graph


def published(privacy: ReleasePrivacy, graph: Any, seed: int) -> Published:
    """Return the graph's rows behind noise."""
    mechanism = privacy.feature_mechanism(graph.schema)
    reports = mechanism.randomize(graph.x, randomness=SeededRandomness(1000 + seed))
    rows: Any = mechanism.centred(reports)
    return Published(mechanism.guarantee, rows.toarray() if hasattr(rows, "toarray") else rows, mechanism, reports)


def likelihood(way: Published, graph: Any, hidden: np.ndarray, seed: int) -> float:
    """Return how well a report's own probability tells a person from another of the same class."""
    if way.mechanism is None:
        return 1.0
    rng, other = np.random.default_rng(seed), np.arange(len(hidden))
    for label in range(10):
        places = rng.permutation(np.flatnonzero(hidden & (graph.y.numpy() == label)))
        other[places] = np.roll(places, 1)
    own, theirs = (way.mechanism.log_likelihood(way.reports, x).numpy()[hidden] for x in (graph.x, graph.x[other]))
    return auc_of(own, theirs)


def table(by_graph: dict[str, list[tuple[AttackResult, float]]]) -> None:
    """Print a row for each way to publish, and two for guessing the mean."""
    print("| embeddings | squared error | structural similarity | re-identification AUC | found at 1% | likelihood |")
    print("| --- | --- | --- | --- | --- | --- |")
    for name, results in by_graph.items():
        cells = [
            interval_text([result.figures["mean squared error"] for result, _ in results], 4),
            interval_text([result.figures["structural similarity"] for result, _ in results], 3),
            interval_text([result.auc.mean for result, _ in results], 3),
            interval_text([100 * result.tpr_at_1_fpr.mean for result, _ in results], 1),
            interval_text([best for _, best in results], 3),
        ]
        print(f"| {name} | {' | '.join(cells)} |")
    plain = [result for result, _ in by_graph[OPEN]]
    for name in ("class mean", "overall mean"):
        errors = interval_text([result.figures[f"mean squared error of the {name}"] for result in plain], 4)
        alike = interval_text([result.figures[f"structural similarity of the {name}"] for result in plain], 3)
        print(f"| none: the {name} | {errors} | {alike} | 0.5 | 1 | 0.5 |")
    over = [name for name, results in by_graph.items() if any(result.beats_limit for result, _ in results)]
    print(f"\nmore than epsilon allows: {', '.join(over) or 'none'}")


def interval_text(values: list[float], digits: int) -> str:
    """Return a mean and its 95% interval."""
    score = interval([np.array([value]) for value in values], difference=True)
    return f"{score.mean:.{digits}f} ({score.low:.{digits}f} to {score.high:.{digits}f})"


def draw(by_graph: dict[str, AttackResult], path: Path) -> None:
    """Write the picture, the first person attacked of each class, on a white box that suits light and dark pages."""
    samples = {name: seen for name in SHOWN if (seen := by_graph[name].samples) is not None}
    rows = [("original", samples[OPEN].original), *((name, seen.reconstructed) for name, seen in samples.items())]
    with matplotlib.rc_context({"svg.hashsalt": "graphveil"}):
        image_grid(samples[OPEN].classes, rows).savefig(path, facecolor="white", metadata={"Date": None})


if __name__ == "__main__":
    main()
