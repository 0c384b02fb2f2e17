"""How much of its CPU seconds before a whole command takes now, imports and reports included, in one run.

    git worktree add --detach /somewhere/before 3a820e7
    python benchmarks/commands.py /somewhere/before "train lpgnn cora" "plan dp-mlp cora" [--data-root DIR]

Both programs run in processes of their own, in turns and with one thread; the least CPU seconds of each count, and its
least wall seconds stand beside them. Seconds are those of the CPU that is named; the ratio is what to quote.
"""

from __future__ import annotations

import argparse
import os
import resource
import shlex
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from timing import processor

HERE = Path(__file__).resolve().parents[1]


class Taken(NamedTuple):
    """Seconds of a command."""

    cpu: float
    wall: float


def measured(root: Path, command: str, data: str | None) -> Taken:
    """Run a command of the program in a checkout, and return what it took."""
    words = [*shlex.split(command), *(["--data-root", data] if data else [])]
    with tempfile.TemporaryDirectory() as folder:
        if words[0] == "train":
            words += ["--out", f"{folder}/run"]
        # Byte code is kept, as it is for users: without it, compiling libraries anew would be half of a short command.
        place = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        subprocess.run(
            [sys.executable, "-m", "graphveil", *words],
            check=True,
            cwd=folder,
            env={**place, "PYTHONPATH": str(root / "src"), "OMP_NUM_THREADS": "1"},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        wall, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    return Taken(after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime, wall)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before", type=Path, help="an earlier checkout of the repository")
    parser.add_argument("commands", nargs="+", help="what is typed after graphveil, in quotes")
    parser.add_argument("--data-root")
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    print(f"{processor()}, one thread\n")
    print("| command | now / before | CPU s | wall s |")
    print("| --- | --- | --- | --- |")
    for command in options.commands:
        pairs = [
            [measured(root, command, options.data_root) for root in (HERE, options.before)]
            for _ in range(options.repeats)
        ]
        now, before = ([min(column) for column in zip(*side, strict=True)] for side in zip(*pairs, strict=True))
        print(
            f"| `{command}` | **{now[0] / before[0]:.2f}** | {now[0]:.2f} / {before[0]:.2f} "
            f"| {now[1]:.1f} / {before[1]:.1f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
