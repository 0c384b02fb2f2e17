"""Run the mutants: ``python -m tests.mutants [--jobs N] [WORD ...]``, or ``make mutants``.

Works on copies of the tree, never on the tree itself. Every named test first runs on the unchanged source and must
pass. Then each mutant's tests run on its copy, and at least one must fail, by an assertion or by one of our own errors:
a mutant that merely crashes (NameError, TypeError ...) has shown nothing.

WORD: run only mutants whose name contains one of the words. Exit code 1 if any verdict in the table is not "killed".
"""

from __future__ import annotations

import argparse
import compileall
import multiprocessing
import os
import shutil
import sys
import tempfile
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Final

from tests.mutants.catalogue import ROOT, SECONDS, Mutant, StaleMutantError, read_mutants
from tests.mutants.forked import run_pytest

PARTS: Final = (
    "src",
    "tests",
    "docs",
    "vectors",
    "benchmarks",
    "clients",
    "README.md",
    "pyproject.toml",
    "constraints.txt",
    "Makefile",
)
CRASHES: Final = ("NameError", "TypeError", "AttributeError", "ImportError", "ModuleNotFoundError", "SyntaxError")
#: Seconds, start of Python included; a run that takes longer shows nothing.
LIMIT: Final = 300.0
#: Files that numba caches beside a module; it does not notice when a function of another module changes.
COMPILED: Final = ("*.nbi", "*.nbc")
#: Runs are forked from a process that has loaded the slow libraries and none of our own modules.
LIBRARIES: Final = ("pytest", "numpy", "scipy.stats", "scipy.sparse", "torch", "sklearn", "dp_accounting")
FORKS: Final = multiprocessing.get_context("forkserver")


@dataclass(frozen=True)
class Outcome:
    """How a run of tests ended: `passed`, `failed`, or a reason why it shows neither; the seconds its tests took."""

    verdict: str
    seconds: float
    by: str = ""


@dataclass(frozen=True)
class Row:
    """One line of the table."""

    mutant: Mutant
    verdict: str
    by: str
    seconds: float


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.mutants")
    parser.add_argument("words", nargs="*")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=SECONDS, help="most for one test; raise it on a busy machine")
    options = parser.parse_args()
    chosen = [m for m in read_mutants() if not options.words or any(word in m.name for word in options.words)]
    os.environ["OMP_NUM_THREADS"] = "1"
    FORKS.set_forkserver_preload(list(LIBRARIES))
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder, ThreadPoolExecutor(options.jobs) as pool:
        clean = Path(folder) / "clean"
        copy_tree(ROOT, clean)
        compileall.compile_dir(clean, quiet=2)
        sound = run_clean(sorted({node for mutant in chosen for node in mutant.tests}), clean, pool)
        rows = []
        for row in pool.map(lambda mutant: judge(mutant, clean, Path(folder), sound, options.seconds), chosen):
            rows.append(row)
            print(f"{row.verdict:9} {row.mutant.name:60} {row.seconds:6.1f} s  {row.by}", flush=True)
    killed = sum(row.verdict == "killed" for row in rows)
    print(f"{len(rows)} mutants, {killed} killed")
    return int(killed < len(rows))


def judge(mutant: Mutant, clean: Path, folder: Path, sound: dict[str, Outcome], most: float) -> Row:
    """Return the verdict on one mutant: killed, SURVIVED, stale, or a reason why it is undecided."""
    for node in mutant.tests:
        if sound[node].verdict != "passed":
            return Row(mutant, f"unsound: {node} {sound[node].verdict} without it", node, sound[node].seconds)
        if sound[node].seconds > most:
            return Row(mutant, f"slow: above {most:g} s", node, sound[node].seconds)
    copy = folder / mutant.name.replace("/", "-")
    copy_tree(clean, copy)
    try:
        file = copy / mutant.file
        file.write_text(mutant.applied(file.read_text(encoding="utf-8")), encoding="utf-8")
        for bytecode in (file.parent / "__pycache__").glob(f"{file.stem}.*"):
            bytecode.unlink()
        result = outcome(*run(mutant.tests, copy, "-x"))
    except (StaleMutantError, OSError) as error:
        return Row(mutant, "stale", str(error), 0.0)
    finally:
        shutil.rmtree(copy, ignore_errors=True)
    verdict = {"failed": "killed", "passed": "SURVIVED"}.get(result.verdict, result.verdict)
    return Row(mutant, verdict, result.by, max(sound[node].seconds for node in mutant.tests))


