"""Whether every acknowledged report is counted exactly once through random kill -9 of the server under load.

    python benchmarks/kills.py --kills 1000 --folder KILLS      goes on where it was cut off

The same code as `tests/collection/test_faults.py`, which does 50 in CI. A round is one collection and as many kills as
`--each`; what a round found is a line of `rounds.jsonl` in the folder.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.collection.collections import url_of
from tests.collection.faults import Round


def main() -> None:
    """Run rounds until there were as many kills, and print what all of them found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=1_000)
    parser.add_argument("--each", type=int, default=50, help="kills of a round")
    parser.add_argument("--people", type=int, default=600, help="reports of a round")
    parser.add_argument("--folder", type=Path, default=Path("kills"))
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    log = options.folder / "rounds.jsonl"
    rounds = [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []
    while sum(item["kills"] for item in rounds) < options.kills:
        rounds.append(one_round(options, seed=len(rounds)))
        with log.open("a") as file:
            file.write(json.dumps(rounds[-1]) + "\n")
        print(rounds[-1], flush=True)
    kills, reports, again, seconds = (
        sum(item[name] for item in rounds) for name in ("kills", "reports", "again", "seconds")
    )
    faults = [fault for item in rounds for fault in item["faults"]]
    print(f"{kills:,} kills, {reports:,} reports, {again:,} of them acknowledged when sent again, {seconds:,.0f} s")
    print(f"{len(faults)} faults", *faults, sep="\n")


def one_round(options: argparse.Namespace, seed: int) -> dict[str, object]:
    """Run a round on a database of its own."""
    start = time.monotonic()
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        item = Round(url_of(Path(folder)), options.each, options.people)
        item.run(random.Random(seed))
        faults = item.faults()
    facts = {"kills": item.kills, "reports": item.acknowledged.total(), "again": item.codes["again"]}
    return {**facts, "seconds": round(time.monotonic() - start, 1), "faults": faults}


if __name__ == "__main__":
    main()
