"""HeteroRR's Figures 6 and 7: what a network trained on a released graph scores, by mechanism and epsilon.

    python benchmarks/heterorr.py --part features --data ppi-part,facebook100-caltech36,digits --out heterorr.jsonl
    python benchmarks/heterorr.py --part edges --data ppi-part,facebook100-caltech36 --out heterorr.jsonl

Figure 6 (features): FeatureRR beside the mechanisms that send a few sampled features, all at the same epsilon for the
whole vector; edges and labels public.  Figure 7 (edges): a share rho of the edges is private, every method protects
the same pairs at the same epsilon for one edge; features and labels public.  5 releases, each trained on from 2 seeds,
which also draw the split; intervals are over releases (95%, Student's t), the seeds of one release averaged.  The
network is the paper's two-layer GCN.  Controls: no noise at all, random features, no private edges.  Noise is seeded:
these are measurements of public data.  Finished rows are skipped.

`ppi-part` is the validation graph of PPI (1,825 nodes), where a mechanism that answers for every pair can be run too.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy import stats
from sklearn.metrics import f1_score
from torch import Tensor

from digit_images import digit_embeddings
from graphveil.graphs import Split, load_graph, make_graph, normalise_edges, random_split
from graphveil.mechanisms import FeatureRR
from graphveil.methods.base.network.network import Labels, train_network
from graphveil.methods.base.network.objectives import micro_f1
from graphveil.methods.base.people.local_privacy import LocalPrivacy
from graphveil.methods.base.people.released import Topology
from graphveil.methods.base.settings import NetworkSettings
from graphveil.methods.release.scores import public_part, public_scores
from graphveil.methods.release.structure import preserved
from graphveil.models.labels.label_prior import Channel
from graphveil.privacy import SeededRandomness

EPSILONS = (0.1, 0.5, 1.0, 2.0)
SHARES = (0.05, 0.1, 0.2)
RIVALS = ("duchi", "piecewise", "hybrid", "three-outputs", "sub-optimal", "multi-bit")
FEATURES = ("feature-rr", "feature-rr unbiased", "feature-rr scores", *RIVALS)
EDGES = ("public-tree", "mcmc", "lap-graph", "edge-rand", "priv-hrg")
#: What is printed of a release's structure: homophily of synthetic and of private edges, and two distances of those.
KEPT = ("epsilon", "edges", "true", "common", "chance", "alike", "of true", "degrees", "blocks")
PARTS = ("synthetic", "private_edges_only")
NETWORK = NetworkSettings(
    model="gcn", steps_x=0, steps_y=0, hidden=32, dropout=0.2, learning_rate=0.03, weight_decay=5e-4, epochs=60
)


def main() -> None:
    """Run what is missing and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", choices=("features", "edges"), required=True)
    parser.add_argument("--data", default="ppi-part,facebook100-caltech36")
    parser.add_argument("--data-root", default=None)
    parser.add_argument("--releases", type=int, default=5)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--epsilons", default=",".join(f"{e:g}" for e in EPSILONS))
    parser.add_argument("--shares", default=",".join(f"{s:g}" for s in SHARES), help="of the edges that are private")
    parser.add_argument("--methods", default=None, help="names with commas; default: all")
    parser.add_argument(
        "--steps", type=int, default=0, help="hops that the features are smoothed over before the network"
    )
    parser.add_argument("--out", type=Path, default=Path("heterorr.jsonl"))
    chosen = parser.parse_args()
    torch.set_num_threads(1)
    for data in chosen.data.split(","):
        graph, split_of, extra = load(data, chosen.data_root, scored=chosen.part == "features")
        fill = fill_features if chosen.part == "features" else fill_edges
        fill(chosen, data, graph, split_of, extra)
        (table_features if chosen.part == "features" else table_edges)(chosen, data)


