"""Train the readers that `start=public` takes, on public graphs alone, and measure what they buy at little epsilon.

    python benchmarks/pretrain.py train --data-root DATA --task class-sums --out src/graphveil/methods/pretrained
    python benchmarks/pretrain.py measure --data-root DATA --task class-sums --graphs digits --out start.jsonl

`train` simulates what a curator publishes (class-sums), or what people send (label-pool), at epsilons drawn between 0.2
and 4, on the graphs of GRAPHS and on 60 made ones with other sizes, degrees, homophilies and numbers of classes; each
time the reader learns the classes of nodes whose own label took no part.  A minute each.  `--own FOLDER,...` trains on
graphs of your own in their place; `start=FILE` takes what comes out.
`measure` runs the method with and without `start` on the same splits and noise, continues a file, and prints a table;
on "val" it judges labelled nodes that neither train, choose nor test, for choices; on "test" those that test.
Noise is seeded: this is a benchmark.
"""

from __future__ import annotations

import argparse
import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy import stats
from torch import Tensor

from graphveil.aggregation import ReceiverRows
from graphveil.graphs import Graph, Split, known_labels, load_graph, random_split, social_graph
from graphveil.mechanisms import RandomizedResponse
from graphveil.methods.base.network.start import save_start
from graphveil.methods.base.people.released import topology_of
from graphveil.methods.curator import sum_clues as sums
from graphveil.methods.curator.class_sums import SOFT_BITS
from graphveil.methods.curator.evidence import corners, feature_evidence, messages, named_classes
from graphveil.methods.curator.privacy import CuratorPrivacy
from graphveil.methods.curator.stages.training import read_people
from graphveil.methods.local import label_pool
from graphveil.methods.registry import build_method
from graphveil.models.labels.label_prior import Channel
from graphveil.models.networks.perceptrons import ClassReader
from graphveil.privacy import SeededRandomness

GRAPHS = ("cora", "citeseer", "cora-ml", "facebook100-reed98-gender", "facebook100-reed98-2005-2009")
MADE = 60
#: Shares of training, validation and other nodes that splits are drawn with.
FRACTIONS = ((0.5, 0.25, 0.25), (0.5, 0.25, 0.25), (0.15, 0.1, 0.75))
EPSILONS = (0.2, 4.0)
DRAWS = {"class-sums": 6, "label-pool": 3}
HIDDEN, STEPS, RATE, BATCH, AT_ONCE = 16, 3000, 0.005, 512, 4
SEED = 0
CLUES = {"class-sums": (sums.OWN, sums.COMMON), "label-pool": (label_pool.OWN, label_pool.COMMON)}


@dataclass(frozen=True)
class Episode:
    """Clues own [m, c, p] and common [m, q] of nodes whose own label took no part in them, and their classes [m]."""

    own: Tensor
    common: Tensor
    classes: Tensor


def training_graphs(names: tuple[str, ...], root: str | None) -> Iterator[tuple[Graph, Split]]:
    """Yield every training graph with a split, named ones three times."""
    for name in names:
        graph = load_graph(name, root)
        for number, fractions in enumerate(FRACTIONS):
            yield graph, random_split(graph, 1000 + number, fractions)
    for seed in range(MADE):
        rng = np.random.default_rng(seed)
        nodes = int(np.exp(rng.uniform(np.log(300), np.log(2500))))
        classes, degree = int(rng.integers(2, 11)), float(np.exp(rng.uniform(np.log(3), np.log(min(80, nodes / 8)))))
        dimension, homophily, signal = int(rng.integers(30, 400)), rng.uniform(0.15, 0.95), rng.uniform(0, 0.5)
        more: dict[str, Any] = {"homophily": float(homophily), "apps": 10.0, "signal": float(signal), "seed": seed}
        graph = social_graph(nodes, degree, dimension, classes, **more)
        yield graph, random_split(graph, seed, FRACTIONS[seed % len(FRACTIONS)])


