"""Mode "guesses" by the unit that epsilon is the price of, and other ways to publish once at the same price.

    python benchmarks/federation_guesses.py --part units --out units.jsonl          one person at one holder
    python benchmarks/federation_guesses.py --part units --out units.jsonl --unit publication          one guess
    python benchmarks/federation_guesses.py --part vectors --data digits                one publication of a vector
    python benchmarks/federation_guesses.py --part variants --data digits               two rounds, two reports

Part "units" draws splits 0 to 4 at random, and writes each training to a file as it ends: started again, it goes on.
In the other parts splits are published ones, or random by the partition's seed.  A partition deals columns and edges at
random; settings are defaults, with hops = 2 where columns are few.  Parts "vectors" and "variants" let the other holder
train without noise, in the clear: their epsilon is of one publication.  Nothing is chosen by test nodes.  Noise is
seeded: this is a benchmark.
"""

from __future__ import annotations

import argparse
import itertools
import json
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path

import numpy as np
import torch
from scipy import stats
from torch import Tensor

from graphveil.aggregation import SparseMatrix, from_scipy
from graphveil.federation.core.publication import Guessing, Publication
from graphveil.federation.core.setting import Setting
from graphveil.federation.modes.guess_pool import evidence_of, pooled
from graphveil.federation.modes.guesses import WEIGHTS
from graphveil.federation.modes.local_network import LocalNetwork, guess_chances, guess_loss, label_loss, train_local
from graphveil.federation.modes.propagation import transition_matrix
from graphveil.federation.simulation import partition_graph, simulate_training, vertical_partition
from graphveil.graphs import Graph, Split, load_graph, published_split, random_split
from graphveil.mechanisms import PrivUnit
from graphveil.privacy import SeededRandomness

EPSILONS = (1.0, 2.0, 4.0, 8.0)
DELTA = 1e-4
#: Of part "units": an embedded graph, a citation graph, a university, and a family that chose nothing.
GRAPHS = "digits,cora,facebook100-johnshopkins55-2005-2009,twitch-es"
Report = tuple[Tensor, Tensor]


def main() -> None:
    """Run a part and print its table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", choices=("units", "vectors", "variants"), default="units")
    parser.add_argument("--data", help=f"names; default: digits, and for units {GRAPHS}")
    parser.add_argument("--data-root", type=Path, default=None)
    parser.add_argument("--partitions", type=int, default=5)
    parser.add_argument("--holders", default="2,5", help="of part units")
    parser.add_argument("--epsilons", default="2,8", help="of part units")
    parser.add_argument("--unit", choices=("person", "publication"), default="person", help="of part units")
    parser.add_argument("--degree-bounds", default="0", help="of part units, unit person")
    parser.add_argument("--out", type=Path, default=Path("units.jsonl"), help="of part units")
    chosen = parser.parse_args()
    torch.set_num_threads(1)
    if chosen.part == "units":
        units(cells_of(chosen), chosen.out, chosen.data_root)
        return
    name = chosen.data or "digits"
    graph, part = load_graph(name, root=chosen.data_root), {"vectors": vectors, "variants": variants}[chosen.part]
    results: dict[tuple[str, float], list[float]] = defaultdict(list)
    for seed in range(chosen.partitions):
        for way, epsilon, score in part(graph, seed):
            results[way, epsilon].append(score)
    print(f"{name}, {chosen.partitions} partitions: test accuracy in %")
    for (way, epsilon), scores in results.items():
        print(f"{way:24} epsilon {epsilon:3g}: {interval(scores)}", flush=True)


def interval(scores: Sequence[float]) -> str:
    """Return mean and 95% interval."""
    half = stats.t.ppf(0.975, len(scores) - 1) * stats.sem(scores) if len(scores) > 1 else float("nan")
    return f"{np.mean(scores):5.1f}±{half:.1f}"


def split_of(graph: Graph, seed: int) -> Split:
    """Return the published split, or a random one."""
    return published_split(graph) or random_split(graph, seed)


def hops_of(graph: Graph) -> int:
    """Return how far each holder's network looks: as many columns as Cora has need more."""
    return 4 if graph.schema.dimension > 1000 else 2


def accuracy(scores: Tensor, graph: Graph, split: Split) -> float:
    """Return the share of test nodes whose largest score is that of their class, in percent."""
    return 100 * float((scores.argmax(dim=1) == graph.y)[split.test].float().mean())


@dataclass(frozen=True)
class Cell:
    """One training of part "units"."""

    data: str
    holders: int
    unit: str
    degree_bound: int
    epsilon: float
    seed: int

    def scores(self, graph: Graph) -> dict[str, float]:
        """Return the test accuracy of the label holder alone, and of the federation, in percent."""
        split = random_split(graph, self.seed)
        members, holdings = partition_graph(graph, split, (1,) * self.holders, seed=self.seed)
        setting = Setting.of(
            members,
            len(graph.schema.classes),
            mode="guesses",
            unit=self.unit,
            epsilon=self.epsilon,
            degree_bound=self.degree_bound,
            hops=hops_of(graph),
        )
        simulate_training(setting, holdings, randomness=SeededRandomness(self.seed), seed=self.seed)
        head = holdings["holder1"].head
        assert head is not None and head.alone is not None and head.predictions is not None
        return {"alone": accuracy(head.alone, graph, split), "federation": accuracy(head.predictions, graph, split)}


