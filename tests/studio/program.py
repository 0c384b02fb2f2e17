"""Stands in for the command: it ends as its first word says, at once or when it is told to."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from pathlib import Path


def progress(done: int) -> None:
    with Path(os.environ["GRAPHVEIL_PROGRESS"]).open("a") as lines:
        lines.write(json.dumps({"done": done, "total": 9, "stage": "training", "epsilon": done / 2}) + "\n")


def main(kind: str) -> int:
    progress(1)
    if kind == "refuse":
        sys.stderr.write("warning: of the command\nerror: town/nodes.csv, line 7: age is 'MARKER', not a number\n")
        return 2
    if kind == "crash":
        os.kill(os.getpid(), signal.SIGKILL)
    if kind == "fault":
        sys.stderr.write("internal error: ValueError: MARKER; please report it\n")
        return 1
    if kind == "hungry":
        try:
            bytearray(2 << 30)
        except MemoryError:
            sys.stderr.write("error: not enough memory; choose smaller settings\n")
            return 2
    if kind == "stubborn":
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        while kind in ("wait", "stubborn"):
            Path("waits").touch()
            time.sleep(0.01)
            if Path("go").exists():
                break
    except KeyboardInterrupt:
        return 130
    progress(9)
    answer = {"kind": kind, "threads": os.environ["OMP_NUM_THREADS"], "nice": os.nice(0), "path": sys.path[0]}
    sys.stdout.write(json.dumps(answer) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
