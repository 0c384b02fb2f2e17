"""The account of `make test`: what each step took, and the slowest tests.

``python tests/account.py STEP COMMAND...`` runs a step and notes what it took in the file ACCOUNT; ``python
tests/account.py`` prints the account and removes it. Standard library alone: the first step is the install itself.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Final

#: Lines of `step <tab> seconds <tab> CPU seconds`; a test's step is `test <node id>`.
FILE: Final = Path(os.environ.get("ACCOUNT", ".venv/account.tsv"))
SLOWEST: Final = 10


def main(words: list[str]) -> int:
    if not words:
        sys.stdout.write(account(FILE.read_text(encoding="utf-8")) + "\n")
        FILE.unlink()
        return 0
    step, *command = words
    start = time.monotonic()
    code = subprocess.call(command)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    note(step, time.monotonic() - start, used.ru_utime + used.ru_stime)
    return code


def note(step: str, seconds: float, cpu_seconds: float) -> None:
    """Add a line to the account."""
    FILE.parent.mkdir(parents=True, exist_ok=True)
    with FILE.open("a", encoding="utf-8") as file:
        file.write(f"{step}\t{seconds:.2f}\t{cpu_seconds:.2f}\n")


def account(lines: str) -> str:
    """Return the steps with their sums, and the tests with the most CPU seconds."""
    steps: dict[str, tuple[float, float]] = {}
    for line in lines.splitlines():
        step, seconds, cpu_seconds = line.split("\t")
        before = steps.get(step, (0.0, 0.0))
        steps[step] = (before[0] + float(seconds), before[1] + float(cpu_seconds))
    tests = {step.removeprefix("test "): steps.pop(step)[1] for step in list(steps) if step.startswith("test ")}
    slowest = sorted(tests.items(), key=lambda test: -test[1])[:SLOWEST]
    rows = [f"{step:10} {seconds:6.0f} s {cpu:6.0f} CPU s" for step, (seconds, cpu) in steps.items()]
    total = [sum(pair[column] for pair in steps.values()) for column in (0, 1)]
    rows.append(f"{'in all':10} {total[0]:6.0f} s {total[1]:6.0f} CPU s")
    return "\n".join([*rows, f"{len(tests)} tests; the slowest:" if tests else "", *_lines(slowest)]).rstrip()


def _lines(slowest: list[tuple[str, float]]) -> list[str]:
    return [f"{seconds:6.1f} CPU s  {test}" for test, seconds in slowest]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