def cells_of(chosen: argparse.Namespace) -> list[Cell]:
    """Return the trainings that the options ask for, splits last: a run that is cut off has whole rows."""
    numbers = [[int(item) for item in text.split(",")] for text in (chosen.holders, chosen.degree_bounds)]
    axes = (
        (chosen.data or GRAPHS).split(","),
        numbers[0],
        [chosen.unit],
        numbers[1],
        [float(item) for item in chosen.epsilons.split(",")],
        range(chosen.partitions),
    )
    return [Cell(*values) for values in itertools.product(*axes)]


def units(cells: Sequence[Cell], out: Path, root: Path | None) -> None:
    """Carry out what `out` does not have yet, and print its table: accuracy alone, and points gained over it."""
    rows = [json.loads(line) for line in out.read_text().splitlines()] if out.exists() else []
    done = {Cell(**row["cell"]): row["scores"] for row in rows}
    load = cache(lambda name: load_graph(name, root=root))
    for cell in cells:
        if cell not in done:
            done[cell] = cell.scores(load(cell.data))
            with out.open("a") as file:
                file.write(json.dumps({"cell": asdict(cell), "scores": done[cell]}) + "\n")
    for row, results in itertools.groupby(cells, key=lambda cell: list(asdict(cell).values())[:-1]):
        scores = [done[cell] for cell in results]
        gained = [item["federation"] - item["alone"] for item in scores]
        print(*row, f"alone {interval([item['alone'] for item in scores])}, gained {interval(gained)}", flush=True)


@dataclass(frozen=True)
class Desk:
    """The label holder of two holders: what it knows, and what it makes of what it is sent."""

    graph: Graph
    split: Split
    seed: int

    @property
    def classes(self) -> int:
        """c."""
        return len(self.graph.schema.classes)

    def trained(
        self, holder: int, more: Callable[[Tensor], Tensor] | None = None, teach: Tensor | None = None
    ) -> Tensor:
        """Return logits of one holder's network after training on labels, or on those of `teach` for all nodes."""
        features, edges = vertical_partition(self.graph, (1, 1), seed=self.seed)[holder]
        network = LocalNetwork(features, edges, self.classes, hops_of(self.graph))
        rows = self.split.train if teach is None else torch.ones_like(self.split.train)
        labels, clear = self.graph.y if teach is None else teach, torch.eye(self.classes)

        def loss(logits: Tensor) -> Tensor:
            own = label_loss(logits[rows], labels[rows], clear)
            return own if more is None else own + more(logits)

        train_local(network, rows.nonzero().squeeze(1), loss, epochs=200, rate=0.01, decay=1e-3)
        return network().detach()

    def spread(self, holder: int) -> SparseMatrix:
        """Return S of one holder."""
        edges = vertical_partition(self.graph, (1, 1), seed=self.seed)[holder][1]
        return from_scipy(transition_matrix(edges, int(self.graph.num_nodes)))

    def pool(self, alone: Tensor, taught: Tensor, evidence: Tensor) -> float:
        """Return the accuracy of the pool."""
        labels = self.graph.y[self.split.val]
        heard = torch.eye(self.classes).clamp_min(1e-12).log()[:, labels].T
        results, _ = pooled(alone, taught, evidence, self.spread(0), self.split.val, heard)
        return accuracy(results, self.graph, self.split)

    def report(self, guesses: Tensor, epsilon: float, number: int) -> Report:
        """Return reports of guesses, and the chance of each given the class, from validation nodes."""
        price = Guessing.best(epsilon, self.classes)
        assert price.response is not None
        drawn = price.response.randomize(guesses, randomness=SeededRandomness(100 * self.seed + number))
        sent = drawn if isinstance(drawn, Tensor) else drawn.labels
        val = self.split.val
        return sent, guess_chances(sent[val], self.graph.y[val], price.channel, torch.eye(self.classes))

    def learned(self, alone: Tensor, reports: list[Report]) -> tuple[Tensor, float]:
        """Return the taught network's logits and the pool's accuracy."""
        sent, chances = [item for item, _ in reports], [item for _, item in reports]
        val, labels = self.split.val, self.graph.y
        taught = max(
            (self.trained(0, lambda z, w=weight: w * guess_loss(z, sent, chances)) for weight in WEIGHTS),  # type: ignore[misc]
            key=lambda z: float((z.argmax(dim=1) == labels)[val].float().mean()),
        )
        every = torch.arange(int(self.graph.num_nodes))
        return taught, self.pool(alone, taught, evidence_of(sent, chances, every, len(every)))


