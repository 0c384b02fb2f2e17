"""What forged reports cost, with the defence off and on.

    python benchmarks/forgery.py --data cora,facebook,pubmed --shares 0.05 --splits 10 --out forgery.jsonl

Of n people a share forges (`forged_reports`: all know everybody's true values); accuracy is over the
test nodes that are honest. Noise, forgers and splits are those of a split's number, so all cells are paired.

    lpgnn         defence: trimming=agreement (`graphveil.methods.local.trimming`)
    label-pool, label-propagation
                  no defence; the pool takes class shares apart from what tells people from one another
    link-beliefs  defence: lists that no device draws are read as missing (`graphveil.collection.export.suspects`), and
                  blocks=planted (`graphveil.models.blocks.labelled_blocks`); with an attack of its own, "everybody":
                  forgers name everybody

Points lost are against the same method on the same split without forgers, with 95% intervals (Student's t); "of plain"
is against the method without its defence and without forgers. A cell that --out holds is not run again.

Below them, for each share: how far labels forged by the same people move what LPGNN reads, beside the printed bound
(`graphveil.collection.export.moved`): the largest share of a class, and the labels that it trains on.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from scipy import stats

from forged_reports import KINDS, Truth, forge, forge_lists, some_of, with_fakes
from graphveil.aggregation.propagation import Adjacency
from graphveil.collection.export import law, moved
from graphveil.collection.export.suspects import ALARM, unlike
from graphveil.graphs import Graph, load_graph, random_split
from graphveil.mechanisms import EdgeReports
from graphveil.methods.base.people.released import LocalReports, Topology, randomize_people, topology_of
from graphveil.methods.links.collection import LinkReports, subgraph
from graphveil.methods.links.link_beliefs import LinkBeliefs
from graphveil.methods.local.label_propagation import LabelPropagation
from graphveil.methods.local.lpgnn import LPGNN
from graphveil.privacy import SeededRandomness

METHODS = ("lpgnn", "label-pool", "label-propagation", "link-beliefs")
#: Those of link-beliefs: fakes are among the people, since lists are of the people who report.
LIST_KINDS = ("random", "labels", "everybody")
NONE = "none"


@dataclass(frozen=True)
class Setting:
    """What all cells of a data set share."""

    data: str
    graph: Graph
    truth: Truth
    epsilons: tuple[float, float, float]
    epochs: int
    mode: str

    def key(self, cell: Cell) -> dict[str, Any]:
        targets_of = {"data": self.data, "epsilons": list(self.epsilons), "epochs": self.epochs, "mode": self.mode}
        return {**targets_of, "method": cell.method, "kind": cell.kind, "share": cell.share, "defence": cell.defence}


@dataclass(frozen=True)
class Cell:
    """One method under one attack."""

    method: str
    kind: str
    share: float
    defence: bool


def main() -> None:
    """Run what --out does not hold yet, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default="cora,facebook,pubmed", help="names with commas")
    parser.add_argument("--data-root", default=None)
    parser.add_argument("--methods", default="lpgnn,label-pool,link-beliefs")
    parser.add_argument("--kinds", default="random,labels,coordinate,fakes,everybody")
    parser.add_argument("--shares", default="0.01,0.05,0.1")
    parser.add_argument("--splits", type=int, default=10)
    parser.add_argument("--epochs", type=int, default=500, help="of lpgnn; 500 is its own number")
    parser.add_argument("--epsilons", default="2,2,6", help="of features, a label and a bit of a list")
    parser.add_argument("--mode", default="both", help="who reports a link")
    parser.add_argument("--out", type=Path, default=Path("forgery.jsonl"))
    given = parser.parse_args()
    torch.set_num_threads(1)
    x, y, a = (float(item) for item in given.epsilons.split(","))
    for data in given.data.split(","):
        graph = load_graph(data, root=given.data_root)
        # Whose class nobody knows is asked nothing: neither forgers nor accuracy could be told of them.
        graph = subgraph(graph, graph.y >= 0)
        truth = Truth.of(graph.x, graph.y, len(graph.schema.classes))
        setting = Setting(data, graph, truth, (x, y, a), given.epochs, given.mode)
        shares = [float(item) for item in given.shares.split(",")]
        cells = cells_of(given.methods.split(","), given.kinds.split(","), shares)
        for number in range(given.splits):
            for cell in cells:
                fill(given.out, setting, cell, number)
        table(given.out, setting, cells, given.splits)
        for share in shares:
            influence(setting, share, given.splits)


def cells_of(methods: list[str], wanted: list[str], shares: list[float]) -> list[Cell]:
    """Return what is run, honest cells first."""
    results = []
    for method in methods:
        kinds = [item for item in (LIST_KINDS if method == "link-beliefs" else KINDS) if item in wanted]
        defences = (False,) if method.startswith("label") else (False, True)
        results += [Cell(method, NONE, 0.0, on) for on in defences]
        results += [Cell(method, kind, share, on) for share in shares for kind in kinds for on in defences]
    return results