def load(name: str, root: str | None, *, scored: bool) -> tuple[Any, Callable[[int], Split], dict[str, Any]]:
    """Return a graph, its split by seed and, where `scored`, budget shares of a declared public part for FeatureRR."""
    if name == "digits":
        graph, half, scores = digit_embeddings()
        return graph, lambda seed: outside(random_split(graph, seed, (0.5, 0.2, 0.3)), half), {"scores": scores}
    graph = ppi_part(load_graph("ppi", root=root)) if name == "ppi-part" else load_graph(name, root=root)
    if not scored:
        return graph, lambda seed: random_split(graph, seed), {}
    public = torch.zeros(graph.num_nodes, dtype=torch.bool)
    public[torch.randperm(graph.num_nodes, generator=torch.Generator().manual_seed(7))[: graph.num_nodes // 10]] = True
    scores = public_scores(public_part(graph, public))
    return graph, lambda seed: outside(random_split(graph, seed), public), {"scores": scores}


def outside(split: Split, public: Tensor) -> Split:
    """Return the split with the declared public nodes left out: they made the scores."""
    return Split(split.train & ~public, split.val & ~public, split.test & ~public)


def ppi_part(graph: Any) -> Any:
    """Return PPI's validation graph by itself."""
    inside = graph.val_mask
    number = torch.cumsum(inside.long(), 0) - 1
    ends = number[graph.edge_index[:, inside[graph.edge_index].all(dim=0)]].numpy()
    edges, _ = normalise_edges(*ends, nodes=int(inside.sum()), directed=False)
    rows = graph.x.to_dense()[inside]
    return make_graph(rows, edges, graph.y[inside], replace(graph.schema, name="ppi-part"))


# ---- Figure 6 ----


def fill_features(chosen: Any, data: str, graph: Any, split_of: Callable[[int], Split], extra: dict[str, Any]) -> None:
    """Run the missing rows of one data set."""
    methods = chosen.methods.split(",") if chosen.methods else ["clean", "random", *FEATURES]
    for release in range(chosen.releases):
        for method in methods:
            for epsilon in [math.inf] if method in ("clean", "random") else numbers(chosen.epsilons):
                key = {"part": "features", "data": data, "method": method, "epsilon": epsilon, "release": release}
                key["steps"] = chosen.steps
                if not missing(chosen.out, key, chosen.seeds):
                    continue
                x = randomized(graph, method, epsilon, release, extra)
                for seed in range(chosen.seeds):
                    write(chosen.out, key, seed, train(graph, x, graph.edge_index, split_of(seed), seed, chosen.steps))


def randomized(graph: Any, method: str, epsilon: float, release: int, extra: dict[str, Any]) -> Any:
    """Return one release of the features: estimates less the middle of the range."""
    noise = SeededRandomness(10_000 * release + int(100 * min(epsilon, 99)))
    schema = graph.schema
    if method == "clean":
        return graph.x
    if method == "random":
        return np.random.default_rng(release).standard_normal((graph.num_nodes, schema.dimension)).astype(np.float32)
    facts = {"dimension": schema.dimension, "low": schema.low, "high": schema.high}
    if not method.startswith("feature-rr"):
        mechanism = LocalPrivacy(epsilon, math.inf, method).features(schema)
        return mechanism.centred(mechanism.randomize(graph.x, randomness=noise))
    shares = extra["scores"].shares if method.endswith("scores") else None
    mechanism = FeatureRR(epsilon=epsilon, shares=shares, **facts)
    reports = mechanism.randomize(graph.x, randomness=noise)
    if method.endswith("unbiased"):
        return mechanism.centred(reports)
    return (mechanism.raw(reports) - mechanism.midpoint).numpy()


# ---- Figure 7 ----


def fill_edges(chosen: Any, data: str, graph: Any, split_of: Callable[[int], Split], extra: dict[str, Any]) -> None:
    """Run the missing rows of one data set; every method protects the same pairs."""
    from graphveil.graphs.public_edges import draw_private
    from graphveil.mechanisms import protected_pairs

    methods = chosen.methods.split(",") if chosen.methods else ["clean", "no private edges", *EDGES]
    labels = graph.y if graph.y.dim() == 2 else graph.y.clamp_min(-1)
    for rho in numbers(chosen.shares):
        drawn = draw_private(graph, rho, seed=0)
        domain, private = protected_pairs(graph.num_nodes, graph.edge_index, public_edges=drawn.public_edges)
        public = domain.public
        for release in range(chosen.releases):
            for method in methods:
                for epsilon in [math.inf] if method in ("clean", "no private edges") else numbers(chosen.epsilons):
                    key = {"part": "edges", "data": data, "method": method, "epsilon": epsilon, "release": release}
                    key |= {"rho": rho, "steps": chosen.steps}
                    if not missing(chosen.out, key, chosen.seeds):
                        continue
                    start = time.process_time()
                    synthetic_edges = synthetic(method, domain, private, epsilon, release)
                    facts = {"release_seconds": time.process_time() - start}
                    if release == 0 and method != "clean":
                        facts["kept"] = preserved_facts(graph, public, synthetic_edges, private, domain.size, labels)
                    pairs = torch.cat([public, synthetic_edges], dim=1).numpy()
                    edges, _ = normalise_edges(*pairs, nodes=graph.num_nodes, directed=False)
                    for seed in range(chosen.seeds):
                        scored = train(graph, graph.x, edges, split_of(seed), seed, chosen.steps)
                        write(chosen.out, key, seed, scored | facts)


def synthetic(method: str, domain: Any, private: Tensor, epsilon: float, release: int) -> Tensor:
    """Return one release of the private edges as pairs [2, S]."""
    if method == "clean":
        return private
    if method == "no private edges":
        return private[:, :0]
    from graphveil.methods.release.edges import Chains, make_edges
    from graphveil.methods.release.privacy import ReleasePrivacy

    privacy = ReleasePrivacy(epsilon_x=math.inf, epsilon_a=epsilon, edges=method)
    noise = SeededRandomness(20_000 + 10_000 * release + int(100 * epsilon))
    return make_edges(privacy, domain, private, chains=Chains(), randomness=noise).pairs


def preserved_facts(
    graph: Any, public: Tensor, synthetic_edges: Tensor, private: Tensor, size: int, labels: Tensor
) -> dict[str, Any]:
    """Return what one release keeps of the structure, without the tables of densities."""
    values = preserved(graph.num_nodes, public, synthetic_edges, true=private, protected=size, labels=labels)
    facts = values.curator()
    for part in ("truth", "private_edges_only"):
        facts[part] = {name: value for name, value in facts[part].items() if name != "densities"}
    facts["synthetic"] = {name: value for name, value in values.synthetic.to_dict().items() if name != "densities"}
    return facts


# ---- one training ----


def train(graph: Any, x: Any, edges: Tensor, split: Split, seed: int, steps: int) -> dict[str, float]:
    """Return scores of a network trained on released features and edges, in percent."""
    start = time.process_time()
    labels = Labels(graph.y, split.train, split.val, Channel(len(graph.schema.classes)))
    settings = replace(NETWORK, seed=seed, steps_x=steps)
    logits = train_network(x, 0.0, labels, Topology(edges, graph.num_nodes), settings).logits
    return scores(logits[split.test], graph.y[split.test]) | {"seconds": time.process_time() - start}


def scores(logits: Tensor, y: Tensor) -> dict[str, float]:
    """Return accuracy, F1 (several labels: micro-averaged, else macro) and AUC (mean over labels) in percent."""
    if y.dim() == 2:
        values = logits > 0
        accuracy, f1 = float((values == (y > 0)).double().mean()), micro_f1(values, y)
        auc = area(logits, y)
    else:
        values = logits.argmax(dim=1)
        accuracy, f1 = float((values == y).double().mean()), float(f1_score(y, values, average="macro"))
        auc = area(logits.softmax(dim=1), torch.nn.functional.one_hot(y, logits.shape[1]))
    return {"accuracy": 100 * accuracy, "f1": 100 * f1, "auc": 100 * auc}


def area(values: Tensor, there: Tensor) -> float:
    """Return the mean area under the ROC curve of the columns [m, c] that hold both answers (Mann-Whitney)."""
    yes = there.sum(dim=0).double().numpy()
    no = len(there) - yes
    varied = (yes > 0) & (no > 0)
    ranks = (stats.rankdata(values.numpy(), axis=0) * there.numpy()).sum(axis=0)
    return float(((ranks - yes * (yes + 1) / 2)[varied] / (yes * no)[varied]).mean())


# ---- rows and tables ----


def numbers(text: str) -> list[float]:
    """Return numbers given with commas."""
    return [float(part) for part in text.split(",")]


def rows(out: Path) -> list[dict[str, Any]]:
    """Return the finished rows."""
    return [json.loads(text) for text in out.read_text().splitlines()] if out.exists() else []


def missing(out: Path, key: dict[str, Any], seeds: int) -> bool:
    """Return whether a release has fewer rows than seeds."""
    return sum(all(row.get(name) == value for name, value in key.items()) for row in rows(out)) < seeds


def write(out: Path, key: dict[str, Any], seed: int, values: dict[str, Any]) -> None:
    """Add one finished row, unless it is there."""
    row = key | {"seed": seed}
    if not any(all(old.get(name) == value for name, value in row.items()) for old in rows(out)):
        with out.open("a") as file:
            file.write(json.dumps(row | values) + "\n")


def by_release(values: list[dict[str, Any]], figure: str) -> list[float]:
    """Return one mean for each release."""
    releases = sorted({row["release"] for row in values})
    return [float(np.mean([row[figure] for row in values if row["release"] == release])) for release in releases]


def cell(values: list[float]) -> str:
    """Return mean and half of the 95% interval."""
    if not values:
        return "-"
    half = float(stats.t.ppf(0.975, len(values) - 1) * stats.sem(values)) if len(values) > 1 else math.nan
    return f"{np.mean(values):.1f}±{half:.1f}"


def lines(values: list[dict[str, Any]], methods: list[str], epsilons: list[float], figure: str) -> Iterator[str]:
    """Yield a line of the table for each method: a row without noise fills every column."""
    for method in methods:
        mine = [row for row in values if row["method"] == method]
        if not mine:
            continue
        cells = [[row for row in mine if row["epsilon"] in (epsilon, math.inf)] for epsilon in epsilons]
        yield f"{method:22}" + "".join(f"{cell(by_release(part, figure)):>13}" for part in cells)


def table_features(chosen: Any, data: str) -> None:
    """Print Figure 6 as tables, and where FeatureRR stands among the mechanisms."""
    epsilons = numbers(chosen.epsilons)
    mine = {"part": "features", "data": data, "steps": chosen.steps}
    values = [row for row in rows(chosen.out) if all(row.get(name) == value for name, value in mine.items())]
    for figure in ("f1", "auc", "accuracy"):
        print(f"\n{data}, {chosen.steps} hops, {figure} in %, by epsilon of a feature vector")
        print(f"{'':22}" + "".join(f"{epsilon:>13g}" for epsilon in epsilons))
        for line in lines(values, ["clean", "random", *FEATURES], epsilons, figure):
            print(line)
    for epsilon in epsilons:
        best = {
            m: by_release([r for r in values if (r["method"], r["epsilon"]) == (m, epsilon)], "auc") for m in FEATURES
        }
        order = sorted((m for m in best if best[m]), key=lambda m: -float(np.mean(best[m])))
        print(f"AUC at {epsilon:g}: " + " > ".join(order))


def table_edges(chosen: Any, data: str) -> None:
    """Print Figure 7 as tables, and what the releases keep of the private edges."""
    epsilons = numbers(chosen.epsilons)
    every = [row for row in rows(chosen.out) if (row["part"], row["data"]) == ("edges", data)]
    for rho in numbers(chosen.shares):
        values = [row for row in every if row["rho"] == rho and row["steps"] == chosen.steps]
        for figure in ("f1", "auc", "accuracy"):
            print(f"\n{data}, rho {rho:g}, {figure} in %, by epsilon of an edge")
            print(f"{'':22}" + "".join(f"{epsilon:>13g}" for epsilon in epsilons))
            for line in lines(values, ["clean", "no private edges", *EDGES], epsilons, figure):
                print(line)
        print(f"\n{data}, rho {rho:g}: first release; distances are of synthetic to private edges (0: the same)")
        print(f"{'':16}" + "".join(f"{name:>9}" for name in KEPT))
        for row in values:
            if "kept" in row and row["seed"] == 0:
                print(kept_line(row))


def kept_line(row: dict[str, Any]) -> str:
    """Return one line of what a release keeps; see KEPT."""
    facts = row["kept"]
    both, apart = facts["overlap"], facts["distance_of_synthetic_to_private_edges"]
    figures = (
        f"{row['epsilon']:g}",
        f"{both['synthetic']}",
        f"{both['true']}",
        f"{both['common']}",
        f"{both['chance']:.1f}",
        *("-" if facts[part]["homophily"] is None else f"{facts[part]['homophily']:.3f}" for part in PARTS),
        f"{apart['degrees']:.3f}",
        f"{apart['blocks by class']:.3f}" if "blocks by class" in apart else "-",
    )
    return f"{row['method']:16}" + "".join(f"{figure:>9}" for figure in figures)


if __name__ == "__main__":
    main()
