"""What private set intersection costs: two holders over mutual TLS on loopback, and a server that only paces them.

    python benchmarks/alignment.py --ids 100000
    python benchmarks/alignment.py --ids 1000000 --line 100Mbit/50ms --again

Half of the ids are common.  Seconds from the first message to the rows in their order; peak memory of the process, ids
and libraries included.  With --again both run once more from the memory on disk, as after a kill before the first
round.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import resource
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from federation_line import NAMES, free_ports
from graphveil.federation.core.checkpoints import Checkpoints
from graphveil.federation.crypto.keys import Identity, new_identity
from graphveil.federation.crypto.psi import align, alignment_bytes, alignment_trips
from graphveil.federation.effects import Program, Receive, Roster, Send
from graphveil.federation.transport.line import Line
from graphveil.privacy import SecureRandomness
from linked import finish, linked_session
from timing import processor

PATIENCE = 900.0


@dataclass(frozen=True)
class Stage:
    """What all three processes start from."""

    identities: Mapping[str, Identity]
    ports: Mapping[str, int]
    ids: int
    folder: Path
    answers: Any


def main() -> None:
    """Align and print one JSON line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ids", type=int, default=100_000)
    parser.add_argument("--line", default="100Mbit/50ms", help="for the seconds by plan")
    parser.add_argument("--again", action="store_true")
    chosen = parser.parse_args()
    torch.set_num_threads(1)
    each, busiest = alignment_bytes(2, chosen.ids)
    line = Line.parse(chosen.line).seconds(busiest, alignment_trips(2))
    head = {"processor": processor(), "ids": chosen.ids, "megabytes": each / 1e6, f"seconds on {chosen.line}": line}
    with tempfile.TemporaryDirectory() as folder:
        runs = [aligned(chosen.ids, Path(folder)) for _ in range(1 + chosen.again)]
    print(json.dumps(head | dict(zip(("first", "again"), runs, strict=False))))


def aligned(ids: int, folder: Path) -> dict[str, Any]:
    """Run the three processes once; return the seconds, CPU seconds and peak megabytes of each holder."""
    context = multiprocessing.get_context("spawn")
    ports = dict(zip(NAMES, free_ports(len(NAMES)), strict=True))
    stage = Stage({name: new_identity(name) for name in NAMES}, ports, ids, folder, context.Queue())
    processes = [context.Process(target=party, args=(name, stage)) for name in NAMES]
    for process in processes:
        process.start()
    figures = dict(stage.answers.get() for _ in NAMES)
    for process in processes:
        process.join()
    return {name: figures[name] for name in NAMES[1:]}


def party(name: str, stage: Stage) -> None:
    """Run one party in its process."""
    torch.set_num_threads(1)
    first = stage.ids // 2 * NAMES.index(name)
    ids = [f"person-{number}@example.org" for number in range(first, first + stage.ids)]
    times: dict[str, float] = {}

    def build(done: int, state: object) -> Program[Any]:
        if name == "server":
            for other in NAMES[1:]:
                yield Receive(other, "aligned", (1,))
            return None
        times["start"] = time.perf_counter()
        cpu = time.process_time()
        source = SecureRandomness()
        roster = Roster(name, NAMES[1:])
        order = yield from align(roster, ids, randomness=source, memory=store.alignment, progress=session.computing)
        times["seconds"] = round(time.perf_counter() - times.pop("start"), 1)
        times["cpu"] = round(time.process_time() - cpu, 1)
        yield Send("server", "aligned", torch.tensor([len(order)]))
        return len(order)

    store = Checkpoints(stage.folder / name, "ab" * 32)
    addresses = {other: f"127.0.0.1:{port}" for other, port in stage.ports.items()}
    session = linked_session(name, stage.identities, addresses, build, store, patience=PATIENCE, largest=1 << 26)
    common = finish(session, store).result
    peak = round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
    stage.answers.put((name, {"common": common, **times, "peak_megabytes": peak}))


if __name__ == "__main__":
    main()