def fill(out: Path, setting: Setting, cell: Cell, number: int) -> None:
    """Write one run, unless it is there."""
    key = {**setting.key(cell), "split": number}
    if any(key.items() <= row.items() for row in rows_of(out)):
        return
    run = _with_lists if cell.method == "link-beliefs" else _with_topology
    with out.open("a") as file:
        file.write(json.dumps({**key, "accuracy": run(setting, cell, number)}) + "\n")


def _with_topology(setting: Setting, cell: Cell, number: int) -> float:
    graph, (x, y, _) = setting.graph, setting.epsilons
    split, people = random_split(graph, number), int(graph.num_nodes)
    trimming = "agreement" if cell.defence else "none"
    core = LPGNN(epsilon_x=x, epsilon_y=y, epochs=setting.epochs, seed=number, trimming=trimming)
    reports = randomize_people(graph, split, core.privacy, randomness=SeededRandomness(number))
    who = some_of(people, 0.0 if cell.kind == "fakes" else cell.share, number)
    topology: Topology = topology_of(graph)
    if cell.kind == "fakes":
        reports, topology = with_fakes(reports, topology, round(cell.share * people), setting.truth, number)
    elif cell.kind != NONE:
        reports = forge(reports, who, cell.kind, setting.truth, number)
    return accuracy(_fitted(cell, core, reports, topology, number)[:people], setting, split.test & ~who)


def _fitted(cell: Cell, core: LPGNN, reports: LocalReports, topology: Topology, number: int) -> torch.Tensor:
    if cell.method == "lpgnn":
        return core.fit_reports(reports, topology).probabilities()
    rule = "pool" if cell.method == "label-pool" else "propagation"
    pool = LabelPropagation(epsilon_y=core.privacy.epsilon_y, rule=rule, seed=number)
    return pool.fit_reports(replace(reports, privacy=pool.privacy), topology).probabilities()


def _with_lists(setting: Setting, cell: Cell, number: int) -> float:
    graph, (x, y, a) = setting.graph, setting.epsilons
    split = random_split(graph, number)
    core = LinkBeliefs(epsilon_x=x, epsilon_y=y, epsilon_a=a, mode=setting.mode, seed=number)
    sent = core.randomize(graph, split=split, randomness=SeededRandomness(number))
    who = some_of(int(graph.num_nodes), cell.share, number)
    if cell.kind != NONE:
        kind = "labels" if cell.kind == "everybody" else cell.kind
        people = forge(sent.people, who, kind, setting.truth, number)
        sent = replace(sent, people=people, lists={"lists": _lists(sent, who, cell.kind, setting.mode, number)})
    if cell.defence:
        sent = heard_of(sent, setting.mode)
    blocks = "planted" if cell.defence else "full"
    fresh = LinkBeliefs(epsilon_x=x, epsilon_y=y, epsilon_a=a, mode=setting.mode, blocks=blocks, seed=number)
    return accuracy(fresh.fit_reports(sent).probabilities(), setting, split.test & ~who)


def _lists(sent: LinkReports, who: torch.Tensor, kind: str, mode: str, number: int) -> EdgeReports:
    lists: EdgeReports = sent.lists["lists"]
    flip = sent.links.parts(sent.people.schema, sent.nodes)["lists"].flip
    if kind != "everybody":
        return forge_lists(lists, who, mode, flip, number)
    rows = np.split(lists.columns.numpy(), lists.starts.numpy()[1:-1])
    everybody = np.arange(sent.nodes, dtype=np.int32)
    for item in who.nonzero().flatten().tolist():
        rows[item] = everybody[item + 1 :] if mode == "lower" else np.delete(everybody, item)
    starts = np.concatenate([[0], np.cumsum([len(row) for row in rows])])
    return EdgeReports(torch.from_numpy(starts), torch.from_numpy(np.concatenate(rows)))