def sum_episodes(graph: Graph, split: Split, rng: np.random.Generator) -> Iterator[Episode]:
    """Yield what class-sums would publish of a graph, under either law of noise."""
    people = read_people(graph, split)
    evidence = feature_evidence(people, corners(people.classes))
    rows = ReceiverRows.of(graph.edge_index, people.nodes)
    rest = ~split.train & known_labels(graph)
    for number in range(DRAWS["class-sums"]):
        privacy, noise = CuratorPrivacy(drawn_epsilon(rng), 1e-6, None), SeededRandomness(int(rng.integers(2**31)))
        if number % 3:
            counted = privacy.counted_sum(graph.schema, bits=SOFT_BITS)
            figures, sigma = counted.perturb(rows, named_classes(people, evidence), noise), counted.sigma
        else:
            normal = privacy.noise(graph.schema, hops=1, columns=people.classes)
            sent = privacy.sums(graph.schema, normal).perturb(rows, messages(people, evidence), 1, noise)
            figures, sigma = sums.centred(sent), normal.sigmas[0]
        own, common = sums.sum_clues(people, evidence, figures, sigma)
        yield Episode(own[rest], common[rest], graph.y[rest])


def label_episodes(graph: Graph, split: Split, rng: np.random.Generator) -> Iterator[Episode]:
    """Yield what people would send in label-pool; who sends is read where their own fold takes no part."""
    classes, topology = len(graph.schema.classes), topology_of(graph)
    sends = split.train | split.val
    for _ in range(DRAWS["label-pool"]):
        channel = RandomizedResponse(epsilon=drawn_epsilon(rng), classes=classes)
        reported = channel.randomize(graph.y[sends].numpy(), randomness=SeededRandomness(int(rng.integers(2**31))))
        labels = torch.full_like(graph.y, -1)
        labels[sends] = reported.labels
        law = Channel(classes, channel.keep, channel.flip)
        read = label_pool.read_labels(topology, labels, law, seed=int(rng.integers(2**31)), work=0)
        own, common = label_pool.pool_clues(read)
        labelled = known_labels(graph).nonzero().squeeze(1)
        block = torch.where(read.folds >= 0, read.folds, label_pool.FOLDS)[labelled]
        yield Episode(own[labelled, block], common[labelled, block], graph.y[labelled])


def drawn_epsilon(rng: np.random.Generator) -> float:
    """Return an epsilon, evenly distributed in the logarithm."""
    low, high = np.log(EPSILONS)
    return float(np.exp(rng.uniform(low, high)))


def trained(episodes: list[Episode], task: str) -> ClassReader:
    """Return a reader trained on all episodes alike, whatever the size of their graphs."""
    generator = torch.Generator().manual_seed(SEED)
    reader = ClassReader(*CLUES[task], HIDDEN, generator=generator)
    optimiser = torch.optim.Adam(reader.parameters(), lr=RATE, weight_decay=1e-5)
    rates = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, STEPS)
    for _ in range(STEPS):
        optimiser.zero_grad()
        for which in torch.randint(len(episodes), (AT_ONCE,), generator=generator):
            item = episodes[int(which)]
            rows = torch.randint(len(item.classes), (BATCH,), generator=generator)
            scores = reader(item.own[rows], item.common[rows])
            (torch.nn.functional.cross_entropy(scores, item.classes[rows]) / AT_ONCE).backward()
        optimiser.step()
        rates.step()
    return reader


def train(chosen: argparse.Namespace) -> None:
    """Train one reader, write it and print the digest of its file."""
    names = tuple(chosen.own.split(",")) if chosen.own else GRAPHS
    make, rng = (sum_episodes if chosen.task == "class-sums" else label_episodes), np.random.default_rng(SEED)
    episodes = [item for graph, split in training_graphs(names, chosen.data_root) for item in make(graph, split, rng)]
    reader = trained(episodes, chosen.task)
    source = f"{MADE} graphs of social_graph, seeds 0 to {MADE - 1}"
    facts = {"graphs": [*names, source], "episodes": len(episodes), "steps": STEPS, "seed": SEED}
    file = save_start(chosen.out / f"{chosen.task}.safetensors", chosen.task, reader, facts)
    print(f"{file}: {file.stat().st_size} bytes, sha256 {hashlib.sha256(file.read_bytes()).hexdigest()}")