def run_clean(nodes: list[str], clean: Path, pool: ThreadPoolExecutor) -> dict[str, Outcome]:
    """Return how each test ends on the unchanged source; the tests of one file share a process."""
    files = [list(group) for _, group in groupby(nodes, key=lambda node: node.split("::")[0])]
    outcomes: dict[str, Outcome] = {}
    for group, (done, cases) in zip(files, pool.map(lambda group: run(group, clean), files), strict=True):
        for node in group:
            outcomes[node] = outcome(done, [case for case in cases if is_of(case, node)])
    return outcomes


def is_of(case: ElementTree.Element, node: str) -> bool:
    """Whether a test case of a report belongs to a node id; an id without parameters matches all of them."""
    name, place = case.get("name", ""), node.removesuffix("]").replace(".py::", "/").replace("::", "/")
    here = f"{case.get('classname', '').replace('.', '/')}/{name if '[' in node else name.split('[')[0]}"
    return here.removesuffix("]") == place


@dataclass(frozen=True)
class Ended:
    """How a run of pytest ended: its exit code (124 where it was stopped) and what it printed."""

    returncode: int
    output: str


Run = tuple[Ended, list[ElementTree.Element]]


def run(nodes: Iterable[str], tree: Path, *more: str) -> Run:
    """Run tests on a copy of the tree in a separate process; return how it ended, and its report."""
    with tempfile.TemporaryDirectory(prefix="mutants-run-") as folder:
        files = [f"--junitxml={folder}/found.xml", f"--basetemp={folder}/files"]
        words = ["-p", "no:cacheprovider", *files, *more, *nodes]
        process = FORKS.Process(target=run_pytest, args=(tree, words, f"{folder}/said"))
        process.start()
        process.join(LIMIT)
        if process.is_alive():
            process.kill()
            process.join()
            return Ended(124, f"no end within {LIMIT:g} s"), []
        output, code = Path(folder, "said"), process.exitcode or 0
        text = output.read_text(errors="replace") if output.exists() else ""
        report = Path(folder, "found.xml")
        cases = ElementTree.parse(report).iter("testcase") if report.exists() else ()
        return Ended(code, text), list(cases)


def outcome(done: Ended, cases: list[ElementTree.Element]) -> Outcome:
    """Read a run's exit code and the cases of its report that matter."""
    seconds = sum(float(case.get("time", 0)) for case in cases)
    ended = done.returncode in (0, 1) and any(case.find("skipped") is None for case in cases)
    if ended and not any(case.find(kind) is not None for case in cases for kind in ("failure", "error")):
        return Outcome("passed", seconds)
    for case in cases:
        failure = case.find("failure")
        if failure is None:
            continue
        by = (failure.get("message") or "").split("\n")[0]
        if any(by.startswith(kind) for kind in CRASHES):
            return Outcome(f"crashed: {by}", seconds)
        return Outcome("failed", seconds, case.get("name", ""))
    return Outcome(f"not run: {done.output.strip()[-300:]}", seconds)


def copy_tree(source: Path, target: Path) -> None:
    """Copy what tests need; bytecode only from a clean copy, where it was compiled from that copy's source."""
    ignored = shutil.ignore_patterns("node_modules", *(("__pycache__", ".*") if source == ROOT else COMPILED))
    target.mkdir(parents=True)
    for part in PARTS:
        if (source / part).is_dir():
            shutil.copytree(source / part, target / part, ignore=ignored)
        else:
            shutil.copy2(source / part, target / part)


if __name__ == "__main__":
    sys.exit(main())
