"""A federation of two holders and a server on loopback and on a slow line: bytes, and seconds of each of its parts.

    python benchmarks/federation_line.py --data cora --mode shared-linear --line 100Mbit/50ms
    python benchmarks/federation_line.py --data social-300 --width 16 --epochs 10

Three processes of the command line, as three organisations start them: mutual TLS, checkpoints on disk, alignment.  On
the line each party's agreed address leads through `slow_line`; on loopback to the party itself.  Seconds are the label
holder's: "alignment" begins with its first message, "set-up" ends with the state before the first round, "rounds" with
the last, and "predictions" when its process has written everything.  One thread a process.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from graphveil.federation.transport.line import Line
from graphveil.graphs import load_graph, published_split
from slow_line import SlowLine
from timing import processor

NAMES = ("server", "holder1", "holder2")
PARTS = ("alignment", "set-up", "rounds", "predictions")


@dataclass(frozen=True)
class Job:
    """What is run on both lines."""

    folder: Path
    settings: Sequence[str]
    line: str
    nodes: int
    training: int
    validation: int


def main() -> None:
    """Run on loopback and on the line, and print one JSON line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default="social-300", help="a name or a folder")
    parser.add_argument("--data-root", default=None)
    parser.add_argument("--mode", default="shared-linear")
    parser.add_argument("--epsilon", default="inf")
    parser.add_argument("--width", type=int, default=16)
    parser.add_argument("--hops", type=int, default=2)
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="of federation init")
    parser.add_argument("--line", default="100Mbit/50ms")
    chosen = parser.parse_args()
    pairs = {key: getattr(chosen, key) for key in ("mode", "epsilon", "width", "hops", "epochs")}
    settings = [*(f"{key}={value}" for key, value in pairs.items()), *chosen.set]
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        where = ["--data-root", chosen.data_root] if chosen.data_root else []
        command("split", chosen.data, "--out", folder / "parts", *where)
        label_holder = load_graph(str(folder / "parts" / "holder1"))
        split = published_split(label_holder)
        assert split is not None  # `federation split` writes it
        training, validation = int(split.train.sum()), int(split.val.sum())
        job = Job(folder, settings, chosen.line, int(label_holder.num_nodes), training, validation)
        loopback, line = measured(job, None), measured(job, Line.parse(chosen.line))
    head = {"processor": processor(), "data": chosen.data, "settings": settings, "line": chosen.line}
    print(json.dumps(head | {"loopback": loopback, "slow": line} | ratios(loopback, line)))


def ratios(loopback: Mapping[str, Any], line: Mapping[str, Any]) -> dict[str, Any]:
    """Return how many times as long the line takes, and how many times the planned bytes it carries."""
    times = {part: round(line["seconds"][part] / loopback["seconds"][part], 1) for part in (*PARTS, "all")}
    return {"times": times, "carried_by_planned": round(line["bytes"]["carried"] / line["bytes"]["planned"], 3)}


def measured(job: Job, line: Line | None) -> dict[str, Any]:
    """Run the three parties, on loopback where no line is given; return bytes and seconds."""
    ports = free_ports(2 * len(NAMES))
    agreed, behind = ports[: len(NAMES)], ports[len(NAMES) if line is not None else 0 :]
    run = job.folder / ("run-line" if line is not None else "run")
    typed = [word for pair in job.settings for word in ("--set", pair)]
    command("init", "--from", job.folder / "parts", "--out", run, "--port", agreed[0], *typed)
    sizes = ("--nodes", job.nodes, "--training", job.training, "--validation", job.validation)
    sizes += ("--line", job.line, "--json")
    plan = json.loads(command("plan", run / "server", *sizes))
    proxy = SlowLine(line, dict(zip(agreed, behind, strict=False))) if line is not None else None
    with contextlib.ExitStack() as stack:
        if proxy is not None:
            stack.enter_context(proxy)
        answers, seconds = parties(job, run, behind)
    sent = sum(answer["bytes_sent"] for answer in answers.values())
    size = {"planned": plan["bytes_alignment"] + plan["bytes_total"], "sent": sent}
    carried = {} if proxy is None else {"carried": sum(proxy.directions), "busiest": max(proxy.directions)}
    planned = (
        {} if proxy is None else {part: round(plan["line"][f"seconds_{part}"], 2) for part in ("alignment", "run")}
    )
    result = {
        "bytes": size | carried,
        "seconds": seconds,
        "accuracy": answers["holder1"].get("accuracy", {}).get("mean"),
    }
    return result | ({"planned_seconds_of_messages": planned} if planned else {})