def vectors(graph: Graph, seed: int) -> Iterator[tuple[str, float, float]]:
    """Yield the pool's accuracy for one guess, and for vectors of length 1 with Gaussian noise or by PrivUnit."""
    desk = Desk(graph, split_of(graph, seed), seed)
    alone, other = desk.trained(0), desk.trained(1)
    yield "alone", 0.0, accuracy(alone, graph, desk.split)
    generator = torch.Generator().manual_seed(seed)
    for epsilon in EPSILONS:
        sent, chances = desk.report(other.argmax(dim=1), epsilon, 0)
        evidence = evidence_of([sent], [chances], torch.arange(len(sent)), len(sent))
        yield "one guess", epsilon, desk.pool(alone, alone, evidence)
        for name, rows in readings(desk, other, generator).items():
            unit = rows / rows.norm(dim=1, keepdim=True).clamp_min(1e-9)
            sigma = Publication(epsilon, DELTA, 1, unit.shape[1]).sigma
            noisy = unit + sigma * torch.randn(unit.shape, generator=generator)
            yield f"{name}, Gaussian", epsilon, desk.pool(alone, alone, by_means(desk, noisy))
            best = PrivUnit(epsilon=epsilon, dimension=unit.shape[1], low=-1.0, high=1.0, radius=1.0)
            drawn = best.estimate(best.randomize(unit * (1 - 1e-6), randomness=SeededRandomness(seed)))
            yield f"{name}, PrivUnit", epsilon, desk.pool(alone, alone, by_means(desk, drawn))


def readings(desk: Desk, logits: Tensor, generator: torch.Generator) -> dict[str, Tensor]:
    """Return what the other holder could publish of each node: [n, k] by name."""
    sharp = torch.softmax(4 * logits / logits.std(), dim=1)
    centred = logits - logits.mean(dim=0)
    _, _, axes = torch.pca_lowrank(centred, q=min(4, desk.classes - 1))
    features, _ = vertical_partition(desk.graph, (1, 1), seed=desk.seed)[1]
    x = torch.from_numpy(features.toarray()).float()
    x, spread = x / x.norm(dim=1, keepdim=True).clamp_min(1e-9), desk.spread(1)
    for _ in range(hops_of(desk.graph)):
        x = spread @ x
    return {
        "random h, 16 columns": x @ torch.randn(x.shape[1], 16, generator=generator),
        "logits": logits - logits.mean(dim=1, keepdim=True),
        "logits, rank 4": centred @ axes,
        "sharpened softmax": sharp - sharp.mean(dim=1, keepdim=True),
    }


def by_means(desk: Desk, rows: Tensor) -> Tensor:
    """Return the classes' evidence in noisy rows [n, k]: discriminant analysis on validation nodes, centred [n, c]."""
    rows, labels, val = rows.double(), desk.graph.y, desk.split.val
    of_class = [val & (labels == place) for place in range(desk.classes)]
    means = torch.stack([rows[item if bool(item.any()) else val].mean(dim=0) for item in of_class])
    left = rows[val] - means[labels[val]]
    spread = left.T @ left / max(int(val.sum()) - desk.classes, 1)
    inverse = torch.linalg.inv(0.9 * spread + 0.1 * spread.diag().mean() * torch.eye(rows.shape[1]))
    results = rows @ inverse @ means.T - 0.5 * (means @ inverse * means).sum(dim=1)
    return (results - results.mean(dim=1, keepdim=True)).float()


def variants(graph: Graph, seed: int) -> Iterator[tuple[str, float, float]]:
    """Yield the pool's accuracy for one report at epsilon, and for two at half of it each."""
    desk = Desk(graph, split_of(graph, seed), seed)
    alone, other = desk.trained(0), desk.trained(1)
    guess, near = other.argmax(dim=1), (desk.spread(1) @ torch.softmax(other, dim=1)).argmax(dim=1)
    soft = torch.softmax(4 * other / other.std(), dim=1)
    drawn = torch.multinomial(soft, 1, generator=torch.Generator().manual_seed(seed)).squeeze(1)
    yield "alone", 0.0, accuracy(alone, graph, desk.split)
    for epsilon in EPSILONS[1:]:
        yield "one guess", epsilon, desk.learned(alone, [desk.report(guess, epsilon, 0)])[1]
        yield "drawn from softmax", epsilon, desk.learned(alone, [desk.report(drawn, epsilon, 1)])[1]
        first = desk.report(guess, epsilon / 2, 2)
        pair = [first, desk.report(near, epsilon / 2, 3)]
        yield "and about neighbours", epsilon, desk.learned(alone, pair)[1]
        # The label holder gives its own classes of all nodes away for the second round: nothing hides them.
        taught = desk.learned(alone, [first])[0].argmax(dim=1)
        labels = torch.where(desk.split.train, graph.y, taught)
        second = desk.report(desk.trained(1, teach=labels).argmax(dim=1), epsilon / 2, 4)
        yield "two rounds", epsilon, desk.learned(alone, [first, second])[1]


if __name__ == "__main__":
    main()