def heard_of(sent: LinkReports, mode: str) -> LinkReports:
    """Return reports without the lists that no device draws, by the check of a collection."""
    nodes, lengths = sent.nodes, sent.lists["lists"].starts.diff().numpy()
    flip = sent.links.parts(sent.people.schema, nodes)["lists"].flip
    labelled = nodes - 1 - np.arange(nodes) if mode == "lower" else np.full(nodes, nodes - 1)
    chances = law.either(law.above(lengths, labelled, 1 - flip), law.below(lengths, labelled, flip))
    heard = torch.from_numpy(chances >= ALARM / nodes)
    if mode == "both":
        left = heard.nonzero().flatten().numpy()
        columns = sent.lists["lists"].columns.numpy()
        named = sp.csr_matrix((np.ones(len(columns), np.int64), columns, sent.lists["lists"].starts.numpy()))
        named.resize((nodes, nodes))
        heard[left[unlike(named[left][:, left], 2 * flip * (1 - flip), ALARM / nodes)]] = False
    if bool(heard.all()):
        return sent
    repeated = torch.repeat_interleave(heard, sent.lists["lists"].starts.diff())
    starts = torch.cat([torch.zeros(1, dtype=torch.int64), torch.where(heard, torch.from_numpy(lengths), 0).cumsum(0)])
    # The whole report is one person's: whoever forged the list is not believed in the label.
    people = replace(sent.people, labels=torch.where(heard, sent.people.labels, -1))
    people = replace(people, train=people.train & heard, val=people.val & heard)
    return replace(
        sent, people=people, lists={"lists": EdgeReports(starts, sent.lists["lists"].columns[repeated])}, heard=heard
    )


def accuracy(scores: torch.Tensor, setting: Setting, test: torch.Tensor) -> float:
    """Return the percentage of honest test nodes whose class is the likeliest one."""
    return float((scores.argmax(dim=1) == setting.graph.y)[test].double().mean()) * 100


def influence(setting: Setting, share: float, splits: int) -> None:
    """Print what forged labels move, and the bounds: the largest of all splits, and the smallest bound."""
    graph, classes, hops = setting.graph, len(setting.graph.schema.classes), 4
    spread = Adjacency.of(graph.edge_index, int(graph.num_nodes)).to_scipy()
    results = []
    for number in range(splits):
        core = LPGNN(epsilon_x=setting.epsilons[0], epsilon_y=setting.epsilons[1])
        sent = randomize_people(graph, random_split(graph, number), core.privacy, randomness=SeededRandomness(number))
        # Forgers are a share of those who send a label, as the bound has it.
        labelled = sent.labelled.nonzero().flatten()
        who = torch.zeros(len(sent.labels), dtype=torch.bool)
        who[labelled[some_of(len(labelled), share, number)]] = True
        before, lean = sent.labels.numpy(), sent.channel.lean
        after = forge(sent, who, "labels", setting.truth, number).labels.numpy()
        shares = [np.bincount(item[item >= 0], minlength=classes) / len(labelled) for item in (before, after)]
        targets = [_targets(spread, item, classes, hops)[labelled] for item in (before, after)]
        forged = int(np.ceil(share * len(labelled)))
        results.append(
            (
                100 * float(np.abs(shares[1] - shares[0]).max()) / lean,
                100 * forged / len(labelled) / lean,
                100 * float((targets[0] != targets[1]).mean()),
                moved.of_targets(spread, before, classes, hops, share).most,
            )
        )
    share_moved, share_bound, target_moved, target_bound = zip(*results, strict=True)
    print(
        f"| {setting.data} | {share:.0%} | {max(share_moved):.1f} <= {min(share_bound):.1f} | "
        f"{max(target_moved):.1f} <= {min(target_bound):.1f} |",
        flush=True,
    )


def _targets(spread: sp.csr_matrix, labels: np.ndarray, classes: int, hops: int) -> np.ndarray:
    targets_of = np.eye(classes)[labels.clip(0)] * (labels >= 0)[:, None]
    for _ in range(hops):
        targets_of = spread @ targets_of
    return np.asarray(targets_of.argmax(axis=1))


def rows_of(out: Path) -> list[dict[str, Any]]:
    """Return the finished runs."""
    return [json.loads(text) for text in out.read_text().splitlines()] if out.exists() else []


def table(out: Path, setting: Setting, cells: list[Cell], splits: int) -> None:
    """Print a line for each attack."""
    rows = [row for row in rows_of(out) if row["split"] < splits]

    def runs(cell: Cell) -> dict[int, float]:
        key = setting.key(cell)
        return {row["split"]: row["accuracy"] for row in rows if key.items() <= row.items()}

    for cell in cells:
        results, own, plain = (
            runs(item) for item in (cell, replace(cell, kind=NONE, share=0.0), Cell(cell.method, NONE, 0.0, False))
        )
        targets_of = (
            f"| {setting.data} | {cell.method} | {cell.kind} | {cell.share:.0%} | {'on' if cell.defence else 'off'} |"
        )
        print(
            f"{targets_of} {_interval(list(results.values()))} | {_lost(own, results)} | {_lost(plain, results)} |",
            flush=True,
        )


def _lost(before: dict[int, float], after: dict[int, float]) -> str:
    return _interval([before[number] - after[number] for number in sorted(set(before) & set(after))])


def _interval(values: list[float]) -> str:
    if len(values) < 2:
        return f"{np.mean(values):.1f} (one split)" if values else "-"
    half = float(stats.t.ppf(0.975, len(values) - 1) * stats.sem(values))
    return f"{np.mean(values):.1f} ± {half:.1f}"


if __name__ == "__main__":
    main()