def parties(job: Job, run: Path, ports: Sequence[int]) -> tuple[dict[str, Any], dict[str, float]]:
    """Start all parties and wait for them; return what each printed, and seconds of each part at the label holder."""
    started = {}
    for name, port in zip(NAMES, ports, strict=False):
        words = ["serve", run / name] if name == "server" else ["join", run / name, job.folder / "parts" / name]
        words += ["--listen", f"127.0.0.1:{port}", "--json"]
        typed = [sys.executable, "-m", "graphveil", "federation", *map(str, words)]
        output: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        started[name] = subprocess.Popen(typed, env=environment(), **output)
    marks = [0.0] * (len(PARTS) + 1)
    watchers = [threading.Thread(target=work, args=(started["holder1"], marks, run)) for work in (read_lines, read_log)]
    # Of the others too, or a full pipe would stop them.
    watchers += [threading.Thread(target=started[name].stderr.read) for name in NAMES if name != "holder1"]
    for watcher in watchers:
        watcher.start()
    answers = {}
    for name in ("holder1", "holder2", "server"):
        answers[name] = json.loads(started[name].stdout.read() or "{}")
        if name == "holder1":
            marks[4] = time.perf_counter()
        if started[name].wait():
            raise SystemExit(f"{name} has failed")
    for watcher in watchers:
        watcher.join()
    seconds = {part: round(end - start, 2) for part, (start, end) in zip(PARTS, pairwise(marks), strict=True)}
    return answers, seconds | {"all": round(marks[4] - marks[0], 2)}


def read_lines(process: subprocess.Popen[str], marks: list[float], run: Path) -> None:
    """Note when the label holder says that set-up and rounds have ended."""
    assert process.stderr is not None
    for line in process.stderr:
        if "all parties have started" in line:
            marks[2] = time.perf_counter()
        elif ": round " in line:
            marks[3] = time.perf_counter()
        if line.startswith("error"):
            print(line, end="", file=sys.stderr)


def read_log(process: subprocess.Popen[str], marks: list[float], run: Path) -> None:
    """Note when the label holder's first message leaves, and when alignment has ended."""
    file = run / "holder1" / "transcript.jsonl"
    while process.poll() is None and not marks[1]:
        text = file.read_text() if file.exists() else ""
        now = time.perf_counter()
        marks[0] = marks[0] or (now if text else 0.0)
        marks[1] = now if '"aligned"' in text else 0.0
        time.sleep(0.01)


def command(*words: object) -> str:
    """Run a command of the federation; return what it printed."""
    typed = [sys.executable, "-m", "graphveil", "federation", *map(str, words)]
    return subprocess.run(typed, env=environment(), check=True, stdout=subprocess.PIPE, text=True).stdout


def environment() -> dict[str, str]:
    """Return the environment of a process with one thread."""
    return {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONUNBUFFERED": "1"}


def free_ports(count: int) -> list[int]:
    """Return ports in a row that are free, below those that the system hands out."""
    while True:
        first = random.randrange(15_000, 32_000 - count)
        ports = [first + number for number in range(count)]
        with contextlib.ExitStack() as stack, contextlib.suppress(OSError):
            for port in ports:
                stack.enter_context(socket.create_server(("127.0.0.1", port)))
            return ports


if __name__ == "__main__":
    main()
