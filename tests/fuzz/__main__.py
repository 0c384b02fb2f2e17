"""`make fuzz`: python -m tests.fuzz [--inputs N] [--seed S] [--only WORD]; exit code 1 where an input failed."""

from __future__ import annotations

import argparse
import contextlib
import io
import random
import sys
import tempfile
from pathlib import Path

from tests.fuzz.harness import fuzz
from tests.fuzz.targets import targets


def run() -> int:
    """Fuzz, and print what was found."""
    words = argparse.ArgumentParser()
    words.add_argument("--inputs", type=int, default=100_000)
    words.add_argument("--seed", type=int, default=None)
    words.add_argument("--only", default="")
    words.add_argument("--keep", type=Path, default=Path("fuzz-failures"))
    given = words.parse_args()
    seed = random.SystemRandom().randrange(10**9) if given.seed is None else given.seed
    sys.stderr.write(f"seed {seed}\n")
    keep = given.keep.absolute()
    with tempfile.TemporaryDirectory() as folder:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            chosen = [target for target in targets(Path(folder) / "valid") if given.only in target.name]
        outcome = fuzz(chosen, given.inputs, seed, Path(folder) / "work" / "one", keep=keep, tell=True)
    sys.stderr.write("\n")
    for name, (inputs, accepted, failed) in outcome.of.items():
        sys.stderr.write(f"{name:20} {inputs:7,} inputs, {accepted:7,} accepted, {failed:4,} failed\n")
    sys.stderr.write(f"slowest: {outcome.slowest:.1f} s, {outcome.slow}\n")
    for failure in outcome.failures[:20]:
        sys.stderr.write(f"\n{failure}\n")
    if outcome.failures:
        sys.stderr.write(f"\ninputs that failed are kept in {keep}\n")
    return 1 if outcome.failures else 0


if __name__ == "__main__":
    raise SystemExit(run())
