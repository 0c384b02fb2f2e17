"""What an epoch of two holders and a server over mutual TLS costs next to the same training in one process.

    python benchmarks/federation_speed.py --data pubmed --mode paper --epochs 8
    python benchmarks/federation_speed.py --data social --nodes 169343 --mode individual --epochs 4     arXiv's size

Loopback, one thread a process, real certificates, checkpoints on disk: what `graphveil federation serve` and `join`
run, without alignment.  An epoch is the median time between finished rounds at the server, the first two left out.
"plain" is `graphveil.reproduction.clear`: the same modules in the clear, without shares, network and checkpoints.  It
runs before the federation and after it, and the less of both counts.  "times_plain" has two ratios to its CPU seconds
of an epoch: the CPU seconds of all three processes together, and the time that passes.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import resource
import socket
import statistics
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import torch

from graphveil.federation.core.checkpoints import Checkpoints
from graphveil.federation.core.setting import Setting
from graphveil.federation.core.states import RunContext
from graphveil.federation.crypto.keys import Identity, new_identity
from graphveil.federation.effects import Program
from graphveil.federation.modes.holder import Holding
from graphveil.federation.modes.programs import programs_of, traffic_of
from graphveil.federation.simulation import partition_graph, vertical_partition
from graphveil.graphs import Split, load_graph, published_split, random_split, social_graph
from graphveil.privacy import SecureRandomness
from graphveil.reproduction.clear import Part, Plan, run
from graphveil.runtime.progress import Progress
from linked import finish, linked_session
from timing import cpu_seconds, processor

PATIENCE, PLAIN_EPOCHS = 600.0, 20


@dataclass(frozen=True)
class Stage:
    """What all three processes start from."""

    setting: Setting
    holdings: Mapping[str, Holding]
    identities: Mapping[str, Identity]
    addresses: Mapping[str, str]
    nodes: int
    rows: int
    folder: Path
    answers: Any


def main() -> None:
    """Run the three processes and print one JSON line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default="cora", help="a public name, or social")
    parser.add_argument("--data-root", default=None)
    parser.add_argument("--nodes", type=int, default=169_343, help="of social")
    parser.add_argument("--mode", default="individual")
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--hops", type=int, default=4)
    parser.add_argument("--epochs", type=int, default=8)
    chosen = parser.parse_args()
    torch.set_num_threads(1)
    if chosen.data == "social":
        graph = social_graph(chosen.nodes, average_degree=13.7, dimension=128, classes=40)
        split = random_split(graph, 0, (0.54, 0.18, 0.28))
    else:
        graph = load_graph(chosen.data, root=chosen.data_root)
        split = published_split(graph)
    plan = Plan(chosen.mode, width=chosen.width, hops=chosen.hops)
    parts = vertical_partition(graph, (5, 5), seed=0)
    before = plain_epoch(plan, parts, graph.y, split)
    members, holdings = partition_graph(graph, split, (5, 5), seed=0)
    setting = Setting.of(
        members,
        len(graph.schema.classes),
        mode=chosen.mode,
        width=chosen.width,
        hops=chosen.hops,
        epochs=chosen.epochs,
        opened=True,
    )
    with tempfile.TemporaryDirectory() as folder:
        names = [setting.server, *setting.names]
        context = multiprocessing.get_context("fork")
        stage = Stage(
            setting,
            holdings,
            {name: new_identity(name) for name in names},
            {name: f"127.0.0.1:{_free_port()}" for name in names},
            int(graph.num_nodes),
            int(split.train.sum()),
            Path(folder),
            context.Queue(),
        )
        processes = [context.Process(target=_party, args=(name, stage)) for name in names]
        for process in processes:
            process.start()
        figures = dict(stage.answers.get() for _ in names)
        for process in processes:
            process.join()
    plain = min(before, plain_epoch(plan, parts, graph.y, split))
    summary = _summary(figures, stage)
    times = {"cpu": sum(summary["cpu_epoch"].values()) / plain, "time": summary["epoch_seconds"] / plain}
    head = {"processor": processor(), "data": chosen.data, "mode": chosen.mode, "width": chosen.width}
    head |= {"times_plain": {name: round(value, 1) for name, value in times.items()}, "plain_epoch": round(plain, 4)}
    print(json.dumps(head | summary))


def plain_epoch(plan: Plan, parts: Sequence[Part], labels: torch.Tensor, split: Split) -> float:
    """Return the CPU seconds of an epoch in one process: what twice the epochs take more, so that set-up falls out."""
    _, once, twice = (
        cpu_seconds(partial(run, replace(plan, epochs=epochs), parts, labels, split, 0))
        for epochs in (1, PLAIN_EPOCHS, 2 * PLAIN_EPOCHS)  # the first loads what later ones have at hand
    )
    return (twice - once) / PLAIN_EPOCHS


def _summary(figures: Mapping[str, Any], stage: Stage) -> dict[str, Any]:
    marks = figures[stage.setting.server]["marks"]
    each = [later - now for now, later in pairwise(marks)][1:]
    plan = traffic_of(stage.setting, stage.nodes, stage.rows)
    return {
        "epoch_seconds": round(statistics.median(each), 3),
        "least": round(min(each), 3),
        "first_round_after": round(marks[0], 2),
        "cpu_epoch": {name: round(row["cpu"], 3) for name, row in figures.items()},
        "megabytes_epoch": round(sum(row["bytes"] for row in figures.values()) / 1e6, 2),
        "planned_megabytes_epoch": round(plan.round / 1e6, 2),
        "planned_megabytes_once": round(plan.once / 1e6, 2),
        "peak_megabytes": {name: round(row["peak"]) for name, row in figures.items()},
    }


def _party(name: str, stage: Stage) -> None:
    torch.set_num_threads(1)
    start, marks, cpu = time.perf_counter(), [], []

    def tell(step: Progress) -> None:
        marks.append(time.perf_counter() - start)
        cpu.append(time.process_time())

    store = Checkpoints(stage.folder / name, "ab" * 32)
    session = linked_session(
        name,
        stage.identities,
        stage.addresses,
        lambda done, state: _program(name, stage, done, state),
        store,
        patience=PATIENCE,
        largest=1 << 30,
        progress=tell,
    )
    finished = finish(session, store)
    # Rounds after the last publication are no epochs: "shared-linear" has two, for the rows that were never published.
    rounds = stage.setting.publications
    marks, cpu = marks[:rounds], cpu[:rounds]
    sent = sum(e.bytes for e in finished.transcript.entries if e.sender == name and 2 <= e.round <= rounds)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    answer = {"marks": marks, "cpu": (cpu[-1] - cpu[0]) / max(len(cpu) - 1, 1), "peak": peak}
    stage.answers.put((name, answer | {"bytes": sent / max(rounds - 1, 1)}))


def _program(name: str, stage: Stage, done: int, state: Any) -> Program[Any]:
    setting, randomness, generator = stage.setting, SecureRandomness(), torch.Generator().manual_seed(7)
    run = RunContext(name, setting, randomness, generator, done, state)
    if name == setting.server:
        return programs_of(setting).server(run, stage.nodes, stage.rows)
    holding = stage.holdings[name]
    if holding.head is not None:
        holding.head.open(setting, randomness=randomness, generator=generator)
    return programs_of(setting).holder(run, holding)


def _free_port() -> int:
    with socket.socket() as figures:
        figures.bind(("127.0.0.1", 0))
        return int(figures.getsockname()[1])


if __name__ == "__main__":
    main()