def measure(chosen: argparse.Namespace) -> None:
    """Run the splits that the file does not hold yet, with and without the reader, and print the table."""
    print("| graph | epsilon | without | with | gain, points |\n| --- | --- | --- | --- | --- |")
    for name in chosen.graphs.split(","):
        graph = load_graph(name, chosen.data_root)
        for epsilon in map(float, chosen.epsilons.split(",")):
            key = {"task": chosen.task, "graph": name, "epsilon": epsilon, "on": chosen.on, "train": chosen.train}
            for number in range(chosen.splits):
                fill(chosen.out, graph, {**key, "split": number}, chosen.start)
            print(line(chosen.out, key), flush=True)


def fill(out: Path, graph: Graph, key: dict[str, Any], start: str) -> None:
    """Run one split with and without the reader, unless the file holds it."""
    if any(key.items() <= row.items() for row in rows_of(out)):
        return
    split, judged = judged_split(graph, key)
    settings = {"epsilon": key["epsilon"]}
    if key["task"] == "class-sums":
        settings |= {"noise": "geometric", "delta": 1e-6}
    figures = {}
    for column, more in (("without", {}), ("with", {"start": start})):
        model = build_method(key["task"], settings | more, len(graph.schema.classes), seed=key["split"])
        model.fit(graph, split=split, randomness=SeededRandomness(key["split"]))
        figures[column] = 100 * model.score(graph, judged)
    with out.open("a") as file:
        file.write(json.dumps({**key, **figures}) + "\n")


def judged_split(graph: Graph, key: dict[str, Any]) -> tuple[Split, Tensor]:
    """Return a split and the nodes that are judged: those that test, or labelled ones that take no part at all."""
    split = random_split(graph, key["split"], (key["train"], key["train"] / 2, 0.25))
    if key["on"] == "test":
        return split, split.test
    half = torch.rand(len(split.val), generator=torch.Generator().manual_seed(key["split"])) < 0.5
    val = split.val & half
    return Split(split.train, val, split.test), known_labels(graph) & ~(split.train | val | split.test)


def rows_of(path: Path) -> list[dict[str, Any]]:
    """Return what a file holds; nothing where there is none."""
    return [json.loads(text) for text in path.read_text().splitlines()] if path.exists() else []


def line(out: Path, key: dict[str, Any]) -> str:
    """Return one line of the table, with the 95% interval of the gain, paired by split."""
    rows = [row for row in rows_of(out) if key.items() <= row.items()]
    without, beside = (np.array([row[column] for row in rows]) for column in ("without", "with"))
    gain = beside - without
    half = stats.t.ppf(0.975, len(gain) - 1) * gain.std(ddof=1) / np.sqrt(len(gain)) if len(gain) > 1 else np.nan
    middle = f"{without.mean():.1f} | {beside.mean():.1f} | {gain.mean():+.2f} ± {half:.2f}"
    return f"| {key['graph']} | {key['epsilon']:g} | {middle} |"


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("train", "measure"))
    parser.add_argument("--data-root", default=None)
    parser.add_argument("--task", choices=tuple(CLUES), default="class-sums")
    parser.add_argument("--out", type=Path, required=True, help="train: a folder; measure: a file")
    parser.add_argument("--own", default="", help="train: folders or names with commas, in place of GRAPHS")
    parser.add_argument("--graphs", default="digits", help="measure: names with commas")
    parser.add_argument("--epsilons", default="1,0.5")
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--train", type=float, default=0.5, help="measure: share of training nodes")
    parser.add_argument("--on", choices=("val", "test"), default="val")
    parser.add_argument("--start", default="public")
    chosen = parser.parse_args()
    torch.set_num_threads(1)
    {"train": train, "measure": measure}[chosen.what](chosen)


if __name__ == "__main__":
    main()
