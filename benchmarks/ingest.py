"""CPU seconds and memory of reading a folder of people and edges, next to polars reading the same files.

    python benchmarks/ingest.py --people 1000000 --edges 10000000

Each kind of ids (row numbers, sparse 64-bit numbers, text; csv and parquet) runs in processes of its own: polars alone,
less its import, and the whole of `graphveil data describe`, imports and all.  The ratio is of the second to the first.
Run it with the source of another version in PYTHONPATH to compare the two.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import polars

from timing import processor

TOML = 'range = [0, 1]\nclasses = ["a", "b", "c"]\nprivate = ["features", "labels"]\ndirected = false\n'
IDS = ("rows", "sparse", "text")
ENDINGS = ("csv", "parquet")


def main() -> None:
    """Make each folder, measure both ways in fresh processes, print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--people", type=int, default=1_000_000)
    parser.add_argument("--edges", type=int, default=10_000_000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--ids", nargs="*", choices=IDS, default=IDS)
    parser.add_argument("--endings", nargs="*", choices=ENDINGS, default=ENDINGS)
    parser.add_argument("--one", nargs=2, metavar=("READER", "FOLDER"), help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.one:
        print(json.dumps(_READERS[chosen.one[0]](Path(chosen.one[1]))))
        return
    print(f"{processor()}; {chosen.people:,} people, {chosen.edges:,} edges; CPU seconds, least of {chosen.repeats}")
    columns = ("ids", "file", "polars", "command", "ratio", "polars MB", "peak MB", "B/edge")
    print("".join(f"{name:>10}" for name in columns))
    for kind in chosen.ids:
        for ending in chosen.endings:
            with tempfile.TemporaryDirectory() as folder:
                make(Path(folder), chosen.people, chosen.edges, kind, ending)
                runs = (least(reader, folder, chosen.repeats) for reader in _READERS)
                show(kind, ending, *runs, edges=chosen.edges)


def make(folder: Path, people: int, edges: int, kind: str, ending: str) -> None:
    """Write a folder of people with four features and a label, and edges drawn at random."""
    rng = np.random.default_rng(1)
    ids = _ids(people, kind, rng)
    features = {f"f{place}": rng.random(people, np.float32).round(3) for place in range(4)}
    labels = np.array(["a", "b", "c"])[rng.integers(0, 3, people)]
    source, target = (ids.gather(rng.integers(0, people, edges)) for _ in range(2))
    (folder / "graph.toml").write_text(TOML)
    _write(polars.DataFrame({"id": ids, **features, "label": labels}), folder / f"nodes.{ending}")
    _write(polars.DataFrame({"source": source, "target": target}), folder / f"edges.{ending}")


def _ids(people: int, kind: str, rng: np.random.Generator) -> polars.Series:
    if kind == "rows":
        return polars.Series(np.arange(people))
    sparse = np.unique(rng.integers(1 << 40, 1 << 62, people + people // 100))
    numbers = polars.Series(rng.permutation(sparse)[:people])
    return numbers if kind == "sparse" else "user-" + numbers.cast(polars.String)


def _write(frame: polars.DataFrame, path: Path) -> None:
    if path.suffix == ".csv":
        frame.write_csv(path)
    else:
        frame.write_parquet(path)


def least(reader: str, folder: str, repeats: int) -> dict[str, float]:
    """The run of the fewest CPU seconds of several processes."""
    command = [sys.executable, __file__, "--one", reader, folder]
    runs = (subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True) for _ in range(repeats))
    figures = [dict[str, float](json.loads(run.stdout)) for run in runs]
    return min(figures, key=lambda run: run["seconds"])


def show(kind: str, ending: str, plain: dict[str, float], ours: dict[str, float], *, edges: int) -> None:
    """Print one row of the table; bytes an edge are of all that the command takes, people and libraries too."""
    seconds = (plain["seconds"], ours["seconds"], ours["seconds"] / plain["seconds"])
    cells = [f"{kind:>10}{ending:>10}", *(f"{value:10.2f}" for value in seconds)]
    memory = (plain["peak"], ours["peak"], (ours["peak"] - ours["before"]) * 1e6 / edges)
    print("".join(cells + [f"{value:10.0f}" for value in memory]), flush=True)


def read_alone(folder: Path) -> dict[str, float]:
    """Polars reads both files and does nothing with them."""
    start, before = time.process_time(), _peak()
    frames = [
        polars.read_parquet(path) if path.suffix == ".parquet" else polars.read_csv(path)
        for path in sorted(folder.glob("[ne]*.*"))
    ]
    seconds = time.process_time() - start
    return {"seconds": seconds, "before": before, "peak": _peak(), "rows": float(sum(map(len, frames)))}


def describe(folder: Path) -> dict[str, float]:
    """The whole command, from the start of the process."""
    from graphveil.cli import main as command

    before = _peak()
    with contextlib.redirect_stdout(io.StringIO()):
        command(["data", "describe", str(folder), "--json"])
    return {"seconds": time.process_time(), "before": before, "peak": _peak()}


def _peak() -> float:
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3


_READERS = {"polars": read_alone, "command": describe}

if __name__ == "__main__":
    main()
